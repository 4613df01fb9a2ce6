// The public interface: right answers, and a status for whatever is wrong.
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"

static ToroidValue *input(ToroidGraph *g, const char *name, ToroidSize rows, ToroidSize columns,
                          bool weight) {
    ToroidValue *v;
    OK(toroid_graph_input(g, name, TOROID_FLOAT32, 2, (ToroidSize[]){rows, columns}, weight, &v));
    return v;
}

static ToroidValue *op(ToroidGraph *g, const char *name, const ToroidArg *args, int n) {
    ToroidValue *v;
    OK(toroid_graph_call(g, name, args, n, &v, 1));
    return v;
}
#define OP(g, name, ...) \
    op(g, name, (ToroidArg[]){__VA_ARGS__}, COUNT(((ToroidArg[]){__VA_ARGS__})))
#define T toroid_tensor

static ToroidTensor matrix(float *data, int64_t rows, int64_t columns) {
    return (ToroidTensor){
        .data = data, .dtype = TOROID_FLOAT32, .rank = 2, .size = {rows, columns}};
}

static ToroidExecutable *finish(ToroidGraph *g, ToroidValue *const *values, int count) {
    ToroidExecutable *e;
    OK(toroid_graph_outputs(g, values, count));
    OK(toroid_compile(&e, &g, NULL));
    assert_null(g);
    return e;
}

/// x [any, 3] times w [2, 3].
static ToroidExecutable *linear(void) {
    ToroidGraph *g;
    OK(toroid_graph_create(&g));
    ToroidValue *x = input(g, "x", TOROID_ANY_SIZE, 3, false), *w = input(g, "w", 2, 3, true);
    ToroidValue *y = OP(g, "aten.linear.default", T(x), T(w));
    return finish(g, &y, 1);
}

static void test_any_batch(void **state) {
    (void)state;
    ToroidExecutable *e = linear();
    assert_int_equal(toroid_input_count(e), 2);
    assert_int_equal(toroid_output_count(e), 1);
    float w[] = {1, 2, 3, -1, 0, 1}, x[9] = {1, 0, 0, 0, 1, 0, 1, 1, 1}, y[6];
    const float expected[] = {1, -1, 2, 0, 6, 0};
    uint64_t id = toroid_weight_id();
    for (int64_t rows = 0; rows <= 3; rows++) {
        ToroidTensor in[] = {matrix(x, rows, 3), matrix(w, 2, 3)}, out = {0};
        in[1].id = id;
        OK(toroid_describe_outputs(e, in, 2, &out, 1));
        assert_int_equal(out.dtype, TOROID_FLOAT32);
        assert_int_equal(out.rank, 2);
        assert_int_equal(out.size[0], rows);
        assert_int_equal(out.size[1], 2);
        assert_null(out.data);
        memset(y, 0, sizeof y);
        out.data = y;
        OK(toroid_run(e, in, 2, &out, 1));
        assert_memory_equal(y, expected, (size_t)rows * 2 * sizeof *y);
        for (int64_t i = rows * 2; i < 6; i++) assert_true(y[i] == 0);
    }
    toroid_weight_forget(id);
    toroid_executable_destroy(&e);
}

// A weight changes: seen by its version, or at once where it has no number.
static void test_weights_change(void **state) {
    (void)state;
    ToroidExecutable *e = linear();
    float w[] = {1, 2, 3, -1, 0, 1}, x[] = {1, 1, 1}, y[2];
    uint64_t id = toroid_weight_id();
    assert_true(id != 0 && id != toroid_weight_id());
    for (int numbered = 0; numbered < 2; numbered++)
        for (int version = 0; version < 3; version++) {
            w[1] = (float)version;
            ToroidTensor in[] = {matrix(x, 1, 3), matrix(w, 2, 3)}, out = matrix(y, 1, 2);
            if (numbered) in[1].id = id, in[1].version = (uint64_t)version;
            OK(toroid_run(e, in, 2, &out, 1));
            assert_true(y[0] == 4 + (float)version);
        }
    toroid_weight_forget(id);
    toroid_weight_forget(0);
    toroid_executable_destroy(&e);
}

// The oracles have the kernels' answers. Options of a version that had no such field are taken.
static void test_reference(void **state) {
    (void)state;
    ToroidOptions options[] = {
        {.struct_bytes = sizeof *options, .reference = 1},
        {.struct_bytes = sizeof *options, .reference = 0},
        {.struct_bytes = offsetof(ToroidOptions, reference), .reference = 1}};
    for (int i = 0; i < COUNT(options); i++) {
        ToroidGraph *g;
        ToroidExecutable *e;
        OK(toroid_graph_create(&g));
        ToroidValue *x = input(g, "x", TOROID_ANY_SIZE, 3, false), *w = input(g, "w", 2, 3, true);
        ToroidValue *y = OP(g, "aten.relu.default", T(OP(g, "aten.linear.default", T(x), T(w))));
        OK(toroid_graph_outputs(g, &y, 1));
        OK(toroid_compile(&e, &g, &options[i]));
        float weight[] = {1, 2, 3, -1, 0, -1}, rows[] = {1, 1, 1, 0, 2, 0}, result[4];
        ToroidTensor in[] = {matrix(rows, 2, 3), matrix(weight, 2, 3)}, out = matrix(result, 2, 2);
        OK(toroid_run(e, in, 2, &out, 1));
        assert_memory_equal(result, ((const float[]){6, 0, 4, 0}), sizeof result);
        toroid_executable_destroy(&e);
    }
}

static void test_several_results_and_views(void **state) {
    (void)state;
    ToroidGraph *g;
    OK(toroid_graph_create(&g));
    ToroidValue *x = input(g, "x", 2, TOROID_ANY_SIZE, false), *split[2], *columns;
    ToroidSize size;
    OK(toroid_value_size(g, x, 1, &size));
    assert_true(size < -1);
    OK(toroid_graph_call(g, "aten.max.dim", (ToroidArg[]){T(x), toroid_int(1)}, 2, split, 2));
    assert_int_equal(toroid_value_dtype(split[1]), TOROID_INT64);
    columns = OP(g, "aten.view.default", T(x),
                 toroid_list((ToroidArg[]){toroid_size(size), toroid_int(2)}, 2));
    ToroidValue *t = OP(g, "aten.t.default", T(x));
    ToroidExecutable *e = finish(g, (ToroidValue *[]){split[0], split[1], t, columns, x, x}, 6);
    float data[] = {1, 5, 2, 9, 3, 4}, top[2], turned[6], flat[6], same[2][6];
    int64_t at[2];
    ToroidTensor in = matrix(data, 2, 3), out[6] = {{0}};
    OK(toroid_describe_outputs(e, &in, 1, out, 6));
    assert_int_equal(out[1].dtype, TOROID_INT64);
    assert_int_equal(out[2].size[0], 3);
    void *memory[] = {top, at, turned, flat, same[0], same[1]};
    for (int i = 0; i < 6; i++) out[i].data = memory[i];
    OK(toroid_run(e, &in, 1, out, 6));
    assert_true(top[0] == 5 && top[1] == 9 && at[0] == 1 && at[1] == 0);
    const float expected[] = {1, 9, 5, 3, 2, 4};
    assert_memory_equal(turned, expected, sizeof turned);
    assert_memory_equal(flat, data, sizeof flat);
    assert_memory_equal(same[0], data, sizeof flat);
    assert_memory_equal(same[1], data, sizeof flat);
    toroid_executable_destroy(&e);
}

static void test_keywords_and_text(void **state) {
    (void)state;
    ToroidGraph *g;
    OK(toroid_graph_create(&g));
    ToroidValue *x = input(g, "pixels", 2, 3, false);
    ToroidValue *y = OP(g, "aten.add.Tensor", T(x), T(x), toroid_named("alpha", toroid_int(3)));
    ToroidValue *z =
        OP(g, "aten._to_copy.default", T(y), toroid_named("dtype", toroid_dtype(TOROID_FLOAT64)));
    assert_int_equal(toroid_value_dtype(z), TOROID_FLOAT64);
    assert_int_equal(toroid_value_rank(z), 2);
    char *text;
    OK(toroid_graph_print(g, &text));
    assert_non_null(strstr(text, "pixels"));
    toroid_text_free(text);
    ToroidExecutable *e = finish(g, &z, 1);
    float data[] = {1, 2, 3, 4, 5, 6};
    double answer[6];
    ToroidTensor in = matrix(data, 2, 3), out = {0};
    OK(toroid_describe_outputs(e, &in, 1, &out, 1));
    out.data = answer;
    OK(toroid_run(e, &in, 1, &out, 1));
    for (int i = 0; i < 6; i++) assert_true(answer[i] == 4 * (double)data[i]);
    toroid_executable_destroy(&e);
}

static void test_names(void **state) {
    (void)state;
    static const char *const names[] = {"bool",  "uint8",   "int8",     "int16",   "int32",
                                        "int64", "float16", "bfloat16", "float32", "float64"};
    static const int bytes[] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8};
    for (int i = 0; i < COUNT(names); i++) {
        assert_string_equal(toroid_dtype_name((ToroidDtype)i), names[i]);
        assert_int_equal(toroid_dtype_bytes((ToroidDtype)i), bytes[i]);
    }
    static const int wrong[] = {-1, 10, 1000};
    for (int i = 0; i < COUNT(wrong); i++) {
        assert_null(toroid_dtype_name((ToroidDtype)wrong[i]));
        assert_int_equal(toroid_dtype_bytes((ToroidDtype)wrong[i]), 0);
    }
}

// ---------------------------------------------------------------- what is wrong

static void test_null(void **state) {
    (void)state;
    ToroidGraph *g = NULL, *none = NULL;
    ToroidValue *v;
    ToroidExecutable *e = NULL;
    ToroidSize size;
    char *text;
    assert_int_equal(toroid_graph_create(NULL), TOROID_INVALID);
    toroid_graph_destroy(NULL), toroid_graph_destroy(&none);
    toroid_executable_destroy(NULL), toroid_executable_destroy(&e);
    toroid_text_free(NULL);
    assert_int_equal(toroid_input_count(NULL), 0);
    assert_int_equal(toroid_output_count(NULL), 0);
    assert_int_equal(toroid_value_rank(NULL), 0);
    OK(toroid_graph_create(&g));
    FAILS(TOROID_INVALID, "NULL", toroid_graph_input(NULL, "x", TOROID_BOOL, 0, NULL, 0, &v));
    FAILS(TOROID_INVALID, "NULL", toroid_graph_input(g, "x", TOROID_BOOL, 0, NULL, 0, NULL));
    FAILS(TOROID_INVALID, "NULL", toroid_graph_input(g, NULL, TOROID_BOOL, 1, NULL, 0, &v));
    FAILS(TOROID_INVALID, "NULL", toroid_graph_call(NULL, "aten.relu.default", NULL, 0, &v, 1));
    FAILS(TOROID_INVALID, "NULL", toroid_graph_call(g, NULL, NULL, 0, &v, 1));
    FAILS(TOROID_INVALID, "room", toroid_graph_call(g, "aten.relu.default", NULL, 0, NULL, 1));
    FAILS(TOROID_INVALID, "arguments", toroid_graph_call(g, "aten.relu.default", NULL, 1, &v, 1));
    FAILS(TOROID_INVALID, "NULL", toroid_graph_outputs(NULL, NULL, 0));
    FAILS(TOROID_INVALID, "list", toroid_graph_outputs(g, NULL, 1));
    FAILS(TOROID_INVALID, "list", toroid_graph_outputs(g, &v, -1));
    FAILS(TOROID_INVALID, "NULL", toroid_graph_print(NULL, &text));
    FAILS(TOROID_INVALID, "NULL", toroid_graph_print(g, NULL));
    FAILS(TOROID_INVALID, "NULL", toroid_value_size(g, NULL, 0, &size));
    FAILS(TOROID_INVALID, "NULL", toroid_compile(NULL, &none, NULL));
    FAILS(TOROID_INVALID, "NULL", toroid_compile(&e, NULL, NULL));
    FAILS(TOROID_INVALID, "NULL", toroid_compile(&e, &none, NULL));
    FAILS(TOROID_INVALID, "no outputs", toroid_compile(&e, &g, NULL));
    assert_null(g);
    assert_null(e);
    FAILS(TOROID_INVALID, "NULL", toroid_run(NULL, NULL, 0, NULL, 0));
    FAILS(TOROID_INVALID, "NULL", toroid_describe_outputs(NULL, NULL, 0, NULL, 0));
    e = linear();
    FAILS(TOROID_INVALID, "NULL", toroid_run(e, NULL, 2, NULL, 1));
    toroid_executable_destroy(&e);
}

static void test_wrong_inputs_of_graphs(void **state) {
    (void)state;
    ToroidGraph *g, *other;
    ToroidValue *v, *x;
    OK(toroid_graph_create(&g));
    OK(toroid_graph_create(&other));
    const ToroidSize fine[13] = {2, 2}, big[] = {INT64_MAX, 4, 4};
    FAILS(TOROID_INVALID, "ToroidDtype", toroid_graph_input(g, "x", 10, 1, fine, false, &v));
    FAILS(TOROID_INVALID, "ToroidDtype",
          toroid_graph_input(g, "x", (ToroidDtype)-1, 1, fine, false, &v));
    FAILS(TOROID_INVALID, "rank", toroid_graph_input(g, "x", TOROID_BOOL, 13, fine, false, &v));
    FAILS(TOROID_INVALID, "rank", toroid_graph_input(g, "x", TOROID_BOOL, -1, fine, false, &v));
    FAILS(TOROID_INVALID, "no size",
          toroid_graph_input(other, "x", TOROID_BOOL, 1, (ToroidSize[]){INT64_MIN}, false, &v));
    FAILS(TOROID_INVALID, "input x: ",
          toroid_graph_input(other, "x", TOROID_BOOL, 2, (ToroidSize[]){2, -1000}, false, &v));
    FAILS(TOROID_INVALID, "larger", toroid_graph_input(g, "x", TOROID_BOOL, 3, big, false, &v));
    assert_null(v);
    x = input(g, "x", 2, 3, false);
    ToroidSize size;
    FAILS(TOROID_INVALID, "dim 2", toroid_value_size(g, x, 2, &size));
    FAILS(TOROID_INVALID, "dim -1", toroid_value_size(g, x, -1, &size));
    FAILS(TOROID_INVALID, "another graph", toroid_value_size(other, x, 0, &size));
    FAILS(TOROID_INVALID, "another graph",
          toroid_graph_call(other, "aten.relu.default", (ToroidArg[]){T(x)}, 1, &v, 1));
    FAILS(TOROID_INVALID, "another graph", toroid_graph_outputs(other, &x, 1));
    toroid_graph_destroy(&g);
    toroid_graph_destroy(&other);
}

static void test_wrong_calls(void **state) {
    (void)state;
    ToroidGraph *g;
    ToroidValue *v, *two[2];
    OK(toroid_graph_create(&g));
    ToroidValue *x = input(g, "x", 2, 3, false);
#define CALL(name, n_results, ...)                                                              \
    toroid_graph_call(g, name, (ToroidArg[]){__VA_ARGS__}, COUNT(((ToroidArg[]){__VA_ARGS__})), \
                      two, n_results)
    FAILS(TOROID_UNSUPPORTED, "no operator", CALL("aten.no_such.default", 1, T(x)));
    FAILS(TOROID_INVALID, "results", CALL("aten.relu.default", 2, T(x)));
    FAILS(TOROID_INVALID, "results", CALL("aten.max.dim", 1, T(x), toroid_int(1)));
    FAILS(TOROID_INVALID, "positional",
          CALL("aten.add.Tensor", 1, toroid_named("self", T(x)), T(x)));
    FAILS(TOROID_INVALID, "ToroidArgKind", CALL("aten.relu.default", 1, toroid_arg(77)));
    FAILS(TOROID_INVALID, "NULL", CALL("aten.relu.default", 1, T(NULL)));
    FAILS(TOROID_INVALID, "NULL", CALL("aten.gelu.default", 1, T(x), toroid_string(NULL)));
    FAILS(TOROID_INVALID, "items", CALL("aten.view.default", 1, T(x), toroid_list(NULL, 2)));
    FAILS(TOROID_INVALID, "no size", CALL("aten.select.int", 1, T(x), toroid_size(-1)));
    FAILS(TOROID_UNSUPPORTED, "'alpha' is given twice",
          CALL("aten.add.Tensor", 1, T(x), T(x), toroid_named("alpha", toroid_int(2)),
               toroid_named("alpha", toroid_int(3))));
    FAILS(TOROID_INVALID, "ToroidDtype",
          CALL("aten._to_copy.default", 1, T(x), toroid_named("dtype", toroid_dtype(99))));
    ToroidArg deep[12];
    for (int i = 0; i < 12; i++) deep[i] = toroid_list(i ? &deep[i - 1] : NULL, i > 0);
    FAILS(TOROID_INVALID, "deep", CALL("aten.view.default", 1, T(x), deep[11]));
    assert_true(CALL("aten.view.default", 1, T(x), toroid_int(5)) != TOROID_OK);
    assert_true(CALL("aten.linear.default", 1, T(x)) != TOROID_OK);
    assert_true(CALL("aten.mm.default", 1, T(x), T(x)) != TOROID_OK);
    assert_null(two[0]);
    // The graph is as before.
    v = OP(g, "aten.relu.default", T(x));
    OK(toroid_graph_outputs(g, &v, 1));
    FAILS(TOROID_INVALID, "outputs", CALL("aten.relu.default", 1, T(x)));
    FAILS(TOROID_INVALID, "outputs", toroid_graph_outputs(g, &v, 1));
    ToroidExecutable *e;
    FAILS(TOROID_INVALID, "struct_bytes", toroid_compile(&e, &g, &(ToroidOptions){0}));
    assert_null(g);
    assert_null(e);
}

static void test_wrong_runs(void **state) {
    (void)state;
    ToroidExecutable *e = linear();
    float w[6] = {0}, x[6] = {0}, y[4];
    ToroidTensor in[] = {matrix(x, 2, 3), matrix(w, 2, 3)}, out = matrix(y, 2, 2), wrong;
#define RUN toroid_run(e, in, 2, &out, 1)
#define CHANGED(where, field, value, text) \
    do {                                   \
        wrong = where;                     \
        where.field = value;               \
        FAILS(TOROID_INVALID, text, RUN);  \
        where = wrong;                     \
    } while (0)
    OK(RUN);
    FAILS(TOROID_INVALID, "2 inputs", toroid_run(e, in, 1, &out, 1));
    FAILS(TOROID_INVALID, "1 outputs", toroid_run(e, in, 2, &out, 0));
    CHANGED(in[0], dtype, TOROID_FLOAT64, "input x: expected float32");
    CHANGED(in[0], dtype, (ToroidDtype)77, "input x: 77");
    CHANGED(in[0], rank, 1, "rank");
    CHANGED(in[0], rank, 1000, "rank");
    CHANGED(in[0], size[0], -1, "size -1");
    CHANGED(in[0], size[0], INT64_MAX, "larger");
    CHANGED(in[0], size[1], 4, "x");
    CHANGED(in[1], size[0], 3, "w");
    CHANGED(in[0], data, NULL, "input x: data is NULL");
    CHANGED(in[1], data, NULL, "input w: data is NULL");
    CHANGED(out, data, NULL, "output 0: data is NULL");
    CHANGED(out, rank, 1, "output 0");
    CHANGED(out, size[0], 3, "output 0");
    CHANGED(out, dtype, TOROID_INT32, "output 0");
    OK(RUN);
    toroid_executable_destroy(&e);
}

#define I toroid_int
#define GIVE(name, ...)                                           \
    return toroid_graph_call(g, name, (ToroidArg[]){__VA_ARGS__}, \
                             COUNT(((ToroidArg[]){__VA_ARGS__})), results, n)
#define BUILD(name)                                                          \
    static ToroidStatus name(ToroidGraph *g, ToroidValue *x, ToroidValue *y, \
                             ToroidValue **results, int n)
BUILD(mm) { GIVE("aten.mm.default", T(x), T(y)); }
BUILD(bmm_of_rows) {
    ToroidValue *a, *b;
    OK(toroid_graph_call(g, "aten.unsqueeze.default", (ToroidArg[]){T(x), I(1)}, 2, &a, 1));
    OK(toroid_graph_call(g, "aten.unsqueeze.default", (ToroidArg[]){T(y), I(2)}, 2, &b, 1));
    GIVE("aten.bmm.default", T(a), T(b));
}
BUILD(cat) {
    ToroidArg both[] = {T(x), T(y)};
    GIVE("aten.cat.default", toroid_list(both, 2), I(1));
}
BUILD(select_row) {
    (void)y;
    GIVE("aten.select.int", T(x), I(0), I(2));
}
BUILD(pairs) {
    (void)y;
    ToroidArg sizes[] = {I(2), I(-1)};
    GIVE("aten.view.default", T(x), toroid_list(sizes, 2));
}
BUILD(expand) {
    (void)y;
    ToroidArg sizes[] = {I(4), I(3)};
    GIVE("aten.expand.default", T(x), toroid_list(sizes, 2));
}
BUILD(crop) {
    (void)y;
    ToroidArg pads[] = {I(-1), I(-1)};
    GIVE("aten.constant_pad_nd.default", T(x), toroid_list(pads, 2), toroid_float(0));
}
BUILD(copy) { GIVE("aten.copy_.default", T(x), T(y)); }
BUILD(select_scatter) {
    ToroidValue *row;
    OK(toroid_graph_call(g, "aten.select.int", (ToroidArg[]){T(y), I(0), I(0)}, 3, &row, 1));
    GIVE("aten.select_scatter.default", T(x), T(row), I(0), I(1));
}

/// Sizes that are open must fit together at each run: nothing is read or written beside a tensor.
static void test_open_sizes(void **state) {
    (void)state;
    static const struct {
        ToroidStatus (*build)(ToroidGraph *, ToroidValue *, ToroidValue *, ToroidValue **, int);
        int64_t good[4], bad[4];  // rows and columns of x and y
        const char *text;
    } cases[] = {
        {mm, {2, 3, 3, 4}, {2, 3, 2, 4}, "sizes 3 and 2 must be equal"},
        {bmm_of_rows, {2, 3, 2, 3}, {2, 3, 3, 3}, "sizes 2 and 3"},
        {cat, {2, 3, 2, 1}, {2, 3, 3, 1}, "sizes 2 and 3 must be equal"},
        {select_row, {3, 2, 1, 1}, {2, 2, 1, 1}, "3 is over 2"},
        {pairs, {2, 3, 1, 1}, {3, 3, 1, 1}, "sizes 9 and 8 must be equal"},
        {expand, {4, 3, 1, 1}, {2, 3, 1, 1}, "sizes 2 and 4 must be equal"},
        {crop, {2, 2, 1, 1}, {2, 1, 1, 1}, "0 is over -1"},
        {copy, {3, 2, 3, 2}, {3, 2, 2, 2}, "sizes 3 and 2 must be equal"},
        {select_scatter, {2, 3, 1, 3}, {1, 3, 1, 3}, "2 is over 1"},
    };
    float numbers[32] = {0}, answer[32];
    for (int c = 0; c < COUNT(cases); c++) {
        ToroidGraph *g;
        OK(toroid_graph_create(&g));
        ToroidValue *x = input(g, "x", TOROID_ANY_SIZE, TOROID_ANY_SIZE, false);
        ToroidValue *y = input(g, "y", TOROID_ANY_SIZE, TOROID_ANY_SIZE, false), *result;
        OK(cases[c].build(g, x, y, &result, 1));
        ToroidExecutable *e = finish(g, &result, 1);
        const int64_t *good = cases[c].good, *bad = cases[c].bad;
        ToroidTensor in[] = {matrix(numbers, good[0], good[1]), matrix(numbers, good[2], good[3])};
        ToroidTensor wrong[] = {matrix(numbers, bad[0], bad[1]), matrix(numbers, bad[2], bad[3])};
        ToroidTensor out = {.data = answer};
        OK(toroid_describe_outputs(e, in, 2, &out, 1));
        OK(toroid_run(e, in, 2, &out, 1));
        assert_int_not_equal(toroid_describe_outputs(e, wrong, 2, &out, 1), TOROID_OK);
        if (!strstr(toroid_last_error(), cases[c].text)) fail_msg("%d: %s", c, toroid_last_error());
        assert_int_not_equal(toroid_run(e, wrong, 2, &out, 1), TOROID_OK);
        OK(toroid_run(e, in, 2, &out, 1));
        toroid_executable_destroy(&e);
    }
}

// An index out of range is a status of its own and writes nothing beyond the output.
static void test_index_out_of_range(void **state) {
    (void)state;
    ToroidGraph *g;
    OK(toroid_graph_create(&g));
    ToroidValue *table = input(g, "table", 4, 2, false), *i;
    OK(toroid_graph_input(g, "i", TOROID_INT64, 1, (ToroidSize[]){TOROID_ANY_SIZE}, false, &i));
    ToroidValue *y = OP(g, "aten.embedding.default", T(table), T(i));
    ToroidExecutable *e = finish(g, &y, 1);
    float rows[8] = {0, 1, 2, 3, 4, 5, 6, 7}, answer[4];
    int64_t index[] = {3, 4};
    ToroidTensor in[] = {matrix(rows, 4, 2),
                         {.data = index, .dtype = TOROID_INT64, .rank = 1, .size = {2}}};
    ToroidTensor out = matrix(answer, 2, 2);
    assert_int_equal(toroid_run(e, in, 2, &out, 1), TOROID_INVALID_INDEX);
    index[1] = 0;
    OK(toroid_run(e, in, 2, &out, 1));
    assert_true(answer[0] == 6 && answer[3] == 1);
    toroid_executable_destroy(&e);
}

// ---------------------------------------------------------------- no memory

/// Twelve nodes from start to end; every status is the first that is not OK.
static ToroidStatus twelve(float *answer) {
    ToroidGraph *g = NULL;
    ToroidExecutable *e = NULL;
    ToroidValue *x = NULL, *w = NULL, *y = NULL;
    static float a[12] = {1, 2, 3}, b[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    ToroidStatus s = toroid_graph_create(&g);
    if (!s) s = toroid_graph_input(g, "x", TOROID_FLOAT32, 2, (ToroidSize[]){-1, 3}, false, &x);
    if (!s) s = toroid_graph_input(g, "w", TOROID_FLOAT32, 2, (ToroidSize[]){3, 3}, true, &w);
    y = x;
    for (int i = 0; i < 4 && !s; i++) {
        s = toroid_graph_call(g, "aten.linear.default", (ToroidArg[]){T(y), T(w)}, 2, &y, 1);
        if (!s) s = toroid_graph_call(g, "aten.relu.default", (ToroidArg[]){T(y)}, 1, &y, 1);
        if (!s)
            s = toroid_graph_call(g, "aten._softmax.default",
                                  (ToroidArg[]){T(y), toroid_int(1), toroid_bool(false)}, 3, &y, 1);
    }
    if (!s) s = toroid_graph_outputs(g, &y, 1);
    if (!s) s = toroid_compile(&e, &g, NULL);
    ToroidTensor in[] = {matrix(a, 4, 3), matrix(b, 3, 3)}, out = {0};
    if (!s) s = toroid_describe_outputs(e, in, 2, &out, 1);
    out.data = answer;
    if (!s) s = toroid_run(e, in, 2, &out, 1);
    toroid_executable_destroy(&e);
    toroid_graph_destroy(&g);
    return s;
}

static void test_no_memory(void **state) {
    (void)state;
    float expected[12], answer[12];
    OK(twelve(expected));
    int failures = 0;
    for (uint64_t n = 1;; n++) {
        tor_alloc_fail_at(n);
        memset(answer, 0, sizeof answer);
        ToroidStatus status = twelve(answer);
        tor_alloc_fail_at(0);
        if (status == TOROID_OK) {
            assert_memory_equal(answer, expected, sizeof answer);
            break;
        }
        assert_int_equal(status, TOROID_NO_MEMORY);
        failures++;
        OK(twelve(answer));  // the next one is right
        assert_memory_equal(answer, expected, sizeof answer);
    }
    assert_true(failures > 50);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_batch),
        cmocka_unit_test(test_weights_change),
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_several_results_and_views),
        cmocka_unit_test(test_keywords_and_text),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_null),
        cmocka_unit_test(test_wrong_inputs_of_graphs),
        cmocka_unit_test(test_wrong_calls),
        cmocka_unit_test(test_wrong_runs),
        cmocka_unit_test(test_open_sizes),
        cmocka_unit_test(test_index_out_of_range),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// The importer: schemas, promotion, slices, integers, refusals.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "aten/build.h"
#include "aten/import.h"

static TorGraph *g;

static int make_graph(void **state) {
    (void)state;
    return tor_graph_create(&g) != TOROID_OK;
}
static int drop_graph(void **state) {
    (void)state;
    tor_graph_destroy(&g);
    return 0;
}

/// An input; a size of -1 is symbolic.
static TorArg input(TorDtype dtype, int rank, const int64_t *sizes) {
    TorDim dims[TOR_MAX_RANK];
    TorValue *v = NULL;
    for (int i = 0; i < rank; i++)
        dims[i] =
            sizes[i] < 0 ? tor_int_size(g, g->n_inputs, (uint32_t)i) : tor_int_const(g, sizes[i]);
    assert_int_equal(tor_graph_add_input(g, "x", dtype, rank, dims, false, &v), TOROID_OK);
    return TOR_ARG_OF_VALUE(v);
}
#define INPUT(dtype, ...) \
    input(dtype, (int)TOR_COUNT_OF(((int64_t[]){__VA_ARGS__})), (int64_t[]){__VA_ARGS__})
#define SCALAR_INPUT(dtype) input(dtype, 0, NULL)
#define I(v) TOR_ARG_OF_INT(v)
#define F(v) TOR_ARG_OF_FLOAT(v)
#define NONE TOR_ARG_OF_NONE
#define LIST(...) \
    TOR_ARG_OF_LIST(((TorArg[]){__VA_ARGS__}), (int)TOR_COUNT_OF(((TorArg[]){__VA_ARGS__})))

static TorArg result;
static ToroidStatus call(const char *name, int n, const TorArg *args) {
    return tor_aten_call(g, name, args, n, NULL, NULL, 0, "node", &result);
}
#define CALL(name, ...) \
    call(name, (int)TOR_COUNT_OF(((TorArg[]){__VA_ARGS__})), (TorArg[]){__VA_ARGS__})

static TorValue *value(void) {
    assert_int_equal(result.kind, TOR_ARG_VALUE);
    return result.value;
}

static void expect_type(TorDtype dtype, int rank, const int64_t *sizes) {
    TorValue *v = value();
    assert_string_equal(tor_dtype_name(v->dtype), tor_dtype_name(dtype));
    assert_int_equal(v->rank, rank);
    for (int i = 0; i < rank; i++) {
        int64_t size = -1;
        tor_int_known(g, v->dim[i], &size);
        assert_int_equal(size, sizes[i]);
    }
}
#define EXPECT(dtype, ...) \
    expect_type(dtype, (int)TOR_COUNT_OF(((int64_t[]){__VA_ARGS__})), (int64_t[]){__VA_ARGS__})

static void test_table(void **state) {
    (void)state;
    char last[64];
    for (int i = 0; i < tor_aten_count(); i++) {
        const char *schema;
        assert_non_null(tor_aten_name(i, &schema));
        assert_true(tor_aten_knows(tor_aten_name(i, NULL)));
        if (i) assert_true(strcmp(tor_aten_name(i - 1, NULL), tor_aten_name(i, NULL)) < 0);
        tor_schema_param(schema, TOR_ATEN_MAX_PARAMS, last, sizeof last);
        assert_string_equal(last, "");
    }
    assert_null(tor_aten_name(tor_aten_count(), NULL));
    assert_false(tor_aten_knows("aten.add"));
}

static void test_schema(void **state) {
    (void)state;
    static const TorAtenRow row = {
        "aten.test.default",
        "self, dim, pad=[], *, beta=1, eps=1e-05, mode=constant, flag=True, none=None", NULL, 0};
    TorArg args[] = {I(1), I(2)}, kw[] = {F(0.5), I(9)};
    TorCall c = {.g = g, .row = &row};
    const char *eps[] = {"eps"}, *bad[] = {"epsilon"}, *twice[] = {"dim"},
               *both[] = {"beta", "dim"};
    assert_int_equal(tor_schema_bind(&c, args, 2, eps, kw, 1), TOROID_OK);
    assert_int_equal(c.n_args, 8);
    assert_int_equal(c.args[1].i, 2);
    assert_int_equal(c.args[2].kind, TOR_ARG_LIST);
    assert_int_equal(c.args[2].count, 0);
    assert_int_equal(c.args[3].i, 1);
    assert_true(c.args[4].f == 0.5);
    assert_string_equal(c.args[5].str, "constant");
    assert_true(c.args[6].b);
    assert_int_equal(c.args[7].kind, TOR_ARG_NONE);
    assert_int_equal(tor_schema_bind(&c, args, 1, both, kw, 2), TOROID_OK);
    assert_int_equal(c.args[1].i, 9);
    assert_true(c.args[4].f == 1e-05);
    assert_int_equal(tor_schema_bind(&c, args, 2, bad, kw, 1), TOROID_UNSUPPORTED);
    assert_non_null(strstr(toroid_last_error(), "epsilon"));
    assert_int_equal(tor_schema_bind(&c, args, 2, twice, kw, 1), TOROID_UNSUPPORTED);
    assert_int_equal(tor_schema_bind(&c, args, 1, NULL, NULL, 0), TOROID_UNSUPPORTED);
    assert_string_equal(toroid_last_error(), "aten.test.default: argument 'dim' is missing");
    TorArg four[] = {I(1), I(2), I(3), I(4)};
    assert_int_equal(tor_schema_bind(&c, four, 4, NULL, NULL, 0), TOROID_UNSUPPORTED);
}

static void test_promote_types(void **state) {
    (void)state;
    assert_int_equal(tor_promote_types(TOR_uint8, TOR_int8), TOR_int16);
    assert_int_equal(tor_promote_types(TOR_int32, TOR_uint8), TOR_int32);
    assert_int_equal(tor_promote_types(TOR_float16, TOR_bfloat16), TOR_float32);
    assert_int_equal(tor_promote_types(TOR_int64, TOR_float16), TOR_float16);
    assert_int_equal(tor_promote_types(TOR_bool, TOR_uint8), TOR_uint8);
}

static void test_promotion(void **state) {
    (void)state;
    TorArg half = INPUT(TOR_bfloat16, 4), ints = INPUT(TOR_int32, 4), bytes = INPUT(TOR_uint8, 4),
           bools = INPUT(TOR_bool, 4);
    TorArg wide = SCALAR_INPUT(TOR_float64), long0 = SCALAR_INPUT(TOR_int64);
    assert_int_equal(CALL("aten.add.Tensor", half, wide),
                     TOROID_OK);  // 0-d of the same category does not count
    EXPECT(TOR_bfloat16, 4);
    assert_int_equal(CALL("aten.mul.Tensor", ints, wide), TOROID_OK);
    EXPECT(TOR_float64, 4);
    assert_int_equal(CALL("aten.mul.Tensor", bytes, long0), TOROID_OK);
    EXPECT(TOR_uint8, 4);
    assert_int_equal(CALL("aten.mul.Tensor", ints, F(1.5)),
                     TOROID_OK);  // a Python float: the default type
    EXPECT(TOR_float32, 4);
    assert_int_equal(CALL("aten.add.Tensor", bools, I(1)), TOROID_OK);
    EXPECT(TOR_int64, 4);
    assert_int_equal(CALL("aten.div.Tensor", ints, ints), TOROID_OK);
    EXPECT(TOR_float32, 4);
    assert_int_equal(CALL("aten.add.Tensor", bools, bools), TOROID_OK);
    EXPECT(TOR_bool, 4);
    assert_int_equal(value()->node->op, TOR_OP_bit_or);
    assert_int_equal(CALL("aten.sub.Tensor", bools, bools), TOROID_UNSUPPORTED);
    assert_int_equal(CALL("aten.sum.default", bools), TOROID_OK);
    expect_type(TOR_int64, 0, NULL);
    assert_int_equal(CALL("aten.mean.default", ints), TOROID_UNSUPPORTED);
    assert_int_equal(CALL("aten.lt.Tensor", half, ints), TOROID_OK);
    EXPECT(TOR_bool, 4);
}

static int64_t start_of(const TorValue *v) {
    int64_t start = -1;
    assert_int_equal(v->node->op, TOR_OP_slice);
    tor_int_known(g, tor_attr(v->node, TOR_ATTR_start)->dim, &start);
    return start;
}

static void test_slices(void **state) {
    (void)state;
    TorArg x = INPUT(TOR_float32, 10, 3), s = INPUT(TOR_float32, -1, 3);
    assert_int_equal(CALL("aten.slice.Tensor", x, I(0), I(-3), I(INT64_MAX)), TOROID_OK);
    EXPECT(TOR_float32, 3, 3);
    assert_int_equal(start_of(value()), 7);
    assert_int_equal(CALL("aten.slice.Tensor", x, I(0), I(1), I(100), I(4)), TOROID_OK);
    EXPECT(TOR_float32, 3, 3);
    assert_int_equal(CALL("aten.slice.Tensor", x, I(0), I(8), I(2)), TOROID_OK);
    EXPECT(TOR_float32, 0, 3);
    assert_int_equal(CALL("aten.slice.Tensor", x, I(0), I(-100), NONE), TOROID_OK);
    assert_ptr_equal(value(), x.value);
    assert_int_equal(CALL("aten.slice.Tensor", s, I(0), I(0), I(INT64_MAX)), TOROID_OK);
    assert_ptr_equal(value(), s.value);
    assert_int_equal(
        CALL("aten.slice.Tensor", s, I(0), I(2), TOR_ARG_OF_DIM(s.value->dim[0]), I(2)), TOROID_OK);
    EXPECT(TOR_float32, -1, 3);
    assert_int_equal(CALL("aten.slice.Tensor", x, I(0), I(0), I(5), I(-1)), TOROID_UNSUPPORTED);
    assert_int_equal(CALL("aten.select.int", x, I(-1), I(-1)), TOROID_OK);
    EXPECT(TOR_float32, 10);
    assert_int_equal(CALL("aten.select.int", x, I(1), I(3)), TOROID_UNSUPPORTED);
}

static int64_t sizes_of(void *user, uint32_t in, int dim) {
    (void)in, (void)dim;
    return *(int64_t *)user;
}

/// Size of dim 0 of the last result where every symbolic size is `size`.
static int64_t bound_size(int64_t size) {
    int64_t values[512];
    assert_true(tor_int_count(g) < 512);
    assert_int_equal(tor_int_eval(g, sizes_of, &size, values), TOROID_OK);
    return values[value()->dim[0]];
}

static void test_symbolic_slices(void **state) {
    (void)state;
    TorArg s = INPUT(TOR_float32, -1);
    assert_int_equal(CALL("aten.slice.Tensor", s, I(0), I(-3), NONE), TOROID_OK);
    assert_int_equal(bound_size(10), 3);
    assert_int_equal(bound_size(2), 2);
    assert_int_equal(CALL("aten.slice.Tensor", s, I(0), I(1), I(-1), I(3)), TOROID_OK);
    assert_int_equal(bound_size(10), 3);  // 1, 4, 7
    assert_int_equal(bound_size(1), 0);
    assert_int_equal(CALL("aten.slice.Tensor", s, I(0), NONE, I(5)), TOROID_OK);
    assert_int_equal(bound_size(10), 5);
    assert_int_equal(bound_size(4), 4);
    assert_int_equal(CALL("aten.arange.start_step", I(0), TOR_ARG_OF_DIM(s.value->dim[0]), I(3)),
                     TOROID_OK);
    assert_int_equal(bound_size(10), 4);
}

static void test_shapes(void **state) {
    (void)state;
    TorArg x = INPUT(TOR_float32, 2, 3, 4), empty = INPUT(TOR_float32, 0);
    assert_int_equal(CALL("aten.view.default", x, LIST(I(2), I(-1))), TOROID_OK);
    EXPECT(TOR_float32, 2, 12);
    assert_int_equal(CALL("aten.view.default", x, LIST(I(5), I(-1))), TOROID_UNSUPPORTED);
    assert_int_equal(CALL("aten.expand.default", x, LIST(I(5), I(-1), I(3), I(-1))), TOROID_OK);
    EXPECT(TOR_float32, 5, 2, 3, 4);
    assert_int_equal(CALL("aten.cat.default", LIST(empty, x, x), I(-1)), TOROID_OK);
    EXPECT(TOR_float32, 2, 3, 8);
    assert_int_equal(CALL("aten.split.Tensor", x, I(3), I(2)), TOROID_OK);
    assert_int_equal(result.kind, TOR_ARG_LIST);
    assert_int_equal(result.count, 2);
    result = result.list[1];
    EXPECT(TOR_float32, 2, 3, 1);
    assert_int_equal(CALL("aten.roll.default", x, LIST(I(1), I(-1)), LIST(I(0), I(2))), TOROID_OK);
    EXPECT(TOR_float32, 2, 3, 4);
    assert_int_equal(CALL("aten.constant_pad_nd.default", x, LIST(I(1), I(-2)), F(0)), TOROID_OK);
    EXPECT(TOR_float32, 2, 3, 3);
    assert_int_equal(CALL("aten.repeat.default", x, LIST(I(2), I(1), I(3), I(1))), TOROID_OK);
    EXPECT(TOR_float32, 2, 2, 9, 4);
}

static void test_linear(void **state) {
    (void)state;
    TorArg x = INPUT(TOR_float32, 8, 16), w = INPUT(TOR_float32, 32, 16),
           bias = INPUT(TOR_float32, 32);
    assert_int_equal(CALL("aten.t.default", w), TOROID_OK);
    assert_int_equal(CALL("aten.addmm.default", bias, x, result), TOROID_OK);
    EXPECT(TOR_float32, 8, 32);
    assert_int_equal(value()->node->op, TOR_OP_linear);
    assert_ptr_equal(tor_in(value()->node, 1), w.value);  // no transposition left
    assert_string_equal(value()->node->origin, "node");
}

static void test_integers(void **state) {
    (void)state;
    TorArg s = INPUT(TOR_float32, -1, 4);
    assert_int_equal(CALL("aten.sym_size.int", s, I(1)), TOROID_OK);
    assert_int_equal(result.kind, TOR_ARG_INT);
    assert_int_equal(result.i, 4);
    assert_int_equal(CALL("aten.sym_size.int", s, I(0)), TOROID_OK);
    assert_int_equal(result.kind, TOR_ARG_DIM);
    TorArg n = result;
    assert_int_equal(CALL("_operator.mul", n, I(3)), TOROID_OK);
    assert_int_equal(CALL("_operator.floordiv", result, n), TOROID_OK);
    assert_int_equal(CALL("_operator.floordiv", I(-7), I(2)), TOROID_OK);
    assert_int_equal(result.i, -4);
    assert_int_equal(CALL("_operator.mod", I(-7), I(3)), TOROID_OK);
    assert_int_equal(result.i, 2);
    assert_int_equal(CALL("torch.sym_sum", LIST(n, I(2), I(3))), TOROID_OK);
    assert_int_equal(result.kind, TOR_ARG_DIM);
    assert_int_equal(CALL("_operator.truediv", n, I(2)), TOROID_UNSUPPORTED);
    assert_int_equal(CALL("_operator.mul", F(1.5), I(3)), TOROID_OK);
    assert_int_equal(result.kind, TOR_ARG_FLOAT);
    assert_int_equal(CALL("math.floor", result), TOROID_OK);
    assert_int_equal(result.i, 4);
    assert_int_equal(CALL("_operator.ge", I(3), I(3)), TOROID_OK);
    assert_int_equal(result.kind, TOR_ARG_BOOL);
    assert_true(result.b);
    assert_int_equal(CALL("aten.mul.Tensor", s, n),
                     TOROID_OK);  // a symbolic number beside a tensor
    EXPECT(TOR_float32, -1, 4);
}

static void test_refusals(void **state) {
    (void)state;
    TorArg x = INPUT(TOR_float32, 2, 3), mask = INPUT(TOR_bool, 2, 3), s = INPUT(TOR_float32, -1);
    assert_int_equal(CALL("aten.foo.default", x), TOROID_UNSUPPORTED);
    assert_string_equal(toroid_last_error(), "aten.foo.default is not known to the importer");
    assert_int_equal(CALL("aten.add.Tensor", x, TOR_ARG_OF_STR("y")), TOROID_UNSUPPORTED);
    assert_string_equal(
        toroid_last_error(),
        "aten.add.Tensor: argument 'other': expected a tensor or a number, got a string");
    assert_int_equal(CALL("aten.index.Tensor", x, LIST(mask)), TOROID_UNSUPPORTED);
    assert_int_equal(CALL("aten.unbind.int", s), TOROID_UNSUPPORTED);
    assert_int_equal(CALL("aten.sum.dim_IntList", x, LIST(I(0), I(-2))), TOROID_UNSUPPORTED);
    assert_int_equal(CALL("aten._to_copy.default", x, I(1)), TOROID_UNSUPPORTED);
    const char *names[] = {"dtype"};
    TorArg complex = TOR_ARG_OF_STR("torch.complex64");
    assert_int_equal(
        tor_aten_call(g, "aten._to_copy.default", &x, 1, names, &complex, 1, NULL, &result),
        TOROID_UNSUPPORTED);
    assert_int_equal(result.kind, TOR_ARG_NONE);
    assert_int_equal(CALL("aten.bitwise_and.Tensor", x, x), TOROID_UNSUPPORTED);
    assert_int_equal(CALL("aten.mm.default", x, x),
                     TOROID_UNSUPPORTED);  // the IR's own check, with the op's name
    assert_non_null(strstr(toroid_last_error(), "aten.mm.default"));
}

static void test_writes(void **state) {
    (void)state;
    TorArg cache = INPUT(TOR_float16, 4, 8), row = INPUT(TOR_float32, 8);
    assert_int_equal(CALL("aten.copy_.default", cache, row), TOROID_OK);
    EXPECT(TOR_float16, 4, 8);
    TorArg mask = INPUT(TOR_bool, 4), zero = SCALAR_INPUT(TOR_float16);
    assert_int_equal(CALL("aten.index_put.default", cache, LIST(mask), zero), TOROID_OK);
    assert_int_equal(value()->node->op, TOR_OP_where);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_graph, drop_graph)
    const struct CMUnitTest tests[] = {
        TEST(test_table),     TEST(test_schema), TEST(test_promote_types),
        TEST(test_promotion), TEST(test_slices), TEST(test_symbolic_slices),
        TEST(test_shapes),    TEST(test_linear), TEST(test_integers),
        TEST(test_refusals),  TEST(test_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Compiles a graph, runs it, and compares what comes out with the interpreter.
#ifndef TESTS_SUPPORT_EXE_H
#define TESTS_SUPPORT_EXE_H

#include "interpret.h"

#include "../graph/support.h"
#include "aten/import.h"
#include "backend/executable.h"

static TorGraph *g;
static Tensor *given[64];  // the tensors of the graph's inputs, in order
static int64_t into[16];   // of the outputs; reset by start()
static double tolerance;   // relative to the largest number of an output
static bool by_reference;  // check() has every node run by its family's oracle

static inline void start(void) {
    tor_graph_destroy(&g);
    g = new_graph();
    memset(into, -1, sizeof into);
    memset(given, 0, sizeof given);
    tolerance = 2e-5;
    by_reference = false;
}

static inline int finish(void **state) {
    (void)state;
    tor_graph_destroy(&g);
    free_tensors();
    return 0;
}
static inline int begin_test(void **state) {
    (void)state;
    start();
    return 0;
}
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_test, finish)

#define MUST(call)                                                          \
    do {                                                                    \
        ToroidStatus status_ = (call);                                      \
        if (status_ != TOROID_OK) print_error("%s\n", toroid_last_error()); \
        assert_int_equal(status_, TOROID_OK);                               \
    } while (0)

enum { DYNAMIC_STRIDES = 1 << 30 };

/// Makes `t` a graph input. Bit d of `dynamic`: the size of dim d is read at each call.
static inline TorValue *input(Tensor *t, bool frozen, uint32_t dynamic) {
    TorDim dims[TOR_MAX_RANK];
    TorValue *v;
    char name[16];
    uint32_t number = g->n_inputs;
    bool row_major = true;
    int64_t step = 1;
    snprintf(name, sizeof name, "x%u", number);
    for (int d = 0; d < t->rank; d++)
        dims[d] =
            dynamic >> d & 1 ? tor_int_size(g, number, (uint32_t)d) : tor_int_const(g, t->size[d]);
    MUST(tor_graph_add_input(g, name, t->dtype, t->rank, dims, frozen, &v));
    for (int d = t->rank - 1; d >= 0; d--) {
        row_major &= t->size[d] == 1 || t->stride[d] == step;
        step *= t->size[d];
    }
    TorInput *in = &g->inputs[number];
    in->contiguous = row_major && !(dynamic & DYNAMIC_STRIDES);
    for (int d = 0; d < t->rank; d++)
        in->stride[d] = dynamic ? TOR_NO_DIM : tor_int_const(g, t->stride[d]);
    given[number] = t;
    return v;
}
#define IN(t) input(t, false, 0)
#define FROZEN(t) input(t, true, 0)
#define UNARY(fn, x) OP(g, fn, INS(x), NONE)
#define BINARY(fn, a, b) OP(g, fn, INS(a, b), NONE)

static inline TorValue *permuted(TorValue *x, const char *axes) {
    int64_t a[TOR_MAX_RANK];
    int n = parse_sizes(axes, a);
    return OP(g, permute, INS(x), ATTRS(TOR_A_INTS(axes, a, n)));
}
static inline TorValue *viewed(TorValue *x, const char *dims) {
    return OP(g, view, INS(x), ATTRS(DIMS(g, dims)));
}
static inline TorValue *expanded(TorValue *x, const char *dims) {
    return OP(g, expand, INS(x), ATTRS(DIMS(g, dims)));
}
static inline TorValue *sliced(TorValue *x, int axis, int64_t first, int64_t size, int64_t step) {
    TorDim dim = tor_int_const(g, size);
    return OP(g, slice, INS(x),
              ATTRS(TOR_A_INT(axis, axis), TOR_A_DIM(start, tor_int_const(g, first)),
                    TOR_A_INT(step, step), TOR_A_DIMS(dims, &dim, 1)));
}
static inline TorValue *reduced(TorOp op, TorValue *x, uint32_t mask, bool keep) {
    int64_t axes[TOR_MAX_RANK];
    int n = 0;
    for (int d = 0; d < x->rank; d++)
        if (mask >> d & 1) axes[n++] = d;
    TorAttr attrs[] = {TOR_A_INTS(axes, axes, n), TOR_A_INT(keepdim, keep)};
    return add_op(g, op, INS(x), attrs, 2);
}
static inline TorValue *softmaxed(TorValue *x, int axis) {
    return OP(g, softmax, INS(x), ATTRS(TOR_A_INT(axis, axis)));
}

static inline TorValue *aten(const char *name, int n, const TorArg *args) {
    TorArg result;
    MUST(tor_aten_call(g, name, args, n, NULL, NULL, 0, "node", &result));
    if (result.kind == TOR_ARG_LIST) result = result.list[0];
    assert_int_equal(result.kind, TOR_ARG_VALUE);
    return result.value;
}
#define ATEN(name, ...) \
    aten(name, (int)TOR_COUNT_OF(((TorArg[]){__VA_ARGS__})), (TorArg[]){__VA_ARGS__})
#define V(x) TOR_ARG_OF_VALUE(x)

static inline void outputs(TorValue *const *values, int n) {
    MUST(tor_graph_set_outputs(g, values, into, n));
}
#define OUTPUTS(...) outputs(INS(__VA_ARGS__))

// ---------------------------------------------------------------- running

static inline TorExecutable *compile_with(TorOptions options) {
    TorExecutable *exe;
    ToroidStatus status = tor_exe_compile(&exe, &g, &options);
    if (status != TOROID_OK) print_error("%s\n", toroid_last_error());
    assert_int_equal(status, TOROID_OK);
    assert_null(g);
    return exe;
}
static inline TorExecutable *compile(void) { return compile_with((TorOptions){.freeze = true}); }

static inline ToroidStatus begin_with(TorExecutable *exe, int threads, TorCall **call) {
    TorCallInput in[64] = {{0}};
    for (int i = 0; i < 64 && given[i]; i++)
        in[i] = (TorCallInput){.data = given[i]->memory,
                               .size = given[i]->size,
                               .stride = given[i]->stride,
                               .value = given[i]->value,
                               .uid = given[i]->uid,
                               .version = given[i]->version};
    return tor_exe_begin(exe, in, threads, call);
}

static inline ToroidStatus begin(TorExecutable *exe, TorCall **call) {
    return begin_with(exe, 2, call);
}

/// Fills `out` with one tensor for each output; an input itself where that is returned.
static inline ToroidStatus call_exe(TorExecutable *exe, int threads, Tensor **out) {
    TorCall *call;
    TOR_TRY(begin_with(exe, threads, &call));
    TorCallOutput *o = tor_exe_outputs(call);
    for (int k = 0; k < tor_exe_output_count(exe); k++) {
        out[k] = NULL;
        if (o[k].from_input >= 0 && o[k].whole) out[k] = given[o[k].from_input];
        if (o[k].from_input >= 0 || o[k].from_output >= 0) continue;
        out[k] = new_tensor(o[k].dtype, o[k].rank, o[k].size, o[k].stride);
        o[k].data = out[k]->memory;
    }
    ToroidStatus status = tor_exe_run(call, NULL, false);
    for (int k = 0; k < tor_exe_output_count(exe); k++) {
        // Views of the host's tensors: the tests look at their elements, so a copy will do.
        if (out[k]) continue;
        const Tensor *base = o[k].from_input >= 0 ? given[o[k].from_input] : out[o[k].from_output];
        size_t element = tor_dtype_size(o[k].dtype);
        out[k] = new_tensor(o[k].dtype, o[k].rank, o[k].size, o[k].stride);
        int64_t at[TOR_MAX_RANK] = {0};
        for (bool more = true; more;) {
            int64_t from = o[k].offset, to = 0;
            bool empty = false;
            for (int d = 0; d < o[k].rank; d++) {
                from += at[d] * o[k].stride[d], to += at[d] * o[k].stride[d];
                empty |= o[k].size[d] == 0;
            }
            if (!empty)
                memcpy((char *)out[k]->memory + (size_t)to * element,
                       (const char *)base->memory + (size_t)from * element, element);
            int d = o[k].rank - 1;
            while (d >= 0 && ++at[d] >= o[k].size[d]) at[d--] = 0;
            more = d >= 0;
        }
    }
    tor_exe_end(&call);
    return status;
}

static inline void show(TorExecutable *exe) {
    char *before, *after, *steps;
    if (tor_exe_describe(exe, &before, &after, &steps) != TOROID_OK) return;
    fprintf(stderr, "%s\n%s\n%s\n", before, after, steps);  // longer than cmocka prints
    tor_free(before), tor_free(after), tor_free(steps);
}

static inline void expect_array(TorExecutable *exe, const char *what, int k, const Tensor *got,
                                const Array *expected) {
    double most = 1e-2;
    assert_int_equal(got->rank, expected->rank);
    for (int d = 0; d < got->rank; d++) assert_int_equal(got->size[d], expected->size[d]);
    for (int64_t i = 0; i < array_numel(expected); i++)
        if (isfinite(expected->data[i])) most = fmax(most, fabs(expected->data[i]));
    for (int64_t i = 0; i < array_numel(expected); i++) {
        double a = tensor_at(got, i), b = expected->data[i];
        if (a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= tolerance * most) continue;
        show(exe);
        fail_msg("%s: output %d, element %d: got %.9g, expected %.9g", what, k, (int)i, a, b);
    }
}

/// Runs with 1, 2 and 4 threads; all answers must be the interpreter's, and equal bit for bit.
/// Inputs that the graph writes are put back before each run and checked after it.
static inline void check_exe(TorExecutable *exe, const Interpreter *it, const uint32_t *ids, int n,
                             const char *what) {
    void *saved[64] = {NULL};
    Tensor *first[16] = {NULL};
    for (int i = 0; i < 64 && given[i]; i++) {
        saved[i] = malloc(given[i]->bytes + 1);
        memcpy(saved[i], given[i]->memory, given[i]->bytes);
    }
    for (int threads = 1; threads <= 4; threads *= 2) {
        Tensor *out[16];
        for (int i = 0; i < 64 && given[i]; i++)
            memcpy(given[i]->memory, saved[i], given[i]->bytes);
        ToroidStatus status = call_exe(exe, threads, out);
        if (status != TOROID_OK) fail_msg("%s: %s", what, toroid_last_error());
        bool written[64] = {false};
        for (int k = 0, returned = 0; k < n; k++) {
            const Array *expected = &it->values[ids[k]];
            if (into[k] >= 0) {
                expect_array(exe, what, k, given[into[k]], expected);
                written[into[k]] = true;
                continue;
            }
            expect_array(exe, what, k, out[returned], expected);
            if (threads == 1)
                first[returned] = out[returned];
            else if (memcmp(first[returned]->memory, out[returned]->memory, out[returned]->bytes))
                fail_msg("%s: %d threads change the answer", what, threads);
            returned++;
        }
        for (int i = 0; i < 64 && given[i]; i++)
            if (!written[i] && memcmp(given[i]->memory, saved[i], given[i]->bytes))
                fail_msg("%s: input %d was written", what, i);
    }
    for (int i = 0; i < 64; i++) free(saved[i]);
}

/// The whole way: interprets the graph, compiles it, runs it, compares. The graph is gone
/// afterwards.
static inline void check(const char *what) {
    uint32_t ids[16];
    int n = g->output->n_inputs;
    MUST(tor_graph_verify(g));
    Interpreter *it = interpret(g, given);
    for (int k = 0; k < n; k++) ids[k] = tor_in(g->output, k)->id;
    TorExecutable *exe;
    ToroidStatus status =
        tor_exe_compile(&exe, &g, &(TorOptions){.freeze = true, .reference = by_reference});
    if (status != TOROID_OK) fail_msg("%s: %s", what, toroid_last_error());
    check_exe(exe, it, ids, n, what);
    tor_exe_destroy(&exe);
    for (int i = 0; i < 64 && given[i]; i++) tor_frozen_forget(given[i]->uid);
    interpreter_drop(it);
    start();
}

#endif

// What a graph returns and what it writes: aliases, promised strides, empty and 0-d tensors, writes
// into inputs.
#include <sys/mman.h>
#include <unistd.h>

#include "../support/exe.h"

static void promise(int output, int rank, const int64_t *strides) {
    TorDim dims[TOR_MAX_RANK];
    for (int d = 0; d < rank; d++) dims[d] = tor_int_const(g, strides[d]);
    MUST(tor_graph_set_output_layout(g, output, dims, NULL));
}

static void test_returned_twice(void **state) {
    (void)state;
    TorValue *x = IN(FLOATS("3 4")), *y = UNARY(neg, x);
    OUTPUTS(y, y, x, permuted(y, "1 0"), y);
    check("the same value again");
}

static void test_inputs_come_back(void **state) {
    (void)state;
    TorValue *x = IN(FLOATS("3 4")), *w = FROZEN(FLOATS("3 4"));
    OUTPUTS(x, w, x, OP(g, contiguous, INS(x), NONE));
    TorExecutable *exe = compile();
    TorCall *call;
    MUST(begin(exe, &call));
    TorCallOutput *o = tor_exe_outputs(call);
    assert_int_equal(o[0].from_input, 0);
    assert_int_equal(o[1].from_input, 1);
    assert_int_equal(o[2].from_input, 0);
    assert_int_equal(o[3].from_input, -1);  // eager's clone is a tensor of its own
    Tensor *copy = new_tensor(TOR_float32, 2, o[3].size, o[3].stride);
    o[3].data = copy->memory;
    MUST(tor_exe_run(call, NULL, false));
    tor_exe_end(&call);
    assert_memory_equal(copy->memory, given[0]->memory, copy->bytes);
    tor_exe_destroy(&exe);
}

static void test_views_of_inputs(void **state) {
    (void)state;
    TorValue *x = IN(FLOATS("3 4")), *w = FROZEN(FLOATS("4 3"));
    OUTPUTS(permuted(x, "1 0"), sliced(x, 1, 1, 2, 2), viewed(x, "12"),
            expanded(viewed(x, "1 3 4"), "2 3 4"), permuted(w, "1 0"));
    check("views of inputs");
}

// Memory that eager shares is shared: a part of an output, and a part of an input.
static void test_views_share_memory(void **state) {
    (void)state;
    TorValue *x = IN(FLOATS("3 4")), *y = UNARY(neg, x);
    OUTPUTS(sliced(y, 0, 1, 2, 1), y, viewed(y, "12"), sliced(x, 1, 1, 2, 1));
    promise(3, 2, (const int64_t[]){4, 1});
    TorExecutable *exe = compile();
    TorCall *call;
    MUST(begin(exe, &call));
    TorCallOutput *o = tor_exe_outputs(call);
    assert_int_equal(o[0].from_output, 1);
    assert_int_equal(o[0].offset, 4);
    assert_int_equal(o[1].from_output, -1);
    assert_int_equal(o[2].from_output, 1);
    assert_int_equal(o[3].from_input, 0);
    assert_int_equal(o[3].offset, 1);
    assert_false(o[3].whole);
    tor_exe_end(&call);
    tor_exe_destroy(&exe);
    start();
    x = IN(FLOATS("3 4")), y = UNARY(neg, x);
    OUTPUTS(sliced(y, 0, 1, 2, 1), y, viewed(y, "12"), sliced(x, 1, 1, 2, 1));
    check("values of views");
}

static void test_constants_come_back(void **state) {
    (void)state;
    TorValue *x = IN(FLOATS("3"));
    OUTPUTS(number(g, 2.5),
            OP(g, full, NULL, 0,
               ATTRS(DIMS(g, "2 2"), TOR_A_DTYPE(dtype, TOR_float32),
                     TOR_A_SCALAR(value, ((TorScalar){.dtype = TOR_float64, .f = 3})))),
            UNARY(neg, x));
    check("constants");
    TorValue *w = FROZEN(FLOATS("3"));
    OUTPUTS(UNARY(neg, w), BINARY(add, w, number(g, 1)));
    check("frozen results");
}

static void test_promised_strides(void **state) {
    (void)state;
    static const struct {
        int64_t stride[3];
    } cases[] = {{{20, 5, 1}}, {{1, 2, 8}}, {{1, 10, 2}}, {{40, 10, 2}}, {{100, 20, 3}}};
    for (size_t i = 0; i < TOR_COUNT_OF(cases); i++)
        for (int kind = 0; kind < 4; kind++) {
            TorValue *x = IN(FLOATS("2 4 5"));
            TorValue *y = kind == 0   ? UNARY(tanh, x)
                          : kind == 1 ? OP(g, linear, INS(x, FROZEN(FLOATS("5 5"))), NONE)
                          : kind == 2 ? softmaxed(x, 1)
                                      : OP(g, contiguous, INS(x), NONE);
            OUTPUTS(y, y);
            promise(0, 3, cases[i].stride);
            MUST(tor_graph_set_output_layout(g, 1, NULL, (const int[]){2, 0, 1}));
            TorExecutable *exe = compile();
            TorCall *call;
            MUST(begin(exe, &call));
            for (int d = 0; d < 3; d++)
                assert_int_equal(tor_exe_outputs(call)[0].stride[d], cases[i].stride[d]);
            assert_int_equal(tor_exe_outputs(call)[1].stride[2], 8);
            assert_int_equal(tor_exe_outputs(call)[1].stride[0], 4);
            assert_int_equal(tor_exe_outputs(call)[1].stride[1], 1);
            tor_exe_end(&call);
            Tensor *out[2];
            MUST(call_exe(exe, 2, out));
            for (int64_t k = 0; k < 40; k++) {
                double expected = kind == 0   ? tanh(tensor_at(given[0], k))
                                  : kind == 3 ? tensor_at(given[0], k)
                                              : tensor_at(out[1], k);
                if (fabs(tensor_at(out[0], k) - expected) < 1e-5 &&
                    fabs(tensor_at(out[1], k) - expected) < 1e-5)
                    continue;
                show(exe);
                fail_msg("case %d, kind %d, element %d: %g and %g, expected %g", (int)i, kind,
                         (int)k, tensor_at(out[0], k), tensor_at(out[1], k), expected);
            }
            // What lies between the elements of a strided output is not ours.
            size_t inside = 0;
            for (size_t b = 0; b < out[0]->bytes / 4; b++) {
                bool element = false;
                for (int64_t k = 0; k < 40; k++) element |= tensor_place(out[0], k) == (int64_t)b;
                inside += element;
                if (!element) assert_int_equal(((uint32_t *)out[0]->memory)[b], 0xfefefefe);
            }
            assert_int_equal(inside, 40);
            tor_exe_destroy(&exe);
            start();
        }
}

// Eager returns an expanded tensor with strides of 0.
static void test_promised_zero_strides(void **state) {
    (void)state;
    TorValue *x = IN(FLOATS("1 5"));
    OUTPUTS(expanded(UNARY(neg, x), "3 5"));
    promise(0, 2, (const int64_t[]){0, 1});
    TorExecutable *exe = compile();
    Tensor *out[1];
    MUST(call_exe(exe, 2, out));
    assert_int_equal(out[0]->bytes, 20);
    for (int64_t i = 0; i < 15; i++)
        assert_true(tensor_at(out[0], i) == -tensor_at(given[0], i % 5));
    tor_exe_destroy(&exe);
}

static void test_empty_and_0d(void **state) {
    (void)state;
    TorValue *x = IN(FLOATS("0 4")), *s = IN(FLOATS(""));
    OUTPUTS(UNARY(neg, x), reduced(TOR_OP_sum, x, 1, false), reduced(TOR_OP_sum, x, 2, true),
            OP(g, cat, INS(x, IN(FLOATS("2 4"))), ATTRS(TOR_A_INT(axis, 0))), BINARY(add, x, s),
            UNARY(neg, s), viewed(s, "1 1"), softmaxed(x, 1));
    check("empty");
    x = IN(FLOATS("0 4"));
    OUTPUTS(OP(g, linear, INS(x, FROZEN(FLOATS("3 4"))), NONE), viewed(x, "2 0"),
            permuted(x, "1 0"), OP(g, linear, INS(viewed(x, "4 0"), IN(FLOATS("3 0"))), NONE));
    check("empty linear");
    x = IN(FLOATS("5 4"));
    OUTPUTS(
        OP(g, index_select, INS(x, IN(numbers_of(TOR_int64, NULL, 0))), ATTRS(TOR_A_INT(axis, 0))),
        sliced(x, 0, 5, 0, 1), reduced(TOR_OP_prod, sliced(x, 0, 0, 0, 1), 3, false),
        OP(g, pad, INS(sliced(x, 0, 0, 0, 1)),
           ATTRS(dims_attr(g, TOR_ATTR_low, "2 0"), dims_attr(g, TOR_ATTR_high, "1 0"),
                 TOR_A_SCALAR(value, ((TorScalar){.dtype = TOR_float64, .f = 7})))));
    check("nothing chosen");
    x = IN(FLOATS("2 0 4")), s = IN(FLOATS("2 4 3"));
    OUTPUTS(OP(g, matmul, INS(x, s), NONE), OP(g, matmul, INS(permuted(x, "0 2 1"), x), NONE));
    check("empty matmul");
}

static void test_no_outputs(void **state) {
    (void)state;
    IN(FLOATS("3"));
    outputs(NULL, 0);
    TorExecutable *exe = compile();
    Tensor *out[1];
    assert_int_equal(tor_exe_output_count(exe), 0);
    MUST(call_exe(exe, 1, out));
    tor_exe_destroy(&exe);
}

// ---------------------------------------------------------------- writes into inputs

static void test_swap(void **state) {
    (void)state;
    TorValue *a = IN(FLOATS("3 4")), *b = IN(FLOATS("3 4"));
    into[0] = 0, into[1] = 1;
    OUTPUTS(b, a, a);
    check("swap");
    a = IN(FLOATS("4 4"));
    into[0] = 0;
    OUTPUTS(permuted(a, "1 0"));
    check("transpose in place");
    a = IN(FLOATS("4 4")), b = IN(FLOATS("4 4"));
    into[0] = 0, into[2] = 1;
    OUTPUTS(BINARY(add, a, b), sliced(a, 0, 1, 2, 1), BINARY(mul, a, number(g, 2)), b);
    check("old states stay readable");
    a = IN(strided(TOR_float32, "4 4", "1 4"));
    into[0] = 0;
    OUTPUTS(UNARY(tanh, a));
    check("a strided input");
    a = IN(FLOATS("4"));
    into[0] = 0;
    OUTPUTS(a);
    check("itself");
    a = IN(FLOATS("2 3")), b = IN(FLOATS("2 3"));
    into[0] = 1;
    OUTPUTS(a, a);
    check("one input into another");
}

static TorValue *update(TorValue *x, TorValue *ix, TorValue *rows) {
    return OP(g, index_copy, INS(x, ix, rows), ATTRS(TOR_A_INT(axis, 0)));
}

static void test_updates_that_must_copy(void **state) {
    (void)state;
    TorValue *cache = IN(FLOATS("6 4")), *ix = IN(INDICES(1, 4)), *rows = IN(FLOATS("2 4"));
    into[0] = 0;
    OUTPUTS(update(cache, ix, rows), reduced(TOR_OP_sum, cache, 1, false));
    check("the old state is read later");

    cache = IN(FLOATS("6 4")), ix = IN(INDICES(1, 4));
    into[0] = 0;
    OUTPUTS(update(cache, ix, sliced(cache, 0, 3, 2, 1)));
    check("rows of the same memory");

    cache = IN(FLOATS("6 4")), ix = IN(INDICES(1, 4)), rows = IN(FLOATS("2 4"));
    into[0] = 0;
    OUTPUTS(update(cache, ix, rows), sliced(cache, 0, 0, 5, 1));
    check("a view of the old state is returned");

    cache = IN(FLOATS("6 4")), ix = IN(INDICES(1, 4)), rows = IN(FLOATS("2 4"));
    TorValue *one = update(cache, ix, rows),
             *two = update(one, IN(INDICES(0)), sliced(one, 0, 1, 1, 1));
    into[0] = 0;
    OUTPUTS(two, UNARY(neg, one));
    check("a state in the middle is read later");

    cache = IN(FLOATS("6 4")), ix = IN(INDICES(1, 4)), rows = IN(FLOATS("2 4"));
    TorValue *other = IN(FLOATS("6 4"));
    into[0] = 0, into[1] = 3;
    OUTPUTS(update(cache, ix, rows), cache);
    (void)other;
    check("the old state goes into another input");
}

static void test_updates_in_place(void **state) {
    (void)state;
    TorValue *cache = IN(FLOATS("6 4")), *now = update(cache, IN(INDICES(1, 4)), IN(FLOATS("2 4")));
    into[0] = 0;
    OUTPUTS(now, reduced(TOR_OP_sum, now, 1, false), now, sliced(now, 0, 0, 3, 1));
    check("the new state is read and returned");
    cache = IN(FLOATS("6 4"));
    TorValue *before = reduced(TOR_OP_sum, cache, 1, false);
    now = OP(g, slice_scatter,
             INS(update(cache, IN(INDICES(1, 4)), IN(FLOATS("2 4"))), IN(FLOATS("2 4"))),
             ATTRS(TOR_A_INT(axis, 0), TOR_A_DIM(start, tor_int_const(g, 4)), TOR_A_INT(step, 1)));
    now = OP(g, index_put, INS(now, IN(FLOATS("2 4")), IN(INDICES(0, -1))),
             ATTRS(INTS(axes, 0), TOR_A_INT(accumulate, 1)));
    into[0] = 0;
    OUTPUTS(now, before, UNARY(neg, now));
    check("a chain of updates");
}

// A cache of many pages, read-only but for the page that takes the new row: a write anywhere else
// ends the program.
static void test_only_new_rows_are_written(void **state) {
    (void)state;
    int64_t page = sysconf(_SC_PAGESIZE), row = page / 4, rows = 8;
    float *memory = mmap(NULL, (size_t)(page * rows), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    for (int64_t i = 0; i < rows * row; i++) memory[i] = (float)i;
    for (int kind = 0; kind < 4; kind++) {
        int64_t size[2] = {rows, row}, one[2] = {1, row};
        Tensor *cache = new_tensor(TOR_float32, 2, size, NULL),
               *fresh = randomise(new_tensor(TOR_float32, 2, one, NULL));
        TorValue *x = IN(cache), *v = IN(fresh), *ix = IN(INDICES(5)), *y;
        if (kind == 0)
            y = update(x, ix, v);
        else if (kind == 1)
            y = OP(g, index_put, INS(x, v, ix), ATTRS(INTS(axes, 0)));
        else if (kind == 2)
            y = OP(g, slice_scatter, INS(x, v),
                   ATTRS(TOR_A_INT(axis, 0), TOR_A_DIM(start, tor_int_const(g, 5)),
                         TOR_A_INT(step, 1)));
        else
            y = OP(g, scatter,
                   INS(x,
                       OP(g, expand, INS(viewed(ix, "1 1")),
                          ATTRS(TOR_A_DIMS(
                              dims, ((TorDim[]){tor_int_const(g, 1), tor_int_const(g, row)}), 2))),
                       v),
                   ATTRS(TOR_A_INT(axis, 0)));
        into[0] = 0;
        OUTPUTS(y, reduced(TOR_OP_sum, y, 2, false));
        TorExecutable *exe = compile();
        void *own = cache->memory;
        cache->memory = memory;
        mprotect(memory, (size_t)(page * rows), PROT_READ);
        mprotect((uint8_t *)memory + 5 * page, (size_t)page, PROT_READ | PROT_WRITE);
        Tensor *out[1];
        MUST(call_exe(exe, 2, out));
        mprotect(memory, (size_t)(page * rows), PROT_READ | PROT_WRITE);
        for (int64_t i = 0; i < row; i++)
            assert_true(memory[5 * row + i] == ((float *)fresh->memory)[i]);
        cache->memory = own;
        tor_exe_destroy(&exe);
        start();
    }
    munmap(memory, (size_t)(page * rows));
}

static void test_index_errors(void **state) {
    (void)state;
    // The bad index lies in the arena, and its memory is used again after its step.
    Tensor *base = INDICES(0, 5, 1);
    TorValue *x = IN(FLOATS("4 6")), *ix = BINARY(add, IN(base), IN(INDICES(1)));
    TorValue *y = OP(g, index_select, INS(x, ix), ATTRS(TOR_A_INT(axis, 0)));
    for (int i = 0; i < 3; i++) y = softmaxed(UNARY(tanh, softmaxed(y, 1)), 0);
    OUTPUTS(y);
    TorExecutable *exe = compile();
    Tensor *out[1];
    assert_int_equal(call_exe(exe, 2, out), TOROID_INVALID_INDEX);
    assert_non_null(strstr(toroid_last_error(), "index 6 is out of range for an axis of size 4"));
    tensor_set(base, 1, 2);
    MUST(call_exe(exe, 2, out));
    tor_exe_destroy(&exe);
}

int main(void) {
    setenv("TOROID_VERIFY", "1", 1);
    const struct CMUnitTest tests[] = {
        TEST(test_returned_twice),
        TEST(test_inputs_come_back),
        TEST(test_views_of_inputs),
        TEST(test_views_share_memory),
        TEST(test_constants_come_back),
        TEST(test_promised_strides),
        TEST(test_promised_zero_strides),
        TEST(test_empty_and_0d),
        TEST(test_no_outputs),
        TEST(test_swap),
        TEST(test_updates_that_must_copy),
        TEST(test_updates_in_place),
        TEST(test_only_new_rows_are_written),
        TEST(test_index_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

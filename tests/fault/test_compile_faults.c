// Memory runs out at the n-th allocation, for every n, anywhere between building a graph and its
// answer: always TOROID_NO_MEMORY, nothing leaks (the sanitizer's build tells), and the next
// attempt works. What is wrong with an input is said by its name.
#include "../support/exe.h"

static Tensor *x, *w, *filter, *shift, *table, *ix;

/// linear, conv, softmax, frozen weights and expressions, a gather, a size of each call.
static ToroidStatus build(void) {
    TorDim dims[4] = {tor_int_size(g, 0, 0), tor_int_const(g, 16)};
    TorValue *in[6];
    Tensor *all[] = {x, w, filter, shift, table, ix};
    for (int i = 0; i < 6; i++) {
        for (int d = 0; d < all[i]->rank && i; d++) dims[d] = tor_int_const(g, all[i]->size[d]);
        TOR_TRY(g->failed);
        TOR_TRY(
            tor_graph_add_input(g, "x", all[i]->dtype, all[i]->rank, dims, i > 0 && i < 5, &in[i]));
        g->inputs[i].contiguous = true;
        given[i] = all[i];
    }
    TorNode *node;
    TorValue *y = in[0];
#define ADD(op, attrs, n, ...)                                                              \
    do {                                                                                    \
        TOR_TRY(tor_graph_add(g, NULL, TOR_OP_##op, INS(__VA_ARGS__), attrs, n, 1, &node)); \
        y = node->outputs[0];                                                               \
    } while (0)
    TorValue *two;
    TOR_TRY(tor_graph_number(g, (TorScalar){.dtype = TOR_float64, .f = 2}, &two));
    ADD(mul, NULL, 0, in[1], two);
    ADD(linear, NULL, 0, in[0], y);
    ADD(gelu_erf, NULL, 0, y);
    ADD(softmax, ((TorAttr[]){TOR_A_INT(axis, 1)}), 1, y);
    TorDim image[] = {in[0]->dim[0], tor_int_const(g, 1), tor_int_const(g, 4), tor_int_const(g, 4)};
    ADD(view, ((TorAttr[]){TOR_A_DIMS(dims, image, 4)}), 1, y);
    ADD(conv, ((TorAttr[]){INTS(stride, 1, 1), INTS(padding, 1, 1), INTS(dilation, 1, 1)}), 3, y,
        in[2]);
    ADD(add, NULL, 0, y, in[3]);
    TorValue *picture = y;
    ADD(embedding, NULL, 0, in[4], in[5]);
    ADD(relu, NULL, 0, y);
    TorValue *values[] = {picture, y};
    return tor_graph_set_outputs(g, values, into, 2);
}

static ToroidStatus whole(TorExecutable **exe, Tensor **out) {
    TOR_TRY(tor_graph_create(&g));
    TOR_TRY(build());
    TOR_TRY(tor_exe_compile(exe, &g, &(TorOptions){.freeze = true, .reference = by_reference}));
    return call_exe(*exe, 2, out);
}

static void fail_each_allocation(void) {
    x = FLOATS("3 16"), w = FLOATS("16 16"), filter = FLOATS("4 1 3 3"), shift = FLOATS("4 1 1"),
    table = FLOATS("5 2"), ix = INDICES(4, 0, 4);
    TorExecutable *exe = NULL;
    Tensor *expected[2], *out[2];
    tor_graph_destroy(&g);
    MUST(whole(&exe, expected));
    tor_exe_destroy(&exe);
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        for (int i = 0; i < 6; i++) tor_frozen_forget(given[i]->uid);
        TorExeStats stats;
        tor_exe_stats(NULL, &stats);
        assert_int_equal(stats.frozen_bytes, 0);
        tor_alloc_fail_at(n);
        ToroidStatus status = whole(&exe, out);
        tor_alloc_fail_at(0);
        done = status == TOROID_OK;
        if (!done) {
            if (status != TOROID_NO_MEMORY)
                fail_msg("allocation %d: status %d, %s", (int)n, status, toroid_last_error());
            if (exe)
                MUST(call_exe(exe, 2, out));  // it was a call that failed: the next one works
            else {
                tor_graph_destroy(&g);
                if (n % 7 == 0) MUST(whole(&exe, out));
            }
        }
        if (exe)
            for (int k = 0; k < 2; k++)
                assert_memory_equal(out[k]->memory, expected[k]->memory, out[k]->bytes);
        tor_exe_destroy(&exe);
        assert_true(n < 5000);
        if (done) print_message("%d allocations\n", (int)n - 1);
    }
    for (int i = 0; i < 6; i++) tor_frozen_forget(given[i]->uid);
}

static void test_every_allocation(void **state) {
    (void)state;
    fail_each_allocation();
}

static void test_every_allocation_by_reference(void **state) {
    (void)state;
    by_reference = true;
    fail_each_allocation();
}

// A host that describes a text, and one that runs out of memory for it.
static void test_describe(void **state) {
    (void)state;
    OUTPUTS(UNARY(neg, IN(FLOATS("3"))));
    TorExecutable *exe = compile();
    char *before, *after, *steps;
    for (uint64_t n = 1;; n++) {
        tor_alloc_fail_at(n);
        ToroidStatus status = tor_exe_describe(exe, &before, &after, &steps);
        tor_alloc_fail_at(0);
        if (status == TOROID_OK) break;
        assert_int_equal(status, TOROID_NO_MEMORY);
        assert_true(!before && !after && !steps && n < 100);
    }
    assert_non_null(strstr(after, "fused"));
    assert_non_null(strstr(steps, "neg"));
    tor_free(before), tor_free(after), tor_free(steps);
    tor_exe_destroy(&exe);
}

// The same as records, of a graph with a fused pair, a weight that is packed and a node nobody
// reads.
static void test_record(void **state) {
    (void)state;
    TorValue *rows = IN(FLOATS("3 4")), *weight = FROZEN(FLOATS("5 4")),
             *dropped = UNARY(exp, rows);
    (void)dropped;
    OUTPUTS(UNARY(neg, UNARY(relu, OP(g, linear, INS(rows, weight), NONE))));
    TorExecutable *exe = compile();
    TorExeRecord *record;
    for (uint64_t n = 1;; n++) {
        tor_alloc_fail_at(n);
        ToroidStatus status = tor_exe_record(exe, &record);
        tor_alloc_fail_at(0);
        if (status == TOROID_OK) break;
        assert_int_equal(status, TOROID_NO_MEMORY);
        assert_true(!record && n < 100);
    }
    assert_false(record->bound);
    assert_int_equal(record->n_steps, 1);
    assert_string_equal(record->steps[0].work, "linear {relu neg}");
    assert_string_equal(record->steps[0].shape, "float32[3, 5]");
    uint32_t linear = record->step_nodes[0];
    assert_int_equal(record->after->nodes[linear].op, TOR_OP_linear);
    for (size_t i = 0; i < record->before->n_nodes; i++) {
        TorOp op = record->before->nodes[i].op;
        uint32_t count = record->places[i].count;
        const uint32_t *nodes = record->places[i].nodes;
        assert_int_equal(count, op == TOR_OP_exp ? 0 : 1);
        if (op == TOR_OP_linear || op == TOR_OP_relu || op == TOR_OP_neg || i == 1)
            assert_int_equal(nodes[0], linear);
    }
    tor_exe_record_destroy(&record);
    tor_exe_destroy(&exe);
}

static void test_refusals(void **state) {
    (void)state;
    TorExecutable *exe;
    OUTPUTS(UNARY(neg, IN(FLOATS("3"))));
    assert_int_equal(tor_exe_compile(&exe, &g, &(TorOptions){.precision = "bf16"}),
                     TOROID_UNSUPPORTED);
    assert_null(exe);
    assert_null(g);
    start();
    IN(FLOATS("3"));
    assert_int_equal(tor_exe_compile(&exe, &g, &(TorOptions){.freeze = true}),
                     TOROID_INVALID);  // no outputs set
    assert_null(exe);
    start();
    TorValue *mask = IN(tensor_of(TOR_bool, "3 4"));
    OUTPUTS(OP(g, linear, INS(mask, IN(tensor_of(TOR_bool, "3 4"))), NONE));
    assert_int_equal(tor_exe_compile(&exe, &g, &(TorOptions){.freeze = true}), TOROID_UNSUPPORTED);
    assert_non_null(strstr(toroid_last_error(), "bool"));
}

static void expect_invalid(TorExecutable *exe, const char *text) {
    TorCall *call;
    assert_int_equal(begin(exe, &call), TOROID_INVALID);
    assert_null(call);
    if (!strstr(toroid_last_error(), text))
        fail_msg("\"%s\" does not say \"%s\"", toroid_last_error(), text);
}

static void test_wrong_inputs(void **state) {
    (void)state;
    Tensor *a = FLOATS("3 4"), *b = strided(TOR_float32, "3 4", "1 3"), *c = FLOATS("4 4"), *out[3];
    OUTPUTS(UNARY(neg, IN(a)), UNARY(neg, IN(b)), UNARY(neg, FROZEN(c)));
    TorExecutable *exe = compile();
    a->size[1] = 3;
    expect_invalid(exe, "input x0: dim 1 has size 3");
    a->size[1] = 4, b->stride[0] = 4;
    expect_invalid(exe, "input x1: dim 0 has stride 4");
    b->stride[0] = 1, c->size[0] = 2;
    expect_invalid(exe, "input x2: dim 0 has size 2");
    c->size[0] = 4, c->stride[0] = 1, c->stride[1] = 4;
    expect_invalid(exe, "input x2");
    c->stride[0] = 4, c->stride[1] = 1;
    MUST(call_exe(exe, 1, out));
    tor_exe_destroy(&exe);
    tor_frozen_forget(c->uid);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_every_allocation), TEST(test_every_allocation_by_reference),
        TEST(test_describe),         TEST(test_record),
        TEST(test_refusals),         TEST(test_wrong_inputs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

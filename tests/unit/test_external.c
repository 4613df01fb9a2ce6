// External nodes: the host sees the right tensors, in the right order, and its errors come back.
#include "../support/exe.h"

static int64_t order[16];
static int n_order;
static ToroidStatus answer;
static void *seen_token;
static int seen_input;

/// callable 1: a copy of input 0 times ints[0]; 2: input 0 turned round (what a view of it gives);
/// others: fill with the number of calls so far.
static ToroidStatus host(void *user, void *token, int64_t callable, const TorHostTensor *in,
                         int n_in, const int64_t *ints, int n_ints, const TorHostTensor *out,
                         int n_out) {
    assert_ptr_equal(user, order);
    seen_token = token;
    order[n_order++] = callable;
    assert_true(n_in >= 1);
    seen_input = in[0].graph_input;
    for (int k = 0; k < n_out; k++)
        for (int64_t i = 0; i < out[k].size[0]; i++)
            for (int64_t j = 0; j < out[k].size[1]; j++) {
                float *to = (float *)out[k].data + i * out[k].stride[0] + j * out[k].stride[1];
                const float *x = in[0].data;
                if (callable == 1)
                    *to = x[i * in[0].stride[0] + j * in[0].stride[1]] *
                          (float)(n_ints ? ints[0] : 1);
                else if (callable == 2)
                    *to = x[j * in[0].stride[0] + i * in[0].stride[1]];
                else
                    *to = (float)n_order;
            }
    return answer;
}

static TorNode *external(int64_t callable, TorValue *x, int n_outputs, bool random, int rank,
                         const TorDim *dims) {
    TorNode *node;
    TorAttr attrs[] = {TOR_A_INT(callable, callable), TOR_A_INT(random, random),
                       TOR_A_DIMS(operands, &x->dim[0], 1)};
    MUST(tor_graph_add(g, NULL, TOR_OP_external, &x, 1, attrs, 3, n_outputs, &node));
    for (int i = 0; i < n_outputs; i++)
        tor_graph_set_type(node->outputs[i], TOR_float32, rank, dims);
    return node;
}

static TorExecutable *compile_external(void) {
    n_order = 0;
    answer = TOROID_OK;
    return compile_with((TorOptions){.freeze = true, .host = {.user = order, .external = host}});
}

static void test_between_native_nodes(void **state) {
    (void)state;
    TorValue *x = input(FLOATS("3 5"), false, 1), *y = UNARY(neg, x);
    TorDim swapped[] = {x->dim[1], x->dim[0]};
    TorValue *a = external(1, permuted(y, "1 0"), 1, false, 2, swapped)->outputs[0];
    TorValue *b = external(2, a, 1, false, 2, x->dim)->outputs[0];
    OUTPUTS(BINARY(add, a, number(g, 1)), b, UNARY(neg, b), b);
    TorExecutable *exe = compile_external();
    int token;
    for (int64_t n = 3; n > 0; n--) {
        TorCall *call;
        Tensor *out[4];
        given[0]->size[0] = n;
        MUST(begin(exe, &call));
        for (int k = 0; k < 4; k++) {
            TorCallOutput *o = &tor_exe_outputs(call)[k];
            if (o->from_output >= 0) {  // the same value again is the same tensor
                out[k] = out[o->from_output];
                continue;
            }
            out[k] = new_tensor(o->dtype, o->rank, o->size, o->stride);
            o->data = out[k]->memory;
        }
        MUST(tor_exe_run(call, &token, false));
        tor_exe_end(&call);
        assert_ptr_equal(seen_token, &token);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < 5; j++) {
                double v = -tensor_at(given[0], i * 5 + j) * 5;
                assert_true(fabs(tensor_at(out[0], j * n + i) - v - 1) < 1e-5 &&
                            fabs(tensor_at(out[1], i * 5 + j) - v) < 1e-5);
                assert_true(fabs(tensor_at(out[2], i * 5 + j) + v) < 1e-5 &&
                            fabs(tensor_at(out[3], i * 5 + j) - v) < 1e-5);
            }
    }
    TorExeStats stats;
    tor_exe_stats(exe, &stats);
    assert_int_equal(stats.external_nodes, 2);
    tor_exe_destroy(&exe);
}

// Random nodes keep their order and their number, used or not.
static void test_random_order(void **state) {
    (void)state;
    TorValue *x = IN(FLOATS("2 2"));
    TorValue *late = external(11, x, 1, true, 2, x->dim)->outputs[0];
    external(12, x, 1, true, 2, x->dim);  // unused
    TorValue *early = external(13, x, 1, true, 2, x->dim)->outputs[0];
    external(3, x, 1, false, 2, x->dim);  // unused and not random: gone
    TorValue *same = external(11, x, 1, true, 2, x->dim)->outputs[0];
    OUTPUTS(UNARY(neg, early), BINARY(add, same, late));
    TorExecutable *exe = compile_external();
    Tensor *out[2];
    MUST(call_exe(exe, 1, out));
    assert_int_equal(n_order, 4);
    assert_int_equal(order[0], 11);
    assert_int_equal(order[1], 12);
    assert_int_equal(order[2], 13);
    assert_int_equal(order[3], 11);
    assert_int_equal(seen_input, 0);
    assert_true(tensor_at(out[0], 0) == -3 && tensor_at(out[1], 3) == 5);
    tor_exe_destroy(&exe);
}

static void test_two_outputs_one_unused(void **state) {
    (void)state;
    TorValue *x = IN(FLOATS("2 3"));
    OUTPUTS(external(1, x, 3, false, 2, x->dim)->outputs[1]);
    TorExecutable *exe = compile_external();
    Tensor *out[1];
    MUST(call_exe(exe, 1, out));
    for (int64_t i = 0; i < 6; i++)
        assert_true(tensor_at(out[0], i) == 2 * (float)tensor_at(given[0], i));
    tor_exe_destroy(&exe);
}

static void test_errors(void **state) {
    (void)state;
    TorValue *x = IN(FLOATS("2 3"));
    OUTPUTS(UNARY(neg, external(1, x, 1, false, 2, x->dim)->outputs[0]));
    TorExecutable *exe = compile_external();
    Tensor *out[1];
    answer = TOROID_INVALID;
    assert_int_equal(call_exe(exe, 2, out), TOROID_INVALID);
    answer = TOROID_OK;
    MUST(call_exe(exe, 2, out));
    tor_exe_destroy(&exe);
    start();
    x = IN(FLOATS("2 3"));
    OUTPUTS(external(1, x, 1, false, 2, x->dim)->outputs[0]);
    exe = compile();  // no hook
    assert_int_equal(call_exe(exe, 1, out), TOROID_INVALID);
    tor_exe_destroy(&exe);
}

int main(void) {
    setenv("TOROID_VERIFY", "1", 1);
    const struct CMUnitTest tests[] = {TEST(test_between_native_nodes), TEST(test_random_order),
                                       TEST(test_two_outputs_one_unused), TEST(test_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

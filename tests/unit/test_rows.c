// Softmax, norms and reductions, alone and in chains, against the interpreter.
#include "../support/exe.h"

static TorValue *weak(double x) { return number(g, x); }

static void test_layer_norm(void **state) {
    (void)state;
    for (int count = 1; count <= 3; count++)
        for (int affine = 0; affine < 3; affine++)
            for (int rms = 0; rms < 2; rms++) {
                static const char *const sizes[] = {"", "6", "5 6", "3 5 6"};
                TorValue *in[] = {IN(FLOATS("3 5 6")), IN(FLOATS(sizes[count])),
                                  IN(FLOATS(sizes[count]))};
                TorAttr attrs[] = {TOR_A_INT(count, count), TOR_A_FLOAT(eps, 1e-5),
                                   TOR_A_INT(has_gamma, affine > 0),
                                   TOR_A_INT(has_beta, affine > 1 && !rms)};
                TorValue *y = add_op(g, rms ? TOR_OP_rms_norm : TOR_OP_layer_norm, in,
                                     1 + (affine > 0) + (affine > 1 && !rms), attrs, 4);
                OUTPUTS(BINARY(add, y, in[0]), UNARY(tanh, in[1]), UNARY(tanh, in[2]));
                check("norm");
            }
    TorValue *x = BINARY(add, IN(FLOATS("4 300")), IN(FLOATS("4 300")));
    TorValue *y = OP(g, layer_norm, INS(x), ATTRS(TOR_A_INT(count, 1), TOR_A_FLOAT(eps, 1e-5)));
    OUTPUTS(x, UNARY(sigmoid, y));
    check("residual, norm, both returned");
}

static void test_softmax(void **state) {
    (void)state;
    for (int axis = 0; axis < 3; axis++)
        for (int order = 0; order < 2; order++) {
            TorValue *x = IN(order ? strided(TOR_float32, "4 5 33", "1 4 20") : FLOATS("4 5 33"));
            OUTPUTS(softmaxed(BINARY(mul, x, weak(3)), axis),
                    OP(g, log_softmax, INS(x), ATTRS(TOR_A_INT(axis, axis))));
            check("softmax");
            x = IN(FLOATS("4 5 33"));
            OUTPUTS(
                BINARY(mul, softmaxed(BINARY(add, x, IN(FLOATS("5 1"))), axis), IN(FLOATS("33"))));
            check("softmax within a chain");
        }
    OUTPUTS(softmaxed(IN(FLOATS("4 1")), 1));
    check("softmax of one element");
}

static void test_reductions(void **state) {
    (void)state;
    static const TorOp ops[] = {TOR_OP_sum,  TOR_OP_mean, TOR_OP_amax,
                                TOR_OP_amin, TOR_OP_var,  TOR_OP_prod};
    for (size_t i = 0; i < TOR_COUNT_OF(ops); i++)
        for (uint32_t mask = 0; mask < 16; mask++)
            for (int keep = 0; keep < 2; keep++)
                for (int order = 0; order < 2; order++) {
                    if (ops[i] == TOR_OP_var && mask == 0) continue;
                    TorValue *x = IN(order ? strided(TOR_float32, "3 4 2 5", "1 3 12 24")
                                           : FLOATS("3 4 2 5"));
                    TorValue *y = reduced(ops[i], UNARY(tanh, x), mask, keep);
                    OUTPUTS(y, UNARY(neg, y));
                    check(tor_op_name(ops[i]));
                }
    for (int axis = -1; axis < 3; axis++)
        for (int keep = 0; keep < 2; keep++) {
            uint32_t mask = axis < 0 ? 7 : 1u << axis;
            TorValue *x = IN(FLOATS("3 4 5")), *b = BINARY(gt, x, weak(0.5));
            OUTPUTS(reduced(TOR_OP_argmax, x, mask, keep), reduced(TOR_OP_argmin, x, mask, keep),
                    reduced(TOR_OP_any, b, mask, keep), reduced(TOR_OP_all, b, mask, keep));
            check("arg reductions");
        }
    TorValue *s = IN(FLOATS(""));
    OUTPUTS(reduced(TOR_OP_sum, s, 0, false), reduced(TOR_OP_mean, s, 0, true),
            reduced(TOR_OP_amax, UNARY(neg, s), 0, false));
    check("reductions of a 0-d tensor");
    TorValue *n = IN(tensor_of(TOR_int32, "3 40"));
    TorAttr attrs[] = {INTS(axes, 1), TOR_A_DTYPE(dtype, TOR_int64)};
    OUTPUTS(add_op(g, TOR_OP_sum, INS(n), attrs, 2), reduced(TOR_OP_amax, n, 1, false));
    check("integers");
}

// Row values that feed elements, elements that feed rows, several rounds.
static void test_row_chains(void **state) {
    (void)state;
    TorValue *x = IN(FLOATS("6 40"));
    TorValue *centred = BINARY(sub, x, reduced(TOR_OP_mean, x, 2, true));
    TorValue *spread = reduced(TOR_OP_mean, BINARY(mul, centred, centred), 2, true);
    OUTPUTS(BINARY(mul, centred, UNARY(rsqrt, BINARY(add, spread, weak(1e-5)))));
    check("layer norm in parts");

    x = IN(FLOATS("6 1"));  // axis of size 1: rows and elements look alike
    TorValue *r = reduced(TOR_OP_sum, x, 2, true);
    OUTPUTS(BINARY(mul, UNARY(relu, r), weak(2)), BINARY(add, x, r));
    check("rows of one element");

    x = IN(FLOATS("6 40"));
    r = reduced(TOR_OP_amax, x, 2, true);
    OUTPUTS(r, BINARY(sub, x, r));
    check("a row value that is returned too");

    x = IN(FLOATS("6 40"));
    OUTPUTS(reduced(TOR_OP_sum, BINARY(mul, softmaxed(x, 1), x), 2, false));
    check("softmax, weighted sum");

    x = IN(FLOATS("4 6 5"));
    OUTPUTS(BINARY(div, x, reduced(TOR_OP_sum, UNARY(abs, x), 3, true)),
            BINARY(div, x, reduced(TOR_OP_sum, UNARY(abs, x), 5, true)));
    check("two sets of axes");

    x = IN(FLOATS("6 40"));  // more than one program holds
    for (int i = 0; i < 60; i++)
        x = i % 7 == 6 ? BINARY(sub, x, reduced(TOR_OP_mean, x, 2, true))
                       : UNARY(tanh, BINARY(mul, x, weak(1.0 + i / 64.0)));
    OUTPUTS(x);
    check("a long chain with reductions");

    x = IN(FLOATS("6 40"));
    for (int i = 0; i < 30; i++) x = BINARY(add, x, IN(FLOATS(i % 2 ? "40" : "6 1")));
    OUTPUTS(x);
    check("many operands");

    x = IN(FLOATS("8 8"));  // many row values at once: the program is full in the middle of a group
    for (int i = 0; i < 12; i++)
        x = BINARY(mul, x, UNARY(exp, UNARY(neg, UNARY(abs, reduced(TOR_OP_amax, x, 2, true)))));
    OUTPUTS(x);
    check("many row values");
}

int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    setenv("TOROID_VERIFY", "1", 1);
    const struct CMUnitTest tests[] = {TEST(test_layer_norm), TEST(test_softmax),
                                       TEST(test_reductions), TEST(test_row_chains)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

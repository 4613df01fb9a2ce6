// Contractions and pools with what stands before and after them, against the interpreter.
#include "../support/exe.h"

static TorValue *weak(double x) { return number(g, x); }

static void test_linear_chain(void **state) {
    (void)state;
    for (int variant = 0; variant < 16; variant++) {
        bool frozen = variant & 1, rank3 = variant & 2, bias = variant & 4, trans = variant & 8;
        TorValue *x = IN(FLOATS(rank3 ? "3 5 24" : "7 24")),
                 *w = input(FLOATS(trans ? "24 40" : "40 24"), frozen, 0);
        TorValue *b = input(FLOATS("40"), frozen, 0), *rest = IN(FLOATS(rank3 ? "3 5 40" : "7 40"));
        TorValue *in[] = {x, w, b};
        TorValue *y = OP(g, linear, in, bias ? 3 : 2, ATTRS(TOR_A_INT(trans, trans)));
        OUTPUTS(BINARY(add, UNARY(gelu_erf, y), rest), BINARY(mul, rest, weak(2)));
        check("linear gelu residual");
    }
}

static void test_linear_many_uses(void **state) {
    (void)state;
    TorValue *x = IN(FLOATS("6 16")), *w = FROZEN(FLOATS("16 16"));
    TorValue *y = OP(g, linear, INS(x, w), NONE), *z = UNARY(relu, y);
    OUTPUTS(y, z, BINARY(add, z, x));
    check("a chain whose middle is returned");

    x = IN(FLOATS("6 16")), w = IN(FLOATS("16 16"));
    y = OP(g, linear, INS(x, w), NONE);
    OUTPUTS(BINARY(mul, UNARY(sigmoid, y), y));  // the accumulator twice
    check("silu in two parts");

    x = IN(FLOATS("6 16")), w = FROZEN(FLOATS("16 16"));
    TorValue *gate = OP(g, linear, INS(x, w), NONE),
             *up = OP(g, linear, INS(x, FROZEN(FLOATS("16 16"))), NONE);
    OUTPUTS(BINARY(mul, UNARY(silu, gate), up));
    check("gated");

    x = IN(FLOATS("16")), w = FROZEN(FLOATS("8 16"));
    OUTPUTS(BINARY(add, OP(g, linear, INS(x, w), NONE), IN(FLOATS(""))));
    check("linear of one row");

    x = IN(strided(TOR_float32, "4 3 16", "16 64 1")), w = FROZEN(FLOATS("8 16"));
    OUTPUTS(
        BINARY(add, OP(g, linear, INS(x, w), NONE), IN(strided(TOR_float32, "4 3 8", "1 4 12"))));
    check("rows that do not merge, operand in another order");
}

static void test_linear_casts(void **state) {
    (void)state;
    TorValue *x = IN(FLOATS("6 16")), *w = FROZEN(FLOATS("16 16"));
    TorValue *y =
        OP(g, cast, INS(OP(g, linear, INS(x, w), NONE)), ATTRS(TOR_A_DTYPE(dtype, TOR_float64)));
    OUTPUTS(BINARY(gt, OP(g, linear, INS(x, w), NONE), weak(0.01)),
            BINARY(add, y, IN(tensor_of(TOR_float64, "16"))));
    check("epilogue of another type");
}

static void test_matmul(void **state) {
    (void)state;
    const char *a[] = {"5 7", "2 5 7", "2 3 5 7"}, *b[] = {"7 6", "2 7 6", "2 3 7 6"},
               *c[] = {"5 6", "2 5 6", "2 3 5 6"}, *swap[] = {"1 0", "0 2 1", "0 1 3 2"},
               *bt[] = {"6 7", "2 6 7", "2 3 6 7"};
    for (int r = 0; r < 3; r++) {
        OUTPUTS(OP(g, matmul, INS(IN(FLOATS(a[r])), IN(FLOATS(b[r]))), NONE));
        check("matmul");
        TorValue *y =
            OP(g, matmul, INS(IN(FLOATS(a[r])), permuted(IN(FLOATS(bt[r])), swap[r])), NONE);
        OUTPUTS(UNARY(tanh, BINARY(add, BINARY(mul, y, weak(0.5)), IN(FLOATS(c[r])))));
        check("matmul with a transposed operand and an epilogue");
        OUTPUTS(BINARY(add, OP(g, matmul, INS(IN(FLOATS(a[r])), IN(FLOATS(b[r]))), NONE),
                       IN(FLOATS("6"))));
        check("matmul with a row");
        OUTPUTS(BINARY(add, OP(g, matmul, INS(IN(FLOATS(a[r])), IN(FLOATS(b[r]))), NONE),
                       IN(FLOATS("5 1"))));
        check("matmul with a column");
    }
    OUTPUTS(OP(g, matmul, INS(expanded(IN(FLOATS("1 5 7")), "4 5 7"), IN(FLOATS("4 7 3"))), NONE));
    check("matmul of an expanded operand");
}

static TorValue *conv(TorValue *x, TorValue *w, TorValue *b, int64_t stride, int64_t padding,
                      int64_t dilation, int64_t groups) {
    int64_t s[3] = {stride, stride, stride}, p[3] = {padding, padding, padding},
            d[3] = {dilation, dilation, dilation};
    int n = x->rank - 2;
    TorValue *in[] = {x, w, b};
    return OP(g, conv, in, b ? 3 : 2,
              ATTRS(TOR_A_INTS(stride, s, n), TOR_A_INTS(padding, p, n), TOR_A_INTS(dilation, d, n),
                    TOR_A_INT(groups, groups)));
}

static void test_conv(void **state) {
    (void)state;
    static const struct {
        const char *x, *w, *y;
        int64_t stride, padding, dilation, groups, out;
    } cases[] = {
        {"2 3 9 8", "6 3 3 3", "2 6 9 8", 1, 1, 1, 1, 6},
        {"1 8 10 10", "8 8 1 1", "1 8 10 10", 1, 0, 1, 1, 8},
        {"2 4 9 9", "8 2 3 3", "2 8 5 5", 2, 1, 1, 2, 8},
        {"2 6 9 9", "6 1 3 3", "2 6 9 9", 1, 2, 2, 6, 6},
        {"2 3 17", "5 3 4", "2 5 7", 2, 0, 1, 1, 5},
        {"1 2 5 6 7", "4 2 2 2 2", "1 4 4 5 6", 1, 0, 1, 1, 4},
    };
    for (size_t i = 0; i < TOR_COUNT_OF(cases); i++)
        for (int frozen = 0; frozen < 2; frozen++)
            for (int epilogue = 0; epilogue < 2; epilogue++) {
                char channels[8];
                snprintf(channels, sizeof channels, "%d", (int)cases[i].out);
                TorValue *y =
                    conv(IN(FLOATS(cases[i].x)), input(FLOATS(cases[i].w), frozen, 0),
                         epilogue ? input(FLOATS(channels), frozen, 0) : NULL, cases[i].stride,
                         cases[i].padding, cases[i].dilation, cases[i].groups);
                if (epilogue) y = UNARY(relu, BINARY(add, y, IN(FLOATS(cases[i].y))));
                OUTPUTS(y);
                check(cases[i].w);
            }
}

// conv, batch norm of the evaluation mode, relu; and with parts that are not frozen.
static void test_conv_batch_norm(void **state) {
    (void)state;
    for (int variant = 0; variant < 8; variant++) {
        bool bias = variant & 1, frozen = variant & 2, grouped = variant & 4;
        Tensor *var = FLOATS("6");
        for (int i = 0; i < 6; i++) tensor_set(var, i, 0.5 + 0.1 * i);
        TorValue *y = conv(IN(FLOATS("2 4 6 6")), FROZEN(FLOATS(grouped ? "6 2 3 3" : "6 4 3 3")),
                           bias ? FROZEN(FLOATS("6")) : NULL, 1, 1, 1, grouped ? 2 : 1);
        y = ATEN("aten._native_batch_norm_legit_no_training.default", V(y),
                 V(input(FLOATS("6"), frozen, 0)), V(FROZEN(FLOATS("6"))), V(FROZEN(FLOATS("6"))),
                 V(FROZEN(var)), TOR_ARG_OF_FLOAT(0.1), TOR_ARG_OF_FLOAT(1e-5));
        OUTPUTS(UNARY(relu, y));
        check("conv and batch norm");
    }
}

static TorValue *attention_parts(TorValue *q, TorValue *k, TorValue *v, TorValue *mask,
                                 int spelling) {
    const char *swap = q->rank == 4 ? "0 1 3 2" : "0 2 1";
    if (spelling == 1) q = BINARY(mul, q, weak(0.25));
    if (spelling == 2) k = BINARY(mul, k, weak(0.25));
    TorValue *s = OP(g, matmul, INS(q, permuted(k, swap)), NONE);
    if (spelling == 0) s = BINARY(mul, s, weak(0.25));
    if (spelling == 3) s = BINARY(div, s, weak(4));
    if (mask && mask->dtype == TOR_bool)
        s = OP(g, where, INS(mask, s, weak(-INFINITY)), NONE);
    else if (mask)
        s = spelling & 1 ? BINARY(add, mask, s) : BINARY(add, s, mask);
    return OP(g, matmul, INS(softmaxed(s, s->rank - 1), v), NONE);
}

static void test_attention(void **state) {
    (void)state;
    for (int spelling = 0; spelling < 4; spelling++)
        for (int mask = 0; mask < 4; mask++)
            for (int rank = 3; rank <= 4; rank++) {
                TorValue *q = IN(FLOATS(rank == 4 ? "2 3 9 16" : "6 9 16")),
                         *k = IN(FLOATS(rank == 4 ? "2 3 11 16" : "6 11 16")),
                         *v = IN(FLOATS(rank == 4 ? "2 3 11 8" : "6 11 8"));
                Tensor *m = mask == 3 ? tensor_of(TOR_bool, "9 11")
                                      : FLOATS(mask == 2 && rank == 4 ? "2 1 1 11" : "9 11");
                for (int i = 0; mask == 3 && i < 9; i++)
                    tensor_set(m, i * 11 + i, 1);  // a key in each row
                OUTPUTS(attention_parts(q, k, v, mask ? IN(m) : NULL, spelling));
                check("attention in parts");
            }
    for (int causal = 0; causal < 2; causal++) {
        TorValue *q = IN(FLOATS("2 4 9 16")), *k = IN(FLOATS("2 2 9 16")),
                 *v = IN(FLOATS("2 2 9 8"));
        OUTPUTS(OP(g, attention, INS(q, k, v),
                   ATTRS(TOR_A_FLOAT(scale, 0.25), TOR_A_INT(causal, causal))));
        check("grouped attention");
    }
    // From one projection to the next, as models spell it.
    TorValue *x = IN(FLOATS("2 7 24")), *h[3];
    for (int i = 0; i < 3; i++)
        h[i] = permuted(viewed(OP(g, linear, INS(x, FROZEN(FLOATS("24 24"))), NONE), "2 7 3 8"),
                        "0 2 1 3");
    TorValue *y =
        viewed(permuted(OP(g, attention, INS(h[0], h[1], h[2]), ATTRS(TOR_A_FLOAT(scale, 0.35))),
                        "0 2 1 3"),
               "2 7 24");
    OUTPUTS(BINARY(add, OP(g, linear, INS(y, FROZEN(FLOATS("24 24"))), NONE), x));
    check("an attention block");
}

static void test_pools(void **state) {
    (void)state;
    for (int last = 0; last < 2; last++) {
#define X IN(last ? strided(TOR_float32, "2 3 9 10", "270 1 30 3") : FLOATS("2 3 9 10"))
        TorNode *node;
        TorValue *x = X;
        MUST(tor_graph_add(g, NULL, TOR_OP_max_pool, &x, 1,
                           ATTRS(INTS(kernel, 3, 2), INTS(stride, 2, 2), INTS(padding, 1, 1),
                                 INTS(dilation, 1, 1)),
                           2, &node));
        OUTPUTS(node->outputs[0], node->outputs[1]);
        check("max pool with indices");
        x = X;
        MUST(tor_graph_add(g, NULL, TOR_OP_max_pool, &x, 1,
                           ATTRS(INTS(kernel, 2, 2), INTS(stride, 1, 2), INTS(padding, 0, 0),
                                 INTS(dilation, 2, 1)),
                           2, &node));
        OUTPUTS(UNARY(neg, node->outputs[0]));
        check("max pool without");
        for (int64_t count = 0; count < 2; count++) {
            OUTPUTS(OP(g, avg_pool, INS(X),
                       ATTRS(INTS(kernel, 3, 3), INTS(stride, 2, 2), INTS(padding, 1, 1),
                             TOR_A_INT(count_include_pad, count))));
            check("avg pool");
        }
        OUTPUTS(OP(g, adaptive_avg_pool, INS(X), ATTRS(DIMS(g, "4 3"))),
                reduced(TOR_OP_mean, X, 12, true));
        check("adaptive avg pool");
#undef X
    }
}

int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    setenv("TOROID_VERIFY", "1", 1);
    const struct CMUnitTest tests[] = {TEST(test_linear_chain), TEST(test_linear_many_uses),
                                       TEST(test_linear_casts), TEST(test_matmul),
                                       TEST(test_conv),         TEST(test_conv_batch_norm),
                                       TEST(test_attention),    TEST(test_pools)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

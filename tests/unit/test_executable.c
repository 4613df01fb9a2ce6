// Small graphs through the whole compiler, against the interpreter: contractions with what follows
// them, row ops, reductions, broadcasting, movement and indexing, and random graphs of all these.
#include "../support/exe.h"

static TorValue *weak(double x) { return number(g, x); }

// ---------------------------------------------------------------- contractions

static void test_linear_chain(void **state) {
    (void)state;
    for (int variant = 0; variant < 16; variant++) {
        bool frozen = variant & 1, rank3 = variant & 2, bias = variant & 4, trans = variant & 8;
        TorValue *x = IN(FLOATS(rank3 ? "3 5 24" : "7 24")), *w = input(FLOATS(trans ? "24 40" : "40 24"), frozen, 0);
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
    TorValue *gate = OP(g, linear, INS(x, w), NONE), *up = OP(g, linear, INS(x, FROZEN(FLOATS("16 16"))), NONE);
    OUTPUTS(BINARY(mul, UNARY(silu, gate), up));
    check("gated");

    x = IN(FLOATS("16")), w = FROZEN(FLOATS("8 16"));
    OUTPUTS(BINARY(add, OP(g, linear, INS(x, w), NONE), IN(FLOATS(""))));
    check("linear of one row");

    x = IN(strided(TOR_float32, "4 3 16", "16 64 1")), w = FROZEN(FLOATS("8 16"));
    OUTPUTS(BINARY(add, OP(g, linear, INS(x, w), NONE), IN(strided(TOR_float32, "4 3 8", "1 4 12"))));
    check("rows that do not merge, operand in another order");
}

static void test_linear_casts(void **state) {
    (void)state;
    TorValue *x = IN(FLOATS("6 16")), *w = FROZEN(FLOATS("16 16"));
    TorValue *y = OP(g, cast, INS(OP(g, linear, INS(x, w), NONE)), ATTRS(TOR_A_DTYPE(dtype, TOR_float64)));
    OUTPUTS(BINARY(gt, OP(g, linear, INS(x, w), NONE), weak(0.01)), BINARY(add, y, IN(tensor_of(TOR_float64, "16"))));
    check("epilogue of another type");
}

static void test_matmul(void **state) {
    (void)state;
    const char *a[] = {"5 7", "2 5 7", "2 3 5 7"}, *b[] = {"7 6", "2 7 6", "2 3 7 6"}, *c[] = {"5 6", "2 5 6", "2 3 5 6"}, *swap[] = {"1 0", "0 2 1", "0 1 3 2"}, *bt[] = {"6 7", "2 6 7", "2 3 6 7"};
    for (int r = 0; r < 3; r++) {
        OUTPUTS(OP(g, matmul, INS(IN(FLOATS(a[r])), IN(FLOATS(b[r]))), NONE));
        check("matmul");
        TorValue *y = OP(g, matmul, INS(IN(FLOATS(a[r])), permuted(IN(FLOATS(bt[r])), swap[r])), NONE);
        OUTPUTS(UNARY(tanh, BINARY(add, BINARY(mul, y, weak(0.5)), IN(FLOATS(c[r])))));
        check("matmul with a transposed operand and an epilogue");
        OUTPUTS(BINARY(add, OP(g, matmul, INS(IN(FLOATS(a[r])), IN(FLOATS(b[r]))), NONE), IN(FLOATS("6"))));
        check("matmul with a row");
        OUTPUTS(BINARY(add, OP(g, matmul, INS(IN(FLOATS(a[r])), IN(FLOATS(b[r]))), NONE), IN(FLOATS("5 1"))));
        check("matmul with a column");
    }
    OUTPUTS(OP(g, matmul, INS(expanded(IN(FLOATS("1 5 7")), "4 5 7"), IN(FLOATS("4 7 3"))), NONE));
    check("matmul of an expanded operand");
}

static TorValue *conv(TorValue *x, TorValue *w, TorValue *b, int64_t stride, int64_t padding, int64_t dilation, int64_t groups) {
    int64_t s[3] = {stride, stride, stride}, p[3] = {padding, padding, padding}, d[3] = {dilation, dilation, dilation};
    int n = x->rank - 2;
    TorValue *in[] = {x, w, b};
    return OP(g, conv, in, b ? 3 : 2, ATTRS(TOR_A_INTS(stride, s, n), TOR_A_INTS(padding, p, n), TOR_A_INTS(dilation, d, n), TOR_A_INT(groups, groups)));
}

static void test_conv(void **state) {
    (void)state;
    static const struct {
        const char *x, *w, *y;
        int64_t stride, padding, dilation, groups, out;
    } cases[] = {
        {"2 3 9 8", "6 3 3 3", "2 6 9 8", 1, 1, 1, 1, 6},    {"1 8 10 10", "8 8 1 1", "1 8 10 10", 1, 0, 1, 1, 8}, {"2 4 9 9", "8 2 3 3", "2 8 5 5", 2, 1, 1, 2, 8},
        {"2 6 9 9", "6 1 3 3", "2 6 9 9", 1, 2, 2, 6, 6},    {"2 3 17", "5 3 4", "2 5 7", 2, 0, 1, 1, 5},         {"1 2 5 6 7", "4 2 2 2 2", "1 4 4 5 6", 1, 0, 1, 1, 4},
    };
    for (size_t i = 0; i < TOR_COUNT_OF(cases); i++)
        for (int frozen = 0; frozen < 2; frozen++)
            for (int epilogue = 0; epilogue < 2; epilogue++) {
                char channels[8];
                snprintf(channels, sizeof channels, "%d", (int)cases[i].out);
                TorValue *y = conv(IN(FLOATS(cases[i].x)), input(FLOATS(cases[i].w), frozen, 0), epilogue ? input(FLOATS(channels), frozen, 0) : NULL, cases[i].stride, cases[i].padding, cases[i].dilation, cases[i].groups);
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
        TorValue *y = conv(IN(FLOATS("2 4 6 6")), FROZEN(FLOATS(grouped ? "6 2 3 3" : "6 4 3 3")), bias ? FROZEN(FLOATS("6")) : NULL, 1, 1, 1, grouped ? 2 : 1);
        y = ATEN("aten._native_batch_norm_legit_no_training.default", V(y), V(input(FLOATS("6"), frozen, 0)), V(FROZEN(FLOATS("6"))), V(FROZEN(FLOATS("6"))), V(FROZEN(var)), TOR_ARG_OF_FLOAT(0.1), TOR_ARG_OF_FLOAT(1e-5));
        OUTPUTS(UNARY(relu, y));
        check("conv and batch norm");
    }
}

static TorValue *attention_parts(TorValue *q, TorValue *k, TorValue *v, TorValue *mask, int spelling) {
    const char *swap = q->rank == 4 ? "0 1 3 2" : "0 2 1";
    if (spelling == 1) q = BINARY(mul, q, weak(0.25));
    if (spelling == 2) k = BINARY(mul, k, weak(0.25));
    TorValue *s = OP(g, matmul, INS(q, permuted(k, swap)), NONE);
    if (spelling == 0) s = BINARY(mul, s, weak(0.25));
    if (spelling == 3) s = BINARY(div, s, weak(4));
    if (mask && mask->dtype == TOR_bool) s = OP(g, where, INS(mask, s, weak(-INFINITY)), NONE);
    else if (mask) s = spelling & 1 ? BINARY(add, mask, s) : BINARY(add, s, mask);
    return OP(g, matmul, INS(softmaxed(s, s->rank - 1), v), NONE);
}

static void test_attention(void **state) {
    (void)state;
    for (int spelling = 0; spelling < 4; spelling++)
        for (int mask = 0; mask < 4; mask++)
            for (int rank = 3; rank <= 4; rank++) {
                TorValue *q = IN(FLOATS(rank == 4 ? "2 3 9 16" : "6 9 16")), *k = IN(FLOATS(rank == 4 ? "2 3 11 16" : "6 11 16")), *v = IN(FLOATS(rank == 4 ? "2 3 11 8" : "6 11 8"));
                Tensor *m = mask == 3 ? tensor_of(TOR_bool, "9 11") : FLOATS(mask == 2 && rank == 4 ? "2 1 1 11" : "9 11");
                for (int i = 0; mask == 3 && i < 9; i++) tensor_set(m, i * 11 + i, 1);  // a key in each row
                OUTPUTS(attention_parts(q, k, v, mask ? IN(m) : NULL, spelling));
                check("attention in parts");
            }
    for (int causal = 0; causal < 2; causal++) {
        TorValue *q = IN(FLOATS("2 4 9 16")), *k = IN(FLOATS("2 2 9 16")), *v = IN(FLOATS("2 2 9 8"));
        OUTPUTS(OP(g, attention, INS(q, k, v), ATTRS(TOR_A_FLOAT(scale, 0.25), TOR_A_INT(causal, causal))));
        check("grouped attention");
    }
    // From one projection to the next, as models spell it.
    TorValue *x = IN(FLOATS("2 7 24")), *h[3];
    for (int i = 0; i < 3; i++) h[i] = permuted(viewed(OP(g, linear, INS(x, FROZEN(FLOATS("24 24"))), NONE), "2 7 3 8"), "0 2 1 3");
    TorValue *y = viewed(permuted(OP(g, attention, INS(h[0], h[1], h[2]), ATTRS(TOR_A_FLOAT(scale, 0.35))), "0 2 1 3"), "2 7 24");
    OUTPUTS(BINARY(add, OP(g, linear, INS(y, FROZEN(FLOATS("24 24"))), NONE), x));
    check("an attention block");
}

static void test_pools(void **state) {
    (void)state;
    for (int last = 0; last < 2; last++) {
#define X IN(last ? strided(TOR_float32, "2 3 9 10", "270 1 30 3") : FLOATS("2 3 9 10"))
        TorNode *node;
        TorValue *x = X;
        MUST(tor_graph_add(g, NULL, TOR_OP_max_pool, &x, 1, ATTRS(INTS(kernel, 3, 2), INTS(stride, 2, 2), INTS(padding, 1, 1), INTS(dilation, 1, 1)), 2, &node));
        OUTPUTS(node->outputs[0], node->outputs[1]);
        check("max pool with indices");
        x = X;
        MUST(tor_graph_add(g, NULL, TOR_OP_max_pool, &x, 1, ATTRS(INTS(kernel, 2, 2), INTS(stride, 1, 2), INTS(padding, 0, 0), INTS(dilation, 2, 1)), 2, &node));
        OUTPUTS(UNARY(neg, node->outputs[0]));
        check("max pool without");
        for (int64_t count = 0; count < 2; count++) {
            OUTPUTS(OP(g, avg_pool, INS(X), ATTRS(INTS(kernel, 3, 3), INTS(stride, 2, 2), INTS(padding, 1, 1), TOR_A_INT(count_include_pad, count))));
            check("avg pool");
        }
        OUTPUTS(OP(g, adaptive_avg_pool, INS(X), ATTRS(DIMS(g, "4 3"))), reduced(TOR_OP_mean, X, 12, true));
        check("adaptive avg pool");
#undef X
    }
}

// ---------------------------------------------------------------- rows and reductions

static void test_layer_norm(void **state) {
    (void)state;
    for (int count = 1; count <= 3; count++)
        for (int affine = 0; affine < 3; affine++)
            for (int rms = 0; rms < 2; rms++) {
                static const char *const sizes[] = {"", "6", "5 6", "3 5 6"};
                TorValue *in[] = {IN(FLOATS("3 5 6")), IN(FLOATS(sizes[count])), IN(FLOATS(sizes[count]))};
                TorAttr attrs[] = {TOR_A_INT(count, count), TOR_A_FLOAT(eps, 1e-5), TOR_A_INT(has_gamma, affine > 0), TOR_A_INT(has_beta, affine > 1 && !rms)};
                TorValue *y = add_op(g, rms ? TOR_OP_rms_norm : TOR_OP_layer_norm, in, 1 + (affine > 0) + (affine > 1 && !rms), attrs, 4);
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
            OUTPUTS(softmaxed(BINARY(mul, x, weak(3)), axis), OP(g, log_softmax, INS(x), ATTRS(TOR_A_INT(axis, axis))));
            check("softmax");
            x = IN(FLOATS("4 5 33"));
            OUTPUTS(BINARY(mul, softmaxed(BINARY(add, x, IN(FLOATS("5 1"))), axis), IN(FLOATS("33"))));
            check("softmax within a chain");
        }
    OUTPUTS(softmaxed(IN(FLOATS("4 1")), 1));
    check("softmax of one element");
}

static void test_reductions(void **state) {
    (void)state;
    static const TorOp ops[] = {TOR_OP_sum, TOR_OP_mean, TOR_OP_amax, TOR_OP_amin, TOR_OP_var, TOR_OP_prod};
    for (size_t i = 0; i < TOR_COUNT_OF(ops); i++)
        for (uint32_t mask = 0; mask < 16; mask++)
            for (int keep = 0; keep < 2; keep++)
                for (int order = 0; order < 2; order++) {
                    if (ops[i] == TOR_OP_var && mask == 0) continue;
                    TorValue *x = IN(order ? strided(TOR_float32, "3 4 2 5", "1 3 12 24") : FLOATS("3 4 2 5"));
                    TorValue *y = reduced(ops[i], UNARY(tanh, x), mask, keep);
                    OUTPUTS(y, UNARY(neg, y));
                    check(tor_op_name(ops[i]));
                }
    for (int axis = -1; axis < 3; axis++)
        for (int keep = 0; keep < 2; keep++) {
            uint32_t mask = axis < 0 ? 7 : 1u << axis;
            TorValue *x = IN(FLOATS("3 4 5")), *b = BINARY(gt, x, weak(0.5));
            OUTPUTS(reduced(TOR_OP_argmax, x, mask, keep), reduced(TOR_OP_argmin, x, mask, keep), reduced(TOR_OP_any, b, mask, keep), reduced(TOR_OP_all, b, mask, keep));
            check("arg reductions");
        }
    TorValue *s = IN(FLOATS(""));
    OUTPUTS(reduced(TOR_OP_sum, s, 0, false), reduced(TOR_OP_mean, s, 0, true), reduced(TOR_OP_amax, UNARY(neg, s), 0, false));
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
    OUTPUTS(BINARY(div, x, reduced(TOR_OP_sum, UNARY(abs, x), 3, true)), BINARY(div, x, reduced(TOR_OP_sum, UNARY(abs, x), 5, true)));
    check("two sets of axes");

    x = IN(FLOATS("6 40"));  // more than one program holds
    for (int i = 0; i < 60; i++) x = i % 7 == 6 ? BINARY(sub, x, reduced(TOR_OP_mean, x, 2, true)) : UNARY(tanh, BINARY(mul, x, weak(1.0 + i / 64.0)));
    OUTPUTS(x);
    check("a long chain with reductions");

    x = IN(FLOATS("6 40"));
    for (int i = 0; i < 30; i++) x = BINARY(add, x, IN(FLOATS(i % 2 ? "40" : "6 1")));
    OUTPUTS(x);
    check("many operands");

    x = IN(FLOATS("8 8"));  // many row values at once: the program is full in the middle of a group
    for (int i = 0; i < 12; i++) x = BINARY(mul, x, UNARY(exp, UNARY(neg, UNARY(abs, reduced(TOR_OP_amax, x, 2, true)))));
    OUTPUTS(x);
    check("many row values");
}

// ---------------------------------------------------------------- maps and views

static void test_broadcasting(void **state) {
    (void)state;
    static const char *const shapes[] = {"", "1", "5", "4 1", "1 5", "4 5", "3 1 1", "3 4 1", "1 4 5", "3 1 5", "3 4 5"};
    for (size_t a = 0; a < TOR_COUNT_OF(shapes); a++)
        for (size_t b = 0; b < TOR_COUNT_OF(shapes); b++) {
            TorValue *x = IN(FLOATS(shapes[a])), *y = IN(FLOATS(shapes[b]));
            OUTPUTS(BINARY(sub, x, y), UNARY(neg, BINARY(mul, BINARY(add, x, weak(1)), y)));
            check(shapes[a]);
        }
    TorValue *c = IN(tensor_of(TOR_bool, "4 1"));
    OUTPUTS(OP(g, where, INS(c, IN(FLOATS("5")), weak(2)), NONE), OP(g, where, INS(c, weak(1), IN(FLOATS("3 4 5"))), NONE));
    check("where");
}

static TorValue *some_view(int kind, TorValue *x) {  // x is [4, 6, 5]
    switch (kind) {
    case 0: return viewed(x, "24 5");
    case 1: return permuted(x, "2 0 1");
    case 2: return sliced(x, 1, 1, 4, 1);
    case 3: return sliced(x, 2, 0, 3, 2);
    case 4: return viewed(permuted(x, "1 0 2"), "24 5");  // needs a copy
    case 5: return expanded(viewed(x, "1 4 6 5"), "2 4 6 5");
    case 6: return viewed(sliced(x, 0, 2, 1, 1), "6 5");
    case 7: return permuted(viewed(x, "2 2 6 5"), "1 0 3 2");
    case 8: return viewed(expanded(viewed(x, "4 6 1 5"), "4 6 2 5"), "48 5");
    case 9: return OP(g, as_strided, INS(x), ATTRS(DIMS(g, "3 4"), ((TorAttr){.key = TOR_ATTR_strides, .kind = TOR_ATTR_DIMS, .dims = (TorDim[]){tor_int_const(g, 2), tor_int_const(g, 7)}, .count = 2}), TOR_A_DIM(offset, tor_int_const(g, 3))));
    default: return x;
    }
}

static TorValue *consume(int kind, TorValue *x) {
    int64_t flat = 1, last;
    switch (kind) {
    case 0: return UNARY(tanh, x);
    case 1: return reduced(TOR_OP_sum, x, 1, false);
    case 2: return softmaxed(x, x->rank - 1);
    case 3: return OP(g, cat, INS(x, x), ATTRS(TOR_A_INT(axis, 0)));
    case 4: return OP(g, flip, INS(x), ATTRS(INTS(axes, 1)));
    case 5: return OP(g, contiguous, INS(x), NONE);
    case 6:
        for (int d = 0; d < x->rank; d++) {
            assert_true(tor_int_known(g, x->dim[d], &last));
            flat *= last;
        }
        return viewed(x, (char[]){(char)('0' + flat / 100), (char)('0' + flat / 10 % 10), (char)('0' + flat % 10), 0});
    case 7: {
        int64_t size[2] = {8};
        assert_true(tor_int_known(g, x->dim[x->rank - 1], &size[1]));
        return OP(g, linear, INS(x, IN(randomise(new_tensor(TOR_float32, 2, size, NULL)))), NONE);
    }
    case 8: return OP(g, index_select, INS(x, IN(INDICES(1, 0, 1))), ATTRS(TOR_A_INT(axis, 1)));
    case 9: return BINARY(add, x, OP(g, contiguous, INS(UNARY(neg, x)), NONE));
    case 10: return OP(g, cumsum, INS(x), ATTRS(TOR_A_INT(axis, 1)));
    case 11: return OP(g, pad, INS(sliced(x, 0, 0, 2, 1)), ATTRS(dims_attr(g, TOR_ATTR_low, x->rank == 2 ? "1 -1" : x->rank == 3 ? "1 -1 2" : "1 -1 2 0"), dims_attr(g, TOR_ATTR_high, x->rank == 2 ? "0 3" : x->rank == 3 ? "0 3 -1" : "0 3 -1 1"), TOR_A_SCALAR(value, ((TorScalar){.dtype = TOR_float64, .f = 7}))));
    case 12: return OP(g, layer_norm, INS(x), ATTRS(TOR_A_INT(count, 1), TOR_A_FLOAT(eps, 1e-3)));
    default: return x;
    }
}

static void test_views_into_consumers(void **state) {
    (void)state;
    for (int view = 0; view <= 10; view++)
        for (int consumer = 0; consumer <= 13; consumer++)
            for (int source = 0; source < 3; source++) {
                char what[64];
                snprintf(what, sizeof what, "view %d, consumer %d, source %d", view, consumer, source);
                TorValue *x = source == 0 ? IN(FLOATS("4 6 5")) : source == 1 ? UNARY(neg, IN(FLOATS("4 6 5"))) : IN(strided(TOR_float32, "4 6 5", "5 20 1"));
                OUTPUTS(consume(consumer, some_view(view, x)));
                check(what);
            }
}

// ---------------------------------------------------------------- movement and indexing

static void test_moves(void **state) {
    (void)state;
    for (int axis = 0; axis < 3; axis++) {
        TorValue *a = IN(FLOATS("2 3 4")), *b = IN(strided(TOR_float32, "2 3 4", "1 2 6")), *c = UNARY(neg, a);
        OUTPUTS(OP(g, cat, INS(a, b, c, sliced(a, axis, 1, 1, 1)), ATTRS(TOR_A_INT(axis, axis))), OP(g, cumsum, INS(a), ATTRS(TOR_A_INT(axis, axis))));
        check("cat");
        a = IN(FLOATS("2 3 4"));
        OUTPUTS(ATEN("aten.roll.default", V(a), TOR_ARG_OF_LIST(((TorArg[]){TOR_ARG_OF_INT(1)}), 1), TOR_ARG_OF_LIST(((TorArg[]){TOR_ARG_OF_INT(axis)}), 1)));
        check("roll");
        a = IN(tensor_of(TOR_bool, "2 3 4"));
        OUTPUTS(ATEN("aten.cumsum.default", V(a), TOR_ARG_OF_INT(axis)));
        check("cumsum of bool");
    }
    TorValue *x = IN(FLOATS("3 4"));
    OUTPUTS(OP(g, flip, INS(x), ATTRS(INTS(axes, 0, 1))), OP(g, slice_scatter, INS(x, IN(FLOATS("3 2"))), ATTRS(TOR_A_INT(axis, 1), TOR_A_DIM(start, tor_int_const(g, 1)), TOR_A_INT(step, 2))));
    check("flip, slice_scatter");
    TorValue *n = OP(g, arange, NULL, 0, ATTRS(DIMS(g, "7"), TOR_A_DTYPE(dtype, TOR_int64), TOR_A_DIM(start, tor_int_const(g, -3)), TOR_A_INT(step, 2)));
    TorValue *f = OP(g, full, NULL, 0, ATTRS(DIMS(g, "2 7"), TOR_A_DTYPE(dtype, TOR_int64), TOR_A_SCALAR(value, ((TorScalar){.dtype = TOR_int64, .i = 5}))));
    OUTPUTS(n, f, BINARY(mul, n, f), OP(g, cat, INS(viewed(n, "1 7"), f), ATTRS(TOR_A_INT(axis, 0))));
    check("made tensors");
}

static void test_indexing(void **state) {
    (void)state;
    OUTPUTS(OP(g, embedding, INS(FROZEN(FLOATS("9 4")), IN(INDICES(3, 0, 8, 3))), NONE));
    check("embedding");
    TorValue *ix = IN(INDICES(3, 0, 2, 1, 1, 0));
    OUTPUTS(OP(g, embedding, INS(permuted(IN(FLOATS("4 9")), "1 0"), viewed(ix, "2 3")), NONE));
    check("embedding of a transposed table");
    for (int axis = 0; axis < 3; axis++) {
        TorValue *x = IN(FLOATS("4 5 6"));
        OUTPUTS(OP(g, index_select, INS(x, IN(INDICES(3, 0, 3))), ATTRS(TOR_A_INT(axis, axis))),
                OP(g, gather, INS(x, expanded(viewed(IN(INDICES(1, 3, 0)), "3 1 1"), "3 2 4")), ATTRS(TOR_A_INT(axis, axis))));
        check("index_select, gather");
        for (int add = 0; add < 2; add++) {
            x = IN(FLOATS("4 5 6"));
            OUTPUTS(OP(g, scatter, INS(x, expanded(viewed(IN(INDICES(1, 3, 1)), "3 1 1"), "3 2 4"), IN(FLOATS("3 2 4"))), ATTRS(TOR_A_INT(axis, axis), TOR_A_STR(reduce, add ? "add" : ""))));
            check("scatter");
        }
        x = IN(FLOATS("4 5 6"));
        TorDim one[3] = {tor_int_const(g, 4), tor_int_const(g, 5), tor_int_const(g, 6)};
        one[axis] = tor_int_const(g, 3);
        TorValue *source = OP(g, expand, INS(IN(FLOATS("1 1 1"))), ATTRS(TOR_A_DIMS(dims, one, 3)));
        OUTPUTS(OP(g, index_copy, INS(x, IN(INDICES(2, 0, 2)), source), ATTRS(TOR_A_INT(axis, axis))));
        check("index_copy");
    }
    static const int64_t pairs[][2] = {{0, 1}, {1, 2}, {0, 2}, {0, 3}, {1, 3}};
    for (size_t i = 0; i < TOR_COUNT_OF(pairs); i++)
        for (int shape = 0; shape < 2; shape++) {
            TorValue *x = IN(FLOATS("4 5 6 3")), *a = IN(INDICES(0, -1, 2, 0)), *b = IN(INDICES(-2, 1, 2, -2));
            if (shape) a = viewed(a, "4 1");
            TorAttr axes = TOR_A_INTS(axes, pairs[i], 2);
            OUTPUTS(OP(g, index, INS(x, a, b), ATTRS(axes)));
            check("index");
            for (int add = 0; add < 2; add++) {
                x = IN(FLOATS("4 5 6 3")), a = IN(INDICES(0, -1, 2, 0)), b = IN(INDICES(-2, 1, 2, -2));
                if (shape) a = viewed(a, "4 1");
                OUTPUTS(OP(g, index_put, INS(x, IN(FLOATS("")), a, b), ATTRS(axes, TOR_A_INT(accumulate, add))));
                check("index_put of one value");
            }
        }
    for (int64_t axis = 0; axis < 3; axis++) {
        TorValue *x = IN(FLOATS("4 5 6"));
        OUTPUTS(OP(g, index_put, INS(x, IN(FLOATS(axis == 2 ? "5 3" : axis == 1 ? "3 6" : "3 5 6")), IN(INDICES(1, -1, 1))), ATTRS(TOR_A_INTS(axes, &axis, 1))));
        check("index_put with duplicates");
    }
}

// ---------------------------------------------------------------- random graphs

static TorValue *pool[40];
static int n_pool;

static TorValue *pick(void) { return pool[random_below(n_pool)]; }

static int64_t size_of(const TorValue *v, int d) {
    int64_t n = 0;
    assert_true(tor_int_known(g, v->dim[d], &n));
    return n;
}

static bool broadcastable(const TorValue *a, const TorValue *b) {
    for (int i = 1; i <= TOR_MIN(a->rank, b->rank); i++) {
        int64_t m = size_of(a, a->rank - i), n = size_of(b, b->rank - i);
        if (m != n && m != 1 && n != 1) return false;
    }
    return true;
}

static TorValue *grow_graph(void) {
    TorValue *x = pick(), *y = pick();
    int64_t axes[TOR_MAX_RANK];
    int kind = (int)random_below(14), axis = x->rank ? (int)random_below(x->rank) : 0;
    static const TorOp unary[] = {TOR_OP_neg, TOR_OP_tanh, TOR_OP_sigmoid, TOR_OP_abs, TOR_OP_gelu_erf, TOR_OP_silu};
    static const TorOp binary[] = {TOR_OP_add, TOR_OP_sub, TOR_OP_mul, TOR_OP_maximum};
    static const TorOp reduction[] = {TOR_OP_sum, TOR_OP_mean, TOR_OP_amax};
    switch (kind) {
    case 0: case 1: return add_op(g, unary[random_below(6)], INS(x), NONE);
    case 2: case 3: case 4: return broadcastable(x, y) ? UNARY(tanh, add_op(g, binary[random_below(4)], INS(x, y), NONE)) : NULL;
    case 5:
        for (int d = 0; d < x->rank; d++) axes[d] = d;
        for (int d = x->rank - 1; d > 0; d--) {
            int k = (int)random_below(d + 1);
            int64_t t = axes[d];
            axes[d] = axes[k], axes[k] = t;
        }
        return x->rank ? OP(g, permute, INS(x), ATTRS(TOR_A_INTS(axes, axes, x->rank))) : NULL;
    case 6: {
        TorDim dims[TOR_MAX_RANK];
        int rank = 0;
        bool split = random_below(2);
        if (x->rank < 2 || x->rank > 4) return NULL;
        for (int d = 0; d < x->rank; d++) {
            if (split && d == axis && size_of(x, d) % 2 == 0) dims[rank++] = tor_int_const(g, 2), dims[rank++] = tor_int_const(g, size_of(x, d) / 2);
            else if (!split && d == axis && d + 1 < x->rank) dims[rank++] = tor_int_mul(g, x->dim[d], x->dim[d + 1]), d++;
            else dims[rank++] = x->dim[d];
        }
        return OP(g, view, INS(x), ATTRS(TOR_A_DIMS(dims, dims, rank)));
    }
    case 7: {
        if (!x->rank || size_of(x, axis) < 2) return NULL;
        int64_t n = size_of(x, axis), step = 1 + random_below(2), first = random_below(n - 1);
        return sliced(x, axis, first, (n - first + step - 1) / step, step);
    }
    case 8: return x->rank ? reduced(reduction[random_below(3)], x, (uint32_t)random_below(1 << x->rank), random_below(3) > 0) : NULL;
    case 9: return x->rank ? softmaxed(x, axis) : NULL;
    case 10: return x->rank ? OP(g, layer_norm, INS(x), ATTRS(TOR_A_INT(count, 1), TOR_A_FLOAT(eps, 0.1))) : NULL;
    case 11: {
        int64_t size[2] = {1 + random_below(8)};
        if (!x->rank || g->n_inputs > 30) return NULL;
        size[1] = size_of(x, x->rank - 1);
        return UNARY(tanh, OP(g, linear, INS(x, input(randomise(new_tensor(TOR_float32, 2, size, NULL)), random_below(2), 0)), NONE));
    }
    case 12:
        if (x->rank != y->rank || x->rank < 2) return NULL;
        for (int d = 0; d < x->rank; d++)
            if (d < x->rank - 2 ? size_of(x, d) != size_of(y, d) : d == x->rank - 2 && size_of(y, d) != size_of(x, d + 1)) return NULL;
        return UNARY(tanh, OP(g, matmul, INS(x, y), NONE));
    default: {
        if (!x->rank) return NULL;
        for (int d = 0; d < x->rank; d++)
            if (y->rank != x->rank || (d != axis && size_of(y, d) != size_of(x, d))) y = x;
        return OP(g, cat, INS(x, y), ATTRS(TOR_A_INT(axis, axis)));
    }
    }
}

static void test_random_graphs(void **state) {
    (void)state;
    const char *rounds = getenv("TOROID_TEST_ROUNDS"), *seed = getenv("TOROID_TEST_SEED");
    uint64_t first = seed ? strtoull(seed, NULL, 10) : 1;
    for (uint64_t round = first; round < first + (rounds ? strtoull(rounds, NULL, 10) : 300); round++) {
        static const char *const shapes[] = {"4 6", "6 4", "6", "1 6", "2 4 6", "2 1 6", "4 1", "2 6 4", ""};
        random_state = round * 77777;
        n_pool = 0;
        for (int i = 0; i < 4; i++) pool[n_pool++] = input(FLOATS(shapes[random_below(9)]), random_below(4) == 0, 0);
        while (n_pool < 22) {
            TorValue *v = grow_graph();
            if (!v) continue;
            double numel = 1;
            for (int d = 0; d < v->rank; d++) numel *= (double)size_of(v, d);
            if (v->rank <= 6 && numel < 20000) pool[n_pool++] = v;
        }
        TorValue *out[4];
        for (int i = 0; i < 4; i++) out[i] = i == 0 ? pool[n_pool - 1] : pick();
        outputs(out, 4);
        char what[32];
        snprintf(what, sizeof what, "seed %d", (int)round);
        tolerance = 2e-4;
        check(what);
    }
}

int main(void) {
    setenv("TOROID_VERIFY", "1", 1);
    const struct CMUnitTest tests[] = {
        TEST(test_linear_chain), TEST(test_linear_many_uses), TEST(test_linear_casts), TEST(test_matmul), TEST(test_conv), TEST(test_conv_batch_norm), TEST(test_attention), TEST(test_pools),
        TEST(test_layer_norm), TEST(test_softmax), TEST(test_reductions), TEST(test_row_chains), TEST(test_broadcasting), TEST(test_views_into_consumers), TEST(test_moves), TEST(test_indexing),
        TEST(test_random_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Broadcasting, views into every kind of consumer, movement and indexing, against the interpreter.
#include "../support/exe.h"

static TorValue *weak(double x) { return number(g, x); }

static void test_broadcasting(void **state) {
    (void)state;
    static const char *const shapes[] = {"",      "1",     "5",     "4 1",   "1 5",  "4 5",
                                         "3 1 1", "3 4 1", "1 4 5", "3 1 5", "3 4 5"};
    for (size_t a = 0; a < TOR_COUNT_OF(shapes); a++)
        for (size_t b = 0; b < TOR_COUNT_OF(shapes); b++) {
            TorValue *x = IN(FLOATS(shapes[a])), *y = IN(FLOATS(shapes[b]));
            OUTPUTS(BINARY(sub, x, y), UNARY(neg, BINARY(mul, BINARY(add, x, weak(1)), y)));
            check(shapes[a]);
        }
    TorValue *c = IN(tensor_of(TOR_bool, "4 1"));
    OUTPUTS(OP(g, where, INS(c, IN(FLOATS("5")), weak(2)), NONE),
            OP(g, where, INS(c, weak(1), IN(FLOATS("3 4 5"))), NONE));
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
        case 9:
            return OP(g, as_strided, INS(x),
                      ATTRS(DIMS(g, "3 4"),
                            ((TorAttr){.key = TOR_ATTR_strides,
                                       .kind = TOR_ATTR_DIMS,
                                       .dims = (TorDim[]){tor_int_const(g, 2), tor_int_const(g, 7)},
                                       .count = 2}),
                            TOR_A_DIM(offset, tor_int_const(g, 3))));
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
            return viewed(x, (char[]){(char)('0' + flat / 100), (char)('0' + flat / 10 % 10),
                                      (char)('0' + flat % 10), 0});
        case 7: {
            int64_t size[2] = {8};
            assert_true(tor_int_known(g, x->dim[x->rank - 1], &size[1]));
            return OP(g, linear, INS(x, IN(randomise(new_tensor(TOR_float32, 2, size, NULL)))),
                      NONE);
        }
        case 8: return OP(g, index_select, INS(x, IN(INDICES(1, 0, 1))), ATTRS(TOR_A_INT(axis, 1)));
        case 9: return BINARY(add, x, OP(g, contiguous, INS(UNARY(neg, x)), NONE));
        case 10: return OP(g, cumsum, INS(x), ATTRS(TOR_A_INT(axis, 1)));
        case 11:
            return OP(g, pad, INS(sliced(x, 0, 0, 2, 1)),
                      ATTRS(dims_attr(g, TOR_ATTR_low,
                                      x->rank == 2   ? "1 -1"
                                      : x->rank == 3 ? "1 -1 2"
                                                     : "1 -1 2 0"),
                            dims_attr(g, TOR_ATTR_high,
                                      x->rank == 2   ? "0 3"
                                      : x->rank == 3 ? "0 3 -1"
                                                     : "0 3 -1 1"),
                            TOR_A_SCALAR(value, ((TorScalar){.dtype = TOR_float64, .f = 7}))));
        case 12:
            return OP(g, layer_norm, INS(x), ATTRS(TOR_A_INT(count, 1), TOR_A_FLOAT(eps, 1e-3)));
        default: return x;
    }
}

static void test_views_into_consumers(void **state) {
    (void)state;
    for (int view = 0; view <= 10; view++)
        for (int consumer = 0; consumer <= 13; consumer++)
            for (int source = 0; source < 3; source++) {
                char what[64];
                snprintf(what, sizeof what, "view %d, consumer %d, source %d", view, consumer,
                         source);
                TorValue *x = source == 0   ? IN(FLOATS("4 6 5"))
                              : source == 1 ? UNARY(neg, IN(FLOATS("4 6 5")))
                                            : IN(strided(TOR_float32, "4 6 5", "5 20 1"));
                OUTPUTS(consume(consumer, some_view(view, x)));
                check(what);
            }
}

static void test_moves(void **state) {
    (void)state;
    for (int axis = 0; axis < 3; axis++) {
        TorValue *a = IN(FLOATS("2 3 4")), *b = IN(strided(TOR_float32, "2 3 4", "1 2 6")),
                 *c = UNARY(neg, a);
        OUTPUTS(OP(g, cat, INS(a, b, c, sliced(a, axis, 1, 1, 1)), ATTRS(TOR_A_INT(axis, axis))),
                OP(g, cumsum, INS(a), ATTRS(TOR_A_INT(axis, axis))));
        check("cat");
        a = IN(FLOATS("2 3 4"));
        OUTPUTS(ATEN("aten.roll.default", V(a), TOR_ARG_OF_LIST(((TorArg[]){TOR_ARG_OF_INT(1)}), 1),
                     TOR_ARG_OF_LIST(((TorArg[]){TOR_ARG_OF_INT(axis)}), 1)));
        check("roll");
        a = IN(tensor_of(TOR_bool, "2 3 4"));
        OUTPUTS(ATEN("aten.cumsum.default", V(a), TOR_ARG_OF_INT(axis)));
        check("cumsum of bool");
    }
    TorValue *x = IN(FLOATS("3 4"));
    OUTPUTS(
        OP(g, flip, INS(x), ATTRS(INTS(axes, 0, 1))),
        OP(g, slice_scatter, INS(x, IN(FLOATS("3 2"))),
           ATTRS(TOR_A_INT(axis, 1), TOR_A_DIM(start, tor_int_const(g, 1)), TOR_A_INT(step, 2))));
    check("flip, slice_scatter");
    TorValue *n = OP(g, arange, NULL, 0,
                     ATTRS(DIMS(g, "7"), TOR_A_DTYPE(dtype, TOR_int64),
                           TOR_A_DIM(start, tor_int_const(g, -3)), TOR_A_INT(step, 2)));
    TorValue *f = OP(g, full, NULL, 0,
                     ATTRS(DIMS(g, "2 7"), TOR_A_DTYPE(dtype, TOR_int64),
                           TOR_A_SCALAR(value, ((TorScalar){.dtype = TOR_int64, .i = 5}))));
    OUTPUTS(n, f, BINARY(mul, n, f),
            OP(g, cat, INS(viewed(n, "1 7"), f), ATTRS(TOR_A_INT(axis, 0))));
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
                OP(g, gather, INS(x, expanded(viewed(IN(INDICES(1, 3, 0)), "3 1 1"), "3 2 4")),
                   ATTRS(TOR_A_INT(axis, axis))));
        check("index_select, gather");
        for (int add = 0; add < 2; add++) {
            x = IN(FLOATS("4 5 6"));
            OUTPUTS(OP(g, scatter,
                       INS(x, expanded(viewed(IN(INDICES(1, 3, 1)), "3 1 1"), "3 2 4"),
                           IN(FLOATS("3 2 4"))),
                       ATTRS(TOR_A_INT(axis, axis), TOR_A_STR(reduce, add ? "add" : ""))));
            check("scatter");
        }
        x = IN(FLOATS("4 5 6"));
        TorDim one[3] = {tor_int_const(g, 4), tor_int_const(g, 5), tor_int_const(g, 6)};
        one[axis] = tor_int_const(g, 3);
        TorValue *source = OP(g, expand, INS(IN(FLOATS("1 1 1"))), ATTRS(TOR_A_DIMS(dims, one, 3)));
        OUTPUTS(
            OP(g, index_copy, INS(x, IN(INDICES(2, 0, 2)), source), ATTRS(TOR_A_INT(axis, axis))));
        check("index_copy");
    }
    static const int64_t pairs[][2] = {{0, 1}, {1, 2}, {0, 2}, {0, 3}, {1, 3}};
    for (size_t i = 0; i < TOR_COUNT_OF(pairs); i++)
        for (int shape = 0; shape < 2; shape++) {
            TorValue *x = IN(FLOATS("4 5 6 3")), *a = IN(INDICES(0, -1, 2, 0)),
                     *b = IN(INDICES(-2, 1, 2, -2));
            if (shape) a = viewed(a, "4 1");
            TorAttr axes = TOR_A_INTS(axes, pairs[i], 2);
            OUTPUTS(OP(g, index, INS(x, a, b), ATTRS(axes)));
            check("index");
            for (int add = 0; add < 2; add++) {
                x = IN(FLOATS("4 5 6 3")), a = IN(INDICES(0, -1, 2, 0)),
                b = IN(INDICES(-2, 1, 2, -2));
                if (shape) a = viewed(a, "4 1");
                OUTPUTS(OP(g, index_put, INS(x, IN(FLOATS("")), a, b),
                           ATTRS(axes, TOR_A_INT(accumulate, add))));
                check("index_put of one value");
            }
        }
    for (int64_t axis = 0; axis < 3; axis++) {
        TorValue *x = IN(FLOATS("4 5 6"));
        OUTPUTS(OP(g, index_put,
                   INS(x,
                       IN(FLOATS(axis == 2   ? "5 3"
                                 : axis == 1 ? "3 6"
                                             : "3 5 6")),
                       IN(INDICES(1, -1, 1))),
                   ATTRS(TOR_A_INTS(axes, &axis, 1))));
        check("index_put with duplicates");
    }
}

int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    setenv("TOROID_VERIFY", "1", 1);
    const struct CMUnitTest tests[] = {TEST(test_broadcasting), TEST(test_views_into_consumers),
                                       TEST(test_moves), TEST(test_indexing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

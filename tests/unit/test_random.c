// Random graphs of maps, views, rows and contractions, with fixed and with symbolic sizes.
#include "../support/exe.h"

static TorValue *pool[40];
static int n_pool;

static TorValue *pick(void) { return pool[random_below(n_pool)]; }

static int64_t given_size(void *user, uint32_t number, int what) {
    (void)user;
    return what >= 0 ? given[number]->size[what] : given[number]->stride[TOR_ASK_STRIDE - what];
}

static int64_t size_of(const TorValue *v, int d) {
    static int64_t ints[4096];
    assert_true(tor_int_count(g) < TOR_COUNT_OF(ints));
    MUST(tor_int_eval(g, given_size, NULL, ints));
    return ints[v->dim[d]];
}

/// An input whose sizes, but for 1, are symbols: equal sizes are one symbol, as a frontend finds
/// them.
static TorValue *symbolic_input(Tensor *t) {
    static TorDim symbol[16];
    TorDim dims[TOR_MAX_RANK];
    TorValue *v;
    uint32_t number = g->n_inputs;
    if (number == 0)
        for (int i = 0; i < 16; i++) symbol[i] = TOR_NO_DIM;
    for (int d = 0; d < t->rank; d++) {
        TorDim *s = &symbol[t->size[d]];
        if (*s == TOR_NO_DIM)
            *s = t->size[d] == 1 ? tor_int_const(g, 1) : tor_int_size(g, number, (uint32_t)d);
        dims[d] = *s;
    }
    MUST(tor_graph_add_input(g, "x", t->dtype, t->rank, dims, false, &v));
    given[number] = t;
    if (random_below(2)) g->inputs[number].contiguous = true;  // else strides are read at each call
    return v;
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
    static const TorOp unary[] = {TOR_OP_neg, TOR_OP_tanh,     TOR_OP_sigmoid,
                                  TOR_OP_abs, TOR_OP_gelu_erf, TOR_OP_silu};
    static const TorOp binary[] = {TOR_OP_add, TOR_OP_sub, TOR_OP_mul, TOR_OP_maximum};
    static const TorOp reduction[] = {TOR_OP_sum, TOR_OP_mean, TOR_OP_amax};
    switch (kind) {
        case 0:
        case 1: return add_op(g, unary[random_below(6)], INS(x), NONE);
        case 2:
        case 3:
        case 4:
            return broadcastable(x, y)
                       ? UNARY(tanh, add_op(g, binary[random_below(4)], INS(x, y), NONE))
                       : NULL;
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
                if (split && d == axis && size_of(x, d) % 2 == 0)
                    dims[rank++] = tor_int_const(g, 2),
                    dims[rank++] = tor_int_floordiv(g, x->dim[d], tor_int_const(g, 2));
                else if (!split && d == axis && d + 1 < x->rank)
                    dims[rank++] = tor_int_mul(g, x->dim[d], x->dim[d + 1]), d++;
                else
                    dims[rank++] = x->dim[d];
            }
            return OP(g, view, INS(x), ATTRS(TOR_A_DIMS(dims, dims, rank)));
        }
        case 7: {
            if (!x->rank || size_of(x, axis) < 2) return NULL;
            int64_t n = size_of(x, axis), step = 1 + random_below(2), first = random_below(n - 1);
            return sliced(x, axis, first, (n - first + step - 1) / step, step);
        }
        case 8:
            return x->rank ? reduced(reduction[random_below(3)], x,
                                     (uint32_t)random_below(1 << x->rank), random_below(3) > 0)
                           : NULL;
        case 9: return x->rank ? softmaxed(x, axis) : NULL;
        case 10:
            return x->rank ? OP(g, layer_norm, INS(x),
                                ATTRS(TOR_A_INT(count, 1), TOR_A_FLOAT(eps, 0.1)))
                           : NULL;
        case 11: {
            int64_t size[2] = {1 + random_below(8)};
            if (!x->rank || g->n_inputs > 30 || !tor_int_known(g, x->dim[x->rank - 1], &size[1]))
                return NULL;
            return UNARY(tanh, OP(g, linear,
                                  INS(x, input(randomise(new_tensor(TOR_float32, 2, size, NULL)),
                                               random_below(2), 0)),
                                  NONE));
        }
        case 12:
            if (x->rank != y->rank || x->rank < 2) return NULL;
            for (int d = 0; d < x->rank; d++)
                if (d < x->rank - 2 ? size_of(x, d) != size_of(y, d)
                                    : d == x->rank - 2 && size_of(y, d) != size_of(x, d + 1))
                    return NULL;
            return UNARY(tanh, OP(g, matmul, INS(x, y), NONE));
        default: {
            if (!x->rank) return NULL;
            for (int d = 0; d < x->rank; d++)
                if (y->rank != x->rank || (d != axis && size_of(y, d) != size_of(x, d))) y = x;
            return OP(g, cat, INS(x, y), ATTRS(TOR_A_INT(axis, axis)));
        }
    }
}

static void random_graphs(bool reference) {
    const char *rounds = getenv("TOROID_TEST_ROUNDS"), *seed = getenv("TOROID_TEST_SEED");
    uint64_t first = seed ? strtoull(seed, NULL, 10) : 1;
    for (uint64_t round = first; round < first + (rounds ? strtoull(rounds, NULL, 10) : 300);
         round++) {
        static const char *const shapes[] = {"4 6",   "6 4", "6",     "1 6", "2 4 6",
                                             "2 1 6", "4 1", "2 6 4", ""};
        random_state = round * 77777;
        n_pool = 0;
        for (int i = 0; i < 4; i++) {
            Tensor *t = FLOATS(shapes[random_below(9)]);
            pool[n_pool++] = round % 3 == 0 ? symbolic_input(t) : input(t, random_below(4) == 0, 0);
        }
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
        by_reference = reference;
        tolerance = reference ? 1e-5 : 2e-4;
        check(what);
    }
}

static void test_random_graphs(void **state) {
    (void)state;
    random_graphs(false);
}

static void test_random_graphs_by_reference(void **state) {
    (void)state;
    random_graphs(true);
}

int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    setenv("TOROID_VERIFY", "1", 1);
    const struct CMUnitTest tests[] = {TEST(test_random_graphs),
                                       TEST(test_random_graphs_by_reference)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

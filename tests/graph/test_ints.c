// Integers: folding, normal forms, printing, evaluation.
#include "support.h"

static TorGraph *g;
static TorDim s, t, u;  // sizes of input 0
static TorDim n;        // an integer input, of any sign

static int setup(void **state) {
    (void)state;
    g = new_graph();
    s = tor_int_size(g, 0, 0);
    t = tor_int_size(g, 0, 1);
    u = tor_int_size(g, 0, 2);
    n = tor_int_scalar(g, 1);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    tor_graph_destroy(&g);
    return 0;
}

static TorDim c(int64_t value) { return tor_int_const(g, value); }
static TorDim op(TorIntOp o, TorDim a, TorDim b) { return tor_int_binary(g, o, a, b); }
#define ADD(a, b) tor_int_add(g, a, b)
#define SUB(a, b) tor_int_sub(g, a, b)
#define MUL(a, b) tor_int_mul(g, a, b)
#define DIV(a, b) tor_int_floordiv(g, a, b)
#define MOD(a, b) op(TOR_INT_mod, a, b)

static void test_constants(void **state) {
    (void)state;
    assert_int_equal(c(5), c(5));
    assert_int_not_equal(c(5), c(-5));
    assert_int_equal(ADD(c(2), c(3)), c(5));
    assert_int_equal(DIV(c(-7), c(2)), c(-4));
    assert_int_equal(DIV(c(7), c(-2)), c(-4));
    assert_int_equal(DIV(c(7), c(0)), c(0));
    assert_int_equal(MOD(c(-7), c(3)), c(2));
    assert_int_equal(MOD(c(7), c(-3)), c(-2));
    assert_int_equal(op(TOR_INT_pow, c(3), c(4)), c(81));
    assert_int_equal(op(TOR_INT_pow, c(-2), c(3)), c(-8));
    assert_int_equal(op(TOR_INT_pow, c(0), c(0)), c(1));
    assert_int_equal(op(TOR_INT_min, c(3), c(-4)), c(-4));
    assert_int_equal(op(TOR_INT_broadcast, c(1), c(4)), c(4));
    assert_int_equal(op(TOR_INT_broadcast, c(4), c(1)), c(4));
    assert_int_equal(op(TOR_INT_broadcast, c(1), c(0)), c(0));
    assert_int_equal(op(TOR_INT_le, c(3), c(3)), c(1));
    assert_int_equal(op(TOR_INT_lt, c(3), c(3)), c(0));
    int64_t value;
    assert_true(tor_int_known(g, c(-9), &value));
    assert_int_equal(value, -9);
    assert_false(tor_int_known(g, s, &value));
    assert_false(tor_int_known(g, TOR_NO_DIM, &value));
}

static void test_identities(void **state) {
    (void)state;
    assert_int_equal(ADD(s, c(0)), s);
    assert_int_equal(MUL(s, c(1)), s);
    assert_int_equal(MUL(s, c(0)), c(0));
    assert_int_equal(SUB(s, s), c(0));
    assert_int_equal(DIV(s, c(1)), s);
    assert_int_equal(DIV(MUL(s, t), t), s);
    assert_int_equal(DIV(MUL(s, c(6)), c(3)), MUL(s, c(2)));
    assert_int_equal(DIV(MUL(MUL(s, t), c(4)), MUL(c(4), t)), s);
    assert_int_equal(MOD(s, c(1)), c(0));
    assert_int_equal(MOD(s, s), c(0));
    assert_int_equal(MOD(MUL(s, c(8)), c(4)), c(0));
    assert_int_equal(MOD(MUL(s, t), s), c(0));
    assert_int_not_equal(MOD(MUL(s, c(4)), c(8)), c(0));
    assert_int_equal(op(TOR_INT_min, s, s), s);
    assert_int_equal(op(TOR_INT_max, s, c(0)), s);
    assert_int_not_equal(op(TOR_INT_max, n, c(0)), n);  // an integer input may be negative
    assert_int_equal(op(TOR_INT_min, s, c(INT64_MAX)), s);
    assert_int_equal(op(TOR_INT_min, op(TOR_INT_min, s, c(7)), c(3)), op(TOR_INT_min, c(3), s));
    assert_int_equal(op(TOR_INT_broadcast, s, s), s);
    assert_int_equal(op(TOR_INT_broadcast, s, c(1)), s);
    assert_int_equal(op(TOR_INT_broadcast, c(7), s), c(7));
    assert_int_equal(op(TOR_INT_pow, s, c(2)), MUL(s, s));
    assert_int_equal(op(TOR_INT_eq, s, s), c(1));
    assert_int_equal(op(TOR_INT_ne, s, s), c(0));
}

static void test_normal_forms(void **state) {
    (void)state;
    assert_int_equal(ADD(s, t), ADD(t, s));
    assert_int_equal(MUL(s, t), MUL(t, s));
    assert_int_equal(MUL(MUL(s, t), u), MUL(s, MUL(u, t)));
    assert_int_equal(MUL(MUL(s, c(4)), t), MUL(MUL(t, s), c(4)));
    assert_int_equal(MUL(MUL(s, c(3)), c(5)), MUL(s, c(15)));
    assert_int_equal(ADD(ADD(s, c(3)), c(5)), ADD(s, c(8)));
    assert_int_equal(SUB(ADD(s, c(3)), c(3)), s);
    assert_int_equal(SUB(ADD(s, t), s), t);
    assert_int_equal(ADD(s, s), MUL(c(2), s));
    assert_int_equal(SUB(MUL(s, c(3)), s), MUL(s, c(2)));
    assert_int_equal(ADD(ADD(s, t), u), ADD(s, ADD(u, t)));
    assert_int_equal(DIV(ADD(MUL(s, c(4)), c(8)), c(4)), ADD(s, c(2)));
    assert_int_equal(DIV(DIV(s, c(2)), c(3)), DIV(s, c(6)));
    // Strides of [t, u, 64] in two spellings.
    TorDim dims[] = {t, u, c(64)};
    assert_int_equal(tor_int_product(g, dims, 3), MUL(t, MUL(c(64), u)));
    assert_int_equal(tor_int_product(g, dims, 0), c(1));
}

static const char *text(TorDim d) {
    static char buffer[128];
    return tor_int_print(g, d, buffer, sizeof(buffer));
}

static void test_print(void **state) {
    (void)state;
    assert_string_equal(text(c(-3)), "-3");
    assert_string_equal(text(MUL(s, c(2))), "s0*2");
    assert_string_equal(text(SUB(s, c(1))), "s0-1");
    assert_string_equal(text(SUB(s, t)), "s0-s1");
    assert_string_equal(text(SUB(s, MUL(t, c(2)))), "s0-s1*2");
    assert_string_equal(text(ADD(DIV(SUB(s, c(1)), c(2)), c(1))), "(s0-1)//2+1");
    assert_string_equal(text(MUL(ADD(s, t), c(3))), "(s0+s1)*3");
    assert_string_equal(text(op(TOR_INT_min, s, c(4))), "min(s0, 4)");
    assert_string_equal(text(op(TOR_INT_le, s, ADD(t, c(1)))), "s0<=s1+1");
    char small[8];
    assert_string_equal(tor_int_print(g, op(TOR_INT_min, s, c(4)), small, sizeof(small)),
                        "min(...");
}

static int64_t sizes(void *user, uint32_t input, int dim) {
    const int64_t *values = user;
    return input == 1 ? (assert_int_equal(dim, -1), values[3]) : values[dim];
}

static void test_eval(void **state) {
    (void)state;
    TorDim conv = ADD(DIV(SUB(s, c(1)), c(2)), c(1));
    TorDim rest = MOD(SUB(n, t), u), both = op(TOR_INT_broadcast, s, t),
           square = op(TOR_INT_pow, t, n);
    int64_t given[] = {7, 1, 5, 3}, values[64];
    assert_true(tor_int_count(g) <= 64);
    assert_int_equal(tor_int_eval(g, sizes, given, values), TOROID_OK);
    assert_int_equal(values[conv], 4);
    assert_int_equal(values[rest], 2);
    assert_int_equal(values[both], 7);
    assert_int_equal(values[square], 1);
}

static void expect_eval_error(int64_t a, int64_t b, ToroidStatus status, const char *message) {
    int64_t given[] = {a, b, 1, 1}, values[64];
    assert_int_equal(tor_int_eval(g, sizes, given, values), status);
    assert_non_null(strstr(toroid_last_error(), message));
}

static void test_eval_errors(void **state) {
    (void)state;
    op(TOR_INT_broadcast, s, t);
    expect_eval_error(3, 4, TOROID_INVALID, "sizes 3 and 4 do not broadcast: broadcast(s0, s1)");
    MUL(s, t);
    expect_eval_error(INT64_C(1) << 62, INT64_C(1) << 62, TOROID_INVALID, "overflows 64 bits");
}

static void test_within(void **state) {
    (void)state;
    assert_int_equal(op(TOR_INT_within, s, s), s);
    assert_int_equal(op(TOR_INT_within, c(0), s), c(0));
    assert_int_equal(op(TOR_INT_within, c(3), c(4)), c(3));
    TorDim some = op(TOR_INT_within, s, t);
    int64_t given[] = {3, 4, 1, 1}, values[64];
    assert_int_equal(tor_int_eval(g, sizes, given, values), TOROID_OK);
    assert_int_equal(values[some], 3);
    expect_eval_error(5, 4, TOROID_INVALID_DATA, "out of bounds: 5 is over 4: within(s0, s1)");
}

static void test_same(void **state) {
    (void)state;
    assert_int_equal(op(TOR_INT_same, s, s), s);
    TorDim some = op(TOR_INT_same, s, t);
    assert_int_equal(op(TOR_INT_same, t, s), some);
    int64_t given[] = {4, 4, 1, 1}, values[64];
    assert_int_equal(tor_int_eval(g, sizes, given, values), TOROID_OK);
    assert_int_equal(values[some], 4);
    expect_eval_error(3, 4, TOROID_INVALID, "sizes 3 and 4 must be equal: same(s0, s1)");
}

static void test_overflow_at_compile_time(void **state) {
    (void)state;
    TorDim sum = ADD(c(INT64_MAX), c(1));
    int64_t value;
    assert_false(tor_int_known(g, sum, &value));
    expect_eval_error(1, 1, TOROID_INVALID, "9223372036854775807+1");
    assert_int_equal(MUL(MUL(s, c(INT64_MAX)), c(2)), MUL(MUL(s, c(INT64_MAX)), c(2)));
    assert_int_equal(DIV(c(INT64_MIN), c(-1)), DIV(c(INT64_MIN), c(-1)));
    assert_false(tor_int_known(g, DIV(c(INT64_MIN), c(-1)), &value));
}

// Every fold must keep the value: random expressions, built twice: folded, and computed on the
// side.
static void test_folding_keeps_values(void **state) {
    (void)state;
    static const TorIntOp ops[] = {TOR_INT_add, TOR_INT_sub, TOR_INT_mul, TOR_INT_floordiv,
                                   TOR_INT_mod, TOR_INT_min, TOR_INT_max, TOR_INT_eq,
                                   TOR_INT_ne,  TOR_INT_lt,  TOR_INT_le};
    int64_t given[] = {6, 4, 3, -5};
    uint64_t seed = 1;
    enum { POOL = 40 };
    for (int round = 0; round < 200; ++round) {
        TorGraph *h = new_graph();
        TorDim dim[POOL] = {tor_int_size(h, 0, 0), tor_int_size(h, 0, 1), tor_int_size(h, 0, 2),
                            tor_int_scalar(h, 1),  tor_int_const(h, 2),   tor_int_const(h, -3),
                            tor_int_const(h, 1)};
        int64_t value[POOL] = {6, 4, 3, -5, 2, -3, 1};
        for (int i = 7; i < POOL; ++i) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            int a = (int)(seed >> 33) % i, b = (int)(seed >> 43) % i;
            TorIntOp o = ops[(seed >> 53) % TOR_COUNT_OF(ops)];
            int64_t x = value[a], y = value[b], r = 0;
            // (a * b) // b folds to a, also where b is 0: keep away from it.
            if ((o == TOR_INT_floordiv || o == TOR_INT_mod) && y == 0) o = TOR_INT_add;
            switch (o) {
                case TOR_INT_add: r = x + y; break;
                case TOR_INT_sub: r = x - y; break;
                case TOR_INT_mul: r = x * y; break;
                case TOR_INT_floordiv: r = x / y - (x % y != 0 && (x < 0) != (y < 0)); break;
                case TOR_INT_mod: r = ((x % y) + y) % y; break;
                case TOR_INT_min: r = TOR_MIN(x, y); break;
                case TOR_INT_max: r = TOR_MAX(x, y); break;
                case TOR_INT_eq: r = x == y; break;
                case TOR_INT_ne: r = x != y; break;
                case TOR_INT_lt: r = x < y; break;
                default: r = x <= y; break;
            }
            if (r > 1000000 || r < -1000000)
                r = x, o = TOR_INT_const;  // stay small: no overflow here
            value[i] = r;
            dim[i] = o == TOR_INT_const ? dim[a] : tor_int_binary(h, o, dim[a], dim[b]);
        }
        int64_t *values = malloc(tor_int_count(h) * sizeof(*values));
        assert_int_equal(tor_int_eval(h, sizes, given, values), TOROID_OK);
        for (int i = 0; i < POOL; ++i) assert_int_equal(values[dim[i]], value[i]);
        free(values);
        tor_graph_destroy(&h);
    }
}

static void test_many(void **state) {
    (void)state;
    for (int i = 0; i < 5000; ++i) c(i);
    for (int i = 0; i < 5000; ++i) assert_int_equal(c(i), c(i));
    assert_int_equal(tor_int_count(g), 5004);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {TEST(test_constants),
                                       TEST(test_identities),
                                       TEST(test_normal_forms),
                                       TEST(test_print),
                                       TEST(test_eval),
                                       TEST(test_eval_errors),
                                       TEST(test_within),
                                       TEST(test_same),
                                       TEST(test_overflow_at_compile_time),
                                       TEST(test_folding_keeps_values),
                                       TEST(test_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

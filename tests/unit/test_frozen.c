// The frozen table: one pack a weight and state, shared, forgotten, refreshed.
#include "../support/exe.h"

static TorExeStats stats(const TorExecutable *exe) {
    TorExeStats s;
    tor_exe_stats(exe, &s);
    return s;
}

/// relu(x w' * 2) with the answers of plain loops.
static TorExecutable *build(void) {
    TorValue *x = IN(FLOATS("3 16")), *w = FROZEN(FLOATS("8 16"));
    OUTPUTS(UNARY(relu, OP(g, linear, INS(x, BINARY(mul, w, number(g, 2))), NONE)));
    return compile();
}

static void run(TorExecutable *exe) {
    Tensor *out[1];
    MUST(call_exe(exe, 2, out));
    for (int64_t i = 0; i < 24; i++) {
        double sum = 0;
        for (int64_t k = 0; k < 16; k++)
            sum += tensor_at(given[0], i / 8 * 16 + k) * tensor_at(given[1], i % 8 * 16 + k) * 2;
        assert_true(fabs(tensor_at(out[0], i) - fmax(sum, 0)) < 1e-5);
    }
}

static uint64_t packs(void) { return stats(NULL).frozen_packs; }

static void forget_all(void) {
    for (const Tensor *t = all_tensors; t; t = t->next) tor_frozen_forget(t->uid);
    assert_int_equal(stats(NULL).frozen_bytes, 0);
    assert_int_equal(stats(NULL).frozen_entries, 0);
}

static void test_cached(void **state) {
    (void)state;
    TorExecutable *exe = build();
    uint64_t before = packs();
    run(exe);
    uint64_t one = packs() - before;
    assert_true(one >= 1);
    for (int i = 0; i < 3; i++) run(exe);
    assert_int_equal(packs() - before, one);
    assert_true(stats(exe).weight_bytes >= 8 * 16 * 4 && stats(NULL).frozen_bytes >= 8 * 16 * 4);
    forget_all();
    assert_int_equal(stats(exe).weight_bytes, 0);
    run(exe);  // packs anew
    assert_int_equal(packs() - before, 2 * one);
    forget_all();
    tor_exe_destroy(&exe);
}

static void test_what_makes_it_stale(void **state) {
    (void)state;
    TorExecutable *exe = build();
    Tensor *w = given[1];
    run(exe);
    uint64_t entries = stats(NULL).frozen_entries, bytes = stats(NULL).frozen_bytes,
             before = packs();
    tensor_set(w, 37, 9);  // no sampled word
    w->version++;
    run(exe);
    assert_int_equal(packs() - before, entries);
    tensor_set(w, 0, 5);  // seen by the sample alone
    run(exe);
    assert_int_equal(packs() - before, 2 * entries);
    void *old = w->memory;
    w->memory = malloc(w->bytes);
    memcpy(w->memory, old, w->bytes);
    free(old);
    run(exe);  // another address
    assert_int_equal(packs() - before, 3 * entries);
    tensor_set(w, 40, 3);  // nothing tells
    tor_frozen_refresh();
    run(exe);
    assert_int_equal(packs() - before, 4 * entries);
    assert_int_equal(stats(NULL).frozen_entries, entries);
    assert_int_equal(stats(NULL).frozen_bytes, bytes);
    forget_all();
    tor_exe_destroy(&exe);
}

static void test_six_sets(void **state) {
    (void)state;
    TorExecutable *exe = build();
    Tensor *sets[6] = {given[1]};
    for (int i = 1; i < 6; i++) sets[i] = FLOATS("8 16");
    run(exe);
    uint64_t each = stats(NULL).frozen_entries, before = packs();
    for (int round = 0; round < 4; round++)
        for (int i = 0; i < 6; i++) {
            given[1] = sets[i];
            run(exe);
        }
    assert_int_equal(packs() - before, 5 * each);
    assert_int_equal(stats(NULL).frozen_entries, 6 * each);
    uint64_t bytes = stats(NULL).frozen_bytes;
    tor_frozen_forget(sets[2]->uid);
    assert_int_equal(stats(NULL).frozen_bytes, bytes / 6 * 5);
    given[1] = sets[3];
    run(exe);
    assert_int_equal(packs() - before, 5 * each);
    forget_all();
    tor_exe_destroy(&exe);
}

// Two executables over the same tensor have one copy; it outlives the first.
static void test_shared(void **state) {
    (void)state;
    TorExecutable *one = build();
    Tensor *w = given[1];
    run(one);
    uint64_t before = packs(), bytes = stats(NULL).frozen_bytes;
    start();
    TorValue *x = IN(FLOATS("3 16")), *v = FROZEN(w);
    OUTPUTS(UNARY(relu, OP(g, linear, INS(x, BINARY(mul, v, number(g, 2))), NONE)));
    TorExecutable *two = compile();
    run(two);
    assert_int_equal(packs(), before);
    assert_int_equal(stats(NULL).frozen_bytes, bytes);
    tor_exe_destroy(&one);
    run(two);
    assert_int_equal(packs(), before);
    tor_exe_destroy(&two);
    forget_all();
}

// Equal shapes, equal ops, other numbers: never the same entry.
static void test_keys_differ(void **state) {
    (void)state;
    Tensor *w = FLOATS("12 6");
    for (int variant = 0; variant < 6; variant++) {
        TorValue *v = FROZEN(w), *y;
        if (variant < 3)
            y = BINARY(mul, sliced(v, 0, variant * 4, 4, 1), number(g, 3));
        else if (variant < 5)
            y = BINARY(mul, sliced(v, 0, 0, 4, variant - 2), number(g, 3));
        else
            y = BINARY(mul, sliced(v, 0, 0, 4, 1), number(g, 4));
        OUTPUTS(y);
        Interpreter *it = interpret(g, given);
        uint32_t id = tor_in(g->output, 0)->id;
        TorExecutable *exe = compile();
        Tensor *out[1];
        MUST(call_exe(exe, 1, out));
        expect_array(exe, "keys", variant, out[0], &it->values[id]);
        interpreter_drop(it);
        tor_exe_destroy(&exe);
        start();
    }
    forget_all();
}

// One frozen expression feeds another, and both are used by what is not frozen.
static void test_expression_of_expression(void **state) {
    (void)state;
    TorValue *x = IN(FLOATS("4 4")), *w = FROZEN(FLOATS("4 4"));
    TorValue *a = UNARY(tanh, w), *b = UNARY(exp, a), *c = BINARY(add, permuted(b, "1 0"), a);
    OUTPUTS(BINARY(add, x, a), BINARY(mul, x, b), BINARY(sub, x, c), permuted(b, "1 0"),
            OP(g, linear, INS(x, c), NONE));
    check("frozen expressions");
    forget_all();
}

// A forgotten tensor while a call is between begin and end.
static void test_forget_in_flight(void **state) {
    (void)state;
    TorExecutable *exe = build();
    TorCall *call;
    MUST(begin(exe, &call));
    tor_frozen_forget(given[1]->uid);
    Tensor *out = new_tensor(TOR_float32, 2, (int64_t[]){3, 8}, NULL);
    tor_exe_outputs(call)[0].data = out->memory;
    MUST(tor_exe_run(call, NULL, false));
    assert_true(stats(NULL).frozen_bytes > 0);
    tor_exe_end(&call);
    assert_int_equal(stats(NULL).frozen_bytes, 0);
    tor_exe_destroy(&exe);
}

static void test_not_frozen(void **state) {
    (void)state;
    TorValue *x = IN(FLOATS("3 16")), *w = FROZEN(FLOATS("8 16"));
    OUTPUTS(UNARY(relu, OP(g, linear, INS(x, BINARY(mul, w, number(g, 2))), NONE)));
    TorExecutable *exe = compile_with((TorOptions){.freeze = false});
    uint64_t before = packs();
    run(exe);
    tensor_set(given[1], 40, 3);
    run(exe);
    assert_int_equal(packs(), before);
    assert_int_equal(stats(NULL).frozen_bytes, 0);
    tor_exe_destroy(&exe);
}

int main(void) {
    setenv("TOROID_VERIFY", "1", 1);
    const struct CMUnitTest tests[] = {
        TEST(test_cached),           TEST(test_what_makes_it_stale),
        TEST(test_six_sets),         TEST(test_shared),
        TEST(test_keys_differ),      TEST(test_expression_of_expression),
        TEST(test_forget_in_flight), TEST(test_not_frozen)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

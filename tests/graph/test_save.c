// Graphs as bytes and back: the same table, and no byte that can harm.
#include "support.h"

#include "graph/save.h"

typedef struct {
    char *bytes;
    size_t count;
} Saved;

static Saved save(const TorGraph *g) {
    Saved s;
    assert_int_equal(tor_graph_save(g, &s.bytes, &s.count), TOROID_OK);
    return s;
}

static char *print(const TorGraph *g) {
    char *text;
    assert_int_equal(tor_graph_print(g, &text), TOROID_OK);
    return text;
}

/// Symbols, an integer input, weights, numbers, lists, texts, an external node, written inputs,
/// promised layouts.
static TorGraph *everything(void) {
    TorGraph *g = new_graph();
    TorValue *x = INPUT(g, "x", "s 768"), *w = WEIGHT(g, "w", "3072 768"),
             *cache = INPUT(g, "cache", "16 768");
    TorDim n;
    assert_int_equal(tor_graph_add_int_input(g, "n", &n), TOROID_OK);
    for (uint32_t i = 0; i < 3; i++) g->inputs[i].contiguous = i != 0;
    g->inputs[2].stride[0] = tor_int_const(g, 768);
    g->inputs[2].stride[1] = tor_int_const(g, 1);
    TorValue *h = OP(g, linear, INS(x, w), NONE);
    TorValue *m = OP(g, mul, INS(h, number(g, -0.0)), NONE);
    m->node->origin = "mul_1";
    TorValue *s = OP(g, sum, INS(OP(g, gelu_erf, INS(m), NONE)),
                     ATTRS(INTS(axes, 1), TOR_A_INT(keepdim, 1), TOR_A_DTYPE(dtype, TOR_float64)));
    TorDim start = tor_int_binary(g, TOR_INT_max, n, tor_int_const(g, 3));
    TorValue *c =
        OP(g, slice, INS(cache),
           ATTRS(TOR_A_INT(axis, 0), TOR_A_DIM(start, start), TOR_A_INT(step, 1), DIMS(g, "1")));
    int64_t rows[] = {3, 5, -1};
    TorValue *k = OP(
        g, constant, NULL, 0,
        ATTRS(TOR_A_BLOB(blob, rows, sizeof(rows)), TOR_A_DTYPE(dtype, TOR_int64), DIMS(g, "3")));
    TorValue *e = OP(g, softmax, INS(OP(g, embedding, INS(w, k), NONE)), ATTRS(TOR_A_INT(axis, 1)));
    TorValue *f = OP(g, relu, INS(cache), NONE);
    TorValue *outside = OP(g, external, INS(x, f),
                           ATTRS(TOR_A_INT(callable, 4), TOR_A_STR(reason, "aten.eig: unknown"),
                                 TOR_A_INT(random, 1), TOR_A_DIMS(operands, &n, 1)));
    tor_graph_set_type(outside, TOR_int32, 2, x->dim);
    TorValue *full = OP(g, full, NULL, 0,
                        ATTRS(TOR_A_SCALAR(value, ((TorScalar){.dtype = TOR_float32, .f = 0.1})),
                              TOR_A_DTYPE(dtype, TOR_float32), dims_attr(g, TOR_ATTR_dims, "s 2")));
    TorValue *values[] = {s, c, e, outside, full, f};
    int64_t into[] = {-1, -1, -1, -1, -1, 2};
    assert_int_equal(tor_graph_set_outputs(g, values, into, 6), TOROID_OK);
    assert_int_equal(tor_graph_set_output_layout(g, 0, NULL, (int[]){1, 0}), TOROID_OK);
    assert_int_equal(tor_graph_set_output_layout(g, 2, e->dim, NULL), TOROID_OK);
    return g;
}

static void expect_same_again(TorGraph *g) {
    char *text = print(g);
    Saved first = save(g);
    TorGraph *loaded;
    ToroidStatus status = tor_graph_load(&loaded, first.bytes, first.count);
    if (status != TOROID_OK) print_error("%s\n", toroid_last_error());
    assert_int_equal(status, TOROID_OK);
    expect_text(loaded, text);
    Saved second = save(loaded);
    assert_int_equal(first.count, second.count);
    assert_memory_equal(first.bytes, second.bytes, first.count);
    tor_free(first.bytes);
    tor_free(second.bytes);
    tor_free(text);
    tor_graph_destroy(&loaded);
}

static void test_round_trip(void **state) {
    (void)state;
    TorGraph *g = everything();
    expect_same_again(g);
    run_passes(g, "frozen fold canonicalise cse dce");
    expect_same_again(g);
    run_passes(g, "fuse_epilogue fuse_groups programs dce");
    expect_same_again(g);
    tor_graph_destroy(&g);
}

static void test_loaded_graph_grows(void **state) {
    (void)state;
    TorGraph *g = everything(), *loaded;
    Saved s = save(g);
    assert_int_equal(tor_graph_load(&loaded, s.bytes, s.count), TOROID_OK);
    // Integers are found among the loaded ones; new nodes get ids that no other has.
    assert_int_equal(tor_int_scalar(loaded, 3), tor_int_scalar(g, 3));
    assert_int_equal(tor_int_count(loaded), tor_int_count(g));
    assert_int_equal(loaded->next_value, g->next_value);
    assert_int_equal(loaded->next_node, g->next_node);
    OP(loaded, relu, INS(loaded->inputs[1].value), NONE);
    assert_int_equal(tor_graph_verify(loaded), TOROID_OK);
    run_passes(loaded, "frozen canonicalise cse dce fuse_groups programs dce inplace layout");
    tor_free(s.bytes);
    tor_graph_destroy(&loaded);
    tor_graph_destroy(&g);
}

static void test_empty_and_unfinished(void **state) {
    (void)state;
    TorGraph *g = new_graph();
    expect_same_again(g);
    INPUT(g, NULL, "");
    expect_same_again(g);
    set_outputs(g, NULL, 0);
    expect_same_again(g);
    tor_graph_destroy(&g);
}

static void test_after_layout_is_refused(void **state) {
    (void)state;
    TorGraph *g = everything();
    run_passes(g, "frozen programs layout");
    Saved s;
    assert_int_equal(tor_graph_save(g, &s.bytes, &s.count), TOROID_INVALID);
    assert_null(s.bytes);
    tor_graph_destroy(&g);
}

static void test_other_build(void **state) {
    (void)state;
    TorGraph *g = everything(), *loaded;
    Saved s = save(g);
    s.bytes[0] ^= 1;
    assert_int_equal(tor_graph_load(&loaded, s.bytes, s.count), TOROID_UNSUPPORTED);
    assert_null(loaded);
    assert_int_equal(tor_graph_load(&loaded, NULL, 0), TOROID_UNSUPPORTED);
    tor_free(s.bytes);
    tor_graph_destroy(&g);
}

static void test_cut_short(void **state) {
    (void)state;
    TorGraph *g = everything(), *loaded;
    Saved s = save(g);
    for (size_t n = 0; n < s.count; n++) {
        char *cut = tor_alloc(n + 1);  // of its own, so that the sanitizer sees a read behind it
        memcpy(cut, s.bytes, n);
        assert_int_not_equal(tor_graph_load(&loaded, cut, n), TOROID_OK);
        assert_null(loaded);
        tor_free(cut);
    }
    tor_free(s.bytes);
    tor_graph_destroy(&g);
}

static uint32_t draw(uint32_t below) {
    static uint64_t seed = 20260801;
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % below;
}

/// A byte set, a bit turned, a word with a value that breaks bounds, or a piece put elsewhere.
static void mutate(char *bytes, size_t count) {
    static const uint32_t words[] = {0, 1, 2, 255, 65536, INT32_MAX, UINT32_MAX, UINT32_MAX - 1};
    size_t start = TOR_BUILD_HASH, n = count - start, at = start + draw((uint32_t)n);
    switch (draw(4)) {
        case 0: bytes[at] = (char)draw(256); break;
        case 1: bytes[at] = (char)(bytes[at] ^ 1 << draw(8)); break;
        case 2: {
            uint32_t word = words[draw(TOR_COUNT_OF(words))];
            memcpy(bytes + at, &word, TOR_MIN(sizeof word, count - at));
            break;
        }
        default: {
            size_t from = start + draw((uint32_t)n), room = count - TOR_MAX(at, from);
            memmove(bytes + at, bytes + from, 1 + draw((uint32_t)TOR_MIN(room, 32)) - 1);
        }
    }
}

static void test_mutated(void **state) {
    (void)state;
    enum { ROUNDS = 10000 };
    TorGraph *graphs[2] = {everything(), everything()};
    run_passes(graphs[1], "frozen canonicalise fuse_epilogue fuse_groups programs dce");
    int whole = 0;
    for (int i = 0; i < ROUNDS; i++) {
        TorGraph *loaded;
        Saved s = save(graphs[i & 1]);
        for (uint32_t changes = 1 + draw(3); changes; changes--) mutate(s.bytes, s.count);
        ToroidStatus status = tor_graph_load(&loaded, s.bytes, s.count);
        tor_free(s.bytes);
        assert_true((status == TOROID_OK) == (loaded != NULL));
        if (!loaded) continue;
        assert_int_equal(tor_graph_verify(loaded), TOROID_OK);
        tor_free(print(loaded));
        tor_graph_destroy(&loaded);
        whole++;
    }
    // Else the mutations would test the first check alone.
    assert_in_range(whole, ROUNDS / 50, ROUNDS - ROUNDS / 50);
    for (int i = 0; i < 2; i++) tor_graph_destroy(&graphs[i]);
}

static void test_without_memory(void **state) {
    (void)state;
    TorGraph *g = everything(), *loaded = NULL;
    Saved s;
    ToroidStatus status = TOROID_NO_MEMORY;
    for (int n = 1; status == TOROID_NO_MEMORY; n++) {
        tor_alloc_fail_at((uint64_t)n);
        status = tor_graph_save(g, &s.bytes, &s.count);
        tor_alloc_fail_at(0);
    }
    assert_int_equal(status, TOROID_OK);
    status = TOROID_NO_MEMORY;
    for (int n = 1; status == TOROID_NO_MEMORY; n++) {
        tor_alloc_fail_at((uint64_t)n);
        status = tor_graph_load(&loaded, s.bytes, s.count);
        tor_alloc_fail_at(0);
        assert_true((status == TOROID_OK) == (loaded != NULL));
    }
    assert_int_equal(status, TOROID_OK);
    tor_graph_destroy(&loaded);
    tor_free(s.bytes);
    tor_graph_destroy(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_loaded_graph_grows),
        cmocka_unit_test(test_empty_and_unfinished),
        cmocka_unit_test(test_after_layout_is_refused),
        cmocka_unit_test(test_other_build),
        cmocka_unit_test(test_cut_short),
        cmocka_unit_test(test_mutated),
        cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

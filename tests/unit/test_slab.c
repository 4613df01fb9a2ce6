// The memory of packed weights: blocks keep their content and apart, and chunks come and go.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/alloc.h"
#include "base/slab.h"

enum { KIB = 1024, MIB = 1024 * KIB };

static void test_blocks_share_a_chunk(void **state) {
    (void)state;
    char *blocks[30];
    for (int i = 0; i < 30; i++) {
        blocks[i] = tor_slab_alloc(MIB);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % TOR_CACHE_LINE, 0);
        if (i) assert_ptr_equal(blocks[i], blocks[i - 1] + MIB);
    }
    assert_int_equal(tor_slab_chunks(), 1);
    assert_int_equal((uintptr_t)blocks[0] % (2 * MIB), 0);
    for (int i = 0; i < 30; i++) tor_slab_free(blocks[i]);
    assert_int_equal(tor_slab_chunks(), 0);
}

static void test_a_gap_is_used_again(void **state) {
    (void)state;
    char *first = tor_slab_alloc(4 * MIB), *second = tor_slab_alloc(4 * MIB);
    memset(second, 7, 4 * MIB);
    tor_slab_free(first);
    char *small = tor_slab_alloc(MIB), *next = tor_slab_alloc(3 * MIB);
    assert_ptr_equal(small, first);
    assert_ptr_equal(next, first + MIB);
    for (int i = 0; i < 4 * MIB; i += 4096) assert_int_equal(second[i], 7);
    tor_slab_free(small), tor_slab_free(next), tor_slab_free(second);
    assert_int_equal(tor_slab_chunks(), 0);
}

static void test_small_and_huge_blocks(void **state) {
    (void)state;
    void *small = tor_slab_alloc(100), *none = tor_slab_alloc(0);
    assert_int_equal(tor_slab_chunks(), 0);
    char *huge = tor_slab_alloc(100 * (size_t)MIB);
    huge[100 * MIB - 1] = 1;
    assert_int_equal(tor_slab_chunks(), 1);
    tor_slab_free(huge), tor_slab_free(small), tor_slab_free(none), tor_slab_free(NULL);
    assert_int_equal(tor_slab_chunks(), 0);
    assert_null(tor_slab_alloc(SIZE_MAX));
    assert_null(tor_slab_alloc(SIZE_MAX / 2));
}

static void test_no_memory(void **state) {
    (void)state;
    // The chunk's record, its memory, its list.
    for (uint64_t n = 1; n <= 3; n++) {
        tor_alloc_fail_at(n);
        assert_null(tor_slab_alloc(MIB));
        tor_alloc_fail_at(0);
        assert_int_equal(tor_slab_chunks(), 0);
    }
}

// Random blocks, each filled with its own number, which must be there when it goes.
static void test_random_blocks(void **state) {
    (void)state;
    enum { LIVE = 60 };
    struct {
        uint32_t *memory;
        size_t words;
        uint32_t number;
    } live[LIVE] = {0};
    uint32_t random = 1;
    for (uint32_t turn = 1; turn < 3000; turn++) {
        random = random * 1664525 + 1013904223;
        size_t at = (random >> 16) % LIVE;
        if (live[at].memory) {
            for (size_t i = 0; i < live[at].words; i += 501)
                assert_int_equal(live[at].memory[i], live[at].number);
            tor_slab_free(live[at].memory);
            live[at].memory = NULL;
            continue;
        }
        live[at].words = (random >> 8) % (3 * MIB / 4) + 1;
        live[at].number = turn;
        live[at].memory = tor_slab_alloc(live[at].words * 4);
        assert_non_null(live[at].memory);
        for (size_t i = 0; i < live[at].words; i += 501) live[at].memory[i] = turn;
    }
    assert_true(tor_slab_chunks() <= LIVE * 3 / 32 + 3);
    for (size_t at = 0; at < LIVE; at++) tor_slab_free(live[at].memory);
    assert_int_equal(tor_slab_chunks(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_share_a_chunk),  cmocka_unit_test(test_a_gap_is_used_again),
        cmocka_unit_test(test_small_and_huge_blocks), cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_random_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

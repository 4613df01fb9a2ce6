// The memory planner: buffers that live at the same step never share a byte, whatever their sizes;
// gaps are used again; nothing is asked for that no buffer needs.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plan/memory.h"

enum { BUFFERS = 60, STEPS = 40 };

static TorArena *arena;
static size_t bytes[BUFFERS], offsets[BUFFERS];
static TorMemoryGap gaps[BUFFERS + 2];

static int setup(void **state) {
    (void)state;
    return tor_arena_create(&arena) != TOROID_OK;
}
static int teardown(void **state) {
    (void)state;
    tor_arena_destroy(&arena);
    return 0;
}

static size_t plan(const int *first, const int *last, size_t count, size_t steps) {
    TorLifetimes *lifetimes;
    assert_int_equal(tor_lifetimes_create(&lifetimes, arena, first, last, count, steps), TOROID_OK);
    return tor_memory_assign(lifetimes, bytes, offsets, gaps);
}

static uint32_t random_state = 7;
static int below(int n) {
    random_state = random_state * 1664525 + 1013904223;
    return (int)((random_state >> 8) % (uint32_t)n);
}

static void test_no_overlap(void **state) {
    (void)state;
    for (int round = 0; round < 3000; round++) {
        int first[BUFFERS], last[BUFFERS], count = 1 + below(BUFFERS), steps = 1 + below(STEPS);
        for (int i = 0; i < count; i++) {
            first[i] = below(steps);
            last[i] = first[i] + below(steps - first[i]);
            if (below(10) == 0) first[i] = INT32_MAX, last[i] = -1;  // never touched
            bytes[i] = below(5) == 0 ? 0 : (size_t)(1 + below(below(2) ? 100 : 5000));
        }
        size_t most = plan(first, last, (size_t)count, (size_t)steps), sum = 0, peak = 0;
        for (int i = 0; i < count; i++) {
            if (first[i] > last[i] || bytes[i] == 0) continue;
            sum += (bytes[i] + TOR_CACHE_LINE - 1) / TOR_CACHE_LINE * TOR_CACHE_LINE;
            assert_int_equal(offsets[i] % TOR_CACHE_LINE, 0);
            assert_true(offsets[i] + bytes[i] <= most);
            for (int k = 0; k < i; k++) {
                if (first[k] > last[k] || bytes[k] == 0 || last[k] < first[i] || last[i] < first[k])
                    continue;
                assert_true(offsets[k] + bytes[k] <= offsets[i] ||
                            offsets[i] + bytes[i] <= offsets[k]);
            }
        }
        for (int s = 0; s < steps; s++) {
            size_t live = 0;
            for (int i = 0; i < count; i++)
                if (first[i] <= s && s <= last[i])
                    live += (bytes[i] + TOR_CACHE_LINE - 1) / TOR_CACHE_LINE * TOR_CACHE_LINE;
            peak = TOR_MAX(peak, live);
        }
        assert_true(peak <= most && most <= sum);
    }
}

// A chain a -> b -> c -> d of equal buffers needs the room of two.
static void test_chain_takes_two(void **state) {
    (void)state;
    int first[20], last[20];
    for (int i = 0; i < 20; i++) first[i] = i, last[i] = i + 1, bytes[i] = 640;
    assert_int_equal(plan(first, last, 20, 21), 2 * 640);
}

// Three neighbours go, the middle one last: one gap for a buffer of their joint size.
static void test_gaps_merge(void **state) {
    (void)state;
    int first[] = {0, 0, 0, 0, 4}, last[] = {1, 3, 2, 5, 5};
    bytes[0] = bytes[1] = bytes[2] = 128, bytes[3] = 64, bytes[4] = 384;
    assert_int_equal(plan(first, last, 5, 6), 3 * 128 + 64);
    assert_int_equal(offsets[4], 0);
}

// Of two gaps the smaller one that fits is taken.
static void test_best_fit(void **state) {
    (void)state;
    int first[] = {0, 0, 0, 0, 2}, last[] = {1, 3, 1, 3, 3};
    bytes[0] = 1024, bytes[1] = 64, bytes[2] = 256, bytes[3] = 64, bytes[4] = 200;
    assert_int_equal(plan(first, last, 5, 4), 1024 + 64 + 256 + 64);
    assert_int_equal(offsets[4], offsets[2]);
}

// The end of the arena grows again after it shrank.
static void test_last_buffer_goes(void **state) {
    (void)state;
    int first[] = {0, 1, 3}, last[] = {4, 2, 4};
    bytes[0] = 64, bytes[1] = 64, bytes[2] = 4096;
    assert_int_equal(plan(first, last, 3, 5), 64 + 4096);
}

static void test_nothing(void **state) {
    (void)state;
    int first[] = {0, 0}, last[] = {0, 1};
    bytes[0] = bytes[1] = 0;
    assert_int_equal(plan(first, last, 0, 0), 0);
    assert_int_equal(plan(first, last, 2, 2), 0);
}

// One set of lifetimes serves many sizes.
static void test_sizes_change(void **state) {
    (void)state;
    int first[] = {0, 1, 2}, last[] = {1, 2, 3};
    TorLifetimes *lifetimes;
    assert_int_equal(tor_lifetimes_create(&lifetimes, arena, first, last, 3, 4), TOROID_OK);
    for (size_t n = 0; n < 5; n++) {
        bytes[0] = 64 * n, bytes[1] = 128, bytes[2] = 64 * n;
        assert_int_equal(tor_memory_assign(lifetimes, bytes, offsets, gaps), 64 * n + 128);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {TEST(test_no_overlap),       TEST(test_chain_takes_two),
                                       TEST(test_gaps_merge),       TEST(test_best_fit),
                                       TEST(test_last_buffer_goes), TEST(test_nothing),
                                       TEST(test_sizes_change)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

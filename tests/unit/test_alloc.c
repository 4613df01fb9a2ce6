// The allocator, arenas, regions, and what they do without memory.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"

static void test_alignment_and_count(void **state) {
    (void)state;
    uint64_t before = tor_alloc_count();
    size_t sizes[] = {0, 1, 63, 64, 65, 4096, 100001};
    for (size_t i = 0; i < TOR_COUNT_OF(sizes); i++) {
        unsigned char *memory = tor_alloc_zero(sizes[i]);
        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % TOR_CACHE_LINE, 0);
        for (size_t j = 0; j < sizes[i]; j++) assert_int_equal(memory[j], 0);
        memset(memory, 0xff, sizes[i]);
        tor_free(memory);
    }
    assert_int_equal(tor_alloc_count() - before, TOR_COUNT_OF(sizes));
    tor_free(NULL);
}

static void test_absurd_sizes(void **state) {
    (void)state;
    assert_null(tor_alloc(SIZE_MAX));
    assert_null(tor_alloc(SIZE_MAX - 63));
    assert_null(tor_alloc(SIZE_MAX / 2 + 1));
    assert_string_equal(toroid_last_error(), "out of memory");
}

static void test_nth_allocation_fails_once(void **state) {
    (void)state;
    for (uint64_t n = 1; n <= 5; n++) {
        tor_alloc_fail_at(n);
        uint64_t before = tor_alloc_count();
        for (uint64_t i = 1; i <= 6; i++) {
            void *memory = tor_alloc(8);
            if (i == n) {
                assert_null(memory);
            } else {
                assert_non_null(memory);
            }
            tor_free(memory);
        }
        assert_int_equal(tor_alloc_count() - before, 5);
    }
    tor_alloc_fail_at(1);
    tor_alloc_fail_at(0);
    void *memory = tor_alloc(8);
    assert_non_null(memory);
    tor_free(memory);
}

static void test_grow(void **state) {
    (void)state;
    int *array = NULL;
    size_t capacity = 0;
    uint64_t before = tor_alloc_count();
    for (int i = 0; i < 10000; i++) {
        assert_int_equal(tor_grow((void **)&array, &capacity, (size_t)i + 1, sizeof *array),
                         TOROID_OK);
        array[i] = i;
    }
    for (int i = 0; i < 10000; i++) assert_int_equal(array[i], i);
    assert_true(tor_alloc_count() - before < 30);
    tor_alloc_fail_at(1);
    size_t old = capacity;
    assert_int_equal(tor_grow((void **)&array, &capacity, old + 1, sizeof *array),
                     TOROID_NO_MEMORY);
    assert_int_equal(capacity, old);
    assert_int_equal(array[9999], 9999);
    assert_int_equal(tor_grow((void **)&array, &capacity, SIZE_MAX / 2, sizeof *array),
                     TOROID_NO_MEMORY);
    tor_free(array);
}

static void test_arena(void **state) {
    (void)state;
    TorArena *arena;
    assert_int_equal(tor_arena_create(&arena), TOROID_OK);
    unsigned char *last = NULL;
    for (size_t bytes = 0; bytes < 3000; bytes += 7) {
        unsigned char *memory = tor_arena_alloc(arena, bytes);
        assert_non_null(memory);
        assert_ptr_not_equal(memory, last);
        assert_int_equal((uintptr_t)memory % 16, 0);
        for (size_t i = 0; i < bytes; i++) assert_int_equal(memory[i], 0);
        memset(memory, 0xee, bytes);
        last = memory;
    }
    unsigned char *large = tor_arena_alloc(arena, 5 << 20);
    assert_non_null(large);
    large[(5 << 20) - 1] = 1;
    assert_string_equal(tor_arena_strdup(arena, "text"), "text");
    assert_string_equal(tor_arena_strdup(arena, ""), "");
    assert_null(tor_arena_alloc(arena, SIZE_MAX));
    tor_arena_destroy(&arena);
    assert_null(arena);
    tor_arena_destroy(&arena);
    tor_arena_destroy(NULL);
}

static void test_arena_without_memory(void **state) {
    (void)state;
    TorArena *arena;
    tor_alloc_fail_at(1);
    assert_int_equal(tor_arena_create(&arena), TOROID_NO_MEMORY);
    assert_null(arena);
    assert_int_equal(tor_arena_create(&arena), TOROID_OK);
    tor_alloc_fail_at(1);
    assert_null(tor_arena_alloc(arena, 8));
    assert_non_null(tor_arena_alloc(arena, 8));
    tor_arena_destroy(&arena);
}

static void test_region(void **state) {
    (void)state;
    TorRegion region = {0};
    bool moved;
    assert_int_equal(tor_region_fit(&region, 1000, &moved), TOROID_OK);
    assert_true(moved);
    assert_int_equal(region.used, 1000);
    assert_true(region.reserved >= 1000);
    unsigned char *base = region.base;
    memset(base, 7, 1000);
    size_t more = TOR_MIN(region.reserved, (size_t)32 << 20);
    assert_int_equal(tor_region_fit(&region, more, &moved), TOROID_OK);
    assert_false(moved);
    assert_ptr_equal(region.base, base);
    assert_int_equal(base[999], 7);
    base[more - 1] = 1;
    size_t reserved = region.reserved;
    tor_region_trim(&region);
    assert_int_equal(region.reserved, reserved);
    assert_int_equal(base[999], 0);
    tor_region_destroy(&region);
    assert_null(region.base);
    tor_region_destroy(&region);
    tor_region_trim(&region);
    assert_int_equal(tor_region_fit(&region, SIZE_MAX, &moved), TOROID_NO_MEMORY);
    assert_int_equal(tor_region_fit(&region, 0, &moved), TOROID_OK);
}

// Sanitizers need terabytes of address space for themselves.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Under `ulimit -v` a region takes what it needs and leaves the rest to others.
static void test_region_with_little_address_space(void **state) {
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {(rlim_t)1 << 30, (rlim_t)1 << 30};
        if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(10);
        TorRegion region = {0};
        bool moved;
        if (tor_region_fit(&region, 100 << 20, &moved) != TOROID_OK || !moved) _exit(1);
        if (region.reserved > (size_t)128 << 20) _exit(2);
        if (tor_region_fit(&region, 200 << 20, &moved) != TOROID_OK || !moved) _exit(3);
        if (tor_region_fit(&region, (size_t)2 << 30, &moved) != TOROID_NO_MEMORY) _exit(4);
        if (tor_region_fit(&region, 100 << 20, &moved) != TOROID_OK || region.base == NULL)
            _exit(5);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alignment_and_count),
        cmocka_unit_test(test_absurd_sizes),
        cmocka_unit_test(test_nth_allocation_fails_once),
        cmocka_unit_test(test_grow),
        cmocka_unit_test(test_arena),
        cmocka_unit_test(test_arena_without_memory),
        cmocka_unit_test(test_region),
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
        cmocka_unit_test(test_region_with_little_address_space),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

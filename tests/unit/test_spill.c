// Memory that waits in a file: same address, same bytes, private, plain again at its end.
#include "base/spill.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"

enum { BYTES = 4 << 20 };

static unsigned char byte(size_t i) { return (unsigned char)(i * 131 + i / 4096); }

static unsigned char *filled(void) {
    unsigned char *memory = malloc(BYTES);
    assert_non_null(memory);
    for (size_t i = 0; i < BYTES; i++) memory[i] = byte(i);
    return memory;
}

static void assert_filled(const unsigned char *memory) {
    for (size_t i = 0; i < BYTES; i++) assert_int_equal(memory[i], byte(i));
}

/// Pages of [memory, memory + BYTES) that this process has, by /proc/self/pagemap.
static size_t pages_here(const unsigned char *memory) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), count = 0;
    FILE *map = fopen("/proc/self/pagemap", "rb");
    assert_non_null(map);
    for (size_t at = 0; at + page <= BYTES; at += page) {
        uint64_t entry;
        fseek(map, (long)((uintptr_t)(memory + at) / page * 8), SEEK_SET);
        assert_int_equal(fread(&entry, 8, 1, map), 1);
        count += entry >> 63;
    }
    fclose(map);
    return count;
}

static void test_spilled(void **state) {
    (void)state;
    unsigned char *memory = filled();
    size_t page = (size_t)sysconf(_SC_PAGESIZE), all = BYTES / page;
    assert_true(pages_here(memory) >= all - 1);
    assert_true(tor_spill(memory, BYTES));
    assert_true(pages_here(memory) <= 2);  // the ends
    assert_true(tor_spill_bytes() >= BYTES - 2 * page && tor_spill_bytes() <= BYTES);
    const void *kept[] = {memory + BYTES / 2};
    tor_spill_keep(kept, 1);
    assert_true(pages_here(memory) <= 3);
    assert_filled(memory);

    memory[BYTES / 2] ^= 1;
    assert_int_equal(memory[BYTES / 2], byte(BYTES / 2) ^ 1);
    assert_true(tor_spill(memory, BYTES));  // with what was written
    assert_true(pages_here(memory) <= 2);
    assert_int_equal(memory[BYTES / 2], byte(BYTES / 2) ^ 1);
    memory[BYTES / 2] ^= 1;
    assert_filled(memory);

    tor_spill_end(memory, BYTES);
    assert_int_equal(tor_spill_bytes(), 0);
    memset(memory, 7, BYTES);
    for (size_t i = 0; i < BYTES; i++) assert_int_equal(memory[i], 7);
    free(memory);
}

static void test_small(void **state) {
    (void)state;
    unsigned char *memory = filled();
    assert_false(tor_spill(memory, TOR_SPILL_LEAST / 2));
    assert_false(tor_spill(NULL, 0));
    assert_int_equal(tor_spill_bytes(), 0);
    free(memory);
}

static void test_what_is_shared_stays(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        int flags = kind ? MAP_SHARED | MAP_ANONYMOUS : MAP_PRIVATE | MAP_ANONYMOUS;
        int access = kind ? PROT_READ | PROT_WRITE : PROT_READ;
        void *memory = mmap(NULL, BYTES, access, flags, -1, 0);
        assert_ptr_not_equal(memory, MAP_FAILED);
        assert_false(tor_spill(memory, BYTES));
        munmap(memory, BYTES);
    }
}

static void test_no_memory(void **state) {
    (void)state;
    unsigned char *memory = filled();
    tor_alloc_fail_at(1);
    bool ok = tor_spill(memory, BYTES);  // false, or true where the list had room
    tor_alloc_fail_at(0);
    assert_filled(memory);
    if (ok) tor_spill_end(memory, BYTES);
    assert_int_equal(tor_spill_bytes(), 0);
    free(memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_spilled),
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_what_is_shared_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// The one allocator, with a switch that makes the n-th allocation fail so that tests can walk every
// error path.
#include "base/alloc.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static _Atomic uint64_t allocations;
static _Atomic uint64_t until_failure;  // 0: off; 1: the next one fails

static bool told_to_fail(void) {
    uint64_t left = atomic_load_explicit(&until_failure, memory_order_relaxed);
    while (left != 0) {
        if (atomic_compare_exchange_weak(&until_failure, &left, left - 1)) return left == 1;
    }
    return false;
}

static void *alloc_aligned(size_t bytes, size_t alignment) {
    void *memory = NULL;
    size_t rounded = (bytes + TOR_CACHE_LINE - 1) / TOR_CACHE_LINE * TOR_CACHE_LINE;
    if (bytes == 0) rounded = TOR_CACHE_LINE;
    if (rounded >= bytes && rounded <= PTRDIFF_MAX && !told_to_fail()) {
        if (posix_memalign(&memory, alignment, rounded) != 0) memory = NULL;
    }
    if (memory == NULL) {
        tor_no_memory();
        return NULL;
    }
    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
    return memory;
}

void *tor_alloc(size_t bytes) { return alloc_aligned(bytes, TOR_CACHE_LINE); }

void *tor_alloc_large(size_t bytes) {
    if (bytes < TOR_HUGE_PAGE) return tor_alloc(bytes);
    void *memory = alloc_aligned(bytes, TOR_HUGE_PAGE);
    // Advice only: it may be refused where the kernel has no huge pages.
    if (memory != NULL) (void)madvise(memory, bytes, MADV_HUGEPAGE);
    return memory;
}

void *tor_alloc_zero(size_t bytes) {
    void *memory = tor_alloc(bytes);
    if (memory != NULL) memset(memory, 0, bytes);
    return memory;
}

void tor_free(void *memory) { free(memory); }

char *tor_strdup(const char *text) {
    size_t bytes = strlen(text) + 1;
    char *copy = tor_alloc(bytes);
    return copy == NULL ? NULL : memcpy(copy, text, bytes);
}

ToroidStatus tor_grow(void **array, size_t *capacity, size_t count, size_t item_bytes) {
    if (count <= *capacity) return TOROID_OK;
    size_t grown = TOR_MAX(count, *capacity + *capacity / 2);
    grown = TOR_MAX(grown, (size_t)8);
    if (item_bytes != 0 && grown > SIZE_MAX / 2 / item_bytes) return tor_no_memory();
    void *bigger = tor_alloc(grown * item_bytes);
    if (bigger == NULL) return TOROID_NO_MEMORY;
    if (*array != NULL) memcpy(bigger, *array, *capacity * item_bytes);
    tor_free(*array);
    *array = bigger;
    *capacity = grown;
    return TOROID_OK;
}

uint64_t tor_alloc_count(void) { return atomic_load_explicit(&allocations, memory_order_relaxed); }

void tor_alloc_fail_at(uint64_t n) { atomic_store(&until_failure, n); }

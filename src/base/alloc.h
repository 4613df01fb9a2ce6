/// The one allocator behind the whole library, and the arena built on it.
#ifndef TOR_BASE_ALLOC_H
#define TOR_BASE_ALLOC_H

#include "base/status.h"

#define TOR_CACHE_LINE 64
#define TOR_HUGE_PAGE ((size_t)2 << 20)

/// Memory aligned to TOR_CACHE_LINE bytes, not cleared. NULL if there is none (sets the message).
/// Zero bytes give a valid pointer. Free with tor_free().
void *tor_alloc(size_t bytes);
void *tor_alloc_zero(size_t bytes);
/// For blocks of megabytes that kernels stream: on huge pages where the system has them.
void *tor_alloc_large(size_t bytes);
void tor_free(void *memory);
/// A copy of a text; NULL if there is no memory.
char *tor_strdup(const char *text);

/// Grows an array from tor_alloc() so that it holds at least `count` items; keeps its content.
/// `*capacity` is in items. Amortised O(1).
ToroidStatus tor_grow(void **array, size_t *capacity, size_t count, size_t item_bytes);

/// Successful allocations by tor_alloc() in this process so far.
uint64_t tor_alloc_count(void);

/// Tests only: makes the n-th allocation from now (1 = the next) fail, once. 0 switches it off.
void tor_alloc_fail_at(uint64_t n);

/// A bump allocator: everything in it is freed at once.
typedef struct TorArena TorArena;
ToroidStatus tor_arena_create(TorArena **out);
void tor_arena_destroy(TorArena **arena);  ///< accepts NULL and *arena == NULL
/// Cleared memory that lives as long as the arena, aligned to 16 bytes; NULL if there is none.
void *tor_arena_alloc(TorArena *arena, size_t bytes);
char *tor_arena_strdup(TorArena *arena, const char *text);

/// A large block of address space that takes physical pages only as they are touched. It grows
/// without moving and without allocation while it stays within the reservation.
typedef struct {
    void *base;
    size_t reserved;  ///< bytes of address space
    size_t used;      ///< bytes the last tor_region_fit() asked for
    size_t touched;   ///< bytes from the start that may have pages
    double shrunk;    ///< when `used` fell under half of them (tor_now())
} TorRegion;
/// Makes at least `bytes` usable. `*moved` tells that `base` changed (contents are then lost).
ToroidStatus tor_region_fit(TorRegion *region, size_t bytes, bool *moved);
/// Gives back the pages beyond `used` once that was under half of what was touched for
/// TOR_IDLE_SECONDS. Cheap where there is nothing to do.
void tor_region_settle(TorRegion *region);
#define TOR_IDLE_SECONDS 10.0
/// Gives touched pages back to the system; the reservation stays.
void tor_region_trim(TorRegion *region);
void tor_region_destroy(TorRegion *region);

#endif

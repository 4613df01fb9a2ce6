/// Where each buffer lies in the arena, from lifetimes that are known at compile time and sizes
/// that are known at bind.
#ifndef TOR_PLAN_MEMORY_H
#define TOR_PLAN_MEMORY_H

#include "base/alloc.h"

typedef struct {
    int buffer;
    bool release;
} TorMemoryEvent;

/// The order in which buffers come and go; constant.
typedef struct TorLifetimes {
    TorMemoryEvent *events;
    size_t n_events;
    size_t n_buffers;
} TorLifetimes;

/// A hole in the arena.
typedef struct {
    size_t at, bytes;
} TorMemoryGap;

/// `first[i] > last[i]` means that buffer i is never touched. A buffer that a step makes never
/// overlaps one that the step reads. From `arena`.
ToroidStatus tor_lifetimes_create(TorLifetimes **out, TorArena *arena, const int *first,
                                  const int *last, size_t count, size_t steps);

/// Best fit over the gaps left by buffers that are gone. Offsets are multiples of TOR_CACHE_LINE.
/// @param gaps room for n_buffers + 2
/// @return bytes of arena
size_t tor_memory_assign(const TorLifetimes *lifetimes, const size_t *bytes, size_t *offsets,
                         TorMemoryGap *gaps);

#endif

// Best-fit placement. Few buffers live at once, so the list of gaps is short and a linear search is
// the fastest there is.
#include "plan/memory.h"

#include <string.h>

ToroidStatus tor_lifetimes_create(TorLifetimes **out, TorArena *arena, const int *first,
                                  const int *last, size_t count, size_t steps) {
    TorLifetimes *t = tor_arena_alloc(arena, sizeof *t);
    if (!t) return tor_no_memory();
    t->events = tor_arena_alloc(arena, (2 * count + 1) * sizeof *t->events);
    int *head = tor_arena_alloc(arena, (2 * steps + 1) * sizeof *head),
        *next = tor_arena_alloc(arena, (2 * count + 1) * sizeof *next);
    if (!t->events || !head || !next) return tor_no_memory();
    t->n_buffers = count;
    // Buckets of linked lists: what a step makes comes first, what it read last goes after.
    for (size_t s = 0; s < 2 * steps; s++) head[s] = -1;
    for (size_t i = count; i-- > 0;) {
        if (first[i] > last[i]) continue;
        next[2 * i] = head[2 * first[i]];
        head[2 * first[i]] = (int)(2 * i);
        next[2 * i + 1] = head[2 * last[i] + 1];
        head[2 * last[i] + 1] = (int)(2 * i + 1);
    }
    for (size_t s = 0; s < 2 * steps; s++)
        for (int e = head[s]; e >= 0; e = next[e])
            t->events[t->n_events++] = (TorMemoryEvent){.buffer = e / 2, .release = e % 2 == 1};
    *out = t;
    return TOROID_OK;
}

static void release(TorMemoryGap *gaps, size_t *count, size_t at, size_t bytes) {
    size_t i = *count;
    while (i > 0 && gaps[i - 1].at > at) i--;
    bool joins_left = i > 0 && gaps[i - 1].at + gaps[i - 1].bytes == at;
    bool joins_right = i < *count && at + bytes == gaps[i].at;
    if (joins_left && joins_right) {
        gaps[i - 1].bytes += bytes + gaps[i].bytes;
        memmove(&gaps[i], &gaps[i + 1], (*count - i - 1) * sizeof *gaps);
        (*count)--;
    } else if (joins_left) {
        gaps[i - 1].bytes += bytes;
    } else if (joins_right) {
        gaps[i].at = at;
        gaps[i].bytes += bytes;
    } else {
        memmove(&gaps[i + 1], &gaps[i], (*count - i) * sizeof *gaps);
        gaps[i] = (TorMemoryGap){at, bytes};
        (*count)++;
    }
}

size_t tor_memory_assign(const TorLifetimes *lifetimes, const size_t *bytes, size_t *offsets,
                         TorMemoryGap *gaps) {
    // The last gap is the open end; it is never used up.
    const size_t open = SIZE_MAX / 2;
    size_t count = 1, most = 0;
    gaps[0] = (TorMemoryGap){0, open};
    for (size_t e = 0; e < lifetimes->n_events; e++) {
        int i = lifetimes->events[e].buffer;
        size_t need = (bytes[i] + TOR_CACHE_LINE - 1) / TOR_CACHE_LINE * TOR_CACHE_LINE;
        if (need == 0) {
            offsets[i] = 0;
            continue;
        }
        if (lifetimes->events[e].release) {
            release(gaps, &count, offsets[i], need);
            continue;
        }
        size_t best = count - 1;
        for (size_t k = 0; k + 1 < count; k++)
            if (gaps[k].bytes >= need && (best == count - 1 || gaps[k].bytes < gaps[best].bytes))
                best = k;
        offsets[i] = gaps[best].at;
        gaps[best].at += need;
        gaps[best].bytes -= need;
        most = TOR_MAX(most, offsets[i] + need);
        if (gaps[best].bytes == 0 && best + 1 < count) {
            memmove(&gaps[best], &gaps[best + 1], (count - best - 1) * sizeof *gaps);
            count--;
        }
    }
    return most;
}

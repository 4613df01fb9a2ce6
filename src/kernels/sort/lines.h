/// What the dispatch and the SIMD sources of sort share.
#ifndef TOR_KERNELS_SORT_LINES_H
#define TOR_KERNELS_SORT_LINES_H

#include "kernels/sort/contract.h"

/// Does the line at these element offsets.
typedef void TorSortFn(const TorSortArgs *args, int64_t src, int64_t value, int64_t index,
                       void *scratch);

struct TorSortKernel {
    const char *name;
    uint32_t features;
    int key_bits;
    TorSortFn *fn;
};

/// Entries that a top-k search holds at a time: what may still be among the first k.
static inline int64_t tor_sort_held(int64_t n, int64_t k) {
    return TOR_MIN(n, k + TOR_MAX(k, 64) + 128);
}

static inline int64_t tor_sort_length(const TorSortArgs *args) { return args->size[args->axis]; }

#endif

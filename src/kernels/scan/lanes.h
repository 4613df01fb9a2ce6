/// What the dispatch and the SIMD sources of scan share.
#ifndef TOR_KERNELS_SCAN_LANES_H
#define TOR_KERNELS_SCAN_LANES_H

#include "kernels/scan/contract.h"

/// Lines that an item does side by side, at most.
enum { TOR_SCAN_LANES = 64 };

/// Pointers are those of the first element of the first line; steps go along a line, gaps from one
/// line to the next.
typedef struct {
    const void *src;
    void *dst;
    int64_t *index;
    int64_t n, lanes;
    int64_t src_step, dst_step, index_step, src_gap, dst_gap, index_gap;
} TorScanBlock;

typedef void TorScanFn(const TorScanBlock *block);

struct TorScanKernel {
    const char *name;
    uint32_t features;
    TorScanKind kind;
    unsigned dtypes;  ///< bits of TorDtype
    TorScanFn *fn;
};

#endif

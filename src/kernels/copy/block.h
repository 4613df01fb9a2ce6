/// What the dispatch and the SIMD sources of copy share: every kernel moves one two-dimensional
/// block.
#ifndef TOR_KERNELS_COPY_BLOCK_H
#define TOR_KERNELS_COPY_BLOCK_H

#include "kernels/copy/contract.h"

typedef enum {
    TOR_COPY_run,        ///< both columns next to each other
    TOR_COPY_splat,      ///< dst's columns next to each other, src's all the same element
    TOR_COPY_transpose,  ///< dst's columns and src's rows next to each other
    TOR_COPY_strided,    ///< anything
} TorCopyMode;

/// dst[r * dst_row + c * dst_col] = src[r * src_row + c * src_col]; strides in bytes. `bytes` is an
/// element's; no address needs to be aligned to it.
typedef void TorCopyFn(uint8_t *dst, const uint8_t *src, int64_t rows, int64_t cols,
                       int64_t dst_row, int64_t dst_col, int64_t src_row, int64_t src_col,
                       int64_t bytes);

struct TorCopyKernel {
    const char *name;
    uint32_t features;
    TorCopyMode mode;
    int elem_bytes;  ///< 0: any
    TorCopyFn *fn;
};

#endif

/// What the dispatch and the SIMD sources of gather share: every kernel does one two-dimensional
/// block.
#ifndef TOR_KERNELS_GATHER_BLOCK_H
#define TOR_KERNELS_GATHER_BLOCK_H

#include "kernels/gather/contract.h"

typedef enum {
    TOR_INDEX_gather_rows,  ///< one index a row, columns next to each other in data and other
    TOR_INDEX_gather_elements,
    TOR_INDEX_scatter_rows,
    TOR_INDEX_scatter_elements,
    TOR_INDEX_reduce,  ///< rows or elements
} TorIndexMode;

/// Pointers are those of the block's first element, strides of rows and columns in bytes for data
/// and other, in elements for indices.
typedef struct {
    uint8_t *data, *other;
    const void *index[TOR_INDEX_MAX];
    int64_t rows, cols;
    int64_t data_row, data_col, other_row, other_col;
    int64_t index_row[TOR_INDEX_MAX], index_col[TOR_INDEX_MAX];
    int64_t axis_bytes[TOR_INDEX_MAX];
    const TorIndexArgs *args;
} TorIndexBlock;

typedef void TorIndexFn(const TorIndexBlock *block);

struct TorIndexKernel {
    const char *name;
    uint32_t features;
    TorIndexMode mode;
    int elem_bytes;   ///< 0: any
    unsigned dtypes;  ///< bits of TorDtype; 0: any
    TorIndexFn *fn;
};

static inline int64_t tor_index_load(const void *index, TorDtype dtype, int64_t at) {
    switch (dtype) {
        case TOR_int64: return ((const int64_t *)index)[at];
        case TOR_int32: return ((const int32_t *)index)[at];
        case TOR_int16: return ((const int16_t *)index)[at];
        case TOR_int8: return ((const int8_t *)index)[at];
        default: return ((const uint8_t *)index)[at];
    }
}

#endif

/// Copy family: moves and makes elements: strided copy, fill, arange.
///
/// pad, cat, flip, repeat, slice_scatter and contiguous are planned by the caller as copies and
/// fills into parts of one destination. Strides are in elements and of any sign; a data pointer is
/// the address of element [0, 0, ...]. Sizes may be 0. Destinations must not overlap themselves or
/// a source.
#ifndef TOR_KERNELS_COPY_CONTRACT_H
#define TOR_KERNELS_COPY_CONTRACT_H

#include "base/dtype.h"
#include "base/pool.h"

enum { TOR_COPY_RANK = 12 };

/// A row of kernels.inc: the functions of one instruction set.
typedef struct TorCopyKernel TorCopyKernel;

/// dst[i] = src[i] for every index i; bits are kept (NaN payloads too).
typedef struct {
    // Set before bind, which merges and reorders them.
    int rank;        ///< 0..TOR_COPY_RANK
    int elem_bytes;  ///< 1, 2, 4 or 8
    int64_t size[TOR_COPY_RANK];
    int64_t src_stride[TOR_COPY_RANK];  ///< 0: broadcast
    int64_t dst_stride[TOR_COPY_RANK];  ///< not 0 where size > 1

    // Set before each run.
    const void *src;
    void *dst;

    // Set by bind.
    int64_t items;
    size_t scratch_bytes;  ///< 0
    const TorCopyKernel *kernel;
    int64_t src_offset, dst_offset;  ///< private: bytes; from the reversal of negative strides
    int mode;                        ///< private
    int tile_dim;                    ///< private: the dim in which src has stride 1, for transposes
    int64_t run;                     ///< private: elements an item takes of the last dim
    int64_t tile;                    ///< private: elements an item takes of tile_dim
} TorCopyArgs;

void tor_copy_bind(TorCopyArgs *args);
bool tor_copy_bind_kernel(TorCopyArgs *args, const TorCopyKernel *kernel);
void tor_copy_run(const void *args, int64_t begin, int64_t end, void *scratch);
/// The oracle. Needs no bind; right before and after it.
void tor_copy_ref(const TorCopyArgs *args);

/// dst[i] = value. A copy from one element; `value` holds its bytes.
typedef struct {
    TorCopyArgs copy;  ///< rank, elem_bytes, size, dst_stride before bind; dst before each run
    uint8_t value[8];  ///< may change between runs
} TorFillArgs;

void tor_fill_bind(TorFillArgs *args);  ///< then args->copy.items, args->copy.scratch_bytes
void tor_fill_run(const void *args, int64_t begin, int64_t end, void *scratch);
/// The oracle. Needs no bind.
void tor_fill_ref(const TorFillArgs *args);

/// dst[i] = start + i * step, i in [0, n).
/// int64 arithmetic (wrapping) stored as `dtype` for integers and bool; for floats in the type that
/// ATen accumulates in (double for float32 and float64, float for halves), rounded once to dtype;
/// ATen steps from each vector's first value instead, and so may differ by 1 ulp.
typedef struct {
    TorDtype dtype;
    int64_t n, dst_stride;
    TorScalar start, step;  ///< .i for integer dtypes, .f for floats; may change between runs
    void *dst;
    int64_t items;
    size_t scratch_bytes;  ///< 0
} TorArangeArgs;

void tor_arange_bind(TorArangeArgs *args);
void tor_arange_run(const void *args, int64_t begin, int64_t end, void *scratch);
/// The oracle. Needs no bind.
void tor_arange_ref(const TorArangeArgs *args);

/// Row `index` of kernels.inc, NULL past the last.
const TorCopyKernel *tor_copy_kernel(int index);
const char *tor_copy_kernel_name(const TorCopyKernel *kernel);

#endif

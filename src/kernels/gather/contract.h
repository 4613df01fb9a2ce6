/// Gather family: reads or writes at computed places. One formula serves every indexing op.
///
/// Loops run over an index space i = [0, size[0]) x ... x [0, size[rank-1]). With up to 8 index
/// tensors,
///
///     place(i)      = sum_d data_stride[d] * i[d]  +  sum_k axis_stride[k] * wrap(index_k(i),
///     axis_size[k]) index_k(i)    = index[k][sum_d index_stride[k][d] * i[d]] other(i)      =
///     sum_d other_stride[d] * i[d]
///
///     tor_gather_run:   other[other(i)] = data[place(i)]
///     tor_scatter_run:  data[place(i)] = other[other(i)]      or op= by `reduce`
///
/// How ops map (x, w: `data`; result or source: `other`; "own": that operand's stride of the dim):
///
///     op                 loop dims               data_stride                axes index_stride
///     embedding(w, ix)   ix dims ++ rest         0 on ix dims, own on rest  0 of w        own on
///     ix dims, 0 on rest index_select       dims of result          0 on axis, own elsewhere axis
///     own on axis, 0 elsewhere gather, scatter    dims of index           0 on axis, own elsewhere
///     axis          own everywhere index, index_put   result dims (numpy)     0 on index dims, own
///     else  each indexed  own on index dims, 0 else index_copy         dims of source          0
///     on axis, own elsewhere   axis          own on axis, 0 elsewhere
///
/// Negative indices count from the end only where `wrap` is set: eager's index and index_put take
/// them, its other ops raise. An index out of range stores 1 + k (k: which index tensor) to *error;
/// it then reads the nearest row, or writes nothing. *error is never cleared here. An axis of size
/// 0 with a non-empty index does the same and reads nothing.
///
/// A scatter writes only the places it is told: the caller has put the base there, or works in
/// place. Duplicate places are written in row-major order of i, so the last assignment stays, and
/// sums and products are rounded in that order to data's type after each step (halves are computed
/// in float32, bool is "or" and "and", integers wrap). Eager's index_put does the same; its
/// scatter_add sums halves in float32 and rounds once, for which the caller casts before and after.
/// Of max and min, a NaN wins. It runs in parallel over dims with
/// data_stride
/// != 0 only: these must address distinct elements of `data` (no overlap with the indexed axes), as
/// dims of a tensor do.
#ifndef TOR_KERNELS_GATHER_CONTRACT_H
#define TOR_KERNELS_GATHER_CONTRACT_H

#include "base/dtype.h"
#include "base/pool.h"

enum { TOR_INDEX_RANK = 12, TOR_INDEX_MAX = 8 };

/// What a scatter does with an element that is there.
typedef enum {
    TOR_SCATTER_assign,
    TOR_SCATTER_add,
    TOR_SCATTER_mul,
    TOR_SCATTER_max,
    TOR_SCATTER_min,
} TorScatterReduce;

/// A row of kernels.inc: the functions of one instruction set.
typedef struct TorIndexKernel TorIndexKernel;

typedef struct {
    // Set before bind, which merges and reorders dims.
    TorDtype dtype;           ///< of data and other
    TorScatterReduce reduce;  ///< of a scatter
    bool wrap;
    int rank;     ///< 0..TOR_INDEX_RANK
    int n_index;  ///< 1..TOR_INDEX_MAX
    int64_t size[TOR_INDEX_RANK];
    int64_t data_stride[TOR_INDEX_RANK];
    int64_t other_stride[TOR_INDEX_RANK];  ///< 0 in a scatter: broadcast values
    int64_t index_stride[TOR_INDEX_MAX][TOR_INDEX_RANK];
    int64_t axis_size[TOR_INDEX_MAX], axis_stride[TOR_INDEX_MAX];
    TorDtype index_dtype[TOR_INDEX_MAX];  ///< int32 or int64 (uint8, int8, int16 too)

    // Set before each run. gather only reads data, scatter only reads other.
    void *data, *other;
    const void *index[TOR_INDEX_MAX];
    int *error;

    // Set by bind.
    int64_t items;
    size_t scratch_bytes;  ///< 0
    const TorIndexKernel *kernel;
    int elem_bytes;     ///< private
    int mode;           ///< private
    int item_dims;      ///< private: leading dims that items count
    int64_t tile, run;  ///< private: a block's part of the last two dims
} TorIndexArgs;

void tor_gather_bind(TorIndexArgs *args);
void tor_gather_run(const void *args, int64_t begin, int64_t end, void *scratch);
void tor_scatter_bind(TorIndexArgs *args);
void tor_scatter_run(const void *args, int64_t begin, int64_t end, void *scratch);
bool tor_gather_bind_kernel(TorIndexArgs *args, const TorIndexKernel *kernel);
bool tor_scatter_bind_kernel(TorIndexArgs *args, const TorIndexKernel *kernel);

/// After *error was set: the first index tensor and value out of range, for the message.
bool tor_index_find_error(const TorIndexArgs *args, int *which, int64_t *value);

/// The oracles. Need no bind; right before and after it.
void tor_gather_ref(const TorIndexArgs *args);
void tor_scatter_ref(const TorIndexArgs *args);

/// Row `index` of kernels.inc, NULL past the last.
const TorIndexKernel *tor_index_kernel(int index);
const char *tor_index_kernel_name(const TorIndexKernel *kernel);

#endif

/// Bag family: sums, means and maxima of rows of a table (torch.nn.functional.embedding_bag).
///
/// Bag i has the indices [offsets[i], offsets[i + 1]) of `index`; the last bag ends at `count`
/// (with include_last it ends at the last offset). y[i] is the sum of the rows w[index] (times
/// `factor`, of sums alone), their mean, or their maximum (NaN wins). Rows of index `padding_idx`
/// do not count; an empty bag gives 0. Strides are in elements; columns of y have stride 1.
///
/// An index outside the table sets *error to 1, offsets that do not ascend from 0 to at most
/// `count` set it to 2; their rows are not read.
///
/// Numeric policy: in the order of the indices, in float32 (float64 for float64), one rounding.
#ifndef TOR_KERNELS_BAG_CONTRACT_H
#define TOR_KERNELS_BAG_CONTRACT_H

#include "base/dtype.h"
#include "base/pool.h"

typedef enum { TOR_BAG_sum, TOR_BAG_mean, TOR_BAG_max } TorBagMode;

struct TorBagRow;

typedef struct {
    TorBagMode mode;
    TorDtype dtype;        ///< of w, factor and y
    TorDtype index_dtype;  ///< int32 or int64, of index and offsets
    bool include_last;
    int64_t padding_idx;  ///< -1: none
    int64_t bags, count, rows, width;
    int64_t w_row, w_col, index_stride, offset_stride, factor_stride, y_row;

    const void *w, *index, *offsets;
    const void *factor;  ///< or NULL
    void *y;
    int *error;

    int64_t items;  ///< set by bind: bags
    size_t scratch_bytes;
    const struct TorBagRow *row;
} TorBagArgs;

typedef struct TorBagRow {
    const char *name;
    uint32_t features;
    TorDtype dtype;
    TorRangeFn run;
} TorBagRow;

static inline int64_t tor_bag_integer(const TorBagArgs *args, const void *data, int64_t at) {
    return args->index_dtype == TOR_int32 ? ((const int32_t *)data)[at]
                                          : ((const int64_t *)data)[at];
}

/// The range of bag `i`; an empty one, and *error, where offsets are wrong.
static inline void tor_bag_range(const TorBagArgs *args, int64_t i, int64_t *first, int64_t *end) {
    bool last = i == args->bags - 1 && !args->include_last;
    *first = tor_bag_integer(args, args->offsets, i * args->offset_stride);
    *end = last ? args->count : tor_bag_integer(args, args->offsets, (i + 1) * args->offset_stride);
    if (*first >= 0 && *first <= *end && *end <= args->count && (i || *first == 0)) return;
    __atomic_store_n(args->error, 2, __ATOMIC_RELAXED);
    *end = *first;
}

void tor_bag_bind(TorBagArgs *args);
void tor_bag_run(const void *args, int64_t begin, int64_t end, void *scratch);
/// The oracle: sums in double. Needs no bind.
void tor_bag_run_ref(const TorBagArgs *args);

#endif

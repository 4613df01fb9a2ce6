/// Sort family: order statistics along one axis, and binary search in sorted lines.
///
/// A *line* is what lies along `axis` at one place of the other dims; a work item is one line. NaN
/// is greater than everything, all NaNs are equal, and so are 0.0 and -0.0. Equal elements keep the
/// order of their positions, also with `descending`: every sort here is stable, and of equal
/// elements top, kth and the medians take the first. Values are copied from the source bit for bit.
///
///     all        the whole line in order; as many results as the line has elements
///     top        its first k in that order
///     kth        the k-th (from 1) alone
///     median     number (n - 1) / 2 from 0; the first NaN if there is one
///     nanmedian  the median of what is not NaN; the first NaN if nothing else is there
///     mode       the last position of the most frequent value (of several, the least); no NaN
///                equals another
///
/// Strides are in elements and of any sign; a data pointer is the address of element [0, 0, ...].
/// Results must not overlap the source or each other.
#ifndef TOR_KERNELS_SORT_CONTRACT_H
#define TOR_KERNELS_SORT_CONTRACT_H

#include "base/dtype.h"
#include "base/pool.h"

enum { TOR_SORT_RANK = 12 };

typedef enum {
    TOR_SORT_all,
    TOR_SORT_top,
    TOR_SORT_kth,
    TOR_SORT_median,
    TOR_SORT_nanmedian,
    TOR_SORT_mode,
} TorSortKind;

/// A row of kernels.inc: the functions of one instruction set.
typedef struct TorSortKernel TorSortKernel;

typedef struct {
    // Set before bind.
    TorSortKind kind;
    TorDtype dtype;
    bool descending;              ///< all and top
    int rank, axis;               ///< rank 1..TOR_SORT_RANK
    int64_t k;                    ///< top and kth; more than the line has counts as all of it
    int64_t size[TOR_SORT_RANK];  ///< of src
    int64_t src_stride[TOR_SORT_RANK], value_stride[TOR_SORT_RANK], index_stride[TOR_SORT_RANK];

    // Set before each run.
    const void *src;
    void *values;      ///< NULL: not wanted
    int64_t *indices;  ///< positions along the axis; NULL: not wanted

    // Set by bind.
    int64_t items;
    size_t scratch_bytes;
    const TorSortKernel *kernel;
    int64_t results;  ///< of a line
} TorSortArgs;

void tor_sort_bind(TorSortArgs *args);
bool tor_sort_bind_kernel(TorSortArgs *args, const TorSortKernel *kernel);
void tor_sort_run(const void *args, int64_t begin, int64_t end, void *scratch);
/// The oracle. Needs no bind; right before and after it. `order` has room for a line.
void tor_sort_ref(const TorSortArgs *args, int64_t *order);

/// dst[i] = how many elements of a sorted line are less than value[i] (`right`: or equal to it), by
/// bisection: the search goes right unless the element in the middle is greater or (not `right`)
/// equal. So a NaN of the line is passed, as in ATen. Lines lie along the last dim of `sorted`,
/// whose other dims are those of `values`; one line for all has strides of 0 there.
typedef struct {
    // Set before bind.
    TorDtype dtype;      ///< of sorted and values
    TorDtype dst_dtype;  ///< int64 or int32
    bool right;
    int rank;  ///< of values, 0..TOR_SORT_RANK
    int64_t n, line_stride;
    int64_t size[TOR_SORT_RANK], value_stride[TOR_SORT_RANK], dst_stride[TOR_SORT_RANK];
    int64_t sorted_stride[TOR_SORT_RANK];  ///< 0 in the last dim

    // Set before each run.
    const void *sorted, *values;
    void *dst;

    // Set by bind.
    int64_t items;
    size_t scratch_bytes;  ///< 0
} TorSearchArgs;

void tor_search_bind(TorSearchArgs *args);
void tor_search_run(const void *args, int64_t begin, int64_t end, void *scratch);
/// The oracle: counts.
void tor_search_ref(const TorSearchArgs *args);

/// Row `index` of kernels.inc, NULL past the last.
const TorSortKernel *tor_sort_kernel(int index);
const char *tor_sort_kernel_name(const TorSortKernel *kernel);

#endif

/// Scan family: running sums, products, extremes and log-sum-exps along one axis.
///
/// src and dst have one dtype (the caller casts). As ATen's, a line is one sequence in order:
///
///     sum, prod  in double for float32 and float64, in float for halves (rounded at each store,
///                not in the running value), wrapping int64 for integers; no bool
///     logsumexp  floats; in double
///     max, min   any type; the value so far, of equals the last; a NaN stays, and later NaNs take
///                its place. index gets the position of the value
///
/// Strides are in elements and of any sign; a data pointer is the address of element [0, 0, ...].
#ifndef TOR_KERNELS_SCAN_CONTRACT_H
#define TOR_KERNELS_SCAN_CONTRACT_H

#include "base/dtype.h"
#include "base/pool.h"

enum { TOR_SCAN_RANK = 12 };

typedef enum {
    TOR_SCAN_sum,
    TOR_SCAN_prod,
    TOR_SCAN_logsumexp,
    TOR_SCAN_max,
    TOR_SCAN_min,
} TorScanKind;

/// A row of kernels.inc: the functions of one instruction set.
typedef struct TorScanKernel TorScanKernel;

typedef struct {
    // Set before bind.
    TorScanKind kind;
    TorDtype dtype;
    int rank, axis;  ///< rank 0..TOR_SCAN_RANK; a 0-d tensor is one line of one element
    int64_t size[TOR_SCAN_RANK];
    int64_t src_stride[TOR_SCAN_RANK], dst_stride[TOR_SCAN_RANK], index_stride[TOR_SCAN_RANK];

    // Set before each run.
    const void *src;
    void *dst;       ///< may be src where strides are equal; NULL for max and min: not wanted
    int64_t *index;  ///< of max and min; NULL: not wanted

    // Set by bind.
    int64_t items;
    size_t scratch_bytes;  ///< 0
    const TorScanKernel *kernel;
    int lane_dim;  ///< private: lines that are done side by side lie along it; -1: none do
} TorScanArgs;

void tor_scan_bind(TorScanArgs *args);
bool tor_scan_bind_kernel(TorScanArgs *args, const TorScanKernel *kernel);
void tor_scan_run(const void *args, int64_t begin, int64_t end, void *scratch);
/// Whether there is a kernel for the type.
bool tor_scan_takes(TorScanKind kind, TorDtype dtype);
/// The oracle. Needs no bind; right before and after it.
void tor_scan_ref(const TorScanArgs *args);

/// Row `index` of kernels.inc, NULL past the last.
const TorScanKernel *tor_scan_kernel(int index);
const char *tor_scan_kernel_name(const TorScanKernel *kernel);

#endif

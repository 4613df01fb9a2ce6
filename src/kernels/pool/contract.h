/// Pooling family: maximum, average and adaptive average over windows in 1 to 3 spatial dims.
///
/// x and y are logically [b, c, d, h, w]; missing leading spatial dims have size 1 (kernel, stride
/// and dilation 1, padding 0). Strides are in elements and arbitrary. float32 with channel stride 1
/// in x and y has lanes over channels, with stride 1 over w it has lanes over w (max without
/// indices, avg); all else runs in generic loops.
///
/// Output sizes are the caller's, so ceil_mode is in them. Rules are ATen's:
///   max      NaN wins. The index is that of the first maximum in row-major order (of the last NaN
///   if
///            there is one), in the flat input plane: (d * H + h) * W + w. A window that
///            dilation carries past the input gives the lowest value. Every dtype.
///   avg      the sum over the window's part inside x, divided by `divisor` if that is not 0; else
///   by
///            the window clipped to the padded input (count_include_pad) or to the input. An empty
///            window gives 0. Floats and int64 (division truncates).
///   adaptive average and maximum: window [floor(o * in / out), ceil((o + 1) * in / out)). Floats.
/// Numeric policy: float32 and halves sum in float32 in row-major order, double in double; one
/// rounding of a half at the end. Each output is one thread's work.
#ifndef TOR_KERNELS_POOL_CONTRACT_H
#define TOR_KERNELS_POOL_CONTRACT_H

#include "base/dtype.h"
#include "base/pool.h"

typedef enum {
    TOR_POOL_max,
    TOR_POOL_avg,
    TOR_POOL_adaptive_avg,
    TOR_POOL_adaptive_max
} TorPoolKind;

static inline bool tor_pool_is_max(TorPoolKind kind) {
    return kind == TOR_POOL_max || kind == TOR_POOL_adaptive_max;
}
static inline bool tor_pool_is_adaptive(TorPoolKind kind) { return kind >= TOR_POOL_adaptive_avg; }

/// What a row wants of x and y.
typedef enum {
    TOR_POOL_any,
    TOR_POOL_channels_last,  ///< float32, channel stride 1
    TOR_POOL_planes          ///< float32, w stride 1, max or avg
} TorPoolLayout;

struct TorPoolRow;

/// Call tor_pool_bind() after the first part is filled. Data pointers may change at each run.
typedef struct {
    TorPoolKind kind;
    TorDtype dtype;  ///< of x and y
    int64_t batch, channels;
    int64_t in_size[3], out_size[3];           ///< d, h, w
    int64_t kernel[3], stride[3], padding[3];  ///< not read for adaptive kinds
    int64_t dilation[3];                       ///< max only
    bool count_include_pad;                    ///< avg only
    int64_t divisor;                           ///< avg only; 0: none
    int64_t x_stride[5], y_stride[5];          ///< b, c, d, h, w, elements
    int64_t index_stride[5];                   ///< max only

    const void *x;
    void *y;         ///< NULL: max indices only
    int64_t *index;  ///< max only; NULL: not wanted

    int64_t items;                          ///< out: for tor_team_run()
    size_t scratch_bytes;                   ///< out: a thread
    const struct TorPoolRow *row;           ///< out: row->name for logs
    int64_t channel_block, channel_blocks;  ///< private
} TorPoolArgs;

bool tor_pool_supported(const TorPoolArgs *args, const char **reason);
/// Chooses the row and the split. No allocation, less than 1 us.
void tor_pool_bind(TorPoolArgs *args);
/// A TorRangeFn.
void tor_pool_run(const void *args, int64_t begin, int64_t end, void *scratch);

/// One kernel: kernels.inc has a line for each.
typedef struct TorPoolRow {
    const char *name;
    uint32_t features;  ///< TOR_CPU_ bits that it needs
    TorPoolLayout layout;
    TorRangeFn run;
} TorPoolRow;

/// All rows of this build, best first.
const TorPoolRow *tor_pool_rows(int *count);

/// The oracle: one window at a time, sums in double.
void tor_pool_run_ref(const TorPoolArgs *args);

#endif

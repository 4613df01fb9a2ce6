/// Resize family: nearest, linear and cubic interpolation over 1 to 3 spatial dims.
///
/// x and y are logically [b, c, d, h, w]; missing leading spatial dims have size 1 on both sides.
/// Strides are in elements and arbitrary. Along each axis an output position has 1, 2 or 4 taps,
/// places in x with weights, by ATen's rules (UpSample.h): `scale` of an axis is the factor that
/// the caller named, 0 where the sizes decide; align_corners puts the corners' centres onto each
/// other. Cubic has A = -0.75 (Keys 1981) and serves two dims.
///
/// Numeric policy: places and weights in float32 (float64 for float64). Floats are summed over h
/// and d first, then over w, in float32 (float64), and rounded once. nearest copies bits, of any
/// type; the others take floats.
#ifndef TOR_KERNELS_RESIZE_CONTRACT_H
#define TOR_KERNELS_RESIZE_CONTRACT_H

#include "base/dtype.h"
#include "base/pool.h"

typedef enum {
    TOR_RESIZE_nearest,
    TOR_RESIZE_nearest_exact,
    TOR_RESIZE_linear,
    TOR_RESIZE_cubic
} TorResizeMode;

enum { TOR_RESIZE_TAPS = 4 };

/// What an output position along an axis reads.
typedef struct {
    int64_t at[TOR_RESIZE_TAPS];
    double weight[TOR_RESIZE_TAPS];
} TorResizeTaps;

struct TorResizeRow;

/// Fill the first part, bind, set the data, run.
typedef struct {
    TorResizeMode mode;
    TorDtype dtype;
    bool align_corners;  ///< not read for nearest
    double scale[3];
    int64_t batch, channels;
    int64_t in_size[3], out_size[3];  ///< d, h, w; in_size is not 0 unless out_size is
    int64_t x_stride[5], y_stride[5];

    const void *x;
    void *y;

    // Set by bind.
    int64_t items;  ///< lines of y: [b, d, h], times channels unless these lie side by side
    size_t scratch_bytes;
    bool channels_inside;
    const struct TorResizeRow *row;
} TorResizeArgs;

bool tor_resize_supported(const TorResizeArgs *args, const char **reason);
void tor_resize_bind(TorResizeArgs *args);
/// A TorRangeFn.
void tor_resize_run(const void *args, int64_t begin, int64_t end, void *scratch);

/// How many taps axis `i` has: 1 where nothing is interpolated.
int tor_resize_taps_count(const TorResizeArgs *args, int i);
/// The taps of output position `o` of axis `i`.
TorResizeTaps tor_resize_taps(const TorResizeArgs *args, int i, int64_t o);

typedef struct TorResizeRow {
    const char *name;
    uint32_t features;
    uint32_t dtypes;  ///< bits
    bool nearest;
    TorRangeFn run;
} TorResizeRow;

/// All rows of this build; the last that fits is taken.
const TorResizeRow *tor_resize_rows(int *count);

/// The oracle: one output at a time.
void tor_resize_run_ref(const TorResizeArgs *args);

#endif

/// Grid family: sampling of a tensor at given places (torch.nn.functional.grid_sample).
///
/// x [b, c, d, h, w], grid [b, od, oh, ow, dims] with places in [-1, 1] in the order x, y(, z), and
/// y [b, c, od, oh, ow]; two-dimensional sampling has d = od = 1 and dims = 2. Strides are in
/// elements and arbitrary. Rules are ATen's: a tap outside the input counts as 0 after the padding
/// rule (zeros, the border's value, reflection) has moved the place (linear, nearest) or the tap
/// (cubic, two dims only, A = -0.75); nearest rounds half to even. A place that is NaN gives NaN
/// or 0 and reads nothing.
///
/// Numeric policy: float32 (float64 for float64) from place to sum, one rounding.
#ifndef TOR_KERNELS_GRID_CONTRACT_H
#define TOR_KERNELS_GRID_CONTRACT_H

#include <math.h>

#include "base/dtype.h"
#include "base/pool.h"

typedef enum { TOR_GRID_linear, TOR_GRID_nearest, TOR_GRID_cubic } TorGridMode;
typedef enum { TOR_GRID_zeros, TOR_GRID_border, TOR_GRID_reflection } TorGridPadding;

struct TorGridRow;

typedef struct {
    TorGridMode mode;
    TorGridPadding padding;
    bool align_corners;
    TorDtype dtype;  ///< of x, grid and y; a float type
    int dims;        ///< 2 or 3
    int64_t batch, channels;
    int64_t in_size[3], out_size[3];  ///< d, h, w
    int64_t x_stride[5], y_stride[5];
    int64_t grid_stride[5];  ///< b, d, h, w, coordinate

    const void *x, *grid;
    void *y;

    int64_t items;  ///< set by bind: lines of outputs
    size_t scratch_bytes;
    const struct TorGridRow *row;
} TorGridArgs;

typedef struct TorGridRow {
    const char *name;
    uint32_t features;
    TorDtype dtype;
    TorRangeFn run;
} TorGridRow;

void tor_grid_bind(TorGridArgs *args);
void tor_grid_run(const void *args, int64_t begin, int64_t end, void *scratch);
/// The oracle, in double from the place on.
void tor_grid_run_ref(const TorGridArgs *args);

#endif

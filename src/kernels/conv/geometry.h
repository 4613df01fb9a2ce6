/// What the conv kernels and their planning share: taps along an axis, tiles to pixels, and
/// scratch.
#ifndef TOR_KERNELS_CONV_GEOMETRY_H
#define TOR_KERNELS_CONV_GEOMETRY_H

#include "base/alloc.h"
#include "kernels/conv/contract.h"

/// One axis of one phase. Output q of `out` is output position first + q * step; it reads kernel
/// taps tap + j * tap_step at input positions q * stride + off + j * off_step, j in [0, n). A
/// transposed convolution of stride s is s phases an axis, each a gather with stride 1.
typedef struct {
    int64_t n, tap, tap_step, off, off_step;
    int64_t out, first, step, stride;
} TorConvAxis;

/// Output pixels of a tile of the depthwise kernel.
enum { TOR_CONV_TILE_LINES = 2, TOR_CONV_TILE_PIXELS = 4 };

static inline TorConvAxis tor_conv_axis(const TorConvArgs *args, int i, int64_t phase) {
    int64_t stride = args->plan.stride[i], dilation = args->dilation[i];
    if (!args->transposed)
        return (TorConvAxis){
            args->kernel[i], 0, 1, -args->padding[i], dilation, args->plan.out_size[i], 0, 1,
            stride};
    TorConvAxis axis = {.first = phase, .step = stride, .stride = 1, .tap_step = 1};
    if (phase < args->plan.out_size[i])
        axis.out = (args->plan.out_size[i] - phase + stride - 1) / stride;
    // Input position i reaches output i * stride - padding + tap * dilation.
    int64_t last = -1;
    for (int64_t tap = 0; tap < args->kernel[i]; tap++) {
        int64_t distance = phase + args->padding[i] - tap * dilation;
        if (distance % stride) continue;
        if (axis.n == 0) {
            axis.tap = tap;
            axis.off = distance / stride;
        } else if (axis.n == 1) {
            axis.tap_step = tap - last;
            axis.off_step = distance / stride - axis.off;
        }
        axis.n++;
        last = tap;
    }
    return axis;
}

static inline int64_t tor_conv_low(const TorConvAxis *axis) {
    int64_t end = axis->off + (axis->n - 1) * axis->off_step;
    return axis->n ? TOR_MIN(axis->off, end) : 0;
}

/// Input positions from the lowest to the highest tap, less one.
static inline int64_t tor_conv_span(const TorConvAxis *axis) {
    int64_t span = (axis->n - 1) * axis->off_step;
    return axis->n ? TOR_MAX(span, -span) : 0;
}

enum {
    TOR_CONV_NEAR = 6,     ///< fewer tiles of pixels than this fetch weights just ahead
    TOR_CONV_PANELS = 16,  ///< panels at most where pixels are the outer loop
    TOR_CONV_FEW = 3072,   ///< floats of the result that stay in L1 there
    TOR_CONV_CHAIN = 384,  ///< products that are summed in one go at most, which keeps errors low
    TOR_CONV_CHAIN_END = 1,
    TOR_CONV_BLOCK_END = 2
};

/// Products of one output that lie together in memory.
typedef struct {
    int64_t a;    ///< bytes from the output's first input
    int64_t b;    ///< row of the packed panel
    int64_t len;  ///< products
    int64_t end;  ///< 0, or of what it is the last
} TorConvRun;

/// First column of panel `p` of `o` columns, or `o` if there is no such panel. Panels have `nr`
/// columns; but where three vectors make one and the last would have one alone, it and the one
/// before it have two each.
static inline int64_t tor_conv_panel(int64_t o, int64_t nr, int64_t lanes, int64_t p) {
    int64_t last = tor_ceil_div(o, nr) - 1;
    bool even = nr == 3 * lanes && last > 0 && o - last * nr <= lanes;
    return p > last ? o : p * nr - (p == last && even ? lanes : 0);
}

/// Takes `bytes` of scratch: where they are, and *total with them.
static inline size_t tor_conv_book(size_t *total, size_t bytes) {
    size_t at = *total;
    *total += (size_t)tor_round_up((int64_t)bytes, TOR_CACHE_LINE);
    return at;
}

#endif

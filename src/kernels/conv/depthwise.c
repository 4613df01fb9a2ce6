/// Depthwise convolution of images, channels last: kernels 3, 5 or 7 wide with stride 1 or 2.
///
/// An item is two output lines times a block of channels. A register tile has four pixels of both
/// lines and a vector of channels, so that a vector of x serves up to two lines and `width` pixels
/// of each, and a vector of weights four pixels. Tiles at the border leave out the taps that are
/// outside. Sums are stored once: to y, or through an epilogue that registers can finish; through
/// any other epilogue by way of scratch in L1. Numeric policy: that of the direct kernel.
#include "base/simd_math.h"
#include "kernels/conv/geometry.h"

#if defined(TOR_ISA_avx512)
#define KERNEL tor_conv_f32_f32p32__avx512_depthwise
#elif defined(TOR_ISA_avx2)
#define KERNEL tor_conv_f32_f32p16__avx2_depthwise
#else
#define KERNEL tor_conv_f32_f32p8__generic_depthwise
#endif

enum { LINES = TOR_CONV_TILE_LINES, PIXELS = TOR_CONV_TILE_PIXELS, NR = 2 * VF32 };

typedef struct {
    const float *x;  ///< tap (0, 0) of the first pixel, which may be outside
    const float *w;  ///< first panel of the block of channels
    const float *bias;
    float *y;
    int64_t x_line, x_pixel, y_line, y_pixel;
    int64_t w_panel;  ///< from panel to panel
    int64_t channels;
    int height, stride;  ///< of the kernel, along h
    int wrap;            ///< before this line of x memory goes back by `ring` elements
    int64_t ring;
    uint32_t lines, columns;  ///< of x, from the first tap on: a bit for each that is inside
    int n_lines, n_pixels;    ///< to store
    const TorRegisterEpilogue *finish;
} Tile;

/// Adds the products of one line of x to the first and the last line of the tile, or to one of
/// them. `upper` and `lower` are the taps that they have there. The constants of each copy come
/// last.
TOR_INLINE void add_line(vf32 acc[LINES][PIXELS], const Tile *t, const float *x, const float *upper,
                         const float *lower, int lanes, const bool first, const bool last,
                         const int width, const int stride, const bool edges, const bool tail) {
    vf32 at[(PIXELS - 1) * 2 + 7];
#pragma GCC unroll 8
    for (int k = 0; k < width; k++) {
        vf32 w[LINES] = {{0}};
        if (first) w[0] = vf32_load(upper + k * NR);
        if (last) w[1] = vf32_load(lower + k * NR);
#pragma GCC unroll 4
        for (int p = 0; p < PIXELS; p++) {
            int j = p * stride + k;
            if (edges && !(t->columns >> j & 1)) continue;
            // With stride 1 the others are at hand from the tap before; with stride 2 there are too
            // many to keep.
            if (edges || stride == 2 || k == 0 || p == PIXELS - 1) {
                const float *from = x + j * t->x_pixel;
                at[j] = tail ? vf32_load_n(from, lanes) : vf32_load(from);
            }
            if (first) acc[0][p] = vf32_fma(at[j], w[0], acc[0][p]);
            if (last) acc[1][p] = vf32_fma(at[j], w[1], acc[1][p]);
        }
    }
}

/// A tile of channels [c, c + lanes). `width` and what follows are constants of each copy.
TOR_INLINE void one_vector(const Tile *t, int64_t c, int lanes, const int width, const int stride,
                           const bool edges, const bool tail, const bool silu) {
    vf32 start = {0}, acc[LINES][PIXELS];
    if (t->bias) start = tail ? vf32_load_n(t->bias + c, lanes) : vf32_load(t->bias + c);
#pragma GCC unroll 2
    for (int i = 0; i < LINES; i++)
#pragma GCC unroll 4
        for (int p = 0; p < PIXELS; p++) acc[i][p] = start;

    const float *x = t->x + c, *upper = t->w + c / NR * t->w_panel + c % NR,
                *lower = upper - t->stride * width * NR;
    for (int r = 0; r < t->height + t->stride;
         r++, x += t->x_line, upper += width * NR, lower += width * NR) {
        if (r == t->wrap) x -= t->ring;
        if (!(t->lines >> r & 1)) continue;
        if (r < t->stride && r < t->height)
            add_line(acc, t, x, upper, lower, lanes, true, false, width, stride, edges, tail);
        else if (r < t->height)
            add_line(acc, t, x, upper, lower, lanes, true, true, width, stride, edges, tail);
        else if (r >= t->stride)
            add_line(acc, t, x, upper, lower, lanes, false, true, width, stride, edges, tail);
    }

    if (t->finish && !silu) {
        vf32 low = vf32_set(t->finish->low), high = vf32_set(t->finish->high);
#pragma GCC unroll 2
        for (int i = 0; i < LINES; i++)
#pragma GCC unroll 4
            for (int p = 0; p < PIXELS; p++) acc[i][p] = vf32_min(high, vf32_max(low, acc[i][p]));
    }
    if (silu) {
#pragma GCC unroll 2
        for (int i = 0; i < LINES; i++) vf32_silus(acc[i], acc[i], PIXELS);
    } else if (t->finish && t->finish->apply) {
        vf32 sums[LINES][PIXELS];  // apart from acc, which stays in registers
#pragma GCC unroll 2
        for (int i = 0; i < LINES; i++)
#pragma GCC unroll 4
            for (int p = 0; p < PIXELS; p++) sums[i][p] = acc[i][p];
        t->finish->apply(sums, sums, NULL, NULL, LINES * PIXELS * VF32);
#pragma GCC unroll 2
        for (int i = 0; i < LINES; i++)
#pragma GCC unroll 4
            for (int p = 0; p < PIXELS; p++) acc[i][p] = sums[i][p];
    }
#pragma GCC unroll 2
    for (int i = 0; i < LINES; i++) {
        if (edges && i >= t->n_lines) break;
        float *y = t->y + i * t->y_line + c;
#pragma GCC unroll 4
        for (int p = 0; p < PIXELS; p++) {
            if (edges && p >= t->n_pixels) break;
            if (tail)
                vf32_store_n(y + p * t->y_pixel, acc[i][p], lanes);
            else
                vf32_store(y + p * t->y_pixel, acc[i][p]);
        }
    }
}

TOR_INLINE void whole_vectors(const Tile *t, const int width, const int stride, const bool edges,
                              const bool silu) {
    for (int64_t c = 0; c + VF32 <= t->channels; c += VF32)
        one_vector(t, c, VF32, width, stride, edges, false, silu);
}

#define WHOLE(name, ...) \
    static __attribute__((noinline)) void name(const Tile *t) { whole_vectors(t, __VA_ARGS__); }
#define SHAPES(X) X(3, 1) X(3, 2) X(5, 1) X(5, 2) X(7, 1) X(7, 2)
#define X(width, stride)                                                             \
    WHOLE(inner_##width##_##stride, width, stride, false, false)                     \
    WHOLE(edge_##width##_##stride, width, stride, true, false)                       \
    WHOLE(inner_silu_##width##_##stride, width, stride, false, true)                 \
    WHOLE(edge_silu_##width##_##stride, width, stride, true, true)                   \
    static __attribute__((noinline)) void tail_##width##_##stride(const Tile *t) {   \
        int lanes = (int)(t->channels % VF32);                                       \
        one_vector(t, t->channels - lanes, lanes, width, stride, true, true, false); \
    }
SHAPES(X)
#undef X

typedef struct {
    void (*inner)(const Tile *), (*edge)(const Tile *), (*tail)(const Tile *);
} Shape;

static Shape shape_of(int64_t width, int64_t stride, bool silu) {
#define X(w, s)                                                                          \
    if (width == w && stride == s)                                                       \
        return silu ? (Shape){inner_silu_##w##_##s, edge_silu_##w##_##s, tail_##w##_##s} \
                    : (Shape){inner_##w##_##s, edge_##w##_##s, tail_##w##_##s};
    SHAPES(X)
#undef X
    __builtin_unreachable();
}

/// Bits of the positions [at, at + n) that lie in [0, size).
static uint32_t inside(int64_t at, int64_t n, int64_t size) {
    int64_t low = TOR_MIN(TOR_MAX(-at, 0), n), high = TOR_MIN(TOR_MAX(size - at, low), n);
    return (uint32_t)((UINT64_C(1) << high) - (UINT64_C(1) << low));
}

void KERNEL(const void *arg, int64_t begin, int64_t end, void *scratch);

void KERNEL(const void *arg, int64_t begin, int64_t end, void *scratch) {
    const TorConvArgs *args = arg;
    const int64_t *xs = args->plan.x_stride, *rs = args->plan.row_stride, *in = args->plan.in_size,
                  *out = args->plan.out_size;
    const int64_t ring = args->plan.ring;
    const TorEpilogue *e = args->epilogue;
    bool in_scratch = e && !args->plan.finishes;
    float *acc = (float *)((uint8_t *)scratch + args->plan.acc_at), *y = args->y;
    int64_t ys[4] = {args->plan.y_stride[0], args->plan.y_stride[2], args->plan.y_stride[3],
                     args->plan.y_stride[4]};
    if (args->plan.finishes) {
        int k = e->program->n_inputs;
        y = e->data[k];
        for (int i = 0; i < 4; i++) ys[i] = rs[i] * e->row_stride[k];
    }
    Shape shape = shape_of(args->kernel[2], args->stride[2], args->plan.silu);
    int height = (int)args->kernel[1], width = (int)args->kernel[2];
    for (int64_t item = begin; item < end; item++) {
        int64_t rest = item, first = rest % args->plan.n_blocks * args->plan.n_block;
        rest /= args->plan.n_blocks;
        int64_t line = rest % args->plan.tiles[1] * LINES;
        rest /= args->plan.tiles[1];
        int64_t depth = rest % out[0], batch = rest / out[0];
        int64_t top = line * args->stride[1] - args->padding[1],
                slot = ring ? (top % ring + ring) % ring : top;
        const float *x = args->x + batch * xs[0] + depth * xs[2] + first;
        int64_t w_panel = height * width * NR;
        Tile t = {
            .w = (const float *)args->packed + first / NR * w_panel,
            .bias = args->bias ? args->bias + first : NULL,
            .x_line = xs[3],
            .x_pixel = xs[4],
            .y_line = ys[2],
            .y_pixel = ys[3],
            .w_panel = w_panel,
            .channels = TOR_MIN(args->plan.n_block, args->out_channels - first),
            .height = height,
            .stride = (int)args->stride[1],
            .wrap = ring ? (int)(ring - slot) : -1,
            .ring = ring * xs[3],
            .n_lines = (int)TOR_MIN(LINES, out[1] - line),
            .finish = args->plan.finishes ? &args->plan.finish : NULL,
        };
        // The lines that the last one alone would have are left out with it.
        t.lines = inside(top, height + (t.n_lines - 1) * t.stride, in[1]);
        for (int64_t chunk = 0, n; chunk < out[2]; chunk += n) {
            n = TOR_MIN(args->plan.pixels, out[2] - chunk);
            float *to = y + batch * ys[0] + depth * ys[1] + line * ys[2] + chunk * ys[3] + first;
            if (in_scratch) {
                to = acc;
                t.y_pixel = t.channels;
                t.y_line = n * t.channels;
            }
            for (int64_t i = 0; i < n; i += PIXELS) {
                int64_t left = (chunk + i) * args->stride[2] - args->padding[2];
                t.n_pixels = (int)TOR_MIN(PIXELS, n - i);
                int64_t columns = (t.n_pixels - 1) * args->stride[2] + width;
                t.columns = inside(left, columns, in[2]);
                t.x = x + slot * xs[3] + left * xs[4];
                t.y = to + i * t.y_pixel;
                bool whole =
                    t.n_lines == LINES && t.n_pixels == PIXELS && t.columns == (1u << columns) - 1;
                (whole ? shape.inner : shape.edge)(&t);
                if (t.channels % VF32) shape.tail(&t);
            }
            for (int i = 0; in_scratch && i < t.n_lines; i++)
                tor_epilogue_run(e, 0, batch * rs[0] + depth * rs[1] + (line + i) * rs[2] + chunk,
                                 n, first, t.channels, acc + i * t.y_line, t.channels,
                                 (uint8_t *)scratch + args->plan.epilogue_at);
        }
    }
}

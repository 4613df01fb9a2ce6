/// Direct convolution for groups too narrow for a panel: depthwise (one input channel a group,
/// maybe several outputs), and groups of 2, 4, 8 or 16 channels in and out that fill a vector
/// evenly. Lanes over output channels.
///
/// An item is a line of output pixels times a block of channels. Pixels whose taps are all inside x
/// run four at a time, those at the border one at a time over the taps that are inside. Where
/// channels of x do not follow each other, or several outputs share one, its lines are first copied
/// to scratch as [kd][kh][w][channel]. Numeric policy: one fused chain an output, from the bias on,
/// taps in row-major order, then channels.
#include <string.h>

#include "base/simd.h"
#include "kernels/conv/geometry.h"

#if defined(TOR_ISA_avx512)
#define KERNEL tor_conv_f32_f32p32__avx512_direct
#elif defined(TOR_ISA_avx2)
#define KERNEL tor_conv_f32_f32p16__avx2_direct
#else
#define KERNEL tor_conv_f32_f32p8__generic_direct
#endif

enum { PIXELS = 4, NR = 2 * VF32 };

/// Taps of one pixel or of several that have the same ones.
typedef struct {
    const float *x;  ///< first pixel, first tap
    const float *w;
    const float *bias;
    float *y;
    int64_t n[3];  ///< taps along d, h, w
    int64_t x_step[3], w_step[3];
    int64_t x_pixel, y_pixel;  ///< from pixel to pixel
    int64_t channels;
    int64_t w_panel;  ///< from panel to panel of w; a tap of an input channel has NR floats
    int64_t groups;   ///< of one or of PIXELS pixels
} Taps;

/// Lane i gets lane i - i % group + k of x, which starts at p.
TOR_INLINE vf32 spread(const float *p, vf32 x, const int group, const int k) {
    if (group == VF32) return vf32_set(p[k]);
    vi32 from;
    for (int i = 0; i < VF32; i++) from[i] = i - i % group + k;
#if defined(TOR_ISA_avx512)
    return (vf32)_mm512_permutexvar_ps((__m512i)from, (__m512)x);
#elif defined(TOR_ISA_avx2)
    return (vf32)_mm256_permutevar_ps((__m256)x, (__m256i)from);  // inside halves: group is 2 or 4
#else
    return (vf32){x[from[0]], x[from[1]], x[from[2]], x[from[3]]};
#endif
}

/// `pixels`, `vectors` and `width` are constants of each copy. width > 0: that many taps along w,
/// which pixels that follow each other share (stride and dilation 1), so that each vector of x is
/// loaded once for all.
TOR_INLINE void some(const Taps *t, int64_t c, int lanes, const int pixels, const int vectors,
                     const int width, const int group) {
    vf32 start[2];
    for (int v = 0; v < vectors; v++) {
        start[v] = (vf32){0};
        if (t->bias)
            start[v] =
                lanes == VF32 ? vf32_load(t->bias + c + v * VF32) : vf32_load_n(t->bias + c, lanes);
    }
    const float *first = t->x + c;
    const float *panel = t->w + c / NR * t->w_panel + c % NR;
    float *y = t->y + c;
    for (int64_t g = 0; g < t->groups;
         g++, first += pixels * t->x_pixel, y += pixels * t->y_pixel) {
        vf32 acc[PIXELS][2];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
#pragma GCC unroll 4
            for (int p = 0; p < pixels; p++) acc[p][v] = start[v];
        for (int64_t i = 0; i < t->n[0]; i++) {
            const float *x = first + i * t->x_step[0], *w = panel + i * t->w_step[0];
            for (int64_t j = 0; j < t->n[1]; j++, x += t->x_step[1], w += t->w_step[1]) {
                if (width) {
#pragma GCC unroll 4
                    for (int v = 0; v < vectors; v++) {
                        vf32 line[PIXELS + 7];
#pragma GCC unroll 4
                        for (int p = 0; p < pixels - 1; p++)
                            line[p] = vf32_load(x + p * t->x_pixel + v * VF32);
#pragma GCC unroll 8
                        for (int k = 0; k < width; k++) {
                            vf32 wv = vf32_load(w + k * t->w_step[2] + v * VF32);
                            line[k + pixels - 1] =
                                vf32_load(x + (k + pixels - 1) * t->x_pixel + v * VF32);
#pragma GCC unroll 4
                            for (int p = 0; p < pixels; p++)
                                acc[p][v] = vf32_fma(line[p + k], wv, acc[p][v]);
                        }
                    }
                    continue;
                }
                const float *xk = x, *wk = w;
                if (group > 1) {
                    for (int64_t k = 0; k < t->n[2]; k++, xk += t->x_step[2], wk += t->w_step[2])
#pragma GCC unroll 4
                        for (int v = 0; v < vectors; v++) {
                            vf32 xv[PIXELS];
#pragma GCC unroll 4
                            for (int p = 0; p < pixels; p++) {
                                const float *xp = xk + p * t->x_pixel + v * VF32;
                                xv[p] = lanes == VF32 ? vf32_load(xp) : vf32_load_n(xp, lanes);
                            }
#pragma GCC unroll 16
                            for (int m = 0; m < group; m++) {
                                vf32 wv = vf32_load(wk + m * NR + v * VF32);
#pragma GCC unroll 4
                                for (int p = 0; p < pixels; p++) {
                                    vf32 one =
                                        spread(xk + p * t->x_pixel + v * VF32, xv[p], group, m);
                                    acc[p][v] = vf32_fma(one, wv, acc[p][v]);
                                }
                            }
                        }
                    continue;
                }
                for (int64_t k = 0; k < t->n[2]; k++, xk += t->x_step[2], wk += t->w_step[2]) {
#pragma GCC unroll 4
                    for (int v = 0; v < vectors; v++) {
                        vf32 wv = vf32_load(wk + v * VF32);
#pragma GCC unroll 4
                        for (int p = 0; p < pixels; p++) {
                            const float *xp = xk + p * t->x_pixel + v * VF32;
                            acc[p][v] =
                                vf32_fma(lanes == VF32 ? vf32_load(xp) : vf32_load_n(xp, lanes), wv,
                                         acc[p][v]);
                        }
                    }
                }
            }
        }
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
#pragma GCC unroll 4
            for (int p = 0; p < pixels; p++) {
                float *yp = y + p * t->y_pixel + v * VF32;
                if (lanes == VF32)
                    vf32_store(yp, acc[p][v]);
                else
                    vf32_store_n(yp, acc[p][v], lanes);
            }
        }
    }
}

TOR_INLINE void all(const Taps *t, const int pixels, const int width, const int group) {
    int64_t c = 0;
    for (; c + 2 * VF32 <= t->channels; c += 2 * VF32) some(t, c, VF32, pixels, 2, width, group);
    for (; c + VF32 <= t->channels; c += VF32) some(t, c, VF32, pixels, 1, width, group);
    if (c < t->channels) some(t, c, (int)(t->channels - c), pixels, 1, 0, group);
}

#define VARIANT(name, ...) \
    static __attribute__((noinline)) void name(const Taps *t) { all(t, __VA_ARGS__); }
VARIANT(one_pixel, 1, 0, 1)
VARIANT(four_pixels, PIXELS, 0, 1)
VARIANT(four_pixels_w3, PIXELS, 3, 1)
VARIANT(four_pixels_w5, PIXELS, 5, 1)
VARIANT(four_pixels_w7, PIXELS, 7, 1)
#define GROUPS(X) X(2) X(4)
#if VF32 >= 8
#define GROUPS_8(X) X(8)
#else
#define GROUPS_8(X)
#endif
#if VF32 >= 16
#define GROUPS_16(X) X(16)
#else
#define GROUPS_16(X)
#endif
#define X(group)                               \
    VARIANT(one_pixel_of_##group, 1, 0, group) \
    VARIANT(four_pixels_of_##group, PIXELS, 0, group)
GROUPS(X)
GROUPS_8(X)
GROUPS_16(X)
#undef X

static void run_taps(const Taps *t, int64_t group, bool four) {
    switch (group) {
#define X(g) \
    case g: (four ? four_pixels_of_##g : one_pixel_of_##g)(t); return;
        GROUPS(X)
        GROUPS_8(X)
        GROUPS_16(X)
#undef X
        default: break;
    }
    if (!four)
        one_pixel(t);
    else if (t->x_pixel != t->x_step[2])
        four_pixels(t);
    else if (t->n[2] == 3)
        four_pixels_w3(t);
    else if (t->n[2] == 5)
        four_pixels_w5(t);
    else if (t->n[2] == 7)
        four_pixels_w7(t);
    else
        four_pixels(t);
}

/// Taps j in [*low, *high) of an axis read inside [0, size) at output q.
static void valid_taps(const TorConvAxis *axis, int64_t q, int64_t size, int64_t *low,
                       int64_t *high) {
    *low = 0;
    *high = axis->n;
    int64_t at = q * axis->stride + axis->off;
    while (*low < *high && (at + *low * axis->off_step < 0 || at + *low * axis->off_step >= size))
        ++*low;
    while (*high > *low &&
           (at + (*high - 1) * axis->off_step < 0 || at + (*high - 1) * axis->off_step >= size))
        --*high;
}

void KERNEL(const void *arg, int64_t begin, int64_t end, void *scratch);

void KERNEL(const void *arg, int64_t begin, int64_t end, void *scratch) {
    const TorConvArgs *args = arg;
    const int64_t *xs = args->plan.x_stride, *ys = args->plan.y_stride, *rs = args->plan.row_stride;
    float *patch = (float *)((uint8_t *)scratch + args->plan.patch_at),
          *acc = (float *)((uint8_t *)scratch + args->plan.acc_at);
    int64_t o = args->out_channels, group = args->in_channels / args->groups,
            multiplier = o / args->in_channels, width = args->plan.in_size[2];
    bool in_y = !args->epilogue && ys[1] == 1;
    for (int64_t item = begin; item < end; item++) {
        int64_t rest = item, q[3] = {0};
        int64_t first = rest % args->plan.n_blocks * args->plan.n_block,
                channels = TOR_MIN(args->plan.n_block, o - first);
        rest /= args->plan.n_blocks;
        for (int i = 1; i >= 0; i--) {
            q[i] = rest % args->plan.tiles[i];
            rest /= args->plan.tiles[i];
        }
        int64_t batch = rest % args->plan.batch;
        rest /= args->plan.batch;
        TorConvAxis axis[3];
        bool none = false;
        for (int i = 2; i >= 0; i--) {
            int64_t phases = args->transposed ? args->plan.stride[i] : 1;
            axis[i] = tor_conv_axis(args, i, rest % phases);
            rest /= phases;
            none |= q[i] >= axis[i].out;
        }
        if (none) continue;

        int64_t low[2], high[2];
        for (int i = 0; i < 2; i++)
            valid_taps(&axis[i], q[i], args->plan.in_size[i], &low[i], &high[i]);
        // Where tap (low, low, j) of output (q, q, 0) lies, and the steps between taps.
        const float *x = args->x + batch * xs[0];
        int64_t step[3], pixel;
        if (args->plan.copy) {
            float *dst = patch;
            for (int64_t i = low[0]; i < high[0]; i++) {
                for (int64_t j = low[1]; j < high[1]; j++) {
                    const float *src =
                        x + (q[0] * axis[0].stride + axis[0].off + i * axis[0].off_step) * xs[2] +
                        (q[1] * axis[1].stride + axis[1].off + j * axis[1].off_step) * xs[3];
                    for (int64_t c = 0; c < channels; c++)
                        for (int64_t w = 0; w < width; w++)
                            dst[w * channels + c] =
                                src[(first + c) / multiplier * xs[1] + w * xs[4]];
                    dst += width * channels;
                }
            }
            x = patch;
            pixel = channels;
            step[1] = width * channels;
            step[0] = (high[1] - low[1]) * step[1];
        } else {
            x += first + (q[0] * axis[0].stride + axis[0].off + low[0] * axis[0].off_step) * xs[2] +
                 (q[1] * axis[1].stride + axis[1].off + low[1] * axis[1].off_step) * xs[3];
            pixel = xs[4];
            step[0] = axis[0].off_step * xs[2];
            step[1] = axis[1].off_step * xs[3];
        }
        step[2] = axis[2].off_step * pixel;
        int64_t tap = group * NR,
                w_panel = args->kernel[0] * args->kernel[1] * args->kernel[2] * tap;
        const float *w = (const float *)args->packed + first / NR * w_panel;
        w += (((axis[0].tap + low[0] * axis[0].tap_step) * args->kernel[1] + axis[1].tap +
               low[1] * axis[1].tap_step) *
                  args->kernel[2] +
              axis[2].tap) *
             tap;
        int64_t at[2] = {axis[0].first + q[0] * axis[0].step, axis[1].first + q[1] * axis[1].step};
        int64_t row = batch * rs[0] + at[0] * rs[1] + at[1] * rs[2];
        float *y = args->y;
        if (!args->epilogue) y += batch * ys[0] + at[0] * ys[2] + at[1] * ys[3] + first * ys[1];
        int64_t inside_low = tor_conv_low(&axis[2]),
                inside_high = inside_low + tor_conv_span(&axis[2]);

        for (int64_t chunk = 0, n; chunk < axis[2].out; chunk += n) {
            n = in_y ? axis[2].out : TOR_MIN(args->plan.pixels, axis[2].out - chunk);
            int64_t y_pixel = in_y ? axis[2].step * ys[4] : channels;
            float *out = in_y ? y + axis[2].first * ys[4] : acc;
            for (int64_t i = 0; i < n;) {
                int64_t qw = chunk + i, lead = qw * axis[2].stride, tap_low = 0,
                        tap_high = axis[2].n;
                // Outputs from here on whose last tap is inside.
                int64_t inside =
                    width > inside_high ? (width - 1 - inside_high) / axis[2].stride + 1 - qw : 0;
                int64_t fours = lead + inside_low >= 0 ? TOR_MIN(n - i, inside) / PIXELS : 0;
                bool four = fours > 0;
                if (!four) valid_taps(&axis[2], qw, width, &tap_low, &tap_high);
                Taps t = {
                    .x = x + (lead + axis[2].off + tap_low * axis[2].off_step) * pixel,
                    .w = w + tap_low * axis[2].tap_step * tap,
                    .bias = args->bias ? args->bias + first : NULL,
                    .y = out + i * y_pixel,
                    .n = {high[0] - low[0], high[1] - low[1], tap_high - tap_low},
                    .x_step = {step[0], step[1], step[2]},
                    .w_step = {axis[0].tap_step * args->kernel[1] * args->kernel[2] * tap,
                               axis[1].tap_step * args->kernel[2] * tap, axis[2].tap_step * tap},
                    .w_panel = w_panel,
                    .x_pixel = axis[2].stride * pixel,
                    .y_pixel = y_pixel,
                    .channels = channels,
                    .groups = four ? fours : 1,
                };
                run_taps(&t, group, four);
                i += four ? fours * PIXELS : 1;
            }
            if (in_y) break;
            int64_t stride = axis[2].step, from = axis[2].first + chunk * stride;
            if (!args->epilogue) {
                for (int64_t c = 0; c < channels; c++)
                    for (int64_t i = 0; i < n; i++)
                        y[c * ys[1] + (from + i * stride) * ys[4]] = acc[i * channels + c];
            } else {
                int64_t together = stride == 1 ? n : 1;  // rows of a phase are not contiguous
                for (int64_t i = 0; i < n; i += together)
                    tor_epilogue_run(args->epilogue, 0, row + from + i * stride, together, first,
                                     channels, acc + i * channels, channels,
                                     (uint8_t *)scratch + args->plan.epilogue_at);
            }
        }
    }
}

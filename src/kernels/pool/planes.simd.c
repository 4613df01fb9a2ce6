/// Pooling of float32 planes: lanes over w. The lines of a window are joined first, into one line
/// with the padding written out, and that line is then reduced over the columns of the windows.
/// Policy: contract.h; a sum is one of columns.
#include <math.h>
#include <string.h>

#include "base/simd.h"
#include "kernels/pool/window.h"

void TOR_KERNEL_IMPL(tor_pool_f32, planes)(const void *arg, int64_t begin, int64_t end,
                                           void *scratch);
void tor_pool_any__generic_strided(const void *arg, int64_t begin, int64_t end, void *scratch);

TOR_INLINE vf32 joined(bool max, vf32 a, vf32 b) {
    if (!max) return a + b;
    return vf32_select((vi32)(b > a) | (vi32)(b != b), b, a);
}
TOR_INLINE float joined_one(bool max, float a, float b) {
    return max ? (b > a || b != b ? b : a) : a + b;
}

/// to[i] = to[i] joined with x[i]
TOR_INLINE void join(const bool max, float *to, const float *x, int64_t count) {
    int64_t i = 0;
    for (; i + VF32 <= count; i += VF32)
        vf32_store(to + i, joined(max, vf32_load(to + i), vf32_load(x + i)));
    for (; i < count; i++) to[i] = joined_one(max, to[i], x[i]);
}

/// phase[p * count + i] = line[i * stride + p], so that the columns of all windows lie together.
static void split(const TorPoolArgs *args, const float *restrict line, float *restrict phase) {
    int64_t stride = args->stride[2], count = tor_pool_phase(args);
    if (stride == 2) {
        for (int64_t i = 0; i < count; i++)
            phase[i] = line[2 * i], phase[count + i] = line[2 * i + 1];
        return;
    }
    for (int64_t p = 0; p < stride; p++)
        for (int64_t i = 0; i < count; i++) phase[p * count + i] = line[i * stride + p];
}

TOR_INLINE void columns(const TorPoolArgs *args, const bool max, float *y, const float *line,
                        float *phase) {
    int64_t out = args->out_size[2], stride = args->stride[2], step = max ? args->dilation[2] : 1,
            count = tor_pool_phase(args);
    if (stride > 1) {
        split(args, line, phase);
        line = phase;
    }
    memcpy(y, line, (size_t)out * sizeof *y);
    for (int64_t k = 1; k < args->kernel[2]; k++) {
        int64_t at = k * step;
        join(max, y, stride == 1 ? line + at : line + at % stride * count + at / stride, out);
    }
}

TOR_INLINE void line_of(const TorPoolArgs *args, const bool max, const TorPoolWindow *win,
                        const float *x, float *line, int64_t reach) {
    const int64_t *s = args->x_stride;
    float least = max ? -INFINITY : 0;
    int64_t low = TOR_MIN(args->padding[2], reach), inside = TOR_MIN(args->in_size[2], reach - low);
    for (int64_t i = 0; i < reach + args->stride[2]; i++) line[i] = least;
    for (int64_t d = win[0].begin; d < win[0].end; d += win[0].step)
        for (int64_t h = win[1].begin; h < win[1].end; h += win[1].step)
            join(max, line + low, x + d * s[2] + h * s[3], inside);
}

/// Each sum over what its window counts.
static void divide(const TorPoolArgs *args, const TorPoolWindow *lines, const float *counts,
                   float *y) {
    int64_t out = args->out_size[2];
    bool padded = args->count_include_pad;
    int64_t n[2];
    for (int i = 0; i < 2; i++) n[i] = padded ? lines[i].padded : lines[i].end - lines[i].begin;
    bool empty = lines[0].begin >= lines[0].end || lines[1].begin >= lines[1].end;
    float rows = args->divisor ? (float)args->divisor : (float)(n[0] * n[1]);
    for (int64_t w = 0; w < out; w++) {
        float by = args->divisor ? rows : rows * counts[w];
        y[w] = empty || counts[w] <= 0 ? 0 : y[w] / by;
    }
}

/// The columns that each window counts, 0 where it misses the input.
static void count_columns(const TorPoolArgs *args, float *counts) {
    for (int64_t w = 0; w < args->out_size[2]; w++) {
        TorPoolWindow win = tor_pool_window(args, 2, w);
        int64_t n = args->count_include_pad ? win.padded : win.end - win.begin;
        counts[w] = win.begin < win.end ? (float)n : 0;
    }
}

void TOR_KERNEL_IMPL(tor_pool_f32, planes)(const void *arg, int64_t begin, int64_t end,
                                           void *scratch) {
    const TorPoolArgs *args = arg;
    if (args->index) {
        tor_pool_any__generic_strided(arg, begin, end, scratch);
        return;
    }
    const int64_t *xs = args->x_stride, *ys = args->y_stride;
    int64_t reach = tor_pool_reach(args);
    float *line = scratch, *phase = line + reach + args->stride[2],
          *counts = phase + args->stride[2] * tor_pool_phase(args);
    bool max = args->kind == TOR_POOL_max;
    if (!max) count_columns(args, counts);
    for (int64_t item = begin; item < end; item++) {
        TorPoolItem at = tor_pool_item(args, item);
        TorPoolWindow win[] = {tor_pool_window(args, 0, at.d), tor_pool_window(args, 1, at.h)};
        for (int64_t c = at.channel; c < at.channel + at.channels; c++) {
            const float *x = (const float *)args->x + at.batch * xs[0] + c * xs[1];
            float *y =
                (float *)args->y + at.batch * ys[0] + c * ys[1] + at.d * ys[2] + at.h * ys[3];
            if (max) {
                line_of(args, true, win, x, line, reach);
                columns(args, true, y, line, phase);
            } else {
                line_of(args, false, win, x, line, reach);
                columns(args, false, y, line, phase);
                divide(args, win, counts, y);
            }
        }
    }
}

/// Pooling of float32 with channels last: lanes over channels, a window at a time. Policy:
/// contract.h; sums of lines of a window are added to each other.
#include "base/simd.h"
#include "kernels/pool/window.h"

#include <math.h>

typedef struct {
    const TorPoolArgs *args;
    TorPoolWindow win[3];
    const float *x;  ///< corner of the plane, first channel of the block
    float *y;
    int64_t *index;
    float divisor;
} Pixel;

TOR_INLINE vf32 load(const float *p, int lanes) {
    return lanes == VF32 ? vf32_load(p) : vf32_load_n(p, lanes);
}
TOR_INLINE void store(float *p, vf32 v, int lanes) {
    if (lanes == VF32)
        vf32_store(p, v);
    else
        vf32_store_n(p, v, lanes);
}

// `lanes` (unless a tail), `vectors` and `want_index` are constants of each copy.
TOR_INLINE void largest(const Pixel *p, int64_t c, int lanes, const int vectors,
                        const bool want_index) {
    const int64_t *stride = p->args->x_stride, *in = p->args->in_size;
    const TorPoolWindow *win = p->win;
    vf32 most[4];
    vi32 at[4];
    int64_t first = (win[0].begin * in[1] + win[1].begin) * in[2] + win[2].begin;
    for (int v = 0; v < vectors; v++) {
        most[v] = vf32_set(-INFINITY);
        at[v] = vi32_set((int32_t)first);
    }
    for (int64_t d = win[0].begin; d < win[0].end; d += win[0].step)
        for (int64_t h = win[1].begin; h < win[1].end; h += win[1].step) {
            const float *x = p->x + c + d * stride[2] + h * stride[3];
            int32_t line = (int32_t)((d * in[1] + h) * in[2]);
            for (int64_t w = win[2].begin; w < win[2].end; w += win[2].step) {
                vi32 here = vi32_set(line + (int32_t)w);
#pragma GCC unroll 4
                for (int v = 0; v < vectors; v++) {
                    vf32 value = load(x + w * stride[4] + v * VF32, lanes);
                    vi32 better = (vi32)(value > most[v]) | (vi32)(value != value);
                    most[v] = vf32_select(better, value, most[v]);
                    if (want_index) at[v] = (vi32)vf32_select(better, (vf32)here, (vf32)at[v]);
                }
            }
        }
    for (int v = 0; v < vectors; v++) {
        if (p->y) store(p->y + c + v * VF32, most[v], lanes);
        if (want_index) {
            int32_t lane[VF32];
            memcpy(lane, &at[v], sizeof lane);
            for (int i = 0; i < lanes; i++)
                p->index[(c + v * VF32 + i) * p->args->index_stride[1]] = lane[i];
        }
    }
}

TOR_INLINE void average(const Pixel *p, int64_t c, int lanes, const int vectors) {
    const int64_t *stride = p->args->x_stride;
    const TorPoolWindow *win = p->win;
    vf32 sum[4];
    for (int v = 0; v < vectors; v++) sum[v] = (vf32){0};
    for (int64_t d = win[0].begin; d < win[0].end; d++)
        for (int64_t h = win[1].begin; h < win[1].end; h++) {
            const float *x = p->x + c + d * stride[2] + h * stride[3];
            vf32 line[4];
            for (int v = 0; v < vectors; v++) line[v] = (vf32){0};
            for (int64_t w = win[2].begin; w < win[2].end; w++)
#pragma GCC unroll 4
                for (int v = 0; v < vectors; v++)
                    line[v] += load(x + w * stride[4] + v * VF32, lanes);
            for (int v = 0; v < vectors; v++) sum[v] += line[v];
        }
    for (int v = 0; v < vectors; v++)
        store(p->y + c + v * VF32, sum[v] / vf32_set(p->divisor), lanes);
}

#define ALL_CHANNELS(call)                                             \
    do {                                                               \
        int64_t c = 0;                                                 \
        for (; c + 4 * VF32 <= channels; c += 4 * VF32) call(VF32, 4); \
        for (; c + VF32 <= channels; c += VF32) call(VF32, 1);         \
        if (c < channels) call((int)(channels - c), 1);                \
    } while (0)

static void largest_of(const Pixel *p, int64_t channels) {
#define CALL(lanes, vectors) largest(p, c, lanes, vectors, false)
    ALL_CHANNELS(CALL);
#undef CALL
}

static void largest_and_index_of(const Pixel *p, int64_t channels) {
#define CALL(lanes, vectors) largest(p, c, lanes, vectors, true)
    ALL_CHANNELS(CALL);
#undef CALL
}

static void average_of(const Pixel *p, int64_t channels) {
#define CALL(lanes, vectors) average(p, c, lanes, vectors)
    ALL_CHANNELS(CALL);
#undef CALL
}

void TOR_KERNEL_IMPL(tor_pool_f32, nhwc)(const void *arg, int64_t begin, int64_t end,
                                         void *scratch);

void TOR_KERNEL_IMPL(tor_pool_f32, nhwc)(const void *arg, int64_t begin, int64_t end,
                                         void *scratch) {
    (void)scratch;
    const TorPoolArgs *args = arg;
    const int64_t *xs = args->x_stride, *ys = args->y_stride, *is = args->index_stride;
    Pixel p = {.args = args};
    for (int64_t item = begin; item < end; item++) {
        TorPoolItem at = tor_pool_item(args, item);
        p.win[0] = tor_pool_window(args, 0, at.d);
        p.win[1] = tor_pool_window(args, 1, at.h);
        p.x = (const float *)args->x + at.batch * xs[0] + at.channel;
        for (int64_t w = 0; w < args->out_size[2]; w++) {
            p.win[2] = tor_pool_window(args, 2, w);
            p.y = args->y ? (float *)args->y + at.batch * ys[0] + at.channel + at.d * ys[2] +
                                at.h * ys[3] + w * ys[4]
                          : NULL;
            if (tor_pool_is_max(args->kind)) {
                if (args->index)
                    p.index = args->index + at.batch * is[0] + at.channel * is[1] + at.d * is[2] +
                              at.h * is[3] + w * is[4];
                (args->index ? largest_and_index_of : largest_of)(&p, at.channels);
            } else {
                // An empty window's sum is 0, whatever it is divided by.
                p.divisor = tor_pool_empty(p.win) ? 1.0f : (float)tor_pool_divisor(args, p.win);
                average_of(&p, at.channels);
            }
        }
    }
}

/// Nearest neighbours: bits are copied, whatever they mean. An output line that reads the same
/// input as the line above is a copy of it.
#include <string.h>

#include "base/simd.h"
#include "kernels/resize/line.h"

static void places(const TorResizeArgs *args, int32_t *at) {
    for (int64_t w = 0; w < args->out_size[2]; w++)
        at[w] = (int32_t)tor_resize_taps(args, 2, w).at[0];
}

#define NEAREST(bits)                                                                    \
    typedef uint##bits##_t Elem##bits __attribute__((may_alias));                        \
    static void line##bits(const TorResizeArgs *args, const int32_t *at, bool twice,     \
                           const Elem##bits *x, Elem##bits *y) {                         \
        int64_t out = args->out_size[2], xs = args->x_stride[4], ys = args->y_stride[4]; \
        if (args->channels_inside) {                                                     \
            for (int64_t w = 0; w < out; w++)                                            \
                memcpy(y + w * ys, x + at[w] * xs, (size_t)args->channels * sizeof *x);  \
        } else if (twice && xs == 1 && ys == 1) {                                        \
            for (int64_t w = 0; w < out / 2; w++) y[2 * w] = y[2 * w + 1] = x[w];        \
        } else {                                                                         \
            for (int64_t w = 0; w < out; w++) y[w * ys] = x[at[w] * xs];                 \
        }                                                                                \
    }                                                                                    \
    void TOR_KERNEL(tor_resize_x##bits)(const void *arg, int64_t begin, int64_t end,     \
                                        void *scratch);                                  \
    void TOR_KERNEL(tor_resize_x##bits)(const void *arg, int64_t begin, int64_t end,     \
                                        void *scratch) {                                 \
        const TorResizeArgs *args = arg;                                                 \
        const int64_t *xs = args->x_stride;                                              \
        int32_t *at = scratch;                                                           \
        places(args, at);                                                                \
        bool twice = args->out_size[2] == 2 * args->in_size[2];                          \
        for (int64_t w = 0; twice && w < args->out_size[2]; w++) twice = at[w] == w / 2; \
        const Elem##bits *above = NULL;                                                  \
        Elem##bits *last = NULL;                                                         \
        int64_t width = args->channels_inside ? args->channels : 1;                      \
        bool dense = args->y_stride[4] == width;                                         \
        for (int64_t item = begin; item < end; item++) {                                 \
            TorResizeLine l = tor_resize_line(args, item);                               \
            int64_t d = tor_resize_taps(args, 0, l.d).at[0],                             \
                    h = tor_resize_taps(args, 1, l.h).at[0];                             \
            const Elem##bits *x = (const Elem##bits *)args->x + l.batch * xs[0] +        \
                                  l.channel * xs[1] + d * xs[2] + h * xs[3];             \
            Elem##bits *y = (Elem##bits *)args->y + tor_resize_to(args, l);              \
            if (x == above && dense)                                                     \
                memcpy(y, last, (size_t)(args->out_size[2] * width) * sizeof *y);        \
            else                                                                         \
                line##bits(args, at, twice, x, y);                                       \
            above = x, last = y;                                                         \
        }                                                                                \
    }

NEAREST(8)
NEAREST(16)
NEAREST(32)
NEAREST(64)

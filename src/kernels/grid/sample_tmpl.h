// Template of base/each_float.h.
#include "kernels/grid/taps_tmpl.h"

/// Pixels whose taps are made before their channels are walked.
enum { GRID_FN(CHUNK) = 32 };

static inline void GRID_FN(channel)(const T *x, T *y, int64_t step, int64_t count,
                                    const int64_t *offset, const WIDE *weight, const int taps) {
    for (int64_t w = 0; w < count; w++) {
        WIDE sum = 0;
        for (int k = 0; k < taps; k++) {
            int64_t at = offset[w * 16 + k];
            sum += weight[w * 16 + k] * (at >= 0 ? LOAD(x[at]) : 0);
        }
        y[w * step] = STORE(sum);
    }
}

void TOR_KERNEL(SYMBOL)(const void *arg, int64_t begin, int64_t end, void *scratch);
void TOR_KERNEL(SYMBOL)(const void *arg, int64_t begin, int64_t end, void *scratch) {
    (void)scratch;
    const TorGridArgs *args = arg;
    const int64_t *xs = args->x_stride, *ys = args->y_stride, *gs = args->grid_stride,
                  *out = args->out_size;
    int64_t offset[GRID_FN(CHUNK) * 16];
    WIDE weight[GRID_FN(CHUNK) * 16];
    for (int64_t item = begin; item < end; item++) {
        int64_t h = item % out[1], d = item / out[1] % out[0], b = item / out[1] / out[0];
        const T *x = (const T *)args->x + b * xs[0],
                *grid = (const T *)args->grid + b * gs[0] + d * gs[1] + h * gs[2];
        T *y = (T *)args->y + b * ys[0] + d * ys[2] + h * ys[3];
        for (int64_t first = 0; first < out[2]; first += GRID_FN(CHUNK)) {
            int64_t count = TOR_MIN((int64_t)GRID_FN(CHUNK), out[2] - first);
            int taps = 0;
            for (int64_t w = 0; w < count; w++) {
                WIDE c[3] = {0};
                for (int i = 0; i < args->dims; i++)
                    c[i] = LOAD(grid[(first + w) * gs[3] + i * gs[4]]);
                taps = GRID_FN(taps)(args, c, offset + w * 16, weight + w * 16);
            }
            for (int64_t c = 0; c < args->channels; c++) {
                const T *from = x + c * xs[1];
                T *to = y + c * ys[1] + first * ys[4];
                if (taps == 4)
                    GRID_FN(channel)(from, to, ys[4], count, offset, weight, 4);
                else if (taps == 1)
                    GRID_FN(channel)(from, to, ys[4], count, offset, weight, 1);
                else
                    GRID_FN(channel)(from, to, ys[4], count, offset, weight, taps);
            }
        }
    }
}

#undef GRID_FN_
#undef GRID_FN__
#undef GRID_FN

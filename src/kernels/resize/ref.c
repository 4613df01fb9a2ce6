/// The oracle of the resize family: the sum over all taps, in double.
#include "kernels/resize/contract.h"

static double at(const TorResizeArgs *a, const char *x, int64_t offset) {
    return tor_scalar_load(x + offset * (int64_t)tor_dtype_size(a->dtype), a->dtype).f;
}

static void one(const TorResizeArgs *a, const int64_t *o) {
    const int64_t *xs = a->x_stride, *ys = a->y_stride;
    TorResizeTaps taps[3];
    int64_t size = (int64_t)tor_dtype_size(a->dtype), base = o[0] * xs[0] + o[1] * xs[1], to = 0;
    for (int i = 0; i < 5; i++) to += o[i] * ys[i];
    for (int i = 0; i < 3; i++) taps[i] = tor_resize_taps(a, i, o[2 + i]);
    char *y = (char *)a->y + to * size;
    if (a->mode <= TOR_RESIZE_nearest_exact) {
        for (int i = 0; i < 3; i++) base += taps[i].at[0] * xs[2 + i];
        for (int64_t byte = 0; byte < size; byte++)
            y[byte] = ((const char *)a->x)[base * size + byte];
        return;
    }
    TorScalar sum = {.dtype = a->dtype};
    for (int d = 0; d < tor_resize_taps_count(a, 0); d++)
        for (int h = 0; h < tor_resize_taps_count(a, 1); h++)
            for (int w = 0; w < tor_resize_taps_count(a, 2); w++)
                sum.f += taps[0].weight[d] * taps[1].weight[h] * taps[2].weight[w] *
                         at(a, a->x,
                            base + taps[0].at[d] * xs[2] + taps[1].at[h] * xs[3] +
                                taps[2].at[w] * xs[4]);
    tor_scalar_store(y, sum);
}

void tor_resize_run_ref(const TorResizeArgs *a) {
    int64_t o[5];
    const int64_t *out = a->out_size;
    for (o[0] = 0; o[0] < a->batch; o[0]++)
        for (o[1] = 0; o[1] < a->channels; o[1]++)
            for (o[2] = 0; o[2] < out[0]; o[2]++)
                for (o[3] = 0; o[3] < out[1]; o[3]++)
                    for (o[4] = 0; o[4] < out[2]; o[4]++) one(a, o);
}

/// The oracle of the grid family: one output at a time, in double. Places that float32 rounding
/// may move across an edge are the caller's to avoid.
#include "kernels/grid/contract.h"

#define WIDE double
#define NAME ref
#include "kernels/grid/taps_tmpl.h"

static double value(const TorGridArgs *a, const void *data, int64_t at) {
    return tor_scalar_load((const char *)data + at * (int64_t)tor_dtype_size(a->dtype), a->dtype).f;
}

void tor_grid_run_ref(const TorGridArgs *a) {
    const int64_t *out = a->out_size, *gs = a->grid_stride, *ys = a->y_stride;
    int64_t lines = a->batch * out[0] * out[1];
    for (int64_t pixel = 0; pixel < lines * out[2]; pixel++) {
        int64_t w = pixel % out[2], line = pixel / out[2], h = line % out[1],
                d = line / out[1] % out[0], b = line / out[1] / out[0];
        double c[3] = {0}, weight[16];
        int64_t offset[16];
        for (int i = 0; i < a->dims; i++)
            c[i] = value(a, a->grid, b * gs[0] + d * gs[1] + h * gs[2] + w * gs[3] + i * gs[4]);
        int taps = taps_ref(a, c, offset, weight);
        for (int64_t ch = 0; ch < a->channels; ch++) {
            TorScalar sum = {.dtype = a->dtype};
            int64_t base = b * a->x_stride[0] + ch * a->x_stride[1],
                    to = b * ys[0] + ch * ys[1] + d * ys[2] + h * ys[3] + w * ys[4];
            for (int k = 0; k < taps; k++)
                sum.f += weight[k] * (offset[k] >= 0 ? value(a, a->x, base + offset[k]) : 0);
            tor_scalar_store((char *)a->y + to * (int64_t)tor_dtype_size(a->dtype), sum);
        }
    }
}

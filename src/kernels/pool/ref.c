/// The oracle of the pool family, from the definitions of torch.nn.functional.
#include <math.h>

#include "kernels/pool/contract.h"

static TorScalar value_at(const TorPoolArgs *args, int64_t at) {
    return tor_scalar_load((const char *)args->x + at * (int64_t)tor_dtype_size(args->dtype),
                           args->dtype);
}

static void store_at(const TorPoolArgs *args, int64_t at, TorScalar value) {
    tor_scalar_store((char *)args->y + at * (int64_t)tor_dtype_size(args->dtype), value);
}

/// What a window that sees no element has for its maximum.
static TorScalar lowest(TorDtype dtype) {
    int bits = 8 * (int)tor_dtype_size(dtype);
    TorScalar s = {.dtype = dtype};
    if (tor_dtype_is_float(dtype))
        s.f = -INFINITY;
    else if (tor_dtype_kind(dtype) == 'i')
        s.i = INT64_MIN >> (64 - bits);
    return s;
}

static void one(const TorPoolArgs *args, int64_t b, int64_t c, const int64_t *o) {
    const int64_t *xs = args->x_stride, *ys = args->y_stride, *is = args->index_stride,
                  *in = args->in_size;
    int64_t low[3], count[3], step[3], padded = 1, inside = 1;
    for (int i = 0; i < 3; i++) {
        if (tor_pool_is_adaptive(args->kind)) {
            low[i] = (int64_t)floor((double)o[i] * (double)in[i] / (double)args->out_size[i]);
            count[i] =
                (int64_t)ceil((double)(o[i] + 1) * (double)in[i] / (double)args->out_size[i]) -
                low[i];
            step[i] = 1;
        } else {
            low[i] = o[i] * args->stride[i] - args->padding[i];
            count[i] = args->kernel[i];
            step[i] = args->kind == TOR_POOL_max ? args->dilation[i] : 1;
        }
        int64_t in_padded = 0, in_input = 0;
        for (int64_t k = 0; k < count[i]; k++) {
            int64_t at = low[i] + k * step[i];
            in_padded += at < in[i] + args->padding[i];
            in_input += at >= 0 && at < in[i];
        }
        padded *= in_padded;
        inside *= in_input;
    }
    // A dilated window may miss the input: ATen then gives the lowest value and the first position
    // that is not below 0.
    bool floats = tor_dtype_is_float(args->dtype);
    TorScalar sum = {.dtype = args->dtype}, most = lowest(args->dtype);
    int64_t where = 0, seen = 0;
    for (int i = 0; i < 3; i++) {
        int64_t at = low[i];
        while (at < 0) at += step[i];
        where = where * in[i] + at;
    }
    for (int64_t d = low[0]; d < low[0] + count[0] * step[0]; d += step[0])
        for (int64_t h = low[1]; h < low[1] + count[1] * step[1]; h += step[1])
            for (int64_t w = low[2]; w < low[2] + count[2] * step[2]; w += step[2]) {
                if (d < 0 || d >= in[0] || h < 0 || h >= in[1] || w < 0 || w >= in[2]) continue;
                TorScalar x =
                    value_at(args, b * xs[0] + c * xs[1] + d * xs[2] + h * xs[3] + w * xs[4]);
                if (floats)
                    sum.f += x.f;
                else
                    sum.i = (int64_t)((uint64_t)sum.i + (uint64_t)x.i);
                if (seen++ == 0 || (floats ? x.f > most.f || isnan(x.f) : x.i > most.i)) {
                    most = x;
                    where = (d * in[1] + h) * in[2] + w;
                }
            }
    int64_t y = b * ys[0] + c * ys[1] + o[0] * ys[2] + o[1] * ys[3] + o[2] * ys[4];
    if (tor_pool_is_max(args->kind)) {
        if (args->y) store_at(args, y, most);
        if (args->index)
            args->index[b * is[0] + c * is[1] + o[0] * is[2] + o[1] * is[3] + o[2] * is[4]] = where;
        return;
    }
    int64_t divisor = args->kind == TOR_POOL_avg && args->count_include_pad ? padded : inside;
    if (args->kind == TOR_POOL_avg && args->divisor) divisor = args->divisor;
    if (floats)
        sum.f = inside ? sum.f / (double)divisor : 0;
    else
        sum.i = inside ? sum.i / divisor : 0;
    store_at(args, y, sum);
}

void tor_pool_run_ref(const TorPoolArgs *args) {
    int64_t o[3];
    for (int64_t b = 0; b < args->batch; b++)
        for (int64_t c = 0; c < args->channels; c++)
            for (o[0] = 0; o[0] < args->out_size[0]; o[0]++)
                for (o[1] = 0; o[1] < args->out_size[1]; o[1]++)
                    for (o[2] = 0; o[2] < args->out_size[2]; o[2]++) one(args, b, c, o);
}

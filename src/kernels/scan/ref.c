/// Scan's oracle: one line after the other, through scalars.
#include <math.h>

#include "kernels/scan/contract.h"

static TorScalar combine(TorScanKind kind, TorDtype dtype, TorScalar a, TorScalar b) {
    if (!tor_dtype_is_float(dtype)) {
        uint64_t x = (uint64_t)a.i, y = (uint64_t)b.i;
        a.i = (int64_t)(kind == TOR_SCAN_sum ? x + y : x * y);
        return a;
    }
    if (kind == TOR_SCAN_logsumexp) {
        double high = a.f > b.f ? a.f : b.f, low = a.f > b.f ? b.f : a.f;
        if (isnan(a.f) || isnan(b.f))
            a.f = NAN;
        else
            a.f = isinf(high) ? high : high + log1p(exp(low - high));
        return a;
    }
    a.f = kind == TOR_SCAN_sum ? a.f + b.f : a.f * b.f;
    if (tor_dtype_is_half(dtype)) a.f = (float)a.f;
    return a;
}

static bool takes_over(TorScanKind kind, TorScalar x, TorScalar best) {
    if (!tor_dtype_is_float(x.dtype)) return kind == TOR_SCAN_max ? x.i >= best.i : x.i <= best.i;
    if (isnan(x.f) || isnan(best.f)) return isnan(x.f);
    return kind == TOR_SCAN_max ? x.f >= best.f : x.f <= best.f;
}

void tor_scan_ref(const TorScanArgs *args) {
    int64_t n = args->rank ? args->size[args->axis] : 1, lines = n != 0;
    int64_t bytes = (int64_t)tor_dtype_size(args->dtype);
    bool extreme = args->kind == TOR_SCAN_max || args->kind == TOR_SCAN_min;
    for (int d = 0; d < args->rank; d++)
        if (d != args->axis) lines *= args->size[d];
    for (int64_t line = 0; line < lines; line++) {
        int64_t rest = line, src = 0, dst = 0, index = 0, at = 0;
        for (int d = args->rank - 1; d >= 0; d--) {
            if (d == args->axis) continue;
            src += rest % args->size[d] * args->src_stride[d];
            dst += rest % args->size[d] * args->dst_stride[d];
            index += rest % args->size[d] * args->index_stride[d];
            rest /= args->size[d];
        }
        TorScalar state = {.dtype = tor_dtype_is_float(args->dtype) ? TOR_float64 : TOR_int64};
        for (int64_t i = 0; i < n; i++) {
            int axis = args->axis;
            int64_t from = src + i * (args->rank ? args->src_stride[axis] : 0);
            TorScalar x = tor_scalar_load((const uint8_t *)args->src + from * bytes, args->dtype);
            if (extreme) {
                if (i == 0 || takes_over(args->kind, x, state)) state = x, at = i;
            } else if (i == 0) {
                if (tor_dtype_is_float(args->dtype))
                    state.f = x.f;
                else
                    state.i = x.i;
            } else {
                state = combine(args->kind, args->dtype, state, x);
            }
            int64_t to = dst + i * (args->rank ? args->dst_stride[axis] : 0);
            if (args->dst)
                tor_scalar_store((uint8_t *)args->dst + to * bytes,
                                 tor_scalar_cast(state, args->dtype));
            if (extreme && args->index)
                args->index[index + i * (args->rank ? args->index_stride[axis] : 0)] = at;
        }
    }
}

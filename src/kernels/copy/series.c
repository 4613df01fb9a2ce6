/// arange.
#include "kernels/copy/contract.h"

enum { ARANGE_CHUNK = 4096 };

void tor_arange_bind(TorArangeArgs *args) {
    args->items = tor_ceil_div(args->n, ARANGE_CHUNK);
    args->scratch_bytes = 0;
}

#define EACH(type, expression)             \
    for (int64_t i = first; i < last; i++) \
    ((type *)args->dst)[i * args->dst_stride] = (type)(expression)

void tor_arange_run(const void *arg, int64_t begin, int64_t end, void *scratch) {
    (void)scratch;
    const TorArangeArgs *args = arg;
    int64_t first = begin * ARANGE_CHUNK, last = TOR_MIN(end * ARANGE_CHUNK, args->n);
    uint64_t start = (uint64_t)args->start.i, step = (uint64_t)args->step.i;
    double fstart = args->start.f, fstep = args->step.f;
    float hstart = (float)fstart, hstep = (float)fstep;
    switch (args->dtype) {
        case TOR_bool: EACH(uint8_t, start + (uint64_t)i * step != 0); break;
        case TOR_uint8:
        case TOR_int8: EACH(uint8_t, start + (uint64_t)i * step); break;
        case TOR_int16: EACH(uint16_t, start + (uint64_t)i * step); break;
        case TOR_int32: EACH(uint32_t, start + (uint64_t)i * step); break;
        case TOR_int64: EACH(uint64_t, start + (uint64_t)i * step); break;
        case TOR_float16: EACH(uint16_t, tor_f32_to_f16(hstart + (float)i * hstep)); break;
        case TOR_bfloat16: EACH(uint16_t, tor_f32_to_bf16(hstart + (float)i * hstep)); break;
        case TOR_float32: EACH(float, fstart + (double)i * fstep); break;
        case TOR_float64: EACH(double, fstart + (double)i * fstep); break;
        case TOR_DTYPE_COUNT: break;
    }
}

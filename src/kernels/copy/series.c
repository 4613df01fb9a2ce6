/// arange and cumsum.
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

/// Lines are counted row-major over all dims but the axis.
void tor_cumsum_bind(TorCumsumArgs *args) {
    args->items = 1;
    for (int d = 0; d < args->rank; d++)
        args->items *= d == args->axis ? args->size[d] != 0 : args->size[d];
    args->scratch_bytes = 0;
}

#define LINE(type, sum_type, load, store)              \
    {                                                  \
        const type *s = (const type *)args->src + src; \
        type *t = (type *)args->dst + dst;             \
        sum_type sum = 0;                              \
        for (int64_t i = 0; i < n; i++) {              \
            sum += load(s[i * src_step]);              \
            t[i * dst_step] = (type)store(sum);        \
        }                                              \
    }                                                  \
    break

void tor_cumsum_run(const void *arg, int64_t begin, int64_t end, void *scratch) {
    (void)scratch;
    const TorCumsumArgs *args = arg;
    // A 0-d tensor is one line of one element.
    int64_t n = args->rank ? args->size[args->axis] : 1;
    int64_t src_step = args->rank ? args->src_stride[args->axis] : 0,
            dst_step = args->rank ? args->dst_stride[args->axis] : 0;
    for (int64_t line = begin; line < end; line++) {
        int64_t rest = line, src = 0, dst = 0;
        for (int d = args->rank - 1; d >= 0; d--) {
            if (d == args->axis) continue;
            src += rest % args->size[d] * args->src_stride[d];
            dst += rest % args->size[d] * args->dst_stride[d];
            rest /= args->size[d];
        }
        switch (args->dtype) {
            case TOR_uint8:
            case TOR_int8: LINE(uint8_t, uint64_t, , );
            case TOR_int16: LINE(uint16_t, uint64_t, , );
            case TOR_int32: LINE(uint32_t, uint64_t, , );
            case TOR_int64: LINE(uint64_t, uint64_t, , );
            case TOR_float16: LINE(uint16_t, float, tor_f16_to_f32, tor_f32_to_f16);
            case TOR_bfloat16: LINE(uint16_t, float, tor_bf16_to_f32, tor_f32_to_bf16);
            case TOR_float32: LINE(float, double, , );
            case TOR_float64: LINE(double, double, , );
            case TOR_bool:
            case TOR_DTYPE_COUNT: break;
        }
    }
}

/// The oracles of copy, fill and arange: one element at a time.
#include <string.h>

#include "kernels/copy/contract.h"

void tor_copy_ref(const TorCopyArgs *args) {
    int64_t count = 1;
    for (int d = 0; d < args->rank; d++) count *= args->size[d];
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i, src = args->src_offset, dst = args->dst_offset;
        for (int d = args->rank - 1; d >= 0; d--) {
            src += rest % args->size[d] * args->src_stride[d] * args->elem_bytes;
            dst += rest % args->size[d] * args->dst_stride[d] * args->elem_bytes;
            rest /= args->size[d];
        }
        memcpy((uint8_t *)args->dst + dst, (const uint8_t *)args->src + src,
               (size_t)args->elem_bytes);
    }
}

void tor_fill_ref(const TorFillArgs *args) {
    TorCopyArgs copy = args->copy;
    copy.src = args->value;
    memset(copy.src_stride, 0, sizeof copy.src_stride);
    tor_copy_ref(&copy);
}

void tor_arange_ref(const TorArangeArgs *args) {
    TorScalar x = args->start;
    bool half = tor_dtype_is_half(args->dtype);
    for (int64_t i = 0; i < args->n; i++) {
        if (!tor_dtype_is_float(args->dtype))
            x.i = (int64_t)((uint64_t)args->start.i + (uint64_t)i * (uint64_t)args->step.i);
        else if (half)
            x.f = (float)args->start.f + (float)i * (float)args->step.f;
        else
            x.f = args->start.f + (double)i * args->step.f;
        tor_scalar_store(
            (uint8_t *)args->dst + i * args->dst_stride * (int64_t)tor_dtype_size(args->dtype),
            tor_scalar_cast(x, args->dtype));
    }
}

/// Copy's oracle: one element at a time.
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

/// How the drivers of the gemm family cut sizes and find matrices.
#ifndef TOR_KERNELS_GEMM_SPLIT_H
#define TOR_KERNELS_GEMM_SPLIT_H

#include "kernels/gemm/contract.h"

/// Parts of `size` that are nearly equal, at most `most`, and multiples of `multiple` if several.
static inline int64_t tor_gemm_even_part(int64_t size, int64_t most, int64_t multiple) {
    if (size <= most) return TOR_MAX(size, 1);
    return tor_round_up(tor_ceil_div(size, tor_ceil_div(size, most)), multiple);
}

static inline int64_t tor_gemm_batches(const TorGemmArgs *args) {
    int64_t batches = 1;
    for (int d = 0; d < args->batch_rank; d++) batches *= args->batch_size[d];
    return batches;
}

/// Offsets, in elements, of one batch item's matrices.
typedef struct {
    int64_t a, b, c, bias;
} TorGemmOffsets;

static inline TorGemmOffsets tor_gemm_offsets(const TorGemmArgs *args, int64_t batch) {
    TorGemmOffsets at = {0};
    for (int d = args->batch_rank - 1; d >= 0; d--) {
        int64_t i = batch % args->batch_size[d];
        batch /= args->batch_size[d];
        at.a += i * args->a_batch[d], at.b += i * args->b_batch[d];
        at.c += i * args->c_batch[d], at.bias += i * args->bias_batch[d];
    }
    return at;
}

#endif

// Packing of b into panels, and the strided copy that every packing goes through.
#include <string.h>

#include "kernels/gemm/contract.h"

typedef float v4 __attribute__((vector_size(16), aligned(4), may_alias));

// src's rows run along j: four of them become four columns.
static void transpose_4x4(float *dst, int64_t ld, const float *src, int64_t cs) {
    v4 a = *(const v4 *)src, b = *(const v4 *)(src + cs), c = *(const v4 *)(src + 2 * cs),
       d = *(const v4 *)(src + 3 * cs);
    v4 ac0 = __builtin_shufflevector(a, c, 0, 4, 1, 5),
       ac1 = __builtin_shufflevector(a, c, 2, 6, 3, 7);
    v4 bd0 = __builtin_shufflevector(b, d, 0, 4, 1, 5),
       bd1 = __builtin_shufflevector(b, d, 2, 6, 3, 7);
    *(v4 *)dst = __builtin_shufflevector(ac0, bd0, 0, 4, 1, 5);
    *(v4 *)(dst + ld) = __builtin_shufflevector(ac0, bd0, 2, 6, 3, 7);
    *(v4 *)(dst + 2 * ld) = __builtin_shufflevector(ac1, bd1, 0, 4, 1, 5);
    *(v4 *)(dst + 3 * ld) = __builtin_shufflevector(ac1, bd1, 2, 6, 3, 7);
}

static void copy_elements(float *dst, int64_t ld, const float *src, int64_t rs, int64_t cs,
                          int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) dst[i * ld + j] = src[i * rs + j * cs];
}

void tor_gemm_copy(float *dst, int64_t ld, const float *src, int64_t rs, int64_t cs, int64_t rows,
                   int64_t cols) {
    if (cs == 1) {
        for (int64_t i = 0; i < rows; i++) {
            const float *from = src + i * rs;
            float *to = dst + i * ld;
            int64_t j = 0;
            for (; j + 4 <= cols; j += 4) *(v4 *)(to + j) = *(const v4 *)(from + j);
            for (; j < cols; j++) to[j] = from[j];
        }
    } else if (rs == 1) {
        int64_t i = 0, j = 0;
        for (; j + 4 <= cols; j += 4)
            for (i = 0; i + 4 <= rows; i += 4)
                transpose_4x4(dst + i * ld + j, ld, src + i + j * cs, cs);
        i = rows / 4 * 4;
        copy_elements(dst + i * ld, ld, src + i, rs, cs, rows - i, j);
        copy_elements(dst + j, ld, src + j * cs, rs, cs, rows, cols - j);
    } else {
        copy_elements(dst, ld, src, rs, cs, rows, cols);
    }
}

size_t tor_gemm_packed_bytes(int64_t n, int64_t k) {
    int64_t nr = tor_gemm_panel();
    return (size_t)tor_round_up(tor_ceil_div(n, nr) * nr * k * (int64_t)sizeof(float), 64);
}

void tor_gemm_pack_bind(TorGemmPackArgs *args) {
    args->panel = tor_gemm_panel();
    args->items = args->k ? args->batch * tor_ceil_div(args->n, args->panel) : 0;
}

void tor_gemm_pack_run(const void *void_args, int64_t begin, int64_t end, void *scratch) {
    const TorGemmPackArgs *args = void_args;
    (void)scratch;
    int64_t nr = args->panel, k = args->k, panels = tor_ceil_div(args->n, nr);
    int64_t matrix = tor_round_up(panels * nr * k, 64 / (int64_t)sizeof(float));
    for (int64_t item = begin; item < end; item++) {
        int64_t batch = item / panels, panel = item % panels,
                cols = TOR_MIN(nr, args->n - panel * nr);
        const float *src = args->w + batch * args->batch_stride + panel * nr * args->n_stride;
        float *dst = args->packed + batch * matrix + panel * nr * k;
        tor_gemm_copy(dst, nr, src, args->k_stride, args->n_stride, k, cols);
        for (int64_t p = 0; cols < nr && p < k; p++)
            memset(dst + p * nr + cols, 0, (size_t)(nr - cols) * sizeof(float));
    }
}

/// Convolution in types other than float32: pixels are gathered into rows (im2col, a block at a
/// time) for the gemm family's typed rows. Chellapilla et al. 2006, "High performance convolutional
/// neural networks for document processing".
#include <string.h>

#include "kernels/conv/contract.h"

/// Where output position `at` reads tap `tap`: an offset of x, in elements. False: in the padding.
static bool input_at(const TorConvArgs *args, const int64_t *at, int64_t tap, int64_t *offset) {
    *offset = 0;
    for (int i = 2; i >= 0; i--) {
        int64_t reach = tap % args->kernel[i] * args->dilation[i], in;
        tap /= args->kernel[i];
        if (args->transposed) {
            in = at[i] + args->padding[i] - reach;
            if (in % args->stride[i]) return false;
            in /= args->stride[i];
        } else {
            in = at[i] * args->stride[i] - args->padding[i] + reach;
        }
        if (in < 0 || in >= args->in_size[i]) return false;
        *offset += in * args->x_stride[2 + i];
    }
    return true;
}

// A TorGemmPackA for elements of so many bits: rows are output pixels, columns are taps and
// channels.
#define IM2COL(bits)                                                                          \
    static void im2col_##bits(const void *ctx, int64_t batch, int64_t row, int64_t rows,      \
                              int64_t k0, int64_t kc, void *dst) {                            \
        const TorConvArgs *args = ctx;                                                        \
        int64_t c = args->in_channels / args->groups, step = args->x_stride[1], offset;       \
        const uint##bits##_t *x = (const uint##bits##_t *)(const void *)args->x +             \
                                  batch / args->groups * args->x_stride[0] +                  \
                                  batch % args->groups * c * step;                            \
        uint##bits##_t *to = dst;                                                             \
        for (int64_t i = row; i < row + rows; i++) {                                          \
            int64_t w = args->out_size[2], h = args->out_size[1];                             \
            const int64_t at[3] = {i / w / h, i / w % h, i % w};                              \
            for (int64_t k = k0, n; k < k0 + kc; k += n, to += n) {                           \
                int64_t channel = k % c;                                                      \
                n = TOR_MIN(c - channel, k0 + kc - k);                                        \
                if (input_at(args, at, k / c, &offset))                                       \
                    for (int64_t j = 0; j < n; j++) to[j] = x[offset + (channel + j) * step]; \
                else                                                                          \
                    memset(to, 0, (size_t)n * sizeof *to);                                    \
            }                                                                                 \
        }                                                                                     \
    }
IM2COL(8)
IM2COL(16)
IM2COL(32)
IM2COL(64)

static int64_t taps_of(const int64_t kernel[3]) { return kernel[0] * kernel[1] * kernel[2]; }

void tor_conv_typed_bind(const TorConvArgs *args, TorGemmArgs *gemm, TorDtype dtype) {
    static const TorGemmPackA im2col[] = {
        [1] = im2col_8, [2] = im2col_16, [4] = im2col_32, [8] = im2col_64};
    int64_t c = args->in_channels / args->groups, o = args->out_channels / args->groups;
    gemm->m = args->out_size[0] * args->out_size[1] * args->out_size[2];
    gemm->n = o;
    gemm->k = taps_of(args->kernel) * c;
    gemm->batch_rank = 2;
    gemm->batch_size[0] = args->batch, gemm->batch_size[1] = args->groups;
    gemm->b_batch[1] = gemm->k * o;
    gemm->c_batch[0] = args->y_stride[0], gemm->c_batch[1] = o;
    gemm->bias_batch[1] = o;
    gemm->pack_a = im2col[tor_dtype_size(dtype)];
    gemm->pack_ctx = args;
    gemm->b_row = o, gemm->b_col = 1;
    gemm->c_row = args->y_stride[4];
    tor_gemm_typed_bind(gemm, dtype);
}

size_t tor_conv_typed_packed_bytes(const TorConvPackArgs *args, TorDtype dtype) {
    return (size_t)(args->out_channels * taps_of(args->kernel) *
                    (args->in_channels / args->groups)) *
           tor_dtype_size(dtype);
}

#define PACK(bits)                                                                           \
    static void pack_##bits(const void *arg, int64_t begin, int64_t end, void *scratch) {    \
        const TorConvPackArgs *args = arg;                                                   \
        int64_t c = args->in_channels / args->groups, o = args->out_channels / args->groups; \
        int64_t taps = taps_of(args->kernel);                                                \
        (void)scratch;                                                                       \
        for (int64_t item = begin; item < end; item++) {                                     \
            int64_t tap = item % taps, h = args->kernel[1], w = args->kernel[2];             \
            const uint##bits##_t *from =                                                     \
                (const uint##bits##_t *)(const void *)args->weight +                         \
                item / taps * args->group_stride + tap / w / h * args->kernel_stride[0] +    \
                tap / w % h * args->kernel_stride[1] + tap % w * args->kernel_stride[2];     \
            uint##bits##_t *to = (uint##bits##_t *)args->packed + item * c * o;              \
            for (int64_t k = 0; k < c; k++)                                                  \
                for (int64_t j = 0; j < o; j++)                                              \
                    *to++ = from[k * args->in_stride + j * args->out_stride];                \
        }                                                                                    \
    }
PACK(8)
PACK(16)
PACK(32)
PACK(64)

TorRangeFn tor_conv_typed_pack_bind(TorConvPackArgs *args, TorDtype dtype) {
    static const TorRangeFn pack[] = {[1] = pack_8, [2] = pack_16, [4] = pack_32, [8] = pack_64};
    args->items = args->groups * taps_of(args->kernel);
    args->scratch_bytes = 0;
    return pack[tor_dtype_size(dtype)];
}

/// A line of a zero-padded channels-last patch of x.
#ifndef TOR_KERNELS_CONV_PATCH_H
#define TOR_KERNELS_CONV_PATCH_H

#include <string.h>

#include "kernels/conv/contract.h"

/// Three planes to pixels of three channels, as images come; a loop that compilers vectorize.
static inline void tor_conv_interleave_3(float *restrict dst, const float *restrict r,
                                         const float *restrict g, const float *restrict b,
                                         int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        dst[3 * i] = r[i];
        dst[3 * i + 1] = g[i];
        dst[3 * i + 2] = b[i];
    }
}

/// One line of pixels [first, first + n) of x, all channels of the group, to dst; zeros outside x.
static inline void tor_conv_copy_line(float *dst, int64_t pixel, const float *src, int64_t c,
                                      const TorConvArgs *args, int64_t first, int64_t n) {
    int64_t channel_stride = args->plan.x_stride[1], step = args->plan.x_stride[4],
            width = args->plan.in_size[2];
    int64_t low = TOR_MIN(TOR_MAX(-first, 0), n), high = TOR_MAX(TOR_MIN(width - first, n), low);
    if (low == n || high == low) low = high = n;
    for (int64_t i = 0; i < low; i++) memset(dst + i * pixel, 0, (size_t)c * sizeof(float));
    for (int64_t i = high; i < n; i++) memset(dst + i * pixel, 0, (size_t)c * sizeof(float));
    if (low == high) return;
    src += (first + low) * step;
    dst += low * pixel;
    n = high - low;
    if (channel_stride == 1 && step == c && pixel == c) {
        memcpy(dst, src, (size_t)(n * c) * sizeof(float));
    } else if (channel_stride == 1) {
        for (int64_t i = 0; i < n; i++)
            memcpy(dst + i * pixel, src + i * step, (size_t)c * sizeof(float));
    } else if (c == 3 && step == 1 && pixel == 3) {
        tor_conv_interleave_3(dst, src, src + channel_stride, src + 2 * channel_stride, n);
    } else {
        for (int64_t k = 0; k < c; k += 8) {
            int64_t lanes = TOR_MIN(c - k, 8);
            const float *from = src + k * channel_stride;
            if (lanes == 8) {
                for (int64_t i = 0; i < n; i++)
                    for (int j = 0; j < 8; j++)
                        dst[i * pixel + k + j] = from[i * step + j * channel_stride];
            } else {
                for (int64_t j = 0; j < lanes; j++)
                    for (int64_t i = 0; i < n; i++)
                        dst[i * pixel + k + j] = from[i * step + j * channel_stride];
            }
        }
    }
}

#endif

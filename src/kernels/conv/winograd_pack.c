/// The weights of Winograd's convolution: U = G g G^T, in double, rounded once.
///
/// Packed as [panel of nr][point][channel][nr], which the gemm family's kernels read; columns
/// missing in the last panel are zeros.
#include <string.h>

#include "kernels/conv/winograd.h"

enum { IN = TOR_WINOGRAD_IN, POINTS = TOR_WINOGRAD_POINTS, TAPS = 3 };

size_t tor_conv_winograd_bytes(int64_t out_channels, int64_t in_channels, int64_t nr) {
    return (size_t)(tor_round_up(out_channels, nr) * POINTS * in_channels) * sizeof(float);
}

/// G: row i is the powers of point i over the product of its distances from the others.
static void make_g(double g[IN][TAPS]) {
    const double points[IN - 1] = {0, TOR_WINOGRAD_A, -TOR_WINOGRAD_A, TOR_WINOGRAD_B,
                                   -TOR_WINOGRAD_B};
    for (int i = 0; i < IN - 1; i++) {
        double distance = 1;
        for (int j = 0; j < IN - 1; j++)
            if (j != i) distance *= points[i] - points[j];
        for (int k = 0; k < TAPS; k++)
            g[i][k] = (k == 0 ? 1 : k == 1 ? points[i] : points[i] * points[i]) / distance;
    }
    for (int k = 0; k < TAPS; k++) g[IN - 1][k] = k == TAPS - 1;
}

/// The points of one filter; src is its first tap.
static void transform(const double g[IN][TAPS], const TorConvPackArgs *args, const float *src,
                      float *to, int64_t step) {
    double half[IN][TAPS];
    for (int i = 0; i < IN; i++)
        for (int w = 0; w < TAPS; w++) {
            half[i][w] = 0;
            for (int h = 0; h < TAPS; h++)
                half[i][w] +=
                    g[i][h] * (double)src[h * args->kernel_stride[1] + w * args->kernel_stride[2]];
        }
    for (int i = 0; i < IN; i++)
        for (int j = 0; j < IN; j++)
            to[(i * IN + j) * step] =
                (float)(half[i][0] * g[j][0] + half[i][1] * g[j][1] + half[i][2] * g[j][2]);
}

void tor_conv_winograd_pack(const TorConvPackArgs *args, int64_t nr, int64_t panel) {
    double g[IN][TAPS];
    make_g(g);
    const int64_t c = args->in_channels, first = panel * nr,
                  n = TOR_MIN(nr, args->out_channels - first);
    float *packed = (float *)args->packed + panel * POINTS * c * nr;
    if (n < nr) memset(packed, 0, (size_t)(POINTS * c * nr) * sizeof(float));
    for (int64_t k = 0; k < c; k++)
        for (int64_t j = 0; j < n; j++)
            transform(g, args, args->weight + (first + j) * args->out_stride + k * args->in_stride,
                      packed + k * nr + j, c * nr);
}

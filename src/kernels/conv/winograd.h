/// What the transforms of Winograd's convolution share: tile sizes and interpolation points.
#ifndef TOR_KERNELS_CONV_WINOGRAD_H
#define TOR_KERNELS_CONV_WINOGRAD_H

#include "kernels/conv/contract.h"

enum { TOR_WINOGRAD_OUT = 4, TOR_WINOGRAD_IN = 6, TOR_WINOGRAD_POINTS = 36 };

/// The polynomials are taken at 0, +-A, +-B and infinity. Whole nets of random weights had 1.3
/// times eager's error with these points, 1.4 with 5/8 and 5/4, 1.6 with 1, -1, 1/2, -2 and 2.2
/// with the usual 1 and 2 (ResNet-50, float32); and all products of them that the transforms use
/// are exact.
#define TOR_WINOGRAD_A 0.75f
#define TOR_WINOGRAD_B 1.5f

/// Bytes of a packed weight, and the packing of one panel of nr output channels.
size_t tor_conv_winograd_bytes(int64_t out_channels, int64_t in_channels, int64_t nr);
void tor_conv_winograd_pack(const TorConvPackArgs *args, int64_t nr, int64_t panel);

#endif

// Matrix products of types other than float32, written once and compiled for each level: float64,
// and integers by the bits they have, since sums that wrap are the same with a sign and without.
//
// Numeric policy: contract.h.
#include <string.h>

#include "base/simd.h"
#include "kernels/gemm/contract.h"

enum { MR = 4 };

#define UNROLLED _Pragma("GCC unroll 16")

// Register tiles: 12 sums of float64 where there are instructions to multiply and add, fewer where
// those take several registers.
#define T double
#define KEY f64
#if defined(TOR_ISA_avx2) || defined(TOR_ISA_avx512)
#define NV 3
#else
#define NV 2
#endif
#include "kernels/gemm/typed_tmpl.h"
#define T uint8_t
#define KEY x8
#define NV 2
#include "kernels/gemm/typed_tmpl.h"
#define T uint16_t
#define KEY x16
#define NV 2
#include "kernels/gemm/typed_tmpl.h"
#define T uint32_t
#define KEY x32
#define NV 2
#include "kernels/gemm/typed_tmpl.h"
#define T uint64_t
#define KEY x64
#define NV 2
#include "kernels/gemm/typed_tmpl.h"

#define KERNEL(prefix, key)                                                               \
    TorGemmBlockFn TOR_KERNEL_IMPL(prefix, 4xn);                                          \
    void TOR_KERNEL_IMPL(prefix, 4xn)(const TorGemmArgs *args, const TorGemmBlock *block, \
                                      void *scratch) {                                    \
        block_##key(args, block, scratch);                                                \
    }
KERNEL(tor_gemm_f64, f64)
KERNEL(tor_gemm_x8, x8)
KERNEL(tor_gemm_x16, x16)
KERNEL(tor_gemm_x32, x32)
KERNEL(tor_gemm_x64, x64)

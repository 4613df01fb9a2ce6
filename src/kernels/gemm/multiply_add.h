/// The multiply-add of register tiles.
#ifndef TOR_KERNELS_GEMM_MULTIPLY_ADD_H
#define TOR_KERNELS_GEMM_MULTIPLY_ADD_H

#include "base/simd.h"

/// sum += x * b. Written out where sums fill the registers: compilers otherwise reorder loads and
/// rename sums until some of them spill.
TOR_INLINE void tor_multiply_add(vf32 *sum, vf32 x, vf32 b) {
#if defined(TOR_ISA_avx2) || defined(TOR_ISA_avx512)
    __asm__ volatile("vfmadd231ps %2, %1, %0" : "+v"(*sum) : "v"(x), "v"(b) : "memory");
#else
    *sum = vf32_fma(x, b, *sum);
#if defined(__x86_64__)
    __asm__ volatile("" : "+x"(*sum)::"memory");
#endif
#endif
}

#endif

/// The inner loop of the 6x16 tile for AVX2, in assembly.
///
/// A core that runs another thread beside this one decodes three instructions a cycle for each. The
/// tile's 12 multiply-adds take six cycles at best; the loop that a compiler makes of f32.simd.c
/// has 24 instructions for them, this one 21. Measured on such a core: 5 % faster; equal on an idle
/// one.
#ifndef TOR_KERNELS_GEMM_LOOP_6X16_H
#define TOR_KERNELS_GEMM_LOOP_6X16_H

#include "base/simd.h"

enum { TOR_LOOP_6X16_UNROLL = 8 };

// clang-format off
#define TOR_LOOP_ROW(at, c0, c1)               \
    "vbroadcastss " at ", %%ymm14\n\t"         \
    "vfmadd231ps %%ymm12, %%ymm14, " c0 "\n\t" \
    "vfmadd231ps %%ymm13, %%ymm14, " c1 "\n\t"

#define TOR_LOOP_STEP(a, b0, b1)                          \
    "vmovups " b0 "(%[b]), %%ymm12\n\t"                   \
    "vmovups " b1 "(%[b]), %%ymm13\n\t"                   \
    TOR_LOOP_ROW(a "(%[a0])", "%[c0]", "%[c1]")           \
    TOR_LOOP_ROW(a "(%[a0],%[lda])", "%[c2]", "%[c3]")    \
    TOR_LOOP_ROW(a "(%[a0],%[lda],2)", "%[c4]", "%[c5]")  \
    TOR_LOOP_ROW(a "(%[a3])", "%[c6]", "%[c7]")           \
    TOR_LOOP_ROW(a "(%[a3],%[lda])", "%[c8]", "%[c9]")    \
    TOR_LOOP_ROW(a "(%[a3],%[lda],2)", "%[c10]", "%[c11]")
// clang-format on

/// acc = a[6, 8 * turns] * b[8 * turns, 16]; turns > 0. Prefetches four lines a turn from `next`,
/// next_step bytes apart from turn to turn.
TOR_INLINE void tor_loop_6x16(vf32 acc[6][2], const float *a, int64_t lda, const float *b,
                              int64_t turns, const char *next, int64_t next_step) {
    vf32 c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11;
    const float *a3 = a + 3 * lda;
    __asm__ volatile(
        "vxorps %[c0], %[c0], %[c0]\n\t"
        "vxorps %[c1], %[c1], %[c1]\n\t"
        "vxorps %[c2], %[c2], %[c2]\n\t"
        "vxorps %[c3], %[c3], %[c3]\n\t"
        "vxorps %[c4], %[c4], %[c4]\n\t"
        "vxorps %[c5], %[c5], %[c5]\n\t"
        "vxorps %[c6], %[c6], %[c6]\n\t"
        "vxorps %[c7], %[c7], %[c7]\n\t"
        "vxorps %[c8], %[c8], %[c8]\n\t"
        "vxorps %[c9], %[c9], %[c9]\n\t"
        "vxorps %[c10], %[c10], %[c10]\n\t"
        "vxorps %[c11], %[c11], %[c11]\n\t"
        ".p2align 5\n"
        "1:\n\t"
        TOR_LOOP_STEP("0", "0", "32")
        TOR_LOOP_STEP("4", "64", "96")
        "prefetcht1 (%[next])\n\t"
        TOR_LOOP_STEP("8", "128", "160")
        TOR_LOOP_STEP("12", "192", "224")
        "prefetcht1 64(%[next])\n\t"
        TOR_LOOP_STEP("16", "256", "288")
        TOR_LOOP_STEP("20", "320", "352")
        "prefetcht1 128(%[next])\n\t"
        TOR_LOOP_STEP("24", "384", "416")
        TOR_LOOP_STEP("28", "448", "480")
        "prefetcht1 192(%[next])\n\t"
        "add $512, %[b]\n\t"
        "add $32, %[a0]\n\t"
        "add $32, %[a3]\n\t"
        "add %[step], %[next]\n\t"
        "dec %[turns]\n\t"
        "jnz 1b\n\t"
        : [c0] "=&x"(c0), [c1] "=&x"(c1), [c2] "=&x"(c2), [c3] "=&x"(c3), [c4] "=&x"(c4), [c5] "=&x"(c5),
          [c6] "=&x"(c6), [c7] "=&x"(c7), [c8] "=&x"(c8), [c9] "=&x"(c9), [c10] "=&x"(c10), [c11] "=&x"(c11),
          [a0] "+r"(a), [a3] "+r"(a3), [b] "+r"(b), [next] "+r"(next), [turns] "+r"(turns)
        : [lda] "r"(lda * 4), [step] "r"(next_step)
        : "ymm12", "ymm13", "ymm14", "cc", "memory");
    acc[0][0] = c0, acc[0][1] = c1, acc[1][0] = c2, acc[1][1] = c3, acc[2][0] = c4, acc[2][1] = c5;
    acc[3][0] = c6, acc[3][1] = c7, acc[4][0] = c8, acc[4][1] = c9, acc[5][0] = c10,
    acc[5][1] = c11;
}

#endif

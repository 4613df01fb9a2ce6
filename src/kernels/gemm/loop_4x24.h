/// The inner loops of the 4x24 and 3x24 tiles for AVX2, in assembly.
///
/// The 12 multiply-adds of a step take six cycles at best. A core that runs another thread beside
/// this one decodes three instructions a cycle for each, so every instruction above 18 a step costs
/// time there: four broadcasts, three loads and one eighth of the loop's end make 19.9. (A 6x16
/// tile needs 21.3, and what a compiler makes of either in C is three more.) Measured in turns on
/// such a core, sums in registers only: 4x24 at 94 % of the multiply-adds' peak, 6x16 at 89 %.
#ifndef TOR_KERNELS_GEMM_LOOP_4X24_H
#define TOR_KERNELS_GEMM_LOOP_4X24_H

#include "base/simd.h"

enum { TOR_LOOP_4X24_UNROLL = 8 };

// clang-format off
#define TOR_LOOP_ROW(at, c0, c1, c2)           \
    "vbroadcastss " at ", %%ymm15\n\t"         \
    "vfmadd231ps %%ymm12, %%ymm15, " c0 "\n\t" \
    "vfmadd231ps %%ymm13, %%ymm15, " c1 "\n\t" \
    "vfmadd231ps %%ymm14, %%ymm15, " c2 "\n\t"

#define TOR_LOOP_LOADS(b0, b1, b2)      \
    "vmovups " b0 "(%[b]), %%ymm12\n\t" \
    "vmovups " b1 "(%[b]), %%ymm13\n\t" \
    "vmovups " b2 "(%[b]), %%ymm14\n\t"

// A step of k at a0 to a3, where the rows are read, and with b at three displacements.
#define TOR_LOOP_STEP(a0, a1, a2, a3, b0, b1, b2) \
    TOR_LOOP_STEP_3(a0, a1, a2, b0, b1, b2)       \
    TOR_LOOP_ROW(a3, "%[c9]", "%[c10]", "%[c11]")

#define TOR_LOOP_STEP_3(a0, a1, a2, b0, b1, b2) \
    TOR_LOOP_LOADS(b0, b1, b2)                  \
    TOR_LOOP_ROW(a0, "%[c0]", "%[c1]", "%[c2]") \
    TOR_LOOP_ROW(a1, "%[c3]", "%[c4]", "%[c5]") \
    TOR_LOOP_ROW(a2, "%[c6]", "%[c7]", "%[c8]")

// Eight steps, with something else after the second and the sixth. STEP is a macro of the
// displacements of a and b.
#define TOR_LOOP_TURN(STEP, first, second) \
    STEP("0", "0", "32", "64")             \
    STEP("4", "96", "128", "160")          \
    first                                  \
    STEP("8", "192", "224", "256")         \
    STEP("12", "288", "320", "352")        \
    STEP("16", "384", "416", "448")        \
    STEP("20", "480", "512", "544")        \
    second                                 \
    STEP("24", "576", "608", "640")        \
    STEP("28", "672", "704", "736")

#define TOR_LOOP_FETCH(at) "prefetcht1 " at "(%[next])\n\t"

#define TOR_LOOP_CLEAR                   \
    "vxorps %[c0], %[c0], %[c0]\n\t"     \
    "vxorps %[c1], %[c1], %[c1]\n\t"     \
    "vxorps %[c2], %[c2], %[c2]\n\t"     \
    "vxorps %[c3], %[c3], %[c3]\n\t"     \
    "vxorps %[c4], %[c4], %[c4]\n\t"     \
    "vxorps %[c5], %[c5], %[c5]\n\t"     \
    "vxorps %[c6], %[c6], %[c6]\n\t"     \
    "vxorps %[c7], %[c7], %[c7]\n\t"     \
    "vxorps %[c8], %[c8], %[c8]\n\t"     \
    "vxorps %[c9], %[c9], %[c9]\n\t"     \
    "vxorps %[c10], %[c10], %[c10]\n\t"  \
    "vxorps %[c11], %[c11], %[c11]\n\t"

#define TOR_LOOP_SUMS                                                                          \
    [c0] "=&x"(acc[0][0]), [c1] "=&x"(acc[0][1]), [c2] "=&x"(acc[0][2]),                       \
    [c3] "=&x"(acc[1][0]), [c4] "=&x"(acc[1][1]), [c5] "=&x"(acc[1][2]),                       \
    [c6] "=&x"(acc[2][0]), [c7] "=&x"(acc[2][1]), [c8] "=&x"(acc[2][2]),                       \
    [c9] "=&x"(acc[3][0]), [c10] "=&x"(acc[3][1]), [c11] "=&x"(acc[3][2])

#define TOR_LOOP_USES "ymm12", "ymm13", "ymm14", "ymm15", "cc", "memory"

#define TOR_LOOP_4_ROWS(a, b0, b1, b2) \
    TOR_LOOP_STEP(a "(%[a])", a "(%[a],%[lda])", a "(%[a],%[lda],2)", a "(%[a],%[lda3])", b0, b1, b2)
#define TOR_LOOP_3_ROWS(a, b0, b1, b2) \
    TOR_LOOP_STEP_3(a "(%[a])", a "(%[a],%[lda])", a "(%[a],%[lda],2)", b0, b1, b2)

#define TOR_LOOP_FETCH_1 TOR_LOOP_FETCH("")
#define TOR_LOOP_FETCH_2 TOR_LOOP_FETCH_1 TOR_LOOP_FETCH("64")
#define TOR_LOOP_FETCH_3 TOR_LOOP_FETCH_2 TOR_LOOP_FETCH("128")

#define TOR_LOOP_STRIDED(STEP, fetch)                                                      \
    __asm__ volatile(                                                                      \
        TOR_LOOP_CLEAR                                                                     \
        ".p2align 5\n"                                                                     \
        "1:\n\t"                                                                           \
        TOR_LOOP_TURN(STEP, fetch "add %[step], %[next]\n\t", fetch)                       \
        "add $768, %[b]\n\t"                                                               \
        "add $32, %[a]\n\t"                                                                \
        "add %[step], %[next]\n\t"                                                         \
        "dec %[turns]\n\t"                                                                 \
        "jnz 1b\n\t"                                                                       \
        : TOR_LOOP_SUMS, [a] "+r"(a), [b] "+r"(b), [next] "+r"(next), [turns] "+r"(turns)  \
        : [lda] "r"(lda * 4), [lda3] "r"(lda * 12), [step] "r"(next_step)                  \
        : TOR_LOOP_USES)
// clang-format on

/// acc = a[rows, 8 * turns] * b[8 * turns, 24] for three or four rows; turns > 0. Every four steps
/// it fetches `lines` lines (1 to 3) from `next`, which then moves by next_step bytes.
/// Rows and lines are constants of each inlined copy.
TOR_INLINE void tor_loop_4x24(int rows, int lines, vf32 (*acc)[3], const float *a, int64_t lda,
                              const float *b, int64_t turns, const char *next, int64_t next_step) {
    if (rows == 4 && lines == 1) TOR_LOOP_STRIDED(TOR_LOOP_4_ROWS, TOR_LOOP_FETCH_1);
    if (rows == 4 && lines == 2) TOR_LOOP_STRIDED(TOR_LOOP_4_ROWS, TOR_LOOP_FETCH_2);
    if (rows == 4 && lines == 3) TOR_LOOP_STRIDED(TOR_LOOP_4_ROWS, TOR_LOOP_FETCH_3);
    if (rows == 3 && lines == 1) TOR_LOOP_STRIDED(TOR_LOOP_3_ROWS, TOR_LOOP_FETCH_1);
    if (rows == 3 && lines == 2) TOR_LOOP_STRIDED(TOR_LOOP_3_ROWS, TOR_LOOP_FETCH_2);
    if (rows == 3 && lines == 3) TOR_LOOP_STRIDED(TOR_LOOP_3_ROWS, TOR_LOOP_FETCH_3);
}

#endif

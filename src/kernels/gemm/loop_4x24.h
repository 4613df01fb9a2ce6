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

#define TOR_LOOP_ROW_3(at) TOR_LOOP_ROW(at, "%[c9]", "%[c10]", "%[c11]")
#define TOR_LOOP_NO_ROW(at) ""

#define TOR_LOOP_STEP(LAST_ROW, a, b0, b1, b2)                    \
    "vmovups " b0 "(%[b]), %%ymm12\n\t"                           \
    "vmovups " b1 "(%[b]), %%ymm13\n\t"                           \
    "vmovups " b2 "(%[b]), %%ymm14\n\t"                           \
    TOR_LOOP_ROW(a "(%[a])", "%[c0]", "%[c1]", "%[c2]")           \
    TOR_LOOP_ROW(a "(%[a],%[lda])", "%[c3]", "%[c4]", "%[c5]")    \
    TOR_LOOP_ROW(a "(%[a],%[lda],2)", "%[c6]", "%[c7]", "%[c8]")  \
    LAST_ROW(a "(%[a],%[lda3])")

#define TOR_LOOP_FETCH(at) "prefetcht1 " at "(%[next])\n\t"
#define TOR_LOOP_NO_FETCH(at) ""

/// Defines a loop of three rows or, with TOR_LOOP_ROW_3, four, that fetches two lines a turn; four
/// with SECOND, six with THIRD too.
#define TOR_LOOP(name, LAST_ROW, SECOND, THIRD)                                                   \
    TOR_INLINE void name(vf32 (*acc)[3], const float *a, int64_t lda, const float *b,             \
                         int64_t turns, const char *next, int64_t next_step) {                    \
        vf32 c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11;                                    \
        __asm__ volatile(                                                                         \
            "vxorps %[c0], %[c0], %[c0]\n\t"                                                      \
            "vxorps %[c1], %[c1], %[c1]\n\t"                                                      \
            "vxorps %[c2], %[c2], %[c2]\n\t"                                                      \
            "vxorps %[c3], %[c3], %[c3]\n\t"                                                      \
            "vxorps %[c4], %[c4], %[c4]\n\t"                                                      \
            "vxorps %[c5], %[c5], %[c5]\n\t"                                                      \
            "vxorps %[c6], %[c6], %[c6]\n\t"                                                      \
            "vxorps %[c7], %[c7], %[c7]\n\t"                                                      \
            "vxorps %[c8], %[c8], %[c8]\n\t"                                                      \
            "vxorps %[c9], %[c9], %[c9]\n\t"                                                      \
            "vxorps %[c10], %[c10], %[c10]\n\t"                                                   \
            "vxorps %[c11], %[c11], %[c11]\n\t"                                                   \
            ".p2align 5\n"                                                                        \
            "1:\n\t"                                                                              \
            TOR_LOOP_STEP(LAST_ROW, "0", "0", "32", "64")                                         \
            TOR_LOOP_STEP(LAST_ROW, "4", "96", "128", "160")                                      \
            TOR_LOOP_FETCH("")                                                                    \
            TOR_LOOP_STEP(LAST_ROW, "8", "192", "224", "256")                                     \
            SECOND("64")                                                                          \
            TOR_LOOP_STEP(LAST_ROW, "12", "288", "320", "352")                                    \
            THIRD("128")                                                                          \
            "add %[step], %[next]\n\t"                                                            \
            TOR_LOOP_STEP(LAST_ROW, "16", "384", "416", "448")                                    \
            TOR_LOOP_STEP(LAST_ROW, "20", "480", "512", "544")                                    \
            TOR_LOOP_FETCH("")                                                                    \
            TOR_LOOP_STEP(LAST_ROW, "24", "576", "608", "640")                                    \
            SECOND("64")                                                                          \
            TOR_LOOP_STEP(LAST_ROW, "28", "672", "704", "736")                                    \
            THIRD("128")                                                                          \
            "add $768, %[b]\n\t"                                                                  \
            "add $32, %[a]\n\t"                                                                   \
            "add %[step], %[next]\n\t"                                                            \
            "dec %[turns]\n\t"                                                                    \
            "jnz 1b\n\t"                                                                          \
            : [c0] "=&x"(c0), [c1] "=&x"(c1), [c2] "=&x"(c2), [c3] "=&x"(c3), [c4] "=&x"(c4),     \
              [c5] "=&x"(c5), [c6] "=&x"(c6), [c7] "=&x"(c7), [c8] "=&x"(c8), [c9] "=&x"(c9),     \
              [c10] "=&x"(c10), [c11] "=&x"(c11), [a] "+r"(a), [b] "+r"(b), [next] "+r"(next),    \
              [turns] "+r"(turns)                                                                 \
            : [lda] "r"(lda * 4), [lda3] "r"(lda * 12), [step] "r"(next_step)                     \
            : "ymm12", "ymm13", "ymm14", "ymm15", "cc", "memory");                                \
        acc[0][0] = c0, acc[0][1] = c1, acc[0][2] = c2;                                           \
        acc[1][0] = c3, acc[1][1] = c4, acc[1][2] = c5;                                           \
        acc[2][0] = c6, acc[2][1] = c7, acc[2][2] = c8;                                           \
        acc[3][0] = c9, acc[3][1] = c10, acc[3][2] = c11;                                         \
    }

TOR_LOOP(tor_loop_4x24_one, TOR_LOOP_ROW_3, TOR_LOOP_NO_FETCH, TOR_LOOP_NO_FETCH)
TOR_LOOP(tor_loop_4x24_two, TOR_LOOP_ROW_3, TOR_LOOP_FETCH, TOR_LOOP_NO_FETCH)
TOR_LOOP(tor_loop_4x24_three, TOR_LOOP_ROW_3, TOR_LOOP_FETCH, TOR_LOOP_FETCH)
TOR_LOOP(tor_loop_3x24_one, TOR_LOOP_NO_ROW, TOR_LOOP_NO_FETCH, TOR_LOOP_NO_FETCH)
TOR_LOOP(tor_loop_3x24_two, TOR_LOOP_NO_ROW, TOR_LOOP_FETCH, TOR_LOOP_NO_FETCH)
TOR_LOOP(tor_loop_3x24_three, TOR_LOOP_NO_ROW, TOR_LOOP_FETCH, TOR_LOOP_FETCH)
// clang-format on

/// acc = a[rows, 8 * turns] * b[8 * turns, 24] for three or four rows; turns > 0. Every four steps
/// it fetches `lines` lines (1 to 3) from `next`, which then moves by next_step bytes.
/// Rows and lines are constants of each inlined copy.
TOR_INLINE void tor_loop_4x24(int rows, int lines, vf32 (*acc)[3], const float *a, int64_t lda,
                              const float *b, int64_t turns, const char *next, int64_t next_step) {
    if (rows == 4 && lines == 1) tor_loop_4x24_one(acc, a, lda, b, turns, next, next_step);
    if (rows == 4 && lines == 2) tor_loop_4x24_two(acc, a, lda, b, turns, next, next_step);
    if (rows == 4 && lines == 3) tor_loop_4x24_three(acc, a, lda, b, turns, next, next_step);
    if (rows == 3 && lines == 1) tor_loop_3x24_one(acc, a, lda, b, turns, next, next_step);
    if (rows == 3 && lines == 2) tor_loop_3x24_two(acc, a, lda, b, turns, next, next_step);
    if (rows == 3 && lines == 3) tor_loop_3x24_three(acc, a, lda, b, turns, next, next_step);
}

#endif

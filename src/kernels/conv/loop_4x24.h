/// The 4x24 tile of gemm/loop_4x24.h over runs of products, with a pointer a row.
#ifndef TOR_KERNELS_CONV_LOOP_4X24_H
#define TOR_KERNELS_CONV_LOOP_4X24_H

#include "kernels/conv/geometry.h"
#include "kernels/gemm/loop_4x24.h"

// clang-format off
#define TOR_LOOP_INDEXED_STEP(a, b0, b1, b2) \
    TOR_LOOP_STEP(a "(%[a0],%[k],4)", a "(%[a1],%[k],4)", a "(%[a2],%[k],4)", a "(%[a3],%[k],4)", b0, b1, b2)

#define TOR_LOOP_START                 \
    "vmovups (%[start]), %[c0]\n\t"    \
    "vmovups 32(%[start]), %[c1]\n\t"  \
    "vmovups 64(%[start]), %[c2]\n\t"  \
    "vmovaps %[c0], %[c3]\n\t"         \
    "vmovaps %[c1], %[c4]\n\t"         \
    "vmovaps %[c2], %[c5]\n\t"         \
    "vmovaps %[c0], %[c6]\n\t"         \
    "vmovaps %[c1], %[c7]\n\t"         \
    "vmovaps %[c2], %[c8]\n\t"         \
    "vmovaps %[c0], %[c9]\n\t"         \
    "vmovaps %[c1], %[c10]\n\t"        \
    "vmovaps %[c2], %[c11]\n\t"
// clang-format on

/// acc = start[24] + the sum over runs of a[4, len] * b[len, 24], where row r of a starts at
/// row[r].
TOR_INLINE const TorConvRun *tor_conv_loop_4x24(vf32 (*acc)[3], const float *const *row,
                                                const float *panel, const TorConvRun *run,
                                                const float *start, const char **next_at,
                                                int64_t next_step) {
    int64_t a0, a1, a2, a3, b, k;
    const char *next = *next_at;
    __asm__ volatile(
        TOR_LOOP_START
        "1:\n\t"
        "mov (%[run]), %[a3]\n\t"
        "imul $96, 8(%[run]), %[b]\n\t"
        "mov 16(%[run]), %[k]\n\t"
        "add %[panel], %[b]\n\t"
        "and $-8, %[k]\n\t"
        "mov (%[row]), %[a0]\n\t"
        "mov 8(%[row]), %[a1]\n\t"
        "mov 16(%[row]), %[a2]\n\t"
        "add %[a3], %[a0]\n\t"
        "add %[a3], %[a1]\n\t"
        "add %[a3], %[a2]\n\t"
        "add 24(%[row]), %[a3]\n\t"
        "lea (%[a0],%[k],4), %[a0]\n\t"
        "lea (%[a1],%[k],4), %[a1]\n\t"
        "lea (%[a2],%[k],4), %[a2]\n\t"
        "lea (%[a3],%[k],4), %[a3]\n\t"
        "neg %[k]\n\t"
        "jz 3f\n\t"
        ".p2align 5\n"
        "2:\n\t"
        TOR_LOOP_TURN(TOR_LOOP_INDEXED_STEP, TOR_LOOP_FETCH(""), TOR_LOOP_FETCH("64"))
        "add $768, %[b]\n\t"
        "add %[step], %[next]\n\t"
        "add $8, %[k]\n\t"
        "jnz 2b\n"
        "3:\n\t"
        // The rest: from the pointers at its end up.
        "mov 16(%[run]), %[k]\n\t"
        "and $7, %[k]\n\t"
        "jz 5f\n\t"
        "lea (%[a0],%[k],4), %[a0]\n\t"
        "lea (%[a1],%[k],4), %[a1]\n\t"
        "lea (%[a2],%[k],4), %[a2]\n\t"
        "lea (%[a3],%[k],4), %[a3]\n\t"
        "neg %[k]\n"
        "4:\n\t"
        TOR_LOOP_INDEXED_STEP("0", "0", "32", "64")
        "add $96, %[b]\n\t"
        "inc %[k]\n\t"
        "jnz 4b\n"
        "5:\n\t"
        "cmpq $0, 24(%[run])\n\t"
        "lea 32(%[run]), %[run]\n\t"
        "je 1b\n\t"
        : TOR_LOOP_SUMS, [a0] "=&r"(a0), [a1] "=&r"(a1), [a2] "=&r"(a2), [a3] "=&r"(a3),
          [b] "=&r"(b), [k] "=&r"(k), [next] "+r"(next), [run] "+r"(run)
        : [row] "r"(row), [panel] "r"(panel), [start] "r"(start), [step] "r"(next_step)
        : TOR_LOOP_USES);
    *next_at = next;
    return run;
}

// clang-format off
#define TOR_LOOP_STRIP(STEP)                                                              \
    __asm__ volatile(                                                                     \
        TOR_LOOP_START                                                                    \
        ".p2align 5\n"                                                                    \
        "1:\n\t"                                                                          \
        TOR_LOOP_TURN(STEP, TOR_LOOP_FETCH(""), TOR_LOOP_FETCH("64"))                     \
        "add $768, %[b]\n\t"                                                              \
        "add $32, %[a]\n\t"                                                               \
        "add %[step], %[next]\n\t"                                                        \
        "dec %[turns]\n\t"                                                                \
        "jnz 1b\n\t"                                                                      \
        : TOR_LOOP_SUMS, [a] "+r"(a), [b] "+r"(b), [next] "+r"(next), [turns] "+r"(turns) \
        : [lda] "r"(lda * 4), [lda3] "r"(lda * 12), [start] "r"(start), [step] "r"(step)  \
        : TOR_LOOP_USES)
// clang-format on

/// acc = start[24] + a[rows, 8 * turns] * b[8 * turns, 24] for three or four rows, which lie lda
/// elements apart; turns > 0. Rows are a constant of each inlined copy.
TOR_INLINE void tor_conv_loop_strip(vf32 (*acc)[3], int rows, const float *a, int64_t lda,
                                    const float *b, int64_t turns, const float *start,
                                    const char **next_at, int64_t step) {
    const char *next = *next_at;
    if (rows == 4)
        TOR_LOOP_STRIP(TOR_LOOP_4_ROWS);
    else
        TOR_LOOP_STRIP(TOR_LOOP_3_ROWS);
    *next_at = next;
}

#endif

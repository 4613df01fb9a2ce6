// The float32 microkernels, written once and compiled for each level. A register tile of MR rows by
// two vectors of columns; a's elements are broadcast from its rows in place, b comes in panels.
//
// Numeric policy: contract.h. Tiles of up to three rows keep two or four sums an element, since one
// multiply-add has the latency of eight.
#include "base/simd.h"
#include "kernels/gemm/contract.h"
#if defined(TOR_ISA_avx2)
#include "kernels/gemm/loop_6x16.h"
#endif

enum { NV = 2, NR = NV * VF32, UNROLL = 4 };

#if defined(TOR_ISA_avx512)
#define MR 12
#define PACKED_KERNEL tor_gemm_f32_f32p32__avx512_12x32
#define STRIDED_KERNEL tor_gemm_f32_f32__avx512_12x32
#elif defined(TOR_ISA_avx2)
#define MR 6
#define PACKED_KERNEL tor_gemm_f32_f32p16__avx2_6x16
#define STRIDED_KERNEL tor_gemm_f32_f32__avx2_6x16
#else
#define MR 4
#define PACKED_KERNEL tor_gemm_f32_f32p8__generic_4x8
#define STRIDED_KERNEL tor_gemm_f32_f32__generic_4x8
#endif

#define UNROLLED _Pragma("GCC unroll 16")

// Where rows of a are read: GROUP of them share a pointer and differ by multiples of lda, which x86
// adds in the address. With few rows each has its own, which leaves a displacement for the unrolled
// k.
#if MR <= 6
enum { GROUP = 1 };
#else
enum { GROUP = 3 };
#endif
enum { BASES = MR / GROUP };

// sum += x * b. Written out where sums fill the registers: compilers otherwise reorder loads and
// rename sums until some of them spill.
TOR_INLINE void multiply_add(vf32 *sum, vf32 x, vf32 b) {
#if defined(TOR_ISA_avx2) || defined(TOR_ISA_avx512)
    __asm__ volatile("vfmadd231ps %2, %1, %0" : "+v"(*sum) : "v"(x), "v"(b) : "memory");
#else
    *sum = vf32_fma(x, b, *sum);
#if defined(__x86_64__)
    __asm__ volatile("" : "+x"(*sum)::"memory");
#endif
#endif
}

// `rows`, `chains`, `packed` and `ahead` are constants of each inlined copy.
TOR_INLINE void step(vf32 acc[MR][NV], int rows, const float *const *base, int64_t lda, int u,
                     const float *b) {
    vf32 bv[NV];
    UNROLLED for (int v = 0; v < NV; v++) bv[v] = vf32_load(b + v * VF32);
    UNROLLED for (int r = 0; r < rows; r++) {
        vf32 x = vf32_set(base[r / GROUP][(r % GROUP) * lda + u]);
        UNROLLED for (int v = 0; v < NV; v++) multiply_add(&acc[r][v], x, bv[v]);
    }
}

TOR_INLINE void add(vf32 to[MR][NV], vf32 from[MR][NV], int rows) {
    UNROLLED for (int r = 0; r < rows; r++) UNROLLED for (int v = 0; v < NV; v++) to[r][v] +=
        from[r][v];
}

TOR_INLINE void tile(int rows, int chains, bool packed, bool ahead, const TorGemmTile *t,
                     const float *a, float *c, const char *next, int64_t next_step) {
    vf32 acc[4][MR][NV];
    UNROLLED for (int s = 0; s < chains; s++) UNROLLED for (int r = 0; r < rows; r++)
        UNROLLED for (int v = 0; v < NV; v++) acc[s][r][v] = (vf32){0};

    const int bases = (rows + GROUP - 1) / GROUP;
    const float *base[BASES], *b = t->b;
    int64_t lda = t->lda, ldb = packed ? NR : t->ldb, k = t->kc;
    UNROLLED for (int i = 0; i < bases; i++) base[i] = a + GROUP * i * lda;
#if defined(TOR_ISA_avx2)
    if (rows == 6 && packed && !ahead && k >= TOR_LOOP_6X16_UNROLL) {
        int64_t turns = k / TOR_LOOP_6X16_UNROLL, done = turns * TOR_LOOP_6X16_UNROLL;
        // Two turns of the loop below are one of this.
        tor_loop_6x16(acc[0], a, lda, b, turns, next, 2 * next_step);
        UNROLLED for (int i = 0; i < bases; i++) base[i] += done;
        b += done * ldb, next += 2 * turns * next_step, k -= done;
    }
#endif
    for (; k >= UNROLL; k -= UNROLL) {
        UNROLLED for (int u = 0; u < UNROLL; u++) {
            step(acc[u % chains], rows, base, lda, u, b + u * ldb);
            if (ahead && u * NR % 16 == 0)
                UNROLLED for (int line = 0; line < NR; line += 16)
                    __builtin_prefetch(next + u * NR * 4 + line * 4, 0, 3);
        }
        if (packed && !ahead)
            UNROLLED for (int line = 0; line < NR / 8; line++)
                __builtin_prefetch(next + 64 * line, 0, 2);
        UNROLLED for (int i = 0; i < bases; i++) base[i] += UNROLL;
        b += UNROLL * ldb;
        next += ahead ? UNROLL * NR * 4 : next_step;
    }
    for (; k; k--) {
        step(acc[0], rows, base, lda, 0, b);
        UNROLLED for (int i = 0; i < bases; i++) base[i]++;
        b += ldb;
    }

    if (chains == 4) add(acc[0], acc[2], rows), add(acc[1], acc[3], rows);
    if (chains >= 2) add(acc[0], acc[1], rows);

    const float *bias = t->bias;
    bool accumulate = t->accumulate;
    int64_t ldc = t->ldc, cols = t->cols;
    UNROLLED for (int v = 0; v < NV; v++) {
        int lanes = (int)TOR_MIN(cols - v * VF32, VF32);
        if (lanes <= 0) break;
        bool whole = lanes == VF32;
        vf32 add_bias = !bias   ? (vf32){0}
                        : whole ? vf32_load(bias + v * VF32)
                                : vf32_load_n(bias + v * VF32, lanes);
        UNROLLED for (int r = 0; r < rows; r++) {
            float *p = c + r * ldc + v * VF32;
            vf32 x = acc[0][r][v];
            if (accumulate) x += whole ? vf32_load(p) : vf32_load_n(p, lanes);
            if (bias) x += add_bias;
            if (whole)
                vf32_store(p, x);
            else
                vf32_store_n(p, x, lanes);
        }
    }
}

#define CHAINS(rows) ((rows) == 1 ? 4 : (rows) <= 3 && 2 * (rows) <= MR ? 2 : 1)
#define ROWS(rows)                                                             \
    case rows:                                                                 \
        if (ahead)                                                             \
            tile(rows, CHAINS(rows), packed, true, t, a, c, next, 0);          \
        else                                                                   \
            tile(rows, CHAINS(rows), packed, false, t, a, c, next, next_step); \
        break;

// Rows are shared out evenly, so that no tile is much lower than the others: low ones wait for
// latency.
TOR_INLINE void panel(bool packed, const TorGemmTile *t) {
    int64_t chunks = (t->rows + MR - 1) / MR, low = t->rows / chunks, high = t->rows % chunks;
    const float *a = t->a;
    float *c = t->c;
    // The next panel is fetched while this one is used, an equal share by each chunk, since a burst
    // of fetches blocks the loads behind it. A lone chunk fetches its own panel ahead.
    const char *next = (const char *)t->next;
    int64_t iterations = t->kc / UNROLL,
            next_step = iterations ? t->kc * NR * 4 / (iterations * chunks) : 0;
    for (int64_t i = 0; i < chunks; i++) {
        int64_t rows = low + (i < high);
        bool ahead = packed && chunks == 1;
        // clang-format off
        switch (rows) {
            ROWS(1) ROWS(2) ROWS(3) ROWS(4)
#if MR >= 6
            ROWS(5) ROWS(6)
#endif
#if MR >= 12
            ROWS(7) ROWS(8) ROWS(9) ROWS(10) ROWS(11) ROWS(12)
#endif
        }
        // clang-format on
        next += iterations * next_step;
        a += rows * t->lda;
        c += rows * t->ldc;
    }
}

void PACKED_KERNEL(const TorGemmTile *t);
void STRIDED_KERNEL(const TorGemmTile *t);

void PACKED_KERNEL(const TorGemmTile *t) { panel(true, t); }
void STRIDED_KERNEL(const TorGemmTile *t) { panel(false, t); }

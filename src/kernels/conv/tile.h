/// The register tiles of igemm: `rows` pixels by `nv` vectors of output channels, one function
/// each.
///
/// A tile of few rows keeps two or four sums an element, lest it wait for the latency of one. Each
/// chain of products is added to c; the last one of the last k block is finished on the way: bounds
/// are applied in registers, and a function to the whole tile in L1. Lines of c that the next tile
/// needs are fetched first, since stores that miss would wait for them one after the other.
#ifndef TOR_KERNELS_CONV_TILE_H
#define TOR_KERNELS_CONV_TILE_H

#include "base/simd.h"
#include "kernels/conv/geometry.h"
#include "kernels/gemm/multiply_add.h"
#if defined(TOR_ISA_avx2)
#include "kernels/conv/loop_4x24.h"
#endif

// MR rows of NV vectors, or MR_TAIL rows of fewer.
#if defined(TOR_ISA_avx2)
#define NV 3
#define MR 4
#define MR_TAIL 6
#elif TOR_NREGS == 32
#define NV 2
#define MR 8
#define MR_TAIL 8
#else
#define NV 2
#define MR 6
#define MR_TAIL 6
#endif

enum { NR = NV * VF32, UNROLL = 4, SLOT = 8 /* products for which a tile fetches two lines */ };

typedef struct {
    const float *a;        ///< pixel offsets are from here
    const int64_t *pixel;  ///< [rows]
    const TorConvRun *run;
    const float *b;     ///< panel
    const char *next;   ///< what to fetch for later
    int64_t next_step;  ///< bytes from slot to slot
    float *c;
    const int64_t *row;  ///< [rows], offsets of c's rows
    const float *add;    ///< NULL: none
    const int64_t *add_row;
    int64_t a_step, c_step, add_step;  ///< from pixel to pixel, where they are evenly spaced
    int ahead;   ///< pixels on which c's rows are fetched: those of the next tile
    bool first;  ///< c = sum + add, else c += sum
    bool bounded_below, bounded_above;
    float low, high;
    TorTileFn apply;  ///< NULL: nothing
    bool silu;        ///< it applies SiLU, and there are no bounds
    int n, vectors;   ///< columns, 1..NR, and how many vectors they take
    float start[NR];  ///< what sums start from: the bias, or zeros
} Tile;

#define UNROLLED _Pragma("GCC unroll 16")

TOR_INLINE void step(vf32 (*acc)[NV], const float *const *a, int64_t k, const float *b,
                     const int rows, const int nv) {
    vf32 bv[NV];
    UNROLLED for (int v = 0; v < nv; v++) bv[v] = vf32_load(b + v * VF32);
    UNROLLED for (int r = 0; r < rows; r++) {
        vf32 x = vf32_set(a[r][k]);
        UNROLLED for (int v = 0; v < nv; v++) tor_multiply_add(&acc[r][v], x, bv[v]);
    }
}

TOR_INLINE void add_chain(vf32 (*to)[NV], vf32 (*from)[NV], const int rows, const int nv) {
    UNROLLED for (int r = 0; r < rows; r++) UNROLLED for (int v = 0; v < nv; v++) to[r][v] +=
        from[r][v];
}

/// acc[0] = start + the products of a chain from `run` on; returns the run that follows it. near:
/// fetches b just ahead of itself.
TOR_INLINE const TorConvRun *product(vf32 (*acc)[MR_TAIL][NV], const Tile *t, const TorConvRun *run,
                                     const float *start, const char **next, const int rows,
                                     const int nv, const int chains, const bool near) {
    const int ldb = nv * VF32;
    const float *row[MR_TAIL];
    UNROLLED for (int r = 0; r < rows; r++) row[r] = t->a + t->pixel[r];
#if defined(TOR_ISA_avx2)
    if (rows == 4 && nv == 3 && !near)
        return tor_conv_loop_4x24(acc[0], row, t->b, run, start, next, t->next_step);
#endif
    UNROLLED for (int i = 0; i < chains; i++) UNROLLED for (int r = 0; r < rows; r++)
        UNROLLED for (int v = 0; v < nv; v++) acc[i][r][v] =
            i ? (vf32){0} : vf32_load(start + v * VF32);
    for (bool more = true; more; run++) {
        const float *b = t->b + run->b * ldb, *a[MR_TAIL];
        UNROLLED for (int r = 0; r < rows; r++) a[r] =
            (const float *)((const char *)row[r] + run->a);
        int64_t k = 0;
        for (; k + UNROLL <= run->len; k += UNROLL) {
            UNROLLED for (int u = 0; u < UNROLL; u++) {
                step(acc[u % chains], a, k + u, b + u * ldb, rows, nv);
                if (near)
                    UNROLLED for (int line = u * ldb % 16; line < ldb; line += 16)
                        __builtin_prefetch(b + 512 + u * ldb + line, 0, 3);
            }
            b += UNROLL * ldb;
            if (!near) {
                __builtin_prefetch(*next, 0, 2);
                *next += t->next_step / 2;
            }
        }
        for (; k < run->len; k++, b += ldb) step(acc[0], a, k, b, rows, nv);
        more = run->end == 0;
    }
    if (chains == 4) add_chain(acc[0], acc[2], rows, nv), add_chain(acc[1], acc[3], rows, nv);
    if (chains >= 2) add_chain(acc[0], acc[1], rows, nv);
    return run;
}

TOR_INLINE vf32 load(const float *p, const int v, const int nv, int lanes) {
    return v < nv - 1 || lanes == VF32 ? vf32_load(p + v * VF32) : vf32_load_n(p + v * VF32, lanes);
}

/// Bounds and the function of the epilogue.
TOR_INLINE void finish(vf32 (*acc)[NV], const Tile *t, const int rows, const int nv) {
    if (t->bounded_below)
        UNROLLED for (int r = 0; r < rows; r++) UNROLLED for (int v = 0; v < nv; v++) acc[r][v] =
            vf32_max(vf32_set(t->low), acc[r][v]);
    if (t->bounded_above)
        UNROLLED for (int r = 0; r < rows; r++) UNROLLED for (int v = 0; v < nv; v++) acc[r][v] =
            vf32_min(vf32_set(t->high), acc[r][v]);
    if (t->apply) {
        vf32 sums[MR_TAIL * NV];  // apart from acc, which stays in registers
        UNROLLED for (int r = 0; r < rows; r++) UNROLLED for (int v = 0; v < nv; v++)
            sums[r * nv + v] = acc[r][v];
        t->apply(sums, sums, NULL, NULL, rows * nv * VF32);
        UNROLLED for (int r = 0; r < rows; r++) UNROLLED for (int v = 0; v < nv; v++) acc[r][v] =
            sums[r * nv + v];
    }
}

/// The sums of a tile's `first` chain, its `last` one or one between to c. The last vector has
/// `lanes`, which is a constant where it is whole.
TOR_INLINE void store(vf32 (*acc)[NV], const Tile *t, bool first, bool last, const int rows,
                      const int nv, int lanes) {
    if (!first || !t->first)
        UNROLLED for (int r = 0; r < rows; r++) UNROLLED for (int v = 0; v < nv; v++) acc[r][v] +=
            load(t->c + t->row[r], v, nv, lanes);
    if (first && t->add)
        UNROLLED for (int r = 0; r < rows; r++) UNROLLED for (int v = 0; v < nv; v++) acc[r][v] +=
            load(t->add + t->add_row[r], v, nv, lanes);
    if (last) finish(acc, t, rows, nv);
    UNROLLED for (int r = 0; r < rows; r++) {
        float *c = t->c + t->row[r];
        UNROLLED for (int v = 0; v < nv; v++) {
            if (v < nv - 1 || lanes == VF32)
                vf32_store(c + v * VF32, acc[r][v]);
            else
                vf32_store_n(c + v * VF32, acc[r][v], lanes);
        }
    }
}

/// `rows`, `nv`, `chains` and `near` are constants of each copy.
TOR_INLINE void run_tile(const Tile *t, const int rows, const int nv, const int chains,
                         const bool near) {
    UNROLLED for (int r = 0; r < rows; r++) {
        const float *c = t->c + t->row[t->ahead + r];
        __builtin_prefetch(c, 1, 3);
        __builtin_prefetch(c + nv * VF32 - 1, 1, 3);
    }
    if (t->add) UNROLLED for (int r = 0; r < rows; r++) {
            const float *add = t->add + t->add_row[t->ahead + r];
            __builtin_prefetch(add, 0, 3);
            __builtin_prefetch(add + nv * VF32 - 1, 0, 3);
        }
    static const float zeros[NR];
    const int lanes = t->n - (nv - 1) * VF32;
    const char *next = t->next;
    const TorConvRun *run = t->run;
    for (bool first = true, last = false; !last; first = false) {
        vf32 acc[4][MR_TAIL][NV];
        run = product(acc, t, run, first ? t->start : zeros, &next, rows, nv, chains, near);
        last = run[-1].end == TOR_CONV_BLOCK_END;
        if (lanes == VF32)
            store(acc[0], t, first, last, rows, nv, VF32);
        else
            store(acc[0], t, first, last, rows, nv, lanes);
    }
}

#define CHAINS(rows, nv) ((rows) == 1 ? 4 : 2 * (rows) * (nv) <= MR * NV && (rows) <= 3 ? 2 : 1)
#define TILE(rows, name, nv, near)                                                                \
    static __attribute__((noinline)) void name##_##rows(const Tile *t) {                          \
        if ((rows) <= ((nv) == NV ? MR : MR_TAIL)) run_tile(t, rows, nv, CHAINS(rows, nv), near); \
    }
#define TILE_NAME(rows, name, ...) name##_##rows,
// clang-format off
#define FOR_ROWS_6(X, ...) \
    X(1, __VA_ARGS__) X(2, __VA_ARGS__) X(3, __VA_ARGS__) X(4, __VA_ARGS__) X(5, __VA_ARGS__) X(6, __VA_ARGS__)
#define FOR_ROWS_8(X, ...) FOR_ROWS_6(X, __VA_ARGS__) X(7, __VA_ARGS__) X(8, __VA_ARGS__)
#define FOR_ROWS_OF(n) TOR_PASTE(FOR_ROWS_, n)
#define FOR_ROWS FOR_ROWS_OF(MR_TAIL)
// clang-format on
#define TILES(name, nv, near)      \
    FOR_ROWS(TILE, name, nv, near) \
    static void (*const name[MR_TAIL])(const Tile *) = {FOR_ROWS(TILE_NAME, name, 0)};

TILES(one, 1, false)
TILES(one_near, 1, true)
TILES(two, 2, false)
TILES(two_near, 2, true)
#if NV == 3
TILES(three, 3, false)
TILES(three_near, 3, true)
#endif

/// By vectors less one, nearness, rows less one.
static void (*const *const register_tiles[NV][2])(const Tile *) = {
    {one, one_near},
    {two, two_near},
#if NV == 3
    {three, three_near},
#endif
};

#endif

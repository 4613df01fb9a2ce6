/// Register tiles one after the other over evenly spaced pixels: the short sums of 1x1
/// convolutions, where what a tile costs beside its products counts.
///
/// A strip is a panel of whole vectors by any number of pixels with one chain of products each; of
/// a width that has a loop in assembly, one run that is a multiple of SLOT. Numeric policy and what
/// is done to the sums: those of tile.h.
#ifndef TOR_KERNELS_CONV_STRIP_H
#define TOR_KERNELS_CONV_STRIP_H

#include "base/simd_math.h"
#include "kernels/conv/tile.h"

/// Where the next tile is, and its first products.
typedef struct {
    const float *a, *b, *add;
    float *c;
    int64_t depth;  ///< products
    const char *next;
} Strip;

/// acc = start + the products of `rows` pixels. Fetches two lines a SLOT from s->next on.
TOR_INLINE void strip_product(vf32 (*acc)[NV], const Tile *t, Strip *s, const int rows,
                              const int nv) {
#if defined(TOR_ISA_avx2)
    if (nv == 3) {
        tor_conv_loop_strip(acc, rows, s->a, t->a_step, s->b, s->depth / SLOT, t->start, &s->next,
                            t->next_step);
        return;
    }
#endif
    UNROLLED for (int r = 0; r < rows; r++) UNROLLED for (int v = 0; v < nv; v++) acc[r][v] =
        vf32_load(t->start + v * VF32);
    const TorConvRun *run = t->run;
    do {
        const char *first = (const char *)s->a + (run->a - t->run->a);
        const float *row[MR_TAIL], *b = s->b + (run->b - t->run->b) * nv * VF32;
        UNROLLED for (int r = 0; r < rows; r++) row[r] = (const float *)first + r * t->a_step;
        int64_t k = 0;
        for (; k + SLOT <= run->len; k += SLOT, s->next += t->next_step) {
            UNROLLED for (int u = 0; u < SLOT; u++, b += nv * VF32)
                step(acc, row, k + u, b, rows, nv);
            __builtin_prefetch(s->next, 0, 2);
            __builtin_prefetch(s->next + 64, 0, 2);
        }
        for (; k < run->len; k++, b += nv * VF32) step(acc, row, k, b, rows, nv);
    } while (run++->end == 0);
}

/// A tile, and where the next one is. What follows is
/// constant in each copy.
TOR_INLINE void strip_tile(const Tile *t, Strip *s, const int rows, const int nv, const bool silu) {
    UNROLLED for (int r = 0; r < rows; r++) {
        const float *ahead = s->c + (rows + r) * t->c_step;
        __builtin_prefetch(ahead, 1, 3);
        __builtin_prefetch(ahead + nv * VF32 - 1, 1, 3);
    }
    if (t->add) UNROLLED for (int r = 0; r < rows; r++) {
            const float *ahead = s->add + (rows + r) * t->add_step;
            __builtin_prefetch(ahead, 0, 3);
            __builtin_prefetch(ahead + nv * VF32 - 1, 0, 3);
        }
    vf32 acc[MR_TAIL][NV];
    strip_product(acc, t, s, rows, nv);
    if (t->add) {
        UNROLLED for (int r = 0; r < rows; r++) UNROLLED for (int v = 0; v < nv; v++) acc[r][v] +=
            vf32_load(s->add + r * t->add_step + v * VF32);
        s->add += rows * t->add_step;
    }
    if (silu)
        UNROLLED for (int r = 0; r < rows; r++) vf32_silus(acc[r], acc[r], nv);
    else
        finish(acc, t, rows, nv);
    UNROLLED for (int r = 0; r < rows; r++) UNROLLED for (int v = 0; v < nv; v++)
        vf32_store(s->c + r * t->c_step + v * VF32, acc[r][v]);
    s->a += rows * t->a_step;
    s->c += rows * t->c_step;
}

/// Whether a chain of so many products in runs from t->run on can be a strip's.
static bool strip_takes(const Tile *t, int64_t products) {
    if (t->n % VF32) return false;
#if defined(TOR_ISA_avx2)
    if (t->vectors == 3) return t->run->len == products && products > 0 && products % SLOT == 0;
#endif
    return products <= TOR_CONV_CHAIN;
}

/// Pixels of a tile at most.
static int most_rows(const Tile *t) { return t->vectors == NV ? MR : MR_TAIL; }

/// How `pixels` are cut into tiles of nearly the same size: the first `more` have one pixel more
/// than `rows`.
typedef struct {
    int tiles, rows, more;
} Cut;

static Cut cut_pixels(int64_t pixels, int most) {
    Cut cut = {.tiles = (int)tor_ceil_div(pixels, most)};
    cut.rows = (int)(pixels / cut.tiles);
    cut.more = (int)(pixels % cut.tiles);
    return cut;
}

TOR_INLINE void strip_tiles(const Tile *t, Strip *s, Cut cut, const int most, const int nv,
                            const bool silu) {
    int i = 0;
    for (; i < (cut.rows == most ? cut.tiles : cut.more); i++) strip_tile(t, s, most, nv, silu);
    for (; i < cut.tiles; i++) strip_tile(t, s, most - 1, nv, silu);
}

#define STRIP(nv, most)                                                                       \
    static __attribute__((noinline)) void strip_##nv(const Tile *t, Strip *s, Cut cut) {      \
        strip_tiles(t, s, cut, most, nv, false);                                              \
    }                                                                                         \
    static __attribute__((noinline)) void strip_silu_##nv(const Tile *t, Strip *s, Cut cut) { \
        strip_tiles(t, s, cut, most, nv, true);                                               \
    }
STRIP(1, MR_TAIL)
#if NV == 3
STRIP(2, MR_TAIL)
STRIP(3, MR)
#else
STRIP(2, MR)
#endif

/// By vectors less one; whether SiLU is applied.
static void (*const strips[NV][2])(const Tile *, Strip *, Cut) = {
    {strip_1, strip_silu_1},
    {strip_2, strip_silu_2},
#if NV == 3
    {strip_3, strip_silu_3},
#endif
};

/// The tiles have most_rows() or one less.
static void run_strip(Tile *t, Cut cut) {
    Strip s = {
        .a = (const float *)((const char *)(t->a + t->pixel[0]) + t->run->a),
        .b = t->b + t->run->b * t->vectors * VF32,
        .add = t->add ? t->add + t->add_row[0] : NULL,
        .c = t->c + t->row[0],
        .depth = t->run->len,
        .next = t->next,
    };
    strips[t->vectors - 1][t->silu](t, &s, cut);
    const int pixels = cut.tiles * cut.rows + cut.more;
    t->next = s.next;
    t->pixel += pixels;
    t->row += pixels;
    t->add_row += pixels;
}

#endif

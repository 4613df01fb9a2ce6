// The float32 microkernels, written once and compiled for each level. A register tile of MR rows by
// NV vectors of columns; a's elements are broadcast from its rows in place, b comes in panels. The
// last panel leaves out vectors that hold no column, and takes more rows instead.
//
// Numeric policy: contract.h. Tiles of few rows keep two or four sums an element, since one
// multiply-add has the latency of eight.
#include "base/simd.h"
#include "kernels/gemm/contract.h"
#include "kernels/gemm/multiply_add.h"
#if defined(TOR_ISA_avx2)
#include "kernels/gemm/loop_4x24.h"
#endif

// MR rows of NV vectors, or MR_TAIL rows of fewer.
#if defined(TOR_ISA_avx512)
#define NV 2
#define MR 12
#define MR_TAIL 12
#define PACKED_KERNEL tor_gemm_f32_f32p32__avx512_12x32
#define STRIDED_KERNEL tor_gemm_f32_f32__avx512_12x32
#elif defined(TOR_ISA_avx2)
#define NV 3
#define MR 4
#define MR_TAIL 6
#define PACKED_KERNEL tor_gemm_f32_f32p24__avx2_4x24
#define STRIDED_KERNEL tor_gemm_f32_f32__avx2_4x24
#else
#define NV 2
#define MR 4
#define MR_TAIL 4
#define PACKED_KERNEL tor_gemm_f32_f32p8__generic_4x8
#define STRIDED_KERNEL tor_gemm_f32_f32__generic_4x8
#endif

// Sums of more than CHAIN products are added part by part, which keeps their error low.
enum { NR = NV * VF32, UNROLL = 4, CHAIN = 384 };

// What a tile fetches of b while it runs, for every UNROLL steps of k: one line, or a third or half
// of so many steps' lines, into L2; or all of them just ahead into L1. Nothing where a lone tile of
// few rows waits for memory alone: two streams that the hardware fetches are faster than anything
// fetched here (20.8 against 15.6 GB/s for one row).
typedef enum { FETCH_LINE, FETCH_THIRD, FETCH_HALF, FETCH_AHEAD } Fetch;
#define TWO_STREAMS(rows, packed, fetch) ((packed) && (fetch) == FETCH_AHEAD && (rows) <= 3)
#define FETCHED_LINES(fetch) \
    ((fetch) == FETCH_LINE ? 1 : (fetch) == FETCH_THIRD ? (NR + 11) / 12 : NR / 8)

#define UNROLLED _Pragma("GCC unroll 16")

// Where rows of a are read: GROUP of them share a pointer and differ by multiples of lda, which x86
// adds in the address. With few rows each has its own, which leaves a displacement for the unrolled
// k.
#if MR_TAIL <= 6
enum { GROUP = 1 };
#else
enum { GROUP = 3 };
#endif
enum { BASES = MR_TAIL / GROUP };

// What the tiles of one call share.
typedef struct {
    const TorGemmTile *t;
    int64_t chain;      // most products of a chain
    int64_t next_step;  // bytes between fetches
} Panel;

// Where a tile reads.
typedef struct {
    const float *a[BASES], *b;
    const char *next;  // to fetch
} Cursor;

// `rows`, `nv`, `chains`, `packed` and `fetch` are constants of each inlined copy.
TOR_INLINE void step(vf32 (*acc)[NV], int rows, int nv, const float *const *base, int64_t lda,
                     int u, const float *b) {
    vf32 bv[NV];
    UNROLLED for (int v = 0; v < nv; v++) bv[v] = vf32_load(b + v * VF32);
    UNROLLED for (int r = 0; r < rows; r++) {
        vf32 x = vf32_set(base[r / GROUP][(r % GROUP) * lda + u]);
        UNROLLED for (int v = 0; v < nv; v++) tor_multiply_add(&acc[r][v], x, bv[v]);
    }
}

TOR_INLINE void add(vf32 (*to)[NV], vf32 (*from)[NV], int rows, int nv) {
    UNROLLED for (int r = 0; r < rows; r++) UNROLLED for (int v = 0; v < nv; v++) to[r][v] +=
        from[r][v];
}

// acc += a[rows, 2 * half] * b[2 * half, nv], from the cursor on: a few steps of each half in turn.
TOR_INLINE void product_halves(vf32 (*acc)[MR_TAIL][NV], int rows, int nv, int chains,
                               const Panel *panel, Cursor *at, int64_t half) {
    const int bases = (rows + GROUP - 1) / GROUP, turn = chains > 1 ? chains / 2 : UNROLL;
    for (int64_t k = 0; k < half; k += turn) {
        UNROLLED for (int second = 0; second < 2; second++) {
            const float *a[BASES], *b = at->b + second * half * NR;
            UNROLLED for (int i = 0; i < bases; i++) a[i] = at->a[i] + second * half;
            UNROLLED for (int u = 0; u < turn; u++) step(acc[chains > 1 ? second * turn + u : 0],
                                                         rows, nv, a, panel->t->lda, u, b + u * NR);
        }
        UNROLLED for (int i = 0; i < bases; i++) at->a[i] += turn;
        at->b += turn * NR;
    }
    UNROLLED for (int i = 0; i < bases; i++) at->a[i] += half;
    at->b += half * NR;
}

// acc[0] = a[rows, k] * b[k, nv], from the cursor on.
TOR_INLINE void product(vf32 (*acc)[MR_TAIL][NV], int rows, int nv, int chains, bool packed,
                        Fetch fetch, const Panel *panel, Cursor *at, int64_t k) {
    int64_t lda = panel->t->lda, ldb = packed ? NR : panel->t->ldb;
    UNROLLED for (int s = 0; s < chains; s++) UNROLLED for (int r = 0; r < rows; r++)
        UNROLLED for (int v = 0; v < nv; v++) acc[s][r][v] = (vf32){0};
    const int bases = (rows + GROUP - 1) / GROUP;
#if defined(TOR_ISA_avx2)
    if (rows >= 3 && nv == 3 && packed && fetch != FETCH_AHEAD && k >= TOR_LOOP_4X24_UNROLL) {
        int64_t turns = k / TOR_LOOP_4X24_UNROLL, done = turns * TOR_LOOP_4X24_UNROLL;
        tor_loop_4x24(rows, FETCHED_LINES(fetch), acc[0], at->a[0], lda, at->b, turns, at->next,
                      panel->next_step);
        UNROLLED for (int i = 0; i < bases; i++) at->a[i] += done;
        at->b += done * ldb, at->next += 2 * turns * panel->next_step, k -= done;
    }
#endif
    if (TWO_STREAMS(rows, packed, fetch)) {
        int64_t half = k / (2 * UNROLL) * UNROLL;
        product_halves(acc, rows, nv, chains, panel, at, half);
        k -= 2 * half;
    }
    for (; k >= UNROLL; k -= UNROLL) {
        UNROLLED for (int u = 0; u < UNROLL; u++) {
            step(acc[u % chains], rows, nv, at->a, lda, u, at->b + u * ldb);
            if (fetch == FETCH_AHEAD && !TWO_STREAMS(rows, packed, fetch))
                UNROLLED for (int line = (16 - u * NR % 16) % 16; line < NR; line += 16)
                    __builtin_prefetch(at->next + (u * NR + line) * 4, 0, 3);
        }
        if (packed && fetch != FETCH_AHEAD)
            for (int line = 0; line < FETCHED_LINES(fetch); line++)
                __builtin_prefetch(at->next + 64 * line, 0, 2);
        UNROLLED for (int i = 0; i < bases; i++) at->a[i] += UNROLL;
        at->b += UNROLL * ldb;
        at->next += fetch == FETCH_AHEAD ? UNROLL * NR * 4 : panel->next_step;
    }
    for (; k; k--) {
        step(acc[0], rows, nv, at->a, lda, 0, at->b);
        UNROLLED for (int i = 0; i < bases; i++) at->a[i]++;
        at->b += ldb;
    }
    if (chains == 4) add(acc[0], acc[2], rows, nv), add(acc[1], acc[3], rows, nv);
    if (chains >= 2) add(acc[0], acc[1], rows, nv);
}

// c = (c +) acc (+ bias)
TOR_INLINE void store(vf32 (*acc)[NV], int rows, int nv, const TorGemmTile *t, float *c,
                      bool accumulate, const float *bias) {
    int64_t ldc = t->ldc, cols = t->cols;
    UNROLLED for (int v = 0; v < nv; v++) {
        int lanes = (int)TOR_MIN(cols - v * VF32, VF32);
        if (lanes <= 0) break;
        bool whole = lanes == VF32;
        vf32 add_bias = !bias   ? (vf32){0}
                        : whole ? vf32_load(bias + v * VF32)
                                : vf32_load_n(bias + v * VF32, lanes);
        UNROLLED for (int r = 0; r < rows; r++) {
            float *p = c + r * ldc + v * VF32;
            vf32 x = acc[r][v];
            if (accumulate) x += whole ? vf32_load(p) : vf32_load_n(p, lanes);
            if (bias) x += add_bias;
            if (whole)
                vf32_store(p, x);
            else
                vf32_store_n(p, x, lanes);
        }
    }
}

TOR_INLINE void tile(int rows, int nv, int chains, bool packed, Fetch fetch, const Panel *panel,
                     const float *a, float *c, const char *next) {
    const TorGemmTile *t = panel->t;
    UNROLLED for (int r = 0; r < rows; r++) {
        __builtin_prefetch(c + r * t->ldc, 1, 3);
        __builtin_prefetch(c + r * t->ldc + nv * VF32 - 1, 1, 3);
    }
    Cursor at = {.b = t->b, .next = next};
    const int bases = (rows + GROUP - 1) / GROUP;
    UNROLLED for (int i = 0; i < bases; i++) at.a[i] = a + GROUP * i * t->lda;
    bool accumulate = t->accumulate;
    for (int64_t left = t->kc; left > 0; accumulate = true) {
        int64_t k = TOR_MIN(left, panel->chain);
        left -= k;
        vf32 acc[4][MR_TAIL][NV];
        product(acc, rows, nv, chains, packed, fetch, panel, &at, k);
        store(acc[0], rows, nv, t, c, accumulate, left ? NULL : t->bias);
    }
}

// One function a tile, so that each has the registers for itself; a table of them for each number
// of vectors and way to fetch, by rows - 1.
typedef void Tile(const Panel *panel, const float *a, float *c, const char *next);

#define CHAINS(rows, nv) ((rows) == 1 ? 4 : 2 * (rows) * (nv) <= MR * NV && (rows) <= 3 ? 2 : 1)
#define TILE(rows, name, nv, packed, fetch)                                                 \
    static __attribute__((noinline)) void name##_##rows(const Panel *panel, const float *a, \
                                                        float *c, const char *next) {       \
        if ((rows) <= ((nv) == NV ? MR : MR_TAIL))                                          \
            tile(rows, nv, CHAINS(rows, nv), packed, fetch, panel, a, c, next);             \
    }
#define TILE_NAME(rows, name, ...) name##_##rows,
#define TILES(name, nv, packed, fetch)      \
    FOR_ROWS(TILE, name, nv, packed, fetch) \
    static Tile *const name[MR_TAIL] = {FOR_ROWS(TILE_NAME, name, 0)};

// clang-format off
#define FOR_ROWS_4(X, ...) X(1, __VA_ARGS__) X(2, __VA_ARGS__) X(3, __VA_ARGS__) X(4, __VA_ARGS__)
#define FOR_ROWS_6(X, ...) FOR_ROWS_4(X, __VA_ARGS__) X(5, __VA_ARGS__) X(6, __VA_ARGS__)
#define FOR_ROWS_12(X, ...) \
    FOR_ROWS_6(X, __VA_ARGS__) X(7, __VA_ARGS__) X(8, __VA_ARGS__) X(9, __VA_ARGS__) \
    X(10, __VA_ARGS__) X(11, __VA_ARGS__) X(12, __VA_ARGS__)
#define FOR_ROWS_OF(n) TOR_PASTE(FOR_ROWS_, n)
#define FOR_ROWS FOR_ROWS_OF(MR_TAIL)
// clang-format on

TILES(whole_line, NV, true, FETCH_LINE)
TILES(whole_third, NV, true, FETCH_THIRD)
TILES(whole_half, NV, true, FETCH_HALF)
TILES(whole_ahead, NV, true, FETCH_AHEAD)
TILES(one_line, 1, true, FETCH_LINE)
TILES(one_third, 1, true, FETCH_THIRD)
TILES(one_half, 1, true, FETCH_HALF)
TILES(one_ahead, 1, true, FETCH_AHEAD)
#if NV == 3
TILES(two_line, 2, true, FETCH_LINE)
TILES(two_third, 2, true, FETCH_THIRD)
TILES(two_half, 2, true, FETCH_HALF)
TILES(two_ahead, 2, true, FETCH_AHEAD)
#endif
TILES(strided, NV, false, FETCH_LINE)

static Tile *const *const packed_tiles[NV][4] = {
    {one_line, one_third, one_half, one_ahead},
#if NV == 3
    {two_line, two_third, two_half, two_ahead},
#endif
    {whole_line, whole_third, whole_half, whole_ahead},
};

// Rows are shared out evenly, so that no tile is much lower than the others: low ones wait for
// latency.
static void run(bool packed, const TorGemmTile *t) {
    int nv = (int)((t->cols + VF32 - 1) / VF32), mr = nv == NV ? MR : MR_TAIL;
    int64_t chunks = (t->rows + mr - 1) / mr, low = t->rows / chunks, high = t->rows % chunks;
    int64_t parts = (t->kc + CHAIN - 1) / CHAIN,
            chain = tor_round_up(tor_ceil_div(t->kc, parts), 8);
    // What comes next of b is fetched while this is used, an equal share by each chunk, since a
    // burst of fetches blocks the loads behind it. A lone chunk fetches just ahead of itself.
    Fetch fetch = chunks > 5   ? FETCH_LINE
                  : chunks > 2 ? FETCH_THIRD
                  : chunks > 1 ? FETCH_HALF
                               : FETCH_AHEAD;
    Tile *const *tiles = packed ? packed_tiles[nv - 1][fetch] : strided;
    int64_t fetches = t->kc / UNROLL * chunks;
    Panel panel = {t, chain, fetches ? t->kc * NR * 4 / fetches : 0};
    const float *a = t->a;
    float *c = t->c;
    const char *next = (const char *)(fetch == FETCH_AHEAD ? t->b + 512 : t->next);
    for (int64_t i = 0; i < chunks; i++) {
        int64_t rows = low + (i < high);
        tiles[rows - 1](&panel, a, c, next);
        a += rows * t->lda;
        c += rows * t->ldc;
        next += t->kc / UNROLL * panel.next_step;
    }
}

void PACKED_KERNEL(const TorGemmTile *t);
void STRIDED_KERNEL(const TorGemmTile *t);

void PACKED_KERNEL(const TorGemmTile *t) { run(true, t); }
void STRIDED_KERNEL(const TorGemmTile *t) { run(false, t); }

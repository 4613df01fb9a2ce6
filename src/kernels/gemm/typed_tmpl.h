/// The typed gemm for one element type: compiled once for each, with
///   T     the element type; integers are unsigned, so that they wrap
///   KEY   how names call it (f64, x32)
///   NV    vectors of columns of a register tile of MR rows
/// and included by typed.simd.c alone.

#define NAME(name) TOR_PASTE(TOR_PASTE(name, _), KEY)

typedef T NAME(V) __attribute__((vector_size(TOR_VBYTES), may_alias));
typedef T NAME(VU) __attribute__((vector_size(TOR_VBYTES), aligned(sizeof(T)), may_alias));
#define V NAME(V)
#define VU NAME(VU)

enum { NAME(LANES) = TOR_VBYTES / sizeof(T), NAME(NR) = NV * TOR_VBYTES / sizeof(T) };
#define LANES NAME(LANES)
#define NR NAME(NR)

/// dst[p][0..NR) = b[p][j], zeros beyond cols.
static void NAME(pack)(T *dst, const T *b, int64_t row, int64_t col, int64_t kc, int64_t cols) {
    if (cols < NR) memset(dst, 0, (size_t)(kc * NR) * sizeof(T));
    if (col == 1) {
        for (int64_t p = 0; p < kc; p++)
            memcpy(dst + p * NR, b + p * row, (size_t)cols * sizeof(T));
        return;
    }
    // Columns of b in groups, so that a line of dst is written while it is near.
    for (int64_t p0 = 0; p0 < kc; p0 += 16)
        for (int64_t j = 0; j < cols; j++)
            for (int64_t p = p0; p < TOR_MIN(p0 + 16, kc); p++)
                dst[p * NR + j] = b[p * row + j * col];
}

static void NAME(copy)(T *dst, const T *a, int64_t row, int64_t col, int64_t rows, int64_t kc) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t p = 0; p < kc; p++) dst[i * kc + p] = a[i * row + p * col];
}

/// c = (c or bias or 0) + a[rows, kc] * b[kc, NR]; `rows` is a constant of each copy.
TOR_INLINE void NAME(tile)(const int rows, const T *a, int64_t a_row, const T *b, int64_t b_row,
                           int64_t kc, T *c, int64_t c_row, int64_t cols, bool accumulate,
                           const T *bias) {
    V acc[MR][NV];
    UNROLLED for (int r = 0; r < rows; r++) UNROLLED for (int v = 0; v < NV; v++) acc[r][v] =
        (V){0};
    for (int64_t p = 0; p < kc; p++) {
        V bv[NV];
        UNROLLED for (int v = 0; v < NV; v++) bv[v] = *(const VU *)(b + p * b_row + v * LANES);
        UNROLLED for (int r = 0; r < rows; r++) {
            V x = a[r * a_row + p] - (V){0};
            UNROLLED for (int v = 0; v < NV; v++) acc[r][v] += x * bv[v];
        }
    }
    for (int r = 0; r < rows; r++) {
        T sum[NR];
        UNROLLED for (int v = 0; v < NV; v++) * (VU *)(sum + v * LANES) = acc[r][v];
        T *to = c + r * c_row;
        if (accumulate)
            for (int64_t j = 0; j < cols; j++) to[j] = (T)(to[j] + sum[j]);
        else
            memcpy(to, sum, (size_t)cols * sizeof(T));
        if (bias)
            for (int64_t j = 0; j < cols; j++) to[j] = (T)(to[j] + bias[j]);
    }
}

#define TILE(n)                                                                                \
    static __attribute__((noinline)) void NAME(TOR_PASTE(tile_, n))(                           \
        const T *a, int64_t a_row, const T *b, int64_t b_row, int64_t kc, T *c, int64_t c_row, \
        int64_t cols, bool accumulate, const T *bias) {                                        \
        NAME(tile)(n, a, a_row, b, b_row, kc, c, c_row, cols, accumulate, bias);               \
    }
TILE(1)
TILE(2)
TILE(3)
TILE(4)
_Static_assert(MR == 4, "a tile for each number of rows");

/// One or two rows of a against columns of b that are contiguous: dot products in four chains.
static void NAME(dots)(const T *a, const T *b, int64_t b_col, int64_t k, T *c, int64_t cols,
                       const T *bias) {
    for (int64_t j = 0; j < cols; j++) {
        const T *w = b + j * b_col;
        V sum[4] = {{0}};
        int64_t p = 0;
        for (; p + 4 * LANES <= k; p += 4 * LANES)
            UNROLLED for (int i = 0; i < 4; i++) sum[i] +=
                *(const VU *)(a + p + i * LANES) * *(const VU *)(w + p + i * LANES);
        for (; p + LANES <= k; p += LANES) sum[0] += *(const VU *)(a + p) * *(const VU *)(w + p);
        sum[0] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
        T total = 0;
        for (int i = 0; i < LANES; i++) total = (T)(total + sum[0][i]);
        for (; p < k; p++) total = (T)(total + (T)(a[p] * w[p]));
        c[j] = bias ? (T)(total + bias[j]) : total;
    }
}

/// Rows [row, row + rows) and columns [col, col + cols) of one batch item.
TOR_INLINE void NAME(block)(const TorGemmArgs *args, const TorGemmBlock *at, void *scratch) {
    static __typeof__(NAME(tile_1)) *const tiles[MR] = {NAME(tile_1), NAME(tile_2), NAME(tile_3),
                                                        NAME(tile_4)};
    const T *a = (const T *)(const void *)args->a + at->a,
            *b = (const T *)(const void *)args->b + at->b;
    const T *bias = args->bias ? (const T *)(const void *)args->bias + at->bias + at->col : NULL;
    T *c = (T *)(void *)args->c + at->c + at->col, *panel = scratch,
      *a_copy = panel + args->kc * NR;
    if (args->plan.dots) {
        for (int64_t i = 0; i < at->rows; i++) NAME(dots)
        (a + i * args->a_row, b + at->col * args->b_col, args->b_col, args->k, c + i * args->c_row,
         at->cols, bias);
        return;
    }
    for (int64_t k0 = 0; k0 == 0 || k0 < args->k; k0 += args->kc) {
        int64_t kc = TOR_MIN(args->kc, args->k - k0), a_row = args->a_row;
        const T *rows = a + k0;
        if (args->plan.copy_a) {
            if (args->pack_a)
                args->pack_a(args->pack_ctx, at->batch, at->row, at->rows, k0, kc, a_copy);
            else
                NAME(copy)(a_copy, a + k0 * args->a_col, args->a_row, args->a_col, at->rows, kc);
            rows = a_copy, a_row = kc;
        }
        const bool last = k0 + kc == args->k;
        for (int64_t j = 0; j < at->cols; j += NR) {
            int64_t cols = TOR_MIN(NR, at->cols - j), b_row = NR;
            const T *from = b + k0 * args->b_row + (at->col + j) * args->b_col, *packed = panel,
                    *add = bias && last ? bias + j : NULL;
            if (args->plan.copy_b || cols < NR)
                NAME(pack)(panel, from, args->b_row, args->b_col, kc, cols);
            else
                packed = from, b_row = args->b_row;
            for (int64_t i = 0; i < at->rows; i += MR)
                tiles[TOR_MIN(at->rows - i, MR) - 1](rows + i * a_row, a_row, packed, b_row, kc,
                                                     c + i * args->c_row + j, args->c_row, cols,
                                                     k0 > 0, add);
        }
    }
}

#undef TILE
#undef NR
#undef LANES
#undef VU
#undef V
#undef NAME
#undef NV
#undef KEY
#undef T

// Template: the kernels for elements of BITS bits. Included by blocks.c once for each size.
#define Elem TOR_PASTE(Elem, BITS)
#define Lane TOR_PASTE(Lane, BITS)
#define ZIP_LOW TOR_PASTE(ZIP_LOW, BITS)
#define ZIP_HIGH TOR_PASTE(ZIP_HIGH, BITS)
#define tile TOR_PASTE(tile, BITS)
#define BYTES (BITS / 8)
#define NAME(mode) TOR_KERNEL_IMPL(TOR_PASTE(tor_copy_x, BITS), mode)

typedef TOR_PASTE(TOR_PASTE(uint, BITS), _t) Elem __attribute__((aligned(1), may_alias));
typedef TOR_PASTE(TOR_PASTE(uint, BITS), _t) Lane
    __attribute__((vector_size(16), aligned(1), may_alias));

TorCopyFn NAME(splat), NAME(strided), NAME(transpose);

void NAME(splat)(uint8_t *dst, const uint8_t *src, int64_t rows, int64_t cols, int64_t dst_row,
                 int64_t dst_col, int64_t src_row, int64_t src_col, int64_t bytes) {
    (void)dst_col, (void)src_col, (void)bytes;
    for (; rows > 0; rows--, dst += dst_row, src += src_row) {
        Elem value = *(const Elem *)src;
        for (int64_t c = 0; c < cols; c++) ((Elem *)dst)[c] = value;
    }
}

void NAME(strided)(uint8_t *dst, const uint8_t *src, int64_t rows, int64_t cols, int64_t dst_row,
                   int64_t dst_col, int64_t src_row, int64_t src_col, int64_t bytes) {
    (void)bytes;
    for (; rows > 0; rows--, dst += dst_row, src += src_row)
        for (int64_t c = 0; c < cols; c++)
            *(Elem *)(dst + c * dst_col) = *(const Elem *)(src + c * src_col);
}

#if BITS == 32
#define TILE_ROWS 8
#define TILE_COLS VF32
/// 8 rows of TILE_COLS elements from the transpose.
TOR_INLINE void tile(uint8_t *dst, const uint8_t *src, int64_t dst_row, int64_t src_col) {
    const float *line[VF32];
    for (int i = 0; i < VF32; i++) line[i] = (const float *)(src + i * src_col);
    for (int half = 0; half < TILE_ROWS; half += 4) {
        vf32 row[4];
        vf32_load_columns4(row, line, half);
        for (int i = 0; i < 4; i++) vf32_store((float *)(dst + (half + i) * dst_row), row[i]);
    }
}
#else
#define TILE_ROWS (16 / BYTES)
#define TILE_COLS TILE_ROWS
#define ZIP_LOW64 0, 2
#define ZIP_HIGH64 1, 3
#define ZIP_LOW16 0, 8, 1, 9, 2, 10, 3, 11
#define ZIP_HIGH16 4, 12, 5, 13, 6, 14, 7, 15
#define ZIP_LOW8 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define ZIP_HIGH8 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
/// A square of 16-byte vectors: log2(TILE_ROWS) rounds of interleaving vector i with i +
/// TILE_ROWS/2.
TOR_INLINE void tile(uint8_t *dst, const uint8_t *src, int64_t dst_row, int64_t src_col) {
    Lane a[TILE_ROWS], b[TILE_ROWS];
    for (int i = 0; i < TILE_ROWS; i++) a[i] = *(const Lane *)(src + i * src_col);
    for (int n = 1; n < TILE_ROWS; n *= 2) {
        for (int i = 0; i < TILE_ROWS / 2; i++) {
            b[2 * i] = __builtin_shufflevector(a[i], a[i + TILE_ROWS / 2], ZIP_LOW);
            b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + TILE_ROWS / 2], ZIP_HIGH);
        }
        for (int i = 0; i < TILE_ROWS; i++) a[i] = b[i];
    }
    for (int i = 0; i < TILE_ROWS; i++) *(Lane *)(dst + i * dst_row) = a[i];
}
#undef ZIP_LOW64
#undef ZIP_HIGH64
#undef ZIP_LOW16
#undef ZIP_HIGH16
#undef ZIP_LOW8
#undef ZIP_HIGH8
#endif

void NAME(transpose)(uint8_t *dst, const uint8_t *src, int64_t rows, int64_t cols, int64_t dst_row,
                     int64_t dst_col, int64_t src_row, int64_t src_col, int64_t bytes) {
    int64_t whole_rows = rows / TILE_ROWS * TILE_ROWS, whole_cols = cols / TILE_COLS * TILE_COLS;
    for (int64_t r = 0; r < whole_rows; r += TILE_ROWS)
        for (int64_t c = 0; c < whole_cols; c += TILE_COLS)
            tile(dst + r * dst_row + c * BYTES, src + r * BYTES + c * src_col, dst_row, src_col);
    NAME(strided)
    (dst + whole_cols * BYTES, src + whole_cols * src_col, whole_rows, cols - whole_cols, dst_row,
     dst_col, src_row, src_col, bytes);
    NAME(strided)
    (dst + whole_rows * dst_row, src + whole_rows * BYTES, rows - whole_rows, cols, dst_row,
     dst_col, src_row, src_col, bytes);
}

#undef Elem
#undef Lane
#undef ZIP_LOW
#undef ZIP_HIGH
#undef tile
#undef BYTES
#undef NAME
#undef TILE_ROWS
#undef TILE_COLS

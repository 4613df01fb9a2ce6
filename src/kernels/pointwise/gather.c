// Strided copies between operands and tiles. Plain: these run only where an operand cannot be read
// or written where it lies.
#include <string.h>

#include "kernels/pointwise/engine.h"

#define GATHER(T)                                                 \
    do {                                                          \
        const T *s = src;                                         \
        T *d = dst;                                               \
        if (stride == 0) {                                        \
            const T one = *s;                                     \
            for (int64_t i = 0; i < n; i++) d[i] = one;           \
        } else {                                                  \
            for (int64_t i = 0; i < n; i++) d[i] = s[i * stride]; \
        }                                                         \
    } while (0)
#define SCATTER(T)                                            \
    do {                                                      \
        const T *s = src;                                     \
        T *d = dst;                                           \
        for (int64_t i = 0; i < n; i++) d[i * stride] = s[i]; \
    } while (0)
#define BY_SIZE(DO)                   \
    switch (bytes) {                  \
        case 1: DO(uint8_t); break;   \
        case 2: DO(uint16_t); break;  \
        case 4: DO(uint32_t); break;  \
        default: DO(uint64_t); break; \
    }

void tor_tile_gather(void *dst, const void *src, size_t bytes, int64_t stride, int64_t n) {
    if (stride == 1) {
        memcpy(dst, src, (size_t)n * bytes);
    } else if (n > 0) {
        BY_SIZE(GATHER)
    }
}

void tor_tile_scatter(void *dst, const void *src, size_t bytes, int64_t stride, int64_t n) {
    if (stride == 1) {
        memcpy(dst, src, (size_t)n * bytes);
    } else {
        BY_SIZE(SCATTER)
    }
}

// Walks inner rows in order; `offset` is that of the row at `at`, in elements.
typedef struct {
    int64_t at[TOR_MAP_RANK], offset;
} Rows;

static Rows rows_from(int rank, const int64_t *stride, const int64_t *index) {
    Rows rows = {.offset = 0};
    for (int d = 0; d < rank; d++) {
        rows.at[d] = index[d];
        rows.offset += index[d] * stride[d];
    }
    return rows;
}

static void rows_next(Rows *rows, int rank, const int64_t *size, const int64_t *stride) {
    for (int d = rank - 1; d >= 0; d--) {
        rows->offset += stride[d];
        if (++rows->at[d] < size[d]) return;
        rows->offset -= size[d] * stride[d];
        rows->at[d] = 0;
    }
}

void tor_block_gather(void *dst, const void *src, size_t bytes, int rank, const int64_t *size,
                      const int64_t *stride, const int64_t *index, int64_t rows, int64_t inner,
                      int64_t inner_stride) {
    Rows walk = rows_from(rank, stride, index);
    uint8_t *out = dst;
    for (int64_t r = 0; r < rows; r++, out += (size_t)inner * bytes) {
        tor_tile_gather(out, (const uint8_t *)src + walk.offset * (int64_t)bytes, bytes,
                        inner_stride, inner);
        rows_next(&walk, rank, size, stride);
    }
}

void tor_block_scatter(void *dst, const void *src, size_t bytes, int rank, const int64_t *size,
                       const int64_t *stride, const int64_t *index, int64_t rows, int64_t inner,
                       int64_t inner_stride) {
    Rows walk = rows_from(rank, stride, index);
    const uint8_t *in = src;
    for (int64_t r = 0; r < rows; r++, in += (size_t)inner * bytes) {
        tor_tile_scatter((uint8_t *)dst + walk.offset * (int64_t)bytes, in, bytes, inner_stride,
                         inner);
        rows_next(&walk, rank, size, stride);
    }
}

/// Gather's kernels for one instruction set.
///
/// The place of an element is data + row and column strides + the sum over index tensors; `place`
/// computes the sum. Where there are one or two int64 indices, which is nearly always, all that is
/// needed for them is kept in registers: stores to elements may alias anything else.
#include "base/simd.h"
#include "kernels/gather/block.h"

/// Byte offset of the indices at (r, c) into *offset. Out of range: sets the error, and clamps.
/// @return false if out of range and not `clamp`, or if there is nothing to clamp to
static bool place_many(const TorIndexBlock *b, bool clamp, int64_t r, int64_t c, int64_t *offset) {
    const TorIndexArgs *args = b->args;
    *offset = 0;
    for (int k = 0; k < args->n_index; k++) {
        int64_t size = args->axis_size[k];
        int64_t i = tor_index_load(b->index[k], args->index_dtype[k],
                                   r * b->index_row[k] + c * b->index_col[k]);
        if (i < 0 && args->wrap) i += size;
        if (__builtin_expect((uint64_t)i >= (uint64_t)size, 0)) {
            __atomic_store_n(args->error, 1 + k, __ATOMIC_RELAXED);
            if (!clamp || size == 0) return false;
            i = i < 0 ? 0 : size - 1;
        }
        *offset += i * b->axis_bytes[k];
    }
    return true;
}

/// An int64 index.
typedef struct {
    const int64_t *index;
    int64_t row, col, size, wrap, bytes;  ///< wrap: what a negative index gains
} Known;

TOR_INLINE Known known_index(const TorIndexBlock *b, int k) {
    const TorIndexArgs *args = b->args;
    return (Known){b->index[k],
                   b->index_row[k],
                   b->index_col[k],
                   args->axis_size[k],
                   args->wrap ? args->axis_size[k] : 0,
                   b->axis_bytes[k]};
}

/// `count`: how many indices `known` has; 0: any number of any types, in the block.
TOR_INLINE bool place(const TorIndexBlock *b, const Known *known, int count, bool clamp, int64_t r,
                      int64_t c, int64_t *offset) {
    if (count == 0) return place_many(b, clamp, r, c, offset);
    int64_t sum = 0;
    for (int k = 0; k < count; k++) {
        int64_t i = known[k].index[r * known[k].row + c * known[k].col];
        if (i < 0) i += known[k].wrap;
        if (__builtin_expect((uint64_t)i >= (uint64_t)known[k].size, 0)) {
            __atomic_store_n(b->args->error, 1 + k, __ATOMIC_RELAXED);
            if (!clamp || known[k].size == 0) return false;
            i = i < 0 ? 0 : known[k].size - 1;
        }
        sum += i * known[k].bytes;
    }
    *offset = sum;
    return true;
}

/// Calls body(b, known, count) with `count` constant.
#define SPECIALISE(body)                                                         \
    do {                                                                         \
        const TorIndexArgs *a = b->args;                                         \
        Known known[2] = {known_index(b, 0), {0}};                               \
        bool first = a->index_dtype[0] == TOR_int64;                             \
        if (a->n_index == 1 && first) {                                          \
            body(b, known, 1);                                                   \
        } else if (a->n_index == 2 && first && a->index_dtype[1] == TOR_int64) { \
            known[1] = known_index(b, 1);                                        \
            body(b, known, 2);                                                   \
        } else {                                                                 \
            body(b, known, 0);                                                   \
        }                                                                        \
    } while (0)

TOR_INLINE void copy_row(uint8_t *dst, const uint8_t *src, size_t bytes) {
    if (bytes == 256)
        memcpy(dst, src, 256);  // a head of 64 floats; inlined
    else
        memcpy(dst, src, bytes);
}

TOR_INLINE void gather_rows(const TorIndexBlock *b, const Known *known, int count) {
    size_t bytes = (size_t)(b->cols * b->args->elem_bytes);
    int64_t at;
    for (int64_t r = 0; r < b->rows; r++)
        if (place(b, known, count, true, r, 0, &at))
            copy_row(b->other + r * b->other_row, b->data + r * b->data_row + at, bytes);
}

TOR_INLINE void scatter_rows(const TorIndexBlock *b, const Known *known, int count) {
    size_t bytes = (size_t)(b->cols * b->args->elem_bytes);
    int64_t at;
    for (int64_t r = 0; r < b->rows; r++)
        if (place(b, known, count, false, r, 0, &at))
            copy_row(b->data + r * b->data_row + at, b->other + r * b->other_row, bytes);
}

TorIndexFn TOR_KERNEL_IMPL(tor_gather_any, gather_rows),
    TOR_KERNEL_IMPL(tor_gather_any, scatter_rows);
void TOR_KERNEL_IMPL(tor_gather_any, gather_rows)(const TorIndexBlock *b) {
    SPECIALISE(gather_rows);
}
void TOR_KERNEL_IMPL(tor_gather_any, scatter_rows)(const TorIndexBlock *b) {
    SPECIALISE(scatter_rows);
}

/// Every element of the block: `data` at the place `at`, and `other`.
#define EACH(clamp, statement)                                                           \
    int64_t rows = b->rows, cols = b->cols, data_col = b->data_col, at;                  \
    int64_t other_col = b->other_col;                                                    \
    for (int64_t r = 0; r < rows; r++) {                                                 \
        uint8_t *data = b->data + r * b->data_row, *other = b->other + r * b->other_row; \
        for (int64_t c = 0; c < cols; c++, data += data_col, other += other_col)         \
            if (place(b, known, count, clamp, r, c, &at)) statement;                     \
    }

#define ELEMENTS(bits)                                                                             \
    typedef uint##bits##_t Elem##bits __attribute__((may_alias));                                  \
    TOR_INLINE void gather##bits(const TorIndexBlock *b, const Known *known, int count){           \
        EACH(true, *(Elem##bits *)other = *(const Elem##bits *)(data + at))} TOR_INLINE void       \
        scatter##bits(const TorIndexBlock *b, const Known *known, int count){EACH(                 \
            false, *(Elem##bits *)(data + at) =                                                    \
                       *(const Elem##bits *)other)} TorIndexFn TOR_KERNEL_IMPL(tor_gather_x##bits, \
                                                                               gather_elements),   \
        TOR_KERNEL_IMPL(tor_gather_x##bits, scatter_elements);                                     \
    void TOR_KERNEL_IMPL(tor_gather_x##bits, gather_elements)(const TorIndexBlock *b) {            \
        SPECIALISE(gather##bits);                                                                  \
    }                                                                                              \
    void TOR_KERNEL_IMPL(tor_gather_x##bits, scatter_elements)(const TorIndexBlock *b) {           \
        SPECIALISE(scatter##bits);                                                                 \
    }

ELEMENTS(8)
ELEMENTS(16)
ELEMENTS(32)
ELEMENTS(64)

/// Rows whose columns lie together take one index; the inner loop is then free of it.
TOR_INLINE bool is_together(const TorIndexBlock *b) {
    int64_t bytes = b->args->elem_bytes;
    bool together = b->data_col == bytes && b->other_col == bytes;
    for (int k = 0; k < b->args->n_index; k++) together &= b->index_col[k] == 0;
    return together;
}

#define REDUCE_BY(name, type, word, fn)                                                       \
    TOR_INLINE void word##_##name(const TorIndexBlock *b, const Known *known, int count) {    \
        if (!is_together(b)) {                                                                \
            EACH(false,                                                                       \
                 *(type *)(data + at) = (type)fn(*(type *)(data + at), *(const type *)other)) \
            return;                                                                           \
        }                                                                                     \
        int64_t at;                                                                           \
        for (int64_t r = 0; r < b->rows; r++) {                                               \
            if (!place(b, known, count, false, r, 0, &at)) continue;                          \
            type *dst = (type *)(b->data + r * b->data_row + at);                             \
            const type *src = (const type *)(b->other + r * b->other_row);                    \
            for (int64_t c = 0; c < b->cols; c++) dst[c] = (type)fn(dst[c], src[c]);          \
        }                                                                                     \
    }

#define REDUCE(name, type, add, mul, max, min)                                \
    REDUCE_BY(name, type, add, add)                                           \
    REDUCE_BY(name, type, mul, mul)                                           \
    REDUCE_BY(name, type, max, max)                                           \
    REDUCE_BY(name, type, min, min)                                           \
    TorIndexFn TOR_KERNEL_IMPL(tor_gather_##name, reduce);                    \
    void TOR_KERNEL_IMPL(tor_gather_##name, reduce)(const TorIndexBlock *b) { \
        switch (b->args->reduce) {                                            \
            case TOR_SCATTER_mul: SPECIALISE(mul##_##name); break;            \
            case TOR_SCATTER_max: SPECIALISE(max##_##name); break;            \
            case TOR_SCATTER_min: SPECIALISE(min##_##name); break;            \
            default: SPECIALISE(add##_##name); break;                         \
        }                                                                     \
    }

#define PLUS(a, b) ((a) + (b))
#define TIMES(a, b) ((a) * (b))
#define TIMES_16(a, b) ((uint32_t)(a) * (b))  // as int, the product would overflow
#define OR(a, b) ((a) || (b))
#define AND(a, b) ((a) && (b))
#define MAX(a, b) ((a) < (b) ? (b) : (a))
#define MIN(a, b) ((b) < (a) ? (b) : (a))
#define MAX_FLOAT(a, b) ((b) != (b) || (a) < (b) ? (b) : (a))
#define MIN_FLOAT(a, b) ((b) != (b) || (b) < (a) ? (b) : (a))
#define AS_SIGNED(type, fn, a, b) fn((type)(a), (type)(b))
#define MAX_I16(a, b) AS_SIGNED(int16_t, MAX, a, b)
#define MIN_I16(a, b) AS_SIGNED(int16_t, MIN, a, b)
#define MAX_I32(a, b) AS_SIGNED(int32_t, MAX, a, b)
#define MIN_I32(a, b) AS_SIGNED(int32_t, MIN, a, b)
#define MAX_I64(a, b) AS_SIGNED(int64_t, MAX, a, b)
#define MIN_I64(a, b) AS_SIGNED(int64_t, MIN, a, b)
#define MAX_I8(a, b) AS_SIGNED(int8_t, MAX, a, b)
#define MIN_I8(a, b) AS_SIGNED(int8_t, MIN, a, b)
#define F16(x) tor_f16_to_f32(x)
#define BF16(x) tor_bf16_to_f32(x)
#define PLUS_F16(a, b) tor_f32_to_f16(F16(a) + F16(b))
#define TIMES_F16(a, b) tor_f32_to_f16(F16(a) * F16(b))
#define MAX_F16(a, b) (F16(b) != F16(b) || F16(a) < F16(b) ? (b) : (a))
#define MIN_F16(a, b) (F16(b) != F16(b) || F16(b) < F16(a) ? (b) : (a))
#define PLUS_BF16(a, b) tor_f32_to_bf16(BF16(a) + BF16(b))
#define TIMES_BF16(a, b) tor_f32_to_bf16(BF16(a) * BF16(b))
#define MAX_BF16(a, b) (BF16(b) != BF16(b) || BF16(a) < BF16(b) ? (b) : (a))
#define MIN_BF16(a, b) (BF16(b) != BF16(b) || BF16(b) < BF16(a) ? (b) : (a))

REDUCE(b8, uint8_t, OR, AND, MAX, MIN)
REDUCE(u8, uint8_t, PLUS, TIMES, MAX, MIN)
REDUCE(i8, uint8_t, PLUS, TIMES, MAX_I8, MIN_I8)
REDUCE(i16, uint16_t, PLUS, TIMES_16, MAX_I16, MIN_I16)
REDUCE(i32, uint32_t, PLUS, TIMES, MAX_I32, MIN_I32)
REDUCE(i64, uint64_t, PLUS, TIMES, MAX_I64, MIN_I64)
REDUCE(f16, uint16_t, PLUS_F16, TIMES_F16, MAX_F16, MIN_F16)
REDUCE(bf16, uint16_t, PLUS_BF16, TIMES_BF16, MAX_BF16, MIN_BF16)
REDUCE(f32, float, PLUS, TIMES, MAX_FLOAT, MIN_FLOAT)
REDUCE(f64, double, PLUS, TIMES, MAX_FLOAT, MIN_FLOAT)

/// Gather's kernels for one instruction set.
///
/// The place of an element is data + row and column strides + the sum over index tensors; `place`
/// computes the sum. It is inlined with its index type constant where there is one int64 index,
/// which is nearly always.
#include "base/simd.h"
#include "kernels/gather/block.h"

/// Byte offset of the indices at (r, c) into *offset. Out of range: sets the error, and clamps.
/// @return false if out of range and not `clamp`, or if there is nothing to clamp to
TOR_INLINE bool place(const TorIndexBlock *b, int n_index, TorDtype dtype, bool clamp, int64_t r,
                      int64_t c, int64_t *offset) {
    const TorIndexArgs *args = b->args;
    *offset = 0;
    for (int k = 0; k < n_index; k++) {
        int64_t size = args->axis_size[k];
        int64_t i =
            tor_index_load(b->index[k], dtype == TOR_DTYPE_COUNT ? args->index_dtype[k] : dtype,
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

/// Calls body(b, n_index, dtype) with constants in the common case; TOR_DTYPE_COUNT: look it up.
#define SPECIALISE(body)                                                   \
    do {                                                                   \
        if (b->args->n_index == 1 && b->args->index_dtype[0] == TOR_int64) \
            body(b, 1, TOR_int64);                                         \
        else                                                               \
            body(b, b->args->n_index, TOR_DTYPE_COUNT);                    \
    } while (0)

TOR_INLINE void copy_row(uint8_t *dst, const uint8_t *src, size_t bytes) {
    if (bytes == 256)
        memcpy(dst, src, 256);  // a head of 64 floats; inlined
    else
        memcpy(dst, src, bytes);
}

TOR_INLINE void gather_rows(const TorIndexBlock *b, int n_index, TorDtype dtype) {
    size_t bytes = (size_t)(b->cols * b->args->elem_bytes);
    int64_t at;
    for (int64_t r = 0; r < b->rows; r++)
        if (place(b, n_index, dtype, true, r, 0, &at))
            copy_row(b->other + r * b->other_row, b->data + r * b->data_row + at, bytes);
}

TOR_INLINE void scatter_rows(const TorIndexBlock *b, int n_index, TorDtype dtype) {
    size_t bytes = (size_t)(b->cols * b->args->elem_bytes);
    int64_t at;
    for (int64_t r = 0; r < b->rows; r++)
        if (place(b, n_index, dtype, false, r, 0, &at))
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

#define ELEMENTS(bits)                                                                           \
    typedef uint##bits##_t Elem##bits __attribute__((may_alias));                                \
    TOR_INLINE void gather##bits(const TorIndexBlock *b, int n_index, TorDtype dtype) {          \
        int64_t at;                                                                              \
        for (int64_t r = 0; r < b->rows; r++)                                                    \
            for (int64_t c = 0; c < b->cols; c++)                                                \
                if (place(b, n_index, dtype, true, r, c, &at))                                   \
                    *(Elem##bits *)(b->other + r * b->other_row + c * b->other_col) =            \
                        *(const Elem##bits *)(b->data + r * b->data_row + c * b->data_col + at); \
    }                                                                                            \
    TOR_INLINE void scatter##bits(const TorIndexBlock *b, int n_index, TorDtype dtype) {         \
        int64_t at;                                                                              \
        for (int64_t r = 0; r < b->rows; r++)                                                    \
            for (int64_t c = 0; c < b->cols; c++)                                                \
                if (place(b, n_index, dtype, false, r, c, &at))                                  \
                    *(Elem##bits *)(b->data + r * b->data_row + c * b->data_col + at) =          \
                        *(const Elem##bits *)(b->other + r * b->other_row + c * b->other_col);   \
    }                                                                                            \
    TorIndexFn TOR_KERNEL_IMPL(tor_gather_x##bits, gather_elements),                             \
        TOR_KERNEL_IMPL(tor_gather_x##bits, scatter_elements);                                   \
    void TOR_KERNEL_IMPL(tor_gather_x##bits, gather_elements)(const TorIndexBlock *b) {          \
        SPECIALISE(gather##bits);                                                                \
    }                                                                                            \
    void TOR_KERNEL_IMPL(tor_gather_x##bits, scatter_elements)(const TorIndexBlock *b) {         \
        SPECIALISE(scatter##bits);                                                               \
    }

ELEMENTS(8)
ELEMENTS(16)
ELEMENTS(32)
ELEMENTS(64)

// Additions. Rows whose columns lie together take one index; the inner loop is then free of it.
#define ADD(name, type, sum)                                                               \
    TOR_INLINE void add_##name(const TorIndexBlock *b, int n_index, TorDtype dtype) {      \
        bool together =                                                                    \
            b->data_col == (int64_t)sizeof(type) && b->other_col == (int64_t)sizeof(type); \
        int64_t at;                                                                        \
        for (int k = 0; k < n_index; k++) together &= b->index_col[k] == 0;                \
        for (int64_t r = 0; r < b->rows; r++) {                                            \
            uint8_t *data = b->data + r * b->data_row;                                     \
            const uint8_t *other = b->other + r * b->other_row;                            \
            if (together) {                                                                \
                if (!place(b, n_index, dtype, false, r, 0, &at)) continue;                 \
                type *dst = (type *)(data + at);                                           \
                const type *src = (const type *)other;                                     \
                for (int64_t c = 0; c < b->cols; c++) dst[c] = (type)sum(dst[c], src[c]);  \
                continue;                                                                  \
            }                                                                              \
            for (int64_t c = 0; c < b->cols; c++) {                                        \
                if (!place(b, n_index, dtype, false, r, c, &at)) continue;                 \
                type *dst = (type *)(data + c * b->data_col + at);                         \
                *dst = (type)sum(*dst, *(const type *)(other + c * b->other_col));         \
            }                                                                              \
        }                                                                                  \
    }                                                                                      \
    TorIndexFn TOR_KERNEL_IMPL(tor_gather_##name, add);                                    \
    void TOR_KERNEL_IMPL(tor_gather_##name, add)(const TorIndexBlock *b) { SPECIALISE(add_##name); }

#define PLUS(a, b) ((a) + (b))
#define OR(a, b) ((a) || (b))
#define PLUS_F16(a, b) tor_f32_to_f16(tor_f16_to_f32(a) + tor_f16_to_f32(b))
#define PLUS_BF16(a, b) tor_f32_to_bf16(tor_bf16_to_f32(a) + tor_bf16_to_f32(b))
ADD(b8, uint8_t, OR)
ADD(i8, uint8_t, PLUS)
ADD(i16, uint16_t, PLUS)
ADD(i32, uint32_t, PLUS)
ADD(i64, uint64_t, PLUS)
ADD(f16, uint16_t, PLUS_F16)
ADD(bf16, uint16_t, PLUS_BF16)
ADD(f32, float, PLUS)
ADD(f64, double, PLUS)

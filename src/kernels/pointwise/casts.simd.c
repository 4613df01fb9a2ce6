// Casts between compute types, and the half types' loads, stores and rounding.
//
// Float to integer: eager's answers on x86 everywhere, also where C leaves them open
// (base/dtype.c): through int64 for int64 and uint8, through int32 for the others; out of range and
// NaN give the least integer of that width, then wrap.
#include "base/simd.h"
#include "kernels/pointwise/engine.h"

#if defined(__clang__)
#define TOR_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define TOR_IVDEP _Pragma("GCC ivdep")
#endif

#undef bool  // a name to paste here
typedef uint8_t T_bool, T_uint8;
typedef int8_t T_int8;
typedef int16_t T_int16;
typedef int32_t T_int32;
typedef int64_t T_int64;
typedef float T_float32;
typedef double T_float64;

TOR_INLINE int32_t f32_int32(float x) {
    return x >= -0x1p31f && x < 0x1p31f ? (int32_t)x : INT32_MIN;
}
TOR_INLINE int64_t f32_int64(float x) {
    return x >= -0x1p63f && x < 0x1p63f ? (int64_t)x : INT64_MIN;
}
TOR_INLINE int32_t f64_int32(double x) {
    return x > -0x1p31 - 1 && x < 0x1p31 ? (int32_t)x : INT32_MIN;
}
TOR_INLINE int64_t f64_int64(double x) {
    return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
}

#define CAST(from, to, expr)                                                                \
    static void cast_##from##_##to(void *dst, const void *a_, const void *b, const void *c, \
                                   int64_t n) {                                             \
        const T_##from *a = a_;                                                             \
        T_##to *d = dst;                                                                    \
        (void)b, (void)c;                                                                   \
        TOR_IVDEP for (int64_t i = 0; i < n; i++) {                                         \
            const T_##from x = a[i];                                                        \
            d[i] = (T_##to)(expr);                                                          \
        }                                                                                   \
    }
#define FROM_INT(X, t) \
    X(t, bool, x != 0) \
    X(t, uint8, x)     \
    X(t, int8, x) X(t, int16, x) X(t, int32, x) X(t, int64, x) X(t, float32, x) X(t, float64, x)
// A float32 out of int32's range has no low byte, so uint8 may go through int32 as well.
// clang-format off
#define ALL(X)                                                                              \
    FROM_INT(X, bool) FROM_INT(X, uint8) FROM_INT(X, int8) FROM_INT(X, int16)               \
    FROM_INT(X, int32) FROM_INT(X, int64) X(float32, bool, x != 0)                          \
    X(float32, uint8, f32_int32(x)) X(float32, int8, f32_int32(x))                          \
    X(float32, int16, f32_int32(x)) X(float32, int32, f32_int32(x))                         \
    X(float32, int64, f32_int64(x)) X(float32, float32, x) X(float32, float64, x)           \
    X(float64, bool, x != 0) X(float64, uint8, f64_int64(x))                                \
    X(float64, int8, f64_int32(x)) X(float64, int16, f64_int32(x))                          \
    X(float64, int32, f64_int32(x)) X(float64, int64, f64_int64(x))                         \
    X(float64, float32, x) X(float64, float64, x)
// clang-format on
ALL(CAST)

extern const TorTileFn TOR_KERNEL(tor_pointwise_cast_any)[TOR_DTYPE_COUNT][TOR_DTYPE_COUNT];
const TorTileFn TOR_KERNEL(tor_pointwise_cast_any)[TOR_DTYPE_COUNT][TOR_DTYPE_COUNT] = {
#define ENTRY(from, to, expr) [TOR_##from][TOR_##to] = cast_##from##_##to,
    ALL(ENTRY)};

// bfloat16 by integer arithmetic, as tor_f32_to_bf16().
TOR_INLINE uint32_t bf16_bits(uint32_t bits) {
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, nan = bits >> 16 | 0x40;
    return (bits & 0x7fffffff) > 0x7f800000 ? nan : rounded;
}
#define UNUSED (void)b, (void)c
void TOR_KERNEL(tor_pointwise_load_bf16)(void *dst, const void *a, const void *b, const void *c,
                                         int64_t n);
void TOR_KERNEL(tor_pointwise_load_bf16)(void *dst, const void *a, const void *b, const void *c,
                                         int64_t n) {
    UNUSED;
    const uint16_t *x = a;
    uint32_t *d = dst;
    TOR_IVDEP for (int64_t i = 0; i < n; i++) d[i] = (uint32_t)x[i] << 16;
}
void TOR_KERNEL(tor_pointwise_store_bf16)(void *dst, const void *a, const void *b, const void *c,
                                          int64_t n);
void TOR_KERNEL(tor_pointwise_store_bf16)(void *dst, const void *a, const void *b, const void *c,
                                          int64_t n) {
    UNUSED;
    const uint32_t *x = a;
    uint16_t *d = dst;
    TOR_IVDEP for (int64_t i = 0; i < n; i++) d[i] = (uint16_t)bf16_bits(x[i]);
}
void TOR_KERNEL(tor_pointwise_round_bf16)(void *dst, const void *a, const void *b, const void *c,
                                          int64_t n);
void TOR_KERNEL(tor_pointwise_round_bf16)(void *dst, const void *a, const void *b, const void *c,
                                          int64_t n) {
    UNUSED;
    const uint32_t *x = a;
    uint32_t *d = dst;
    TOR_IVDEP for (int64_t i = 0; i < n; i++) d[i] = bf16_bits(x[i]) << 16;
}

// float16 by instructions where there are some.
#if defined(__F16C__)
TOR_INLINE __m256 f16_load8(const uint16_t *p) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}
TOR_INLINE __m128i f16_round8(__m256 x) {
    return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
#define EIGHT(code) \
    for (; i + 8 <= n; i += 8) code
#else
#define EIGHT(code)
#endif
void TOR_KERNEL(tor_pointwise_load_f16)(void *dst, const void *a, const void *b, const void *c,
                                        int64_t n);
void TOR_KERNEL(tor_pointwise_load_f16)(void *dst, const void *a, const void *b, const void *c,
                                        int64_t n) {
    UNUSED;
    const uint16_t *x = a;
    float *d = dst;
    int64_t i = 0;
    EIGHT(_mm256_storeu_ps(d + i, f16_load8(x + i));)
    for (; i < n; i++) d[i] = tor_f16_to_f32(x[i]);
}
void TOR_KERNEL(tor_pointwise_store_f16)(void *dst, const void *a, const void *b, const void *c,
                                         int64_t n);
void TOR_KERNEL(tor_pointwise_store_f16)(void *dst, const void *a, const void *b, const void *c,
                                         int64_t n) {
    UNUSED;
    const float *x = a;
    uint16_t *d = dst;
    int64_t i = 0;
    EIGHT(_mm_storeu_si128((__m128i *)(void *)(d + i), f16_round8(_mm256_loadu_ps(x + i)));)
    for (; i < n; i++) d[i] = tor_f32_to_f16(x[i]);
}
void TOR_KERNEL(tor_pointwise_round_f16)(void *dst, const void *a, const void *b, const void *c,
                                         int64_t n);
void TOR_KERNEL(tor_pointwise_round_f16)(void *dst, const void *a, const void *b, const void *c,
                                         int64_t n) {
    UNUSED;
    const float *x = a;
    float *d = dst;
    int64_t i = 0;
    EIGHT(_mm256_storeu_ps(d + i, _mm256_cvtph_ps(f16_round8(_mm256_loadu_ps(x + i))));)
    for (; i < n; i++) d[i] = tor_f16_to_f32(tor_f32_to_f16(x[i]));
}

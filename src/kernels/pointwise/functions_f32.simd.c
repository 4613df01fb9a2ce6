// Tile functions of float32, by hand over base/simd.h: the common functions and super-instructions.
//
// Each exists for the operands that may be one value for the whole tile (an immediate, a row value,
// a broadcast input): bit i of the mask says that operand i is. Tails use masked loads and stores,
// so nothing beyond the tile is touched.
#include "base/simd_math.h"
#include "kernels/pointwise/engine.h"

TOR_INLINE vf32 relu(vf32 x) { return vf32_max(vf32_set(0.0f), x); }  // NaN and -0 come through
TOR_INLINE vf32 neg(vf32 x) { return (vf32)((vi32)x ^ vi32_set(INT32_MIN)); }
// The first operand where equal (zeros of either sign), NaN if either is.
TOR_INLINE vf32 maximum(vf32 x, vf32 y) { return vf32_select((vi32)(y != y), y, vf32_max(y, x)); }
TOR_INLINE vf32 minimum(vf32 x, vf32 y) { return vf32_select((vi32)(y != y), y, vf32_min(y, x)); }
TOR_INLINE vf32 fmax_(vf32 x, vf32 y) { return vf32_select((vi32)(x != x), y, vf32_max(y, x)); }
TOR_INLINE vf32 fmin_(vf32 x, vf32 y) { return vf32_select((vi32)(x != x), y, vf32_min(y, x)); }
TOR_INLINE vf32 clamp_6(vf32 x) { return vf32_min(vf32_set(6.0f), vf32_max(vf32_set(0.0f), x)); }
TOR_INLINE vf32 sign(vf32 x) {
    vf32 one = vf32_select((vi32)(x > vf32_set(0.0f)), vf32_set(1.0f), vf32_set(0.0f));
    return vf32_select((vi32)(x < vf32_set(0.0f)), vf32_set(-1.0f), one);
}
// Rounding: to nearest first, then corrected; the sign is put back for results of zero.
TOR_INLINE vf32 floor_(vf32 x) {
    vf32 r = vf32_rint(x);
    return vf32_sign_of(r - vf32_select((vi32)(r > x), vf32_set(1.0f), vf32_set(0.0f)), x);
}
TOR_INLINE vf32 ceil_(vf32 x) { return neg(floor_(neg(x))); }
TOR_INLINE vf32 trunc_(vf32 x) { return vf32_sign_of(floor_(vf32_abs(x)), x); }

// FN(name, arity, expression of x, y, z)
#define ROWS_F32(FN)                              \
    FN(add, 2, x + y)                             \
    FN(sub, 2, x - y)                             \
    FN(mul, 2, x *y)                              \
    FN(div, 2, x / y)                             \
    FN(minimum, 2, minimum(x, y))                 \
    FN(maximum, 2, maximum(x, y))                 \
    FN(fmin, 2, fmin_(x, y))                      \
    FN(fmax, 2, fmax_(x, y))                      \
    FN(copysign, 2, vf32_sign_of(x, y))           \
    FN(div_trunc, 2, trunc_(x / y))               \
    FN(fma, 3, vf32_fma(x, y, z))                 \
    FN(neg, 1, neg(x))                            \
    FN(abs, 1, vf32_abs(x))                       \
    FN(sign, 1, sign(x))                          \
    FN(ceil, 1, ceil_(x))                         \
    FN(floor, 1, floor_(x))                       \
    FN(round, 1, vf32_rint(x))                    \
    FN(trunc, 1, trunc_(x))                       \
    FN(sqrt, 1, vf32_sqrt(x))                     \
    FN(rsqrt, 1, 1.0f / vf32_sqrt(x))             \
    FN(reciprocal, 1, 1.0f / x)                   \
    FN(exp, 1, vf32_exp(x))                       \
    FN(exp2, 1, vf32_exp2(x))                     \
    FN(expm1, 1, vf32_expm1(x))                   \
    FN(log, 1, vf32_log(x))                       \
    FN(log2, 1, vf32_log2(x))                     \
    FN(log10, 1, vf32_log10(x))                   \
    FN(log1p, 1, vf32_log1p(x))                   \
    FN(sin, 1, vf32_sin(x))                       \
    FN(cos, 1, vf32_cos(x))                       \
    FN(tanh, 1, vf32_tanh(x))                     \
    FN(erf, 1, vf32_erf(x))                       \
    FN(relu, 1, relu(x))                          \
    FN(gelu_erf, 1, vf32_gelu_erf(x))             \
    FN(gelu_tanh, 1, vf32_gelu_tanh(x))           \
    FN(hardsigmoid, 1, clamp_6(x + 3.0f) / 6.0f)  \
    FN(hardswish, 1, x *clamp_6(x + 3.0f) / 6.0f) \
    FN(copy, 1, x)

#define UNROLLED _Pragma("GCC unroll 4")
#define OPERAND_v(v, p, load) const vf32 v = load
#define OPERAND_s(v, p, load) const vf32 v = v##_value
#define ONE_v(v, p)
#define ONE_s(v, p) const vf32 v##_value = vf32_set(*(const float *)p)
#define LOOP(name, X, Y, Z, expr)                                                         \
    static void name(void *dst, const void *a, const void *b, const void *c, int64_t n) { \
        ONE_##X(x, a);                                                                    \
        ONE_##Y(y, b);                                                                    \
        ONE_##Z(z, c);                                                                    \
        int64_t i = 0;                                                                    \
        UNROLLED for (; i + VF32 <= n; i += VF32) {                                       \
            OPERAND_##X(x, a, vf32_load((const float *)a + i));                           \
            OPERAND_##Y(y, b, vf32_load((const float *)b + i));                           \
            OPERAND_##Z(z, c, vf32_load((const float *)c + i));                           \
            (void)y, (void)z;                                                             \
            vf32_store((float *)dst + i, expr);                                           \
        }                                                                                 \
        if (i < n) {                                                                      \
            const int rest = (int)(n - i);                                                \
            OPERAND_##X(x, a, vf32_load_n((const float *)a + i, rest));                   \
            OPERAND_##Y(y, b, vf32_load_n((const float *)b + i, rest));                   \
            OPERAND_##Z(z, c, vf32_load_n((const float *)c + i, rest));                   \
            (void)y, (void)z;                                                             \
            vf32_store_n((float *)dst + i, expr, rest);                                   \
        }                                                                                 \
    }
// An operand that the function lacks.
#define OPERAND_0(v, p, load) const vf32 v = {0}
#define ONE_0(v, p) (void)p
#define FN_1(name, expr) LOOP(f32_##name##_0, v, 0, 0, expr)
#define FN_2(name, expr)                \
    LOOP(f32_##name##_0, v, v, 0, expr) \
    LOOP(f32_##name##_1, s, v, 0, expr) \
    LOOP(f32_##name##_2, v, s, 0, expr)
#define FN_3(name, expr)                \
    LOOP(f32_##name##_0, v, v, v, expr) \
    LOOP(f32_##name##_1, s, v, v, expr) \
    LOOP(f32_##name##_2, v, s, v, expr) \
    LOOP(f32_##name##_3, s, s, v, expr) \
    LOOP(f32_##name##_4, v, v, s, expr) \
    LOOP(f32_##name##_5, s, v, s, expr) \
    LOOP(f32_##name##_6, v, s, s, expr)
#define FN(name, arity, expr) FN_##arity(name, expr)
ROWS_F32(FN)
TOR_FUSED(FN)
#undef FN

// Several vectors at once, which do not wait for each other.
#define SEVERAL(name)                                                                         \
    static void f32_##name##_0(void *dst, const void *a, const void *b, const void *c,        \
                               int64_t n) {                                                   \
        (void)b, (void)c;                                                                     \
        float *y = dst;                                                                       \
        const float *x = a;                                                                   \
        vf32 v[4];                                                                            \
        int64_t i = 0;                                                                        \
        for (; i + 4 * VF32 <= n; i += 4 * VF32) {                                            \
            UNROLLED for (int j = 0; j < 4; j++) v[j] = vf32_load(x + i + j * VF32);          \
            vf32_##name##s(v, v, 4);                                                          \
            UNROLLED for (int j = 0; j < 4; j++) vf32_store(y + i + j * VF32, v[j]);          \
        }                                                                                     \
        for (; i + VF32 <= n; i += VF32) vf32_store(y + i, vf32_##name(vf32_load(x + i)));    \
        if (i < n)                                                                            \
            vf32_store_n(y + i, vf32_##name(vf32_load_n(x + i, (int)(n - i))), (int)(n - i)); \
    }
SEVERAL(sigmoid)
SEVERAL(silu)

// Results or conditions that are bytes: the compiler packs and widens them well.
#if defined(__clang__)
#define TOR_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define TOR_IVDEP _Pragma("GCC ivdep")
#endif
#define BYTES(name, A, R, AT_A, AT_B, AT_C, expr)                                            \
    static void name(void *dst, const void *a_, const void *b_, const void *c_, int64_t n) { \
        const A *a = a_;                                                                     \
        const float *b = b_, *c = c_;                                                        \
        R *d = dst;                                                                          \
        (void)b, (void)c;                                                                    \
        const A a0 = *a;                                                                     \
        const float b0 = AT_B##_FIRST(b), c0 = AT_C##_FIRST(c);                              \
        (void)a0, (void)b0, (void)c0;                                                        \
        TOR_IVDEP for (int64_t i = 0; i < n; i++) {                                          \
            const A x = AT_A(a);                                                             \
            const float y = AT_B(b), z = AT_C(c);                                            \
            (void)y, (void)z;                                                                \
            d[i] = (R)(expr);                                                                \
        }                                                                                    \
    }
#define VEC(p) p[i]
#define VEC_FIRST(p) 0
#define SCA(p) p##0
#define SCA_FIRST(p) *p
#define NIL(p) 0
#define NIL_FIRST(p) 0
#define COMPARE(name, op)                                        \
    BYTES(f32_##name##_0, float, uint8_t, VEC, VEC, NIL, x op y) \
    BYTES(f32_##name##_1, float, uint8_t, SCA, VEC, NIL, x op y) \
    BYTES(f32_##name##_2, float, uint8_t, VEC, SCA, NIL, x op y)
COMPARE(eq, ==)
COMPARE(ne, !=)
COMPARE(lt, <)
COMPARE(le, <=)
COMPARE(gt, >)
COMPARE(ge, >=)
BYTES(f32_isnan_0, float, uint8_t, VEC, NIL, NIL, x != x)
BYTES(f32_isinf_0, float, uint8_t, VEC, NIL, NIL, (x < 0 ? -x : x) == INFINITY)
BYTES(f32_where_0, uint8_t, float, VEC, VEC, VEC, x ? y : z)
BYTES(f32_where_2, uint8_t, float, VEC, SCA, VEC, x ? y : z)
BYTES(f32_where_4, uint8_t, float, VEC, VEC, SCA, x ? y : z)
BYTES(f32_where_6, uint8_t, float, VEC, SCA, SCA, x ? y : z)

extern const TorTileFn TOR_KERNEL(tor_pointwise_f32)[TOR_TILE_FN_COUNT][8];
const TorTileFn TOR_KERNEL(tor_pointwise_f32)[TOR_TILE_FN_COUNT][8] = {
#define ENTRY_1(at, name) [at] = {f32_##name##_0},
#define ENTRY_2(at, name) [at] = {f32_##name##_0, f32_##name##_1, f32_##name##_2},
#define ENTRY_3(at, name)                                                   \
    [at] = {f32_##name##_0, f32_##name##_1, f32_##name##_2, f32_##name##_3, \
            f32_##name##_4, f32_##name##_5, f32_##name##_6},
#define FN(name, arity, expr) ENTRY_##arity(TOR_FN_##name, name)
    ROWS_F32(FN)
#undef FN
#define FN(name, arity, expr) ENTRY_##arity(TOR_TILE_##name, name)
        TOR_FUSED(FN) ENTRY_2(TOR_FN_eq, eq) ENTRY_2(TOR_FN_ne, ne) ENTRY_2(TOR_FN_lt, lt)
            ENTRY_2(TOR_FN_le, le) ENTRY_2(TOR_FN_gt, gt) ENTRY_2(TOR_FN_ge, ge)
                ENTRY_1(TOR_FN_sigmoid, sigmoid) ENTRY_1(TOR_FN_silu, silu)
                    ENTRY_1(TOR_FN_isnan, isnan) ENTRY_1(TOR_FN_isinf, isinf)[TOR_FN_where] =
                        {f32_where_0, [2] = f32_where_2, [4] = f32_where_4, [6] = f32_where_6},
};

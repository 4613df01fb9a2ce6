// Tile functions that the compiler vectorises: every type but float32, and float32's rare
// functions.
//
// Policy: float64 in float64 with libm (1 ulp); integers wrap at their width. Reading and writing
// the same buffer is allowed, so loops are marked free of dependences between elements.
#include <math.h>

#include "base/simd.h"
#include "kernels/pointwise/engine.h"

#if defined(__clang__)
#define TOR_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define TOR_IVDEP _Pragma("GCC ivdep")
#endif

// `x < 0` is written for signed and unsigned types alike.
#pragma GCC diagnostic ignored "-Wtype-limits"

// ATen's div_floor, remainder and clamp for floats, for T double and float.
#define FLOAT_HELPERS(T, S, M)                                       \
    static inline T python_remainder_##S(T x, T y) {                 \
        T rest = M(fmod)(x, y);                                      \
        return rest != 0 && (y < 0) != (rest < 0) ? rest + y : rest; \
    }                                                                \
    static inline T python_floor_##S(T x, T y) {                     \
        if (y == 0) return x / y;                                    \
        T rest = M(fmod)(x, y), quotient = (x - rest) / y;           \
        if (rest != 0 && (y < 0) != (rest < 0)) quotient -= 1;       \
        if (quotient == 0) return M(copysign)(0, x / y);             \
        T whole = M(floor)(quotient);                                \
        return quotient - whole > (T)0.5 ? whole + 1 : whole;        \
    }
#define SAME(name) name
#define WITH_F(name) name##f
FLOAT_HELPERS(double, float64, SAME)
FLOAT_HELPERS(float, float32, WITH_F)
static inline double clamp_6(double x) { return x < 0 ? 0 : x > 6 ? 6 : x; }

#define ROWS "kernels/pointwise/functions_bool.inc"
#define S bool_
#define T uint8_t
#include "kernels/pointwise/functions_tmpl.h"
#undef ROWS

#define ROWS "kernels/pointwise/functions_int.inc"
#define S uint8
#define T uint8_t
#define U uint8_t
#define UL unsigned
#define W 8
#define IS_SIGNED 0
#include "kernels/pointwise/functions_tmpl.h"
#define S int8
#define T int8_t
#define U uint8_t
#define UL unsigned
#define W 8
#define IS_SIGNED 1
#include "kernels/pointwise/functions_tmpl.h"
#define S int16
#define T int16_t
#define U uint16_t
#define UL unsigned
#define W 16
#define IS_SIGNED 1
#include "kernels/pointwise/functions_tmpl.h"
#define S int32
#define T int32_t
#define U uint32_t
#define UL uint32_t
#define W 32
#define IS_SIGNED 1
#include "kernels/pointwise/functions_tmpl.h"
#define S int64
#define T int64_t
#define U uint64_t
#define UL uint64_t
#define W 64
#define IS_SIGNED 1
#include "kernels/pointwise/functions_tmpl.h"
#undef ROWS

#define ROWS "kernels/pointwise/functions_float.inc"
#define S float64
#define T double
#define M SAME
#define float_floor python_floor_float64
#define float_remainder python_remainder_float64
#include "kernels/pointwise/functions_tmpl.h"
#undef M
#undef float_floor
#undef float_remainder
#define RARE_ONLY
#define S float32
#define T float
#define M WITH_F
#define float_floor python_floor_float32
#define float_remainder python_remainder_float32
#include "kernels/pointwise/functions_tmpl.h"
#undef RARE_ONLY
#undef ROWS

extern const TorTileFn TOR_KERNEL(tor_pointwise_plain_any)[TOR_FN_COUNT][TOR_DTYPE_COUNT];
const TorTileFn TOR_KERNEL(tor_pointwise_plain_any)[TOR_FN_COUNT][TOR_DTYPE_COUNT] = {
#define FN(name, ...) [TOR_FN_##name][TOR_bool] = name##_bool_,
#include "kernels/pointwise/functions_bool.inc"
#undef FN
#define FN(name, ...) [TOR_FN_##name][TOR_uint8] = name##_uint8,
#include "kernels/pointwise/functions_int.inc"
#undef FN
#define FN(name, ...) [TOR_FN_##name][TOR_int8] = name##_int8,
#include "kernels/pointwise/functions_int.inc"
#undef FN
#define FN(name, ...) [TOR_FN_##name][TOR_int16] = name##_int16,
#include "kernels/pointwise/functions_int.inc"
#undef FN
#define FN(name, ...) [TOR_FN_##name][TOR_int32] = name##_int32,
#include "kernels/pointwise/functions_int.inc"
#undef FN
#define FN(name, ...) [TOR_FN_##name][TOR_int64] = name##_int64,
#include "kernels/pointwise/functions_int.inc"
#undef FN
#define FN(name, ...) [TOR_FN_##name][TOR_float64] = name##_float64,
#include "kernels/pointwise/functions_float.inc"
#undef FN
#define RARE_ONLY
#define FN(name, ...) [TOR_FN_##name][TOR_float32] = name##_float32,
#include "kernels/pointwise/functions_float.inc"
#undef FN
};

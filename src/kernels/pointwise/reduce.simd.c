// Reductions of a tile, and those column reductions that no elementwise function does.
//
// Policy: floats in their own type over 4 vectors of lanes, combined pairwise (moments that
// overflow: in float64, in order); integers modulo 2^64. Tiles hold at least one element.
#include <float.h>
#include <string.h>

#include "base/simd.h"
#include "kernels/pointwise/engine.h"

typedef struct {
    union {
        double f;
        int64_t i;
    };
    int64_t at;
} TorColumnBest;

#define S bool_
#define T uint8_t
#include "kernels/pointwise/reduce_int_tmpl.h"
#define S uint8
#define T uint8_t
#include "kernels/pointwise/reduce_int_tmpl.h"
#define S int8
#define T int8_t
#include "kernels/pointwise/reduce_int_tmpl.h"
#define S int16
#define T int16_t
#include "kernels/pointwise/reduce_int_tmpl.h"
#define S int32
#define T int32_t
#include "kernels/pointwise/reduce_int_tmpl.h"
#define S int64
#define T int64_t
#include "kernels/pointwise/reduce_int_tmpl.h"

typedef int32_t int_float32;
typedef int64_t int_float64;
#if VF32 == 16
static const vi32 first_float32 = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static const vi64 first_float64 = {0, 1, 2, 3, 4, 5, 6, 7};
#elif VF32 == 8
static const vi32 first_float32 = {0, 1, 2, 3, 4, 5, 6, 7};
static const vi64 first_float64 = {0, 1, 2, 3};
#else
static const vi32 first_float32 = {0, 1, 2, 3};
static const vi64 first_float64 = {0, 1};
#endif
#define S float32
#define T float
#define V vf32
#define VI vi32
#define LANES VF32
#include "kernels/pointwise/reduce_float_tmpl.h"
#define S float64
#define T double
#define V vf64
#define VI vi64
#define LANES VF64
#include "kernels/pointwise/reduce_float_tmpl.h"

#define EACH_TYPE(X, name)                                                                        \
    {                                                                                             \
        [TOR_bool] = X(name, bool_), [TOR_uint8] = X(name, uint8), [TOR_int8] = X(name, int8),    \
        [TOR_int16] = X(name, int16), [TOR_int32] = X(name, int32), [TOR_int64] = X(name, int64), \
        [TOR_float32] = X(name, float32), [TOR_float64] = X(name, float64)                        \
    }
#define PARTIAL(name, type) name##_##type
#define COLUMN(name, type) column_##name##_##type

extern const TorPartialFn TOR_KERNEL(tor_reduce_partial_any)[TOR_REDUCE_KINDS][TOR_DTYPE_COUNT];
const TorPartialFn TOR_KERNEL(tor_reduce_partial_any)[TOR_REDUCE_KINDS][TOR_DTYPE_COUNT] = {
    [TOR_REDUCE_sum] = EACH_TYPE(PARTIAL, sum),
    [TOR_REDUCE_prod] = EACH_TYPE(PARTIAL, prod),
    [TOR_REDUCE_max] = EACH_TYPE(PARTIAL, max),
    [TOR_REDUCE_min] = EACH_TYPE(PARTIAL, min),
    [TOR_REDUCE_argmax] = EACH_TYPE(PARTIAL, argmax),
    [TOR_REDUCE_argmin] = EACH_TYPE(PARTIAL, argmin),
    [TOR_REDUCE_any] = EACH_TYPE(PARTIAL, any),
    [TOR_REDUCE_all] = EACH_TYPE(PARTIAL, all),
    [TOR_REDUCE_moments] = {[TOR_float32] = moments_float32, [TOR_float64] = moments_float64},
};
extern const TorColumnFn TOR_KERNEL(tor_reduce_column_any)[TOR_REDUCE_KINDS][TOR_DTYPE_COUNT];
const TorColumnFn TOR_KERNEL(tor_reduce_column_any)[TOR_REDUCE_KINDS][TOR_DTYPE_COUNT] = {
    [TOR_REDUCE_sum] = {[TOR_float32] = column_sum_float32, [TOR_float64] = column_sum_float64},
    [TOR_REDUCE_argmax] = EACH_TYPE(COLUMN, argmax),
    [TOR_REDUCE_argmin] = EACH_TYPE(COLUMN, argmin),
    [TOR_REDUCE_moments] =
        {[TOR_float32] = column_moments_float32, [TOR_float64] = column_moments_float64},
};
void TOR_KERNEL(tor_reduce_columns_f32)(void *, const void *, int64_t, int64_t, int64_t);
void TOR_KERNEL(tor_reduce_columns_f32)(void *state, const void *x, int64_t stride, int64_t rows,
                                        int64_t n) {
    column_rows_float32(state, x, stride, rows, n);
}
void TOR_KERNEL(tor_reduce_columns_f64)(void *, const void *, int64_t, int64_t, int64_t);
void TOR_KERNEL(tor_reduce_columns_f64)(void *state, const void *x, int64_t stride, int64_t rows,
                                        int64_t n) {
    column_rows_float64(state, x, stride, rows, n);
}

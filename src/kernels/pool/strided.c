/// Pooling for any dtype and strides: one window at a time, loops made for each dtype by template.
#include <math.h>

#include "kernels/pool/window.h"

#define T float
#define ACC float
#define LOAD(x) (x)
#define STORE(x) (x)
#define IS_NAN(x) isnan(x)
#define NAN_VALUE NAN
#define LOWEST (-INFINITY)
#define NAME run_float32
#include "kernels/pool/strided_tmpl.h"

#define T double
#define ACC double
#define LOAD(x) (x)
#define STORE(x) (x)
#define IS_NAN(x) isnan(x)
#define NAN_VALUE NAN
#define LOWEST (-(double)INFINITY)
#define NAME run_float64
#include "kernels/pool/strided_tmpl.h"

#define T uint16_t
#define ACC float
#define LOAD(x) tor_f16_to_f32(x)
#define STORE(x) tor_f32_to_f16(x)
#define IS_NAN(x) isnan(x)
#define NAN_VALUE NAN
#define LOWEST (-INFINITY)
#define NAME run_float16
#include "kernels/pool/strided_tmpl.h"

#define T uint16_t
#define ACC float
#define LOAD(x) tor_bf16_to_f32(x)
#define STORE(x) tor_f32_to_bf16(x)
#define IS_NAN(x) isnan(x)
#define NAN_VALUE NAN
#define LOWEST (-INFINITY)
#define NAME run_bfloat16
#include "kernels/pool/strided_tmpl.h"

#define T int64_t
#define ACC int64_t
#define LOAD(x) (x)
#define STORE(x) (x)
#define IS_NAN(x) false
#define NAN_VALUE 0
#define LOWEST INT64_MIN
#define NAME run_int64
#include "kernels/pool/strided_tmpl.h"

#define T int32_t
#define ACC int32_t
#define LOAD(x) (x)
#define STORE(x) (x)
#define IS_NAN(x) false
#define NAN_VALUE 0
#define LOWEST INT32_MIN
#define NAME run_int32
#include "kernels/pool/strided_tmpl.h"

#define T int16_t
#define ACC int32_t
#define LOAD(x) (x)
#define STORE(x) ((int16_t)(x))
#define IS_NAN(x) false
#define NAN_VALUE 0
#define LOWEST INT16_MIN
#define NAME run_int16
#include "kernels/pool/strided_tmpl.h"

#define T int8_t
#define ACC int32_t
#define LOAD(x) (x)
#define STORE(x) ((int8_t)(x))
#define IS_NAN(x) false
#define NAN_VALUE 0
#define LOWEST INT8_MIN
#define NAME run_int8
#include "kernels/pool/strided_tmpl.h"

#define T uint8_t
#define ACC int32_t
#define LOAD(x) (x)
#define STORE(x) ((uint8_t)(x))
#define IS_NAN(x) false
#define NAN_VALUE 0
#define LOWEST 0
#define NAME run_uint8
#include "kernels/pool/strided_tmpl.h"

void tor_pool_any__generic_strided(const void *arg, int64_t begin, int64_t end, void *scratch);

void tor_pool_any__generic_strided(const void *arg, int64_t begin, int64_t end, void *scratch) {
    static void (*const run[TOR_DTYPE_COUNT])(const TorPoolArgs *, int64_t, int64_t) = {
        [TOR_bool] = run_uint8,      [TOR_uint8] = run_uint8,       [TOR_int8] = run_int8,
        [TOR_int16] = run_int16,     [TOR_int32] = run_int32,       [TOR_int64] = run_int64,
        [TOR_float16] = run_float16, [TOR_bfloat16] = run_bfloat16, [TOR_float32] = run_float32,
        [TOR_float64] = run_float64,
    };
    (void)scratch;
    const TorPoolArgs *args = arg;
    run[args->dtype](args, begin, end);
}

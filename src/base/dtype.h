/// Element types, their sizes, and conversion of the half types.
#ifndef TOR_BASE_DTYPE_H
#define TOR_BASE_DTYPE_H

#include "base/status.h"

/// name, bytes, kind (b bool, u unsigned, i signed, f float)
#define TOR_DTYPES(X)   \
    X(bool, 1, 'b')     \
    X(uint8, 1, 'u')    \
    X(int8, 1, 'i')     \
    X(int16, 2, 'i')    \
    X(int32, 4, 'i')    \
    X(int64, 8, 'i')    \
    X(float16, 2, 'f')  \
    X(bfloat16, 2, 'f') \
    X(float32, 4, 'f')  \
    X(float64, 8, 'f')

typedef enum {
#define X(name, bytes, kind) TOR_##name,
    TOR_DTYPES(X)
#undef X
        TOR_DTYPE_COUNT
} TorDtype;

size_t tor_dtype_size(TorDtype dtype);       ///< bytes an element
const char *tor_dtype_name(TorDtype dtype);  ///< "float32"
char tor_dtype_kind(TorDtype dtype);         ///< 'b', 'u', 'i' or 'f'
static inline bool tor_dtype_is_float(TorDtype d) { return d >= TOR_float16; }
static inline bool tor_dtype_is_half(TorDtype d) { return d == TOR_float16 || d == TOR_bfloat16; }
/// Type in which a value of `dtype` is computed: float32 for the half types, itself otherwise.
static inline TorDtype tor_dtype_compute(TorDtype d) {
    return tor_dtype_is_half(d) ? TOR_float32 : d;
}
/// @return TOROID_UNSUPPORTED for a name that is no TorDtype ("complex64")
ToroidStatus tor_dtype_parse(TorDtype *out, const char *name);

/// Round to nearest even; NaN stays NaN (quiet); overflow gives infinity; subnormals are kept.
float tor_f16_to_f32(uint16_t bits);
uint16_t tor_f32_to_f16(float value);
float tor_bf16_to_f32(uint16_t bits);
uint16_t tor_f32_to_bf16(float value);

/// A scalar of any type, wide enough to be exact: `i` for bool and integers, `f` for floats.
typedef struct {
    TorDtype dtype;
    union {
        int64_t i;
        double f;
    };
} TorScalar;

/// Converts with C's rules for eager's casts (float to integer truncates; to bool: != 0; ints
/// wrap).
TorScalar tor_scalar_cast(TorScalar value, TorDtype dtype);
TorScalar tor_scalar_load(const void *memory, TorDtype dtype);
void tor_scalar_store(void *memory, TorScalar value);  ///< stores as value.dtype

#endif

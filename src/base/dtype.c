// Element types. Scalars here follow eager's casts; the kernels have vector versions of the same.
#include "base/dtype.h"

#include <string.h>

static const struct {
    const char *name;
    uint8_t bytes;
    char kind;
} types[TOR_DTYPE_COUNT] = {
#define X(name, bytes, kind) {#name, bytes, kind},
    TOR_DTYPES(X)
#undef X
};

size_t tor_dtype_size(TorDtype dtype) { return types[dtype].bytes; }
const char *tor_dtype_name(TorDtype dtype) { return types[dtype].name; }
char tor_dtype_kind(TorDtype dtype) { return types[dtype].kind; }

ToroidStatus tor_dtype_parse(TorDtype *out, const char *name) {
    for (int i = 0; i < TOR_DTYPE_COUNT; i++) {
        if (strcmp(types[i].name, name) == 0) {
            *out = (TorDtype)i;
            return TOROID_OK;
        }
    }
    return tor_refuse("dtype %s is not supported", name);
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

float tor_f16_to_f32(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t exponent = (half >> 10) & 0x1f, mantissa = half & 0x3ff;
    if (exponent == 0x1f) {
        // The quiet bit is set, as the conversion instructions do.
        uint32_t quiet = mantissa != 0 ? 0x400000 : 0;
        return float_of(sign | 0x7f800000 | quiet | mantissa << 13);
    }
    if (exponent != 0) return float_of(sign | (exponent + 112) << 23 | mantissa << 13);
    // A subnormal half is a multiple of 2^-24, which float32 holds exactly.
    float magnitude = (float)mantissa * 0x1p-24f;
    return float_of(sign | bits_of(magnitude));
}

uint16_t tor_f32_to_f16(float value) {
    uint32_t bits = bits_of(value);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    if (magnitude >= 0x477ff000)
        return (uint16_t)(sign | 0x7c00);  // 65520 and up round to infinity
    if (magnitude >= 0x38800000) {
        // Half of the last place, less one if that place is even: ties go to even.
        uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
        return (uint16_t)(sign | ((rounded >> 13) - (112 << 10)));
    }
    if (magnitude <= 0x33000000) return sign;  // 2^-25 is a tie with zero
    uint32_t shift = 126 - (magnitude >> 23);  // 14 to 24: one mantissa bit here is 2^(shift-24)
    uint32_t mantissa = (magnitude & 0x7fffff) | 0x800000;
    uint32_t kept = mantissa >> shift, rest = mantissa & ((1u << shift) - 1),
             tie = 1u << (shift - 1);
    kept += rest > tie || (rest == tie && (kept & 1));
    return (uint16_t)(sign | kept);
}

float tor_bf16_to_f32(uint16_t bits) { return float_of((uint32_t)bits << 16); }

uint16_t tor_f32_to_bf16(float value) {
    uint32_t bits = bits_of(value);
    if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// Out of range or NaN, C leaves the result open. These give what x86's conversions give, which is
// what eager gives there, on every machine.
static int64_t int64_of(double value) {
    return value >= -0x1p63 && value < 0x1p63 ? (int64_t)value : INT64_MIN;
}

static int32_t int32_of(double value) {
    return value > -0x1p31 - 1 && value < 0x1p31 ? (int32_t)value : INT32_MIN;
}

static int64_t wrap(int64_t value, TorDtype dtype) {
    switch (dtype) {
        case TOR_bool: return value != 0;
        case TOR_uint8: return (uint8_t)value;
        case TOR_int8: return (int8_t)value;
        case TOR_int16: return (int16_t)value;
        case TOR_int32: return (int32_t)value;
        default: return value;
    }
}

static int64_t integer_of(double value, TorDtype dtype) {
    switch (dtype) {
        case TOR_bool: return value != 0;  // NaN is true
        case TOR_uint8:                    // eager goes through int64 for this one
        case TOR_int64: return wrap(int64_of(value), dtype);
        default: return wrap(int32_of(value), dtype);
    }
}

static double round_to(float value, TorDtype dtype) {
    if (dtype == TOR_float16) return (double)tor_f16_to_f32(tor_f32_to_f16(value));
    if (dtype == TOR_bfloat16) return (double)tor_bf16_to_f32(tor_f32_to_bf16(value));
    return (double)value;
}

TorScalar tor_scalar_cast(TorScalar value, TorDtype dtype) {
    TorScalar out = {.dtype = dtype};
    bool from_float = tor_dtype_is_float(value.dtype);
    if (!tor_dtype_is_float(dtype)) {
        out.i = from_float ? integer_of(value.f, dtype) : wrap(value.i, dtype);
    } else if (dtype == TOR_float64) {
        out.f = from_float ? value.f : (double)value.i;
    } else {
        // Half types are reached through float32 from every type, as in eager.
        out.f = round_to(from_float ? (float)value.f : (float)value.i, dtype);
    }
    return out;
}

#define LOAD(type, field)                   \
    do {                                    \
        type item;                          \
        memcpy(&item, memory, sizeof item); \
        out.field = item;                   \
    } while (0)

TorScalar tor_scalar_load(const void *memory, TorDtype dtype) {
    TorScalar out = {.dtype = dtype};
    uint16_t half;
    switch (dtype) {
        case TOR_bool: out.i = *(const uint8_t *)memory != 0; break;
        case TOR_uint8: LOAD(uint8_t, i); break;
        case TOR_int8: LOAD(int8_t, i); break;
        case TOR_int16: LOAD(int16_t, i); break;
        case TOR_int32: LOAD(int32_t, i); break;
        case TOR_int64: LOAD(int64_t, i); break;
        case TOR_float16:
            memcpy(&half, memory, sizeof half);
            out.f = (double)tor_f16_to_f32(half);
            break;
        case TOR_bfloat16:
            memcpy(&half, memory, sizeof half);
            out.f = (double)tor_bf16_to_f32(half);
            break;
        case TOR_float32: {
            float item;
            memcpy(&item, memory, sizeof item);
            out.f = (double)item;
            break;
        }
        case TOR_float64: LOAD(double, f); break;
        case TOR_DTYPE_COUNT: break;
    }
    return out;
}

#define STORE(type, value_)                 \
    do {                                    \
        type item = (type)(value_);         \
        memcpy(memory, &item, sizeof item); \
    } while (0)

void tor_scalar_store(void *memory, TorScalar value) {
    switch (value.dtype) {
        case TOR_bool: STORE(uint8_t, value.i != 0); break;
        case TOR_uint8: STORE(uint8_t, value.i); break;
        case TOR_int8: STORE(int8_t, value.i); break;
        case TOR_int16: STORE(int16_t, value.i); break;
        case TOR_int32: STORE(int32_t, value.i); break;
        case TOR_int64: STORE(int64_t, value.i); break;
        case TOR_float16: STORE(uint16_t, tor_f32_to_f16((float)value.f)); break;
        case TOR_bfloat16: STORE(uint16_t, tor_f32_to_bf16((float)value.f)); break;
        case TOR_float32: STORE(float, value.f); break;
        case TOR_float64: STORE(double, value.f); break;
        case TOR_DTYPE_COUNT: break;
    }
}

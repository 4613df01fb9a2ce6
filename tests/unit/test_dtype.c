// Conversions of the half types against arithmetic, every half there is, and eager's scalar casts.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/dtype.h"

typedef struct {
    int mantissa_bits, bias;
    float (*widen)(uint16_t);
    uint16_t (*narrow)(float);
} Format;

static const Format f16 = {10, 15, tor_f16_to_f32, tor_f32_to_f16};
static const Format bf16 = {7, 127, tor_bf16_to_f32, tor_f32_to_bf16};

// The number that the bits stand for, by the definition of the format.
static double meaning(const Format *format, uint16_t bits) {
    int mantissa = bits & ((1 << format->mantissa_bits) - 1);
    int exponent = (bits & 0x7fff) >> format->mantissa_bits;
    int top = (1 << (15 - format->mantissa_bits)) - 1;
    double sign = bits & 0x8000 ? -1 : 1;
    if (exponent == top) return mantissa != 0 ? NAN : sign * HUGE_VAL;
    double fraction = ldexp(mantissa, -format->mantissa_bits);
    if (exponent == 0) return sign * ldexp(fraction, 1 - format->bias);
    return sign * ldexp(1 + fraction, exponent - format->bias);
}

static void check_every_value(const Format *format) {
    for (uint32_t bits = 0; bits < 65536; bits++) {
        double right = meaning(format, (uint16_t)bits);
        float wide = format->widen((uint16_t)bits);
        if (isnan(right)) {
            assert_true(isnan(wide));
            assert_true(isnan(format->widen(format->narrow(wide))));
            assert_int_equal(format->narrow(wide) & 0x8000, bits & 0x8000);
            continue;
        }
        assert_true((double)wide == right);
        assert_int_equal(signbit(wide) != 0, signbit(right) != 0);
        assert_int_equal(format->narrow(wide), bits);
    }
}

// Between each half and the next one: below the middle goes down, above goes up, the middle to
// even.
static void check_every_rounding(const Format *format) {
    int top = (1 << (15 - format->mantissa_bits)) - 1;
    uint32_t infinity = (uint32_t)top << format->mantissa_bits;
    for (uint32_t bits = 0; bits < infinity; bits++) {
        double low = meaning(format, (uint16_t)bits);
        // Past the largest half the next step would be where infinity stands.
        double step = bits + 1 < infinity ? meaning(format, (uint16_t)(bits + 1)) - low
                                          : low - meaning(format, (uint16_t)(bits - 1));
        float middle = (float)(low + step / 2);
        if (isinf(middle)) continue;
        uint32_t even = bits + (bits & 1);
        assert_int_equal(format->narrow(middle), even);
        assert_int_equal(format->narrow(-middle), even | 0x8000);
        assert_int_equal(format->narrow(nextafterf(middle, 0)), bits);
        assert_int_equal(format->narrow(nextafterf(middle, HUGE_VALF)), bits + 1);
    }
}

static void test_f16(void **state) {
    (void)state;
    check_every_value(&f16);
    check_every_rounding(&f16);
    assert_int_equal(tor_f32_to_f16(65504), 0x7bff);
    assert_int_equal(tor_f32_to_f16(65519.996f), 0x7bff);
    assert_int_equal(tor_f32_to_f16(65520), 0x7c00);
    assert_int_equal(tor_f32_to_f16(3e38f), 0x7c00);
    assert_int_equal(tor_f32_to_f16(-HUGE_VALF), 0xfc00);
    assert_int_equal(tor_f32_to_f16(1e-45f), 0);
    assert_int_equal(tor_f32_to_f16(-1e-45f), 0x8000);
}

static void test_bf16(void **state) {
    (void)state;
    check_every_value(&bf16);
    check_every_rounding(&bf16);
    assert_int_equal(tor_f32_to_bf16(3.4028235e38f), 0x7f80);
    assert_int_equal(tor_f32_to_bf16(1), 0x3f80);
}

static void test_names(void **state) {
    (void)state;
    TorDtype dtype;
    for (int i = 0; i < TOR_DTYPE_COUNT; i++) {
        assert_int_equal(tor_dtype_parse(&dtype, tor_dtype_name((TorDtype)i)), TOROID_OK);
        assert_int_equal(dtype, i);
    }
    assert_int_equal(tor_dtype_parse(&dtype, "complex64"), TOROID_UNSUPPORTED);
    assert_non_null(strstr(toroid_last_error(), "complex64"));
    assert_int_equal(tor_dtype_size(TOR_bfloat16), 2);
    assert_int_equal(tor_dtype_kind(TOR_bool), 'b');
    assert_true(tor_dtype_is_float(TOR_float16) && !tor_dtype_is_float(TOR_int64));
    assert_int_equal(tor_dtype_compute(TOR_float16), TOR_float32);
    assert_int_equal(tor_dtype_compute(TOR_int8), TOR_int8);
}

static void test_load_and_store(void **state) {
    (void)state;
    for (int i = 0; i < TOR_DTYPE_COUNT; i++) {
        TorDtype dtype = (TorDtype)i;
        unsigned char bytes[17];
        memset(bytes, 0x5a, sizeof bytes);
        TorScalar one = {.dtype = dtype};
        if (tor_dtype_is_float(dtype)) {
            one.f = 1;
        } else {
            one.i = 1;
        }
        tor_scalar_store(bytes + 1, one);  // at an odd address
        assert_int_equal(bytes[0], 0x5a);
        assert_int_equal(bytes[1 + tor_dtype_size(dtype)], 0x5a);
        TorScalar read = tor_scalar_load(bytes + 1, dtype);
        assert_int_equal(read.dtype, dtype);
        if (tor_dtype_is_float(dtype)) {
            assert_true(read.f == 1);
        } else {
            assert_int_equal(read.i, 1);
        }
    }
}

static int64_t int_of_float(double value, TorDtype dtype) {
    return tor_scalar_cast((TorScalar){.dtype = TOR_float64, .f = value}, dtype).i;
}

static int64_t int_of_int(int64_t value, TorDtype dtype) {
    return tor_scalar_cast((TorScalar){.dtype = TOR_int64, .i = value}, dtype).i;
}

static double float_of_int(int64_t value, TorDtype dtype) {
    return tor_scalar_cast((TorScalar){.dtype = TOR_int64, .i = value}, dtype).f;
}

static void test_casts(void **state) {
    (void)state;
    assert_int_equal(int_of_float(-2.9, TOR_int32), -2);
    assert_int_equal(int_of_float(300.7, TOR_int8), 44);
    assert_int_equal(int_of_float(300.7, TOR_uint8), 44);
    assert_int_equal(int_of_float(-1, TOR_uint8), 255);
    assert_int_equal(int_of_float(NAN, TOR_bool), 1);
    assert_int_equal(int_of_float(1e-300, TOR_bool), 1);
    assert_int_equal(int_of_float(-0.0, TOR_bool), 0);
    assert_int_equal(int_of_float(NAN, TOR_int64), INT64_MIN);
    assert_int_equal(int_of_float(1e30, TOR_int64), INT64_MIN);
    assert_int_equal(int_of_float(3e9, TOR_int32), INT32_MIN);
    assert_int_equal(int_of_float(-2147483648.5, TOR_int32), INT32_MIN);
    assert_int_equal(int_of_float(NAN, TOR_int8), 0);
    assert_int_equal(int_of_int(-1, TOR_uint8), 255);
    assert_int_equal(int_of_int(128, TOR_int8), -128);
    assert_int_equal(int_of_int(256, TOR_bool), 1);
    assert_int_equal(int_of_int((int64_t)1 << 32 | 5, TOR_int32), 5);
    // To float32 from int64 at once: 2^60 + 2^36 + 1 is just above a tie, which double would hide.
    int64_t above_tie = ((int64_t)1 << 60) + ((int64_t)1 << 36) + 1;
    assert_true(float_of_int(above_tie, TOR_float32) == ldexp(1, 60) + ldexp(1, 37));
    assert_true(float_of_int(2049, TOR_float16) == 2048);
    assert_true(float_of_int(70000, TOR_float16) == HUGE_VAL);
    assert_true(float_of_int(257, TOR_bfloat16) == 256);
    assert_true(float_of_int(INT64_MAX, TOR_float64) == ldexp(1, 63));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f16),   cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_names), cmocka_unit_test(test_load_and_store),
        cmocka_unit_test(test_casts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/// Type promotion, after c10/core/ScalarType.cpp and ATen/native/TypeProperties.cpp of PyTorch.
#include "aten/promote.h"

TorDtype tor_promote_types(TorDtype a, TorDtype b) {
    if (a == b) return a;
    if (a > b) {
        TorDtype t = a;
        a = b;
        b = t;
    }
    // Now a < b in the order bool, uint8, int8 .. int64, float16, bfloat16, float32, float64.
    if (a == TOR_uint8 && b == TOR_int8) return TOR_int16;
    if (a == TOR_float16 && b == TOR_bfloat16) return TOR_float32;
    return b;
}

static int join(int a, TorDtype b) {
    return a < 0 ? (int)b : (int)tor_promote_types((TorDtype)a, b);
}

void tor_promote_tensor(TorPromotion *p, TorDtype dtype, int rank) {
    if (rank > 0)
        p->dim = join(p->dim, dtype);
    else
        p->zero = join(p->zero, dtype);
}

void tor_promote_number(TorPromotion *p, TorDtype dtype) {
    p->number = join(p->number, dtype == TOR_float64 ? TOR_float32 : dtype);
}

static int combine(int higher, int lower) {
    if (higher < 0) return lower;
    if (lower < 0 || tor_dtype_is_float((TorDtype)higher)) return higher;
    if (higher == TOR_bool || tor_dtype_is_float((TorDtype)lower))
        return (int)tor_promote_types((TorDtype)higher, (TorDtype)lower);
    return higher;
}

TorDtype tor_promote_result(const TorPromotion *p) {
    int result = combine(p->dim, combine(p->zero, p->number));
    return result < 0 ? TOR_float32 : (TorDtype)result;
}

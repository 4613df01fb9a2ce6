/// Elementwise arithmetic, unary and binary, that maps onto scalar functions.
///
/// Half types: eager computes most ops on operands rounded to the half type. mul, div and the
/// integer divisions take a number or a tensor of one element on the right in float32, not rounded
/// first; so do we (measured on 2.13; BinaryOpsKernel.cpp).
#include "aten/build.h"
#include "aten/tables.h"

#include <math.h>

static bool is_float_only(TorOp op) { return op == TOR_OP_div || op == TOR_OP_atan2; }

static bool keeps_right_wide(TorOp op) {
    return op == TOR_OP_mul || op == TOR_OP_div || op == TOR_OP_div_trunc || op == TOR_OP_div_floor;
}

static bool has_one_element(const TorCall *c, const TorValue *v) {
    for (int d = 0; d < v->rank; d++)
        if (!tor_int_is(c->g, v->dim[d], 1)) return false;
    return true;
}

static TorValue *apply_bool(TorCall *c, TorOp op, TorOperand a, TorOperand b) {
    switch (op) {
        case TOR_OP_add:
        case TOR_OP_maximum:
        case TOR_OP_fmax: op = TOR_OP_bit_or; break;
        case TOR_OP_mul:
        case TOR_OP_minimum:
        case TOR_OP_fmin: op = TOR_OP_bit_and; break;
        case TOR_OP_bit_and:
        case TOR_OP_bit_or:
        case TOR_OP_bit_xor: break;
        default: tor_im_refuse(c, "bool operands are not supported"); return NULL;
    }
    return tor_im_map(c, op, tor_im_convert(c, a, TOR_bool, true),
                      tor_im_convert(c, b, TOR_bool, true), NULL);
}

static TorValue *apply(TorCall *c, TorOp op, TorOperand a, TorOperand b) {
    if (c->status) return NULL;
    TorOperand both[] = {a, b};
    TorDtype t = tor_im_promote(both, 2);
    if ((is_float_only(op) || op == TOR_OP_copysign) && !tor_dtype_is_float(t)) t = TOR_float32;
    if (t == TOR_bool) return apply_bool(c, op, a, b);
    bool bits = op == TOR_OP_bit_and || op == TOR_OP_bit_or || op == TOR_OP_bit_xor ||
                op == TOR_OP_shift_left || op == TOR_OP_shift_right;
    if (bits && tor_dtype_is_float(t)) {
        tor_im_refuse(c, "expected integers, got %s", tor_dtype_name(t));
        return NULL;
    }
    // Eager rounds the quotient of two half tensors before it truncates.
    if (op == TOR_OP_div_trunc && tor_dtype_is_half(t) && !b.is_number && b.value->rank > 0)
        return F1(trunc, apply(c, TOR_OP_div, a, b));
    bool wide = keeps_right_wide(op);
    if (wide && tor_dtype_is_half(t) && b.value && has_one_element(c, b.value) &&
        b.value->dtype != t && !(a.value && a.value->rank == 0)) {
        TorValue *r = tor_im_map(c, op, tor_im_up(c, tor_im_convert(c, a, t, true)),
                                 tor_im_cast(c, b.value, TOR_float32), NULL);
        return tor_im_cast(c, r, t);
    }
    return tor_im_map(c, op, tor_im_convert(c, a, t, true), tor_im_convert(c, b, t, !wide), NULL);
}

static ToroidStatus import_binary(TorCall *c) {
    TorOperand a = tor_im_operand(c, 0), b = tor_im_operand(c, 1);
    return RETURN(apply(c, (TorOp)c->row->op, a, b));
}

/// a + alpha * b, a - alpha * b
static TorValue *apply_scaled(TorCall *c, TorOp op, TorOperand a, TorOperand b, TorOperand alpha) {
    if (c->status) return NULL;
    if (!alpha.is_number || alpha.value) {
        tor_im_refuse(c, "argument 'alpha': expected a number that is known when compiling");
        return NULL;
    }
    double factor = tor_scalar_cast(alpha.number, TOR_float64).f;
    if (factor == 1) return apply(c, op, a, b);
    TorOperand both[] = {a, b};
    TorDtype t = tor_im_promote(both, 2);
    if (t == TOR_bool || (!tor_dtype_is_float(t) && alpha.number.dtype == TOR_float64)) {
        tor_im_refuse(c, "argument 'alpha': expected a number of the category of %s",
                      tor_dtype_name(t));
        return NULL;
    }
    TorValue *x = tor_im_up(c, tor_im_convert(c, a, t, true)), *scaled;
    if (b.value) {
        scaled = F2(mul, tor_im_up(c, tor_im_convert(c, b, t, true)),
                    tor_im_convert(c, alpha, tor_dtype_compute(t), false));
    } else {  // two numbers: a node of numbers alone would be no number
        if (tor_dtype_is_float(t))
            b.number = (TorScalar){.dtype = TOR_float64,
                                   .f = tor_scalar_cast(b.number, TOR_float64).f * factor};
        else
            b.number = (TorScalar){.dtype = TOR_int64, .i = b.number.i * alpha.number.i};
        scaled = tor_im_convert(c, b, t, false);
    }
    return tor_im_cast(c, tor_im_map(c, op, x, scaled, NULL), t);
}

static ToroidStatus import_add(TorCall *c) {
    TorOperand a = tor_im_operand(c, 0), b = tor_im_operand(c, 1), alpha = tor_im_operand(c, 2);
    return RETURN(apply_scaled(c, (TorOp)c->row->op, a, b, alpha));
}

static ToroidStatus import_rsub(TorCall *c) {
    TorOperand a = tor_im_operand(c, 0), b = tor_im_operand(c, 1), alpha = tor_im_operand(c, 2);
    return RETURN(apply_scaled(c, TOR_OP_sub, b, a, alpha));
}

static ToroidStatus import_div_mode(TorCall *c) {
    TorOperand a = tor_im_operand(c, 0), b = tor_im_operand(c, 1);
    const char *mode = tor_im_str(c, 2, "");
    if (mode[0] == 't') return RETURN(apply(c, TOR_OP_div_trunc, a, b));
    if (mode[0] == 'f') return RETURN(apply(c, TOR_OP_div_floor, a, b));
    return RETURN(apply(c, TOR_OP_div, a, b));
}

// ---------------------------------------------------------------- powers

/// PyTorch writes these exponents as products and roots (pow_tensor_scalar_optimized_kernel).
static TorValue *easy_power(TorCall *c, TorValue *x, double e) {
    if (e == 2) return F2(mul, x, x);
    if (e == 3) return F2(mul, F2(mul, x, x), x);
    if (!tor_dtype_is_float(x->dtype)) return NULL;
    if (e == 0.5) return F1(sqrt, x);
    if (e == -0.5) return F1(rsqrt, x);
    if (e == -1) return F1(reciprocal, x);
    if (e == -2) return F1(reciprocal, F2(mul, x, x));
    return NULL;
}

static ToroidStatus import_pow_scalar(TorCall *c) {
    TorOperand base = tor_im_operand(c, 0), e = tor_im_operand(c, 1);
    if (c->status) return c->status;
    if (!e.is_number || e.value || !base.value) return RETURN(apply(c, TOR_OP_pow, base, e));
    TorOperand both[] = {base, e};
    TorDtype t = tor_im_promote(both, 2);
    double exponent = tor_scalar_cast(e.number, TOR_float64).f;
    TorValue *x = tor_im_cast(c, base.value, t);
    if (!x) return c->status;
    if (exponent == 0)
        return RETURN(tor_im_full(c, (TorScalar){.dtype = TOR_int64, .i = 1}, t, x->rank, x->dim));
    if (exponent == 1) return RETURN(tor_im_contiguous(c, x));
    if (t == TOR_bool) return tor_im_refuse(c, "bool operands are not supported");
    if (!tor_dtype_is_float(t) && exponent < 0)
        return tor_im_refuse(c, "integers to negative powers are not allowed");
    TorValue *easy = easy_power(c, x, exponent);
    return RETURN(easy || c->status ? easy : F2(pow, x, tor_im_convert(c, e, t, true)));
}

static ToroidStatus import_pow_base(TorCall *c) {
    TorOperand base = tor_im_operand(c, 0), e = tor_im_operand(c, 1);
    TorOperand both[] = {base, e};
    if (c->status) return c->status;
    if (e.value && base.is_number && !base.value &&
        tor_scalar_cast(base.number, TOR_float64).f == 1)
        return RETURN(tor_im_full(c, (TorScalar){.dtype = TOR_int64, .i = 1},
                                  tor_im_promote(both, 2), e.value->rank, e.value->dim));
    return RETURN(apply(c, TOR_OP_pow, base, e));
}

// ---------------------------------------------------------------- unary

/// Functions that give floats: integers are taken to the default type first.
static ToroidStatus import_float_unary(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (x && !tor_dtype_is_float(x->dtype)) x = tor_im_cast(c, x, TOR_float32);
    return RETURN(tor_im_map(c, (TorOp)c->row->op, x, NULL, NULL));
}

/// Functions that keep their type, and refuse bool.
static ToroidStatus import_unary(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (x && x->dtype == TOR_bool) return tor_im_refuse(c, "bool operands are not supported");
    return RETURN(tor_im_map(c, (TorOp)c->row->op, x, NULL, NULL));
}

/// ceil, floor, round, trunc: integers stay as they are.
static ToroidStatus import_rounding(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (x && x->dtype == TOR_bool) return tor_im_refuse(c, "bool operands are not supported");
    if (x && !tor_dtype_is_float(x->dtype)) return RETURN(tor_im_contiguous(c, x));
    return RETURN(tor_im_map(c, (TorOp)c->row->op, x, NULL, NULL));
}

/// Functions of floats that eager refuses for integers.
static ToroidStatus import_float_only(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (x && !tor_dtype_is_float(x->dtype))
        return tor_im_refuse_arg(c, 0, "expected floats, got %s", tor_dtype_name(x->dtype));
    return RETURN(tor_im_map(c, (TorOp)c->row->op, x, NULL, NULL));
}

static ToroidStatus import_sign(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (x && x->dtype == TOR_bool) return RETURN(tor_im_contiguous(c, x));
    return RETURN(F1(sign, x));
}

static ToroidStatus import_bit_not(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (x && tor_dtype_is_float(x->dtype))
        return tor_im_refuse_arg(c, 0, "expected integers or bool");
    return RETURN(F1(bit_not, x));
}

static ToroidStatus import_square(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (x && x->dtype == TOR_bool) x = tor_im_cast(c, x, TOR_int64);
    return RETURN(F2(mul, x, x));
}

static ToroidStatus import_frac(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (x && !tor_dtype_is_float(x->dtype)) return tor_im_refuse_arg(c, 0, "expected floats");
    return RETURN(F2(sub, x, F1(trunc, x)));
}

/// The angle of real numbers: pi below 0, else 0; NaN stays.
static ToroidStatus import_angle(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (x && !tor_dtype_is_float(x->dtype)) x = tor_im_cast(c, x, TOR_float32);
    if (!x) return c->status;
    TorOperand pi = {.is_number = true, .number = {.dtype = TOR_float64, .f = M_PI}};
    TorValue *half_turn =
        F2(mul, tor_im_cast(c, F2(lt, x, NUM(0)), x->dtype), tor_im_convert(c, pi, x->dtype, true));
    return RETURN(F3(where, F1(isnan, x), x, half_turn));
}

/// To `decimals` places: scaled, rounded and scaled back, each in the type of self
/// (ATen/native/cpu/UnaryOpsKernel.cpp).
static ToroidStatus import_round_decimals(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    int64_t decimals = tor_im_int(c, 1);
    if (!x) return c->status;
    if (!tor_dtype_is_float(x->dtype)) return tor_im_refuse_arg(c, 0, "expected floats");
    if (decimals == 0) return RETURN(F1(round, x));
    TorOperand power = {.is_number = true, .number = {.dtype = TOR_float64}};
    power.number.f = pow(10, fabs((double)decimals));
    TorValue *scale = tor_im_convert(c, power, x->dtype, true);
    if (decimals > 0) return RETURN(F2(div, F1(round, F2(mul, x, scale)), scale));
    return RETURN(F2(mul, F1(round, F2(div, x, scale)), scale));
}

/// self * 2 ** other
static ToroidStatus import_ldexp(TorCall *c) {
    TorOperand x = tor_im_operand(c, 0), e = tor_im_operand(c, 1);
    TorOperand two = {.is_number = true, .number = {.dtype = TOR_float64, .f = 2}};
    TorValue *power = apply(c, TOR_OP_pow, two, e);
    return RETURN(power ? apply(c, TOR_OP_mul, x, tor_im_operand_of(power)) : NULL);
}

static ToroidStatus import_copy_of(TorCall *c) {
    return RETURN(tor_im_contiguous(c, tor_im_tensor(c, 0)));
}

// ---------------------------------------------------------------- ternary and composed

/// self + weight * (end - self); from the end where |weight| >= 0.5 (ATen/native/Lerp.h).
static ToroidStatus import_lerp(TorCall *c) {
    TorValue *a = tor_im_tensor(c, 0), *b = tor_im_tensor(c, 1);
    TorOperand w = tor_im_operand(c, 2);
    if (c->status) return c->status;
    if (a->dtype != b->dtype || !tor_dtype_is_float(a->dtype) ||
        (!w.is_number && w.value->dtype != a->dtype))
        return tor_im_refuse(c, "expected floats of one type");
    TorDtype t = a->dtype, wide = tor_dtype_compute(t);
    a = tor_im_up(c, a), b = tor_im_up(c, b);
    TorValue *d = F2(sub, b, a), *near, *far;
    if (w.is_number && !w.value) {
        double v = tor_scalar_cast(w.number, TOR_float64).f;
        near = F2(add, a, F2(mul, d, NUM(v)));
        far = F2(sub, b, F2(mul, d, NUM(1 - v)));
        return RETURN(tor_im_cast(c, fabs(v) < 0.5 ? near : far, t));
    }
    TorValue *v = tor_im_cast(c, w.value, wide);
    near = F2(add, a, F2(mul, v, d));
    far = F2(sub, b, F2(mul, d, F2(sub, NUM(1), v)));
    return RETURN(tor_im_cast(c, F3(where, F2(lt, F1(abs, v), NUM(0.5)), near, far), t));
}

/// self + value * t1 * t2, self + value * t1 / t2
static ToroidStatus import_addc(TorCall *c) {
    TorOperand o[] = {tor_im_operand(c, 0), tor_im_operand(c, 1), tor_im_operand(c, 2)};
    TorOperand value = tor_im_operand(c, 3);
    if (c->status) return c->status;
    TorDtype t = tor_im_promote(o, 3);
    bool divides = c->row->op == TOR_OP_div;
    if (t == TOR_bool || (divides && !tor_dtype_is_float(t)))
        return tor_im_refuse(c, "%s operands are not supported", tor_dtype_name(t));
    TorValue *x[3];
    for (int i = 0; i < 3; i++) x[i] = tor_im_up(c, tor_im_convert(c, o[i], t, true));
    bool one = !value.value && tor_scalar_cast(value.number, TOR_float64).f == 1;
    TorValue *scaled =
        one ? x[1] : F2(mul, x[1], tor_im_convert(c, value, tor_dtype_compute(t), false));
    return RETURN(
        tor_im_cast(c, F2(add, x[0], tor_im_map(c, (TorOp)c->row->op, scaled, x[2], NULL)), t));
}

enum { HYPOT, LOGADDEXP, LOGADDEXP2, XLOGY, XLOG1PY };

static ToroidStatus import_composed(TorCall *c) {
    TorOperand o[] = {tor_im_operand(c, 0), tor_im_operand(c, 1)};
    if (c->status) return c->status;
    TorDtype t = tor_im_promote(o, 2);
    int which = c->row->op;
    if (!tor_dtype_is_float(t)) {
        if (which == HYPOT) return tor_im_refuse(c, "expected floats");
        t = TOR_float32;
    }
    TorValue *x[2], *r;
    for (int i = 0; i < 2; i++)  // a number becomes a tensor, for functions of it alone
        x[i] = tor_im_up(c, o[i].value ? tor_im_cast(c, o[i].value, t)
                                       : tor_im_full(c, o[i].number, t, 0, NULL));
    TorValue *a = x[0], *b = x[1];
    if (!a || !b) return c->status;
    if (which == XLOGY || which == XLOG1PY) {
        // 0 where a is 0, NaN where b is NaN.
        r = F2(mul, a, which == XLOGY ? F1(log, b) : F1(log1p, b));
        r = F3(where, F2(eq, a, NUM(0)), NUM(0), r);
        r = F3(where, F1(isnan, b), b, r);
    } else {
        // From the larger of the two, so that nothing overflows.
        bool hypot_ = which == HYPOT;
        TorValue *high = hypot_ ? F2(maximum, F1(abs, a), F1(abs, b)) : F2(maximum, a, b);
        TorValue *low = hypot_ ? F2(minimum, F1(abs, a), F1(abs, b)) : F2(minimum, a, b);
        TorValue *d = hypot_ ? F2(div, low, high) : F2(sub, low, high);
        TorValue *equal = F2(eq, high, low);
        if (hypot_) {
            r = F2(mul, high, F1(sqrt, F2(add, F2(mul, d, d), NUM(1))));
            r = F3(where, F2(eq, low, NUM(0)), high, r);
            r = F3(where, F2(bit_or, F1(isinf, a), F1(isinf, b)), NUM(INFINITY), r);
        } else if (which == LOGADDEXP) {
            r = F2(add, high, F1(log1p, F1(exp, d)));
            r = F3(where, F2(bit_and, F1(isinf, high), equal), high, r);
        } else {
            r = F2(add, high, F2(mul, F1(log1p, F1(exp2, d)), NUM(M_LOG2E)));
            r = F3(where, F2(bit_and, F1(isinf, high), equal), high, r);
        }
    }
    return RETURN(tor_im_cast(c, r, t));
}

#define BINARY(name, fn)                                                   \
    {"aten." name ".Tensor", "self, other", import_binary, TOR_OP_##fn}, { \
        "aten." name ".Scalar", "self, other", import_binary, TOR_OP_##fn  \
    }
#define FLOAT_UNARY(name) \
    { "aten." #name ".default", "self", import_float_unary, TOR_OP_##name }
#define ROUNDING(name) \
    { "aten." #name ".default", "self", import_rounding, TOR_OP_##name }

static const TorAtenRow rows[] = {
    {"aten.add.Tensor", "self, other, *, alpha=1", import_add, TOR_OP_add},
    {"aten.add.Scalar", "self, other, alpha=1", import_add, TOR_OP_add},
    {"aten.sub.Tensor", "self, other, *, alpha=1", import_add, TOR_OP_sub},
    {"aten.sub.Scalar", "self, other, alpha=1", import_add, TOR_OP_sub},
    {"aten.subtract.Tensor", "self, other, *, alpha=1", import_add, TOR_OP_sub},
    {"aten.rsub.Tensor", "self, other, *, alpha=1", import_rsub, 0},
    {"aten.rsub.Scalar", "self, other, alpha=1", import_rsub, 0},
    BINARY("mul", mul),
    BINARY("multiply", mul),
    BINARY("div", div),
    BINARY("divide", div),
    BINARY("true_divide", div),
    {"aten.div.Tensor_mode", "self, other, *, rounding_mode", import_div_mode, 0},
    {"aten.div.Scalar_mode", "self, other, *, rounding_mode", import_div_mode, 0},
    {"aten.floor_divide.default", "self, other", import_binary, TOR_OP_div_floor},
    {"aten.floor_divide.Scalar", "self, other", import_binary, TOR_OP_div_floor},
    BINARY("remainder", remainder),
    {"aten.remainder.Scalar_Tensor", "self, other", import_binary, TOR_OP_remainder},
    BINARY("fmod", fmod),
    {"aten.pow.Tensor_Tensor", "self, exponent", import_binary, TOR_OP_pow},
    {"aten.pow.Tensor_Scalar", "self, exponent", import_pow_scalar, 0},
    {"aten.pow.Scalar", "self, exponent", import_pow_base, 0},
    {"aten.atan2.default", "self, other", import_binary, TOR_OP_atan2},
    {"aten.minimum.default", "self, other", import_binary, TOR_OP_minimum},
    {"aten.maximum.default", "self, other", import_binary, TOR_OP_maximum},
    {"aten.min.other", "self, other", import_binary, TOR_OP_minimum},
    {"aten.max.other", "self, other", import_binary, TOR_OP_maximum},
    {"aten.fmin.default", "self, other", import_binary, TOR_OP_fmin},
    {"aten.fmax.default", "self, other", import_binary, TOR_OP_fmax},
    BINARY("copysign", copysign),
    BINARY("bitwise_and", bit_and),
    BINARY("bitwise_or", bit_or),
    BINARY("bitwise_xor", bit_xor),
    {"aten.bitwise_and.Scalar_Tensor", "self, other", import_binary, TOR_OP_bit_and},
    {"aten.bitwise_or.Scalar_Tensor", "self, other", import_binary, TOR_OP_bit_or},
    {"aten.bitwise_xor.Scalar_Tensor", "self, other", import_binary, TOR_OP_bit_xor},
    BINARY("__and__", bit_and),
    BINARY("__or__", bit_or),
    BINARY("__xor__", bit_xor),
    {"aten.bitwise_left_shift.Tensor", "self, other", import_binary, TOR_OP_shift_left},
    {"aten.bitwise_left_shift.Tensor_Scalar", "self, other", import_binary, TOR_OP_shift_left},
    {"aten.bitwise_left_shift.Scalar_Tensor", "self, other", import_binary, TOR_OP_shift_left},
    {"aten.bitwise_right_shift.Tensor", "self, other", import_binary, TOR_OP_shift_right},
    {"aten.bitwise_right_shift.Tensor_Scalar", "self, other", import_binary, TOR_OP_shift_right},
    {"aten.bitwise_right_shift.Scalar_Tensor", "self, other", import_binary, TOR_OP_shift_right},
    BINARY("__lshift__", shift_left),
    BINARY("__rshift__", shift_right),
    {"aten.neg.default", "self", import_unary, TOR_OP_neg},
    {"aten.abs.default", "self", import_unary, TOR_OP_abs},
    {"aten.relu.default", "self", import_unary, TOR_OP_relu},
    {"aten.positive.default", "self", import_copy_of, 0},
    {"aten.sign.default", "self", import_sign, 0},
    {"aten.sgn.default", "self", import_sign, 0},
    {"aten.bitwise_not.default", "self", import_bit_not, 0},
    {"aten.square.default", "self", import_square, 0},
    {"aten.frac.default", "self", import_frac, 0},
    {"aten.angle.default", "self", import_angle, 0},
    {"aten.round.decimals", "self, *, decimals", import_round_decimals, 0},
    {"aten.ldexp.Tensor", "self, other", import_ldexp, 0},
    ROUNDING(ceil),
    ROUNDING(floor),
    ROUNDING(round),
    ROUNDING(trunc),
    FLOAT_UNARY(sqrt),
    FLOAT_UNARY(rsqrt),
    FLOAT_UNARY(reciprocal),
    FLOAT_UNARY(exp),
    FLOAT_UNARY(exp2),
    FLOAT_UNARY(expm1),
    FLOAT_UNARY(log),
    FLOAT_UNARY(log2),
    FLOAT_UNARY(log10),
    FLOAT_UNARY(log1p),
    FLOAT_UNARY(sin),
    FLOAT_UNARY(cos),
    FLOAT_UNARY(tan),
    FLOAT_UNARY(asin),
    FLOAT_UNARY(acos),
    FLOAT_UNARY(atan),
    FLOAT_UNARY(sinh),
    FLOAT_UNARY(cosh),
    FLOAT_UNARY(tanh),
    FLOAT_UNARY(asinh),
    FLOAT_UNARY(acosh),
    FLOAT_UNARY(atanh),
    FLOAT_UNARY(erf),
    FLOAT_UNARY(erfc),
    FLOAT_UNARY(sigmoid),
    {"aten.special_expit.default", "self", import_float_unary, TOR_OP_sigmoid},
    {"aten.special_erf.default", "self", import_float_unary, TOR_OP_erf},
    {"aten.special_exp2.default", "self", import_float_unary, TOR_OP_exp2},
    {"aten.special_expm1.default", "self", import_float_unary, TOR_OP_expm1},
    {"aten.special_log1p.default", "self", import_float_unary, TOR_OP_log1p},
    {"aten.silu.default", "self", import_float_only, TOR_OP_silu},
    {"aten.hardsigmoid.default", "self", import_float_only, TOR_OP_hardsigmoid},
    {"aten.hardswish.default", "self", import_float_only, TOR_OP_hardswish},
    {"aten.lerp.Scalar", "self, end, weight", import_lerp, 0},
    {"aten.lerp.Tensor", "self, end, weight", import_lerp, 0},
    {"aten.addcmul.default", "self, tensor1, tensor2, *, value=1", import_addc, TOR_OP_mul},
    {"aten.addcdiv.default", "self, tensor1, tensor2, *, value=1", import_addc, TOR_OP_div},
    {"aten.hypot.default", "self, other", import_composed, HYPOT},
    {"aten.logaddexp.default", "self, other", import_composed, LOGADDEXP},
    {"aten.logaddexp2.default", "self, other", import_composed, LOGADDEXP2},
    {"aten.xlogy.Tensor", "self, other", import_composed, XLOGY},
    {"aten.xlogy.Scalar_Self", "self, other", import_composed, XLOGY},
    {"aten.xlogy.Scalar_Other", "self, other", import_composed, XLOGY},
    {"aten.special_xlog1py.default", "self, other", import_composed, XLOG1PY},
};
TOR_ATEN_TABLE(pointwise, rows);

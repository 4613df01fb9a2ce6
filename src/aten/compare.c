/// Comparisons, logic, selection and clamping.
#include "aten/build.h"
#include "aten/tables.h"

#include <math.h>

static ToroidStatus import_compare(TorCall *c) {
    TorOperand o[] = {tor_im_operand(c, 0), tor_im_operand(c, 1)};
    if (c->status) return c->status;
    TorDtype t = tor_im_promote(o, 2);
    return RETURN(tor_im_map(c, (TorOp)c->row->op, tor_im_convert(c, o[0], t, true),
                             tor_im_convert(c, o[1], t, true), NULL));
}

static ToroidStatus import_logical(TorCall *c) {
    TorValue *a = tor_im_to_bool(c, tor_im_tensor(c, 0)),
             *b = tor_im_to_bool(c, tor_im_tensor(c, 1));
    return RETURN(tor_im_map(c, (TorOp)c->row->op, a, b, NULL));
}

static ToroidStatus import_logical_not(TorCall *c) {
    return RETURN(F1(bit_not, tor_im_to_bool(c, tor_im_tensor(c, 0))));
}

static TorValue *all_false(TorCall *c, TorValue *x) {
    return x ? tor_im_full(c, (TorScalar){.dtype = TOR_bool}, TOR_bool, x->rank, x->dim) : NULL;
}

static ToroidStatus import_float_test(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (x && !tor_dtype_is_float(x->dtype)) return RETURN(all_false(c, x));
    return RETURN(tor_im_map(c, (TorOp)c->row->op, x, NULL, NULL));
}

static ToroidStatus import_isfinite(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (x && !tor_dtype_is_float(x->dtype)) return RETURN(F1(bit_not, all_false(c, x)));
    return RETURN(F2(lt, F1(abs, x), NUM(INFINITY)));
}

static ToroidStatus import_isinf_signed(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (x && !tor_dtype_is_float(x->dtype)) return RETURN(all_false(c, x));
    return RETURN(F2(eq, x, NUM(c->row->op ? INFINITY : -INFINITY)));
}

/// The sign bit of floats, NaN's and that of -0 included; x < 0 for the rest.
static ToroidStatus import_signbit(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (x && x->dtype == TOR_bool) return RETURN(all_false(c, x));
    if (!x || !tor_dtype_is_float(x->dtype))
        return RETURN(x ? F2(lt, x, tor_im_int_number(c, 0)) : NULL);
    return RETURN(F2(lt, F2(copysign, NUM(1), x), NUM(0)));
}

// ---------------------------------------------------------------- selection

/// A number that stands alone becomes a tensor: the result must have a shape of its own.
static TorValue *materialise(TorCall *c, TorOperand o, TorDtype t) {
    return o.value ? tor_im_cast(c, o.value, t) : tor_im_full(c, o.number, t, 0, NULL);
}

static TorValue *select_by(TorCall *c, TorValue *condition, TorOperand a, TorOperand b) {
    if (c->status) return NULL;
    TorOperand both[] = {a, b};
    TorDtype t = tor_im_promote(both, 2);
    bool numbers = a.is_number && b.is_number;
    TorValue *x = numbers ? materialise(c, a, t) : tor_im_convert(c, a, t, true);
    TorValue *y = numbers ? materialise(c, b, t) : tor_im_convert(c, b, t, true);
    return F3(where, tor_im_to_bool(c, condition), x, y);
}

static ToroidStatus import_where(TorCall *c) {
    TorValue *condition = tor_im_tensor(c, 0);
    TorOperand a = tor_im_operand(c, 1), b = tor_im_operand(c, 2);
    if (condition && condition->dtype != TOR_bool && condition->dtype != TOR_uint8)
        return tor_im_refuse_arg(c, 0, "expected bool, got %s", tor_dtype_name(condition->dtype));
    return RETURN(select_by(c, condition, a, b));
}

/// The result has self's type, whatever the value's.
static ToroidStatus import_masked_fill(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0), *mask = tor_im_tensor(c, 1);
    TorOperand value = tor_im_operand(c, 2);
    if (c->status) return c->status;
    if (mask->dtype != TOR_bool)
        return tor_im_refuse_arg(c, 1, "expected bool, got %s", tor_dtype_name(mask->dtype));
    if (value.value && value.value->rank > 0)
        return tor_im_refuse_arg(c, 2, "expected a 0-d tensor");
    return RETURN(F3(where, mask, tor_im_convert(c, value, x->dtype, true), x));
}

static ToroidStatus import_nan_to_num(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (x && !tor_dtype_is_float(x->dtype)) return RETURN(tor_im_contiguous(c, x));
    if (c->status) return c->status;
    double largest = x->dtype == TOR_float64    ? 1.7976931348623157e308
                     : x->dtype == TOR_float16  ? 65504.0
                     : x->dtype == TOR_bfloat16 ? 3.3895313892515355e38
                                                : 3.4028234663852886e38;
    double nan_ = tor_im_has(c, 1) ? tor_im_float(c, 1) : 0;
    double high = tor_im_has(c, 2) ? tor_im_float(c, 2) : largest,
           low = tor_im_has(c, 3) ? tor_im_float(c, 3) : -largest;
    TorValue *r = F3(where, F2(eq, x, NUM(INFINITY)), NUM(high), x);
    r = F3(where, F2(eq, x, NUM(-INFINITY)), NUM(low), r);
    return RETURN(F3(where, F1(isnan, x), NUM(nan_), r));
}

// ---------------------------------------------------------------- clamping

/// Is the number one that `dtype` holds? Numbers cast with wrapping.
static bool holds(TorDtype dtype, TorOperand o) {
    if (!o.is_number || o.value || tor_dtype_is_float(dtype) || o.number.dtype != TOR_int64)
        return true;
    return tor_scalar_cast(o.number, dtype).i == o.number.i;
}

/// min(max(x, low), high); NaN in any operand wins. A missing bound is skipped.
static ToroidStatus clamp(TorCall *c, int low_arg, int high_arg) {
    TorOperand o[3] = {tor_im_operand(c, 0)};
    bool has_low = low_arg >= 0 && tor_im_has(c, low_arg),
         has_high = high_arg >= 0 && tor_im_has(c, high_arg);
    int n = 1;
    if (!has_low && !has_high) return tor_im_refuse(c, "at least one of min and max must be given");
    if (has_low) o[n++] = tor_im_operand(c, low_arg);
    if (has_high) o[n++] = tor_im_operand(c, high_arg);
    if (c->status) return c->status;
    TorDtype t = tor_im_promote(o, n);
    TorOp raise = t == TOR_bool ? TOR_OP_bit_or : TOR_OP_maximum,
          lower = t == TOR_bool ? TOR_OP_bit_and : TOR_OP_minimum;
    for (int i = 1; i < n; i++)
        if (!holds(t, o[i]))
            return tor_im_refuse(c, "a bound is no number of %s", tor_dtype_name(t));
    TorValue *r = tor_im_convert(c, o[0], t, true);
    if (has_low) r = tor_im_map(c, raise, r, tor_im_convert(c, o[1], t, true), NULL);
    if (has_high) r = tor_im_map(c, lower, r, tor_im_convert(c, o[n - 1], t, true), NULL);
    return RETURN(r);
}

static ToroidStatus import_clamp(TorCall *c) { return clamp(c, 1, 2); }
static ToroidStatus import_clamp_min(TorCall *c) { return clamp(c, 1, -1); }
static ToroidStatus import_clamp_max(TorCall *c) { return clamp(c, -1, 1); }

static ToroidStatus import_isclose(TorCall *c) {
    TorValue *a = tor_im_tensor(c, 0), *b = tor_im_tensor(c, 1);
    double rtol = tor_im_float(c, 2), atol = tor_im_float(c, 3);
    bool equal_nan = tor_im_flag(c, 4);
    if (c->status) return c->status;
    if (a->dtype != b->dtype || !tor_dtype_is_float(a->dtype))
        return tor_im_refuse(c, "expected floats of one type");
    TorValue *close = F2(eq, a, b);
    if (equal_nan) close = F2(bit_or, close, F2(bit_and, F1(isnan, a), F1(isnan, b)));
    TorValue *allowed = F2(add, NUM(atol), F1(abs, F2(mul, NUM(rtol), b)));
    TorValue *error = F1(abs, F2(sub, a, b));
    TorValue *finite = F2(lt, error, NUM(INFINITY));
    return RETURN(F2(bit_or, close, F2(bit_and, finite, F2(le, error, allowed))));
}

#define COMPARE(name)                                                          \
    {"aten." #name ".Tensor", "self, other", import_compare, TOR_OP_##name}, { \
        "aten." #name ".Scalar", "self, other", import_compare, TOR_OP_##name  \
    }

static const TorAtenRow rows[] = {
    COMPARE(eq),
    COMPARE(ne),
    COMPARE(lt),
    COMPARE(le),
    COMPARE(gt),
    COMPARE(ge),
    {"aten.logical_and.default", "self, other", import_logical, TOR_OP_bit_and},
    {"aten.logical_or.default", "self, other", import_logical, TOR_OP_bit_or},
    {"aten.logical_xor.default", "self, other", import_logical, TOR_OP_bit_xor},
    {"aten.logical_not.default", "self", import_logical_not, 0},
    {"aten.isnan.default", "self", import_float_test, TOR_OP_isnan},
    {"aten.isinf.default", "self", import_float_test, TOR_OP_isinf},
    {"aten.isfinite.default", "self", import_isfinite, 0},
    {"aten.isposinf.default", "self", import_isinf_signed, 1},
    {"aten.isneginf.default", "self", import_isinf_signed, 0},
    {"aten.signbit.default", "self", import_signbit, 0},
    {"aten.isclose.default", "self, other, rtol=1e-05, atol=1e-08, equal_nan=False", import_isclose,
     0},
    {"aten.where.self", "condition, self, other", import_where, 0},
    {"aten.where.ScalarOther", "condition, self, other", import_where, 0},
    {"aten.where.ScalarSelf", "condition, self, other", import_where, 0},
    {"aten.where.Scalar", "condition, self, other", import_where, 0},
    {"aten.masked_fill.Scalar", "self, mask, value", import_masked_fill, 0},
    {"aten.masked_fill.Tensor", "self, mask, value", import_masked_fill, 0},
    {"aten.nan_to_num.default", "self, nan=None, posinf=None, neginf=None", import_nan_to_num, 0},
    {"aten.clamp.default", "self, min=None, max=None", import_clamp, 0},
    {"aten.clamp.Tensor", "self, min=None, max=None", import_clamp, 0},
    {"aten.clip.default", "self, min=None, max=None", import_clamp, 0},
    {"aten.clip.Tensor", "self, min=None, max=None", import_clamp, 0},
    {"aten.clamp_min.default", "self, min", import_clamp_min, 0},
    {"aten.clamp_min.Tensor", "self, min", import_clamp_min, 0},
    {"aten.clamp_max.default", "self, max", import_clamp_max, 0},
    {"aten.clamp_max.Tensor", "self, max", import_clamp_max, 0},
};
TOR_ATEN_TABLE(compare, rows);

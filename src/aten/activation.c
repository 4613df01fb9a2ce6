/// Activations composed of scalar functions. Half types are computed in float32 and rounded once.
#include "aten/build.h"
#include "aten/tables.h"

#include <math.h>

/// The tensor argument in its compute type; refuses integers, as eager does.
static TorValue *input(TorCall *c, TorDtype *dtype) {
    TorValue *x = tor_im_tensor(c, 0);
    *dtype = TOR_float32;
    if (!x) return NULL;
    if (!tor_dtype_is_float(x->dtype)) {
        tor_im_refuse_arg(c, 0, "expected floats, got %s", tor_dtype_name(x->dtype));
        return NULL;
    }
    *dtype = x->dtype;
    return tor_im_up(c, x);
}

static ToroidStatus output(TorCall *c, TorValue *r, TorDtype dtype) {
    return RETURN(tor_im_cast(c, r, dtype));
}

static TorValue *where_positive(TorCall *c, TorValue *x, TorValue *yes, TorValue *no) {
    return F3(where, F2(gt, x, NUM(0)), yes, no);
}

/// log(1 + exp(x)) with no overflow.
static TorValue *softplus(TorCall *c, TorValue *x) { return F1(log1p, F1(exp, x)); }

static ToroidStatus import_gelu(TorCall *c) {
    TorDtype t;
    TorValue *x = input(c, &t);
    const char *approximate = tor_im_str(c, 1, "none");
    return output(c, approximate[0] == 't' ? F1(gelu_tanh, x) : F1(gelu_erf, x), t);
}

static ToroidStatus import_softplus(TorCall *c) {
    TorDtype t;
    TorValue *x = input(c, &t), *y = x;
    double beta = tor_im_float(c, 1), threshold = tor_im_float(c, 2);
    if (beta != 1) y = F2(mul, x, NUM(beta));
    TorValue *curved = softplus(c, y);
    if (beta != 1) curved = F2(div, curved, NUM(beta));
    return output(c, F3(where, F2(gt, y, NUM(threshold)), x, curved), t);
}

/// x > 0 ? scale * x : alpha * scale * (exp(x * input_scale) - 1)
static TorValue *elu(TorCall *c, TorValue *x, double alpha, double scale, double input_scale) {
    TorValue *low = F1(expm1, input_scale == 1 ? x : F2(mul, x, NUM(input_scale)));
    if (alpha * scale != 1) low = F2(mul, low, NUM(alpha * scale));
    return where_positive(c, x, scale == 1 ? x : F2(mul, x, NUM(scale)), low);
}

static ToroidStatus import_elu(TorCall *c) {
    TorDtype t;
    TorValue *x = input(c, &t);
    double alpha = tor_im_float(c, 1), scale = tor_im_float(c, 2), input_scale = tor_im_float(c, 3);
    return output(c, elu(c, x, alpha, scale, input_scale), t);
}

static ToroidStatus import_celu(TorCall *c) {
    TorDtype t;
    TorValue *x = input(c, &t);
    double alpha = tor_im_float(c, 1);
    if (alpha == 0) return tor_im_refuse_arg(c, 1, "expected other than 0");
    return output(c, elu(c, x, alpha, 1, 1 / alpha), t);
}

static ToroidStatus import_selu(TorCall *c) {
    TorDtype t;
    TorValue *x = input(c, &t);
    return output(
        c, elu(c, x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1), t);
}

static ToroidStatus import_leaky_relu(TorCall *c) {
    TorDtype t;
    TorValue *x = input(c, &t);
    double slope = tor_im_float(c, 1);
    return output(c, where_positive(c, x, x, F2(mul, x, NUM(slope))), t);
}

static ToroidStatus import_hardtanh(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    TorOperand low = tor_im_operand(c, 1), high = tor_im_operand(c, 2);
    if (c->status) return c->status;
    if (x->dtype == TOR_bool) return tor_im_refuse_arg(c, 0, "bool is not supported");
    return RETURN(F2(minimum, F2(maximum, x, tor_im_convert(c, low, x->dtype, true)),
                     tor_im_convert(c, high, x->dtype, true)));
}

static ToroidStatus import_relu6(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (x && x->dtype == TOR_bool) return tor_im_refuse_arg(c, 0, "bool is not supported");
    bool floats = x && tor_dtype_is_float(x->dtype);
    TorValue *zero = floats ? NUM(0) : tor_im_int_number(c, 0),
             *six = floats ? NUM(6) : tor_im_int_number(c, 6);
    return RETURN(F2(minimum, F2(maximum, x, zero), six));
}

static ToroidStatus import_mish(TorCall *c) {
    TorDtype t;
    TorValue *x = input(c, &t);
    return output(c, F2(mul, x, F1(tanh, F3(where, F2(gt, x, NUM(30)), x, softplus(c, x)))), t);
}

/// x <= threshold ? value : x, where NaN stays
static ToroidStatus import_threshold(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    TorOperand threshold = tor_im_operand(c, 1), value = tor_im_operand(c, 2);
    if (c->status) return c->status;
    TorValue *below = F2(le, x, tor_im_convert(c, threshold, x->dtype, true));
    return RETURN(F3(where, below, tor_im_convert(c, value, x->dtype, true), x));
}

/// min(0, x) - log1p(exp(-|x|)); the second result is the backward's buffer, empty on CPU callers'
/// side.
static TorValue *log_sigmoid(TorCall *c, TorValue *x) {
    return F2(sub, F2(minimum, x, NUM(0)), F1(log1p, F1(exp, F1(neg, F1(abs, x)))));
}

static ToroidStatus import_log_sigmoid(TorCall *c) {
    TorDtype t;
    TorValue *x = input(c, &t);
    return output(c, log_sigmoid(c, x), t);
}

static ToroidStatus import_log_sigmoid_forward(TorCall *c) {
    TorDtype t;
    TorValue *x = input(c, &t);
    TorValue *results[] = {tor_im_cast(c, log_sigmoid(c, x), t), NULL};
    return tor_im_return_list(c, results, 2);
}

static ToroidStatus import_logit(TorCall *c) {
    TorDtype t;
    TorValue *x = tor_im_tensor(c, 0);
    if (x && !tor_dtype_is_float(x->dtype)) x = tor_im_cast(c, x, TOR_float32);
    if (!x) return c->status;
    t = x->dtype;
    x = tor_im_up(c, x);
    if (tor_im_has(c, 1)) {
        double eps = tor_im_float(c, 1);
        x = F3(where, F2(lt, x, NUM(eps)), NUM(eps),
               F3(where, F2(gt, x, NUM(1 - eps)), NUM(1 - eps), x));
    }
    return output(c, F1(log, F2(div, x, F2(sub, NUM(1), x))), t);
}

static ToroidStatus import_softshrink(TorCall *c) {
    TorDtype t;
    TorValue *x = input(c, &t);
    double lambda = tor_im_float(c, 1);
    TorValue *r =
        F3(where, F2(gt, x, NUM(lambda)), F2(sub, x, NUM(lambda)),
           F3(where, F2(lt, x, NUM(-lambda)), F2(add, x, NUM(lambda)), F2(mul, x, NUM(0))));
    return output(c, r, t);
}

/// 0 inside [-lambda, lambda]; NaN stays.
static ToroidStatus import_hardshrink(TorCall *c) {
    TorDtype t;
    TorValue *x = input(c, &t);
    double lambda = tor_im_float(c, 1);
    TorValue *inside = F2(bit_and, F2(ge, x, NUM(-lambda)), F2(le, x, NUM(lambda)));
    return output(c, F3(where, inside, NUM(0), x), t);
}

static ToroidStatus import_glu(TorCall *c) {
    TorDtype t;
    TorValue *x = tor_im_tensor(c, 0);
    if (!x) return c->status;
    int axis = tor_im_axis(c, 1, x->rank);
    if (x->rank == 0 || !tor_dtype_is_float(x->dtype))
        return tor_im_refuse_arg(c, 0, "expected floats of at least one dim");
    if (c->status) return c->status;
    t = x->dtype;
    TorDim half = tor_int_floordiv(c->g, x->dim[axis], tor_im_const(c, 2));
    TorValue *a = tor_im_slice(c, x, axis, tor_im_const(c, 0), 1, half),
             *b = tor_im_slice(c, x, axis, half, 1, half);
    return output(c, F2(mul, tor_im_up(c, a), F1(sigmoid, tor_im_up(c, b))), t);
}

/// The weight is one number or one a channel (axis 1).
static ToroidStatus import_prelu(TorCall *c) {
    TorDtype t;
    TorValue *x = input(c, &t), *w = tor_im_tensor(c, 1);
    if (!x || !w) return c->status;
    if (w->dtype != t) return tor_im_refuse(c, "expected one type");
    if (c->row->op) {
        if (w->rank == 1 && x->rank > 1 && !tor_int_is(c->g, w->dim[0], 1))
            w = tor_im_channels(c, w, x->rank);
        else if (w->rank == 1 && x->rank <= 1)
            w = tor_im_view(c, w, 0, NULL);
    }
    return output(c, where_positive(c, x, x, F2(mul, tor_im_up(c, w), x)), t);
}

static const TorAtenRow rows[] = {
    {"aten.gelu.default", "self, *, approximate=none", import_gelu, 0},
    {"aten.softplus.default", "self, beta=1, threshold=20", import_softplus, 0},
    {"aten.elu.default", "self, alpha=1, scale=1, input_scale=1", import_elu, 0},
    {"aten.celu.default", "self, alpha=1.0", import_celu, 0},
    {"aten.selu.default", "self", import_selu, 0},
    {"aten.leaky_relu.default", "self, negative_slope=0.01", import_leaky_relu, 0},
    {"aten.hardtanh.default", "self, min_val=-1, max_val=1", import_hardtanh, 0},
    {"aten.relu6.default", "self", import_relu6, 0},
    {"aten.mish.default", "self", import_mish, 0},
    {"aten.threshold.default", "self, threshold, value", import_threshold, 0},
    {"aten.log_sigmoid.default", "self", import_log_sigmoid, 0},
    {"aten.log_sigmoid_forward.default", "self", import_log_sigmoid_forward, 0},
    {"aten.logit.default", "self, eps=None", import_logit, 0},
    {"aten.softshrink.default", "self, lambd=0.5", import_softshrink, 0},
    {"aten.hardshrink.default", "self, lambd=0.5", import_hardshrink, 0},
    {"aten.glu.default", "self, dim=-1", import_glu, 0},
    {"aten.prelu.default", "self, weight", import_prelu, 1},
    {"aten._prelu_kernel.default", "self, weight", import_prelu, 0},
};
TOR_ATEN_TABLE(activation, rows);

/// Normalisation and dropout.
///
/// Batch norm becomes x * view(scale) + view(shift) with scale = gamma * rsqrt(var + eps) and
/// shift = beta - mean * scale: both depend on frozen vectors alone, so they move to the prologue
/// and fold into the convolution before.
#include "aten/build.h"
#include "aten/tables.h"

static TorValue *layer_norm(TorCall *c, TorValue *x, TorValue *gamma, TorValue *beta, int count,
                            double eps) {
    TorValue *inputs[3] = {x};
    int n = 1;
    if (gamma) inputs[n++] = gamma;
    if (beta) inputs[n++] = beta;
    TorAttr a[] = {TOR_A_INT(count, count), TOR_A_FLOAT(eps, eps),
                   TOR_A_INT(has_gamma, gamma != NULL), TOR_A_INT(has_beta, beta != NULL)};
    return tor_im_add(c, TOR_OP_layer_norm, inputs, n, a, 4);
}

/// Type of mean and rstd: float32 where the weights are float32 beside a half input.
static TorDtype statistics_dtype(const TorValue *x, const TorValue *gamma, const TorValue *beta) {
    const TorValue *w = gamma ? gamma : beta;
    return w ? w->dtype : x->dtype;
}

/// mean and 1 / sqrt(var + eps) over the last axes, which stay as 1.
static void statistics(TorCall *c, TorValue *x, int count, double eps, TorDtype dtype,
                       TorValue **mean, TorValue **rstd) {
    int64_t axes[TOR_MAX_RANK];
    x = tor_im_up(c, x);
    if (!x) return;
    for (int i = 0; i < count; i++) axes[i] = x->rank - count + i;
    *mean = tor_im_cast(c, tor_im_reduce(c, TOR_OP_mean, x, axes, count, true), dtype);
    *rstd =
        tor_im_cast(c, F1(rsqrt, F2(add, tor_im_var(c, x, axes, count, true, 0), NUM(eps))), dtype);
}

/// Arguments input, normalized_shape, weight, bias, eps.
static TorValue *layer_norm_args(TorCall *c, TorValue **x_out, int *count_out, double *eps,
                                 TorDtype *stats) {
    TorDim shape[TOR_MAX_RANK];
    TorValue *x = tor_im_tensor(c, 0), *gamma = tor_im_tensor_or_null(c, 2),
             *beta = tor_im_tensor_or_null(c, 3);
    int count = tor_im_dims(c, 1, shape);
    *eps = tor_im_float(c, 4);
    if (c->status) return NULL;
    if (!tor_dtype_is_float(x->dtype))
        return tor_im_refuse_arg(c, 0, "expected floats, got %s", tor_dtype_name(x->dtype)), NULL;
    if (count < 1 || count > x->rank)
        return tor_im_refuse_arg(c, 1, "expected 1 to %d sizes, got %d", x->rank, count), NULL;
    *stats = statistics_dtype(x, gamma, beta);
    *x_out = x;
    *count_out = count;
    bool mixed = (gamma && gamma->dtype != x->dtype) || (beta && beta->dtype != x->dtype);
    if (!mixed) return layer_norm(c, x, gamma, beta, count, *eps);
    // Half input, float32 weights: computed wide, rounded once.
    TorDtype wide = tor_dtype_compute(x->dtype);
    return tor_im_cast(c,
                       layer_norm(c, tor_im_up(c, x), gamma ? tor_im_cast(c, gamma, wide) : NULL,
                                  beta ? tor_im_cast(c, beta, wide) : NULL, count, *eps),
                       x->dtype);
}

static ToroidStatus import_native_layer_norm(TorCall *c) {
    TorValue *x = NULL, *results[3] = {NULL};
    int count = 0;
    double eps;
    TorDtype stats = TOR_float32;
    results[0] = layer_norm_args(c, &x, &count, &eps, &stats);
    if (results[0]) statistics(c, x, count, eps, stats, &results[1], &results[2]);
    return tor_im_return_list(c, results, 3);
}

static ToroidStatus import_layer_norm(TorCall *c) {
    TorValue *x;
    int count;
    double eps;
    TorDtype stats;
    return RETURN(layer_norm_args(c, &x, &count, &eps, &stats));
}

// ---------------------------------------------------------------- RMS norm

static ToroidStatus import_rms_norm(TorCall *c) {
    TorDim shape[TOR_MAX_RANK];
    int64_t axes[TOR_MAX_RANK];
    TorValue *x = tor_im_tensor(c, 0), *gamma = tor_im_tensor_or_null(c, 2);
    int count = tor_im_dims(c, 1, shape);
    if (c->status) return c->status;
    if (!tor_dtype_is_float(x->dtype))
        return tor_im_refuse_arg(c, 0, "expected floats, got %s", tor_dtype_name(x->dtype));
    if (count < 1 || count > x->rank)
        return tor_im_refuse_arg(c, 1, "expected 1 to %d sizes, got %d", x->rank, count);
    // Without a value: the machine epsilon of the type that eager computes in.
    double eps = tor_im_has(c, 3)          ? tor_im_float(c, 3)
                 : x->dtype == TOR_float64 ? 2.220446049250313e-16
                                           : 1.1920928955078125e-07;
    TorDtype t = x->dtype;
    TorValue *wide = tor_im_up(c, x),
             *inputs[] = {wide, gamma ? tor_im_cast(c, gamma, tor_dtype_compute(t)) : NULL};
    TorAttr a[] = {TOR_A_INT(count, count), TOR_A_FLOAT(eps, eps),
                   TOR_A_INT(has_gamma, gamma != NULL)};
    TorValue *r = tor_im_cast(c, tor_im_add(c, TOR_OP_rms_norm, inputs, gamma ? 2 : 1, a, 3), t);
    if (!c->row->op) return RETURN(r);
    for (int i = 0; i < count; i++) axes[i] = x->rank - count + i;
    TorValue *mean = tor_im_reduce(c, TOR_OP_mean, F2(mul, wide, wide), axes, count, true);
    TorValue *results[] = {r, F1(rsqrt, F2(add, mean, NUM(eps)))};
    return tor_im_return_list(c, results, 2);
}

// ---------------------------------------------------------------- batch norm

/// x * view(scale) + view(shift), in the compute type; vectors may be NULL (1, 0).
static TorValue *scale_shift(TorCall *c, TorValue *x, TorValue *gamma, TorValue *beta,
                             TorValue *mean, TorValue *rstd) {
    if (c->status || !x || !mean || !rstd) return NULL;
    TorDtype t = x->dtype, wide = tor_dtype_compute(t);
    TorValue *scale = tor_im_cast(c, rstd, wide);
    if (gamma) scale = F2(mul, tor_im_cast(c, gamma, wide), scale);
    TorValue *shift = F2(mul, tor_im_cast(c, mean, wide), scale);
    shift = beta ? F2(sub, tor_im_cast(c, beta, wide), shift) : F1(neg, shift);
    TorValue *r = F2(mul, tor_im_up(c, x), tor_im_channels(c, scale, x->rank));
    return tor_im_cast(c, F2(add, r, tor_im_channels(c, shift, x->rank)), t);
}

static TorValue *rsqrt_of(TorCall *c, TorValue *var, double eps) {
    return F1(rsqrt, F2(add, tor_im_up(c, var), NUM(eps)));
}

typedef struct {
    TorValue *x, *gamma, *beta, *mean, *var;
    double eps;
} BatchNorm;

static BatchNorm batch_norm_args(TorCall *c, int eps_arg) {
    BatchNorm b = {tor_im_tensor(c, 0),         tor_im_tensor_or_null(c, 1),
                   tor_im_tensor_or_null(c, 2), tor_im_tensor_or_null(c, 3),
                   tor_im_tensor_or_null(c, 4), tor_im_float(c, eps_arg)};
    if (b.x && b.x->rank < 2) tor_im_refuse_arg(c, 0, "expected at least 2 dims");
    if (b.x && !tor_dtype_is_float(b.x->dtype)) tor_im_refuse_arg(c, 0, "expected floats");
    return b;
}

static TorValue *evaluate(TorCall *c, BatchNorm b) {
    if (!b.mean || !b.var) return tor_im_refuse(c, "running statistics are missing"), NULL;
    return scale_shift(c, b.x, b.gamma, b.beta, b.mean, rsqrt_of(c, b.var, b.eps));
}

static ToroidStatus import_batch_norm_eval(TorCall *c) {
    BatchNorm b = batch_norm_args(c, 6);
    TorValue *results[] = {evaluate(c, b), NULL, NULL};
    return tor_im_return_list(c, results, 3);
}

/// Statistics of the batch; mean and var of what is not axis 1.
static TorValue *train(TorCall *c, BatchNorm b, TorValue **mean, TorValue **rstd,
                       TorValue **unbiased) {
    int64_t axes[TOR_MAX_RANK];
    if (c->status) return NULL;
    int n = 0;
    for (int i = 0; i < b.x->rank; i++)
        if (i != 1) axes[n++] = i;
    TorValue *wide = tor_im_up(c, b.x);
    *mean = tor_im_reduce(c, TOR_OP_mean, wide, axes, n, false);
    *rstd = rsqrt_of(c, tor_im_var(c, wide, axes, n, false, 0), b.eps);
    *unbiased = tor_im_var(c, wide, axes, n, false, 1);
    return scale_shift(c, b.x, b.gamma, b.beta, *mean, *rstd);
}

static TorValue *moved(TorCall *c, TorValue *old, TorValue *batch, double momentum) {
    if (!old || c->status) return NULL;
    TorValue *r =
        F2(add, F2(mul, batch, NUM(momentum)), F2(mul, tor_im_up(c, old), NUM(1 - momentum)));
    return tor_im_cast(c, r, old->dtype);
}

/// save_mean and save_invstd have the input's type, or float32 beside float32 weights.
static ToroidStatus return_trained(TorCall *c, BatchNorm b, TorValue **r, int count) {
    if (c->status) return c->status;
    TorDtype stats = statistics_dtype(b.x, b.gamma, b.beta);
    r[1] = tor_im_cast(c, r[1], stats);
    r[2] = tor_im_cast(c, r[2], stats);
    return tor_im_return_list(c, r, count);
}

/// Results: output, save_mean, save_invstd, and the running statistics afterwards.
static ToroidStatus import_batch_norm_functional(TorCall *c) {
    BatchNorm b = batch_norm_args(c, 7);
    bool training = tor_im_flag(c, 5);
    double momentum = tor_im_float(c, 6);
    TorValue *r[5] = {NULL}, *unbiased = NULL;
    if (training) {
        r[0] = train(c, b, &r[1], &r[2], &unbiased);
        r[3] = moved(c, b.mean, r[1], momentum);
        r[4] = moved(c, b.var, unbiased, momentum);
        return return_trained(c, b, r, 5);
    } else {
        r[0] = evaluate(c, b);
        r[3] = b.mean;
        r[4] = b.var;
    }
    return tor_im_return_list(c, r, 5);
}

/// Training with no running statistics to write.
static ToroidStatus import_batch_norm_no_stats(TorCall *c) {
    BatchNorm b = {
        tor_im_tensor(c, 0), tor_im_tensor_or_null(c, 1), tor_im_tensor_or_null(c, 2), NULL, NULL,
        tor_im_float(c, 5)};
    TorValue *r[3] = {NULL}, *unbiased;
    if (!tor_im_flag(c, 3)) return tor_im_refuse_arg(c, 3, "expected True");
    if (b.x && (b.x->rank < 2 || !tor_dtype_is_float(b.x->dtype)))
        return tor_im_refuse_arg(c, 0, "expected floats of at least 2 dims");
    r[0] = train(c, b, &r[1], &r[2], &unbiased);
    return return_trained(c, b, r, 3);
}

static ToroidStatus import_batch_norm(TorCall *c) {
    BatchNorm b = batch_norm_args(c, 7);
    if (tor_im_flag(c, 5) && !b.mean && !b.var) {
        TorValue *trained[3] = {NULL}, *unbiased;
        trained[0] = train(c, b, &trained[1], &trained[2], &unbiased);
        return c->row->op ? return_trained(c, b, trained, 3) : RETURN(trained[0]);
    }
    if (tor_im_flag(c, 5))
        return tor_im_refuse_arg(c, 5, "running statistics written in place are not supported");
    TorValue *r = evaluate(c, b);
    if (!c->row->op) return RETURN(r);
    TorValue *results[] = {r, NULL, NULL};
    return tor_im_return_list(c, results, 3);
}

// ---------------------------------------------------------------- group norm

/// Each group is a row: [n, groups, c / groups * spatial].
static TorValue *group_norm(TorCall *c, TorValue *x, TorValue *gamma, TorValue *beta,
                            int64_t groups, double eps, TorValue **mean, TorValue **rstd) {
    if (c->status) return NULL;
    if (x->rank < 2 || groups < 1)
        return tor_im_refuse(c, "expected at least 2 dims and 1 group"), NULL;
    if (!tor_dtype_is_float(x->dtype)) return tor_im_refuse_arg(c, 0, "expected floats"), NULL;
    TorDim g = tor_im_const(c, groups);
    TorDim row = tor_int_mul(c->g, tor_int_floordiv(c->g, x->dim[1], g),
                             tor_int_product(c->g, x->dim + 2, x->rank - 2));
    TorDim dims[] = {x->dim[0], g, row};
    TorDtype t = x->dtype, wide = tor_dtype_compute(t);
    TorValue *rows = tor_im_view(c, tor_im_up(c, x), 3, dims);
    TorValue *r = tor_im_view(c, layer_norm(c, rows, NULL, NULL, 1, eps), x->rank, x->dim);
    if (gamma) r = F2(mul, r, tor_im_channels(c, tor_im_cast(c, gamma, wide), x->rank));
    if (beta) r = F2(add, r, tor_im_channels(c, tor_im_cast(c, beta, wide), x->rank));
    if (mean) {
        statistics(c, rows, 1, eps, statistics_dtype(x, gamma, beta), mean, rstd);
        *mean = tor_im_view(c, *mean, 2, dims);
        *rstd = tor_im_view(c, *rstd, 2, dims);
    }
    return tor_im_cast(c, r, t);
}

static ToroidStatus import_native_group_norm(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0), *gamma = tor_im_tensor_or_null(c, 1),
             *beta = tor_im_tensor_or_null(c, 2);
    int64_t groups = tor_im_int(c, 6);
    double eps = tor_im_float(c, 7);
    TorValue *r[3] = {NULL};
    r[0] = group_norm(c, x, gamma, beta, groups, eps, &r[1], &r[2]);
    return tor_im_return_list(c, r, 3);
}

static ToroidStatus import_group_norm(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0), *gamma = tor_im_tensor_or_null(c, 2),
             *beta = tor_im_tensor_or_null(c, 3);
    int64_t groups = tor_im_int(c, 1);
    double eps = tor_im_float(c, 4);
    return RETURN(group_norm(c, x, gamma, beta, groups, eps, NULL, NULL));
}

// ---------------------------------------------------------------- dropout

/// Draws nothing in evaluation and at p = 0; else it is random, and not ours.
static bool is_identity(TorCall *c) {
    double p = tor_im_float(c, 1);
    bool training = !tor_im_has(c, 2) || tor_im_flag(c, 2);
    if (training && p > 0) tor_im_refuse(c, "random numbers are not supported");
    return !c->status;
}

static ToroidStatus import_native_dropout(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (!x || !is_identity(c)) return c->status;
    TorValue *results[] = {
        tor_im_contiguous(c, x),
        tor_im_full(c, (TorScalar){.dtype = TOR_bool, .i = 1}, TOR_bool, x->rank, x->dim)};
    return tor_im_return_list(c, results, 2);
}

static ToroidStatus import_dropout(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    return is_identity(c) ? RETURN(x) : c->status;
}

#define BN "input, weight, bias, running_mean, running_var, "

static const TorAtenRow rows[] = {
    {"aten.native_layer_norm.default", "input, normalized_shape, weight, bias, eps",
     import_native_layer_norm, 0},
    {"aten.layer_norm.default",
     "input, normalized_shape, weight=None, bias=None, eps=1e-05, cudnn_enable=True",
     import_layer_norm, 0},
    {"aten.rms_norm.default", "input, normalized_shape, weight=None, eps=None", import_rms_norm, 0},
    {"aten._fused_rms_norm.default", "input, normalized_shape, weight, eps", import_rms_norm, 1},
    {"aten._native_batch_norm_legit_no_training.default", BN "momentum, eps",
     import_batch_norm_eval, 0},
    {"aten._native_batch_norm_legit_functional.default", BN "training, momentum, eps",
     import_batch_norm_functional, 0},
    {"aten._native_batch_norm_legit.no_stats", "input, weight, bias, training, momentum, eps",
     import_batch_norm_no_stats, 0},
    {"aten.native_batch_norm.default", BN "training, momentum, eps", import_batch_norm, 1},
    {"aten.batch_norm.default", BN "training, momentum, eps, cudnn_enabled", import_batch_norm, 0},
    {"aten.native_group_norm.default", "input, weight, bias, N, C, HxW, group, eps",
     import_native_group_norm, 0},
    {"aten.group_norm.default",
     "input, num_groups, weight=None, bias=None, eps=1e-05, cudnn_enabled=True", import_group_norm,
     0},
    {"aten.native_dropout.default", "input, p, train", import_native_dropout, 0},
    {"aten.dropout.default", "input, p, train", import_dropout, 0},
};
TOR_ATEN_TABLE(norm, rows);

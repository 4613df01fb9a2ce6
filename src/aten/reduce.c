/// Reductions and softmax.
///
/// Half types are summed in float32 and rounded once, as eager does.
#include "aten/build.h"
#include "aten/tables.h"

#include <math.h>
#include <string.h>

/// sum, prod, mean in `dtype`.
static TorValue *accumulate(TorCall *c, TorOp op, TorValue *x, const int64_t *axes, int n,
                            bool keepdim, TorDtype dtype) {
    if (c->status || !x) return NULL;
    TorValue *wide = tor_im_up(c, tor_im_cast(c, x, dtype));
    return tor_im_cast(c, tor_im_reduce(c, op, wide, axes, n, keepdim), dtype);
}

/// Arguments: axes at `axes_arg` (-1: all), keepdim at `keep_arg` (-1: no), dtype at `dtype_arg`.
static ToroidStatus sum_like(TorCall *c, int axes_arg, int keep_arg, int dtype_arg) {
    int64_t axes[TOR_MAX_RANK];
    TorValue *x = tor_im_tensor(c, 0);
    if (!x) return c->status;
    TorOp op = (TorOp)c->row->op;
    int n = 0;
    if (axes_arg >= 0)
        n = tor_im_axes(c, axes_arg, x->rank, axes);
    else
        while (n < x->rank) axes[n] = n, n++;
    bool keepdim = keep_arg >= 0 && tor_im_flag(c, keep_arg),
         is_float = tor_dtype_is_float(x->dtype);
    TorDtype dtype =
        tor_im_dtype(c, dtype_arg, is_float || op == TOR_OP_mean ? x->dtype : TOR_int64);
    if (op == TOR_OP_mean && !tor_dtype_is_float(dtype))
        return tor_im_refuse_arg(c, 0, "expected floats, got %s", tor_dtype_name(dtype));
    return RETURN(accumulate(c, op, x, axes, n, keepdim, dtype));
}

static ToroidStatus import_sum(TorCall *c) { return sum_like(c, -1, -1, 1); }
static ToroidStatus import_sum_dims(TorCall *c) { return sum_like(c, 1, 2, 3); }

// ---------------------------------------------------------------- variance

enum { VAR = 1, STD = 2, MEAN = 4 };

static ToroidStatus variance(TorCall *c, int axes_arg, bool keepdim, double correction) {
    int64_t axes[TOR_MAX_RANK];
    TorValue *x = tor_im_tensor(c, 0);
    if (!x) return c->status;
    if (!tor_dtype_is_float(x->dtype))
        return tor_im_refuse_arg(c, 0, "expected floats, got %s", tor_dtype_name(x->dtype));
    int n = 0;
    if (axes_arg >= 0)
        n = tor_im_axes(c, axes_arg, x->rank, axes);
    else
        while (n < x->rank) axes[n] = n, n++;
    TorDtype t = x->dtype;
    // A standard deviation may be in range where the variance is not.
    TorValue *wide = c->row->op & STD ? tor_im_cast(c, x, TOR_float64) : tor_im_up(c, x);
    TorValue *r = tor_im_var(c, wide, axes, n, keepdim, correction);
    if (c->row->op & STD) r = F1(sqrt, r);
    r = tor_im_cast(c, r, t);
    if (!(c->row->op & MEAN)) return RETURN(r);
    TorValue *results[] = {r, accumulate(c, TOR_OP_mean, x, axes, n, keepdim, t)};
    return tor_im_return_list(c, results, 2);
}

static ToroidStatus import_var(TorCall *c) {
    return variance(c, -1, false, tor_im_flag(c, 1) ? 1 : 0);
}
static ToroidStatus import_var_dim(TorCall *c) {
    bool unbiased = tor_im_flag(c, 2), keepdim = tor_im_flag(c, 3);
    return variance(c, 1, keepdim, unbiased ? 1 : 0);
}
static ToroidStatus import_var_correction(TorCall *c) {
    double correction = tor_im_has(c, 2) ? tor_im_float(c, 2) : 1;
    return variance(c, 1, tor_im_flag(c, 3), correction);
}

// ---------------------------------------------------------------- extremes

/// An extreme over nothing has no value: eager raises.
static bool has_elements(TorCall *c, const TorValue *x, const int64_t *axes, int n) {
    for (int i = 0; i < n; i++)
        if (tor_int_is(c->g, x->dim[axes[i]], 0)) {
            tor_im_refuse_arg(c, 0, "dim %d has no elements", (int)axes[i]);
            return false;
        }
    return true;
}

/// amax and amin of a type that the reduction takes as it is; bool by any and all.
static TorValue *extreme(TorCall *c, bool is_max, TorValue *x, const int64_t *axes, int n,
                         bool keepdim) {
    if (c->status || !x) return NULL;
    if (x->rank == 0) return tor_im_contiguous(c, x);
    if (!has_elements(c, x, axes, n)) return NULL;
    TorOp op = x->dtype == TOR_bool ? (is_max ? TOR_OP_any : TOR_OP_all)
               : is_max             ? TOR_OP_amax
                                    : TOR_OP_amin;
    return tor_im_reduce(c, op, x, axes, n, keepdim);
}

static TorValue *position(TorCall *c, bool is_max, TorValue *x, const int64_t *axes, int n,
                          bool keepdim) {
    if (c->status || !x) return NULL;
    if (x->rank == 0) return tor_im_full(c, (TorScalar){.dtype = TOR_int64}, TOR_int64, 0, NULL);
    if (!has_elements(c, x, axes, n)) return NULL;
    if (x->dtype == TOR_bool) x = tor_im_cast(c, x, TOR_uint8);
    return tor_im_reduce(c, is_max ? TOR_OP_argmax : TOR_OP_argmin, x, axes, n, keepdim);
}

static ToroidStatus import_amax(TorCall *c) {
    int64_t axes[TOR_MAX_RANK];
    TorValue *x = tor_im_tensor(c, 0);
    if (!x) return c->status;
    int n = tor_im_axes(c, 1, x->rank, axes);
    return RETURN(extreme(c, c->row->op, x, axes, n, tor_im_flag(c, 2)));
}

static ToroidStatus import_max_all(TorCall *c) {
    int64_t axes[TOR_MAX_RANK];
    TorValue *x = tor_im_tensor(c, 0);
    for (int i = 0; x && i < x->rank; i++) axes[i] = i;
    return RETURN(x ? extreme(c, c->row->op, x, axes, x->rank, false) : NULL);
}

static ToroidStatus import_max_dim(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (!x) return c->status;
    int64_t axis = tor_im_axis(c, 1, x->rank);
    bool keepdim = tor_im_flag(c, 2);
    TorValue *results[] = {extreme(c, c->row->op, x, &axis, 1, keepdim),
                           position(c, c->row->op, x, &axis, 1, keepdim)};
    return tor_im_return_list(c, results, 2);
}

static ToroidStatus import_aminmax(TorCall *c) {
    int64_t axes[TOR_MAX_RANK];
    TorValue *x = tor_im_tensor(c, 0);
    if (!x) return c->status;
    int n = tor_im_axes(c, 1, x->rank, axes);
    bool keepdim = tor_im_flag(c, 2);
    TorValue *results[] = {extreme(c, false, x, axes, n, keepdim),
                           extreme(c, true, x, axes, n, keepdim)};
    return tor_im_return_list(c, results, 2);
}

static ToroidStatus import_argmax(TorCall *c) {
    int64_t axes[TOR_MAX_RANK];
    TorValue *x = tor_im_tensor(c, 0);
    if (!x) return c->status;
    if (x->dtype == TOR_bool) return tor_im_refuse_arg(c, 0, "bool is not supported");
    int n = tor_im_axes(c, 1, x->rank, axes);
    return RETURN(position(c, c->row->op, x, axes, n, tor_im_flag(c, 2)));
}

// ---------------------------------------------------------------- any, all

/// bool, but uint8 for uint8.
static ToroidStatus test(TorCall *c, int axes_arg, int keep_arg) {
    int64_t axes[TOR_MAX_RANK];
    TorValue *x = tor_im_tensor(c, 0);
    if (!x) return c->status;
    int n = 0;
    // An empty list is no axis here, not all.
    bool none =
        axes_arg >= 0 && c->args[axes_arg].kind == TOR_ARG_LIST && c->args[axes_arg].count == 0;
    if (none)
        n = 0;
    else if (axes_arg >= 0)
        n = tor_im_axes(c, axes_arg, x->rank, axes);
    else
        while (n < x->rank) axes[n] = n, n++;
    bool keepdim = keep_arg >= 0 && tor_im_flag(c, keep_arg);
    TorValue *r = tor_im_to_bool(c, x);
    r = n > 0 ? tor_im_reduce(c, (TorOp)c->row->op, r, axes, n, keepdim) : tor_im_contiguous(c, r);
    return RETURN(tor_im_cast(c, r, x->dtype == TOR_uint8 ? TOR_uint8 : TOR_bool));
}

static ToroidStatus import_any(TorCall *c) { return test(c, -1, -1); }
static ToroidStatus import_any_dims(TorCall *c) { return test(c, 1, 2); }

static ToroidStatus import_count_nonzero(TorCall *c) {
    int64_t axes[TOR_MAX_RANK];
    TorValue *x = tor_im_tensor(c, 0);
    if (!x) return c->status;
    int n = tor_im_axes(c, 1, x->rank, axes);
    return RETURN(accumulate(c, TOR_OP_sum, tor_im_to_bool(c, x), axes, n, false, TOR_int64));
}

// ---------------------------------------------------------------- norms of vectors, logsumexp

static ToroidStatus import_logsumexp(TorCall *c) {
    int64_t axes[TOR_MAX_RANK];
    TorValue *x = tor_im_tensor(c, 0);
    if (!x) return c->status;
    int n = tor_im_axes(c, 1, x->rank, axes);
    bool keepdim = tor_im_flag(c, 2);
    if (!tor_dtype_is_float(x->dtype)) x = tor_im_cast(c, x, TOR_float32);
    if (!x || x->rank == 0)
        return c->status ? c->status : tor_im_refuse_arg(c, 0, "a 0-d tensor is not supported");
    TorDtype t = x->dtype;
    x = tor_im_up(c, x);
    TorValue *high = tor_im_reduce(c, TOR_OP_amax, x, axes, n, true);
    TorValue *shift = F3(where, F1(isinf, high), NUM(0), high);
    TorValue *sum = tor_im_reduce(c, TOR_OP_sum, F1(exp, F2(sub, x, shift)), axes, n, true);
    TorValue *r = F2(add, F1(log, sum), shift);
    for (int i = n - 1; i >= 0 && !keepdim; i--) r = tor_im_squeeze(c, r, (int)axes[i]);
    return RETURN(tor_im_cast(c, r, t));
}

static TorValue *vector_norm(TorCall *c, TorValue *x, double ord, const int64_t *axes, int n,
                             bool keepdim, TorDtype dtype) {
    if (c->status) return NULL;
    x = tor_im_up(c, tor_im_cast(c, x, dtype));
    if (!x || x->rank == 0)
        return tor_im_cast(
            c, ord == 0 ? tor_im_cast(c, F2(ne, x, NUM(0)), x ? x->dtype : dtype) : F1(abs, x),
            dtype);
    bool single = ord != 0 && !isnan(ord);
    for (int i = 0; i < n; i++) single &= tor_int_is(c->g, x->dim[axes[i]], 1);
    TorValue *r;
    if (single)  // nothing to sum, and no power to overflow
        r = tor_im_reduce(c, TOR_OP_amax, F1(abs, x), axes, n, keepdim);
    else if (isinf(ord))
        r = tor_im_reduce(c, ord > 0 ? TOR_OP_amax : TOR_OP_amin, F1(abs, x), axes, n, keepdim);
    else if (ord == 0)
        r = tor_im_reduce(c, TOR_OP_sum, tor_im_cast(c, F2(ne, x, NUM(0)), x->dtype), axes, n,
                          keepdim);
    else if (ord == 1)
        r = tor_im_reduce(c, TOR_OP_sum, F1(abs, x), axes, n, keepdim);
    else if (ord == 2)
        r = F1(sqrt, tor_im_reduce(c, TOR_OP_sum, F2(mul, x, x), axes, n, keepdim));
    else
        r = F2(pow, tor_im_reduce(c, TOR_OP_sum, F2(pow, F1(abs, x), NUM(ord)), axes, n, keepdim),
               NUM(1 / ord));
    return tor_im_cast(c, r, dtype);
}

static ToroidStatus norm(TorCall *c, int ord_arg, int axes_arg, int keep_arg, int dtype_arg) {
    int64_t axes[TOR_MAX_RANK];
    TorValue *x = tor_im_tensor(c, 0);
    if (!x) return c->status;
    double ord = tor_im_has(c, ord_arg) ? tor_im_float(c, ord_arg) : 2;
    int n = 0;
    if (axes_arg >= 0)
        n = tor_im_axes(c, axes_arg, x->rank, axes);
    else
        while (n < x->rank) axes[n] = n, n++;
    bool keepdim = keep_arg >= 0 && tor_im_flag(c, keep_arg);
    TorDtype dtype = dtype_arg >= 0 ? tor_im_dtype(c, dtype_arg, x->dtype) : x->dtype;
    if (!tor_dtype_is_float(dtype))
        return tor_im_refuse_arg(c, 0, "expected floats, got %s", tor_dtype_name(dtype));
    return RETURN(vector_norm(c, x, ord, axes, n, keepdim, dtype));
}

static ToroidStatus import_vector_norm(TorCall *c) { return norm(c, 1, 2, 3, 4); }
static ToroidStatus import_norm_dims(TorCall *c) { return norm(c, 1, 2, 3, -1); }
static ToroidStatus import_norm(TorCall *c) { return norm(c, 1, -1, -1, -1); }

/// The norm of self - other over all dims.
static ToroidStatus import_dist(TorCall *c) {
    int64_t axes[TOR_MAX_RANK];
    TorValue *a = tor_im_tensor(c, 0), *b = tor_im_tensor(c, 1);
    double p = tor_im_float(c, 2);
    if (c->status) return c->status;
    if (a->dtype != b->dtype || !tor_dtype_is_float(a->dtype))
        return tor_im_refuse(c, "expected floats of one type");
    TorValue *d = F2(sub, a, b);
    int n = 0;
    while (d && n < d->rank) axes[n] = n, n++;
    return RETURN(vector_norm(c, d, p, axes, n, false, a->dtype));
}

// ---------------------------------------------------------------- softmax

static TorValue *softmax(TorCall *c, TorOp op, TorValue *x, int axis, TorDtype dtype) {
    if (c->status || !x) return NULL;
    if (!tor_dtype_is_float(dtype)) {
        tor_im_refuse_arg(c, 0, "expected floats, got %s", tor_dtype_name(dtype));
        return NULL;
    }
    bool scalar = x->rank == 0;
    if (scalar) x = tor_im_unsqueeze(c, x, 0);
    TorAttr a[] = {TOR_A_INT(axis, axis), TOR_A_DTYPE(dtype, dtype)};
    TorValue *r = tor_im_add(c, op, &x, 1, a, 2);
    return scalar ? tor_im_squeeze(c, r, 0) : r;
}

static ToroidStatus import_softmax_core(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (!x) return c->status;
    int axis = tor_im_axis(c, 1, x->rank);
    bool to_float = tor_im_flag(c, 2);
    return RETURN(softmax(c, (TorOp)c->row->op, x, axis, to_float ? TOR_float32 : x->dtype));
}

static ToroidStatus import_softmax(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (!x) return c->status;
    int axis = tor_im_axis(c, 1, x->rank);
    TorDtype dtype = tor_im_dtype(c, 2, x->dtype);
    return RETURN(softmax(c, (TorOp)c->row->op, tor_im_cast(c, x, dtype), axis, dtype));
}

/// Rows that are -inf throughout give 0, not NaN.
static ToroidStatus import_safe_softmax(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (!x) return c->status;
    int64_t axis = tor_im_axis(c, 1, x->rank);
    TorDtype dtype = tor_im_dtype(c, 2, x->dtype);
    if (x->rank == 0) return tor_im_refuse_arg(c, 0, "a 0-d tensor is not supported");
    if (!tor_dtype_is_float(dtype)) return tor_im_refuse_arg(c, 0, "expected floats");
    x = tor_im_cast(c, x, dtype);
    TorValue *dead = tor_im_reduce(c, TOR_OP_all, F2(eq, x, NUM(-INFINITY)), &axis, 1, true);
    return RETURN(F3(where, dead, NUM(0), softmax(c, TOR_OP_softmax, x, (int)axis, dtype)));
}

#define DIMS "self, dim, keepdim=False"

static const TorAtenRow rows[] = {
    {"aten.sum.default", "self, *, dtype=None", import_sum, TOR_OP_sum},
    {"aten.sum.dim_IntList", DIMS ", *, dtype=None", import_sum_dims, TOR_OP_sum},
    {"aten.mean.default", "self, *, dtype=None", import_sum, TOR_OP_mean},
    {"aten.mean.dim", DIMS ", *, dtype=None", import_sum_dims, TOR_OP_mean},
    {"aten.prod.default", "self, *, dtype=None", import_sum, TOR_OP_prod},
    {"aten.prod.dim_int", DIMS ", *, dtype=None", import_sum_dims, TOR_OP_prod},
    {"aten.var.default", "self, unbiased=True", import_var, VAR},
    {"aten.var.dim", "self, dim, unbiased=True, keepdim=False", import_var_dim, VAR},
    {"aten.var.correction", "self, dim=None, *, correction=None, keepdim=False",
     import_var_correction, VAR},
    {"aten.std.default", "self, unbiased=True", import_var, STD},
    {"aten.std.dim", "self, dim, unbiased=True, keepdim=False", import_var_dim, STD},
    {"aten.std.correction", "self, dim=None, *, correction=None, keepdim=False",
     import_var_correction, STD},
    {"aten.var_mean.default", "self, unbiased=True", import_var, VAR | MEAN},
    {"aten.var_mean.dim", "self, dim, unbiased=True, keepdim=False", import_var_dim, VAR | MEAN},
    {"aten.var_mean.correction", "self, dim=None, *, correction=None, keepdim=False",
     import_var_correction, VAR | MEAN},
    {"aten.std_mean.correction", "self, dim=None, *, correction=None, keepdim=False",
     import_var_correction, STD | MEAN},
    {"aten.amax.default", "self, dim=[], keepdim=False", import_amax, 1},
    {"aten.amin.default", "self, dim=[], keepdim=False", import_amax, 0},
    {"aten.max.default", "self", import_max_all, 1},
    {"aten.min.default", "self", import_max_all, 0},
    {"aten.max.dim", DIMS, import_max_dim, 1},
    {"aten.min.dim", DIMS, import_max_dim, 0},
    {"aten.aminmax.default", "self, *, dim=None, keepdim=False", import_aminmax, 0},
    {"aten.argmax.default", "self, dim=None, keepdim=False", import_argmax, 1},
    {"aten.argmin.default", "self, dim=None, keepdim=False", import_argmax, 0},
    {"aten.any.default", "self", import_any, TOR_OP_any},
    {"aten.any.dim", DIMS, import_any_dims, TOR_OP_any},
    {"aten.any.dims", "self, dim=None, keepdim=False", import_any_dims, TOR_OP_any},
    {"aten.all.default", "self", import_any, TOR_OP_all},
    {"aten.all.dim", DIMS, import_any_dims, TOR_OP_all},
    {"aten.all.dims", "self, dim=None, keepdim=False", import_any_dims, TOR_OP_all},
    {"aten.count_nonzero.default", "self, dim=None", import_count_nonzero, 0},
    {"aten.count_nonzero.dim_IntList", "self, dim", import_count_nonzero, 0},
    {"aten.logsumexp.default", DIMS, import_logsumexp, 0},
    {"aten.linalg_vector_norm.default", "self, ord=2, dim=None, keepdim=False, *, dtype=None",
     import_vector_norm, 0},
    {"aten.norm.ScalarOpt_dim", "self, p, dim, keepdim=False", import_norm_dims, 0},
    {"aten.norm.Scalar", "self, p=2", import_norm, 0},
    {"aten.dist.default", "self, other, p=2", import_dist, 0},
    {"aten._softmax.default", "self, dim, half_to_float", import_softmax_core, TOR_OP_softmax},
    {"aten._log_softmax.default", "self, dim, half_to_float", import_softmax_core,
     TOR_OP_log_softmax},
    {"aten.softmax.int", "self, dim, dtype=None", import_softmax, TOR_OP_softmax},
    {"aten.log_softmax.int", "self, dim, dtype=None", import_softmax, TOR_OP_log_softmax},
    {"aten.special_log_softmax.default", "self, dim, *, dtype=None", import_softmax,
     TOR_OP_log_softmax},
    {"aten._safe_softmax.default", "self, dim, dtype=None", import_safe_softmax, 0},
};
TOR_ATEN_TABLE(reduce, rows);

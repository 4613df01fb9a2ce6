/// Sorting, selecting by rank, searching in sorted lines, and running values.
///
/// Every sort is stable, also where eager's need not be. Of equal elements topk, kthvalue and the
/// medians give the first position; eager's choice there is none that it promises.
#include "aten/build.h"
#include "aten/tables.h"

#include <string.h>

/// Values and positions in the shape of `x`; a 0-d tensor is a line of one.
static ToroidStatus return_pair(TorCall *c, const TorValue *x, TorValue *values) {
    if (c->status || !values) return c->status;
    TorValue *pair[] = {values, values->node->outputs[1]};
    for (int i = 0; i < 2 && x->rank == 0; i++) pair[i] = tor_im_squeeze(c, pair[i], 0);
    return tor_im_return_list(c, pair, 2);
}

static TorValue *sorted(TorCall *c, TorValue *x, int dim_arg, int descending_arg) {
    if (!x) return NULL;
    int axis = tor_im_axis(c, dim_arg, x->rank);
    bool descending = tor_im_flag(c, descending_arg);
    x = tor_im_at_least_1d(c, x);
    TorAttr a[] = {TOR_A_INT(axis, axis), TOR_A_INT(descending, descending)};
    return tor_im_add(c, TOR_OP_sort, &x, 1, a, 2);
}

static ToroidStatus import_sort(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    return return_pair(c, x, sorted(c, x, 1, 2));
}

static ToroidStatus import_sort_stable(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    return return_pair(c, x, sorted(c, x, 2, 3));
}

static bool refuses_bool(TorCall *c, const TorValue *x) {
    if (x && x->dtype == TOR_bool) tor_im_refuse_arg(c, 0, "bool is not supported");
    return c->status != TOROID_OK;
}

static ToroidStatus import_topk(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (refuses_bool(c, x)) return c->status;
    TorDim k = tor_im_dim(c, 1);
    int axis = tor_im_axis(c, 2, x->rank);
    bool largest = tor_im_flag(c, 3);
    if (x->rank == 0 && !tor_int_is(c->g, k, 1))
        return tor_im_refuse_arg(c, 1, "expected 1 for a 0-d tensor");
    TorValue *line = tor_im_at_least_1d(c, x);
    TorAttr a[] = {TOR_A_INT(axis, axis), TOR_A_INT(descending, largest), TOR_A_DIMS(dims, &k, 1)};
    return return_pair(c, x, tor_im_add(c, TOR_OP_topk, &line, 1, a, 3));
}

/// One element of each line.
static TorValue *element(TorCall *c, const char *kind, TorValue *x, int axis, TorDim k) {
    if (c->status || !x) return NULL;
    x = tor_im_at_least_1d(c, x);
    if (tor_int_is(c->g, x->dim[axis], 0)) {
        tor_im_refuse_arg(c, 0, "dim %d has no elements", axis);
        return NULL;
    }
    TorAttr a[] = {TOR_A_INT(axis, axis), TOR_A_STR(reduce, kind), TOR_A_DIMS(dims, &k, 1)};
    return tor_im_add(c, TOR_OP_kth, &x, 1, a, 3);
}

static ToroidStatus along(TorCall *c, const char *kind, int dim_arg, int keep_arg, TorDim k) {
    TorValue *x = tor_im_tensor(c, 0);
    if (!x) return c->status;
    int axis = tor_im_axis(c, dim_arg, x->rank);
    bool keepdim = tor_im_flag(c, keep_arg);
    TorValue *values = element(c, kind, x, axis, k);
    if (c->status || keepdim || x->rank == 0) return return_pair(c, x, values);
    TorValue *pair[] = {tor_im_squeeze(c, values, axis),
                        tor_im_squeeze(c, values->node->outputs[1], axis)};
    return tor_im_return_list(c, pair, 2);
}

static ToroidStatus import_kthvalue(TorCall *c) {
    if (refuses_bool(c, tor_im_tensor(c, 0))) return c->status;
    return along(c, "kth", 2, 3, tor_im_dim(c, 1));
}

static const char *median_kind(const TorCall *c) { return c->row->op ? "nanmedian" : "median"; }

static ToroidStatus import_median_dim(TorCall *c) {
    if (refuses_bool(c, tor_im_tensor(c, 0))) return c->status;
    return along(c, median_kind(c), 1, 2, tor_im_const(c, 1));
}

static ToroidStatus import_median(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (refuses_bool(c, x)) return c->status;
    TorDim count = tor_value_numel(c->g, x);
    TorValue *line = tor_im_view(c, x, 1, &count);
    return RETURN(tor_im_squeeze(c, element(c, median_kind(c), line, 0, tor_im_const(c, 1)), 0));
}

static ToroidStatus import_mode(TorCall *c) { return along(c, "mode", 1, 2, tor_im_const(c, 1)); }

// ---------------------------------------------------------------- binary search

static TorValue *search(TorCall *c, TorValue *lines, TorOperand values, bool int32, bool right) {
    if (c->status || !lines) return NULL;
    TorValue *v = values.value;
    if (values.is_number && !v) {
        if (tor_dtype_is_float(values.number.dtype) != tor_dtype_is_float(lines->dtype)) {
            tor_im_refuse(c, "the number is no %s", tor_dtype_name(lines->dtype));
            return NULL;
        }
        v = tor_im_full(c, values.number, lines->dtype, 0, NULL);
    }
    if (lines->dtype == TOR_bool || lines->rank == 0) {
        tor_im_refuse(c, "expected lines of numbers, got %s of rank %d",
                      tor_dtype_name(lines->dtype), lines->rank);
        return NULL;
    }
    TorValue *inputs[] = {lines, v};
    TorAttr a[] = {TOR_A_INT(right, right), TOR_A_DTYPE(dtype, int32 ? TOR_int32 : TOR_int64)};
    return tor_im_add(c, TOR_OP_searchsorted, inputs, 2, a, 2);
}

static ToroidStatus import_searchsorted(TorCall *c) {
    TorValue *lines = tor_im_tensor(c, 0), *sorter = tor_im_tensor_or_null(c, 5);
    TorOperand values = tor_im_operand(c, 1);
    bool int32 = tor_im_flag(c, 2), right = tor_im_flag(c, 3);
    if (c->status) return c->status;
    if (tor_im_has(c, 4)) right = strcmp(tor_im_str(c, 4, "left"), "right") == 0;
    if (sorter) {
        TorValue *inputs[] = {lines, sorter};
        TorAttr a = TOR_A_INT(axis, TOR_MAX(lines->rank - 1, 0));
        lines = tor_im_add(c, TOR_OP_gather, inputs, 2, &a, 1);
    }
    return RETURN(search(c, lines, values, int32, right));
}

static ToroidStatus import_bucketize(TorCall *c) {
    TorValue *lines = tor_im_tensor(c, 1);
    TorOperand values = tor_im_operand(c, 0);
    bool int32 = tor_im_flag(c, 2), right = tor_im_flag(c, 3);
    if (lines && lines->rank != 1)
        return tor_im_refuse_arg(c, 1, "expected 1 dim, got %d", lines->rank);
    return RETURN(search(c, lines, values, int32, right));
}

// ---------------------------------------------------------------- running values

static ToroidStatus import_running(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (!x) return c->status;
    int axis = tor_im_axis(c, 1, x->rank);
    TorDtype dtype = tor_im_dtype(c, 2, tor_dtype_is_float(x->dtype) ? x->dtype : TOR_int64);
    if (dtype == TOR_bool) return tor_im_refuse_arg(c, 2, "bool is not supported");
    x = tor_im_cast(c, x, dtype);
    if (!x || x->rank == 0) return RETURN(tor_im_contiguous(c, x));
    TorAttr a[] = {TOR_A_INT(axis, axis), TOR_A_DTYPE(dtype, dtype)};
    return RETURN(tor_im_add(c, (TorOp)c->row->op, &x, 1, a, 2));
}

static ToroidStatus import_logcumsumexp(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (!x) return c->status;
    int axis = tor_im_axis(c, 1, x->rank);
    if (x->rank == 0) return RETURN(tor_im_contiguous(c, x));
    TorAttr a = TOR_A_INT(axis, axis);
    return RETURN(tor_im_add(c, TOR_OP_logcumsumexp, &x, 1, &a, 1));
}

static ToroidStatus import_running_extreme(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (!x) return c->status;
    int axis = tor_im_axis(c, 1, x->rank);
    TorValue *line = tor_im_at_least_1d(c, x);
    TorAttr a = TOR_A_INT(axis, axis);
    return return_pair(c, x, tor_im_add(c, (TorOp)c->row->op, &line, 1, &a, 1));
}

#define SEARCH "sorted_sequence, self, *, out_int32=False, right=False, side=None, sorter=None"
#define BUCKETS "self, boundaries, *, out_int32=False, right=False"
#define KEEP "self, dim=-1, keepdim=False"

static const TorAtenRow rows[] = {
    {"aten.sort.default", "self, dim=-1, descending=False", import_sort, 0},
    {"aten.sort.stable", "self, *, stable, dim=-1, descending=False", import_sort_stable, 0},
    {"aten.topk.default", "self, k, dim=-1, largest=True, sorted=True", import_topk, 0},
    {"aten.kthvalue.default", "self, k, dim=-1, keepdim=False", import_kthvalue, 0},
    {"aten.median.default", "self", import_median, 0},
    {"aten.nanmedian.default", "self", import_median, 1},
    {"aten.median.dim", KEEP, import_median_dim, 0},
    {"aten.nanmedian.dim", KEEP, import_median_dim, 1},
    {"aten.mode.default", KEEP, import_mode, 0},
    {"aten.cumsum.default", "self, dim, *, dtype=None", import_running, TOR_OP_cumsum},
    {"aten.cumprod.default", "self, dim, *, dtype=None", import_running, TOR_OP_cumprod},
    {"aten.logcumsumexp.default", "self, dim", import_logcumsumexp, 0},
    {"aten.cummax.default", "self, dim", import_running_extreme, TOR_OP_cummax},
    {"aten.cummin.default", "self, dim", import_running_extreme, TOR_OP_cummin},
    {"aten.searchsorted.Tensor", SEARCH, import_searchsorted, 0},
    {"aten.searchsorted.Scalar", SEARCH, import_searchsorted, 0},
    {"aten.bucketize.Tensor", BUCKETS, import_bucketize, 0},
    {"aten.bucketize.Scalar", BUCKETS, import_bucketize, 0},
};
TOR_ATEN_TABLE(order, rows);

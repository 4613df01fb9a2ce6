/// Losses over classes.
#include "aten/build.h"
#include "aten/tables.h"

enum { NONE = 0, MEAN = 1, SUM = 2 };

/// The sum over all dims.
static TorValue *total(TorCall *c, TorValue *x) {
    int64_t axes[TOR_MAX_RANK];
    if (c->status || !x) return NULL;
    for (int d = 0; d < x->rank; d++) axes[d] = d;
    return x->rank ? tor_im_reduce(c, TOR_OP_sum, x, axes, x->rank, false) : x;
}

/// -weight[target] * x[target] where the target is not the one to ignore, else 0. Known by name,
/// since PyTorch's decomposition forgets that a wrong target is an IndexError.
static ToroidStatus import_nll_loss(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0), *target = tor_im_index(c, tor_im_tensor(c, 1), 1);
    TorValue *weight = tor_im_tensor_or_null(c, 2), *zero = NUM(0);
    int64_t reduction = tor_im_int(c, 3), ignore = tor_im_int(c, 4), axis0 = 0;
    if (c->status) return c->status;
    if (x->rank < 1 || target->rank != x->rank - 1)
        return tor_im_refuse(c, "ranks %d and %d are not supported", x->rank, target->rank);
    if (!tor_dtype_is_float(x->dtype) || (weight && weight->dtype != x->dtype))
        return tor_im_refuse(c, "expected input and weight of one float type");
    int axis = x->rank > 1;
    TorDtype t = x->dtype, wide = tor_dtype_compute(t);
    TorValue *counts = F2(ne, target, tor_im_int_number(c, ignore));
    target = F3(where, counts, target, tor_im_int_number(c, 0));
    TorValue *places[] = {x, tor_im_unsqueeze(c, target, axis)}, *classes[] = {weight, target};
    TorAttr along[] = {TOR_A_INT(axis, axis), TOR_A_INT(index_error, 1)},
            first = TOR_A_INTS(axes, &axis0, 1);
    TorValue *loss = tor_im_squeeze(c, tor_im_add(c, TOR_OP_gather, places, 2, along, 2), axis);
    loss = F1(neg, tor_im_up(c, loss));
    TorValue *share = tor_im_cast(c, counts, wide);
    if (weight) {
        TorValue *own = tor_im_up(c, tor_im_add(c, TOR_OP_index, classes, 2, &first, 1));
        loss = F2(mul, loss, own);
        share = F3(where, counts, own, zero);
    }
    loss = F3(where, counts, loss, zero);
    if (reduction == NONE && axis == 1) {
        TorScalar none = {.dtype = TOR_float64};
        TorValue *results[] = {tor_im_cast(c, loss, t), tor_im_full(c, none, t, 0, NULL)};
        return tor_im_return_list(c, results, 2);
    }
    share = total(c, share);
    if (reduction != NONE) loss = total(c, loss);
    if (reduction == MEAN) loss = F2(div, loss, share);
    TorValue *results[] = {tor_im_cast(c, loss, t), tor_im_cast(c, share, t)};
    return tor_im_return_list(c, results, 2);
}

/// Known whole so that a class out of range is an error.
static ToroidStatus import_one_hot(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    int64_t classes = tor_im_int(c, 1);
    if (c->status) return c->status;
    if (x->dtype != TOR_int64 || classes <= 0 || x->rank == TOR_MAX_RANK)
        return tor_im_refuse(c, "expected int64 and a known number of classes");
    TorDim dims[TOR_MAX_RANK], one[TOR_MAX_RANK];
    for (int d = 0; d < x->rank; d++) dims[d] = one[d] = x->dim[d];
    dims[x->rank] = tor_im_const(c, classes), one[x->rank] = tor_im_const(c, 1);
    TorScalar off = {.dtype = TOR_int64}, on = {.dtype = TOR_int64, .i = 1};
    TorValue *inputs[] = {tor_im_repeated(c, off, TOR_int64, x->rank + 1, dims),
                          tor_im_unsqueeze(c, x, x->rank),
                          tor_im_repeated(c, on, TOR_int64, x->rank + 1, one)};
    TorAttr a[] = {TOR_A_INT(axis, x->rank), TOR_A_STR(reduce, "")};
    return RETURN(tor_im_add(c, TOR_OP_scatter, inputs, 3, a, 2));
}

#define NLL "self, target, weight=None, reduction=1, ignore_index=-100"

static const TorAtenRow rows[] = {
    {"aten.nll_loss_forward.default", NLL, import_nll_loss, 0},
    {"aten.nll_loss2d_forward.default", NLL, import_nll_loss, 0},
    {"toroid.one_hot.default", "self, num_classes", import_one_hot, 0},
};
TOR_ATEN_TABLE(loss, rows);

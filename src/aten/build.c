/// Adding nodes for a call: the vocabulary that op files compose.
#include "aten/build.h"

#include <string.h>

TorValue *tor_im_add(TorCall *c, TorOp op, TorValue *const *inputs, int n_inputs,
                     const TorAttr *attrs, int n_attrs) {
    for (int i = 0; i < n_inputs; i++)
        if (!inputs[i] && !c->status)
            tor_im_check(c, tor_invalid("%s: input %d is missing", tor_op_name(op), i));
    if (c->status) return NULL;
    TorNode *node = NULL;
    if (tor_im_check(c, tor_graph_add(c->g, NULL, op, inputs, n_inputs, attrs, n_attrs, 1, &node)))
        return NULL;
    node->origin = c->origin;
    return node->outputs[0];
}

TorValue *tor_im_map(TorCall *c, TorOp op, TorValue *a, TorValue *b, TorValue *d) {
    TorValue *inputs[] = {a, b, d};
    return tor_im_add(c, op, inputs, d ? 3 : b ? 2 : 1, NULL, 0);
}

static TorValue *number(TorCall *c, TorScalar s) {
    TorValue *v = NULL;
    if (!c->status) tor_im_check(c, tor_graph_number(c->g, s, &v));
    return v;
}
TorValue *tor_im_float_number(TorCall *c, double x) {
    return number(c, (TorScalar){.dtype = TOR_float64, .f = x});
}
TorValue *tor_im_int_number(TorCall *c, int64_t x) {
    return number(c, (TorScalar){.dtype = TOR_int64, .i = x});
}

TorValue *tor_im_cast(TorCall *c, TorValue *x, TorDtype dtype) {
    if (c->status || !x) return NULL;
    if (x->dtype == dtype) return x;
    TorAttr a = TOR_A_DTYPE(dtype, dtype);
    return tor_im_add(c, TOR_OP_cast, &x, 1, &a, 1);
}

TorValue *tor_im_up(TorCall *c, TorValue *x) {
    return x ? tor_im_cast(c, x, tor_dtype_compute(x->dtype)) : NULL;
}
TorValue *tor_im_to_bool(TorCall *c, TorValue *x) { return tor_im_cast(c, x, TOR_bool); }

TorValue *tor_im_full(TorCall *c, TorScalar value, TorDtype dtype, int rank, const TorDim *dims) {
    TorAttr a[] = {TOR_A_SCALAR(value, tor_scalar_cast(value, dtype)), TOR_A_DTYPE(dtype, dtype),
                   TOR_A_DIMS(dims, dims, rank)};
    return tor_im_add(c, TOR_OP_full, NULL, 0, a, 3);
}

TorValue *tor_im_repeated(TorCall *c, TorScalar value, TorDtype dtype, int rank,
                          const TorDim *dims) {
    return tor_im_expand(c, tor_im_full(c, value, dtype, 0, NULL), rank, dims);
}

TorValue *tor_im_arange(TorCall *c, TorDim count, TorDim start, int64_t step, TorDtype dtype) {
    TorAttr a[] = {TOR_A_DTYPE(dtype, dtype), TOR_A_DIMS(dims, &count, 1), TOR_A_DIM(start, start),
                   TOR_A_INT(step, step)};
    return tor_im_add(c, TOR_OP_arange, NULL, 0, a, 4);
}

TorValue *tor_im_dim_tensor(TorCall *c, TorDim dim) {
    return tor_im_view(c, tor_im_arange(c, tor_im_const(c, 1), dim, 1, TOR_int64), 0, NULL);
}

// ---------------------------------------------------------------- views

static bool same_dims(const TorValue *x, int rank, const TorDim *dims) {
    return x->rank == rank && (rank == 0 || memcmp(x->dim, dims, (size_t)rank * sizeof *dims) == 0);
}

static bool rank_fits(TorCall *c, int rank) {
    if (rank > TOR_MAX_RANK) tor_im_refuse(c, "rank %d is over %d", rank, TOR_MAX_RANK);
    return !c->status;
}

TorValue *tor_im_view(TorCall *c, TorValue *x, int rank, const TorDim *dims) {
    if (c->status || !x || !rank_fits(c, rank)) return NULL;
    if (same_dims(x, rank, dims)) return x;
    TorAttr a = TOR_A_DIMS(dims, dims, rank);
    return tor_im_add(c, TOR_OP_view, &x, 1, &a, 1);
}

TorValue *tor_im_expand(TorCall *c, TorValue *x, int rank, const TorDim *dims) {
    if (c->status || !x || !rank_fits(c, rank)) return NULL;
    if (same_dims(x, rank, dims)) return x;
    TorAttr a = TOR_A_DIMS(dims, dims, rank);
    return tor_im_add(c, TOR_OP_expand, &x, 1, &a, 1);
}

TorValue *tor_im_permute(TorCall *c, TorValue *x, const int64_t *axes) {
    if (c->status || !x) return NULL;
    bool moved = false;
    for (int i = 0; i < x->rank; i++) moved |= axes[i] != i;
    if (!moved) return x;
    TorAttr a = TOR_A_INTS(axes, axes, x->rank);
    return tor_im_add(c, TOR_OP_permute, &x, 1, &a, 1);
}

TorValue *tor_im_transpose(TorCall *c, TorValue *x, int p, int q) {
    if (c->status || !x) return NULL;
    int64_t axes[TOR_MAX_RANK];
    for (int i = 0; i < x->rank; i++) axes[i] = i == p ? q : i == q ? p : i;
    return tor_im_permute(c, x, axes);
}

TorValue *tor_im_unsqueeze(TorCall *c, TorValue *x, int axis) {
    if (c->status || !x || !rank_fits(c, x->rank + 1)) return NULL;
    TorDim dims[TOR_MAX_RANK];
    for (int i = 0, k = 0; i <= x->rank; i++)
        dims[i] = i == axis ? tor_im_const(c, 1) : x->dim[k++];
    return tor_im_view(c, x, x->rank + 1, dims);
}

TorValue *tor_im_at_least_1d(TorCall *c, TorValue *x) {
    return x && x->rank == 0 ? tor_im_unsqueeze(c, x, 0) : x;
}

TorValue *tor_im_squeeze(TorCall *c, TorValue *x, int axis) {
    if (c->status || !x) return NULL;
    TorDim dims[TOR_MAX_RANK];
    int n = 0;
    for (int i = 0; i < x->rank; i++)
        if (i != axis) dims[n++] = x->dim[i];
    return tor_im_view(c, x, n, dims);
}

TorValue *tor_im_contiguous(TorCall *c, TorValue *x) {
    return tor_im_add(c, TOR_OP_contiguous, &x, 1, NULL, 0);
}

TorValue *tor_im_slice(TorCall *c, TorValue *x, int axis, TorDim start, int64_t step,
                       TorDim count) {
    if (c->status || !x) return NULL;
    if (count == x->dim[axis] && step == 1 && tor_int_is(c->g, start, 0)) return x;
    TorAttr a[] = {TOR_A_INT(axis, axis), TOR_A_DIM(start, start), TOR_A_INT(step, step),
                   TOR_A_DIMS(dims, &count, 1)};
    return tor_im_add(c, TOR_OP_slice, &x, 1, a, 4);
}

TorValue *tor_im_cat(TorCall *c, TorValue *const *parts, int count, int axis) {
    if (count == 1 && !c->status) return parts[0];
    TorAttr a = TOR_A_INT(axis, axis);
    return tor_im_add(c, TOR_OP_cat, parts, count, &a, 1);
}

TorValue *tor_im_channels(TorCall *c, TorValue *x, int rank) {
    if (c->status || !x || !rank_fits(c, rank)) return NULL;
    TorDim dims[TOR_MAX_RANK];
    for (int i = 0; i < rank; i++) dims[i] = i == 1 ? x->dim[0] : tor_im_const(c, 1);
    return tor_im_view(c, x, rank, dims);
}

// ---------------------------------------------------------------- reductions and products

TorValue *tor_im_reduce(TorCall *c, TorOp op, TorValue *x, const int64_t *axes, int n_axes,
                        bool keepdim) {
    if (c->status || !x) return NULL;
    TorAttr a[3] = {TOR_A_INTS(axes, axes, n_axes), TOR_A_INT(keepdim, keepdim)};
    int n = 2;
    if (op == TOR_OP_sum || op == TOR_OP_prod || op == TOR_OP_mean)
        a[n++] = TOR_A_DTYPE(dtype, x->dtype);
    return tor_im_add(c, op, &x, 1, a, n);
}

TorValue *tor_im_var(TorCall *c, TorValue *x, const int64_t *axes, int n_axes, bool keepdim,
                     double correction) {
    TorAttr a[] = {TOR_A_INTS(axes, axes, n_axes), TOR_A_INT(keepdim, keepdim),
                   TOR_A_FLOAT(correction, correction)};
    return tor_im_add(c, TOR_OP_var, &x, 1, a, 3);
}

static bool is_transposed(const TorValue *w) {
    const TorAttr *axes =
        w->node && w->node->op == TOR_OP_permute ? tor_attr(w->node, TOR_ATTR_axes) : NULL;
    return axes && axes->count == 2 && axes->ints[0] == 1;
}

TorValue *tor_im_matmul(TorCall *c, TorValue *a, TorValue *b) {
    if (c->status || !a || !b) return NULL;
    if (a->dtype != b->dtype) {
        tor_im_refuse(c, "operands must have one type, got %s and %s", tor_dtype_name(a->dtype),
                      tor_dtype_name(b->dtype));
        return NULL;
    }
    if (a->rank < 2 || b->rank < 2) {
        tor_im_refuse(c, "expected matrices, got ranks %d and %d", a->rank, b->rank);
        return NULL;
    }
    if (a->dtype == TOR_bool) {
        tor_im_refuse(c, "products of bool matrices are not supported");
        return NULL;
    }
    if (b->rank == 2 && (a->rank > 2 || is_transposed(b))) {
        // A weight as the linear op wants it; the transposition of a transposition is what was
        // there first.
        TorValue *inputs[] = {a,
                              is_transposed(b) ? tor_in(b->node, 0) : tor_im_transpose(c, b, 0, 1)};
        return tor_im_add(c, TOR_OP_linear, inputs, 2, NULL, 0);
    }
    if (a->rank > 2 || b->rank > 2) {
        TorDim da[TOR_MAX_RANK], db[TOR_MAX_RANK];
        int batch = tor_im_broadcast(c, a->dim, a->rank - 2, b->dim, b->rank - 2, da);
        memcpy(db, da, sizeof da);
        for (int i = 0; i < 2; i++)
            da[batch + i] = a->dim[a->rank - 2 + i], db[batch + i] = b->dim[b->rank - 2 + i];
        a = tor_im_expand(c, a, batch + 2, da);
        b = tor_im_expand(c, b, batch + 2, db);
    }
    TorValue *inputs[] = {a, b};
    return tor_im_add(c, TOR_OP_matmul, inputs, 2, NULL, 0);
}

// ---------------------------------------------------------------- integers

TorDim tor_im_const(TorCall *c, int64_t value) { return tor_int_const(c->g, value); }

int tor_im_broadcast(TorCall *c, const TorDim *a, int rank_a, const TorDim *b, int rank_b,
                     TorDim *out) {
    int rank = TOR_MAX(rank_a, rank_b);
    for (int i = 0; i < rank; i++) {
        int ia = i - (rank - rank_a), ib = i - (rank - rank_b);
        out[i] = ia < 0                     ? b[ib]
                 : ib < 0 || a[ia] == b[ib] ? a[ia]
                                            : tor_int_binary(c->g, TOR_INT_broadcast, a[ia], b[ib]);
        int64_t x, y;
        if (ia >= 0 && ib >= 0 && tor_int_known(c->g, a[ia], &x) &&
            tor_int_known(c->g, b[ib], &y)) {
            if (x != y && x != 1 && y != 1)
                tor_im_refuse(c, "sizes %" PRId64 " and %" PRId64 " do not broadcast", x, y);
            out[i] = x == 1 ? b[ib] : a[ia];
        }
    }
    return rank;
}

TorDim tor_im_wrap_index(TorCall *c, TorDim i, TorDim size) {
    int64_t v;
    if (tor_int_known(c->g, i, &v)) return v < 0 ? tor_int_add(c->g, i, size) : i;
    TorDim negative = tor_int_binary(c->g, TOR_INT_lt, i, tor_im_const(c, 0));
    return tor_int_add(c->g, i, tor_int_mul(c->g, size, negative));
}

TorDim tor_im_min(TorCall *c, TorDim a, TorDim b) {
    return a == b ? a : tor_int_binary(c->g, TOR_INT_min, a, b);
}
TorDim tor_im_max(TorCall *c, TorDim a, TorDim b) {
    return a == b ? a : tor_int_binary(c->g, TOR_INT_max, a, b);
}

// ---------------------------------------------------------------- results

ToroidStatus tor_im_return(TorCall *c, TorValue *value) {
    if (c->status) return c->status;
    if (!value) return tor_im_refuse(c, "no result");
    *c->result = TOR_ARG_OF_VALUE(value);
    return TOROID_OK;
}

ToroidStatus tor_im_return_list(TorCall *c, TorValue *const *values, int count) {
    if (c->status) return c->status;
    TorArg *items = tor_arena_alloc(c->g->arena, (size_t)TOR_MAX(count, 1) * sizeof *items);
    if (!items) return c->status = tor_no_memory();
    for (int i = 0; i < count; i++)
        items[i] = values[i] ? TOR_ARG_OF_VALUE(values[i]) : TOR_ARG_OF_NONE;
    *c->result = TOR_ARG_OF_LIST(items, count);
    return TOROID_OK;
}

ToroidStatus tor_im_return_dim(TorCall *c, TorDim dim) {
    if (c->status) return c->status;
    if (dim == TOR_NO_DIM) return c->status = c->g->failed ? c->g->failed : tor_no_memory();
    int64_t v;
    *c->result = tor_int_known(c->g, dim, &v) ? TOR_ARG_OF_INT(v) : TOR_ARG_OF_DIM(dim);
    return TOROID_OK;
}

ToroidStatus tor_im_return_none(TorCall *c) {
    if (!c->status) *c->result = TOR_ARG_OF_NONE;
    return c->status;
}

uint32_t tor_im_input_index(const TorValue *x) {
    return (uint32_t)tor_attr_int(x->node, TOR_ATTR_index, 0);
}

TorDim tor_im_input_stride(TorCall *c, const TorValue *x, int axis) {
    uint32_t index = tor_im_input_index(x);
    const TorInput *input = &c->g->inputs[index];
    if (input->contiguous) return tor_int_product(c->g, x->dim + axis + 1, x->rank - axis - 1);
    if (input->stride[axis] != TOR_NO_DIM) return input->stride[axis];
    return tor_int_stride(c->g, index, (uint32_t)axis);
}

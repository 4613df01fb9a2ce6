/// Gathers by tensors of indices, and writes to x[i, :, j].
///
/// A bool mask as an index gives a result whose size depends on data: refused, but for a write of
/// one value, which is a `where`.
#include "aten/build.h"
#include "aten/tables.h"

static bool is_list(const TorCall *c, int arg) { return c->args[arg].kind == TOR_ARG_LIST; }

TorValue *tor_im_index(TorCall *c, TorValue *index, int arg) {
    if (c->status || !index) return NULL;
    if (index->dtype == TOR_int64 || index->dtype == TOR_int32) return index;
    if (index->dtype == TOR_uint8 && !is_list(c, arg))
        return tor_im_cast(c, index, TOR_int64);  // no mask here
    tor_im_refuse_arg(c, arg,
                      index->dtype == TOR_bool || index->dtype == TOR_uint8
                          ? "a %s mask selects a number of elements that depends on data"
                          : "expected int64 or int32 indices, got %s",
                      tor_dtype_name(index->dtype));
    return NULL;
}

TorValue *tor_im_index_vector(TorCall *c, int arg) {
    TorValue *index = tor_im_index(c, tor_im_tensor(c, arg), arg);
    if (!index) return NULL;
    if (index->rank > 1)
        return tor_im_refuse_arg(c, arg, "expected at most 1 dim, got %d", index->rank), NULL;
    return tor_im_at_least_1d(c, index);
}

static ToroidStatus import_embedding(TorCall *c) {
    TorValue *weight = tor_im_tensor(c, 0), *index = tor_im_index(c, tor_im_tensor(c, 1), 1);
    if (weight && weight->rank != 2)
        return tor_im_refuse_arg(c, 0, "expected 2 dims, got %d", weight->rank);
    TorValue *inputs[] = {weight, index};
    return RETURN(tor_im_add(c, TOR_OP_embedding, inputs, 2, NULL, 0));
}

/// Only the output is ours: the other results are for the backward.
static ToroidStatus import_embedding_bag(TorCall *c) {
    static const char *const modes[] = {"sum", "mean", "max"};
    TorValue *inputs[] = {tor_im_tensor(c, 0), tor_im_index(c, tor_im_tensor(c, 1), 1),
                          tor_im_index(c, tor_im_tensor(c, 2), 2), tor_im_tensor_or_null(c, 6)};
    int64_t mode = tor_im_int(c, 4), padding_idx = tor_im_int(c, 8);
    bool include_last = tor_im_flag(c, 7);
    if (c->status) return c->status;
    if (mode < 0 || mode > 2 || (mode && inputs[3]))
        return tor_im_refuse_arg(c, 4, "unexpected mode");
    if (inputs[0]->rank != 2 || inputs[1]->rank != 1 || inputs[2]->rank != 1)
        return tor_im_refuse(c, "expected a weight of 2 dims, indices and offsets of 1");
    // Eager takes both integer types together.
    bool mixed = inputs[1]->dtype != inputs[2]->dtype;
    for (int i = 1; i < 3; i++)
        if (mixed) inputs[i] = tor_im_cast(c, inputs[i], TOR_int64);
    TorAttr a[] = {TOR_A_STR(mode, modes[mode]), TOR_A_INT(include_last, include_last),
                   TOR_A_INT(padding_idx, padding_idx)};
    TorValue *results[4] = {tor_im_add(c, TOR_OP_embedding_bag, inputs, inputs[3] ? 4 : 3, a, 3)};
    return tor_im_return_list(c, results, 4);
}

static ToroidStatus import_index_select(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (!x) return c->status;
    int axis = tor_im_axis(c, 1, x->rank);
    TorValue *index = tor_im_index_vector(c, 2);
    bool scalar = x->rank == 0;
    TorValue *inputs[] = {tor_im_at_least_1d(c, x), index};
    TorAttr a = TOR_A_INT(axis, axis);
    TorValue *r = tor_im_add(c, TOR_OP_index_select, inputs, 2, &a, 1);
    return RETURN(scalar ? tor_im_squeeze(c, r, 0) : r);
}

static ToroidStatus import_gather(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (!x) return c->status;
    int axis = tor_im_axis(c, 1, x->rank);
    TorValue *index = tor_im_index(c, tor_im_tensor(c, 2), 2);
    if (!index) return c->status;
    bool scalar = index->rank == 0;
    TorValue *inputs[] = {tor_im_at_least_1d(c, x), tor_im_at_least_1d(c, index)};
    if (c->status) return c->status;
    if (inputs[0]->rank != inputs[1]->rank)
        return tor_im_refuse(c, "self and index must have the same rank");
    TorAttr a = TOR_A_INT(axis, axis);
    TorValue *r = tor_im_add(c, TOR_OP_gather, inputs, 2, &a, 1);
    return RETURN(scalar ? tor_im_squeeze(c, r, 0) : r);
}

// ---------------------------------------------------------------- x[i, :, j]

typedef struct {
    TorValue *inputs[TOR_MAX_RANK + 2];  ///< x and, for writes, the values stand in front
    int64_t axes[TOR_MAX_RANK];
    int count;
} Indices;

/// The indices of argument 1 into `out->inputs` from `first` on.
static void read_indices(TorCall *c, TorValue *x, int first, Indices *out) {
    TorValue *given[TOR_MAX_RANK];
    int n = tor_im_tensors(c, 1, given, TOR_MAX_RANK, true);
    out->count = 0;
    if (c->status) return;
    if (n > x->rank) tor_im_refuse_arg(c, 1, "%d indices for a tensor of rank %d", n, x->rank);
    for (int i = 0; i < n && !c->status; i++)
        if (given[i]) {
            out->inputs[first + out->count] = tor_im_index(c, given[i], 1);
            out->axes[out->count++] = i;
        }
}

static ToroidStatus import_index(TorCall *c) {
    Indices ix;
    TorValue *x = tor_im_tensor(c, 0);
    if (!x) return c->status;
    ix.inputs[0] = x;
    read_indices(c, x, 1, &ix);
    if (c->status) return c->status;
    if (ix.count == 0) return RETURN(tor_im_contiguous(c, x));
    TorAttr a = TOR_A_INTS(axes, ix.axes, ix.count);
    return RETURN(tor_im_add(c, TOR_OP_index, ix.inputs, ix.count + 1, &a, 1));
}

/// Of x seen as one line. Known by name, since PyTorch's decomposition reads a 0-d index as a
/// number.
static ToroidStatus import_take(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0), *index = tor_im_index(c, tor_im_tensor(c, 1), 1);
    if (c->status) return c->status;
    TorDim numel = tor_value_numel(c->g, x);
    TorValue *inputs[] = {tor_im_view(c, x, 1, &numel), index};
    TorAttr a = TOR_A_INTS(axes, (int64_t[]){0}, 1);
    return RETURN(tor_im_add(c, TOR_OP_index, inputs, 2, &a, 1));
}

/// x[mask] = value for a bool mask over the first dims: a where.
static TorValue *masked_write(TorCall *c, TorValue *x, TorValue *mask, TorValue *value) {
    TorDim dims[TOR_MAX_RANK];
    for (int i = 0; i < x->rank; i++) dims[i] = i < mask->rank ? mask->dim[i] : tor_im_const(c, 1);
    return F3(where, tor_im_view(c, mask, x->rank, dims), value, x);
}

static ToroidStatus import_index_put(TorCall *c) {
    Indices ix;
    TorValue *x = tor_im_tensor(c, 0), *values = tor_im_tensor(c, 2);
    bool accumulate = tor_im_flag(c, 3);
    if (c->status) return c->status;
    if (values->dtype != x->dtype)
        return tor_im_refuse_arg(c, 2, "expected %s, got %s", tor_dtype_name(x->dtype),
                                 tor_dtype_name(values->dtype));
    const TorArg *list = &c->args[1];
    TorValue *mask =
        list->kind == TOR_ARG_LIST && list->count == 1 && list->list[0].kind == TOR_ARG_VALUE
            ? list->list[0].value
            : NULL;
    if (mask && mask->dtype == TOR_bool && !accumulate && mask->rank <= x->rank) {
        bool single = true;
        for (int i = 0; i < values->rank; i++) single &= tor_int_is(c->g, values->dim[i], 1);
        if (single) return RETURN(masked_write(c, x, mask, tor_im_view(c, values, 0, NULL)));
    }
    ix.inputs[0] = x, ix.inputs[1] = values;
    read_indices(c, x, 2, &ix);
    if (c->status) return c->status;
    if (ix.count == 0) return tor_im_refuse_arg(c, 1, "expected at least one index");
    TorAttr a[] = {TOR_A_INTS(axes, ix.axes, ix.count), TOR_A_INT(accumulate, accumulate)};
    return RETURN(tor_im_add(c, TOR_OP_index_put, ix.inputs, ix.count + 2, a, 2));
}

#define BAG                                                                      \
    "weight, indices, offsets, scale_grad_by_freq=False, mode=0, sparse=False, " \
    "per_sample_weights=None, include_last_offset=False, padding_idx=-1"
#define PUT "self, indices, values, accumulate=False"

static const TorAtenRow rows[] = {
    {"aten.embedding.default",
     "weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False", import_embedding,
     0},
    {"aten._embedding_bag.default", BAG, import_embedding_bag, 0},
    {"aten._embedding_bag_forward_only.default", BAG, import_embedding_bag, 0},
    {"aten.index_select.default", "self, dim, index", import_index_select, 0},
    {"aten.gather.default", "self, dim, index, *, sparse_grad=False", import_gather, 0},
    {"aten.index.Tensor", "self, indices", import_index, 0},
    {"aten._unsafe_index.Tensor", "self, indices", import_index, 0},
    {"aten.take.default", "self, index", import_take, 0},
    {"aten.index_put.default", PUT, import_index_put, 0},
    {"aten.index_put_.default", PUT, import_index_put, 0},
    {"aten._unsafe_index_put.default", PUT, import_index_put, 0},
};
TOR_ATEN_TABLE(index, rows);

// Type rules of ops that order elements along an axis, and of running values.
#include <string.h>

#include "graph/internal.h"

/// Values like x and int64 positions, with `size` along the axis (TOR_NO_DIM: as many as x has).
static ToroidStatus ordered(TorGraph *g, TorNode *node, TorDim size) {
    const TorValue *x = tor_in(node, 0);
    TorDim dims[TOR_MAX_RANK];
    int axis;
    TOR_TRY(tor_need_rank(g, node, 0, "x", 1, TOR_MAX_RANK));
    TOR_TRY(tor_need_axis(node, x->rank, &axis));
    memcpy(dims, x->dim, sizeof dims);
    if (size != TOR_NO_DIM) dims[axis] = size;
    tor_graph_set_type(node->outputs[0], x->dtype, x->rank, dims);
    tor_graph_set_type(node->outputs[1], TOR_int64, x->rank, dims);
    return TOROID_OK;
}

ToroidStatus tor_infer_sort(TorGraph *g, TorNode *node) { return ordered(g, node, TOR_NO_DIM); }

ToroidStatus tor_infer_cummax(TorGraph *g, TorNode *node) { return ordered(g, node, TOR_NO_DIM); }

ToroidStatus tor_infer_cummin(TorGraph *g, TorNode *node) { return ordered(g, node, TOR_NO_DIM); }

/// Attribute dims = [k] with least <= k <= the size of the axis, as far as those are known.
static ToroidStatus need_k(TorGraph *g, TorNode *node, int64_t least, TorDim *k) {
    const TorValue *x = tor_in(node, 0);
    const TorDim *dims;
    int64_t count, size;
    int axis;
    TOR_TRY(tor_need_rank(g, node, 0, "x", 1, TOR_MAX_RANK));
    TOR_TRY(tor_need_axis(node, x->rank, &axis));
    TOR_TRY(tor_need_dims(g, node, TOR_ATTR_dims, 1, &dims, NULL));
    *k = dims[0];
    tor_must_fit(g, *k, x->dim[axis]);
    if (!tor_int_known(g, *k, &count)) return TOROID_OK;
    if (count < least || (tor_int_known(g, x->dim[axis], &size) && count > size))
        return tor_invalid("k must be in [%" PRId64 ", size of dim %d], got %" PRId64, least, axis,
                           count);
    return TOROID_OK;
}

ToroidStatus tor_infer_topk(TorGraph *g, TorNode *node) {
    TorDim k;
    TOR_TRY(need_k(g, node, 0, &k));
    return ordered(g, node, k);
}

ToroidStatus tor_infer_kth(TorGraph *g, TorNode *node) {
    const char *kind = tor_attr_str(node, TOR_ATTR_reduce, "");
    TorDim k;
    if (strcmp(kind, "kth") == 0)
        TOR_TRY(need_k(g, node, 1, &k));
    else if (strcmp(kind, "median") && strcmp(kind, "nanmedian") && strcmp(kind, "mode"))
        return tor_invalid(
            "attribute reduce must be \"kth\", \"median\", \"nanmedian\" or \"mode\", got \"%s\"",
            kind);
    return ordered(g, node, tor_int_const(g, 1));
}

static ToroidStatus running(TorNode *node) {
    const TorValue *x = tor_in(node, 0);
    int axis;
    TOR_TRY(tor_need_axis(node, x->rank, &axis));
    tor_graph_set_type(node->outputs[0], tor_attr_dtype(node, x->dtype), x->rank, x->dim);
    return TOROID_OK;
}

ToroidStatus tor_infer_cumsum(TorGraph *g, TorNode *node) {
    (void)g;
    return running(node);
}

ToroidStatus tor_infer_cumprod(TorGraph *g, TorNode *node) {
    (void)g;
    return running(node);
}

ToroidStatus tor_infer_logcumsumexp(TorGraph *g, TorNode *node) {
    TOR_TRY(tor_need_float(g, node, 0, "x"));
    return running(node);
}

ToroidStatus tor_infer_searchsorted(TorGraph *g, TorNode *node) {
    const TorValue *lines = tor_in(node, 0), *values = tor_in(node, 1);
    TorDtype dtype = tor_attr_dtype(node, TOR_int64);
    TOR_TRY(tor_need_rank(g, node, 0, "lines", 1, TOR_MAX_RANK));
    TOR_TRY(tor_need_dtype(g, node, 1, "values", lines->dtype));
    if (dtype != TOR_int64 && dtype != TOR_int32)
        return tor_invalid("attribute dtype must be int64 or int32, got %s", tor_dtype_name(dtype));
    if (lines->rank > 1) {
        TOR_TRY(tor_need_rank(g, node, 1, "values", lines->rank, lines->rank));
        for (int d = 0; d < lines->rank - 1; d++)
            TOR_TRY(tor_need_dim(g, node, 1, "values", d, lines->dim[d]));
    }
    tor_graph_set_type(node->outputs[0], dtype, values->rank, values->dim);
    return TOROID_OK;
}

// Type rules of ops that move elements: copies, gathers and scatters.
#include "graph/internal.h"

#include <stdio.h>
#include <string.h>

static ToroidStatus like_x(TorNode *node) {
    const TorValue *x = tor_in(node, 0);
    tor_graph_set_type(node->outputs[0], x->dtype, x->rank, x->dim);
    return TOROID_OK;
}

ToroidStatus tor_infer_contiguous(TorGraph *g, TorNode *node) {
    (void)g;
    return like_x(node);
}

ToroidStatus tor_infer_cat(TorGraph *g, TorNode *node) {
    const TorValue *x = tor_in(node, 0);
    TorDim dims[TOR_MAX_RANK];
    int axis;
    TOR_TRY(tor_need_rank(g, node, 0, "input 0", 1, TOR_MAX_RANK));
    TOR_TRY(tor_need_axis(node, x->rank, &axis));
    memcpy(dims, x->dim, sizeof(dims));
    for (int i = 1; i < node->n_inputs; ++i) {
        char what[24];
        snprintf(what, sizeof(what), "input %d", i);
        TOR_TRY(tor_need_rank(g, node, i, what, x->rank, x->rank));
        TOR_TRY(tor_need_dtype(g, node, i, what, x->dtype));
        for (int d = 0; d < x->rank; ++d) {
            TorDim size = tor_in(node, i)->dim[d];
            if (d != axis) TOR_TRY(tor_need_dim(g, node, i, what, d, dims[d]));
            dims[d] = d == axis ? tor_int_add(g, dims[d], size) : tor_dims_merge(g, dims[d], size);
        }
    }
    if (g->failed) return tor_no_memory();
    tor_graph_set_type(node->outputs[0], x->dtype, x->rank, dims);
    return TOROID_OK;
}

ToroidStatus tor_infer_pad(TorGraph *g, TorNode *node) {
    const TorValue *x = tor_in(node, 0);
    const TorDim *low, *high;
    TorDim dims[TOR_MAX_RANK];
    TOR_TRY(tor_need_dims(g, node, TOR_ATTR_low, x->rank, &low, NULL));
    TOR_TRY(tor_need_dims(g, node, TOR_ATTR_high, x->rank, &high, NULL));
    for (int i = 0; i < x->rank; ++i) {
        int64_t size;
        dims[i] = tor_int_add(g, tor_int_add(g, x->dim[i], low[i]), high[i]);
        if (tor_int_known(g, dims[i], &size) && size < 0)
            return tor_invalid("low and high leave dim %d with %" PRId64 " elements", i, size);
    }
    if (g->failed) return tor_no_memory();
    tor_graph_set_type(node->outputs[0], x->dtype, x->rank, dims);
    return TOROID_OK;
}

ToroidStatus tor_infer_flip(TorGraph *g, TorNode *node) {
    (void)g;
    const int64_t *axes;
    int n;
    uint32_t mask;
    TOR_TRY(tor_need_axes(node, tor_in(node, 0)->rank, &axes, &n, &mask));
    return like_x(node);
}

// dims = before[0, at) + index dims + after
static ToroidStatus splice(TorDim *dims, int *rank, const TorDim *items, int n) {
    if (*rank + n > TOR_MAX_RANK)
        return tor_refuse("the result has rank %d, at most %d is supported", *rank + n,
                          TOR_MAX_RANK);
    if (n > 0) memcpy(dims + *rank, items, (size_t)n * sizeof(*items));
    *rank += n;
    return TOROID_OK;
}

ToroidStatus tor_infer_embedding_bag(TorGraph *g, TorNode *node) {
    const TorValue *w = tor_in(node, 0), *index = tor_in(node, 1), *offsets = tor_in(node, 2);
    TOR_TRY(tor_need_float(g, node, 0, "weight"));
    TOR_TRY(tor_need_rank(g, node, 0, "weight", 2, 2));
    TOR_TRY(tor_need_rank(g, node, 1, "indices", 1, 1));
    TOR_TRY(tor_need_rank(g, node, 2, "offsets", 1, 1));
    TOR_TRY(tor_need_index(g, node, 1, "indices"));
    TOR_TRY(tor_need_dtype(g, node, 2, "offsets", index->dtype));
    if (node->n_inputs > 3) {
        TOR_TRY(tor_need_rank(g, node, 3, "factor", 1, 1));
        TOR_TRY(tor_need_dtype(g, node, 3, "factor", w->dtype));
        TOR_TRY(tor_need_dim(g, node, 3, "factor", 0, index->dim[0]));
    }
    TorDim dims[] = {offsets->dim[0], w->dim[1]};
    if (tor_attr_int(node, TOR_ATTR_include_last, 0))
        dims[0] = tor_int_sub(g, dims[0], tor_int_const(g, 1));
    if (g->failed) return tor_no_memory();
    tor_graph_set_type(node->outputs[0], w->dtype, 2, dims);
    return TOROID_OK;
}

ToroidStatus tor_infer_embedding(TorGraph *g, TorNode *node) {
    const TorValue *weight = tor_in(node, 0), *index = tor_in(node, 1);
    TorDim dims[TOR_MAX_RANK];
    int rank = 0;
    TOR_TRY(tor_need_rank(g, node, 0, "weight", 1, TOR_MAX_RANK));
    TOR_TRY(tor_need_index(g, node, 1, "index"));
    TOR_TRY(splice(dims, &rank, index->dim, index->rank));
    TOR_TRY(splice(dims, &rank, weight->dim + 1, weight->rank - 1));
    tor_graph_set_type(node->outputs[0], weight->dtype, rank, dims);
    return TOROID_OK;
}

ToroidStatus tor_infer_index_select(TorGraph *g, TorNode *node) {
    const TorValue *x = tor_in(node, 0);
    int axis;
    TOR_TRY(tor_need_rank(g, node, 0, "x", 1, TOR_MAX_RANK));
    TOR_TRY(tor_need_axis(node, x->rank, &axis));
    TOR_TRY(tor_need_index(g, node, 1, "index"));
    TOR_TRY(tor_need_rank(g, node, 1, "index", 1, 1));
    TOR_TRY(like_x(node));
    node->outputs[0]->dim[axis] = tor_in(node, 1)->dim[0];
    return TOROID_OK;
}

/// `index` is no larger than x along the axes that it does not index.
static void others_must_fit(TorGraph *g, const TorValue *x, const TorValue *index, int axis) {
    for (int d = 0; d < x->rank; ++d)
        if (d != axis) tor_must_fit(g, index->dim[d], x->dim[d]);
}

ToroidStatus tor_infer_gather(TorGraph *g, TorNode *node) {
    const TorValue *x = tor_in(node, 0), *index = tor_in(node, 1);
    int axis;
    TOR_TRY(tor_need_axis(node, x->rank, &axis));
    TOR_TRY(tor_need_index(g, node, 1, "index"));
    TOR_TRY(tor_need_rank(g, node, 1, "index", x->rank, x->rank));
    others_must_fit(g, x, index, axis);
    tor_graph_set_type(node->outputs[0], x->dtype, x->rank, index->dim);
    return TOROID_OK;
}

// Dims of x[indices at axes], numpy's way: the indices' common shape stands where the axes stood if
// those are neighbours, else in front. The indices are the inputs from `first` on.
static ToroidStatus indexed(TorGraph *g, const TorNode *node, int first, TorDim *dims, int *rank) {
    const TorValue *x = tor_in(node, 0);
    const int64_t *axes;
    int n, common = 0;
    uint32_t mask;
    TorDim shape[TOR_MAX_RANK];
    TOR_TRY(tor_need_axes(node, x->rank, &axes, &n, &mask));
    if (n == 0 || n != node->n_inputs - first)
        return tor_invalid("attribute axes must name one axis for each of the %d indices, got %d",
                           node->n_inputs - first, n);
    bool together = true;
    for (int i = 0; i < n; ++i) {
        char what[24];
        snprintf(what, sizeof(what), "index %d", i);
        const TorValue *index = tor_in(node, first + i);
        TOR_TRY(tor_need_index(g, node, first + i, what));
        ToroidStatus status = tor_dims_broadcast(g, index->dim, index->rank, shape, &common);
        if (status != TOROID_OK)
            return status == TOROID_INVALID ? tor_error_prefix(status, "%s", what) : status;
        if (i > 0 && axes[i] <= axes[i - 1]) return tor_invalid("attribute axes must be ascending");
        together = together && (i == 0 || axes[i] == axes[i - 1] + 1);
    }
    int at = together ? (int)axes[0] : 0;
    *rank = 0;
    TOR_TRY(splice(dims, rank, x->dim, at));
    TOR_TRY(splice(dims, rank, shape, common));
    for (int d = at; d < x->rank; ++d)
        if (!(mask >> d & 1)) TOR_TRY(splice(dims, rank, &x->dim[d], 1));
    return TOROID_OK;
}

ToroidStatus tor_infer_index(TorGraph *g, TorNode *node) {
    TorDim dims[TOR_MAX_RANK];
    int rank;
    TOR_TRY(indexed(g, node, 1, dims, &rank));
    tor_graph_set_type(node->outputs[0], tor_in(node, 0)->dtype, rank, dims);
    return TOROID_OK;
}

static ToroidStatus need_reduce(const char *reduce) {
    static const char *const names[] = {"", "add", "mul", "amax", "amin"};
    for (size_t i = 0; i < TOR_COUNT_OF(names); i++)
        if (strcmp(reduce, names[i]) == 0) return TOROID_OK;
    return tor_invalid(
        "attribute reduce must be \"\", \"add\", \"mul\", \"amax\" or \"amin\", got \"%s\"",
        reduce);
}

ToroidStatus tor_infer_index_put(TorGraph *g, TorNode *node) {
    const TorValue *x = tor_in(node, 0), *values = tor_in(node, 1);
    TorDim dims[TOR_MAX_RANK];
    int rank;
    TOR_TRY(tor_need_dtype(g, node, 1, "values", x->dtype));
    TOR_TRY(need_reduce(tor_attr_str(node, TOR_ATTR_reduce, "")));
    TOR_TRY(indexed(g, node, 2, dims, &rank));
    TOR_TRY(tor_need_rank(g, node, 1, "values", 0, rank));
    for (int d = 0; d < values->rank; ++d)
        if (!tor_int_is(g, values->dim[d], 1))
            TOR_TRY(tor_need_dim(g, node, 1, "values", d, dims[rank - values->rank + d]));
    return like_x(node);
}

// `source` has the dims of x except along `axis`, where it has `size` (TOR_NO_DIM: any).
static ToroidStatus check_source(TorGraph *g, const TorNode *node, int i, int axis, TorDim size) {
    const TorValue *x = tor_in(node, 0);
    TOR_TRY(tor_need_dtype(g, node, i, "source", x->dtype));
    TOR_TRY(tor_need_rank(g, node, i, "source", x->rank, x->rank));
    for (int d = 0; d < x->rank; ++d) {
        TorDim expected = d == axis ? size : x->dim[d];
        if (expected != TOR_NO_DIM) TOR_TRY(tor_need_dim(g, node, i, "source", d, expected));
    }
    return TOROID_OK;
}

ToroidStatus tor_infer_index_copy(TorGraph *g, TorNode *node) {
    int axis;
    TOR_TRY(tor_need_rank(g, node, 0, "x", 1, TOR_MAX_RANK));
    TOR_TRY(tor_need_axis(node, tor_in(node, 0)->rank, &axis));
    TOR_TRY(tor_need_index(g, node, 1, "index"));
    TOR_TRY(tor_need_rank(g, node, 1, "index", 1, 1));
    TOR_TRY(check_source(g, node, 2, axis, tor_in(node, 1)->dim[0]));
    return like_x(node);
}

ToroidStatus tor_infer_slice_scatter(TorGraph *g, TorNode *node) {
    int axis;
    int64_t step = tor_attr_int(node, TOR_ATTR_step, 1);
    TOR_TRY(tor_need_rank(g, node, 0, "x", 1, TOR_MAX_RANK));
    TOR_TRY(tor_need_axis(node, tor_in(node, 0)->rank, &axis));
    const TorAttr *start = tor_attr(node, TOR_ATTR_start);
    if (!start || start->kind != TOR_ATTR_DIM)
        return tor_invalid("attribute start is missing or no dim");
    if (step <= 0) return tor_invalid("attribute step must be positive, got %" PRId64, step);
    TOR_TRY(check_source(g, node, 1, axis, TOR_NO_DIM));
    tor_must_contain(g, start->dim, tor_in(node, 1)->dim[axis], step, tor_in(node, 0)->dim[axis]);
    return like_x(node);
}

ToroidStatus tor_infer_scatter(TorGraph *g, TorNode *node) {
    const TorValue *x = tor_in(node, 0), *index = tor_in(node, 1);
    const char *reduce = tor_attr_str(node, TOR_ATTR_reduce, "");
    int axis;
    TOR_TRY(tor_need_axis(node, x->rank, &axis));
    TOR_TRY(tor_need_index(g, node, 1, "index"));
    TOR_TRY(tor_need_rank(g, node, 1, "index", x->rank, x->rank));
    TOR_TRY(tor_need_dtype(g, node, 2, "source", x->dtype));
    TOR_TRY(tor_need_rank(g, node, 2, "source", x->rank, x->rank));
    for (int d = 0; d < x->rank; ++d) TOR_TRY(tor_need_dim(g, node, 2, "source", d, index->dim[d]));
    others_must_fit(g, x, index, axis);
    TOR_TRY(need_reduce(reduce));
    return like_x(node);
}

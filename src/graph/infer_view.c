// Type rules of views.
#include "graph/internal.h"

#include <string.h>

ToroidStatus tor_infer_view(TorGraph *g, TorNode *node) {
    const TorValue *x = tor_in(node, 0);
    const TorDim *dims;
    int rank;
    int64_t before, after;
    TOR_TRY(tor_need_dims(g, node, TOR_ATTR_dims, -1, &dims, &rank));
    if (tor_dims_numel(g, x->dim, x->rank, &before) && tor_dims_numel(g, dims, rank, &after) &&
        before != after) {
        char text[128];
        return tor_invalid("attribute dims must have the %" PRId64
                           " elements of x, %s, got %" PRId64,
                           before, tor_type_print(g, x, text, sizeof(text)), after);
    }
    tor_must_equal(g, tor_int_product(g, x->dim, x->rank), tor_int_product(g, dims, rank));
    tor_graph_set_type(node->outputs[0], x->dtype, rank, dims);
    return TOROID_OK;
}

ToroidStatus tor_infer_permute(TorGraph *g, TorNode *node) {
    (void)g;
    const TorValue *x = tor_in(node, 0);
    const int64_t *axes;
    int n;
    uint32_t mask;
    TorDim dims[TOR_MAX_RANK];
    TOR_TRY(tor_need_axes(node, x->rank, &axes, &n, &mask));
    if (n != x->rank)
        return tor_invalid("attribute axes must have %d integers, got %d", x->rank, n);
    for (int i = 0; i < n; ++i) dims[i] = x->dim[axes[i]];
    tor_graph_set_type(node->outputs[0], x->dtype, n, dims);
    return TOROID_OK;
}

ToroidStatus tor_infer_expand(TorGraph *g, TorNode *node) {
    const TorValue *x = tor_in(node, 0);
    const TorDim *dims;
    int rank;
    TOR_TRY(tor_need_dims(g, node, TOR_ATTR_dims, -1, &dims, &rank));
    if (rank < x->rank)
        return tor_invalid("attribute dims must have at least %d items, got %d", x->rank, rank);
    for (int i = 0; i < x->rank; ++i) {
        TorDim from = x->dim[i], to = dims[rank - x->rank + i];
        if (tor_int_is(g, from, 1)) continue;
        if (!tor_dims_clash(g, from, to)) {
            tor_must_equal(g, from, to);  // what may be 1 is not expanded: strides are fixed now
            continue;
        }
        char text[128], size[32];
        tor_int_print(g, to, size, sizeof(size));
        return tor_invalid("dim %d of x, %s, cannot be expanded to %s", i,
                           tor_type_print(g, x, text, sizeof(text)), size);
    }
    tor_graph_set_type(node->outputs[0], x->dtype, rank, dims);
    return TOROID_OK;
}

ToroidStatus tor_infer_slice(TorGraph *g, TorNode *node) {
    TorValue *out = node->outputs[0];
    const TorValue *x = tor_in(node, 0);
    const TorDim *size;
    int axis;
    int64_t step = tor_attr_int(node, TOR_ATTR_step, 1), first, n, whole;
    TOR_TRY(tor_need_rank(g, node, 0, "x", 1, TOR_MAX_RANK));
    TOR_TRY(tor_need_axis(node, x->rank, &axis));
    TOR_TRY(tor_need_dims(g, node, TOR_ATTR_dims, 1, &size, NULL));
    const TorAttr *start = tor_attr(node, TOR_ATTR_start);
    if (!start || start->kind != TOR_ATTR_DIM)
        return tor_invalid("attribute start is missing or no dim");
    if (step <= 0) return tor_invalid("attribute step must be positive, got %" PRId64, step);
    if (tor_int_known(g, start->dim, &first) && first < 0)
        return tor_invalid("attribute start must not be negative, got %" PRId64, first);
    if (tor_int_known(g, start->dim, &first) && tor_int_known(g, *size, &n) &&
        tor_int_known(g, x->dim[axis], &whole)) {
        int64_t last;
        bool outside = n > 0 && (__builtin_mul_overflow(n - 1, step, &last) ||
                                 __builtin_add_overflow(last, first, &last) || last >= whole);
        if (outside)
            return tor_invalid("%" PRId64 " items from %" PRId64 " with step %" PRId64
                               " leave axis %d of size %" PRId64,
                               n, first, step, axis, whole);
    }
    tor_must_contain(g, start->dim, *size, step, x->dim[axis]);
    tor_graph_set_type(out, x->dtype, x->rank, x->dim);
    out->dim[axis] = *size;
    return TOROID_OK;
}

ToroidStatus tor_infer_diagonal(TorGraph *g, TorNode *node) {
    const TorValue *x = tor_in(node, 0);
    const int64_t *axes;
    const TorDim *size;
    TorDim dims[TOR_MAX_RANK];
    int n, rank = 0;
    uint32_t mask;
    TOR_TRY(tor_need_axes(node, x->rank, &axes, &n, &mask));
    TOR_TRY(tor_need_dims(g, node, TOR_ATTR_dims, 1, &size, NULL));
    if (n != 2) return tor_invalid("attribute axes must name two axes, got %d", n);
    int64_t offset = tor_attr_int(node, TOR_ATTR_offset, 0), count, a, b;
    if (tor_int_known(g, *size, &count) && tor_int_known(g, x->dim[axes[0]], &a) &&
        tor_int_known(g, x->dim[axes[1]], &b) && count > 0 &&
        (count > a + TOR_MIN(offset, 0) || count > b - TOR_MAX(offset, 0)))
        return tor_invalid("a diagonal of %" PRId64 " elements at offset %" PRId64
                           " leaves dims of %" PRId64 " and %" PRId64,
                           count, offset, a, b);
    for (int d = 0; d < x->rank; ++d)
        if (!(mask >> d & 1)) dims[rank++] = x->dim[d];
    dims[rank++] = *size;
    tor_graph_set_type(node->outputs[0], x->dtype, rank, dims);
    return TOROID_OK;
}

ToroidStatus tor_infer_unfold(TorGraph *g, TorNode *node) {
    const TorValue *x = tor_in(node, 0);
    const TorDim *windows;
    TorDim dims[TOR_MAX_RANK];
    int axis;
    int64_t size = tor_attr_int(node, TOR_ATTR_size, -1),
            step = tor_attr_int(node, TOR_ATTR_step, 0), n, whole;
    TOR_TRY(tor_need_rank(g, node, 0, "x", 1, TOR_MAX_RANK - 1));
    TOR_TRY(tor_need_axis(node, x->rank, &axis));
    TOR_TRY(tor_need_dims(g, node, TOR_ATTR_dims, 1, &windows, NULL));
    if (size < 0 || step < 1)
        return tor_invalid("attributes size and step must be at least 0 and 1, got %" PRId64
                           " and %" PRId64,
                           size, step);
    if (tor_int_known(g, *windows, &n) && tor_int_known(g, x->dim[axis], &whole) && n > 0 &&
        (size > whole || n - 1 > (whole - size) / step))
        return tor_invalid("%" PRId64 " windows of %" PRId64 " leave axis %d of size %" PRId64, n,
                           size, axis, whole);
    memcpy(dims, x->dim, sizeof dims);
    dims[axis] = *windows;
    dims[x->rank] = tor_int_const(g, size);
    tor_graph_set_type(node->outputs[0], x->dtype, x->rank + 1, dims);
    return TOROID_OK;
}

ToroidStatus tor_infer_as_strided(TorGraph *g, TorNode *node) {
    const TorValue *x = tor_in(node, 0);
    const TorDim *dims, *strides;
    int rank;
    TOR_TRY(tor_need_dims(g, node, TOR_ATTR_dims, -1, &dims, &rank));
    TOR_TRY(tor_need_dims(g, node, TOR_ATTR_strides, rank, &strides, NULL));
    const TorAttr *offset = tor_attr(node, TOR_ATTR_offset);
    if (!offset || offset->kind != TOR_ATTR_DIM)
        return tor_invalid("attribute offset is missing or no dim");
    bool memory = tor_attr_int(node, TOR_ATTR_memory, 0);
    if (memory && x->node->op != TOR_OP_input)
        return tor_invalid("attribute memory: only of graph inputs");
    int64_t last, numel, size, stride;
    bool known = tor_int_known(g, offset->dim, &last) && tor_dims_numel(g, x->dim, x->rank, &numel),
         empty = false;
    for (int i = 0; known && i < rank; ++i) {
        known = tor_int_known(g, dims[i], &size) && tor_int_known(g, strides[i], &stride);
        if (!known) break;
        if (stride < 0)
            return tor_invalid("attribute strides: item %d must not be negative, got %" PRId64, i,
                               stride);
        empty = empty || size == 0;
        known = !__builtin_mul_overflow(size - 1, stride, &stride) &&
                !__builtin_add_overflow(last, stride, &last);
    }
    if (known && !empty && !memory && last >= numel)
        return tor_invalid("element %" PRId64 " is outside of x, which has %" PRId64 " elements",
                           last, numel);
    tor_graph_set_type(node->outputs[0], x->dtype, rank, dims);
    return TOROID_OK;
}

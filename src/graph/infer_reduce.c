// Type rules of reductions.
#include "graph/internal.h"

static ToroidStatus reduce(TorGraph *g, TorNode *node, TorDtype dtype) {
    const TorValue *x = tor_in(node, 0);
    const int64_t *axes;
    int n, rank = 0;
    uint32_t mask;
    TorDim dims[TOR_MAX_RANK];
    TOR_TRY(tor_need_axes(node, x->rank, &axes, &n, &mask));
    bool keep = tor_attr_int(node, TOR_ATTR_keepdim, 0) != 0;
    for (int i = 0; i < x->rank; ++i) {
        bool gone = mask >> i & 1;
        if (!gone)
            dims[rank++] = x->dim[i];
        else if (keep)
            dims[rank++] = tor_int_const(g, 1);
    }
    tor_graph_set_type(node->outputs[0], dtype, rank, dims);
    return TOROID_OK;
}

static ToroidStatus same(TorGraph *g, TorNode *node) {
    return reduce(g, node, tor_in(node, 0)->dtype);
}
static ToroidStatus typed(TorGraph *g, TorNode *node) {
    return reduce(g, node, tor_attr_dtype(node, tor_in(node, 0)->dtype));
}

ToroidStatus tor_infer_sum(TorGraph *g, TorNode *node) { return typed(g, node); }
ToroidStatus tor_infer_prod(TorGraph *g, TorNode *node) { return typed(g, node); }
ToroidStatus tor_infer_amax(TorGraph *g, TorNode *node) { return same(g, node); }
ToroidStatus tor_infer_amin(TorGraph *g, TorNode *node) { return same(g, node); }
ToroidStatus tor_infer_any(TorGraph *g, TorNode *node) { return reduce(g, node, TOR_bool); }
ToroidStatus tor_infer_all(TorGraph *g, TorNode *node) { return reduce(g, node, TOR_bool); }

ToroidStatus tor_infer_mean(TorGraph *g, TorNode *node) {
    TorDtype dtype = tor_attr_dtype(node, tor_in(node, 0)->dtype);
    if (!tor_dtype_is_float(dtype))
        return tor_invalid("attribute dtype must be a float type, got %s", tor_dtype_name(dtype));
    return reduce(g, node, dtype);
}

ToroidStatus tor_infer_var(TorGraph *g, TorNode *node) {
    TOR_TRY(tor_need_float(g, node, 0, "x"));
    return same(g, node);
}

static ToroidStatus position(TorGraph *g, TorNode *node) {
    const int64_t *axes;
    int n, rank = tor_in(node, 0)->rank;
    TOR_TRY(tor_need_ints(node, TOR_ATTR_axes, -1, &axes, &n));
    if (n != 1 && n != rank)
        return tor_invalid("attribute axes must have one axis or all %d, got %d", rank, n);
    return reduce(g, node, TOR_int64);
}

ToroidStatus tor_infer_argmax(TorGraph *g, TorNode *node) { return position(g, node); }
ToroidStatus tor_infer_argmin(TorGraph *g, TorNode *node) { return position(g, node); }

// Type rules of ops over rows: softmax and norms.
#include "graph/internal.h"

static ToroidStatus softmax(TorGraph *g, TorNode *node) {
    (void)g;
    const TorValue *x = tor_in(node, 0);
    int axis;
    TorDtype dtype = tor_attr_dtype(node, x->dtype);
    TOR_TRY(tor_need_axis(node, x->rank, &axis));
    if (!tor_dtype_is_float(dtype))
        return tor_invalid("attribute dtype must be a float type, got %s", tor_dtype_name(dtype));
    tor_graph_set_type(node->outputs[0], dtype, x->rank, x->dim);
    return TOROID_OK;
}

ToroidStatus tor_infer_softmax(TorGraph *g, TorNode *node) { return softmax(g, node); }
ToroidStatus tor_infer_log_softmax(TorGraph *g, TorNode *node) { return softmax(g, node); }

static ToroidStatus check_weight(TorGraph *g, const TorNode *node, int i, const char *what,
                                 int count) {
    const TorValue *x = tor_in(node, 0);
    TOR_TRY(tor_need_rank(g, node, i, what, count, count));
    TOR_TRY(tor_need_float(g, node, i, what));
    for (int d = 0; d < count; ++d)
        TOR_TRY(tor_need_dim(g, node, i, what, d, x->dim[x->rank - count + d]));
    return TOROID_OK;
}

static ToroidStatus norm(TorGraph *g, TorNode *node, bool may_have_beta) {
    const TorValue *x = tor_in(node, 0);
    int64_t count = tor_attr_int(node, TOR_ATTR_count, 0);
    bool gamma = tor_attr_int(node, TOR_ATTR_has_gamma, 0) != 0;
    bool beta = may_have_beta && tor_attr_int(node, TOR_ATTR_has_beta, 0) != 0;
    TOR_TRY(tor_need_float(g, node, 0, "x"));
    if (count < 1 || count > x->rank)
        return tor_invalid("attribute count must be in [1, %d], got %" PRId64, x->rank, count);
    if (node->n_inputs != 1 + gamma + beta)
        return tor_invalid("expected %d inputs by has_gamma and has_beta, got %d", 1 + gamma + beta,
                           node->n_inputs);
    if (!tor_attr(node, TOR_ATTR_eps)) return tor_invalid("attribute eps is missing");
    if (gamma) TOR_TRY(check_weight(g, node, 1, "gamma", (int)count));
    if (beta) TOR_TRY(check_weight(g, node, 1 + gamma, "beta", (int)count));
    tor_graph_set_type(node->outputs[0], x->dtype, x->rank, x->dim);
    return TOROID_OK;
}

ToroidStatus tor_infer_layer_norm(TorGraph *g, TorNode *node) { return norm(g, node, true); }
ToroidStatus tor_infer_rms_norm(TorGraph *g, TorNode *node) { return norm(g, node, false); }

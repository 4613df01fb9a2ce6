// Weights of linear and conv are read in the packed format of their kernel family. Packing is a
// node, so a frozen weight is packed once by the prologue, and any other at each call where that
// pays.
#include "passes/passes.h"

static ToroidStatus pack_linear(TorGraph *g, TorNode *node) {
    TorValue *w = tor_in(node, 1);
    // A recurrent layer reads its weight at each step, so that packing always pays.
    bool pays = w->frozen || node->op == TOR_OP_rnn_layer;
    if (w->dtype != TOR_float32 || w->rank != 2 || !pays) return TOROID_OK;
    bool trans = tor_attr_int(node, TOR_ATTR_trans, 0);
    int64_t n, k;
    if (!tor_int_known(g, w->dim[trans], &n) || !tor_int_known(g, w->dim[!trans], &k))
        return TOROID_OK;
    TorDim bytes = tor_int_const(g, 0);  // known to the planner alone
    TorAttr attrs[] = {TOR_A_INT(trans, trans), TOR_A_DIMS(dims, &bytes, 1)};
    TorNode *pack;
    TOR_TRY(tor_graph_add(g, node, TOR_OP_pack_linear, &w, 1, attrs, 2, 1, &pack));
    pack->outputs[0]->frozen = w->frozen;
    TOR_TRY(tor_attr_set(g, node, TOR_A_INT(packed, 1)));
    TOR_TRY(tor_attr_set(g, node, TOR_A_INT(n, n)));
    TOR_TRY(tor_attr_set(g, node, TOR_A_INT(k, k)));
    tor_node_set_input(node, 1, pack->outputs[0]);
    return TOROID_OK;
}

static ToroidStatus pack_conv(TorGraph *g, TorNode *node) {
    TorValue *w = tor_in(node, 1);
    int64_t size[TOR_MAX_RANK];
    for (int d = 0; d < w->rank; d++)
        if (!tor_int_known(g, w->dim[d], &size[d]))
            return tor_refuse("conv: a weight of unknown size");
    int64_t groups = tor_attr_int(node, TOR_ATTR_groups, 1);
    bool transposed = tor_attr_int(node, TOR_ATTR_transposed, 0);
    TorDim bytes = tor_int_const(g, 0);
    TorAttr attrs[] = {TOR_A_INT(groups, groups), TOR_A_DIMS(dims, &bytes, 1),
                       TOR_A_INT(transposed, transposed)};
    TorNode *pack;
    TOR_TRY(tor_graph_add(g, node, TOR_OP_pack_conv, &w, 1, attrs, 3, 1, &pack));
    pack->outputs[0]->frozen = w->frozen;
    TOR_TRY(tor_attr_set(g, node, TOR_A_INT(packed, 1)));
    TOR_TRY(tor_attr_set(g, node, TOR_A_INT(n, transposed ? size[1] * groups : size[0])));
    TOR_TRY(tor_attr_set(g, node, TOR_A_INTS(kernel, size + 2, w->rank - 2)));
    tor_node_set_input(node, 1, pack->outputs[0]);
    return TOROID_OK;
}

ToroidStatus tor_pass_prepack(TorGraph *g) {
    for (TorNode *node = g->first; node; node = node->next) {
        if (tor_attr_int(node, TOR_ATTR_packed, 0)) continue;
        if (node->op == TOR_OP_linear || node->op == TOR_OP_rnn_layer)
            TOR_TRY(pack_linear(g, node));
        if (node->op == TOR_OP_conv) TOR_TRY(pack_conv(g, node));
    }
    return TOROID_OK;
}

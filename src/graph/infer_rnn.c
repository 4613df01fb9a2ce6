// The type rule of a recurrent layer.
#include <string.h>

#include "graph/internal.h"

static ToroidStatus gates_of(const TorNode *node, int64_t *gates) {
    static const struct {
        const char *mode;
        int64_t gates;
    } modes[] = {{"lstm", 4}, {"gru", 3}, {"tanh", 1}, {"relu", 1}};
    const char *mode = tor_attr_str(node, TOR_ATTR_mode, "");
    for (size_t i = 0; i < TOR_COUNT_OF(modes); i++)
        if (strcmp(mode, modes[i].mode) == 0) {
            *gates = modes[i].gates;
            return TOROID_OK;
        }
    return tor_invalid("attribute mode must be lstm, gru, tanh or relu, got '%s'", mode);
}

ToroidStatus tor_infer_rnn_layer(TorGraph *g, TorNode *node) {
    const TorValue *x = tor_in(node, 0), *w = tor_in(node, 1), *h = tor_in(node, 2);
    int64_t gates = 0;
    TOR_TRY(gates_of(node, &gates));
    bool lstm = gates == 4, bias = tor_attr_int(node, TOR_ATTR_has_bias, 0) != 0;
    if (node->n_inputs != 3 + lstm + bias)
        return tor_invalid("expected %d inputs, got %d", 3 + lstm + bias, node->n_inputs);
    TOR_TRY(tor_need_rank(g, node, 0, "x", 3, 3));
    TOR_TRY(tor_need_rank(g, node, 2, "h0", 2, 2));
    TOR_TRY(tor_need_dtype(g, node, 2, "h0", x->dtype));
    TorDim width = tor_int_mul(g, h->dim[1], tor_int_const(g, gates));
    TOR_TRY(tor_need_dim(g, node, 0, "x", 2, width));
    TOR_TRY(tor_need_dim(g, node, 2, "h0", 0, x->dim[1]));
    if (!tor_attr_int(node, TOR_ATTR_packed, 0)) {
        TOR_TRY(tor_need_rank(g, node, 1, "w", 2, 2));
        TOR_TRY(tor_need_dtype(g, node, 1, "w", x->dtype));
        TOR_TRY(tor_need_dim(g, node, 1, "w", 0, width));
        TOR_TRY(tor_need_dim(g, node, 1, "w", 1, h->dim[1]));
    } else if (w->dtype != TOR_uint8) {
        return tor_invalid("a packed w must be uint8");
    }
    if (lstm) {
        TOR_TRY(tor_need_rank(g, node, 3, "c0", 2, 2));
        TOR_TRY(tor_need_dtype(g, node, 3, "c0", x->dtype));
        for (int d = 0; d < 2; d++) TOR_TRY(tor_need_dim(g, node, 3, "c0", d, h->dim[d]));
    }
    if (bias) {
        TOR_TRY(tor_need_rank(g, node, 3 + lstm, "bias", 1, 1));
        TOR_TRY(tor_need_dtype(g, node, 3 + lstm, "bias", x->dtype));
        TOR_TRY(tor_need_dim(g, node, 3 + lstm, "bias", 0, width));
    }
    if (g->failed) return tor_no_memory();
    TorDim dims[] = {x->dim[0], x->dim[1], h->dim[1]};
    tor_graph_set_type(node->outputs[0], x->dtype, 3, dims);
    tor_graph_set_type(node->outputs[1], x->dtype, 2, dims + 1);
    return TOROID_OK;
}

// Batch norm after a convolution, and any other scale or shift of its channels by frozen values,
// move into the convolution's weight and bias. The prologue then computes both once.
#include "passes/passes.h"

/// The one user of a value that has one use; NULL otherwise.
static TorNode *only_user(const TorValue *v) {
    return v->uses && !v->uses->next ? v->uses->user : NULL;
}

/// Is `v` one number a channel of a result of `rank` dims: [C, 1, 1], [1, C, 1, 1], ...?
static bool per_channel(const TorGraph *g, const TorValue *v, const TorValue *out) {
    if (!v->frozen || v->dtype != out->dtype || v->rank > out->rank || v->rank < out->rank - 1)
        return false;
    int extra = out->rank - v->rank;
    for (int d = 0; d < v->rank; d++) {
        bool channel = d + extra == 1;
        if (channel ? v->dim[d] != out->dim[1] : !tor_int_is(g, v->dim[d], 1)) return false;
    }
    return true;
}

static ToroidStatus reshape(TorGraph *g, TorNode *before, TorValue *v, int rank, TorDim first,
                            TorValue **out) {
    TorDim dims[TOR_MAX_RANK];
    TorNode *view;
    for (int d = 0; d < rank; d++) dims[d] = d == 0 ? first : tor_int_const(g, 1);
    TorAttr attr = TOR_A_DIMS(dims, dims, rank);
    TOR_TRY(tor_graph_add(g, before, TOR_OP_view, &v, 1, &attr, 1, 1, &view));
    *out = view->outputs[0];
    (*out)->frozen = true;
    return TOROID_OK;
}

static ToroidStatus combine(TorGraph *g, TorNode *before, TorOp op, TorValue *a, TorValue *b,
                            TorValue **out) {
    TorValue *inputs[2] = {a, b};
    TorNode *node;
    TOR_TRY(tor_graph_add(g, before, op, inputs, 2, NULL, 0, 1, &node));
    *out = node->outputs[0];
    (*out)->frozen = true;
    return TOROID_OK;
}

/// conv * s  ->  conv with weight and bias scaled;  conv + t  ->  conv with t added to the bias.
static ToroidStatus fold(TorGraph *g, TorNode *conv, TorNode *user, TorValue *vector,
                         TorNode **made) {
    TorValue *w = tor_in(conv, 1), *bias = conv->n_inputs > 2 ? tor_in(conv, 2) : NULL, *flat;
    TorDim channels = conv->outputs[0]->dim[1];
    TOR_TRY(reshape(g, user, vector, 1, channels, &flat));
    if (user->op == TOR_OP_mul) {
        TorValue *wide;
        TOR_TRY(reshape(g, user, vector, w->rank, channels, &wide));
        TOR_TRY(combine(g, user, TOR_OP_mul, w, wide, &w));
        if (bias) TOR_TRY(combine(g, user, TOR_OP_mul, bias, flat, &bias));
    } else if (bias) {
        TOR_TRY(combine(g, user, TOR_OP_add, bias, flat, &bias));
    } else {
        bias = flat;
    }
    TorValue *inputs[3] = {tor_in(conv, 0), w, bias};
    TOR_TRY(tor_graph_add(g, user, TOR_OP_conv, inputs, bias ? 3 : 2, conv->attrs, conv->n_attrs, 1,
                          made));
    (*made)->origin = conv->origin;
    tor_value_replace(user->outputs[0], (*made)->outputs[0]);
    tor_graph_remove(g, user);
    tor_graph_remove(g, conv);
    return TOROID_OK;
}

ToroidStatus tor_pass_fold_conv(TorGraph *g) {
    for (TorNode *node = g->first, *next; node; node = next) {
        next = node->next;
        if (node->op != TOR_OP_conv || tor_attr_int(node, TOR_ATTR_transposed, 0) ||
            !tor_in(node, 1)->frozen)
            continue;
        if (node->n_inputs > 2 && !tor_in(node, 2)->frozen) continue;
        TorNode *user = only_user(node->outputs[0]);
        if (!user || (user->op != TOR_OP_mul && user->op != TOR_OP_add)) continue;
        TorValue *other = tor_in(user, tor_in(user, 0) == node->outputs[0]);
        if (!per_channel(g, other, node->outputs[0])) continue;
        TorNode *made;
        if (next == user) next = user->next;
        TOR_TRY(fold(g, node, user, other, &made));
        next = made;  // it may take the shift that follows the scale
    }
    return TOROID_OK;
}

// Rules that end in `linear`: matmuls with a weight, biases, views around it.
#include <string.h>

#include "passes/rewrite.h"

static bool is_transpose(const TorNode *node) {
    if (node->op != TOR_OP_permute || node->outputs[0]->rank != 2) return false;
    const int64_t *axes = tor_attr(node, TOR_ATTR_axes)->ints;
    return axes[0] == 1 && axes[1] == 0;
}

static bool is_plain_linear(const TorNode *node) {
    return node->op == TOR_OP_linear && !tor_attr(node, TOR_ATTR_epilogue);
}

// Two shapes of one value that end alike have as many rows, unless rows are empty.
static bool same_last(const TorGraph *g, const TorValue *a, const TorValue *b) {
    TorDim last = a->dim[a->rank - 1];
    return last == b->dim[b->rank - 1] && !tor_int_is(g, last, 0);
}

// linear(view(x)), where the view keeps the last dim, to view(linear(x)). With views merged that
// makes view [.., k] -> [m, k]; linear; view [m, n] -> [.., n] one linear of any rank.
ToroidStatus tor_rule_sink_linear(TorRewrite *r) {
    TorNode *node = r->node;
    if (!is_plain_linear(node)) return TOROID_OK;
    const TorNode *view = tor_in(node, 0)->node;
    TorValue *old = node->outputs[0], *in[3], *value;
    if (view->op != TOR_OP_view) return TOROID_OK;
    TorValue *x = tor_in(view, 0);
    if (x->rank == 0 || !same_last(r->g, x, tor_in(node, 0))) return TOROID_OK;
    for (int i = 0; i < node->n_inputs; ++i) in[i] = i == 0 ? x : tor_in(node, i);
    TOR_TRY(
        tor_rewrite_add(r, TOR_OP_linear, in, node->n_inputs, node->attrs, node->n_attrs, &value));
    TorAttr dims = TOR_A_DIMS(dims, old->dim, old->rank);
    TOR_TRY(tor_rewrite_add(r, TOR_OP_view, &value, 1, &dims, 1, &value));
    tor_rewrite_replace(r, value);
    return TOROID_OK;
}

// view(linear(view(x))), where the inner view changes the last dim (heads merged, say), so that it
// cannot sink: the leading dims that the outer view wants are taken above the linear instead.
ToroidStatus tor_rule_raise_linear(TorRewrite *r) {
    TorNode *node = r->node;
    if (node->op != TOR_OP_view) return TOROID_OK;
    TorValue *y = tor_in(node, 0), *out = node->outputs[0], *in[3];
    const TorNode *linear = y->node;
    if (!is_plain_linear(linear) || !tor_single_use(y) || out->rank == 0) return TOROID_OK;
    TorValue *x = tor_in(linear, 0);
    if (x->node->op != TOR_OP_view || !same_last(r->g, out, y)) return TOROID_OK;
    TorDim wanted[TOR_MAX_RANK];
    memcpy(wanted, out->dim, sizeof(wanted));
    wanted[out->rank - 1] = x->dim[x->rank - 1];
    TorAttr dims = TOR_A_DIMS(dims, wanted, out->rank);
    TorValue *source = tor_in(x->node, 0), *value;
    TOR_TRY(tor_rewrite_add(r, TOR_OP_view, &source, 1, &dims, 1, &value));
    for (int i = 0; i < linear->n_inputs; ++i) in[i] = i == 0 ? value : tor_in(linear, i);
    TOR_TRY(tor_rewrite_add(r, TOR_OP_linear, in, linear->n_inputs, linear->attrs, linear->n_attrs,
                            &value));
    tor_rewrite_replace(r, value);
    return TOROID_OK;
}

// The 2-d value that `b` [..., k, n] repeats over its leading dims, or NULL.
static TorValue *weight_of(const TorGraph *g, TorValue *b) {
    TorDim k = b->dim[b->rank - 2], n = b->dim[b->rank - 1];
    while (b->rank > 2 && (b->node->op == TOR_OP_expand || b->node->op == TOR_OP_view)) {
        TorValue *x = tor_in(b->node, 0);
        // A view may only add dims of size 1.
        bool adds = b->node->op == TOR_OP_expand || x->rank >= 2;
        for (int i = 0; adds && b->node->op == TOR_OP_view && i < b->rank - 2; ++i)
            adds = tor_int_is(g, b->dim[i], 1);
        if (!adds || x->rank < 2 || x->dim[x->rank - 2] != k || x->dim[x->rank - 1] != n)
            return NULL;
        b = x;
    }
    return b->rank == 2 ? b : NULL;
}

ToroidStatus tor_rule_matmul_linear(TorRewrite *r) {
    TorNode *node = r->node;
    if (node->op != TOR_OP_matmul || tor_attr(node, TOR_ATTR_epilogue)) return TOROID_OK;
    TorValue *a = tor_in(node, 0), *b = tor_in(node, 1), *w = weight_of(r->g, b), *value;
    if (!w) return TOROID_OK;
    bool transposed = is_transpose(w->node);
    if (w == b && !transposed && !w->frozen) return TOROID_OK;
    TorValue *in[] = {a, transposed ? tor_in(w->node, 0) : w};
    TorAttr trans = TOR_A_INT(trans, 1);
    TOR_TRY(tor_rewrite_add(r, TOR_OP_linear, in, 2, transposed ? NULL : &trans, transposed ? 0 : 1,
                            &value));
    tor_rewrite_replace(r, value);
    return TOROID_OK;
}

ToroidStatus tor_rule_linear_trans(TorRewrite *r) {
    TorNode *node = r->node;
    if (node->op != TOR_OP_linear || tor_attr_int(node, TOR_ATTR_packed, 0) ||
        !is_transpose(tor_in(node, 1)->node))
        return TOROID_OK;
    TOR_TRY(tor_attr_set(r->g, node, TOR_A_INT(trans, !tor_attr_int(node, TOR_ATTR_trans, 0))));
    tor_node_set_input(node, 1, tor_in(tor_in(node, 1)->node, 0));
    return tor_rewrite_edited(r);
}

ToroidStatus tor_rule_linear_bias(TorRewrite *r) {
    TorNode *node = r->node;
    if (node->op != TOR_OP_add) return TOROID_OK;
    for (int i = 0; i < 2; ++i) {
        TorValue *y = tor_in(node, i), *bias = tor_in(node, 1 - i), *value;
        const TorNode *linear = y->node;
        if (!is_plain_linear(linear) || linear->n_inputs != 2 || !tor_single_use(y)) continue;
        if (bias->rank != 1 || !bias->frozen || bias->dtype != y->dtype ||
            bias->dim[0] != y->dim[y->rank - 1])
            continue;
        TorValue *in[] = {tor_in(linear, 0), tor_in(linear, 1), bias};
        TOR_TRY(tor_rewrite_add(r, TOR_OP_linear, in, 3, linear->attrs, linear->n_attrs, &value));
        tor_rewrite_replace(r, value);
        return TOROID_OK;
    }
    return TOROID_OK;
}

// Contractions of half types become contractions of float32 between casts: operands are widened,
// sums are float32, and the result is rounded once, as eager's kernels do it.
//
// What it costs is little: the cast of a frozen weight belongs to the prologue, the rounding to the
// epilogue, and an operand's cast to whatever program makes it. For that, a cast goes above the
// views of its operand.
#include "passes/passes.h"

static ToroidStatus add(TorGraph *g, TorNode *before, TorOp op, TorValue *x, const TorAttr *attrs,
                        int n_attrs, TorValue **out) {
    TorNode *node;
    TOR_TRY(tor_graph_add(g, before, op, &x, 1, attrs, n_attrs, 1, &node));
    node->origin = before->origin;
    *out = node->outputs[0];
    (*out)->frozen = x->frozen;
    return TOROID_OK;
}

static ToroidStatus cast(TorGraph *g, TorNode *before, TorValue *x, TorDtype to, TorValue **out) {
    TorAttr dtype = TOR_A_DTYPE(dtype, to);
    return add(g, before, TOR_OP_cast, x, &dtype, 1, out);
}

/// May the cast of `x` be made above the view that makes it? A slice of what no epilogue makes is
/// better cast alone, since the whole may be much larger.
static bool passes(const TorValue *x) {
    const TorNode *node = x->node;
    if (tor_op_kind(node->op) != TOR_KIND_VIEW || node->op == TOR_OP_as_strided) return false;
    if (node->op != TOR_OP_slice) return true;
    const TorValue *source = tor_in(node, 0);
    while (tor_op_kind(source->node->op) == TOR_KIND_VIEW) source = tor_in(source->node, 0);
    return tor_op_kind(source->node->op) == TOR_KIND_MAP ||
           tor_op_kind(source->node->op) == TOR_KIND_CONTRACT;
}

/// `x` in float32. Equal casts and views are left to the cse pass.
static ToroidStatus widened(TorGraph *g, TorNode *before, TorValue *x, TorValue **out) {
    *out = x;
    if (!tor_dtype_is_half(x->dtype)) return TOROID_OK;
    if (!passes(x)) return cast(g, before, x, TOR_float32, out);
    const TorNode *view = x->node;
    TorValue *source;
    TOR_TRY(widened(g, before, tor_in(view, 0), &source));
    return add(g, before, view->op, source, view->attrs, view->n_attrs, out);
}

static ToroidStatus widen(TorGraph *g, TorNode *node) {
    TorValue *in[5], *old = node->outputs[0], *narrow;
    TorNode *wide;
    for (int i = 0; i < node->n_inputs; i++) TOR_TRY(widened(g, node, tor_in(node, i), &in[i]));
    TOR_TRY(
        tor_graph_add(g, node, node->op, in, node->n_inputs, node->attrs, node->n_attrs, 1, &wide));
    wide->origin = node->origin;
    wide->outputs[0]->frozen = old->frozen;
    TOR_TRY(cast(g, node, wide->outputs[0], old->dtype, &narrow));
    narrow->frozen = old->frozen;
    tor_value_replace(old, narrow);
    tor_graph_remove(g, node);
    return TOROID_OK;
}

ToroidStatus tor_pass_widen(TorGraph *g) {
    for (TorNode *node = g->first, *next; node; node = next) {
        next = node->next;
        if (tor_op_kind(node->op) == TOR_KIND_CONTRACT && tor_dtype_is_half(tor_in(node, 0)->dtype))
            TOR_TRY(widen(g, node));
    }
    return TOROID_OK;
}

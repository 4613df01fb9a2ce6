// Rules about views: identities, merging, and moving them below elementwise ops.
#include <string.h>

#include "passes/rewrite.h"

// ---------------------------------------------------------------- identities

/// Whether PyTorch would get a caller's tensor with strides of its own, if the copy were not made.
/// Some kernels take it for granted that the copy in front of them was.
static bool is_contiguous_for_pytorch(const TorGraph *g, const TorNode *copy) {
    const TorNode *from = tor_in(copy, 0)->node;
    if (from->op == TOR_OP_input ? g->inputs[tor_attr_int(from, TOR_ATTR_index, 0)].contiguous
                                 : tor_op_kind(from->op) != TOR_KIND_VIEW)
        return false;
    for (const TorUse *use = copy->outputs[0]->uses; use; use = use->next)
        if (use->user->op == TOR_OP_external) return true;
    return false;
}

static bool is_identity(const TorGraph *g, const TorNode *node) {
    const TorValue *x = tor_in(node, 0), *out = node->outputs[0];
    const TorAttr *a;
    switch (node->op) {
        case TOR_OP_contiguous:  // means a layout, and layouts are the layout pass's
            return !is_contiguous_for_pytorch(g, node);
        case TOR_OP_view:
        case TOR_OP_expand: return tor_value_same_dims(x, out);
        case TOR_OP_cast: return x->dtype == out->dtype && !tor_is_weak_number(x);
        case TOR_OP_permute:
            a = tor_attr(node, TOR_ATTR_axes);
            for (int i = 0; i < a->count; ++i)
                if (a->ints[i] != i) return false;
            return true;
        case TOR_OP_slice:
            a = tor_attr(node, TOR_ATTR_start);
            return tor_int_is(g, a->dim, 0) && tor_attr_int(node, TOR_ATTR_step, 1) == 1 &&
                   tor_value_same_dims(x, out);
        default: return false;
    }
}

ToroidStatus tor_rule_identity(TorRewrite *r) {
    if (r->node->n_inputs == 1 && r->node->n_outputs == 1 && is_identity(r->g, r->node))
        tor_rewrite_replace(r, tor_in(r->node, 0));
    return TOROID_OK;
}

// ---------------------------------------------------------------- merging

static ToroidStatus merge_permutes(TorRewrite *r, const TorNode *inner) {
    const int64_t *first = tor_attr(inner, TOR_ATTR_axes)->ints,
                  *second = tor_attr(r->node, TOR_ATTR_axes)->ints;
    int64_t both[TOR_MAX_RANK];
    int rank = r->node->outputs[0]->rank;
    for (int i = 0; i < rank; ++i) both[i] = first[second[i]];
    TOR_TRY(tor_attr_set(r->g, r->node, TOR_A_INTS(axes, both, rank)));
    tor_node_set_input(r->node, 0, tor_in(inner, 0));
    return tor_rewrite_edited(r);
}

static ToroidStatus reshape_full(TorRewrite *r, const TorNode *full) {
    const TorValue *out = r->node->outputs[0];
    TorAttr attrs[] = {*tor_attr(full, TOR_ATTR_value), TOR_A_DTYPE(dtype, out->dtype),
                       TOR_A_DIMS(dims, out->dim, out->rank)};
    TorValue *value;
    TOR_TRY(tor_rewrite_add(r, TOR_OP_full, NULL, 0, attrs, 3, &value));
    tor_rewrite_replace(r, value);
    return TOROID_OK;
}

ToroidStatus tor_rule_merge_views(TorRewrite *r) {
    TorNode *node = r->node;
    if (tor_op_kind(node->op) != TOR_KIND_VIEW) return TOROID_OK;
    const TorNode *inner = tor_in(node, 0)->node;
    if (inner->op == TOR_OP_full) return reshape_full(r, inner);
    if (node->op != inner->op) return TOROID_OK;
    if (node->op == TOR_OP_permute) return merge_permutes(r, inner);
    if (node->op != TOR_OP_view && node->op != TOR_OP_expand) return TOROID_OK;
    tor_node_set_input(node, 0, tor_in(inner, 0));
    return tor_rewrite_edited(r);
}

ToroidStatus tor_rule_permute_to_view(TorRewrite *r) {
    if (r->node->op != TOR_OP_permute) return TOROID_OK;
    TorValue *x = tor_in(r->node, 0), *out = r->node->outputs[0], *value;
    const int64_t *axes = tor_attr(r->node, TOR_ATTR_axes)->ints;
    int64_t last = -1;
    for (int i = 0; i < out->rank; ++i) {
        if (tor_int_is(r->g, out->dim[i], 1)) continue;
        if (axes[i] < last) return TOROID_OK;
        last = axes[i];
    }
    TorAttr dims = TOR_A_DIMS(dims, out->dim, out->rank);
    TOR_TRY(tor_rewrite_add(r, TOR_OP_view, &x, 1, &dims, 1, &value));
    tor_rewrite_replace(r, value);
    return TOROID_OK;
}

// Every value of `a` is one of `b`, and comes back unchanged.
static bool widens(TorDtype a, TorDtype b) {
    char from = tor_dtype_kind(a), to = tor_dtype_kind(b);
    size_t bits = tor_dtype_size(a) * 8;
    if (a == b || from == 'b') return true;
    if (to == 'b') return false;
    if (to == 'f' && from == 'f') return tor_dtype_size(b) > tor_dtype_size(a);
    if (to == 'f') return bits <= (b == TOR_float64 ? 32u : b == TOR_float32 ? 16u : 0u);
    if (from == 'f') return false;
    return to == 'i' && tor_dtype_size(b) > tor_dtype_size(a);
}

ToroidStatus tor_rule_merge_casts(TorRewrite *r) {
    if (r->node->op != TOR_OP_cast) return TOROID_OK;
    const TorNode *inner = tor_in(r->node, 0)->node;
    if (inner->op != TOR_OP_cast || !widens(tor_in(inner, 0)->dtype, inner->outputs[0]->dtype))
        return TOROID_OK;
    tor_node_set_input(r->node, 0, tor_in(inner, 0));
    return tor_rewrite_edited(r);
}

// ---------------------------------------------------------------- moving below elementwise ops

static int trailing_equal(const TorValue *a, const TorValue *b) {
    int n = 0;
    while (n < a->rank && n < b->rank && a->dim[a->rank - 1 - n] == b->dim[b->rank - 1 - n]) ++n;
    return n;
}

// A view that others read too and that costs a copy (of a permuted value) is better left where it
// is.
static bool may_move(const TorValue *v) {
    return v->node->op == TOR_OP_view &&
           (tor_single_use(v) || tor_in(v->node, 0)->node->op != TOR_OP_permute);
}

// The view that all operands share, or NULL. In unary mode the others must be numbers.
static const TorNode *shared_view(const TorNode *node, bool unary) {
    const TorNode *view = NULL;
    for (int i = 0; i < node->n_inputs; ++i) {
        const TorValue *v = tor_in(node, i);
        if (v->node->op != TOR_OP_view || !tor_value_same_dims(v, node->outputs[0])) continue;
        if (!may_move(v) ||
            (view && (unary || !tor_value_same_dims(tor_in(v->node, 0), tor_in(view, 0)))))
            return NULL;
        view = v->node;
    }
    if (!view) return NULL;
    int tail = trailing_equal(view->outputs[0], tor_in(view, 0));
    for (int i = 0; i < node->n_inputs; ++i) {
        const TorValue *v = tor_in(node, i);
        if (v->rank == 0 ||
            (v->node->op == TOR_OP_view && tor_value_same_dims(v, node->outputs[0])))
            continue;
        if (unary || v->rank > tail) return NULL;
    }
    return view;
}

static ToroidStatus sink(TorRewrite *r, bool unary) {
    TorNode *node = r->node;
    if (!tor_op_is_scalar_fn(node->op) && node->op != TOR_OP_cast) return TOROID_OK;
    const TorNode *view = shared_view(node, unary);
    if (!view) return TOROID_OK;
    TorValue *in[3], *out = node->outputs[0], *value;
    for (int i = 0; i < node->n_inputs; ++i) {
        TorValue *v = tor_in(node, i);
        in[i] = v->node->op == TOR_OP_view && tor_value_same_dims(v, out) ? tor_in(v->node, 0) : v;
    }
    TOR_TRY(tor_rewrite_add(r, node->op, in, node->n_inputs, node->attrs, node->n_attrs, &value));
    TorAttr dims = TOR_A_DIMS(dims, out->dim, out->rank);
    TOR_TRY(tor_rewrite_add(r, TOR_OP_view, &value, 1, &dims, 1, &value));
    tor_rewrite_replace(r, value);
    return TOROID_OK;
}

ToroidStatus tor_rule_sink_unary(TorRewrite *r) { return sink(r, true); }
ToroidStatus tor_rule_sink_map(TorRewrite *r) { return sink(r, false); }

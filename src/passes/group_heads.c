// Keys and values that are repeated for the heads of a group are read where they lie: attention
// takes fewer heads of keys than of queries.
//
//   view(expand(view(k [b, g, n, d]) [b, g, 1, n, d]) [b, g, r, n, d]) [b, g * r, n, d], which is
//   repeat_interleave over heads, becomes k; expand(k [b, 1, n, d]) [b, h, n, d] too.
#include "passes/passes.h"

/// What `v` repeats, of any rank, and the number of its heads; NULL if it repeats nothing.
static TorValue *repeated(const TorGraph *g, TorValue *v, TorDim *heads) {
    const TorNode *node = v->node;
    if (node->op == TOR_OP_expand && tor_in(node, 0)->rank == 4) {
        const TorValue *x = tor_in(node, 0);
        *heads = x->dim[1];
        bool only = tor_int_is(g, x->dim[1], 1) && x->dim[0] == v->dim[0] &&
                    x->dim[2] == v->dim[2] && x->dim[3] == v->dim[3];
        return only ? tor_in(node, 0) : NULL;
    }
    if (node->op != TOR_OP_view) return NULL;
    const TorValue *wide = tor_in(node, 0);
    if (wide->node->op != TOR_OP_expand || wide->rank != 5) return NULL;
    TorValue *x = tor_in(wide->node, 0);
    if (x->rank != 5 || !tor_int_is(g, x->dim[2], 1)) return NULL;
    for (int d = 0; d < 5; d++)
        if (d != 2 && x->dim[d] != wide->dim[d]) return NULL;
    if (wide->dim[0] != v->dim[0] || wide->dim[3] != v->dim[2] || wide->dim[4] != v->dim[3])
        return NULL;
    *heads = x->dim[1];
    return x;
}

static ToroidStatus take(TorGraph *g, TorNode *attention, int input, TorValue *x, TorDim heads) {
    const TorValue *v = tor_in(attention, input);
    TorNode *view;
    TorDim dims[] = {v->dim[0], heads, v->dim[2], v->dim[3]};
    TorAttr attr = TOR_A_DIMS(dims, dims, 4);
    TOR_TRY(tor_graph_add(g, attention, TOR_OP_view, &x, 1, &attr, 1, 1, &view));
    view->origin = attention->origin;
    view->outputs[0]->frozen = x->frozen;
    tor_node_set_input(attention, input, view->outputs[0]);
    return TOROID_OK;
}

ToroidStatus tor_pass_group_heads(TorGraph *g) {
    for (TorNode *node = g->first; node; node = node->next) {
        if (node->op != TOR_OP_attention) continue;
        TorDim k_heads, v_heads;
        int64_t heads, groups;
        TorValue *k = repeated(g, tor_in(node, 1), &k_heads);
        TorValue *v = repeated(g, tor_in(node, 2), &v_heads);
        if (!k || !v || k_heads != v_heads) continue;
        // Which head reads which group is known when both numbers are.
        if (!tor_int_known(g, tor_in(node, 0)->dim[1], &heads) ||
            !tor_int_known(g, k_heads, &groups) || groups <= 0 || heads % groups)
            continue;
        TOR_TRY(take(g, node, 1, k, k_heads));
        TOR_TRY(take(g, node, 2, v, v_heads));
    }
    return TOROID_OK;
}

// The sweep that runs local rules, and how rules change the graph.
#include "passes/rewrite.h"

ToroidStatus tor_rewrite_sweep(TorGraph *g, TorRule *const *rules) {
    for (TorNode *node = g->first; node;) {
        TorRewrite r = {.g = g, .node = node};
        for (TorRule *const *rule = rules; *rule && !r.changed; ++rule) TOR_TRY((*rule)(&r));
        node = r.changed ? r.next : node->next;
    }
    return TOROID_OK;
}

ToroidStatus tor_rewrite_add(TorRewrite *r, TorOp op, TorValue *const *inputs, int n_inputs,
                             const TorAttr *attrs, int n_attrs, TorValue **out) {
    TorNode *node;
    TOR_TRY(tor_graph_add(r->g, r->node, op, inputs, n_inputs, attrs, n_attrs, 1, &node));
    node->origin = r->node->origin;
    if (!r->added) r->added = node;
    *out = node->outputs[0];
    return TOROID_OK;
}

void tor_rewrite_replace(TorRewrite *r, TorValue *value) {
    r->changed = true;
    r->next = r->added ? r->added : r->node->next;
    tor_value_replace(r->node->outputs[0], value);
    tor_graph_remove(r->g, r->node);
}

ToroidStatus tor_rewrite_edited(TorRewrite *r) {
    r->changed = true;
    r->next = r->added ? r->added : r->node;
    return tor_graph_infer(r->g, r->node);
}

bool tor_is_weak_number(const TorValue *v) {
    return v->rank == 0 && v->node->op == TOR_OP_constant &&
           tor_attr_int(v->node, TOR_ATTR_weak, 0) == 1;
}

bool tor_is_number(const TorValue *v, double *number) {
    TorScalar s;
    if (!tor_value_number(v, &s)) return false;
    *number = tor_scalar_cast(s, TOR_float64).f;
    return true;
}

// Batched products keep the batch dims that the model has: bmm over [b*h, m, k] views becomes a
// matmul over [b, h, m, k], so that heads stay strided and attention can be recognised.
#include <string.h>

#include "passes/rewrite.h"

/// The operand that `v` flattens the batch dims of; NULL if it does not.
static TorValue *unflattened(const TorGraph *g, const TorValue *v) {
    if (v->node->op != TOR_OP_view || v->rank != 3) return NULL;
    TorValue *x = tor_in(v->node, 0);
    if (x->rank < 4 || x->dim[x->rank - 2] != v->dim[1] || x->dim[x->rank - 1] != v->dim[2])
        return NULL;
    for (int d = 0; d < 3; d++)  // of nothing, views show no batch dims
        if (tor_int_is(g, v->dim[d], 0)) return NULL;
    return x;
}

ToroidStatus tor_rule_batch_matmul(TorRewrite *r) {
    TorNode *node = r->node;
    if (node->op != TOR_OP_matmul || tor_attr(node, TOR_ATTR_epilogue)) return TOROID_OK;
    TorValue *operands[2] = {unflattened(r->g, tor_in(node, 0)),
                             unflattened(r->g, tor_in(node, 1))},
             *product, *flat;
    if (!operands[0] || !operands[1] || operands[0]->rank != operands[1]->rank) return TOROID_OK;
    for (int d = 0; d < operands[0]->rank - 2; d++)
        if (operands[0]->dim[d] != operands[1]->dim[d]) return TOROID_OK;
    TOR_TRY(tor_rewrite_add(r, TOR_OP_matmul, operands, 2, NULL, 0, &product));
    TorAttr dims = TOR_A_DIMS(dims, node->outputs[0]->dim, 3);
    TOR_TRY(tor_rewrite_add(r, TOR_OP_view, &product, 1, &dims, 1, &flat));
    tor_rewrite_replace(r, flat);
    return TOROID_OK;
}

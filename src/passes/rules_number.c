// Uniform operands of scalar functions (a full, a 0-d constant, seen through views and casts)
// become numbers: an instruction's immediate instead of a tensor.
#include "passes/rewrite.h"

// The one number that all elements of `v` are.
static bool uniform(const TorValue *v, int depth, TorScalar *number) {
    const TorNode *node = v->node;
    if (tor_value_number(v, number)) return true;
    if (node->op == TOR_OP_full) {
        *number = tor_scalar_cast(tor_attr(node, TOR_ATTR_value)->scalar, v->dtype);
        return true;
    }
    if (depth == 0) return false;  // a sweep asks this at every operand
    if (node->op != TOR_OP_cast && tor_op_kind(node->op) != TOR_KIND_VIEW) return false;
    if (!uniform(tor_in(node, 0), depth - 1, number)) return false;
    if (node->op == TOR_OP_cast) *number = tor_scalar_cast(*number, v->dtype);
    return true;
}

// Another operand that keeps the result's type and dims without operand `i`.
static bool is_redundant(const TorGraph *g, const TorNode *node, int i) {
    const TorValue *out = node->outputs[0], *v = tor_in(node, i);
    int rank = -1, first = node->op == TOR_OP_where;
    bool typed = false;
    if (i < first) return false;  // where's condition is no number
    for (int j = 0; j < node->n_inputs; ++j) {
        const TorValue *other = tor_in(node, j);
        if (j == i || tor_is_weak_number(other)) continue;
        rank = TOR_MAX(rank, other->rank);
        typed = typed || (j >= first && other->dtype == v->dtype);
    }
    if (!typed || rank != out->rank) return false;
    for (int d = 0; d < out->rank; ++d) {
        bool kept = tor_int_is(g, out->dim[d], 1);
        for (int j = 0; j < node->n_inputs && !kept; ++j) {
            const TorValue *other = tor_in(node, j);
            int at = d - (out->rank - other->rank);
            kept = j != i && at >= 0 && other->dim[at] == out->dim[d];
        }
        if (!kept) return false;
    }
    return true;
}

ToroidStatus tor_rule_number(TorRewrite *r) {
    TorNode *node = r->node;
    if (!tor_op_is_scalar_fn(node->op) || node->n_inputs < 2) return TOROID_OK;
    for (int i = 0; i < node->n_inputs; ++i) {
        TorScalar number;
        TorValue *v = tor_in(node, i);
        if (tor_is_weak_number(v) || !uniform(v, 8, &number) || !is_redundant(r->g, node, i))
            continue;
        // The number is of the operand's own type already, so that converting it back is exact.
        char kind = tor_dtype_kind(v->dtype);
        number = tor_scalar_cast(number, v->dtype);
        number = tor_scalar_cast(number, kind == 'f'   ? TOR_float64
                                         : kind == 'b' ? TOR_bool
                                                       : TOR_int64);
        TOR_TRY(tor_graph_number(r->g, number, &v));
        tor_node_set_input(node, i, v);
        TOR_TRY(tor_rewrite_edited(r));
    }
    return TOROID_OK;
}

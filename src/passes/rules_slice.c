// Rows that nobody asks for are not computed: a slice of a product's rows becomes a product of
// sliced rows. A language model's head is the case: logits[:, -1] wants one row of many.
#include <string.h>

#include "passes/rewrite.h"

enum { MOST_MAPS = 8 };

/// Where `axis` of `out` lies in an operand that broadcasts to it; -1: nowhere, or in a dim of 1.
/// False if the operand's size there is neither the result's nor 1.
static bool operand_axis(const TorGraph *g, const TorValue *operand, const TorValue *out, int axis,
                         int *found) {
    *found = axis - (out->rank - operand->rank);
    if (*found < 0 || tor_int_is(g, operand->dim[*found], 1)) {
        *found = -1;
        return true;
    }
    return operand->dim[*found] == out->dim[axis];
}

static bool is_rows_of_linear(const TorValue *y, int axis) {
    return y->node->op == TOR_OP_linear && !tor_attr(y->node, TOR_ATTR_epilogue) &&
           axis < y->rank - 1;
}

/// From the slice down to the linear: nodes that only the one before reads.
typedef struct {
    const TorNode *node[MOST_MAPS + 1];
    int operand[MOST_MAPS + 1];  ///< the one that the next node makes
    int count;
} Chain;

/// Whether a slice of y along `axis` can reach a linear through elementwise ops that only it reads.
static bool find_linear(const TorGraph *g, const TorValue *y, int axis, Chain *chain) {
    for (chain->count = 0; chain->count <= MOST_MAPS;) {
        const TorNode *node = y->node;
        if (!tor_single_use(y)) return false;
        chain->node[chain->count++] = node;
        if (is_rows_of_linear(y, axis)) return true;
        if (!tor_op_is_scalar_fn(node->op) && node->op != TOR_OP_cast) return false;
        int next = -1;
        for (int i = 0, at; i < node->n_inputs; i++) {
            const TorValue *operand = tor_in(node, i);
            if (!operand_axis(g, operand, y, axis, &at)) return false;
            if (next < 0 && tor_value_same_dims(operand, y) && tor_single_use(operand)) next = i;
        }
        if (next < 0) return false;
        chain->operand[chain->count - 1] = next;
        y = tor_in(node, next);
    }
    return false;
}

/// One row, or at most half of them: for less the copy of the rows that are left costs too much.
static bool leaves_few(const TorGraph *g, const TorNode *slice, int axis) {
    int64_t rows, all;
    if (!tor_int_known(g, slice->outputs[0]->dim[axis], &rows)) return false;
    return rows <= 1 || (tor_int_known(g, tor_in(slice, 0)->dim[axis], &all) && rows <= all / 2);
}

static ToroidStatus sliced(TorRewrite *r, TorValue *x, int axis, TorValue **out) {
    TorAttr attrs[] = {TOR_A_INT(axis, axis), *tor_attr(r->node, TOR_ATTR_start),
                       TOR_A_INT(step, tor_attr_int(r->node, TOR_ATTR_step, 1)),
                       *tor_attr(r->node, TOR_ATTR_dims)};
    return tor_rewrite_add(r, TOR_OP_slice, &x, 1, attrs, 4, out);
}

ToroidStatus tor_rule_raise_slice(TorRewrite *r) {
    if (r->node->op != TOR_OP_slice) return TOROID_OK;
    int axis = (int)tor_attr_int(r->node, TOR_ATTR_axis, 0);
    Chain chain;
    if (!leaves_few(r->g, r->node, axis) || !find_linear(r->g, tor_in(r->node, 0), axis, &chain))
        return TOROID_OK;
    TorValue *value = NULL;
    for (int n = chain.count - 1; n >= 0; n--) {
        const TorNode *node = chain.node[n];
        TorValue *in[3];
        for (int i = 0, at; i < node->n_inputs; i++) {
            in[i] = tor_in(node, i);
            if (node->op == TOR_OP_linear) {
                at = i == 0 ? axis : -1;
            } else if (i == chain.operand[n]) {
                in[i] = value;
                continue;
            } else {
                operand_axis(r->g, in[i], node->outputs[0], axis, &at);
            }
            if (at >= 0) TOR_TRY(sliced(r, in[i], at, &in[i]));
        }
        TOR_TRY(
            tor_rewrite_add(r, node->op, in, node->n_inputs, node->attrs, node->n_attrs, &value));
    }
    tor_rewrite_replace(r, value);
    return TOROID_OK;
}

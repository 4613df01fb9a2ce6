// The types that kernels come in. A new kernel for another type loosens a rule here.
#include "plan/support.h"

#include "base/program.h"

/// Products come in every type that eager multiplies, attention in float32 and the half types,
/// recurrent layers in float32.
static ToroidStatus need_contraction(const TorNode *node) {
    TorDtype type = tor_in(node, 0)->dtype;
    bool attention = node->op == TOR_OP_attention;
    if (type == TOR_bool || (attention && tor_dtype_compute(type) != TOR_float32) ||
        (node->op == TOR_OP_rnn_layer && type != TOR_float32))
        return tor_refuse("%s of %s: no kernel", tor_op_name(node->op), tor_dtype_name(type));
    for (int i = 1; i < node->n_inputs && i < 3; i++)
        if (tor_in(node, i)->dtype != type)
            return tor_refuse("%s of %s and %s: operands must have one type", tor_op_name(node->op),
                              tor_dtype_name(type), tor_dtype_name(tor_in(node, i)->dtype));
    int added = attention ? tor_attention_mask(node) : 0;
    TorDtype mask = added ? tor_in(node, added)->dtype : TOR_bool;
    // The widen pass takes a mask along with the queries.
    bool fits = mask == TOR_bool || mask == TOR_float32 ||
                (tor_dtype_is_half(mask) && tor_dtype_is_half(type));
    return fits ? TOROID_OK
                : tor_refuse("attention of %s with a mask of %s: no kernel", tor_dtype_name(type),
                             tor_dtype_name(mask));
}

static ToroidStatus need_function(const TorNode *node) {
    const TorValue *v = tor_in(node, node->n_inputs - 1);
    for (int i = 0; i < node->n_inputs; i++) {
        TorScalar number;
        if (!tor_value_number(tor_in(node, i), &number)) v = tor_in(node, i);
    }
    if (!tor_fn_takes((TorScalarFn)node->op, v->dtype))
        return tor_refuse("%s of %s: no kernel", tor_op_name(node->op), tor_dtype_name(v->dtype));
    return TOROID_OK;
}

ToroidStatus tor_plan_supports(const TorNode *node) {
    switch (tor_op_kind(node->op)) {
        case TOR_KIND_CONTRACT: return need_contraction(node);
        case TOR_KIND_MAP: return tor_op_is_scalar_fn(node->op) ? need_function(node) : TOROID_OK;
        default: return TOROID_OK;
    }
}

// The types that kernels come in. A new kernel for another type loosens a rule here.
#include "plan/support.h"

#include "base/program.h"

static ToroidStatus need_f32(const TorNode *node) {
    for (int i = 0; i < node->n_inputs && i < 3; i++) {
        const TorValue *v = tor_in(node, i);
        if (v->dtype != TOR_float32)
            return tor_refuse("%s of %s: only float32 has kernels", tor_op_name(node->op),
                              tor_dtype_name(v->dtype));
    }
    return TOROID_OK;
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
        case TOR_KIND_CONTRACT: return need_f32(node);
        case TOR_KIND_MAP: return tor_op_is_scalar_fn(node->op) ? need_function(node) : TOROID_OK;
        default: return TOROID_OK;
    }
}

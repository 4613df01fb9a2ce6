// Type rules of elementwise ops: scalar functions with numpy broadcast, and cast.
#include "graph/internal.h"

static const struct {
    bool gives_bool;
} fns[] = {
#define TOR_FN(name, arity, result, doc) {result == 'b'},
#include "base/scalar_fn.inc"
#undef TOR_FN
};

static bool floats_only(TorOp op) {
    return op == TOR_OP_div || op == TOR_OP_atan2 || op == TOR_OP_copysign ||
           (op >= TOR_OP_sqrt && op <= TOR_OP_sigmoid) ||
           (op >= TOR_OP_gelu_erf && op <= TOR_OP_hardswish);
}

static bool is_number(const TorValue *v) {
    return v->rank == 0 && v->node->op == TOR_OP_constant &&
           tor_attr_int(v->node, TOR_ATTR_weak, 0) == 1;
}

// The common type of inputs [from, n): that of the tensors; of numbers alone, the widest.
static ToroidStatus common_type(const TorGraph *g, const TorNode *node, int from, TorDtype *out) {
    int tensor = -1;
    TorDtype widest = TOR_bool;
    for (int i = from; i < node->n_inputs; ++i) {
        const TorValue *v = tor_in(node, i);
        widest = TOR_MAX(widest, v->dtype);
        if (is_number(v)) continue;
        if (tensor < 0) tensor = i;
        if (v->dtype == tor_in(node, tensor)->dtype) continue;
        char a[96], b[96];
        return tor_invalid("inputs must have one type, got %s and %s",
                           tor_type_print(g, tor_in(node, tensor), a, sizeof(a)),
                           tor_type_print(g, v, b, sizeof(b)));
    }
    *out = tensor < 0 ? widest : tor_in(node, tensor)->dtype;
    return TOROID_OK;
}

ToroidStatus tor_infer_scalar_fn(TorGraph *g, TorNode *node) {
    TorDtype type = TOR_bool;
    if (node->op == TOR_OP_where) TOR_TRY(tor_need_dtype(g, node, 0, "the condition", TOR_bool));
    TOR_TRY(common_type(g, node, node->op == TOR_OP_where, &type));
    if (floats_only(node->op) && !tor_dtype_is_float(type))
        return tor_invalid("inputs must be of a float type, got %s", tor_dtype_name(type));
    TorDim dims[TOR_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < node->n_inputs; ++i) {
        const TorValue *v = tor_in(node, i);
        ToroidStatus status = tor_dims_broadcast(g, v->dim, v->rank, dims, &rank);
        if (status == TOROID_OK) continue;
        char text[96];
        return status == TOROID_INVALID ? tor_error_prefix(status, "input %d, %s", i,
                                                           tor_type_print(g, v, text, sizeof(text)))
                                        : status;
    }
    tor_graph_set_type(node->outputs[0], fns[node->op].gives_bool ? TOR_bool : type, rank, dims);
    return TOROID_OK;
}

ToroidStatus tor_infer_cast(TorGraph *g, TorNode *node) {
    (void)g;
    const TorAttr *dtype = tor_attr(node, TOR_ATTR_dtype);
    if (!dtype || dtype->kind != TOR_ATTR_DTYPE) return tor_invalid("attribute dtype is missing");
    const TorValue *x = tor_in(node, 0);
    tor_graph_set_type(node->outputs[0], dtype->dtype, x->rank, x->dim);
    return TOROID_OK;
}

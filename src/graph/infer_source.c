// Type rules of ops without tensor inputs, of the sink, and of ops whose types are given from
// outside.
#include "graph/internal.h"

ToroidStatus tor_infer_input(TorGraph *g, TorNode *node) {
    int64_t index = tor_attr_int(node, TOR_ATTR_index, -1);
    if (index < 0 || index >= g->n_inputs || g->inputs[index].kind != TOR_INPUT_TENSOR)
        return tor_invalid("attribute index must name a tensor input, got %" PRId64, index);
    return TOROID_OK;  // the type is the caller's
}

static ToroidStatus need_dtype_attr(const TorNode *node, TorDtype *out) {
    const TorAttr *dtype = tor_attr(node, TOR_ATTR_dtype);
    if (!dtype || dtype->kind != TOR_ATTR_DTYPE || (unsigned)dtype->dtype >= TOR_DTYPE_COUNT)
        return tor_invalid("attribute dtype is missing or no dtype");
    *out = dtype->dtype;
    return TOROID_OK;
}

ToroidStatus tor_infer_constant(TorGraph *g, TorNode *node) {
    const TorAttr *blob = tor_attr(node, TOR_ATTR_blob);
    const TorDim *dims = NULL;
    int rank = 0;
    int64_t numel;
    TorDtype dtype = TOR_float32;
    TOR_TRY(need_dtype_attr(node, &dtype));
    if (!blob || blob->kind != TOR_ATTR_BLOB) return tor_invalid("attribute blob is missing");
    if (tor_attr(node, TOR_ATTR_dims))
        TOR_TRY(tor_need_dims(g, node, TOR_ATTR_dims, -1, &dims, &rank));
    if (!tor_dims_numel(g, dims, rank, &numel))
        return tor_invalid("attribute dims must be known at compile time");
    int64_t bytes;
    if (__builtin_mul_overflow(numel, (int64_t)tor_dtype_size(dtype), &bytes) ||
        bytes != blob->count)
        return tor_invalid("attribute blob must have the bytes of %" PRId64
                           " items of %s, got %d bytes",
                           numel, tor_dtype_name(dtype), blob->count);
    tor_graph_set_type(node->outputs[0], dtype, rank, dims);
    return TOROID_OK;
}

ToroidStatus tor_infer_full(TorGraph *g, TorNode *node) {
    const TorAttr *value = tor_attr(node, TOR_ATTR_value);
    const TorDim *dims;
    int rank;
    TorDtype dtype = TOR_float32;
    if (!value || value->kind != TOR_ATTR_SCALAR)
        return tor_invalid("attribute value is missing or no scalar");
    TOR_TRY(need_dtype_attr(node, &dtype));
    TOR_TRY(tor_need_dims(g, node, TOR_ATTR_dims, -1, &dims, &rank));
    tor_graph_set_type(node->outputs[0], dtype, rank, dims);
    return TOROID_OK;
}

ToroidStatus tor_infer_arange(TorGraph *g, TorNode *node) {
    const TorDim *dims;
    TorDtype dtype = TOR_float32;
    TOR_TRY(need_dtype_attr(node, &dtype));
    TOR_TRY(tor_need_dims(g, node, TOR_ATTR_dims, 1, &dims, NULL));
    if (dtype == TOR_bool) return tor_invalid("attribute dtype must not be bool");
    if (tor_dtype_is_float(dtype)) {
        if (!tor_attr(node, TOR_ATTR_fstart) || !tor_attr(node, TOR_ATTR_fstep))
            return tor_invalid("attributes fstart and fstep are expected for %s",
                               tor_dtype_name(dtype));
    } else {
        const TorAttr *start = tor_attr(node, TOR_ATTR_start);
        if (!start || start->kind != TOR_ATTR_DIM || !tor_attr(node, TOR_ATTR_step))
            return tor_invalid("attributes start (a dim) and step (an int) are expected for %s",
                               tor_dtype_name(dtype));
    }
    tor_graph_set_type(node->outputs[0], dtype, 1, dims);
    return TOROID_OK;
}

ToroidStatus tor_infer_output(TorGraph *g, TorNode *node) {
    const int64_t *into;
    TOR_TRY(tor_need_ints(node, TOR_ATTR_into, node->n_inputs, &into, NULL));
    for (int i = 0; i < node->n_inputs; ++i) {
        if (into[i] == -1) continue;
        if (into[i] < 0 || into[i] >= g->n_inputs || g->inputs[into[i]].kind != TOR_INPUT_TENSOR)
            return tor_invalid("attribute into: item %d must be -1 or a tensor input, got %" PRId64,
                               i, into[i]);
        const TorValue *from = tor_in(node, i), *to = g->inputs[into[i]].value;
        bool fits = from->dtype == to->dtype && from->rank == to->rank;
        for (int d = 0; fits && d < from->rank; ++d)
            fits = !tor_dims_clash(g, from->dim[d], to->dim[d]);
        if (fits) continue;
        char a[96], b[96];
        return tor_invalid("output %d, %s, cannot be written into input %" PRId64 ", %s", i,
                           tor_type_print(g, from, a, sizeof(a)), into[i],
                           tor_type_print(g, to, b, sizeof(b)));
    }
    return TOROID_OK;
}

// tor_graph_set_type() gives their types.
ToroidStatus tor_infer_fused(TorGraph *g, TorNode *node) {
    (void)g;
    const TorAttr *program = tor_attr(node, TOR_ATTR_program);
    return program && program->kind == TOR_ATTR_BLOB
               ? TOROID_OK
               : tor_invalid("attribute program is missing or no blob");
}

ToroidStatus tor_infer_external(TorGraph *g, TorNode *node) {
    (void)g;
    const TorAttr *callable = tor_attr(node, TOR_ATTR_callable);
    return callable && callable->kind == TOR_ATTR_INT
               ? TOROID_OK
               : tor_invalid("attribute callable is missing or no integer");
}

static ToroidStatus packed_bytes(TorGraph *g, TorNode *node) {
    const TorDim *dims;
    int n;
    // The bytes are the caller's: the kernel family knows the format. Without them the size is 0
    // until set.
    TOR_TRY(tor_need_dims(g, node, TOR_ATTR_dims, 1, &dims, &n));
    tor_graph_set_type(node->outputs[0], TOR_uint8, 1, dims);
    return TOROID_OK;
}

ToroidStatus tor_infer_pack_linear(TorGraph *g, TorNode *node) {
    TOR_TRY(tor_need_rank(g, node, 0, "w", 2, 2));
    return packed_bytes(g, node);
}

ToroidStatus tor_infer_pack_conv(TorGraph *g, TorNode *node) {
    TOR_TRY(tor_need_rank(g, node, 0, "w", 3, TOR_MAX_RANK));
    return packed_bytes(g, node);
}

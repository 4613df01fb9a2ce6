// Type rules of contractions. linear, matmul and conv may carry an epilogue: a pointwise program
// whose operands are the inputs beyond their own; it may change the output's dtype
// (tor_graph_set_type).
#include "graph/internal.h"

#include <string.h>

// Checks the number of inputs of an op with `own` inputs and maybe a bias. `*bias` is its input or
// 0.
static ToroidStatus check_extra(const TorNode *node, int own, bool may_have_bias, int *bias) {
    bool epilogue = tor_attr(node, TOR_ATTR_epilogue) != NULL;
    bool has_bias = may_have_bias &&
                    tor_attr_int(node, TOR_ATTR_has_bias, !epilogue && node->n_inputs > own) != 0;
    int needed = own + has_bias;
    if (node->n_inputs < needed)
        return tor_invalid("has_bias is set: expected %d inputs, got %d", needed, node->n_inputs);
    if (node->n_inputs > needed && !epilogue)
        return tor_invalid("expected %d inputs without an epilogue, got %d", needed,
                           node->n_inputs);
    *bias = has_bias ? own : 0;
    return TOROID_OK;
}

static void set_result(TorNode *node, TorDtype dtype, int rank, const TorDim *dims) {
    TorValue *out = node->outputs[0];
    tor_graph_set_type(out, tor_attr(node, TOR_ATTR_epilogue) ? out->dtype : dtype, rank, dims);
}

// Attribute `key` of a packed weight: an integer, as an int or a dim.
static ToroidStatus packed_size(TorGraph *g, const TorNode *node, TorAttrKey key, TorDim *out) {
    const TorAttr *a = tor_attr(node, key);
    if (a && a->kind == TOR_ATTR_DIM) {
        *out = a->dim;
        return TOROID_OK;
    }
    if (!a || a->kind != TOR_ATTR_INT || a->i < 0)
        return tor_invalid("attribute %s of a packed weight is missing or negative",
                           tor_attr_name(key));
    *out = tor_int_const(g, a->i);
    return g->failed ? tor_no_memory() : TOROID_OK;
}

ToroidStatus tor_infer_linear(TorGraph *g, TorNode *node) {
    const TorValue *x = tor_in(node, 0), *w = tor_in(node, 1);
    TorDim n, k, dims[TOR_MAX_RANK];
    int bias;
    TOR_TRY(check_extra(node, 2, true, &bias));
    TOR_TRY(tor_need_rank(g, node, 0, "x", 1, TOR_MAX_RANK));
    if (tor_attr_int(node, TOR_ATTR_packed, 0)) {
        TOR_TRY(packed_size(g, node, TOR_ATTR_n, &n));
        TOR_TRY(packed_size(g, node, TOR_ATTR_k, &k));
    } else {
        bool trans = tor_attr_int(node, TOR_ATTR_trans, 0) != 0;
        TOR_TRY(tor_need_rank(g, node, 1, "w", 2, 2));
        TOR_TRY(tor_need_dtype(g, node, 1, "w", x->dtype));
        n = w->dim[trans];
        k = w->dim[!trans];
    }
    TOR_TRY(tor_need_dim(g, node, 0, "x", x->rank - 1, k));
    if (bias) {
        TOR_TRY(tor_need_rank(g, node, bias, "bias", 1, 1));
        TOR_TRY(tor_need_dim(g, node, bias, "bias", 0, n));
    }
    memcpy(dims, x->dim, sizeof(dims));
    dims[x->rank - 1] = n;
    set_result(node, x->dtype, x->rank, dims);
    return TOROID_OK;
}

ToroidStatus tor_infer_matmul(TorGraph *g, TorNode *node) {
    const TorValue *a = tor_in(node, 0), *b = tor_in(node, 1);
    TorDim dims[TOR_MAX_RANK];
    int bias, rank = a->rank;
    TOR_TRY(check_extra(node, 2, false, &bias));
    TOR_TRY(tor_need_rank(g, node, 0, "a", 2, TOR_MAX_RANK));
    TOR_TRY(tor_need_rank(g, node, 1, "b", rank, rank));
    TOR_TRY(tor_need_dtype(g, node, 1, "b", a->dtype));
    for (int i = 0; i < rank - 2; ++i) {
        TOR_TRY(tor_need_dim(g, node, 1, "b", i, a->dim[i]));
        dims[i] = tor_dims_merge(g, a->dim[i], b->dim[i]);
    }
    TOR_TRY(tor_need_dim(g, node, 1, "b", rank - 2, a->dim[rank - 1]));
    dims[rank - 2] = a->dim[rank - 2];
    dims[rank - 1] = b->dim[rank - 1];
    set_result(node, a->dtype, rank, dims);
    return TOROID_OK;
}

static ToroidStatus check_mask(TorGraph *g, const TorNode *node, int input, const char *name,
                               const TorDim *scores) {
    const TorValue *mask = tor_in(node, input);
    TOR_TRY(tor_need_rank(g, node, input, name, 0, 4));
    for (int i = 0; i < mask->rank; ++i)
        if (!tor_int_is(g, mask->dim[i], 1))
            TOR_TRY(tor_need_dim(g, node, input, name, i, scores[4 - mask->rank + i]));
    return TOROID_OK;
}

ToroidStatus tor_infer_attention(TorGraph *g, TorNode *node) {
    const TorValue *q = tor_in(node, 0), *k = tor_in(node, 1), *v = tor_in(node, 2);
    static const char *const names[] = {"q", "k", "v"};
    for (int i = 0; i < 3; ++i) {
        TOR_TRY(tor_need_rank(g, node, i, names[i], 4, 4));
        TOR_TRY(tor_need_float(g, node, i, names[i]));
        TOR_TRY(tor_need_dtype(g, node, i, names[i], q->dtype));
        TOR_TRY(tor_need_dim(g, node, i, names[i], 0, q->dim[0]));
    }
    TOR_TRY(tor_need_dim(g, node, 1, "k", 3, q->dim[3]));
    TOR_TRY(tor_need_dim(g, node, 2, "v", 1, k->dim[1]));
    TOR_TRY(tor_need_dim(g, node, 2, "v", 2, k->dim[2]));
    int64_t heads, groups;
    if (tor_int_known(g, q->dim[1], &heads) && tor_int_known(g, k->dim[1], &groups) &&
        (groups == 0 ? heads != 0 : heads % groups))
        return tor_invalid("the heads of q, %" PRId64
                           ", must be a multiple of those of k, %" PRId64,
                           heads, groups);
    tor_must_equal(g, tor_int_binary(g, TOR_INT_mod, q->dim[1], k->dim[1]), tor_int_const(g, 0));
    TorDim scores[4] = {q->dim[0], q->dim[1], q->dim[2], k->dim[2]};
    int mask = tor_attention_mask(node), keep = tor_attention_keep(node);
    if (mask && tor_in(node, mask)->dtype != TOR_bool)
        TOR_TRY(tor_need_float(g, node, mask, "a mask that is not bool"));
    if (mask) TOR_TRY(check_mask(g, node, mask, "mask", scores));
    if (keep) {
        TOR_TRY(tor_need_dtype(g, node, keep, "keep", TOR_bool));
        TOR_TRY(check_mask(g, node, keep, "keep", scores));
    }
    TorDim dims[4] = {tor_dims_merge(g, q->dim[0], k->dim[0]), q->dim[1], q->dim[2], v->dim[3]};
    tor_graph_set_type(node->outputs[0], q->dtype, 4, dims);
    return TOROID_OK;
}

// ---------------------------------------------------------------- conv

typedef struct {
    const int64_t *stride, *padding, *padding_high, *dilation, *output_padding;
    int64_t groups;
    bool transposed;
} Conv;

static ToroidStatus conv_attrs(const TorNode *node, int spatial, Conv *c) {
    static const int64_t zeros[TOR_MAX_RANK];
    TOR_TRY(tor_need_ints(node, TOR_ATTR_stride, spatial, &c->stride, NULL));
    TOR_TRY(tor_need_padding(node, spatial, &c->padding, &c->padding_high));
    TOR_TRY(tor_need_ints(node, TOR_ATTR_dilation, spatial, &c->dilation, NULL));
    c->output_padding = zeros;
    if (tor_attr(node, TOR_ATTR_output_padding))
        TOR_TRY(tor_need_ints(node, TOR_ATTR_output_padding, spatial, &c->output_padding, NULL));
    c->groups = tor_attr_int(node, TOR_ATTR_groups, 1);
    c->transposed = tor_attr_int(node, TOR_ATTR_transposed, 0) != 0;
    if (c->groups < 1)
        return tor_invalid("attribute groups must be positive, got %" PRId64, c->groups);
    for (int i = 0; i < spatial; ++i)
        if (c->stride[i] < 1 || c->dilation[i] < 1 || c->padding[i] < 0 || c->padding_high[i] < 0)
            return tor_invalid(
                "stride and dilation must be positive and padding not negative, got %" PRId64
                ", %" PRId64 " and %" PRId64 " at dim %d",
                c->stride[i], c->dilation[i], c->padding[i], i);
    return TOROID_OK;
}

// Output channels and kernel sizes: of the weight, or of the attributes where it is packed.
static ToroidStatus conv_weight(TorGraph *g, const TorNode *node, const Conv *c, int spatial,
                                TorDim *channels, TorDim *kernel) {
    const TorValue *x = tor_in(node, 0), *w = tor_in(node, 1);
    TorDim groups = tor_int_const(g, c->groups);
    if (tor_attr_int(node, TOR_ATTR_packed, 0)) {
        const int64_t *sizes;
        TOR_TRY(tor_need_ints(node, TOR_ATTR_kernel, spatial, &sizes, NULL));
        for (int i = 0; i < spatial; ++i) kernel[i] = tor_int_const(g, sizes[i]);
        return packed_size(g, node, TOR_ATTR_n, channels);
    }
    TOR_TRY(tor_need_rank(g, node, 1, "w", x->rank, x->rank));
    TOR_TRY(tor_need_dtype(g, node, 1, "w", x->dtype));
    for (int i = 0; i < spatial; ++i) kernel[i] = w->dim[2 + i];
    int64_t split;
    if (tor_int_known(g, c->transposed ? x->dim[1] : w->dim[0], &split) && split % c->groups)
        return tor_invalid("channels must be a multiple of groups, %" PRId64 ", got %" PRId64,
                           c->groups, split);
    tor_must_equal(g, tor_int_binary(g, TOR_INT_mod, c->transposed ? x->dim[1] : w->dim[0], groups),
                   tor_int_const(g, 0));
    if (c->transposed) {
        TOR_TRY(tor_need_dim(g, node, 1, "w", 0, x->dim[1]));
        *channels = tor_int_mul(g, w->dim[1], groups);
    } else {
        TOR_TRY(tor_need_dim(g, node, 0, "x", 1, tor_int_mul(g, w->dim[1], groups)));
        *channels = w->dim[0];
    }
    return TOROID_OK;
}

ToroidStatus tor_infer_conv(TorGraph *g, TorNode *node) {
    const TorValue *x = tor_in(node, 0);
    int bias, spatial = x->rank - 2;
    Conv c;
    TorDim dims[TOR_MAX_RANK], kernel[TOR_MAX_RANK];
    TOR_TRY(check_extra(node, 2, true, &bias));
    TOR_TRY(tor_need_rank(g, node, 0, "x", 3, TOR_MAX_RANK));
    TOR_TRY(conv_attrs(node, spatial, &c));
    dims[0] = x->dim[0];
    TOR_TRY(conv_weight(g, node, &c, spatial, &dims[1], kernel));
    if (bias) {
        TOR_TRY(tor_need_rank(g, node, bias, "bias", 1, 1));
        TOR_TRY(tor_need_dim(g, node, bias, "bias", 0, dims[1]));
    }
    TorDim one = tor_int_const(g, 1);
    for (int i = 0; i < spatial; ++i) {
        TorDim in = x->dim[2 + i], pads = tor_int_const(g, c.padding[i] + c.padding_high[i]),
               stride = tor_int_const(g, c.stride[i]);
        TorDim reach =
            tor_int_mul(g, tor_int_const(g, c.dilation[i]), tor_int_sub(g, kernel[i], one));
        TorDim *out = &dims[2 + i];
        int64_t size;
        if (c.transposed) {
            TorDim spread = tor_int_mul(g, tor_int_sub(g, in, one), stride);
            *out = tor_int_add(g, tor_int_sub(g, tor_int_add(g, spread, reach), pads),
                               tor_int_const(g, c.output_padding[i] + 1));
        } else {
            TorDim room = tor_int_sub(g, tor_int_sub(g, tor_int_add(g, in, pads), reach), one);
            *out = tor_int_add(g, tor_int_floordiv(g, room, stride), one);
        }
        if (tor_int_known(g, *out, &size) && size < 0)
            return tor_invalid("spatial dim %d of x is smaller than the kernel's reach", i);
    }
    if (g->failed) return tor_no_memory();
    set_result(node, x->dtype, x->rank, dims);
    return TOROID_OK;
}

// Type rules of pooling over [b, c, spatial...].
#include "graph/internal.h"

// ATen's pooling_output_shape: with ceil_mode, the last window must start inside the input or its
// left padding.
static TorDim pooled(TorGraph *g, TorDim in, int64_t kernel, int64_t stride, int64_t padding,
                     int64_t padding_high, int64_t dilation, bool ceil_mode) {
    TorDim one = tor_int_const(g, 1), step = tor_int_const(g, stride);
    int64_t fixed =
        padding + padding_high - dilation * (kernel - 1) - 1 + (ceil_mode ? stride - 1 : 0);
    TorDim out =
        tor_int_add(g, tor_int_floordiv(g, tor_int_add(g, in, tor_int_const(g, fixed)), step), one);
    if (!ceil_mode) return out;
    TorDim last = tor_int_mul(g, tor_int_sub(g, out, one), step);
    return tor_int_sub(
        g, out, tor_int_binary(g, TOR_INT_le, tor_int_add(g, in, tor_int_const(g, padding)), last));
}

static ToroidStatus pool(TorGraph *g, TorNode *node, bool dilated) {
    static const int64_t ones[TOR_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const TorValue *x = tor_in(node, 0);
    int spatial = x->rank - 2;
    const int64_t *kernel, *stride, *padding, *padding_high, *dilation = ones;
    TorDim dims[TOR_MAX_RANK];
    TOR_TRY(tor_need_rank(g, node, 0, "x", 3, TOR_MAX_RANK));
    TOR_TRY(tor_need_ints(node, TOR_ATTR_kernel, spatial, &kernel, NULL));
    TOR_TRY(tor_need_ints(node, TOR_ATTR_stride, spatial, &stride, NULL));
    TOR_TRY(tor_need_padding(node, spatial, &padding, &padding_high));
    if (dilated) TOR_TRY(tor_need_ints(node, TOR_ATTR_dilation, spatial, &dilation, NULL));
    dims[0] = x->dim[0];
    dims[1] = x->dim[1];
    for (int i = 0; i < spatial; ++i) {
        int64_t size;
        if (kernel[i] < 1 || stride[i] < 1 || dilation[i] < 1)
            return tor_invalid("kernel, stride and dilation must be positive, got %" PRId64
                               ", %" PRId64 " and %" PRId64 " at dim %d",
                               kernel[i], stride[i], dilation[i], i);
        if (padding[i] < 0 || padding[i] > kernel[i] / 2 || padding_high[i] < 0 ||
            padding_high[i] > kernel[i] / 2)
            return tor_invalid("attribute padding must be in [0, kernel / 2], got %" PRId64
                               " at dim %d",
                               padding[i], i);
        dims[2 + i] = pooled(g, x->dim[2 + i], kernel[i], stride[i], padding[i], padding_high[i],
                             dilation[i], tor_attr_int(node, TOR_ATTR_ceil_mode, 0) != 0);
        if (tor_int_known(g, dims[2 + i], &size) && size < 1)
            return tor_invalid("spatial dim %d of x is smaller than the kernel's reach", i);
    }
    if (g->failed) return tor_no_memory();
    tor_graph_set_type(node->outputs[0], x->dtype, x->rank, dims);
    if (node->n_outputs > 1) tor_graph_set_type(node->outputs[1], TOR_int64, x->rank, dims);
    return TOROID_OK;
}

ToroidStatus tor_infer_max_pool(TorGraph *g, TorNode *node) { return pool(g, node, true); }

ToroidStatus tor_infer_avg_pool(TorGraph *g, TorNode *node) {
    if (tor_in(node, 0)->dtype != TOR_int64) TOR_TRY(tor_need_float(g, node, 0, "x"));
    return pool(g, node, false);
}

/// x with `sizes` in the place of its spatial dims.
static void resized(TorNode *node, const TorDim *sizes) {
    TorValue *out = node->outputs[0];
    const TorValue *x = tor_in(node, 0);
    tor_graph_set_type(out, x->dtype, x->rank, x->dim);
    for (int i = 2; i < x->rank; ++i) out->dim[i] = sizes[i - 2];
}

/// Has a pixel at least.
static void must_be_image(TorGraph *g, const TorValue *x) {
    for (int d = 2; d < x->rank; d++) tor_must_fit(g, tor_int_const(g, 1), x->dim[d]);
}

ToroidStatus tor_infer_resize(TorGraph *g, TorNode *node) {
    const TorValue *x = tor_in(node, 0);
    const TorAttr *scales = tor_attr(node, TOR_ATTR_scales);
    const TorDim *sizes;
    TOR_TRY(tor_need_rank(g, node, 0, "x", 3, 5));
    TOR_TRY(tor_need_dims(g, node, TOR_ATTR_dims, x->rank - 2, &sizes, NULL));
    if (!scales || scales->kind != TOR_ATTR_BLOB ||
        scales->count != (x->rank - 2) * (int)sizeof(double))
        return tor_invalid("attribute scales must hold a double a spatial dim");
    must_be_image(g, x);
    resized(node, sizes);
    return TOROID_OK;
}

ToroidStatus tor_infer_grid_sample(TorGraph *g, TorNode *node) {
    const TorValue *x = tor_in(node, 0), *grid = tor_in(node, 1);
    TOR_TRY(tor_need_float(g, node, 0, "x"));
    TOR_TRY(tor_need_rank(g, node, 0, "x", 4, 5));
    TOR_TRY(tor_need_rank(g, node, 1, "grid", x->rank, x->rank));
    TOR_TRY(tor_need_dtype(g, node, 1, "grid", x->dtype));
    TOR_TRY(tor_need_dim(g, node, 1, "grid", 0, x->dim[0]));
    TOR_TRY(tor_need_dim(g, node, 1, "grid", x->rank - 1, tor_int_const(g, x->rank - 2)));
    must_be_image(g, x);
    resized(node, grid->dim + 1);
    return TOROID_OK;
}

ToroidStatus tor_infer_adaptive_max_pool(TorGraph *g, TorNode *node) {
    const TorDim *sizes;
    TOR_TRY(tor_need_rank(g, node, 0, "x", 3, TOR_MAX_RANK));
    TOR_TRY(tor_need_dims(g, node, TOR_ATTR_dims, tor_in(node, 0)->rank - 2, &sizes, NULL));
    resized(node, sizes);
    const TorValue *out = node->outputs[0];
    tor_graph_set_type(node->outputs[1], TOR_int64, out->rank, out->dim);
    return TOROID_OK;
}

ToroidStatus tor_infer_adaptive_avg_pool(TorGraph *g, TorNode *node) {
    const TorDim *sizes;
    TOR_TRY(tor_need_float(g, node, 0, "x"));
    TOR_TRY(tor_need_rank(g, node, 0, "x", 3, TOR_MAX_RANK));
    TOR_TRY(tor_need_dims(g, node, TOR_ATTR_dims, tor_in(node, 0)->rank - 2, &sizes, NULL));
    resized(node, sizes);
    return TOROID_OK;
}

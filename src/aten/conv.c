/// Convolution and pooling. Eager takes inputs without a batch; the IR always has one.
#include "aten/build.h"
#include "aten/tables.h"

#include <string.h>

#define MAX_SPATIAL 3

typedef struct {
    TorValue *x, *w, *bias;
    int64_t stride[MAX_SPATIAL], padding[MAX_SPATIAL], dilation[MAX_SPATIAL],
        output_padding[MAX_SPATIAL];
    int64_t groups;
    bool transposed;
    int spatial;
} Conv;

static TorValue *with_batch(TorCall *c, TorValue *x, int spatial, bool *added) {
    *added = x && x->rank == spatial + 1;
    return *added ? tor_im_unsqueeze(c, x, 0) : x;
}

static Conv conv_operands(TorCall *c) {
    Conv v = {
        .x = tor_im_tensor(c, 0), .w = tor_im_tensor(c, 1), .bias = tor_im_tensor_or_null(c, 2)};
    if (c->status) return v;
    v.spatial = v.w->rank - 2;
    if (v.spatial < 1 || v.spatial > MAX_SPATIAL)
        tor_im_refuse_arg(c, 1, "expected 3 to 5 dims, got %d", v.w->rank);
    else if (v.x->rank != v.w->rank && v.x->rank != v.w->rank - 1)
        tor_im_refuse_arg(c, 0, "expected %d dims, got %d", v.w->rank, v.x->rank);
    for (int i = 0; i < v.w->rank && !c->status; i++) {
        int64_t size;
        if (!tor_int_known(c->g, v.w->dim[i], &size))
            tor_im_refuse_arg(c, 1, "its sizes must be known when compiling");
    }
    return v;
}

static ToroidStatus convolve(TorCall *c, Conv v) {
    if (c->status) return c->status;
    bool dilated = false;
    for (int i = 0; i < v.spatial; i++) dilated |= v.dilation[i] != 1;
    if ((v.transposed || dilated) && !tor_dtype_is_float(v.x->dtype) && v.x->dtype != TOR_int64)
        return tor_im_refuse_arg(c, 0, "eager has no transposed or dilated convolution of %s",
                                 tor_dtype_name(v.x->dtype));
    bool added;
    int n = v.spatial;
    TorValue *inputs[] = {with_batch(c, v.x, n, &added), v.w, v.bias};
    TorAttr a[] = {
        TOR_A_INTS(stride, v.stride, n),     TOR_A_INTS(padding, v.padding, n),
        TOR_A_INTS(dilation, v.dilation, n), TOR_A_INT(groups, v.groups),
        TOR_A_INT(transposed, v.transposed), TOR_A_INTS(output_padding, v.output_padding, n)};
    TorValue *r = tor_im_add(c, TOR_OP_conv, inputs, v.bias ? 3 : 2, a, 6);
    return RETURN(added ? tor_im_squeeze(c, r, 0) : r);
}

static ToroidStatus import_convolution(TorCall *c) {
    Conv v = conv_operands(c);
    if (c->status) return c->status;
    tor_im_ints(c, 3, v.stride, v.spatial);
    tor_im_ints(c, 4, v.padding, v.spatial);
    tor_im_ints(c, 5, v.dilation, v.spatial);
    v.transposed = tor_im_flag(c, 6);
    tor_im_ints(c, 7, v.output_padding, v.spatial);
    v.groups = tor_im_int(c, 8);
    return convolve(c, v);
}

static ToroidStatus import_conv_transpose(TorCall *c) {
    Conv v = conv_operands(c);
    if (c->status) return c->status;
    v.transposed = true;
    tor_im_ints(c, 3, v.stride, v.spatial);
    tor_im_ints(c, 4, v.padding, v.spatial);
    tor_im_ints(c, 5, v.output_padding, v.spatial);
    v.groups = tor_im_int(c, 6);
    tor_im_ints(c, 7, v.dilation, v.spatial);
    return convolve(c, v);
}

/// padding="same": the odd element goes to the high side, as a pad of its own.
static void pad_same(TorCall *c, Conv *v) {
    TorDim low[TOR_MAX_RANK], high[TOR_MAX_RANK];
    int rank = v->x->rank;
    bool odd = false;
    for (int i = 0; i < rank; i++) low[i] = high[i] = tor_im_const(c, 0);
    for (int i = 0; i < v->spatial; i++) {
        int64_t kernel;
        if (v->stride[i] != 1) tor_im_refuse_arg(c, 4, "'same' needs a stride of 1");
        if (!tor_int_known(c->g, v->w->dim[2 + i], &kernel))
            tor_im_refuse_arg(c, 1, "the kernel's size must be known when compiling");
        if (c->status) return;
        int64_t total = v->dilation[i] * (kernel - 1);
        v->padding[i] = total / 2;
        high[rank - v->spatial + i] = tor_im_const(c, total % 2);
        odd |= total % 2;
    }
    if (!odd) return;
    TorAttr a[] = {TOR_A_DIMS(low, low, rank), TOR_A_DIMS(high, high, rank),
                   TOR_A_SCALAR(value, ((TorScalar){.dtype = v->x->dtype}))};
    v->x = tor_im_add(c, TOR_OP_pad, &v->x, 1, a, 3);
}

static ToroidStatus import_conv(TorCall *c) {
    Conv v = conv_operands(c);
    if (c->status) return c->status;
    tor_im_ints(c, 3, v.stride, v.spatial);
    tor_im_ints(c, 5, v.dilation, v.spatial);
    v.groups = tor_im_int(c, 6);
    if (c->args[4].kind != TOR_ARG_STR)
        tor_im_ints(c, 4, v.padding, v.spatial);
    else if (strcmp(c->args[4].str, "same") == 0)
        pad_same(c, &v);
    else if (strcmp(c->args[4].str, "valid") != 0)
        tor_im_refuse_arg(c, 4, "expected 'same' or 'valid', got '%s'", c->args[4].str);
    return convolve(c, v);
}

// ---------------------------------------------------------------- pooling

typedef struct {
    TorValue *x;
    int spatial;
    bool added;
    int64_t kernel[MAX_SPATIAL], stride[MAX_SPATIAL], padding[MAX_SPATIAL], dilation[MAX_SPATIAL];
} Pool;

/// Arguments self, kernel_size, stride, padding; no stride means the kernel's.
static Pool pool_args(TorCall *c, int spatial) {
    Pool p = {.x = tor_im_tensor(c, 0), .spatial = spatial};
    if (p.x && p.x->rank != spatial + 1 && p.x->rank != spatial + 2)
        tor_im_refuse_arg(c, 0, "expected %d dims, got %d", spatial + 2, p.x->rank);
    tor_im_ints(c, 1, p.kernel, spatial);
    bool given = tor_im_has(c, 2) && !(c->args[2].kind == TOR_ARG_LIST && c->args[2].count == 0);
    if (given)
        tor_im_ints(c, 2, p.stride, spatial);
    else
        memcpy(p.stride, p.kernel, sizeof p.stride);
    tor_im_ints(c, 3, p.padding, spatial);
    p.x = c->status ? NULL : with_batch(c, p.x, spatial, &p.added);
    return p;
}

static TorValue *without_batch(TorCall *c, const Pool *p, TorValue *r) {
    return p->added ? tor_im_squeeze(c, r, 0) : r;
}

/// The row's number: spatial dims, plus 8 if the indices are returned too.
static ToroidStatus import_max_pool(TorCall *c) {
    Pool p = pool_args(c, c->row->op & 7);
    tor_im_ints(c, 4, p.dilation, p.spatial);
    bool ceil_mode = tor_im_flag(c, 5);
    if (c->status) return c->status;
    int n = p.spatial;
    TorAttr a[] = {TOR_A_INTS(kernel, p.kernel, n), TOR_A_INTS(stride, p.stride, n),
                   TOR_A_INTS(padding, p.padding, n), TOR_A_INTS(dilation, p.dilation, n),
                   TOR_A_INT(ceil_mode, ceil_mode)};
    TorValue *r = tor_im_add(c, TOR_OP_max_pool, &p.x, 1, a, 5);
    if (!r) return c->status;
    TorValue *results[] = {without_batch(c, &p, r), without_batch(c, &p, r->node->outputs[1])};
    return c->row->op & 8 ? tor_im_return_list(c, results, 2) : RETURN(results[0]);
}

static ToroidStatus import_avg_pool(TorCall *c) {
    Pool p = pool_args(c, c->row->op);
    bool ceil_mode = tor_im_flag(c, 4), include = tor_im_flag(c, 5);
    int64_t divisor = p.spatial > 1 && tor_im_has(c, 6) ? tor_im_int(c, 6) : 0;
    if (c->status) return c->status;
    int n = p.spatial;
    TorAttr a[] = {TOR_A_INTS(kernel, p.kernel, n),       TOR_A_INTS(stride, p.stride, n),
                   TOR_A_INTS(padding, p.padding, n),     TOR_A_INT(ceil_mode, ceil_mode),
                   TOR_A_INT(count_include_pad, include), TOR_A_INT(divisor, divisor)};
    return RETURN(without_batch(c, &p, tor_im_add(c, TOR_OP_avg_pool, &p.x, 1, a, 6)));
}

/// The input of an adaptive pool over `spatial` dims, and the sizes it asks for; NULL if refused.
static TorValue *adaptive_input(TorCall *c, int spatial, TorDim *sizes) {
    int n = tor_im_dims(c, 1, sizes);
    TorValue *x = tor_im_tensor(c, 0);
    if (c->status) return NULL;
    if (n != spatial && n != 1)
        tor_im_refuse_arg(c, 1, "expected %d sizes, got %d", spatial, n);
    else if (x->rank != spatial + 1 && x->rank != spatial + 2)
        tor_im_refuse_arg(c, 0, "expected %d dims, got %d", spatial + 2, x->rank);
    else if (!tor_dtype_is_float(x->dtype))
        tor_im_refuse_arg(c, 0, "expected floats");
    for (int i = n; i < spatial; i++) sizes[i] = sizes[0];
    return c->status ? NULL : x;
}

static ToroidStatus import_adaptive(TorCall *c) {
    TorDim sizes[TOR_MAX_RANK];
    int64_t axes[MAX_SPATIAL];
    int spatial = c->row->op;
    bool global = true, added;
    TorValue *x = adaptive_input(c, spatial, sizes);
    if (!x) return c->status;
    for (int i = 0; i < spatial; i++)
        global &= tor_int_is(c->g, sizes[i], 1), axes[i] = x->rank - spatial + i;
    if (global) {  // eager's own shortcut
        TorDtype t = x->dtype;
        return RETURN(
            tor_im_cast(c, tor_im_reduce(c, TOR_OP_mean, tor_im_up(c, x), axes, spatial, true), t));
    }
    x = with_batch(c, x, spatial, &added);
    TorAttr a = TOR_A_DIMS(dims, sizes, spatial);
    TorValue *r = tor_im_add(c, TOR_OP_adaptive_avg_pool, &x, 1, &a, 1);
    return RETURN(added ? tor_im_squeeze(c, r, 0) : r);
}

static ToroidStatus import_adaptive_max(TorCall *c) {
    TorDim sizes[TOR_MAX_RANK];
    bool added;
    int spatial = c->row->op;
    TorValue *x = adaptive_input(c, spatial, sizes);
    if (!x) return c->status;
    for (int i = 0; i < spatial; i++)
        if (tor_int_is(c->g, x->dim[x->rank - 1 - i], 0))
            return tor_im_refuse_arg(c, 0, "a spatial dim is empty");
    x = with_batch(c, x, spatial, &added);
    TorAttr a = TOR_A_DIMS(dims, sizes, spatial);
    TorValue *r = tor_im_add(c, TOR_OP_adaptive_max_pool, &x, 1, &a, 1);
    if (!r) return c->status;
    TorValue *results[] = {r, r->node->outputs[1]};
    for (int i = 0; i < 2 && added; i++) results[i] = tor_im_squeeze(c, results[i], 0);
    return tor_im_return_list(c, results, 2);
}

#define CONV(name)                                                                           \
    {                                                                                        \
        "aten." name, "input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1", \
            import_conv, 0                                                                   \
    }
#define CONV_PADDING(name)                                                             \
    {                                                                                  \
        "aten." name ".padding",                                                       \
            "input, weight, bias=None, stride=1, padding=valid, dilation=1, groups=1", \
            import_conv, 0                                                             \
    }
#define CONV_T(name)                                                                      \
    {                                                                                     \
        "aten." name,                                                                     \
            "input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, " \
            "dilation=1",                                                                 \
            import_conv_transpose, 0                                                      \
    }
#define MAX_POOL "self, kernel_size, stride=[], padding=0, dilation=1, ceil_mode=False"
#define AVG_POOL "self, kernel_size, stride=[], padding=0, ceil_mode=False, count_include_pad=True"

static const TorAtenRow rows[] = {
    {"aten.convolution.default",
     "input, weight, bias, stride, padding, dilation, transposed, output_padding, groups",
     import_convolution, 0},
    CONV("conv1d.default"),
    CONV("conv2d.default"),
    CONV("conv3d.default"),
    CONV_PADDING("conv1d"),
    CONV_PADDING("conv2d"),
    CONV_PADDING("conv3d"),
    CONV_T("conv_transpose1d.default"),
    CONV_T("conv_transpose2d.input"),
    CONV_T("conv_transpose3d.input"),
    {"aten.max_pool2d_with_indices.default", MAX_POOL, import_max_pool, 2 | 8},
    {"aten.max_pool3d_with_indices.default", MAX_POOL, import_max_pool, 3 | 8},
    {"aten.max_pool1d_with_indices.default", MAX_POOL, import_max_pool, 1 | 8},
    {"aten.max_pool1d.default", MAX_POOL, import_max_pool, 1},
    {"aten.max_pool2d.default", MAX_POOL, import_max_pool, 2},
    {"aten.max_pool3d.default", MAX_POOL, import_max_pool, 3},
    {"aten.avg_pool1d.default", AVG_POOL, import_avg_pool, 1},
    {"aten.avg_pool2d.default", AVG_POOL ", divisor_override=None", import_avg_pool, 2},
    {"aten.avg_pool3d.default", AVG_POOL ", divisor_override=None", import_avg_pool, 3},
    {"aten.adaptive_avg_pool1d.default", "self, output_size", import_adaptive, 1},
    {"aten.adaptive_avg_pool2d.default", "self, output_size", import_adaptive, 2},
    {"aten.adaptive_avg_pool3d.default", "self, output_size", import_adaptive, 3},
    {"aten.adaptive_max_pool1d.default", "self, output_size", import_adaptive_max, 1},
    {"aten.adaptive_max_pool2d.default", "self, output_size", import_adaptive_max, 2},
    {"aten.adaptive_max_pool3d.default", "self, output_size", import_adaptive_max, 3},
    {"aten._adaptive_avg_pool2d.default", "self, output_size", import_adaptive, 2},
    {"aten._adaptive_avg_pool3d.default", "self, output_size", import_adaptive, 3},
};
TOR_ATEN_TABLE(conv, rows);

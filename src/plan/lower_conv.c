// Steps of the conv family. One and two spatial dims get leading ones.
#include <string.h>

#include "plan/lower_conv.h"
#include "plan/spatial.h"
#include "tune/families.h"

static void bind_weight(const TorConvWeightData *d, const int64_t *ints, TorConvPackArgs *args) {
    *args = d->fixed;
    int64_t first = ints[d->stride[0]], second = ints[d->stride[1]];
    args->out_stride = d->transposed ? second : first;
    args->in_stride = d->transposed ? first : second;
    args->group_stride = d->transposed ? args->in_channels / args->groups * args->in_stride
                                       : args->out_channels / args->groups * args->out_stride;
    tor_bind_dims(ints, d->stride + 2, 3, args->kernel_stride);
}

/// Notes the weight of a `node` that convolves with it or packs it.
static ToroidStatus lower_weight(TorPlan *plan, const TorNode *node, const TorValue *w,
                                 TorConvWeightData *d) {
    int spatial = w->rank - 2;
    int64_t size[TOR_MAX_RANK];
    TorView view;
    for (int i = 0; i < w->rank; i++)
        if (!tor_int_known(plan->g, w->dim[i], &size[i]))
            return tor_refuse("a weight of unknown size");
    TOR_TRY(tor_plan_view(plan, w, &view));
    TorConvPackArgs *f = &d->fixed;
    d->dtype = w->dtype;
    d->transposed = tor_attr_int(node, TOR_ATTR_transposed, 0);
    f->groups = tor_attr_int(node, TOR_ATTR_groups, 1);
    f->out_channels = d->transposed ? size[1] * f->groups : size[0];
    f->in_channels = d->transposed ? size[0] : size[1] * f->groups;
    for (int i = 0; i < 3; i++) f->kernel[i] = i < 3 - spatial ? 1 : size[2 + i - (3 - spatial)];
    f->winograd = tor_attr_int(node, TOR_ATTR_winograd, 0);
    tor_spatial_strides(plan->g, spatial, view.stride, d->stride);
    return TOROID_OK;
}

static void conv_ref_range(const void *args, int64_t begin, int64_t end, void *scratch) {
    (void)begin, (void)end, (void)scratch;
    const TorConvProblem *step = args;
    tor_conv_run_ref(&step->conv, &step->weight, step->dtype);
}

void tor_conv_fill(const TorConvData *d, const int64_t *ints, TorConvArgs *args,
                   TorEpilogue *epilogue) {
    *args = d->fixed;
    args->batch = ints[d->batch];
    tor_bind_dims(ints, d->in, 3, args->in_size);
    tor_bind_dims(ints, d->out, 3, args->out_size);
    tor_bind_dims(ints, d->x_stride, 5, args->x_stride);
    tor_bind_dims(ints, d->y_stride, 5, args->y_stride);
    args->epilogue = tor_bind_epilogue(&d->epilogue, ints, epilogue);
}

static void fill(const void *data, const int64_t *ints, void *problem) {
    const TorConvData *d = data;
    TorConvProblem *step = problem;
    step->has_bias = d->has_bias;
    tor_conv_fill(d, ints, &step->conv, &step->epilogue);
}

static void bind_conv(const void *data, TorBinder *b) {
    const TorConvData *d = data;
    TorConvProblem *step = b->args;
    fill(data, b->ints, step);
    if (b->reference) {
        step->dtype = d->dtype;
        bind_weight(&d->weight, b->ints, &step->weight);
    }
    if (tor_bind_reference(b, conv_ref_range, 0)) return;
    if (d->dtype != TOR_float32) {
        memset(&step->gemm, 0, sizeof step->gemm);
        tor_conv_typed_bind(&step->conv, &step->gemm, d->dtype);
        b->scratch_bytes = step->gemm.scratch_bytes;
        tor_bind_region(b, tor_gemm_typed_run, &step->gemm, step->gemm.items);
        return;
    }
    tor_bind_tunable_args(b, &tor_tunable_conv, fill, data);
}

static const char *conv_kernel(const void *args) {
    const TorConvProblem *step = args;
    if (step->gemm.typed) return step->gemm.typed->name;
    return step->conv.row ? step->conv.row->name : NULL;
}

static const TorStepKind conv_kind = {
    .name = "conv", .bind = bind_conv, .kernel = conv_kernel, .reference = "tor_conv_run_ref"};

#define GEMM(field) (offsetof(TorConvProblem, gemm) + offsetof(TorGemmArgs, field))

/// Points the last step at x, weight, bias and y, which lie where its kernel or the oracle reads
/// them.
static ToroidStatus pointers(TorPlan *plan, const TorNode *node, bool packed, bool has_bias) {
    TorView x, weight, bias, y;
    bool gemm = packed && tor_in(node, 0)->dtype != TOR_float32;
    TOR_TRY(tor_plan_view(plan, tor_in(node, 0), &x));
    TOR_TRY(tor_plan_view(plan, tor_in(node, 1), &weight));
    TOR_TRY(tor_plan_view(plan, node->outputs[0], &y));
    TOR_TRY(tor_step_pointer(plan, &x, offsetof(TorConvArgs, x)));
    size_t weight_at = !packed
                           ? offsetof(TorConvProblem, weight) + offsetof(TorConvPackArgs, weight)
                       : gemm ? GEMM(b)
                              : offsetof(TorConvArgs, packed);
    TOR_TRY(tor_step_pointer(plan, &weight, weight_at));
    if (has_bias) {
        TOR_TRY(tor_plan_view(plan, tor_in(node, 2), &bias));
        TOR_TRY(tor_step_pointer(plan, &bias, gemm ? GEMM(bias) : offsetof(TorConvArgs, bias)));
    }
    if (tor_attr(node, TOR_ATTR_epilogue)) return TOROID_OK;
    return tor_step_pointer(plan, &y, gemm ? GEMM(c) : offsetof(TorConvArgs, y));
}

ToroidStatus tor_conv_note(TorPlan *plan, const TorNode *node, TorConvData *d) {
    TorGraph *g = plan->g;
    const TorValue *x = tor_in(node, 0), *out = node->outputs[0];
    int spatial = x->rank - 2;
    if (!tor_gemm_takes(x->dtype)) return tor_refuse("conv in %s", tor_dtype_name(x->dtype));
    bool packed = tor_attr_int(node, TOR_ATTR_packed, 0);
    if (!packed && !plan->reference) return tor_refuse("conv with a weight that is not packed");
    if (spatial < 1 || spatial > 3) return tor_refuse("conv with %d spatial dims", spatial);
    TorView from, to;
    TOR_TRY(tor_plan_view(plan, x, &from));
    TOR_TRY(tor_plan_view(plan, out, &to));
    TorConvArgs *f = &d->fixed;
    d->dtype = x->dtype;
    d->has_bias = tor_attr_int(node, TOR_ATTR_has_bias, node->n_inputs > 2);
    if (!tor_int_known(g, x->dim[1], &f->in_channels))
        return tor_refuse("conv: the number of channels is not known");
    f->groups = tor_attr_int(node, TOR_ATTR_groups, 1);
    f->transposed = tor_attr_int(node, TOR_ATTR_transposed, 0);
    if (packed) {
        f->out_channels = tor_attr_int(node, TOR_ATTR_n, 0);
        tor_spatial_attr(node, TOR_ATTR_kernel, spatial, 1, f->kernel);
    } else {
        TOR_TRY(lower_weight(plan, node, tor_in(node, 1), &d->weight));
        f->out_channels = d->weight.fixed.out_channels;
        memcpy(f->kernel, d->weight.fixed.kernel, sizeof f->kernel);
    }
    tor_spatial_attr(node, TOR_ATTR_stride, spatial, 1, f->stride);
    tor_spatial_attr(node, TOR_ATTR_padding, spatial, 0, f->padding);
    tor_spatial_attr(node, TOR_ATTR_dilation, spatial, 1, f->dilation);
    d->batch = x->dim[0];
    tor_spatial_dims(g, spatial, x->dim + 2, d->in);
    tor_spatial_dims(g, spatial, out->dim + 2, d->out);
    tor_spatial_strides(g, spatial, from.stride, d->x_stride);
    tor_spatial_strides(g, spatial, to.stride, d->y_stride);
    const char *reason = NULL;
    if (!tor_conv_supported(f, &reason)) return tor_refuse("%s", reason);
    f->winograd = tor_attr_int(node, TOR_ATTR_winograd, 0);
    if (f->winograd && !tor_conv_winograd_takes(f)) return tor_refuse("conv: not one for winograd");
    return TOROID_OK;
}

ToroidStatus tor_lower_conv(TorPlan *plan, const TorNode *node) {
    const TorNode *chain[TOR_CONV_BANDS];
    int count;
    TOR_TRY(tor_bands_find(plan, node, chain, &count));
    if (count) return node == chain[count - 1] ? tor_lower_bands(plan, chain, count) : TOROID_OK;
    TorConvData *d;
    TOR_TRY(tor_step_add(plan, &conv_kind, node, sizeof *d, sizeof(TorConvProblem), &d));
    TOR_TRY(tor_conv_note(plan, node, d));
    TOR_TRY(pointers(plan, node, tor_attr_int(node, TOR_ATTR_packed, 0), d->has_bias));
    return tor_lower_epilogue(plan, node, 2 + d->has_bias, 1, 0, offsetof(TorConvProblem, epilogue),
                              &d->epilogue);
}

static void bind_pack(const void *data, TorBinder *b) {
    const TorConvWeightData *d = data;
    TorConvPackArgs *args = b->args;
    bind_weight(d, b->ints, args);
    TorRangeFn run = tor_conv_pack_run;
    if (d->dtype == TOR_float32)
        tor_conv_pack_bind(args);
    else
        run = tor_conv_typed_pack_bind(args, d->dtype);
    b->scratch_bytes = args->scratch_bytes;
    tor_bind_region(b, run, args, args->items);
}

static const TorStepKind pack_kind = {.name = "pack", .bind = bind_pack};

ToroidStatus tor_lower_pack_conv(TorPlan *plan, const TorNode *node) {
    const TorValue *w = tor_in(node, 0);
    int spatial = w->rank - 2;
    if (spatial < 1 || spatial > 3) return tor_refuse("conv with %d spatial dims", spatial);
    if (!tor_gemm_takes(w->dtype)) return tor_refuse("conv in %s", tor_dtype_name(w->dtype));
    TorView from, to;
    TOR_TRY(tor_plan_view(plan, w, &from));
    TOR_TRY(tor_plan_view(plan, node->outputs[0], &to));
    TorConvWeightData *d;
    TOR_TRY(tor_step_add(plan, &pack_kind, node, sizeof *d, sizeof(TorConvPackArgs), &d));
    TOR_TRY(lower_weight(plan, node, w, d));
    const TorConvPackArgs *f = &d->fixed;
    size_t bytes = w->dtype == TOR_float32
                       ? tor_conv_packed_bytes(f->out_channels, f->in_channels, f->groups,
                                               f->kernel, f->winograd)
                       : tor_conv_typed_packed_bytes(f, w->dtype);
    plan->storages[to.storage].bytes = TOR_MAX(bytes, (size_t)1);
    TOR_TRY(tor_step_pointer(plan, &from, offsetof(TorConvPackArgs, weight)));
    return tor_step_pointer(plan, &to, offsetof(TorConvPackArgs, packed));
}

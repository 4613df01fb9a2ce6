// Steps of the pool family. Leading dims beyond [b, c, spatial...] do not occur; a missing batch
// dim (3-d input of a 2-d pool) is added as 1.
#include <string.h>

#include "kernels/pool/contract.h"
#include "plan/spatial.h"
#include "plan/step.h"

typedef struct {
    TorPoolArgs fixed;
    TorDim batch, channels, in[3], out[3], x_stride[5], y_stride[5], index_stride[5];
} PoolData;

TOR_REFERENCE_RUN(tor_pool_run_ref)

static void bind_pool(const void *data, TorBinder *b) {
    const PoolData *d = data;
    TorPoolArgs *args = b->args;
    const int64_t *ints = b->ints;
    *args = d->fixed;
    args->batch = ints[d->batch];
    args->channels = ints[d->channels];
    tor_bind_dims(ints, d->in, 3, args->in_size);
    tor_bind_dims(ints, d->out, 3, args->out_size);
    tor_bind_dims(ints, d->x_stride, 5, args->x_stride);
    tor_bind_dims(ints, d->y_stride, 5, args->y_stride);
    if (tor_pool_is_max(args->kind)) tor_bind_dims(ints, d->index_stride, 5, args->index_stride);
    if (tor_bind_reference(b, tor_pool_run_ref_range, 0)) return;
    tor_pool_bind(args);
    b->scratch_bytes = args->scratch_bytes;
    tor_bind_region(b, tor_pool_run, args, args->items);
}

static const char *pool_kernel(const void *args) {
    const TorPoolRow *row = ((const TorPoolArgs *)args)->row;
    return row ? row->name : NULL;
}

static const TorStepKind pool_kind = {
    .name = "pool", .bind = bind_pool, .kernel = pool_kernel, .reference = "tor_pool_run_ref"};

/// The view with a batch dim.
static TorView batched(TorPlan *plan, TorView view, int spatial) {
    if (view.rank == spatial + 2) return view;
    for (int d = view.rank; d > 0; d--) {
        view.dim[d] = view.dim[d - 1];
        view.stride[d] = view.stride[d - 1];
    }
    view.dim[0] = tor_int_const(plan->g, 1);
    view.stride[0] = tor_int_const(plan->g, 0);
    view.rank++;
    return view;
}

static TorPoolKind kind_of(TorOp op) {
    switch (op) {
        case TOR_OP_max_pool: return TOR_POOL_max;
        case TOR_OP_avg_pool: return TOR_POOL_avg;
        case TOR_OP_adaptive_max_pool: return TOR_POOL_adaptive_max;
        default: return TOR_POOL_adaptive_avg;
    }
}

ToroidStatus tor_lower_pool(TorPlan *plan, const TorNode *node) {
    TorGraph *g = plan->g;
    const TorAttr *kernel =
        tor_attr(node, tor_pool_is_adaptive(kind_of(node->op)) ? TOR_ATTR_dims : TOR_ATTR_kernel);
    int spatial = kernel->count, rank = tor_in(node, 0)->rank;
    if (spatial < 1 || spatial > 3 || (rank != spatial + 2 && rank != spatial + 1))
        return tor_refuse("a pool over %d of %d dims", spatial, rank);
    TorView x, y, index = {0};
    TOR_TRY(tor_plan_view(plan, tor_in(node, 0), &x));
    TOR_TRY(tor_plan_view(plan, node->outputs[0], &y));
    bool wants_index = node->n_outputs > 1 && node->outputs[1]->uses;
    if (wants_index) TOR_TRY(tor_plan_view(plan, node->outputs[1], &index));
    PoolData *d;
    TOR_TRY(tor_step_add(plan, &pool_kind, node, sizeof *d, sizeof(TorPoolArgs), &d));
    TOR_TRY(tor_step_pointer(plan, &x, offsetof(TorPoolArgs, x)));
    TOR_TRY(tor_step_pointer(plan, &y, offsetof(TorPoolArgs, y)));
    if (wants_index) TOR_TRY(tor_step_pointer(plan, &index, offsetof(TorPoolArgs, index)));
    x = batched(plan, x, spatial);
    y = batched(plan, y, spatial);
    if (wants_index) index = batched(plan, index, spatial);
    TorPoolArgs *f = &d->fixed;
    f->kind = kind_of(node->op);
    f->dtype = tor_in(node, 0)->dtype;
    if (!tor_pool_is_adaptive(f->kind)) {
        tor_spatial_attr(node, TOR_ATTR_kernel, spatial, 1, f->kernel);
        tor_spatial_attr(node, TOR_ATTR_stride, spatial, 1, f->stride);
        tor_spatial_attr(node, TOR_ATTR_padding, spatial, 0, f->padding);
        tor_spatial_attr(node, TOR_ATTR_dilation, spatial, 1, f->dilation);
    }
    f->count_include_pad = tor_attr_int(node, TOR_ATTR_count_include_pad, 1);
    f->divisor = tor_attr_int(node, TOR_ATTR_divisor, 0);
    d->batch = x.dim[0];
    d->channels = x.dim[1];
    tor_spatial_dims(g, spatial, x.dim + 2, d->in);
    tor_spatial_dims(g, spatial, y.dim + 2, d->out);
    tor_spatial_strides(g, spatial, x.stride, d->x_stride);
    tor_spatial_strides(g, spatial, y.stride, d->y_stride);
    if (wants_index)
        tor_spatial_strides(g, spatial, index.stride, d->index_stride);
    else
        for (int i = 0; i < 5; i++) d->index_stride[i] = tor_int_const(g, 0);
    const char *reason = NULL;
    return tor_pool_supported(f, &reason) ? TOROID_OK : tor_refuse("%s", reason);
}

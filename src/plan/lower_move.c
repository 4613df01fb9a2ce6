// Data movement that is planned as copies and fills into parts of one destination.
#include <string.h>

#include "kernels/copy/contract.h"
#include "plan/step.h"

// ---------------------------------------------------------------- copy

typedef struct {
    int rank, element;
    TorDim size[TOR_MAX_RANK], from[TOR_MAX_RANK], to[TOR_MAX_RANK];
    bool reversed[TOR_MAX_RANK];  ///< read that axis from its end (flip)
} CopyData;

TOR_REFERENCE_RUN(tor_copy_ref)

static void bind_copy(const void *data, TorBinder *b) {
    const CopyData *d = data;
    TorCopyArgs *args = b->args;
    args->rank = d->rank;
    args->elem_bytes = d->element;
    tor_bind_dims(b->ints, d->size, d->rank, args->size);
    tor_bind_dims(b->ints, d->from, d->rank, args->src_stride);
    tor_bind_dims(b->ints, d->to, d->rank, args->dst_stride);
    for (int i = 0; i < d->rank; i++)
        if (d->reversed[i]) args->src_stride[i] = -args->src_stride[i];
    if (tor_bind_reference(b, tor_copy_ref_range, 0)) return;
    tor_copy_bind(args);
    b->scratch_bytes = args->scratch_bytes;
    tor_bind_region(b, tor_copy_run, args, args->items);
}

static const char *copy_kernel(const void *args) {
    const TorCopyKernel *kernel = ((const TorCopyArgs *)args)->kernel;
    return kernel ? tor_copy_kernel_name(kernel) : NULL;
}

static const TorStepKind copy_kind = {
    .name = "copy", .bind = bind_copy, .kernel = copy_kernel, .reference = "tor_copy_ref"};

static ToroidStatus copy_step(TorPlan *plan, const TorNode *node, const TorView *from,
                              const TorView *to, uint32_t reversed) {
    CopyData *d;
    TorView start = *from;
    if (from->rank != to->rank || from->dtype != to->dtype)
        return tor_invalid("copy between views of different kinds");
    TOR_TRY(tor_step_add(plan, &copy_kind, node, sizeof *d, sizeof(TorCopyArgs), &d));
    d->rank = to->rank;
    d->element = (int)tor_dtype_size(to->dtype);
    memcpy(d->size, to->dim, sizeof d->size);
    memcpy(d->from, from->stride, sizeof d->from);
    memcpy(d->to, to->stride, sizeof d->to);
    for (int i = 0; i < to->rank; i++) {
        // A promised stride of 0 (an expanded output): one element stands for all.
        if (tor_int_is(plan->g, to->stride[i], 0))
            d->size[i] =
                tor_int_binary(plan->g, TOR_INT_min, to->dim[i], tor_int_const(plan->g, 1));
        if (!(reversed >> i & 1)) continue;
        d->reversed[i] = true;
        TorDim last = tor_int_sub(plan->g, from->dim[i], tor_int_const(plan->g, 1));
        start.offset =
            tor_int_add(plan->g, start.offset, tor_int_mul(plan->g, last, from->stride[i]));
    }
    TOR_TRY(tor_step_pointer(plan, &start, offsetof(TorCopyArgs, src)));
    tor_step_writes(plan, to, to->rank, to->dim);
    return tor_step_pointer(plan, to, offsetof(TorCopyArgs, dst));
}

ToroidStatus tor_lower_copy(TorPlan *plan, const TorNode *node, const TorView *from,
                            const TorView *to) {
    return copy_step(plan, node, from, to, 0);
}

ToroidStatus tor_lower_contiguous(TorPlan *plan, const TorNode *node) {
    TorView from, to;
    TOR_TRY(tor_plan_view(plan, tor_in(node, 0), &from));
    TOR_TRY(tor_plan_view(plan, node->outputs[0], &to));
    return copy_step(plan, node, &from, &to, 0);
}

ToroidStatus tor_lower_flip(TorPlan *plan, const TorNode *node) {
    TorView from, to;
    uint32_t reversed = 0;
    const TorAttr *axes = tor_attr(node, TOR_ATTR_axes);
    for (int i = 0; i < axes->count; i++) reversed |= 1u << axes->ints[i];
    TOR_TRY(tor_plan_view(plan, tor_in(node, 0), &from));
    TOR_TRY(tor_plan_view(plan, node->outputs[0], &to));
    return copy_step(plan, node, &from, &to, reversed);
}

ToroidStatus tor_lower_cat(TorPlan *plan, const TorNode *node) {
    TorView to;
    TOR_TRY(tor_plan_view(plan, node->outputs[0], &to));
    int axis = (int)tor_attr_int(node, TOR_ATTR_axis, 0);
    TorDim at = tor_int_const(plan->g, 0), one = tor_int_const(plan->g, 1);
    for (int i = 0; i < node->n_inputs; i++) {
        TorView from, part;
        TOR_TRY(tor_plan_view(plan, tor_in(node, i), &from));
        part = tor_view_slice(plan, to, axis, at, from.dim[axis], one);
        TOR_TRY(copy_step(plan, node, &from, &part, 0));
        at = tor_int_add(plan->g, at, from.dim[axis]);
    }
    return TOROID_OK;
}

ToroidStatus tor_lower_slice_scatter(TorPlan *plan, const TorNode *node) {
    TorView x, source, to;
    TOR_TRY(tor_plan_view(plan, tor_in(node, 0), &x));
    TOR_TRY(tor_plan_view(plan, tor_in(node, 1), &source));
    TOR_TRY(tor_plan_view(plan, node->outputs[0], &to));
    if (!tor_attr_int(node, TOR_ATTR_inplace, 0)) TOR_TRY(copy_step(plan, node, &x, &to, 0));
    int axis = (int)tor_attr_int(node, TOR_ATTR_axis, 0);
    TorDim step = tor_int_const(plan->g, tor_attr_int(node, TOR_ATTR_step, 1));
    TorView part =
        tor_view_slice(plan, to, axis, tor_attr(node, TOR_ATTR_start)->dim, source.dim[axis], step);
    source = tor_view_broadcast(plan, &source, part.rank, part.dim);
    return copy_step(plan, node, &source, &part, 0);
}

// ---------------------------------------------------------------- fill

typedef struct {
    int rank, element;
    uint8_t value[8];
    TorDim size[TOR_MAX_RANK], to[TOR_MAX_RANK];
} FillData;

TOR_REFERENCE_RUN(tor_fill_ref)

static void bind_fill(const void *data, TorBinder *b) {
    const FillData *d = data;
    TorFillArgs *args = b->args;
    args->copy.rank = d->rank;
    args->copy.elem_bytes = d->element;
    memcpy(args->value, d->value, sizeof args->value);
    tor_bind_dims(b->ints, d->size, d->rank, args->copy.size);
    tor_bind_dims(b->ints, d->to, d->rank, args->copy.dst_stride);
    if (tor_bind_reference(b, tor_fill_ref_range, 0)) return;
    tor_fill_bind(args);
    b->scratch_bytes = args->copy.scratch_bytes;
    tor_bind_region(b, tor_fill_run, args, args->copy.items);
}

static const TorStepKind fill_kind = {
    .name = "fill", .bind = bind_fill, .reference = "tor_fill_ref"};

static ToroidStatus fill_step(TorPlan *plan, const TorNode *node, const TorView *to,
                              TorScalar value) {
    FillData *d;
    TOR_TRY(tor_step_add(plan, &fill_kind, node, sizeof *d, sizeof(TorFillArgs), &d));
    d->rank = to->rank;
    d->element = (int)tor_dtype_size(to->dtype);
    tor_scalar_store(d->value, tor_scalar_cast(value, to->dtype));
    memcpy(d->size, to->dim, sizeof d->size);
    memcpy(d->to, to->stride, sizeof d->to);
    return tor_step_pointer(plan, to, offsetof(TorFillArgs, copy) + offsetof(TorCopyArgs, dst));
}

ToroidStatus tor_lower_full(TorPlan *plan, const TorNode *node) {
    TorView to;
    TOR_TRY(tor_plan_view(plan, node->outputs[0], &to));
    return fill_step(plan, node, &to, tor_attr(node, TOR_ATTR_value)->scalar);
}

ToroidStatus tor_lower_pad(TorPlan *plan, const TorNode *node) {
    TorGraph *g = plan->g;
    TorView from, to;
    TOR_TRY(tor_plan_view(plan, tor_in(node, 0), &from));
    TOR_TRY(tor_plan_view(plan, node->outputs[0], &to));
    TOR_TRY(fill_step(plan, node, &to, tor_attr(node, TOR_ATTR_value)->scalar));
    const TorAttr *low = tor_attr(node, TOR_ATTR_low), *high = tor_attr(node, TOR_ATTR_high);
    TorDim zero = tor_int_const(g, 0), one = tor_int_const(g, 1);
    // A negative pad takes elements away from the source, a positive one moves the destination.
    for (int i = 0; i < from.rank; i++) {
        TorDim cut_low = tor_int_binary(g, TOR_INT_max, tor_int_sub(g, zero, low->dims[i]), zero);
        TorDim cut_high = tor_int_binary(g, TOR_INT_max, tor_int_sub(g, zero, high->dims[i]), zero);
        TorDim size = tor_int_sub(g, tor_int_sub(g, from.dim[i], cut_low), cut_high);
        size = tor_int_binary(g, TOR_INT_max, size, zero);
        TorDim at = tor_int_binary(g, TOR_INT_max, low->dims[i], zero);
        from = tor_view_slice(plan, from, i, cut_low, size, one);
        to = tor_view_slice(plan, to, i, at, size, one);
    }
    return copy_step(plan, node, &from, &to, 0);
}

// ---------------------------------------------------------------- arange

typedef struct {
    TorDtype dtype;
    TorDim n, stride, start;
    double fstart, fstep;
    int64_t step;
} ArangeData;

TOR_REFERENCE_RUN(tor_arange_ref)

static void bind_arange(const void *data, TorBinder *b) {
    const ArangeData *d = data;
    TorArangeArgs *args = b->args;
    bool real = tor_dtype_is_float(d->dtype);
    args->dtype = d->dtype;
    args->n = b->ints[d->n];
    args->dst_stride = b->ints[d->stride];
    args->start.dtype = args->step.dtype = real ? TOR_float64 : TOR_int64;
    if (real) {
        args->start.f = d->fstart;
        args->step.f = d->fstep;
    } else {
        args->start.i = b->ints[d->start];
        args->step.i = d->step;
    }
    if (tor_bind_reference(b, tor_arange_ref_range, 0)) return;
    tor_arange_bind(args);
    tor_bind_region(b, tor_arange_run, args, args->items);
}

static const TorStepKind arange_kind = {
    .name = "arange", .bind = bind_arange, .reference = "tor_arange_ref"};

ToroidStatus tor_lower_arange(TorPlan *plan, const TorNode *node) {
    TorView to;
    ArangeData *d;
    TOR_TRY(tor_plan_view(plan, node->outputs[0], &to));
    TOR_TRY(tor_step_add(plan, &arange_kind, node, sizeof *d, sizeof(TorArangeArgs), &d));
    const TorAttr *start = tor_attr(node, TOR_ATTR_start);
    d->dtype = to.dtype;
    d->n = to.dim[0];
    d->stride = to.stride[0];
    d->start = start ? start->dim : tor_int_const(plan->g, 0);
    d->step = tor_attr_int(node, TOR_ATTR_step, 1);
    d->fstart = tor_attr_float(node, TOR_ATTR_fstart, 0);
    d->fstep = tor_attr_float(node, TOR_ATTR_fstep, 1);
    return tor_step_pointer(plan, &to, offsetof(TorArangeArgs, dst));
}

// Steps of the scan family.
#include <string.h>

#include "kernels/scan/contract.h"
#include "plan/step.h"

typedef struct {
    TorScanKind kind;
    TorDtype dtype;
    int rank, axis;
    TorDim size[TOR_MAX_RANK], from[TOR_MAX_RANK], to[TOR_MAX_RANK], index[TOR_MAX_RANK];
} ScanData;

TOR_REFERENCE_RUN(tor_scan_ref)

static void bind_scan(const void *data, TorBinder *b) {
    const ScanData *d = data;
    TorScanArgs *args = b->args;
    args->kind = d->kind;
    args->dtype = d->dtype;
    args->rank = d->rank;
    args->axis = d->axis;
    tor_bind_dims(b->ints, d->size, d->rank, args->size);
    tor_bind_dims(b->ints, d->from, d->rank, args->src_stride);
    tor_bind_dims(b->ints, d->to, d->rank, args->dst_stride);
    tor_bind_dims(b->ints, d->index, d->rank, args->index_stride);
    if (tor_bind_reference(b, tor_scan_ref_range, 0)) return;
    tor_scan_bind(args);
    tor_bind_region(b, tor_scan_run, args, args->items);
}

static const char *scan_kernel(const void *args) {
    const TorScanKernel *kernel = ((const TorScanArgs *)args)->kernel;
    return kernel ? tor_scan_kernel_name(kernel) : NULL;
}

static const TorStepKind scan_kind = {
    .name = "scan", .bind = bind_scan, .kernel = scan_kernel, .reference = "tor_scan_ref"};

static TorScanKind kind_of(TorOp op) {
    switch (op) {
        case TOR_OP_cumsum: return TOR_SCAN_sum;
        case TOR_OP_cumprod: return TOR_SCAN_prod;
        case TOR_OP_logcumsumexp: return TOR_SCAN_logsumexp;
        case TOR_OP_cummax: return TOR_SCAN_max;
        default: return TOR_SCAN_min;
    }
}

ToroidStatus tor_lower_scan(TorPlan *plan, const TorNode *node) {
    TorView x, result[2];
    ScanData *d;
    TorScanKind kind = kind_of(node->op);
    TOR_TRY(tor_plan_view(plan, tor_in(node, 0), &x));
    if (x.dtype != node->outputs[0]->dtype || !tor_scan_takes(kind, x.dtype))
        return tor_refuse("%s from %s to %s has no kernel", tor_op_name(node->op),
                          tor_dtype_name(x.dtype), tor_dtype_name(node->outputs[0]->dtype));
    TOR_TRY(tor_step_add(plan, &scan_kind, node, sizeof *d, sizeof(TorScanArgs), &d));
    TOR_TRY(tor_step_pointer(plan, &x, offsetof(TorScanArgs, src)));
    result[0] = result[1] = x;
    for (int i = 0; i < node->n_outputs; i++) {
        if (!node->outputs[i]->uses) continue;
        TOR_TRY(tor_plan_view(plan, node->outputs[i], &result[i]));
        TOR_TRY(tor_step_pointer(plan, &result[i],
                                 i ? offsetof(TorScanArgs, index) : offsetof(TorScanArgs, dst)));
    }
    d->kind = kind;
    d->dtype = x.dtype;
    d->rank = x.rank;
    d->axis = (int)tor_attr_int(node, TOR_ATTR_axis, 0);
    memcpy(d->size, x.dim, sizeof d->size);
    memcpy(d->from, x.stride, sizeof d->from);
    memcpy(d->to, result[0].stride, sizeof d->to);
    memcpy(d->index, result[1].stride, sizeof d->index);
    return TOROID_OK;
}

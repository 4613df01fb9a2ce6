// Steps of the bag family.
#include <string.h>

#include "kernels/bag/contract.h"
#include "plan/step.h"

typedef struct {
    TorBagArgs fixed;
    TorDim bags, count, rows, width, w_row, w_col, index, offset, factor, y_row;
} BagData;

TOR_REFERENCE_RUN(tor_bag_run_ref)

static void bind_bag(const void *data, TorBinder *b) {
    const BagData *d = data;
    TorBagArgs *args = b->args;
    const int64_t *ints = b->ints;
    *args = d->fixed;
    args->bags = ints[d->bags], args->count = ints[d->count];
    args->rows = ints[d->rows], args->width = ints[d->width];
    args->w_row = ints[d->w_row], args->w_col = ints[d->w_col];
    args->index_stride = ints[d->index], args->offset_stride = ints[d->offset];
    args->factor_stride = ints[d->factor];
    args->y_row = ints[d->y_row];
    args->error = b->error;
    if (tor_bind_reference(b, tor_bag_run_ref_range, 0)) return;
    tor_bag_bind(args);
    b->scratch_bytes = args->scratch_bytes;
    tor_bind_region(b, tor_bag_run, args, args->items);
}

static const char *bag_kernel(const void *args) {
    const TorBagRow *row = ((const TorBagArgs *)args)->row;
    return row ? row->name : NULL;
}

static ToroidStatus bag_raised(const TorStep *step, const void *args, int error) {
    (void)step, (void)args;
    return error == 1 ? tor_invalid_data("index out of range of the weight's rows (embedding_bag)")
                      : tor_invalid_data(
                            "offsets must start at 0, ascend and stay within the indices "
                            "(embedding_bag)");
}

static const TorStepKind bag_kind = {.name = "bag",
                                     .bind = bind_bag,
                                     .kernel = bag_kernel,
                                     .reference = "tor_bag_run_ref",
                                     .raised = bag_raised};

ToroidStatus tor_lower_bag(TorPlan *plan, const TorNode *node) {
    static const size_t fields[] = {offsetof(TorBagArgs, w), offsetof(TorBagArgs, index),
                                    offsetof(TorBagArgs, offsets), offsetof(TorBagArgs, factor)};
    const char *mode = tor_attr_str(node, TOR_ATTR_mode, "");
    BagData *d;
    TorView in[4], y;
    for (int i = 0; i < node->n_inputs; i++) TOR_TRY(tor_plan_view(plan, tor_in(node, i), &in[i]));
    TOR_TRY(tor_plan_view(plan, node->outputs[0], &y));
    TOR_TRY(tor_step_add(plan, &bag_kind, node, sizeof *d, sizeof(TorBagArgs), &d));
    for (int i = 0; i < node->n_inputs; i++) TOR_TRY(tor_step_pointer(plan, &in[i], fields[i]));
    TOR_TRY(tor_step_pointer(plan, &y, offsetof(TorBagArgs, y)));
    d->fixed.mode = strcmp(mode, "max") == 0    ? TOR_BAG_max
                    : strcmp(mode, "mean") == 0 ? TOR_BAG_mean
                                                : TOR_BAG_sum;
    d->fixed.dtype = in[0].dtype;
    d->fixed.index_dtype = in[1].dtype;
    d->fixed.include_last = tor_attr_int(node, TOR_ATTR_include_last, 0);
    d->fixed.padding_idx = tor_attr_int(node, TOR_ATTR_padding_idx, -1);
    d->bags = y.dim[0], d->count = in[1].dim[0], d->rows = in[0].dim[0], d->width = in[0].dim[1];
    d->w_row = in[0].stride[0], d->w_col = in[0].stride[1];
    d->index = in[1].stride[0], d->offset = in[2].stride[0], d->y_row = y.stride[0];
    d->factor = node->n_inputs > 3 ? in[3].stride[0] : tor_int_const(plan->g, 0);
    return TOROID_OK;
}

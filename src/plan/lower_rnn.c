// Steps of the recurrent family: a direction of a layer, after its input product.
#include <string.h>

#include "kernels/rnn/contract.h"
#include "plan/step.h"

typedef struct {
    TorRnnMode mode;
    bool reverse, packed, cell;
    TorDim steps, batch, width, x[2], y[2], h0[2], c0[2], cn[2], w[2];
} RnnData;

static void rnn_ref_range(const void *args, int64_t begin, int64_t end, void *scratch) {
    (void)begin, (void)end;
    tor_rnn_run_ref(args, scratch);
}

static void bind_rnn(const void *data, TorBinder *b) {
    const RnnData *d = data;
    TorRnnArgs *args = b->args;
    const int64_t *ints = b->ints;
    args->mode = d->mode;
    args->reverse = d->reverse;
    args->packed = d->packed;
    args->steps = ints[d->steps], args->batch = ints[d->batch], args->width = ints[d->width];
    args->x_step = ints[d->x[0]], args->x_row = ints[d->x[1]];
    args->y_step = ints[d->y[0]], args->y_row = ints[d->y[1]];
    args->h0_row = ints[d->h0[0]], args->h0_col = ints[d->h0[1]];
    if (d->cell) {
        args->c0_row = ints[d->c0[0]], args->c0_col = ints[d->c0[1]];
        args->cn_row = ints[d->cn[0]], args->cn_col = ints[d->cn[1]];
    }
    if (!d->packed) args->w_row = ints[d->w[0]], args->w_col = ints[d->w[1]];
    if (tor_bind_reference(b, rnn_ref_range, tor_rnn_ref_scratch(args))) return;
    tor_rnn_bind(args);
    b->scratch_bytes = args->scratch_bytes;
    tor_bind_region(b, tor_rnn_run, args, args->items);
}

static const char *rnn_kernel(const void *args) {
    const TorRnnKernel *kernel = ((const TorRnnArgs *)args)->kernel;
    return kernel ? kernel->name : NULL;
}

static const TorStepKind rnn_kind = {
    .name = "rnn", .bind = bind_rnn, .kernel = rnn_kernel, .reference = "tor_rnn_run_ref"};

static TorRnnMode mode_of(const TorNode *node) {
    const char *mode = tor_attr_str(node, TOR_ATTR_mode, "");
    return strcmp(mode, "lstm") == 0   ? TOR_RNN_lstm
           : strcmp(mode, "gru") == 0  ? TOR_RNN_gru
           : strcmp(mode, "tanh") == 0 ? TOR_RNN_tanh
                                       : TOR_RNN_relu;
}

/// Points a field at a value; strides of its last two dims go to `stride`.
static ToroidStatus point(TorPlan *plan, const TorValue *v, size_t field, TorDim *stride) {
    TorView view;
    TOR_TRY(tor_plan_view(plan, v, &view));
    if (stride && view.rank >= 2) {
        int first = view.rank == 3 ? 0 : view.rank - 2;
        stride[0] = view.stride[first], stride[1] = view.stride[first + 1];
    }
    return tor_step_pointer(plan, &view, field);
}

ToroidStatus tor_lower_rnn(TorPlan *plan, const TorNode *node) {
    const TorValue *x = tor_in(node, 0), *y = node->outputs[0];
    RnnData *d;
    TOR_TRY(tor_step_add(plan, &rnn_kind, node, sizeof *d, sizeof(TorRnnArgs), &d));
    d->mode = mode_of(node);
    d->reverse = tor_attr_int(node, TOR_ATTR_reverse, 0);
    d->packed = tor_attr_int(node, TOR_ATTR_packed, 0);
    d->cell = d->mode == TOR_RNN_lstm;
    d->steps = x->dim[0], d->batch = x->dim[1], d->width = y->dim[2];
    TOR_TRY(point(plan, x, offsetof(TorRnnArgs, x), d->x));
    TOR_TRY(point(plan, tor_in(node, 1), offsetof(TorRnnArgs, w), d->w));
    TOR_TRY(point(plan, tor_in(node, 2), offsetof(TorRnnArgs, h0), d->h0));
    TOR_TRY(point(plan, y, offsetof(TorRnnArgs, y), d->y));
    if (d->cell) {
        TOR_TRY(point(plan, tor_in(node, 3), offsetof(TorRnnArgs, c0), d->c0));
        d->cn[0] = d->cn[1] = tor_int_const(plan->g, 0);
        if (node->outputs[1]->uses)
            TOR_TRY(point(plan, node->outputs[1], offsetof(TorRnnArgs, cn), d->cn));
    }
    if (tor_attr_int(node, TOR_ATTR_has_bias, 0))
        TOR_TRY(point(plan, tor_in(node, 3 + d->cell), offsetof(TorRnnArgs, bias), NULL));
    return TOROID_OK;
}

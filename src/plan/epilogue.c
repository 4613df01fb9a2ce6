// Epilogue operands as [batch, rows, columns].
#include "plan/epilogue.h"

#include <string.h>

#include "passes/layout.h"

/// Stride of dims [from, to) without `skip` walked as one; they are known to merge.
static TorDim merged(TorPlan *plan, const TorView *view, int from, int to, int skip) {
    for (int d = to - 1; d >= from; d--)
        if (d != skip && !tor_int_is(plan->g, view->dim[d], 1)) return view->stride[d];
    return tor_int_const(plan->g, 0);
}

ToroidStatus tor_lower_epilogue(TorPlan *plan, const TorNode *node, int first, int column,
                                int batch_dims, size_t at, TorEpilogueData *data) {
    const TorAttr *program = tor_attr(node, TOR_ATTR_epilogue);
    if (!program) return TOROID_OK;
    data->program = program->blob;
    TOR_TRY(tor_program_verify(data->program));
    const TorValue *out = node->outputs[0];
    int operands = data->program->n_inputs + data->program->n_outputs;
    for (int i = 1; i < operands; i++) {
        const TorValue *v = i < data->program->n_inputs ? tor_in(node, first + i - 1) : out;
        TorView view;
        TOR_TRY(tor_plan_view(plan, v, &view));
        TorView wide = tor_view_broadcast(plan, &view, out->rank, out->dim);
        data->stride[i].col = wide.stride[column];
        data->stride[i].batch = merged(plan, &wide, 0, batch_dims, column);
        data->stride[i].row = merged(plan, &wide, batch_dims, out->rank, column);
        if (v == out && data->inside) continue;
        TOR_TRY(tor_step_pointer(plan, &view,
                                 at + offsetof(TorEpilogue, data) + (size_t)i * sizeof(void *)));
    }
    return TOROID_OK;
}

const TorEpilogue *tor_bind_epilogue(const TorEpilogueData *data, const int64_t *ints,
                                     TorEpilogue *epilogue) {
    if (!data->program) return NULL;
    int operands = data->program->n_inputs + data->program->n_outputs;
    for (int i = 1; i < operands; i++) {
        epilogue->batch_stride[i] = ints[data->stride[i].batch];
        epilogue->row_stride[i] = ints[data->stride[i].row];
        epilogue->col_stride[i] = ints[data->stride[i].col];
    }
    // Preparing the program costs more than binding sizes, and depends on no size.
    if (epilogue->program != data->program) tor_epilogue_bind(epilogue, data->program);
    return epilogue;
}

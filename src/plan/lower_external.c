// External nodes: the host runs them on views of the plan's memory.
#include <string.h>

#include "plan/step.h"

typedef struct {
    int n_inputs, n_outputs, n_ints, ranks;
    int64_t callable;
    const TorView *views;    ///< inputs, then outputs
    const int *graph_input;  ///< of each input; -1
    const TorDim *ints;
} ExternalData;

/// What follows in memory: tensors, then sizes and strides, then integers.
typedef struct {
    const ExternalData *data;
    TorExternalTensor tensor[];
} ExternalArgs;

static void bind_external(const void *data, TorBinder *b) {
    const ExternalData *d = data;
    ExternalArgs *args = b->args;
    int tensors = d->n_inputs + d->n_outputs;
    int64_t *numbers = (int64_t *)&args->tensor[tensors];
    args->data = d;
    for (int i = 0; i < tensors; i++) {
        const TorView *v = &d->views[i];
        TorExternalTensor *t = &args->tensor[i];
        t->dtype = v->dtype;
        t->rank = v->rank;
        t->graph_input = i < d->n_inputs ? d->graph_input[i] : -1;
        t->size = numbers;
        tor_bind_dims(b->ints, v->dim, v->rank, numbers);
        numbers += v->rank;
        t->stride = numbers;
        tor_bind_dims(b->ints, v->stride, v->rank, numbers);
        numbers += v->rank;
    }
    tor_bind_dims(b->ints, d->ints, d->n_ints, numbers);
    tor_bind_region(b, NULL, args, 1);
}

static const TorStepKind external_kind = {.name = "external", .bind = bind_external};

ToroidStatus tor_external_run(const TorPlan *plan, const void *args, void *token) {
    const ExternalArgs *a = args;
    const ExternalData *d = a->data;
    if (!plan->external)
        return tor_invalid(
            "the graph has an external node and the host gave no function to run it");
    const int64_t *ints = (const int64_t *)&a->tensor[d->n_inputs + d->n_outputs] + 2 * d->ranks;
    return plan->external(plan->external_user, token, d->callable, a->tensor, d->n_inputs, ints,
                          d->n_ints, a->tensor + d->n_inputs, d->n_outputs);
}

ToroidStatus tor_lower_external(TorPlan *plan, const TorNode *node) {
    const TorAttr *operands = tor_attr(node, TOR_ATTR_operands);
    int tensors = node->n_inputs + node->n_outputs, n_ints = operands ? operands->count : 0,
        ranks = 0;
    TorView *views = tor_arena_alloc(plan->arena, (size_t)tensors * sizeof *views + 1);
    int *graph_input = tor_arena_alloc(plan->arena, (size_t)tensors * sizeof *graph_input + 1);
    if (!views || !graph_input) return tor_no_memory();
    for (int i = 0; i < tensors; i++) {
        const TorValue *v =
            i < node->n_inputs ? tor_in(node, i) : node->outputs[i - node->n_inputs];
        TOR_TRY(tor_plan_view(plan, v, &views[i]));
        graph_input[i] =
            v->node->op == TOR_OP_input &&
                    !plan->g->inputs[tor_attr_int(v->node, TOR_ATTR_index, 0)].frozen_result
                ? (int)tor_attr_int(v->node, TOR_ATTR_index, 0)
                : -1;
        ranks += v->rank;
    }
    ExternalData *d;
    size_t bytes = sizeof(ExternalArgs) + (size_t)tensors * sizeof(TorExternalTensor) +
                   (size_t)(2 * ranks + n_ints) * sizeof(int64_t);
    TOR_TRY(tor_step_add(plan, &external_kind, node, sizeof *d, bytes, &d));
    *d = (ExternalData){.n_inputs = node->n_inputs,
                        .n_outputs = node->n_outputs,
                        .n_ints = n_ints,
                        .ranks = ranks,
                        .callable = tor_attr_int(node, TOR_ATTR_callable, 0),
                        .views = views,
                        .graph_input = graph_input,
                        .ints = operands ? operands->dims : NULL};
    for (int i = 0; i < tensors; i++)
        TOR_TRY(tor_step_pointer(plan, &views[i],
                                 offsetof(ExternalArgs, tensor) +
                                     (size_t)i * sizeof(TorExternalTensor) +
                                     offsetof(TorExternalTensor, data)));
    return TOROID_OK;
}

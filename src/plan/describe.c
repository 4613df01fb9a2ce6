#include "plan/describe.h"

#include "plan/work.h"

/// Of the first result; c NULL: with symbols.
static void put_shape(TorText *t, const TorPlan *plan, const TorContext *c, const TorNode *node) {
    if (!node->n_outputs) return;
    // Packed bytes tell nothing; the weight does.
    bool packs = tor_op_kind(node->op) == TOR_KIND_PACK;
    const TorValue *v = packs ? tor_in(node, 0) : node->outputs[0];
    if (!c) {
        char type[512];
        tor_text_add(t, tor_type_print(plan->g, v, type, sizeof type));
        return;
    }
    tor_text_put(t, "%s[", tor_dtype_name(v->dtype));
    for (int d = 0; d < v->rank; d++)
        tor_text_put(t, "%s%" PRId64, d ? ", " : "", tor_context_int(c, v->dim[d]));
    tor_text_put(t, "]");
}

/// How many steps the node of step `number` became; they share its work.
static int parts_of(const TorPlan *plan, size_t number) {
    const TorNode *node = plan->steps[number].node;
    size_t first = number, end = number + 1;
    while (first > 0 && plan->steps[first - 1].node == node) first--;
    while (end < plan->n_steps && plan->steps[end].node == node) end++;
    return (int)(end - first);
}

static const char *kernel_of(const TorPlan *plan, const TorContext *c, size_t number) {
    const TorStep *step = &plan->steps[number];
    if (!c) return "";
    const char *kernel = tor_step_kernel(plan, step, tor_context_args(c, number));
    return kernel ? kernel : step->kind->name;
}

bool tor_step_describe(TorStepRecord *out, TorArena *arena, const TorPlan *plan,
                       const TorContext *c, uint32_t number) {
    const TorStep *step = &plan->steps[number];
    char text[256];
    TorText work = tor_text_fixed(text, sizeof text);
    tor_step_put_work(&work, step);
    char shape_text[256];
    TorText shape = tor_text_fixed(shape_text, sizeof shape_text);
    put_shape(&shape, plan, c, step->node);
    TorWork need = c ? tor_step_work(step, tor_context_ints(c)) : (TorWork){0};
    int parts = parts_of(plan, number);
    *out = (TorStepRecord){
        .plan = plan->number,
        .number = number,
        .node = step->node->id,
        .work = tor_arena_strdup(arena, text),
        .shape = tor_arena_strdup(arena, shape_text),
        .kernel = tor_arena_strdup(arena, kernel_of(plan, c, number)),
        .origin = tor_arena_strdup(arena, step->node->origin ? step->node->origin : ""),
        .flops = need.flops / parts,
        .bytes = need.bytes / parts,
        .external = step->node->op == TOR_OP_external};
    return out->work && out->shape && out->kernel && out->origin;
}

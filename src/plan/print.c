// The table of steps.
#include "base/program.h"
#include "plan/step.h"

const char *tor_step_kernel(const TorPlan *plan, const TorStep *step, const void *args) {
    if (plan->reference && step->kind->reference) return step->kind->reference;
    return step->kind->kernel ? step->kind->kernel(args) : NULL;
}

static void put_work(TorText *t, const TorNode *node) {
    tor_text_put(t, "%s", tor_op_name(node->op));
    if (node->op == TOR_OP_external && node->origin) tor_text_put(t, " %s", node->origin);
    const TorAttr *program =
        tor_attr(node, node->op == TOR_OP_fused ? TOR_ATTR_program : TOR_ATTR_epilogue);
    if (!program) return;
    const TorProgram *p = program->blob;
    for (int i = 0; i < p->n_instrs; i++)
        tor_text_put(t, "%s%s", i ? " " : " {", tor_fn_name((TorScalarFn)p->instr[i].fn));
    tor_text_put(t, "}");
}

static void put_joined(TorText *t, const TorNode *node, int joined) {
    if (joined) {
        put_joined(t, tor_in(node, 0)->node, joined - 1);
        tor_text_put(t, " > ");
    }
    put_work(t, node);
}

void tor_step_put_work(TorText *t, const TorStep *step) { put_joined(t, step->node, step->joined); }

ToroidStatus tor_plan_print(const TorPlan *plan, const TorContext *c, char **text) {
    TorText t = {0};
    tor_text_put(
        &t, "step  kind       items  kernel                                    result, work\n");
    for (size_t i = 0; i < plan->n_steps; i++) {
        const TorStep *step = &plan->steps[i];
        const char *kernel = c ? tor_step_kernel(plan, step, tor_context_args(c, i)) : NULL;
        int regions = 0;
        const TorRegionCall *call = c ? tor_context_calls(c, i, &regions) : NULL;
        tor_text_put(&t, "%4zu  %-10s %5" PRId64 "  %-40s  ", i, step->kind->name,
                     call ? call->items : (int64_t)0, kernel ? kernel : "");
        char type[512] = "";
        if (step->node->n_outputs)
            tor_type_print(plan->g, step->node->outputs[0], type, sizeof type);
        tor_text_add(&t, type);
        tor_text_put(&t, "  ");
        tor_step_put_work(&t, step);
        tor_text_put(&t, "\n");
    }
    return tor_text_finish(&t, text);
}

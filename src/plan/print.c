// The table of steps.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/program.h"
#include "plan/step.h"

typedef struct {
    char *text;
    size_t length, capacity;
} Text;

static ToroidStatus append(Text *t, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int need = vsnprintf(NULL, 0, format, args);
    va_end(args);
    ToroidStatus status =
        tor_grow((void **)&t->text, &t->capacity, t->length + (size_t)need + 1, 1);
    if (status == TOROID_OK) {
        vsnprintf(t->text + t->length, (size_t)need + 1, format, again);
        t->length += (size_t)need;
    }
    va_end(again);
    return status;
}

static ToroidStatus print_type(Text *t, const TorPlan *plan, const TorNode *node) {
    if (!node->n_outputs) return append(t, "%s", "");
    const TorValue *v = node->outputs[0];
    TOR_TRY(append(t, "%s[", tor_dtype_name(v->dtype)));
    for (int d = 0; d < v->rank; d++) {
        char dim[64];
        TOR_TRY(
            append(t, "%s%s", d ? ", " : "", tor_int_print(plan->g, v->dim[d], dim, sizeof dim)));
    }
    return append(t, "]");
}

/// What the kernel does, in the words of the IR.
static ToroidStatus print_work(Text *t, const TorNode *node) {
    TOR_TRY(append(t, "%s", tor_op_name(node->op)));
    const TorAttr *program =
        tor_attr(node, node->op == TOR_OP_fused ? TOR_ATTR_program : TOR_ATTR_epilogue);
    if (!program) return TOROID_OK;
    const TorProgram *p = program->blob;
    for (int i = 0; i < p->n_instrs; i++)
        TOR_TRY(append(t, "%s%s", i ? " " : " {", tor_fn_name((TorScalarFn)p->instr[i].fn)));
    return append(t, "}");
}

ToroidStatus tor_plan_print(const TorPlan *plan, const TorContext *c, char **text) {
    Text t = {0};
    ToroidStatus status = append(
        &t, "step  kind       items  kernel                                    result, work\n");
    for (size_t i = 0; i < plan->n_steps && status == TOROID_OK; i++) {
        const TorStep *step = &plan->steps[i];
        const char *kernel =
            c && step->kind->kernel ? step->kind->kernel(tor_context_args(c, i)) : NULL;
        int regions = 0;
        const TorRegionCall *call = c ? tor_context_calls(c, i, &regions) : NULL;
        status = append(&t, "%4zu  %-10s %5" PRId64 "  %-40s  ", i, step->kind->name,
                        call ? call->items : (int64_t)0, kernel ? kernel : "");
        if (status == TOROID_OK) status = print_type(&t, plan, step->node);
        if (status == TOROID_OK) status = append(&t, "  ");
        if (status == TOROID_OK) status = print_work(&t, step->node);
        if (status == TOROID_OK) status = append(&t, "\n");
    }
    if (status != TOROID_OK) {
        tor_free(t.text);
        t.text = NULL;
    }
    *text = t.text;
    return status;
}

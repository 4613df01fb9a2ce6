// What a caller must know of a graph to run what was compiled from it.
#include <stdio.h>

#include "api/internal.h"

static ToroidStatus read_input(TorSignatureTensor *to, const TorInput *from, int number) {
    char text[32];
    snprintf(text, sizeof text, "%d", number);
    to->name = tor_strdup(from->name ? from->name : text);
    if (!to->name) return tor_no_memory();
    if (from->kind != TOR_INPUT_TENSOR) return TOROID_OK;
    to->dtype = from->value->dtype;
    to->rank = from->value->rank;
    return TOROID_OK;
}

static bool has_writes(const TorNode *output) {
    const TorAttr *into = tor_attr(output, TOR_ATTR_into);
    for (int i = 0; into && i < into->count; i++)
        if (into->ints[i] >= 0) return true;
    return false;
}

ToroidStatus tor_signature_read(TorSignature *s, const ToroidGraph *graph) {
    const TorGraph *g = graph->g;
    if (!graph->finished) return tor_invalid("toroid_compile: the graph has no outputs set");
    size_t count = g->n_inputs + (size_t)g->output->n_inputs;
    s->graph = graph->number;
    s->n_inputs = (int)g->n_inputs;
    s->n_outputs = g->output->n_inputs;
    s->has_layouts = g->output_layouts || has_writes(g->output);
    s->tensors = tor_alloc_zero((count + 1) * sizeof *s->tensors);
    if (!s->tensors) return tor_no_memory();
    for (int i = 0; i < s->n_inputs; i++) TOR_TRY(read_input(&s->tensors[i], &g->inputs[i], i));
    for (int i = 0; i < s->n_outputs; i++) {
        const TorValue *value = tor_in(g->output, i);
        s->tensors[s->n_inputs + i] =
            (TorSignatureTensor){.dtype = value->dtype, .rank = value->rank};
    }
    return TOROID_OK;
}

void tor_signature_free(TorSignature *s) {
    for (int i = 0; s->tensors && i < s->n_inputs; i++) tor_free(s->tensors[i].name);
    tor_free(s->tensors);
    s->tensors = NULL;
}

// A copy of a graph that no pass has changed: for callers that may have to compile it twice.
#include <string.h>

#include "graph/internal.h"

typedef struct {
    const TorGraph *from;
    TorGraph *to;
    TorValue **values;  ///< by id
} Clone;

static void *copy_bytes(TorArena *arena, const void *from, size_t bytes) {
    void *copy = tor_arena_alloc(arena, bytes + 1);
    if (copy && bytes) memcpy(copy, from, bytes);
    return copy;
}

/// An array of tor_alloc(), as tor_grow() makes it.
static ToroidStatus copy_array(void **out, const void *from, size_t bytes) {
    if (!from) return TOROID_OK;
    *out = tor_alloc(bytes);
    if (!*out) return tor_no_memory();
    memcpy(*out, from, bytes);
    return TOROID_OK;
}

static ToroidStatus clone_ints(Clone *c) {
    const struct TorIntTable *from = c->from->ints;
    if (!from) return TOROID_OK;
    struct TorIntTable *to = tor_alloc_zero(sizeof *to);
    if (!to) return tor_no_memory();
    c->to->ints = to;
    TOR_TRY(copy_array((void **)&to->items, from->items, from->capacity * sizeof *from->items));
    to->capacity = from->capacity;
    TOR_TRY(copy_array((void **)&to->nonneg, from->nonneg,
                       from->nonneg_capacity * sizeof *from->nonneg));
    to->nonneg_capacity = from->nonneg_capacity;
    TOR_TRY(copy_array((void **)&to->slots, from->slots, from->n_slots * sizeof *from->slots));
    to->n_slots = from->n_slots;
    to->count = from->count;
    to->leaves = from->leaves;
    return TOROID_OK;
}

static ToroidStatus clone_value(Clone *c, const TorValue *from, TorNode *node, TorValue **out) {
    TorValue *to = copy_bytes(c->to->arena, from, sizeof *from);
    if (!to) return tor_no_memory();
    to->node = node;
    to->uses = NULL;
    c->values[from->id] = *out = to;
    return TOROID_OK;
}

static ToroidStatus clone_node(Clone *c, const TorNode *from) {
    TorArena *arena = c->to->arena;
    TorNode *to = copy_bytes(arena, from, sizeof *from);
    if (!to) return tor_no_memory();
    to->inputs = tor_arena_alloc(arena, (size_t)from->n_inputs * sizeof *to->inputs + 1);
    to->outputs = tor_arena_alloc(arena, (size_t)from->n_outputs * sizeof(TorValue *) + 1);
    if (!to->inputs || !to->outputs) return tor_no_memory();
    if (from->origin && !(to->origin = tor_arena_strdup(arena, from->origin)))
        return tor_no_memory();
    to->n_attrs = 0;
    to->attrs = NULL;
    TOR_TRY(tor_attrs_copy(c->to, to, from->attrs, from->n_attrs));
    for (int i = 0; i < from->n_outputs; i++)
        TOR_TRY(clone_value(c, from->outputs[i], to, &to->outputs[i]));
    for (int i = 0; i < from->n_inputs; i++) {
        to->inputs[i] = (TorUse){.user = to};
        tor_use_link(&to->inputs[i], c->values[from->inputs[i].value->id]);
    }
    tor_node_link(c->to, to, NULL);
    if (from == c->from->output) c->to->output = to;
    return TOROID_OK;
}

static ToroidStatus clone_inputs(Clone *c) {
    TorGraph *to = c->to;
    const TorGraph *from = c->from;
    TOR_TRY(copy_array((void **)&to->inputs, from->inputs,
                       from->input_capacity * sizeof *from->inputs));
    to->input_capacity = from->input_capacity;
    to->n_inputs = from->n_inputs;
    for (uint32_t i = 0; i < to->n_inputs; i++) {
        TorInput *input = &to->inputs[i];
        if (input->value) input->value = c->values[input->value->id];
        if (input->name && !(input->name = tor_arena_strdup(to->arena, input->name)))
            return tor_no_memory();
    }
    return TOROID_OK;
}

static ToroidStatus clone_outputs(Clone *c) {
    const TorGraph *from = c->from;
    if (!from->output) return TOROID_OK;
    size_t count = (size_t)from->output->n_inputs;
    c->to->output_memory =
        copy_bytes(c->to->arena, from->output_memory, count * sizeof *from->output_memory);
    if (!c->to->output_memory) return tor_no_memory();
    if (!from->output_layouts) return TOROID_OK;
    c->to->output_layouts =
        copy_bytes(c->to->arena, from->output_layouts, count * sizeof *from->output_layouts);
    return c->to->output_layouts ? TOROID_OK : tor_no_memory();
}

static ToroidStatus clone(Clone *c) {
    c->to->next_value = c->from->next_value;
    c->to->next_node = c->from->next_node;
    c->to->unguarded = c->from->unguarded;
    c->to->failed = c->from->failed;
    TOR_TRY(clone_ints(c));
    for (const TorNode *node = c->from->first; node; node = node->next)
        TOR_TRY(clone_node(c, node));
    TOR_TRY(clone_inputs(c));
    return clone_outputs(c);
}

ToroidStatus tor_graph_clone(TorGraph **out, const TorGraph *from) {
    Clone c = {.from = from};
    *out = NULL;
    TOR_TRY(tor_graph_create(&c.to));
    c.values = tor_alloc_zero((from->next_value + (size_t)1) * sizeof *c.values);
    ToroidStatus status = c.values ? clone(&c) : tor_no_memory();
    tor_free(c.values);
    if (status != TOROID_OK) tor_graph_destroy(&c.to);
    *out = c.to;
    return status;
}

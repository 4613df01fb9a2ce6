// Building and editing a graph: inputs, nodes, uses.
#include "graph/internal.h"

#include <string.h>

ToroidStatus tor_graph_create(TorGraph **out) {
    *out = NULL;
    TorGraph *g = tor_alloc_zero(sizeof(*g));
    if (!g) return TOROID_NO_MEMORY;
    ToroidStatus status = tor_arena_create(&g->arena);
    if (status != TOROID_OK) {
        tor_free(g);
        return status;
    }
    *out = g;
    return TOROID_OK;
}

void tor_graph_destroy(TorGraph **graph) {
    if (!graph || !*graph) return;
    TorGraph *g = *graph;
    tor_int_table_free(g);
    tor_free(g->inputs);
    tor_arena_destroy(&g->arena);
    tor_free(g);
    *graph = NULL;
}

// ---------------------------------------------------------------- lists

void tor_node_link(TorGraph *g, TorNode *node, TorNode *before) {
    node->next = before;
    node->prev = before ? before->prev : g->last;
    *(node->prev ? &node->prev->next : &g->first) = node;
    *(before ? &before->prev : &g->last) = node;
}

static void unlink_node(TorGraph *g, TorNode *node) {
    *(node->prev ? &node->prev->next : &g->first) = node->next;
    *(node->next ? &node->next->prev : &g->last) = node->prev;
    node->prev = node->next = NULL;
}

void tor_use_link(TorUse *use, TorValue *value) {
    use->value = value;
    use->prev = NULL;
    use->next = value->uses;
    if (use->next) use->next->prev = use;
    value->uses = use;
}

static void unlink_use(TorUse *use) {
    *(use->prev ? &use->prev->next : &use->value->uses) = use->next;
    if (use->next) use->next->prev = use->prev;
    use->prev = use->next = NULL;
}

// ---------------------------------------------------------------- nodes

static TorValue *make_value(TorGraph *g, TorNode *node, int index, TorDtype dtype) {
    TorValue *value = tor_arena_alloc(g->arena, sizeof(*value));
    if (!value) return NULL;
    value->node = node;
    value->index = index;
    value->dtype = dtype;
    return value;
}

// A node with its inputs noted and outputs made, linked to nothing yet.
static ToroidStatus make_node(TorGraph *g, TorOp op, TorValue *const *inputs, int n_inputs,
                              const TorAttr *attrs, int n_attrs, int n_outputs, TorNode **out) {
    TorNode *node = tor_arena_alloc(g->arena, sizeof(*node));
    if (!node) return TOROID_NO_MEMORY;
    node->op = op;
    node->inputs = tor_arena_alloc(g->arena, (size_t)TOR_MAX(n_inputs, 1) * sizeof(*node->inputs));
    node->outputs =
        tor_arena_alloc(g->arena, (size_t)TOR_MAX(n_outputs, 1) * sizeof(*node->outputs));
    if (!node->inputs || !node->outputs) return TOROID_NO_MEMORY;
    for (int i = 0; i < n_inputs; ++i) node->inputs[i] = (TorUse){.value = inputs[i], .user = node};
    node->n_inputs = n_inputs;
    // Until a rule or tor_graph_set_type() says otherwise: the first input's dtype.
    TorDtype dtype = n_inputs > 0 ? inputs[0]->dtype : TOR_float32;
    for (int i = 0; i < n_outputs; ++i)
        if (!(node->outputs[i] = make_value(g, node, i, dtype))) return TOROID_NO_MEMORY;
    node->n_outputs = n_outputs;
    TOR_TRY(tor_attrs_copy(g, node, attrs, n_attrs));
    *out = node;
    return TOROID_OK;
}

static ToroidStatus check_counts(TorOp op, TorValue *const *inputs, int n_inputs, int *n_outputs) {
    if ((unsigned)op >= TOR_OP_COUNT) return tor_invalid("op %d does not exist", (int)op);
    const TorOpRow *row = tor_op_row(op);
    if (n_inputs < row->min_inputs || (row->max_inputs >= 0 && n_inputs > row->max_inputs)) {
        if (row->max_inputs < 0)
            return tor_invalid("%s: expected at least %d inputs, got %d", row->name,
                               row->min_inputs, n_inputs);
        if (row->max_inputs == row->min_inputs)
            return tor_invalid("%s: expected %d inputs, got %d", row->name, row->min_inputs,
                               n_inputs);
        return tor_invalid("%s: expected %d to %d inputs, got %d", row->name, row->min_inputs,
                           row->max_inputs, n_inputs);
    }
    for (int i = 0; i < n_inputs; ++i)
        if (!inputs[i]) return tor_invalid("%s: input %d is NULL", row->name, i);
    if (row->outputs >= 0) *n_outputs = row->outputs;
    if (*n_outputs < 0)
        return tor_invalid("%s: expected a number of outputs, got %d", row->name, *n_outputs);
    return TOROID_OK;
}

static void commit_node(TorGraph *g, TorNode *node, TorNode *before) {
    node->id = g->next_node++;
    for (int i = 0; i < node->n_inputs; ++i) tor_use_link(&node->inputs[i], node->inputs[i].value);
    for (int i = 0; i < node->n_outputs; ++i) node->outputs[i]->id = g->next_value++;
    tor_node_link(g, node, before);
}

ToroidStatus tor_graph_add(TorGraph *g, TorNode *before, TorOp op, TorValue *const *inputs,
                           int n_inputs, const TorAttr *attrs, int n_attrs, int n_outputs,
                           TorNode **out) {
    if (out) *out = NULL;
    if (g->failed != TOROID_OK) return tor_no_memory();
    TOR_TRY(check_counts(op, inputs, n_inputs, &n_outputs));
    TorNode *node;
    TOR_TRY(make_node(g, op, inputs, n_inputs, attrs, n_attrs, n_outputs, &node));
    TOR_TRY(tor_graph_infer(g, node));
    if (g->failed != TOROID_OK) return tor_no_memory();
    bool frozen = tor_node_is_frozen(g, node);
    for (int i = 0; i < n_outputs; ++i) node->outputs[i]->frozen = frozen;
    commit_node(g, node, before ? before : g->output);
    if (out) *out = node;
    return TOROID_OK;
}

void tor_graph_set_type(TorValue *value, TorDtype dtype, int rank, const TorDim *dims) {
    value->dtype = dtype;
    value->rank = TOR_MIN(rank, TOR_MAX_RANK);
    if (value->rank > 0) memmove(value->dim, dims, (size_t)value->rank * sizeof(*dims));
}

void tor_graph_remove(TorGraph *g, TorNode *node) {
    for (int i = 0; i < node->n_outputs; ++i)
        if (node->outputs[i]->uses) return;
    if (node->op == TOR_OP_input) return;  // the table of inputs refers to it
    for (int i = 0; i < node->n_inputs; ++i) unlink_use(&node->inputs[i]);
    if (node == g->output) g->output = NULL;
    unlink_node(g, node);
}

void tor_graph_move_before(TorGraph *g, TorNode *node, TorNode *before) {
    if (node == before) return;
    unlink_node(g, node);
    tor_node_link(g, node, before ? before : g->output);
}

void tor_node_set_input(TorNode *node, int i, TorValue *value) {
    unlink_use(&node->inputs[i]);
    tor_use_link(&node->inputs[i], value);
}

void tor_value_replace(TorValue *old, TorValue *with) {
    if (old == with) return;
    while (old->uses) {
        TorUse *use = old->uses;
        unlink_use(use);
        tor_use_link(use, with);
    }
    old->successor = with;
    with->successor = NULL;  // else two that replaced each other would be a circle
}

int tor_value_use_count(const TorValue *value) {
    int count = 0;
    for (const TorUse *use = value->uses; use; use = use->next) ++count;
    return count;
}

// ---------------------------------------------------------------- inputs and outputs

static ToroidStatus grow_inputs(TorGraph *g, TorInputKind kind, const char *name, TorInput **out) {
    if (g->failed != TOROID_OK) return tor_no_memory();
    void *inputs = g->inputs;
    ToroidStatus status =
        tor_grow(&inputs, &g->input_capacity, g->n_inputs + 1u, sizeof(*g->inputs));
    g->inputs = inputs;
    TOR_TRY(status);
    TorInput *input = &g->inputs[g->n_inputs];
    *input = (TorInput){.kind = kind};
    for (int i = 0; i < TOR_MAX_RANK; ++i) input->stride[i] = TOR_NO_DIM;
    if (name && !(input->name = tor_arena_strdup(g->arena, name))) return TOROID_NO_MEMORY;
    *out = input;
    return TOROID_OK;
}

ToroidStatus tor_graph_add_input(TorGraph *g, const char *name, TorDtype dtype, int rank,
                                 const TorDim *dims, bool frozen, TorValue **out) {
    *out = NULL;
    TorInput *input;
    const char *shown = name ? name : "?";
    if (rank < 0 || rank > TOR_MAX_RANK)
        return tor_refuse("input %s: rank %d, at most %d is supported", shown, rank, TOR_MAX_RANK);
    for (int i = 0; i < rank; ++i)
        if (dims[i] >= tor_int_count(g))
            return g->failed
                       ? tor_no_memory()
                       : tor_invalid("input %s: dim %d is no integer of this graph", shown, i);
    TOR_TRY(grow_inputs(g, TOR_INPUT_TENSOR, name, &input));
    TorNode *node;
    TorAttr index = TOR_A_INT(index, g->n_inputs);
    TOR_TRY(make_node(g, TOR_OP_input, NULL, 0, &index, 1, 1, &node));
    TorValue *value = node->outputs[0];
    tor_graph_set_type(value, dtype, rank, dims);
    value->frozen = frozen;
    input->value = value;
    input->frozen = frozen;
    commit_node(g, node, g->output);
    ++g->n_inputs;
    *out = value;
    return TOROID_OK;
}

ToroidStatus tor_graph_add_int_input(TorGraph *g, const char *name, TorDim *out) {
    TorInput *input;
    *out = TOR_NO_DIM;
    TOR_TRY(grow_inputs(g, TOR_INPUT_INT, name, &input));
    *out = tor_int_scalar(g, g->n_inputs);
    if (*out == TOR_NO_DIM) return tor_no_memory();
    ++g->n_inputs;
    return TOROID_OK;
}

ToroidStatus tor_graph_set_outputs(TorGraph *g, TorValue *const *values, const int64_t *into,
                                   int count) {
    if (g->failed != TOROID_OK) return tor_no_memory();
    int n_outputs = 0;
    TOR_TRY(check_counts(TOR_OP_output, values, count, &n_outputs));
    TorNode *node;
    TorAttr attr = TOR_A_INTS(into, into, count);
    TOR_TRY(make_node(g, TOR_OP_output, values, count, &attr, 1, 0, &node));
    TOR_TRY(tor_graph_infer(g, node));
    uint32_t *memory = tor_arena_alloc(g->arena, (size_t)(count + 1) * sizeof(*memory));
    if (!memory) return tor_no_memory();
    for (int i = 0; i < count; ++i) {
        const TorValue *v = values[i];
        while (tor_op_kind(v->node->op) == TOR_KIND_VIEW) v = tor_in(v->node, 0);
        memory[i] = v->id;
    }
    g->output_memory = memory;
    // Promises about layouts are one for each output: they outlive a change of values, not of
    // number.
    if (g->output && g->output->n_inputs != count) g->output_layouts = NULL;
    if (g->output) tor_graph_remove(g, g->output);
    commit_node(g, node, NULL);
    g->output = node;
    return TOROID_OK;
}

// ---------------------------------------------------------------- numbers and small questions

bool tor_value_number(const TorValue *value, TorScalar *number) {
    const TorNode *node = value->node;
    if (node->op != TOR_OP_constant || value->rank != 0) return false;
    const TorAttr *blob = tor_attr(node, TOR_ATTR_blob);
    if (!blob || blob->kind != TOR_ATTR_BLOB) return false;
    *number = tor_scalar_load(blob->blob, value->dtype);
    return true;
}

ToroidStatus tor_graph_number(TorGraph *g, TorScalar number, TorValue **out) {
    *out = NULL;
    uint8_t bytes[8] = {0};
    tor_scalar_store(bytes, number);
    int size = (int)tor_dtype_size(number.dtype);
    // Numbers are always put before everything else, so those that exist are the head of the list.
    for (TorNode *node = g->first; node && node->op == TOR_OP_constant; node = node->next) {
        TorValue *value = node->outputs[0];
        if (value->rank != 0 || value->dtype != number.dtype ||
            tor_attr_int(node, TOR_ATTR_weak, 0) != 1)
            continue;
        if (memcmp(tor_attr(node, TOR_ATTR_blob)->blob, bytes, (size_t)size)) continue;
        *out = value;
        return TOROID_OK;
    }
    TorNode *node;
    TorAttr attrs[] = {TOR_A_BLOB(blob, bytes, size), TOR_A_INT(weak, 1),
                       TOR_A_DTYPE(dtype, number.dtype)};
    TOR_TRY(
        tor_graph_add(g, g->first, TOR_OP_constant, NULL, 0, attrs, TOR_COUNT_OF(attrs), 1, &node));
    *out = node->outputs[0];
    return TOROID_OK;
}

bool tor_value_same_dims(const TorValue *a, const TorValue *b) {
    return a->rank == b->rank &&
           (a->rank == 0 || memcmp(a->dim, b->dim, (size_t)a->rank * sizeof(*a->dim)) == 0);
}

TorDim tor_value_numel(TorGraph *g, const TorValue *v) {
    return tor_int_product(g, v->dim, v->rank);
}

static bool known_dims(const TorGraph *g, const TorDim *dims, int n) {
    int64_t numel;
    return tor_dims_numel(g, dims, n, &numel);
}

bool tor_node_is_frozen(const TorGraph *g, const TorNode *node) {
    TorOpKind kind = tor_op_kind(node->op);
    if (node->op == TOR_OP_input) return g->inputs[tor_attr_int(node, TOR_ATTR_index, 0)].frozen;
    if (kind == TOR_KIND_EXTERNAL || kind == TOR_KIND_SINK ||
        tor_attr_int(node, TOR_ATTR_random, 0))
        return false;
    for (int i = 0; i < node->n_inputs; ++i)
        if (!node->inputs[i].value->frozen) return false;
    // A size that is known at bind only makes the result differ from bind to bind.
    for (int i = 0; i < node->n_attrs; ++i) {
        const TorAttr *a = &node->attrs[i];
        if (a->kind == TOR_ATTR_DIM && !known_dims(g, &a->dim, 1)) return false;
        if (a->kind == TOR_ATTR_DIMS && !known_dims(g, a->dims, a->count)) return false;
    }
    return true;
}

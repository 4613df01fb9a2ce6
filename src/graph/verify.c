// Every invariant of the IR, in one walk. The message names the node and the rule.
#include <string.h>

#include "graph/internal.h"

enum { SEEN = 1 };

typedef struct {
    const TorGraph *g;
    uint8_t *node_seen, *value_seen;  // by id
    int64_t uses;                     // operands met on the way
} Walk;

static ToroidStatus broken(const TorNode *node, const char *rule) {
    const char *origin = node->origin ? node->origin : "";
    if (node->n_outputs)
        return tor_invalid("verify: %%%u = %s%s%s: %s", node->outputs[0]->id, tor_op_name(node->op),
                           *origin ? " " : "", origin, rule);
    return tor_invalid("verify: node %u, %s: %s", node->id, tor_op_name(node->op), rule);
}

static ToroidStatus check_operands(Walk *w, const TorNode *node) {
    for (int i = 0; i < node->n_inputs; ++i) {
        const TorUse *use = &node->inputs[i];
        if (!use->value) return broken(node, "an input is NULL");
        if (use->user != node) return broken(node, "a use does not name its node");
        if (use->value->id >= w->g->next_value || !w->value_seen[use->value->id])
            return broken(node, "an input is made later or not in the graph");
        const TorUse *const *at = use->prev ? (const TorUse *const *)&use->prev->next
                                            : (const TorUse *const *)&use->value->uses;
        if (*at != use || (use->next && use->next->prev != use))
            return broken(node, "a use is not linked into its value's list");
        ++w->uses;
    }
    return TOROID_OK;
}

static ToroidStatus check_outputs(Walk *w, const TorNode *node) {
    for (int i = 0; i < node->n_outputs; ++i) {
        const TorValue *v = node->outputs[i];
        if (v->node != node || v->index != i)
            return broken(node, "an output does not name its node and index");
        if (v->id >= w->g->next_value || w->value_seen[v->id])
            return broken(node, "an output's id is not its own");
        if ((unsigned)v->dtype >= TOR_DTYPE_COUNT) return broken(node, "an output has no dtype");
        if (v->rank < 0 || v->rank > TOR_MAX_RANK)
            return broken(node, "an output's rank is out of range");
        for (int d = 0; d < v->rank; ++d) {
            int64_t size;
            if (v->dim[d] >= tor_int_count(w->g))
                return broken(node, "a dim is no integer of this graph");
            if (tor_int_known(w->g, v->dim[d], &size) && size < 0)
                return broken(node, "a dim is negative");
        }
        w->value_seen[v->id] = SEEN;
    }
    return TOROID_OK;
}

// The rule of the op, applied anew, must give the types that the outputs have. Expressions for one
// size may differ after an edit; known sizes may not.
static ToroidStatus check_types(TorGraph *g, TorNode *node) {
    const TorOpRow *row = tor_op_row(node->op);
    if (node->n_inputs < row->min_inputs ||
        (row->max_inputs >= 0 && node->n_inputs > row->max_inputs) ||
        (row->outputs >= 0 && node->n_outputs != row->outputs))
        return broken(node, "the number of inputs or outputs is wrong");
    for (int i = 1; i < node->n_attrs; ++i)
        if (node->attrs[i].key <= node->attrs[i - 1].key)
            return broken(node, "attributes are not sorted by key");
    enum {
        MOST = 2
    };  // outputs of an op with a rule; fused and external nodes keep what they were given
    TorValue had[MOST];
    int n = TOR_MIN(node->n_outputs, MOST);
    for (int i = 0; i < n; ++i) had[i] = *node->outputs[i];
    ToroidStatus status = tor_graph_infer(g, node);
    bool differ = false;
    for (int i = 0; i < n; ++i) {
        TorValue *v = node->outputs[i];
        differ = differ || v->dtype != had[i].dtype || v->rank != had[i].rank;
        for (int d = 0; !differ && d < v->rank; ++d)
            differ = tor_dims_clash(g, v->dim[d], had[i].dim[d]);
        *v = had[i];
    }
    if (status != TOROID_OK)
        return status == TOROID_NO_MEMORY
                   ? status
                   : tor_error_prefix(TOROID_INVALID, "verify: node %u", node->id);
    return differ ? broken(node, "an output's type is not what the op's rule gives") : TOROID_OK;
}

// One more than the last element that a layout reaches; false: not known, or empty.
static bool reach(const TorGraph *g, const TorValue *v, int64_t *out) {
    int64_t end, size, stride;
    if (!tor_int_known(g, v->offset, &end)) return false;
    for (int d = 0; d < v->rank; ++d) {
        if (!tor_int_known(g, v->dim[d], &size) || !tor_int_known(g, v->stride[d], &stride) ||
            size == 0)
            return false;
        if (__builtin_mul_overflow(size - 1, stride, &stride) ||
            __builtin_add_overflow(end, stride, &end))
            return false;
    }
    *out = end + 1;
    return true;
}

static ToroidStatus check_layouts(const Walk *w, const TorNode *node) {
    for (int i = 0; i < node->n_outputs; ++i) {
        const TorValue *v = node->outputs[i];
        if (!v->has_layout) continue;
        int64_t number, mine, whole;
        if (!v->storage) return broken(node, "a layout has no storage");
        if (v->storage->id >= w->g->next_value || !w->value_seen[v->storage->id])
            return broken(node, "a layout's storage is made later or not in the graph");
        if (v->storage != v && v->storage->storage != v->storage)
            return broken(node, "a layout's storage does not own memory");
        if (v->offset >= tor_int_count(w->g))
            return broken(node, "a layout's offset is no integer of this graph");
        if (tor_int_known(w->g, v->offset, &number) && number < 0)
            return broken(node, "a layout's offset is negative");
        for (int d = 0; d < v->rank; ++d) {
            if (v->stride[d] >= tor_int_count(w->g))
                return broken(node, "a stride is no integer of this graph");
            if (tor_int_known(w->g, v->stride[d], &number) && number < 0)
                return broken(node, "a stride is negative");
        }
        if (v->storage == v || !v->storage->has_layout) continue;
        if (reach(w->g, v, &mine) && reach(w->g, v->storage, &whole) &&
            mine * (int64_t)tor_dtype_size(v->dtype) >
                whole * (int64_t)tor_dtype_size(v->storage->dtype))
            return broken(node, "a layout leaves its storage");
    }
    return TOROID_OK;
}

static ToroidStatus check_frozen(const Walk *w, const TorNode *node) {
    for (int i = 0; i < node->n_outputs; ++i)
        if (node->outputs[i]->frozen && !tor_node_is_frozen(w->g, node))
            return broken(node, "an output is marked frozen but depends on what is not");
    return TOROID_OK;
}

static ToroidStatus check_node(Walk *w, TorGraph *g, TorNode *node) {
    if ((unsigned)node->op >= TOR_OP_COUNT)
        return tor_invalid("verify: node %u has no op", node->id);
    if (node->id >= g->next_node || w->node_seen[node->id])
        return broken(node, "the node's id is not its own");
    w->node_seen[node->id] = SEEN;
    TOR_TRY(check_operands(w, node));
    TOR_TRY(check_outputs(w, node));
    TOR_TRY(check_types(g, node));
    TOR_TRY(check_layouts(w, node));
    return check_frozen(w, node);
}

// Uses by nodes that are not in the list would keep dead values alive.
static ToroidStatus check_use_lists(const Walk *w) {
    int64_t linked = 0;
    for (const TorNode *node = w->g->first; node; node = node->next)
        for (int i = 0; i < node->n_outputs; ++i)
            for (const TorUse *use = node->outputs[i]->uses; use; use = use->next) {
                if (++linked > w->uses)
                    return broken(node, "its uses list a node that is not in the graph");
                if (use->value != node->outputs[i])
                    return broken(node, "its uses list another value's use");
            }
    return linked == w->uses
               ? TOROID_OK
               : tor_invalid("verify: %" PRId64 " operands, but %" PRId64 " uses are linked",
                             w->uses, linked);
}

static ToroidStatus check_graph(Walk *w, TorGraph *g) {
    const TorNode *prev = NULL;
    for (TorNode *node = g->first; node; prev = node, node = node->next) {
        if (node->prev != prev) return broken(node, "the list of nodes is broken before it");
        TOR_TRY(check_node(w, g, node));
    }
    if (g->last != prev)
        return tor_invalid("verify: the graph's last node is not the end of its list");
    if (g->output && g->last != g->output)
        return broken(g->output, "the output node is not the last");
    for (const TorNode *node = g->first; node; node = node->next)
        if (node->op == TOR_OP_output && node != g->output)
            return broken(node, "a second output node");
    for (uint32_t i = 0; i < g->n_inputs; ++i) {
        const TorValue *v = g->inputs[i].value;
        if (g->inputs[i].kind == TOR_INPUT_INT) continue;
        if (!v || v->node->op != TOR_OP_input || tor_attr_int(v->node, TOR_ATTR_index, -1) != i ||
            !w->node_seen[v->node->id])
            return tor_invalid("verify: input %u has no node of its own in the graph", i);
    }
    return check_use_lists(w);
}

ToroidStatus tor_graph_verify(TorGraph *g) {
    if (g->failed) return tor_no_memory();
    Walk w = {.g = g,
              .node_seen = tor_alloc_zero(g->next_node + 1u),
              .value_seen = tor_alloc_zero(g->next_value + 1u)};
    ToroidStatus status = w.node_seen && w.value_seen ? check_graph(&w, g) : TOROID_NO_MEMORY;
    tor_free(w.node_seen);
    tor_free(w.value_seen);
    return status;
}

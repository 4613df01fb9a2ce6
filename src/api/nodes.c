// What a backend sees of a graph's nodes: the IR's own, seen through names and arguments.
#include <string.h>

#include "api/internal.h"
#include "graph/internal.h"
#include "toroid/rewrite.h"

static const TorNode *of(const ToroidNode *node) { return (const TorNode *)node; }
static ToroidNode *public_node(const TorNode *node) { return (ToroidNode *)(uintptr_t)node; }
static ToroidValue *public_value(const TorValue *value) { return (ToroidValue *)(uintptr_t)value; }

static int count_nodes(const TorGraph *g) {
    int count = 0;
    for (const TorNode *node = g->first; node; node = node->next) count++;
    return count;
}

ToroidStatus toroid_graph_nodes(ToroidGraph *graph, ToroidNode *const **nodes, int *count) {
    if (!graph || !nodes || !count) return tor_invalid("toroid_graph_nodes: an argument is NULL");
    int n = count_nodes(graph->g);
    TOR_TRY(tor_grow((void **)&graph->nodes, &graph->nodes_capacity, (size_t)n + 1,
                     sizeof *graph->nodes));
    int i = 0;
    for (const TorNode *node = graph->g->first; node; node = node->next) {
        // Under a rewrite, values become known one node after another.
        if (!graph->visited) TOR_TRY(tor_api_give_all(graph, node));
        graph->nodes[i++] = public_node(node);
    }
    *nodes = graph->nodes;
    *count = n;
    return TOROID_OK;
}

const char *toroid_node_op(const ToroidNode *node) { return node ? tor_op_name(of(node)->op) : ""; }

int toroid_node_input_count(const ToroidNode *node) { return node ? of(node)->n_inputs : 0; }

ToroidValue *toroid_node_input(const ToroidNode *node, int number) {
    bool there = number >= 0 && number < toroid_node_input_count(node);
    return there ? public_value(tor_in(of(node), number)) : NULL;
}

int toroid_node_output_count(const ToroidNode *node) { return node ? of(node)->n_outputs : 0; }

ToroidValue *toroid_node_output(const ToroidNode *node, int number) {
    bool there = number >= 0 && number < toroid_node_output_count(node);
    return there ? public_value(of(node)->outputs[number]) : NULL;
}

ToroidNode *toroid_value_node(const ToroidValue *value) {
    return value ? public_node(((const TorValue *)value)->node) : NULL;
}

int toroid_value_use_count(const ToroidValue *value) {
    return value ? tor_value_use_count((const TorValue *)value) : 0;
}

// ---------------------------------------------------------------- attributes

static ToroidArg number(TorScalar s) {
    if (s.dtype == TOR_bool) return toroid_bool(s.i != 0);
    return tor_dtype_is_float(s.dtype) ? toroid_float(s.f) : toroid_int(s.i);
}

static ToroidStatus list(const TorGraph *g, const TorAttr *a, ToroidArg *out) {
    ToroidArg *items = tor_arena_alloc(g->arena, (size_t)a->count * sizeof *items + 1);
    if (!items) return tor_no_memory();
    for (int i = 0; i < a->count; i++)
        items[i] = a->kind == TOR_ATTR_DIMS ? toroid_size(tor_api_size(g, a->dims[i]))
                                            : toroid_int(a->ints[i]);
    *out = toroid_list(items, a->count);
    return TOROID_OK;
}

/// @param shown  false: data, which has no argument
static ToroidStatus argument(const TorGraph *g, const TorNode *node, const TorAttr *a,
                             ToroidArg *out, bool *shown) {
    const char *name = tor_attr_name(a->key);
    TorScalar s;
    *shown = true;
    switch (a->kind) {
        case TOR_ATTR_INT: *out = toroid_int(a->i); break;
        case TOR_ATTR_FLOAT: *out = toroid_float(a->f); break;
        case TOR_ATTR_SCALAR: *out = number(a->scalar); break;
        case TOR_ATTR_DTYPE: *out = toroid_dtype(tor_api_public_dtype(a->dtype)); break;
        case TOR_ATTR_DIM: *out = toroid_size(tor_api_size(g, a->dim)); break;
        case TOR_ATTR_STR: *out = toroid_string(a->str); break;
        case TOR_ATTR_DIMS:
        case TOR_ATTR_INTS: TOR_TRY(list(g, a, out)); break;
        default:
            *shown = node->op == TOR_OP_constant && tor_value_number(node->outputs[0], &s);
            if (!*shown) return TOROID_OK;
            *out = number(s);
            name = tor_attr_name(TOR_ATTR_value);
    }
    out->name = name;
    return TOROID_OK;
}

ToroidStatus toroid_node_attributes(ToroidGraph *graph, const ToroidNode *node,
                                    const ToroidArg **attributes, int *count) {
    if (!graph || !node || !attributes || !count)
        return tor_invalid("toroid_node_attributes: an argument is NULL");
    const TorNode *n = of(node);
    ToroidArg *args = tor_arena_alloc(graph->g->arena, (size_t)n->n_attrs * sizeof *args + 1);
    if (!args) return tor_no_memory();
    *count = 0;
    for (int i = 0; i < n->n_attrs; i++) {
        bool shown;
        TOR_TRY(argument(graph->g, n, &n->attrs[i], &args[*count], &shown));
        *count += shown;
    }
    *attributes = args;
    return TOROID_OK;
}

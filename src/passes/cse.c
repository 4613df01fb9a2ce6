// One node for equal nodes: same op, inputs and attributes. Operands of commutative functions may
// be swapped. External nodes with an effect (`random`) are never equal to anything.
#include "base/hash.h"
#include "graph/internal.h"
#include "passes/passes.h"

static bool may_merge(const TorNode *node) {
    if (node->op == TOR_OP_input || node->op == TOR_OP_output) return false;
    for (int i = 0; i < node->n_outputs; ++i)
        if (node->outputs[i]->has_layout) return false;
    return node->n_outputs > 0 && tor_attr_int(node, TOR_ATTR_random, 0) == 0;
}

static bool commutes(TorOp op) {
    switch (op) {
        case TOR_OP_add:
        case TOR_OP_mul:
        case TOR_OP_bit_and:
        case TOR_OP_bit_or:
        case TOR_OP_bit_xor:
        case TOR_OP_eq:
        case TOR_OP_ne: return true;
        default: return false;
    }
}

static uint64_t hash_node(const TorNode *node) {
    uint64_t hash = tor_hash_add((uint64_t)node->op + 1, (uint64_t)node->n_outputs), sum = 0;
    for (int i = 0; i < node->n_inputs; ++i) {
        uint64_t id = tor_in(node, i)->id;
        if (commutes(node->op))
            sum += tor_hash_add(id, 1);
        else
            hash = tor_hash_add(hash, id);
    }
    hash = tor_hash_add(hash, sum);
    for (int i = 0; i < node->n_attrs; ++i)
        hash = tor_hash_add(hash, tor_attr_hash(&node->attrs[i]));
    return hash;
}

static bool equal_nodes(const TorNode *a, const TorNode *b) {
    if (a->op != b->op || a->n_inputs != b->n_inputs || a->n_outputs != b->n_outputs ||
        a->n_attrs != b->n_attrs)
        return false;
    bool same = true;
    for (int i = 0; i < a->n_inputs; ++i) same = same && tor_in(a, i) == tor_in(b, i);
    if (!same && !(commutes(a->op) && tor_in(a, 0) == tor_in(b, 1) && tor_in(a, 1) == tor_in(b, 0)))
        return false;
    for (int i = 0; i < a->n_attrs; ++i)
        if (!tor_attr_equal(&a->attrs[i], &b->attrs[i])) return false;
    for (int i = 0; i < a->n_outputs; ++i)
        if (a->outputs[i]->dtype != b->outputs[i]->dtype ||
            !tor_value_same_dims(a->outputs[i], b->outputs[i]))
            return false;
    return true;
}

ToroidStatus tor_pass_cse(TorGraph *g) {
    size_t slots = 64, nodes = 0;
    for (const TorNode *node = g->first; node; node = node->next) ++nodes;
    while (slots < 2 * nodes) slots *= 2;
    TorNode **table = tor_alloc_zero(slots * sizeof(*table));
    if (!table) return TOROID_NO_MEMORY;
    for (TorNode *node = g->first, *next; node; node = next) {
        next = node->next;
        if (!may_merge(node)) continue;
        uint64_t s = hash_node(node);
        TorNode **found;
        while (*(found = &table[s & (slots - 1)]) && !equal_nodes(*found, node)) ++s;
        if (!*found) {
            *found = node;
            continue;
        }
        for (int i = 0; i < node->n_outputs; ++i)
            tor_value_replace(node->outputs[i], (*found)->outputs[i]);
        tor_graph_remove(g, node);
    }
    tor_free(table);
    return TOROID_OK;
}

// Updates of a graph input that may be written where the input lies: a key/value cache gets its new
// rows and nothing else is moved.
//
// A chain  input -> index_put / index_copy / scatter / slice_scatter -> ... -> written to that
// input is done in place when nobody reads an older state after the link that replaces it.
#include "passes/passes.h"

static bool updates_first_operand(TorOp op) {
    return op == TOR_OP_index_put || op == TOR_OP_index_copy || op == TOR_OP_scatter ||
           op == TOR_OP_slice_scatter;
}

/// Is `value`, or a view of it, read by a node other than `link` that runs after `link`, or by the
/// sink?
static bool read_after(const TorValue *value, const TorNode *link, const bool *before) {
    for (const TorUse *use = value->uses; use; use = use->next) {
        const TorNode *user = use->user;
        if (user == link) {
            if (use != &link->inputs[0]) return true;
            continue;
        }
        if (user->op == TOR_OP_output || !before[user->id]) return true;
        if (tor_op_kind(user->op) == TOR_KIND_VIEW && read_after(user->outputs[0], link, before))
            return true;
    }
    return false;
}

ToroidStatus tor_pass_inplace(TorGraph *g) {
    TorNode *sink = g->output;
    const int64_t *into = tor_attr(sink, TOR_ATTR_into)->ints;
    bool *before = tor_arena_alloc(g->arena, g->next_node + 1);
    if (!before) return tor_no_memory();
    for (int k = 0; k < sink->n_inputs; k++) {
        if (into[k] < 0) continue;
        TorValue *final = tor_in(sink, k), *v = final;
        TorNode *chain[64];
        int links = 0;
        while (links < 64 && updates_first_operand(v->node->op)) {
            chain[links++] = v->node;
            v = tor_in(v->node, 0);
        }
        if (!links || v->node->op != TOR_OP_input ||
            tor_attr_int(v->node, TOR_ATTR_index, -1) != into[k])
            continue;
        // From the first link on: each state must have no reader once the next one is written.
        bool safe = true;
        TorNode *at = g->first;
        for (uint32_t i = 0; i <= g->next_node; i++) before[i] = false;
        for (int i = links - 1; safe && i >= 0; i--) {
            for (; at != chain[i]; at = at->next) before[at->id] = true;
            safe = !read_after(tor_in(chain[i], 0), chain[i], before);
        }
        // Its new rows must not come from the memory that is being written.
        if (!safe) continue;
        for (int i = 0; i < links; i++) TOR_TRY(tor_attr_set(g, chain[i], TOR_A_INT(inplace, 1)));
    }
    return TOROID_OK;
}

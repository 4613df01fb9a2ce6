// Removes nodes that nothing uses. Inputs stay, and so do external nodes with an effect: those that
// carry a nonzero `random` attribute (random numbers, or anything else that must happen).
#include "passes/passes.h"

ToroidStatus tor_pass_dce(TorGraph *g) {
    // From the end: when a node is reached, its dead users are gone.
    for (TorNode *node = g->last, *prev; node; node = prev) {
        prev = node->prev;
        if (node->op == TOR_OP_input || node->op == TOR_OP_output) continue;
        if (node->op == TOR_OP_external && tor_attr_int(node, TOR_ATTR_random, 0)) continue;
        tor_graph_remove(g, node);  // does nothing to a node in use
    }
    return TOROID_OK;
}

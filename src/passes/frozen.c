// Marks what depends on frozen inputs and constants alone: the prologue computes it once.
#include "graph/internal.h"
#include "passes/passes.h"

ToroidStatus tor_pass_frozen(TorGraph *g) {
    for (TorNode *node = g->first; node; node = node->next) {
        bool frozen = tor_node_is_frozen(g, node);
        for (int i = 0; i < node->n_outputs; ++i) node->outputs[i]->frozen = frozen;
    }
    return TOROID_OK;
}

// Where the frontend's promise about the strides of graph outputs is kept.
#include <string.h>

#include "graph/graph.h"

ToroidStatus tor_graph_set_output_layout(TorGraph *g, int output, const TorDim *strides,
                                         const int *order) {
    if (!g->output) return tor_invalid("output layout: the graph has no outputs yet");
    if (output < 0 || output >= g->output->n_inputs)
        return tor_invalid("output layout: there is no output %d", output);
    if (!g->output_layouts) {
        g->output_layouts =
            tor_arena_alloc(g->arena, (size_t)g->output->n_inputs * sizeof(TorOutputLayout));
        if (!g->output_layouts) return tor_no_memory();
    }
    TorOutputLayout *layout = &g->output_layouts[output];
    int rank = tor_in(g->output, output)->rank;
    layout->given = strides || order;
    layout->exact = strides != NULL;
    if (strides) memcpy(layout->stride, strides, (size_t)rank * sizeof(TorDim));
    if (order) {
        uint32_t seen = 0;
        for (int d = 0; d < rank; d++) {
            if (order[d] < 0 || order[d] >= rank || (seen >> order[d] & 1))
                return tor_invalid(
                    "output layout: the order of output %d is no permutation of %d dims", output,
                    rank);
            seen |= 1u << order[d];
            layout->order[d] = order[d];
        }
    }
    return TOROID_OK;
}

/// The frozen part of a graph, split off.
#ifndef TOR_PASSES_PROLOGUE_H
#define TOR_PASSES_PROLOGUE_H

#include "graph/graph.h"

/// One value that depends on frozen inputs and constants alone, as a graph of its own.
typedef struct {
    TorGraph *graph;    ///< inputs are the sources, in order; one output. Owned by the prologue
    uint32_t *sources;  ///< inputs of the main graph
    uint32_t n_sources;
    uint32_t input;   ///< the main graph's input (frozen_result) that stands for the value now
    TorValue *value;  ///< what it stands for; NULL after the pass
    uint64_t key[2];  ///< hash of the expression: ops, attributes, types; equal for equal work
} TorPrologueResult;

typedef struct {
    TorPrologueResult *results;
    size_t count, capacity;
} TorPrologue;

/// Moves every maximal frozen expression of `g` into `prologue` (cleared by the caller). Views of
/// frozen inputs and single numbers stay. Needs the marks of tor_pass_frozen().
ToroidStatus tor_pass_prologue(TorGraph *g, TorPrologue *prologue);
void tor_prologue_destroy(TorPrologue *prologue);

#endif

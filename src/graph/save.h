/// A graph as bytes and back, for those who keep compilations on disk.
///
/// In order: the build's hash; how many integers, inputs and nodes, and the next ids; the integers;
/// the inputs; the nodes, each with its attributes and the types of its outputs; what was promised
/// of the graph's outputs.
#ifndef TOR_GRAPH_SAVE_H
#define TOR_GRAPH_SAVE_H

#include "graph/graph.h"

/// Characters of tor_build_hash().
#define TOR_BUILD_HASH 32

/// A hash of the sources that this library was built from. What one build wrote, another refuses.
const char *tor_build_hash(void);

/// Only before passes ran. `*bytes` is the caller's: free with tor_free().
ToroidStatus tor_graph_save(const TorGraph *g, char **bytes, size_t *count);

/// Believes nothing: whatever the bytes are, this gives a graph that tor_graph_verify() passes, or
///
/// @return TOROID_INVALID with what is wrong (TOROID_UNSUPPORTED for another build's bytes)
ToroidStatus tor_graph_load(TorGraph **out, const void *bytes, size_t count);

#endif

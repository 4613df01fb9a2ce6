/// The passes: graph in, graph out, one file each, and the driver that runs a list of them.
///
/// A pass keeps the graph valid (tor_graph_verify) and its meaning, and takes time near-linear in
/// the number of nodes. On failure the graph may be half changed and can only be destroyed.
#ifndef TOR_PASSES_PASSES_H
#define TOR_PASSES_PASSES_H

#include "graph/graph.h"

typedef ToroidStatus TorPassFn(TorGraph *g);

/// Every pass that a list may name, with what it does. A pass `name` is tor_pass_<name>().
#define TOR_PASSES(X)                                                               \
    X(frozen, "marks values that depend on frozen inputs and constants alone")      \
    X(fold, "computes scalar functions and casts of numbers")                       \
    X(canonicalise, "one spelling for what has many: views, linear, identities")    \
    X(views, "moves views below elementwise ops, so that chains of those can fuse") \
    X(cse, "one node for equal nodes")                                              \
    X(dce, "removes nodes that nothing uses")                                       \
    X(recognise_activation, "finds GELU and SiLU in their parts")                   \
    X(recognise_attention, "finds attention in its parts")                          \
    X(widen, "contractions of half types in float32, between casts")                \
    X(group_heads, "attention reads keys and values that were repeated for heads")  \
    X(fold_conv, "folds what follows a convolution into its weight")                \
    X(prepack, "packs frozen weights")                                              \
    X(fuse_epilogue, "elementwise ops into the contraction before them")            \
    X(fuse_groups, "elementwise ops and reductions into programs")                  \
    X(layout, "strides, offsets and storage of every value")                        \
    X(inplace, "which outputs may reuse an input's memory")

#define X(name, doc) TorPassFn tor_pass_##name;
TOR_PASSES(X)
#undef X

/// Runs passes by name, in order. Logs each one's time at level 2. With TOROID_VERIFY=1 in the
/// environment, and in debug builds, verifies the graph after each.
/// @return TOROID_INVALID for a name that is no pass, before any has run
ToroidStatus tor_passes_run(TorGraph *g, const char *const *names, int count);

/// What graph compilation runs before fusion; the list is static.
const char *const *tor_passes_simplify(int *count);

#endif

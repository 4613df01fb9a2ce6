/// The passes: graph in, graph out, one file each, and the driver that runs a list of them.
///
/// A pass keeps the graph valid (tor_graph_verify) and its meaning, and takes time near-linear in
/// the number of nodes. On failure the graph may be half changed and can only be destroyed.
#ifndef TOR_PASSES_PASSES_H
#define TOR_PASSES_PASSES_H

#include "graph/graph.h"

typedef ToroidStatus TorPassFn(TorGraph *g);

/// Every pass that a list may name, with what it does. A pass `name` is tor_pass_<name>(). Without
/// an `optional` one plans are slower and answers the same; nothing runs without a `required` one.
// clang-format off
#define TOR_PASSES(X)                                                                         \
    X(frozen, optional, "marks values that depend on frozen inputs and constants alone")      \
    X(fold, optional, "computes scalar functions and casts of numbers")                       \
    X(canonicalise, optional, "one spelling for what has many: views, linear, identities")    \
    X(views, optional, "moves views below elementwise ops, so that chains of those can fuse") \
    X(cse, optional, "one node for equal nodes")                                              \
    X(dce, optional, "removes nodes that nothing uses")                                       \
    X(recognise_activation, optional, "finds GELU and SiLU in their parts")                   \
    X(recognise_attention, optional, "finds attention in its parts")                          \
    X(widen, required, "contractions of half types in float32, between casts")                \
    X(group_heads, optional, "attention reads keys and values that were repeated for heads")  \
    X(fold_conv, optional, "folds what follows a convolution into its weight")                \
    X(fold_pad, optional, "convolutions and pools pad what they read")                        \
    X(prepack, required, "packs weights; convolutions read no others")                        \
    X(fuse_epilogue, optional, "elementwise ops into the contraction before them")            \
    X(fuse_groups, optional, "elementwise ops and reductions into shared programs")           \
    X(programs, required, "a program for each elementwise op and reduction that is left")     \
    X(fuse_bands, optional, "convolutions that may be computed together, some lines at a time") \
    X(layout, required, "strides, offsets and storage of every value")                        \
    X(inplace, optional, "which outputs may reuse an input's memory")
// clang-format on

#define X(name, need, doc) TorPassFn tor_pass_##name;
TOR_PASSES(X)
#undef X

/// Whether graphs are to be checked: TOROID_VERIFY in the environment, else true in debug builds.
bool tor_passes_verify(void);

/// Runs passes by name, in order. Logs each one's time at level 2. With tor_passes_verify(),
/// verifies the graph after each. Passes that TOROID_SKIP_PASS in
/// the environment names (with commas between) are left out.
/// @return TOROID_INVALID for a name that is no pass, or one in TOROID_SKIP_PASS that is none or is
///     required, before any has run
ToroidStatus tor_passes_run(TorGraph *g, const char *const *names, int count);

/// Whether TOROID_SKIP_PASS names this pass, or this stage of compilation ("prologue").
bool tor_pass_skipped(const char *name);

/// What graph compilation runs before fusion; the list is static.
const char *const *tor_passes_simplify(int *count);

#endif

/// Questions about layouts that passes and the planner ask.
#ifndef TOR_PASSES_LAYOUT_H
#define TOR_PASSES_LAYOUT_H

#include "graph/graph.h"

/// Strides of a dense tensor whose dims lie in `order` (outermost first; NULL: row-major).
void tor_layout_dense(TorGraph *g, int rank, const TorDim *dim, const int *order, TorDim *stride);
/// The strides of `dim`/`stride` seen as `new_dim`, by symbolic sizes alone.
/// @return false if that is no single strided view, or not provably one
bool tor_layout_view(TorGraph *g, int rank, const TorDim *dim, const TorDim *stride, int new_rank,
                     const TorDim *new_dim, TorDim *new_stride);
/// True if `count` dims from `first` can be walked as one dim; its stride into *stride (0 for
/// none).
bool tor_layout_mergeable(TorGraph *g, const TorValue *v, int first, int count, TorDim *stride);
/// True if the value's elements lie densely, in whatever order, from its offset on.
bool tor_layout_is_dense(TorGraph *g, const TorValue *v, int *order);
/// Makes v the owner of memory with dense strides in `order` (NULL: row-major).
void tor_layout_own(TorGraph *g, TorValue *v, const int *order);

/// Gives every value strides, an offset and a storage. Views become aliases; a `contiguous` node is
/// added only where a consumer cannot read the strides or a graph output is promised others.
ToroidStatus tor_pass_layout(TorGraph *g);

#endif

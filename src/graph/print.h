/// Pieces of a printed graph, for tables of it.
#ifndef TOR_GRAPH_PRINT_H
#define TOR_GRAPH_PRINT_H

#include "base/text.h"
#include "graph/internal.h"

/// An integer; in brackets where its operator binds less tightly than `outer` (0: nothing).
void tor_put_int(TorText *t, const TorGraph *g, TorDim dim, int outer);
void tor_put_dims(TorText *t, const TorGraph *g, const TorDim *dims, int n);
void tor_put_type(TorText *t, const TorGraph *g, const TorValue *v);
void tor_put_scalar(TorText *t, TorScalar s);
/// What an attribute says, without its name.
void tor_put_attr(TorText *t, const TorGraph *g, const TorNode *node, const TorAttr *a);

#endif

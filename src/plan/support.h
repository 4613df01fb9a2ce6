/// Which nodes have a kernel, told before a plan is built.
#ifndef TOR_PLAN_SUPPORT_H
#define TOR_PLAN_SUPPORT_H

#include "graph/graph.h"

/// @return TOROID_UNSUPPORTED with a reason if no kernel of this build takes the node's op in its
/// types
ToroidStatus tor_plan_supports(const TorNode *node);

#endif

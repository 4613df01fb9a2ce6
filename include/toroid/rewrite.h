/// Nodes of a graph: to look at, and to put others in their place. For passes of a backend.
///
/// A graph holds operators of Toroid, which are fewer than PyTorch's: what toroid_graph_call()
/// makes of a call is what toroid_graph_print() shows. Names and attributes are those of the print,
/// and may change between versions; a pass leaves alone what it does not know.
#ifndef TOROID_REWRITE_H
#define TOROID_REWRITE_H

#include "toroid/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/// An operator with its operands, results and attributes; lives as long as the graph.
typedef struct ToroidNode ToroidNode;

/// The nodes in execution order: inputs and constants among them; the last one, "output", has the
/// graph's outputs as operands, where they are set.
/// @param graph  not under toroid_compile()
/// @param nodes  `count` of them; the graph's, until the next call
/// @param count  of nodes
/// @return TOROID_INVALID where an argument is NULL; TOROID_NO_MEMORY
TOROID_API ToroidStatus toroid_graph_nodes(ToroidGraph *graph, ToroidNode *const **nodes,
                                           int *count);

/// A node's operator: "linear", "softmax", "add", "input".
/// @return "" where `node` is NULL. Never freed
TOROID_API const char *toroid_node_op(const ToroidNode *node);
/// Number of a node's operands; 0 where `node` is NULL.
TOROID_API int toroid_node_input_count(const ToroidNode *node);
/// An operand.
/// @return NULL where there is none of that number
TOROID_API ToroidValue *toroid_node_input(const ToroidNode *node, int number);
/// Number of a node's results; 0 where `node` is NULL.
TOROID_API int toroid_node_output_count(const ToroidNode *node);
/// A result.
/// @return NULL where there is none of that number
TOROID_API ToroidValue *toroid_node_output(const ToroidNode *node, int number);
/// The attributes of a node as named arguments: "axis", "dims", "keepdim". Of data only the number
/// of a constant without dims is shown, as "value".
/// @param graph       the node's
/// @param node        one of its nodes
/// @param attributes  `count` of them, with names; the graph's
/// @param count       of attributes
/// @return TOROID_INVALID where an argument is NULL; TOROID_NO_MEMORY
TOROID_API ToroidStatus toroid_node_attributes(ToroidGraph *graph, const ToroidNode *node,
                                               const ToroidArg **attributes, int *count);

/// The node that computes a value; NULL where `value` is NULL.
TOROID_API ToroidNode *toroid_value_node(const ToroidValue *value);
/// How many operands of nodes a value is, the graph's outputs counted too.
TOROID_API int toroid_value_use_count(const ToroidValue *value);

/// What toroid_graph_rewrite() calls for each node. It may look at the node and at those before it,
/// make new ones by toroid_graph_call() from their results and the node's own, and have them take
/// the place of the node's results by toroid_graph_replace().
typedef ToroidStatus (*ToroidRewriteFn)(ToroidGraph *graph, ToroidNode *node, void *user);

/// Visits each node in execution order, those made on the way left out. Nodes whose results nobody
/// uses any more are dropped when the graph is compiled. Inputs and outputs of the graph stay.
/// @param graph    one whose outputs are set
/// @param rewrite  called with `user`; anything but TOROID_OK ends the visit
/// @param user     passed on
/// @return what `rewrite` returned, after which the graph has the changes made so far and may be
///         compiled; TOROID_INVALID where the outputs are not set; TOROID_NO_MEMORY
TOROID_API ToroidStatus toroid_graph_rewrite(ToroidGraph *graph, ToroidRewriteFn rewrite,
                                             void *user);
/// Has all readers of a value read another, but for nodes made in this visit: they may read `old`.
/// @param graph  under toroid_graph_rewrite()
/// @param old    a result of the node that is visited
/// @param with   of the same type and sizes: made in this visit, or of a node before
/// @return TOROID_INVALID where one of these does not hold
TOROID_API ToroidStatus toroid_graph_replace(ToroidGraph *graph, ToroidValue *old,
                                             ToroidValue *with);

#ifdef __cplusplus
}
#endif
#endif

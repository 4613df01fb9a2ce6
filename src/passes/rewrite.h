/// Local rewriting: one sweep over the nodes in order, a list of rules tried at each.
///
/// A rule looks at a node and what stands before it, and leaves it or puts something in its place.
/// What it adds is visited next, so that rules build on each other within one sweep. Every rule
/// must bring the graph nearer to an end (fewer nodes, a view further down, or fewer rows), so a
/// sweep ends.
#ifndef TOR_PASSES_REWRITE_H
#define TOR_PASSES_REWRITE_H

#include "graph/graph.h"

typedef struct {
    TorGraph *g;
    TorNode *node;   ///< looked at
    TorNode *added;  ///< the first node added for it
    TorNode *next;   ///< where the sweep goes on if `changed`
    bool changed;
} TorRewrite;

typedef ToroidStatus TorRule(TorRewrite *r);

/// `rules` ends with NULL.
ToroidStatus tor_rewrite_sweep(TorGraph *g, TorRule *const *rules);

/// Adds a node with one output before the node; it takes over the node's origin.
ToroidStatus tor_rewrite_add(TorRewrite *r, TorOp op, TorValue *const *inputs, int n_inputs,
                             const TorAttr *attrs, int n_attrs, TorValue **out);
/// Puts `value` in the place of the node's output and removes the node.
void tor_rewrite_replace(TorRewrite *r, TorValue *value);
/// Says that the node itself was edited: infers it anew and visits it again.
ToroidStatus tor_rewrite_edited(TorRewrite *r);

static inline bool tor_single_use(const TorValue *v) { return v->uses && !v->uses->next; }
/// Is `v` one number, known now? Integers and bools are converted.
bool tor_is_number(const TorValue *v, double *number);
/// Takes no space of its own among a scalar function's operands: a Python number.
bool tor_is_weak_number(const TorValue *v);

TorRule tor_rule_identity;  ///< what does nothing: contiguous, view, permute, expand, cast, slice
TorRule
    tor_rule_merge_views;  ///< view of view, permute of permute, expand of expand, views of full
TorRule tor_rule_permute_to_view;  ///< a permute that moves dims of size 1 only
TorRule tor_rule_merge_casts;      ///< cast of a cast that lost nothing
TorRule tor_rule_number;           ///< uniform operands of scalar functions become numbers
TorRule tor_rule_sink_unary;       ///< map(view(x), numbers) to view(map(x, numbers))
TorRule tor_rule_sink_map;      ///< the same for several views of one shape, and trailing operands
TorRule tor_rule_sink_linear;   ///< linear(view(x)) to view(linear(x))
TorRule tor_rule_raise_linear;  ///< view(linear(view(x))) to linear(view(x)) where the inner view
                                ///< cannot sink
TorRule
    tor_rule_batch_matmul;  ///< matmul over views that flatten batch dims to matmul over those dims
TorRule tor_rule_matmul_linear;  ///< matmul with a 2-d weight
TorRule tor_rule_linear_trans;   ///< linear(x, permute(w)) to linear(x, w) with trans
TorRule tor_rule_linear_bias;    ///< add(linear, bias)
TorRule tor_rule_raise_slice;    ///< slice(maps(linear(x))) of rows to maps(linear(slice(x)))

#endif

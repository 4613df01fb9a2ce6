/// What the files of src/graph share with each other. Passes may use the last section.
#ifndef TOR_GRAPH_INTERNAL_H
#define TOR_GRAPH_INTERNAL_H

#include "graph/graph.h"

// ---------------------------------------------------------------- integers

struct TorIntTable {
    TorInt *items;
    bool *nonneg;  ///< items[i] is known to be >= 0
    size_t capacity, nonneg_capacity;
    uint32_t count;
    uint32_t leaves;   ///< scalars and sizes so far; a leaf's `value` is its number, s<value>
    uint32_t *slots;   ///< open addressing, index + 1, 0: free
    uint32_t n_slots;  ///< a power of two
};

void tor_int_table_free(TorGraph *g);
/// Puts the next integer into the table as it stood in another's.
/// @return TOROID_INVALID if it is there already
ToroidStatus tor_int_restore(TorGraph *g, const TorInt *x, bool nonneg);

// ---------------------------------------------------------------- lists

/// Puts a node before another, or last.
void tor_node_link(TorGraph *g, TorNode *node, TorNode *before);
/// Notes the user of a use among the uses of a value.
void tor_use_link(TorUse *use, TorValue *value);

// ---------------------------------------------------------------- type rules

typedef struct {
    const char *name;
    TorOpKind kind;
    int min_inputs, max_inputs, outputs;
    ToroidStatus (*infer)(TorGraph *g, TorNode *node);
} TorOpRow;

const TorOpRow *tor_op_row(TorOp op);

#define TOR_OP(name, kind, min_in, max_in, outs, doc) \
    ToroidStatus tor_infer_##name(TorGraph *g, TorNode *node);
#include "graph/ops.inc"
#undef TOR_OP
ToroidStatus tor_infer_scalar_fn(TorGraph *g, TorNode *node);

/// Each checks one thing about a node and says what was expected. `what` is the input's name ("w").
ToroidStatus tor_need_rank(const TorGraph *g, const TorNode *node, int i, const char *what, int low,
                           int high);
ToroidStatus tor_need_float(const TorGraph *g, const TorNode *node, int i, const char *what);
ToroidStatus tor_need_index(const TorGraph *g, const TorNode *node, int i,
                            const char *what);  ///< int64 or int32
ToroidStatus tor_need_dtype(const TorGraph *g, const TorNode *node, int i, const char *what,
                            TorDtype dtype);
ToroidStatus tor_need_dim(TorGraph *g, const TorNode *node, int i, const char *what, int dim,
                          TorDim expected);
/// count -1: any. `*n` may be NULL.
ToroidStatus tor_need_ints(const TorNode *node, TorAttrKey key, int count, const int64_t **ints,
                           int *n);
/// Attributes padding and padding_high, which is `padding` if absent.
ToroidStatus tor_need_padding(const TorNode *node, int spatial, const int64_t **low,
                              const int64_t **high);
ToroidStatus tor_need_dims(const TorGraph *g, const TorNode *node, TorAttrKey key, int count,
                           const TorDim **dims, int *n);
ToroidStatus tor_need_axis(const TorNode *node, int rank, int *axis);  ///< axis of a 0-d tensor: 0
/// Attribute `axes`: in range and distinct; `mask` has one bit an axis.
ToroidStatus tor_need_axes(const TorNode *node, int rank, const int64_t **axes, int *n,
                           uint32_t *mask);
/// Attribute dtype, or `or_value` without it.
TorDtype tor_attr_dtype(const TorNode *node, TorDtype or_value);

/// Known at compile time and different.
bool tor_dims_clash(const TorGraph *g, TorDim a, TorDim b);
/// Of two dims that must be equal, the one that says more.
TorDim tor_dims_merge(const TorGraph *g, TorDim a, TorDim b);
/// Product of dims if all are known.
bool tor_dims_numel(const TorGraph *g, const TorDim *dims, int rank, int64_t *numel);
/// What must hold of sizes that a run may be the first to know; noted where the graph is unguarded.
void tor_must_equal(TorGraph *g, TorDim a, TorDim b);
void tor_must_fit(TorGraph *g, TorDim size, TorDim room);  ///< size <= room
/// `n` items from `start` with `step` lie in [0, whole).
void tor_must_contain(TorGraph *g, TorDim start, TorDim n, int64_t step, TorDim whole);
/// Numpy broadcast of `dims` into `rank`/`out` (which grow).
/// @return TOROID_INVALID if sizes known now do not broadcast
ToroidStatus tor_dims_broadcast(TorGraph *g, const TorDim *dims, int n, TorDim *out, int *rank);

// ---------------------------------------------------------------- attributes and text

const char *tor_attr_name(TorAttrKey key);
unsigned tor_attr_keys(void);  ///< how many there are
ToroidStatus tor_attrs_copy(TorGraph *g, TorNode *node, const TorAttr *attrs, int n);

/// By content. `weak` numbers compare by bits, so -0.0 is not 0.0 and a NaN equals itself.
bool tor_attr_equal(const TorAttr *a, const TorAttr *b);
uint64_t tor_attr_hash(const TorAttr *attr);

/// True if the node's outputs depend on frozen values and constants alone, of the flags its inputs
/// have now.
bool tor_node_is_frozen(const TorGraph *g, const TorNode *node);

#endif

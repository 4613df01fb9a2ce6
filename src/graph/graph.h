/// The IR: a functional graph of tensor nodes, with a DAG of integers for sizes.
///
/// - A TorValue is a tensor: dtype, rank, and dims that are integers of the graph.
/// - A TorDim is an index into the graph's integer table. Integers are hash-consed and folded when
///   made, so equal dims have equal indices and a graph with static shapes has constants only. The
///   table is in evaluation order: binding a graph to sizes is one pass over it.
/// - Nodes form a doubly linked list in topological order; values keep their uses.
/// - Everything lives in the graph's arena and dies with it.
#ifndef TOR_GRAPH_GRAPH_H
#define TOR_GRAPH_GRAPH_H

#include "base/alloc.h"
#include "base/dtype.h"

#define TOR_MAX_RANK 12

typedef struct TorGraph TorGraph;
typedef struct TorNode TorNode;
typedef struct TorValue TorValue;

// ---------------------------------------------------------------- integers

typedef uint32_t TorDim;
#define TOR_NO_DIM UINT32_MAX

// clang-format off
#define TOR_INT_OPS(X)                                                         \
    X(const)     /* value */                                                   \
    X(scalar)    /* graph input a is an integer: its value */                  \
    X(size)      /* size of dim b of tensor input a */                         \
    X(stride)    /* its stride in elements */                                  \
    X(start)     /* elements of its memory before tensor input a's first */    \
    X(memory)    /* elements of that memory */                                 \
    X(add) X(sub) X(mul)                                                       \
    X(floordiv)  /* Python's //; 0 if b == 0 */                                \
    X(mod)       /* Python's %; 0 if b == 0 */                                 \
    X(pow) X(min) X(max)                                                       \
    X(broadcast) /* a if b == 1, b if a == 1, a if equal; else the bind fails */ \
    X(within)    /* a if a <= b; else the bind fails */                        \
    X(same)      /* a if a == b; else the bind fails */                        \
    X(eq) X(ne) X(lt) X(le) /* 0 or 1 */
// clang-format on

typedef enum {
#define X(name) TOR_INT_##name,
    TOR_INT_OPS(X)
#undef X
} TorIntOp;

typedef struct {
    TorIntOp op;
    uint32_t a, b;  // operands (dims), or input and dim numbers
    int64_t value;  // of a const
} TorInt;

/// All return TOR_NO_DIM when memory is short (the graph then also remembers the failure, and the
/// next tor_graph_add returns it), so that arithmetic can be nested without checks.
TorDim tor_int_const(TorGraph *g, int64_t value);
TorDim tor_int_scalar(TorGraph *g, uint32_t input);
TorDim tor_int_size(TorGraph *g, uint32_t input, uint32_t dim);
TorDim tor_int_stride(TorGraph *g, uint32_t input, uint32_t dim);
TorDim tor_int_start(TorGraph *g, uint32_t input);
TorDim tor_int_memory(TorGraph *g, uint32_t input);
TorDim tor_int_binary(TorGraph *g, TorIntOp op, TorDim a, TorDim b);
static inline TorDim tor_int_add(TorGraph *g, TorDim a, TorDim b) {
    return tor_int_binary(g, TOR_INT_add, a, b);
}
static inline TorDim tor_int_sub(TorGraph *g, TorDim a, TorDim b) {
    return tor_int_binary(g, TOR_INT_sub, a, b);
}
static inline TorDim tor_int_mul(TorGraph *g, TorDim a, TorDim b) {
    return tor_int_binary(g, TOR_INT_mul, a, b);
}
static inline TorDim tor_int_floordiv(TorGraph *g, TorDim a, TorDim b) {
    return tor_int_binary(g, TOR_INT_floordiv, a, b);
}
/// True with the value if the integer is known at compile time.
bool tor_int_known(const TorGraph *g, TorDim dim, int64_t *value);
bool tor_int_is(const TorGraph *g, TorDim dim, int64_t value);  ///< known and equal to `value`
const TorInt *tor_int_get(const TorGraph *g, TorDim dim);
uint32_t tor_int_count(const TorGraph *g);
/// Product of dims; the constant 1 for none.
TorDim tor_int_product(TorGraph *g, const TorDim *dims, int count);

/// What an integer asks of an input: the size of a dim, if not one of these.
enum {
    TOR_ASK_VALUE = -1,  ///< of an integer input
    TOR_ASK_START = -2,
    TOR_ASK_MEMORY = -3,
    TOR_ASK_STRIDE = -4,  ///< of dim d: TOR_ASK_STRIDE - d
};

/// Is it one that an input answers? Then also what to ask.
bool tor_int_asks(const TorInt *x, int *what);

/// Evaluates all integers into `values` (tor_int_count() items). `sizes(user, input, what)` answers
/// for the inputs: the size of dim `what`, or see TOR_ASK_VALUE.
/// @return TOROID_INVALID_DATA where a view would leave its memory
ToroidStatus tor_int_eval(const TorGraph *g, int64_t (*sizes)(void *user, uint32_t input, int what),
                          void *user, int64_t *values);

// ---------------------------------------------------------------- attributes

// clang-format off
#define TOR_ATTRS(X)                                                                  \
    X(index) X(blob) X(weak) X(value) X(dtype) X(dims) X(start) X(step) X(fstart)     \
    X(fstep) X(into) X(axes) X(axis) X(strides) X(offset) X(keepdim) X(correction)    \
    X(count) X(eps) X(has_gamma) X(has_beta) X(scale) X(causal) X(nan_rows) X(fill)   \
    X(stride) X(padding) X(dilation) X(groups) X(transposed) X(output_padding)        \
    X(kernel) X(ceil_mode) X(count_include_pad) X(divisor) X(low) X(high)             \
    X(accumulate) X(reduce) X(trans) X(precision) X(program) X(callable) X(reason)    \
    X(random) X(operands) X(packed) X(k) X(n) X(epilogue) X(inplace) X(has_bias)      \
    X(descending) X(right) X(mode) X(reverse) X(size)                                 \
    X(padding_high) X(align_corners) X(scales) X(include_last) X(padding_idx) X(index_error) X(memory)    \
    X(winograd) X(bands)
// clang-format on

typedef enum {
#define X(name) TOR_ATTR_##name,
    TOR_ATTRS(X)
#undef X
} TorAttrKey;

// TOR_ATTR_weak on a 0-d constant: it stands for a Python number. It may be an operand of a scalar
// function of any dtype: it is converted to the type the function computes in (float32 for halves),
// not to the tensor's own type. Its own dtype is int64, float64 or bool.

typedef enum {
    TOR_ATTR_INT,
    TOR_ATTR_FLOAT,
    TOR_ATTR_SCALAR,
    TOR_ATTR_DTYPE,
    TOR_ATTR_DIM,
    TOR_ATTR_DIMS,
    TOR_ATTR_INTS,
    TOR_ATTR_STR,
    TOR_ATTR_BLOB
} TorAttrKind;

typedef struct {
    TorAttrKey key;
    TorAttrKind kind;
    int count;  ///< of dims and ints; bytes of a blob
    union {
        int64_t i;
        double f;
        TorScalar scalar;
        TorDtype dtype;
        TorDim dim;
        const TorDim *dims;
        const int64_t *ints;
        const char *str;
        const void *blob;  ///< compared by content
    };
} TorAttr;

#define TOR_A_INT(k, v) ((TorAttr){.key = TOR_ATTR_##k, .kind = TOR_ATTR_INT, .i = (v)})
#define TOR_A_FLOAT(k, v) ((TorAttr){.key = TOR_ATTR_##k, .kind = TOR_ATTR_FLOAT, .f = (v)})
#define TOR_A_SCALAR(k, v) ((TorAttr){.key = TOR_ATTR_##k, .kind = TOR_ATTR_SCALAR, .scalar = (v)})
#define TOR_A_DTYPE(k, v) ((TorAttr){.key = TOR_ATTR_##k, .kind = TOR_ATTR_DTYPE, .dtype = (v)})
#define TOR_A_DIM(k, v) ((TorAttr){.key = TOR_ATTR_##k, .kind = TOR_ATTR_DIM, .dim = (v)})
#define TOR_A_DIMS(k, v, n) \
    ((TorAttr){.key = TOR_ATTR_##k, .kind = TOR_ATTR_DIMS, .dims = (v), .count = (n)})
#define TOR_A_INTS(k, v, n) \
    ((TorAttr){.key = TOR_ATTR_##k, .kind = TOR_ATTR_INTS, .ints = (v), .count = (n)})
#define TOR_A_STR(k, v) ((TorAttr){.key = TOR_ATTR_##k, .kind = TOR_ATTR_STR, .str = (v)})
#define TOR_A_BLOB(k, v, n) \
    ((TorAttr){.key = TOR_ATTR_##k, .kind = TOR_ATTR_BLOB, .blob = (v), .count = (n)})

// ---------------------------------------------------------------- values and nodes

typedef enum {
#define TOR_FN(name, arity, result, doc) TOR_OP_##name,
#include "base/scalar_fn.inc"
#undef TOR_FN
#define TOR_OP(name, kind, min_in, max_in, outs, doc) TOR_OP_##name,
#include "graph/ops.inc"
#undef TOR_OP
    TOR_OP_COUNT
} TorOp;

typedef enum {
    TOR_KIND_SOURCE,
    TOR_KIND_SINK,
    TOR_KIND_MAP,
    TOR_KIND_VIEW,
    TOR_KIND_REDUCE,
    TOR_KIND_ROW,
    TOR_KIND_CONTRACT,
    TOR_KIND_POOL,
    TOR_KIND_MOVE,
    TOR_KIND_PACK,
    TOR_KIND_FUSED,
    TOR_KIND_EXTERNAL
} TorOpKind;

const char *tor_op_name(TorOp op);
const char *tor_op_kind_name(TorOp op);  ///< "map"
TorOpKind tor_op_kind(TorOp op);         ///< scalar functions are MAP
static inline bool tor_op_is_scalar_fn(TorOp op) { return op <= TOR_OP_copy; }

/// One operand of a node, linked into the list of uses of its value.
typedef struct TorUse {
    TorValue *value;
    TorNode *user;
    struct TorUse *prev, *next;
} TorUse;

struct TorValue {
    TorNode *node;  ///< that makes it
    int index;      ///< which of the node's outputs
    uint32_t id;    ///< unique in the graph, printed as %id
    TorDtype dtype;
    int rank;
    TorDim dim[TOR_MAX_RANK];
    TorUse *uses;               ///< head of the list; NULL: dead
    const TorValue *successor;  ///< what took its place, for reports; NULL: nothing did
    // Set by passes (see passes/layout.h); before that has_layout is false and the
    // value is thought of as row-major.
    bool has_layout;
    TorValue *storage;  ///< the value whose memory this one lives in; itself if it owns memory
    TorDim stride[TOR_MAX_RANK];  ///< in elements
    TorDim offset;                ///< in elements from the storage's start
    bool frozen;                  ///< depends on frozen inputs and constants alone
};

struct TorNode {
    TorOp op;
    uint32_t id;
    int n_inputs, n_outputs, n_attrs;
    TorUse *inputs;  ///< inputs[i].value
    TorValue **outputs;
    const TorAttr *attrs;  ///< sorted by key
    TorNode *prev, *next;
    const char *origin;  ///< the frontend's name for the node, for messages; may be NULL
};

typedef enum { TOR_INPUT_TENSOR, TOR_INPUT_INT } TorInputKind;

typedef struct {
    TorInputKind kind;
    TorValue *value;  ///< of a tensor
    const char *name;
    bool frozen;                  ///< a weight or buffer that this graph does not write
    bool frozen_result;           ///< made by the prologue: no tensor of the host
    bool contiguous;              ///< row-major at every call; otherwise strides are read at bind
    TorDim stride[TOR_MAX_RANK];  ///< dims of kind `size`-like inputs are known; strides the
                                  ///< frontend promised, TOR_NO_DIM: unknown until bind
} TorInput;

/// How the frontend wants a graph output to lie in memory.
typedef struct {
    bool exact;  ///< `stride` holds elements; else `order` holds dims, outermost first, dense
    TorDim stride[TOR_MAX_RANK];
    int order[TOR_MAX_RANK];
    bool given;  ///< false: row-major
} TorOutputLayout;

struct TorGraph {
    TorArena *arena;
    TorNode *first, *last;  ///< `last` is always the output node once tor_graph_set_outputs ran
    TorNode *output;        ///< NULL until then
    TorInput *inputs;
    uint32_t n_inputs;
    uint32_t next_value, next_node;
    bool unguarded;           ///< nobody compares sizes before a call: rules note what must hold of
                              ///< sizes that only a run knows, and binding fails where it does not
    ToroidStatus failed;      ///< sticky: memory ran out in integer arithmetic
    uint32_t *output_memory;  ///< by output: the value whose memory it shows through views, when
                              ///< the outputs were set. Passes find values equal (a clone and its
                              ///< source); memory that eager keeps apart stays apart
    TorOutputLayout
        *output_layouts;       ///< one for each input of the output node; NULL: all row-major
    struct TorIntTable *ints;  ///< private
    size_t input_capacity;
};

ToroidStatus tor_graph_create(TorGraph **out);
void tor_graph_destroy(TorGraph **graph);
/// A copy that shares nothing; only before passes ran.
ToroidStatus tor_graph_clone(TorGraph **out, const TorGraph *from);

/// Adds a tensor input; dims are the caller's (tor_int_const, or tor_int_size of this input: its
/// number is graph->n_inputs before the call).
ToroidStatus tor_graph_add_input(TorGraph *g, const char *name, TorDtype dtype, int rank,
                                 const TorDim *dims, bool frozen, TorValue **out);
/// Adds an integer input; its value is tor_int_scalar(g, number).
ToroidStatus tor_graph_add_int_input(TorGraph *g, const char *name, TorDim *out);

/// Adds a node before `before` (NULL: at the end, but before the output node), infers dtype, rank
/// and dims of its outputs, and checks inputs and attributes. Attributes are copied. `n_outputs`
/// matters for ops with any number of outputs only; external and fused nodes take their output
/// types from tor_graph_set_type() afterwards.
ToroidStatus tor_graph_add(TorGraph *g, TorNode *before, TorOp op, TorValue *const *inputs,
                           int n_inputs, const TorAttr *attrs, int n_attrs, int n_outputs,
                           TorNode **out);
void tor_graph_set_type(TorValue *value, TorDtype dtype, int rank, const TorDim *dims);
/// Sets the graph's outputs; `into[i]` is the input that outputs[i] is written to, or -1: returned.
ToroidStatus tor_graph_set_outputs(TorGraph *g, TorValue *const *values, const int64_t *into,
                                   int count);

/// Strides (elements) or a dense order of dims (outermost first) for one output; the other is NULL.
/// After tor_graph_set_outputs().
ToroidStatus tor_graph_set_output_layout(TorGraph *g, int output, const TorDim *strides,
                                         const int *order);

/// Infers the outputs of a node from its inputs (used by add and by the verifier).
ToroidStatus tor_graph_infer(TorGraph *g, TorNode *node);

void tor_node_set_input(TorNode *node, int i, TorValue *value);
void tor_value_replace(TorValue *old, TorValue *with);  ///< all uses of `old` now use `with`
/// Unlinks a node none of whose outputs is used.
void tor_graph_remove(TorGraph *g, TorNode *node);
void tor_graph_move_before(TorGraph *g, TorNode *node, TorNode *before);
int tor_value_use_count(const TorValue *value);
static inline TorValue *tor_in(const TorNode *node, int i) { return node->inputs[i].value; }

// Attribute access. The `or` forms give a default for an absent attribute.
const TorAttr *tor_attr(const TorNode *node, TorAttrKey key);  ///< NULL: absent
int64_t tor_attr_int(const TorNode *node, TorAttrKey key, int64_t or_value);
double tor_attr_float(const TorNode *node, TorAttrKey key, double or_value);
const char *tor_attr_str(const TorNode *node, TorAttrKey key, const char *or_value);
/// Whether all of the integers are `value`; true where the attribute is missing.
bool tor_attr_all(const TorNode *node, TorAttrKey key, int64_t value);
/// Replaces or adds one attribute.
ToroidStatus tor_attr_set(TorGraph *g, TorNode *node, TorAttr attr);
/// Which operands of an attention are its added mask and its keep; 0 for none.
static inline int tor_attention_keep(const TorNode *node) {
    return tor_attr(node, TOR_ATTR_fill) ? node->n_inputs - 1 : 0;
}
static inline int tor_attention_mask(const TorNode *node) {
    return node->n_inputs - (tor_attention_keep(node) > 0) > 3 ? 3 : 0;
}

/// A 0-d weak constant (a Python number). Shared: the same number gives the same value.
ToroidStatus tor_graph_number(TorGraph *g, TorScalar number, TorValue **out);
/// True with the number if `value` is a 0-d constant.
bool tor_value_number(const TorValue *value, TorScalar *number);
bool tor_value_same_dims(const TorValue *a, const TorValue *b);
TorDim tor_value_numel(TorGraph *g, const TorValue *v);

// ---------------------------------------------------------------- checking and printing

/// Every invariant of the IR: order, uses, types re-inferred, layouts inside their storage.
/// @return TOROID_INVALID with the node and the broken rule
ToroidStatus tor_graph_verify(TorGraph *g);

/// A table for people: "%7  linear  float32[1, s0, 768]  %3 %5 %6  name=..". Text is malloc-like:
/// free with tor_free(). Ints that are not constants print as s0, s1... (inputs) or expressions.
ToroidStatus tor_graph_print(const TorGraph *g, char **text);
/// "float32[s0, 768]" into `text`; returns text.
const char *tor_type_print(const TorGraph *g, const TorValue *value, char *text, size_t bytes);
/// "s0*2" into `text`; returns text.
const char *tor_int_print(const TorGraph *g, TorDim dim, char *text, size_t bytes);

#endif

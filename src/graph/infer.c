// The table of ops, and what the type rules in infer_*.c share.
#include <string.h>

#include "graph/internal.h"

static const TorOpRow rows[TOR_OP_COUNT] = {
#define TOR_FN(name, arity, result, doc) \
    {#name, TOR_KIND_MAP, arity, arity, 1, tor_infer_scalar_fn},
#include "base/scalar_fn.inc"
#undef TOR_FN
#define TOR_OP(name, kind, min_in, max_in, outs, doc) \
    {#name, TOR_KIND_##kind, min_in, max_in, outs, tor_infer_##name},
#include "graph/ops.inc"
#undef TOR_OP
};

const TorOpRow *tor_op_row(TorOp op) { return &rows[op]; }
const char *tor_op_name(TorOp op) { return (unsigned)op < TOR_OP_COUNT ? rows[op].name : "?"; }
TorOpKind tor_op_kind(TorOp op) { return rows[op].kind; }

const char *tor_op_kind_name(TorOp op) {
    static const char *const names[] = {
        [TOR_KIND_SOURCE] = "source",     [TOR_KIND_SINK] = "sink",
        [TOR_KIND_MAP] = "map",           [TOR_KIND_VIEW] = "view",
        [TOR_KIND_REDUCE] = "reduce",     [TOR_KIND_ROW] = "row",
        [TOR_KIND_CONTRACT] = "contract", [TOR_KIND_POOL] = "pool",
        [TOR_KIND_MOVE] = "move",         [TOR_KIND_PACK] = "pack",
        [TOR_KIND_FUSED] = "fused",       [TOR_KIND_EXTERNAL] = "external"};
    return names[tor_op_kind(op)];
}

// Attributes must refer to integers of this graph before a rule looks at them.
static ToroidStatus check_attr_dims(const TorGraph *g, const TorNode *node) {
    for (int i = 0; i < node->n_attrs; ++i) {
        const TorAttr *a = &node->attrs[i];
        const TorDim *dims = a->kind == TOR_ATTR_DIM    ? &a->dim
                             : a->kind == TOR_ATTR_DIMS ? a->dims
                                                        : NULL;
        int n = !dims ? 0 : a->kind == TOR_ATTR_DIM ? 1 : a->count;
        for (int j = 0; j < n; ++j)
            if (dims[j] >= tor_int_count(g))
                return g->failed ? tor_no_memory()
                                 : tor_invalid("attribute %s: item %d is no integer of this graph",
                                               tor_attr_name(a->key), j);
    }
    return TOROID_OK;
}

// ---------------------------------------------------------------- what must hold at a run

void tor_must_equal(TorGraph *g, TorDim a, TorDim b) {
    if (g->unguarded) tor_int_binary(g, TOR_INT_same, a, b);
}

void tor_must_fit(TorGraph *g, TorDim size, TorDim room) {
    if (g->unguarded) tor_int_binary(g, TOR_INT_within, size, room);
}

void tor_must_contain(TorGraph *g, TorDim start, TorDim n, int64_t step, TorDim whole) {
    if (!g->unguarded) return;
    TorDim one = tor_int_const(g, 1),
           reach = tor_int_mul(g, tor_int_sub(g, n, one), tor_int_const(g, step));
    TorDim end = tor_int_add(g, tor_int_add(g, start, reach), one);
    tor_must_fit(g, tor_int_const(g, 0), start);
    // Of no items nothing is read.
    tor_must_fit(g, tor_int_mul(g, end, tor_int_binary(g, TOR_INT_min, n, one)), whole);
}

/// Sizes are not negative.
static void must_be_sizes(TorGraph *g, const TorNode *node) {
    TorDim zero = tor_int_const(g, 0);
    for (int i = 0; i < node->n_outputs; ++i)
        for (int d = 0; d < node->outputs[i]->rank; ++d)
            tor_must_fit(g, zero, node->outputs[i]->dim[d]);
}

// ----------------------------------------------------------------

ToroidStatus tor_graph_infer(TorGraph *g, TorNode *node) {
    ToroidStatus status = check_attr_dims(g, node);
    if (status == TOROID_OK) status = rows[node->op].infer(g, node);
    if (status == TOROID_OK && g->unguarded) must_be_sizes(g, node);
    if (g->failed) return tor_no_memory();
    if (status == TOROID_OK || status == TOROID_NO_MEMORY) return status;
    if (node->origin)
        return tor_error_prefix(status, "%s (%s)", tor_op_name(node->op), node->origin);
    return tor_error_prefix(status, "%s", tor_op_name(node->op));
}

// ---------------------------------------------------------------- checks of inputs

ToroidStatus tor_need_rank(const TorGraph *g, const TorNode *node, int i, const char *what, int low,
                           int high) {
    const TorValue *v = tor_in(node, i);
    if (v->rank >= low && v->rank <= high) return TOROID_OK;
    char text[128];
    tor_type_print(g, v, text, sizeof(text));
    if (low == high) return tor_invalid("%s must have %d dims, got %s", what, low, text);
    if (high >= TOR_MAX_RANK)
        return tor_invalid("%s must have at least %d dims, got %s", what, low, text);
    return tor_invalid("%s must have %d to %d dims, got %s", what, low, high, text);
}

ToroidStatus tor_need_float(const TorGraph *g, const TorNode *node, int i, const char *what) {
    if (tor_dtype_is_float(tor_in(node, i)->dtype)) return TOROID_OK;
    char text[128];
    return tor_invalid("%s must be of a float type, got %s", what,
                       tor_type_print(g, tor_in(node, i), text, sizeof(text)));
}

ToroidStatus tor_need_index(const TorGraph *g, const TorNode *node, int i, const char *what) {
    TorDtype dtype = tor_in(node, i)->dtype;
    if (dtype == TOR_int64 || dtype == TOR_int32) return TOROID_OK;
    char text[128];
    return tor_invalid("%s must be int64 or int32, got %s", what,
                       tor_type_print(g, tor_in(node, i), text, sizeof(text)));
}

ToroidStatus tor_need_dtype(const TorGraph *g, const TorNode *node, int i, const char *what,
                            TorDtype dtype) {
    if (tor_in(node, i)->dtype == dtype) return TOROID_OK;
    char text[128];
    return tor_invalid("%s must be %s, got %s", what, tor_dtype_name(dtype),
                       tor_type_print(g, tor_in(node, i), text, sizeof(text)));
}

ToroidStatus tor_need_dim(TorGraph *g, const TorNode *node, int i, const char *what, int dim,
                          TorDim expected) {
    const TorValue *v = tor_in(node, i);
    if (!tor_dims_clash(g, v->dim[dim], expected)) {
        tor_must_equal(g, v->dim[dim], expected);
        return TOROID_OK;
    }
    char text[128], want[32];
    tor_int_print(g, expected, want, sizeof(want));
    return tor_invalid("dim %d of %s must be %s, got %s", dim, what, want,
                       tor_type_print(g, v, text, sizeof(text)));
}

// ---------------------------------------------------------------- checks of attributes

static ToroidStatus need_list(const TorNode *node, TorAttrKey key, TorAttrKind kind, int count,
                              const TorAttr **out) {
    const TorAttr *a = tor_attr(node, key);
    const char *items = kind == TOR_ATTR_INTS ? "integers" : "dims";
    if (!a) return tor_invalid("attribute %s is missing", tor_attr_name(key));
    if (a->kind != kind)
        return tor_invalid("attribute %s must be a list of %s", tor_attr_name(key), items);
    if (count >= 0 && a->count != count)
        return tor_invalid("attribute %s must have %d %s, got %d", tor_attr_name(key), count, items,
                           a->count);
    *out = a;
    return TOROID_OK;
}

ToroidStatus tor_need_ints(const TorNode *node, TorAttrKey key, int count, const int64_t **ints,
                           int *n) {
    const TorAttr *a;
    TOR_TRY(need_list(node, key, TOR_ATTR_INTS, count, &a));
    *ints = a->ints;
    if (n) *n = a->count;
    return TOROID_OK;
}

ToroidStatus tor_need_padding(const TorNode *node, int spatial, const int64_t **low,
                              const int64_t **high) {
    TOR_TRY(tor_need_ints(node, TOR_ATTR_padding, spatial, low, NULL));
    *high = *low;
    if (tor_attr(node, TOR_ATTR_padding_high))
        TOR_TRY(tor_need_ints(node, TOR_ATTR_padding_high, spatial, high, NULL));
    return TOROID_OK;
}

ToroidStatus tor_need_dims(const TorGraph *g, const TorNode *node, TorAttrKey key, int count,
                           const TorDim **dims, int *n) {
    const TorAttr *a;
    TOR_TRY(need_list(node, key, TOR_ATTR_DIMS, count, &a));
    if (key == TOR_ATTR_dims) {
        if (a->count > TOR_MAX_RANK)
            return tor_refuse("rank %d, at most %d is supported", a->count, TOR_MAX_RANK);
        for (int i = 0; i < a->count; ++i) {
            int64_t size;
            if (tor_int_known(g, a->dims[i], &size) && size < 0)
                return tor_invalid("attribute dims: item %d must not be negative, got %" PRId64, i,
                                   size);
        }
    }
    *dims = a->dims;
    if (n) *n = a->count;
    return TOROID_OK;
}

ToroidStatus tor_need_axis(const TorNode *node, int rank, int *axis) {
    const TorAttr *a = tor_attr(node, TOR_ATTR_axis);
    if (!a || a->kind != TOR_ATTR_INT)
        return tor_invalid("attribute axis is missing or no integer");
    if (a->i < 0 || a->i >= TOR_MAX(rank, 1))
        return tor_invalid("attribute axis must be in [0, %d), got %" PRId64, TOR_MAX(rank, 1),
                           a->i);
    *axis = (int)a->i;
    return TOROID_OK;
}

ToroidStatus tor_need_axes(const TorNode *node, int rank, const int64_t **axes, int *n,
                           uint32_t *mask) {
    TOR_TRY(tor_need_ints(node, TOR_ATTR_axes, -1, axes, n));
    *mask = 0;
    for (int i = 0; i < *n; ++i) {
        int64_t axis = (*axes)[i];
        if (axis < 0 || axis >= rank)
            return tor_invalid("attribute axes: item %d must be in [0, %d), got %" PRId64, i, rank,
                               axis);
        if (*mask & 1u << axis)
            return tor_invalid("attribute axes has axis %" PRId64 " twice", axis);
        *mask |= 1u << axis;
    }
    return TOROID_OK;
}

// ---------------------------------------------------------------- dims

bool tor_dims_clash(const TorGraph *g, TorDim a, TorDim b) {
    int64_t x, y;
    return a != b && tor_int_known(g, a, &x) && tor_int_known(g, b, &y) && x != y;
}

TorDim tor_dims_merge(const TorGraph *g, TorDim a, TorDim b) {
    int64_t value;
    return a != b && !tor_int_known(g, a, &value) && tor_int_known(g, b, &value) ? b : a;
}

bool tor_dims_numel(const TorGraph *g, const TorDim *dims, int rank, int64_t *numel) {
    int64_t result = 1, size;
    for (int i = 0; i < rank; ++i)
        if (!tor_int_known(g, dims[i], &size) || __builtin_mul_overflow(result, size, &result))
            return false;
    *numel = result;
    return true;
}

ToroidStatus tor_dims_broadcast(TorGraph *g, const TorDim *dims, int n, TorDim *out, int *rank) {
    if (n > *rank) {
        int shift = n - *rank;
        memmove(out + shift, out, (size_t)*rank * sizeof(*out));
        for (int i = 0; i < shift; ++i) out[i] = tor_int_const(g, 1);
        *rank = n;
    }
    for (int i = 0; i < n; ++i) {
        TorDim *to = &out[*rank - n + i];
        int64_t a, b;
        if (tor_int_known(g, *to, &a) && tor_int_known(g, dims[i], &b) && a != b && a != 1 &&
            b != 1)
            return tor_invalid("sizes %" PRId64 " and %" PRId64 " at dim %d do not broadcast", a, b,
                               *rank - n + i);
        *to = tor_int_binary(g, TOR_INT_broadcast, *to, dims[i]);
    }
    return g->failed ? tor_no_memory() : TOROID_OK;
}

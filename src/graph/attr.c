// Attributes of nodes: copies in the graph's arena, sorted by key, compared by content.
#include "graph/internal.h"

#include <string.h>

#include "base/hash.h"

const char *tor_attr_name(TorAttrKey key) {
    static const char *const names[] = {
#define X(name) #name,
        TOR_ATTRS(X)
#undef X
    };
    return (size_t)key < TOR_COUNT_OF(names) ? names[key] : "?";
}

unsigned tor_attr_keys(void) {
#define X(name) +1
    return 0 TOR_ATTRS(X);
#undef X
}

const TorAttr *tor_attr(const TorNode *node, TorAttrKey key) {
    for (int i = 0; i < node->n_attrs; ++i)
        if (node->attrs[i].key == key) return &node->attrs[i];
    return NULL;
}

int64_t tor_attr_int(const TorNode *node, TorAttrKey key, int64_t or_value) {
    const TorAttr *a = tor_attr(node, key);
    if (!a) return or_value;
    if (a->kind == TOR_ATTR_DTYPE) return a->dtype;
    return a->kind == TOR_ATTR_INT ? a->i : or_value;
}

double tor_attr_float(const TorNode *node, TorAttrKey key, double or_value) {
    const TorAttr *a = tor_attr(node, key);
    if (!a) return or_value;
    if (a->kind == TOR_ATTR_INT) return (double)a->i;
    if (a->kind == TOR_ATTR_SCALAR)
        return tor_dtype_is_float(a->scalar.dtype) ? a->scalar.f : (double)a->scalar.i;
    return a->kind == TOR_ATTR_FLOAT ? a->f : or_value;
}

const char *tor_attr_str(const TorNode *node, TorAttrKey key, const char *or_value) {
    const TorAttr *a = tor_attr(node, key);
    return a && a->kind == TOR_ATTR_STR ? a->str : or_value;
}

TorDtype tor_attr_dtype(const TorNode *node, TorDtype or_value) {
    const TorAttr *a = tor_attr(node, TOR_ATTR_dtype);
    return a && a->kind == TOR_ATTR_DTYPE ? a->dtype : or_value;
}

// Bytes behind the pointer of an attribute; 0 for those that hold their value themselves.
static size_t payload(const TorAttr *a) {
    switch (a->kind) {
        case TOR_ATTR_DIMS: return (size_t)a->count * sizeof(*a->dims);
        case TOR_ATTR_INTS: return (size_t)a->count * sizeof(*a->ints);
        case TOR_ATTR_STR: return strlen(a->str);
        case TOR_ATTR_BLOB: return (size_t)a->count;
        default: return 0;
    }
}

static bool points(TorAttrKind kind) {
    return kind == TOR_ATTR_DIMS || kind == TOR_ATTR_INTS || kind == TOR_ATTR_STR ||
           kind == TOR_ATTR_BLOB;
}

static ToroidStatus copy_attr(TorGraph *g, TorAttr *to, const TorAttr *from) {
    *to = *from;
    if (from->kind == TOR_ATTR_STR && !from->str) to->str = "";
    if (!points(from->kind)) return TOROID_OK;
    size_t bytes = payload(to);
    char *copy = tor_arena_alloc(g->arena, bytes + 1);  // + 1: strings end, and nothing is NULL
    if (!copy) return TOROID_NO_MEMORY;
    if (bytes) memcpy(copy, to->blob, bytes);
    to->blob = copy;
    return TOROID_OK;
}

ToroidStatus tor_attrs_copy(TorGraph *g, TorNode *node, const TorAttr *attrs, int n) {
    if (n == 0) return TOROID_OK;
    TorAttr *copy = tor_arena_alloc(g->arena, (size_t)n * sizeof(*copy));
    if (!copy) return TOROID_NO_MEMORY;
    for (int i = 0; i < n; ++i) {
        int at = i;
        for (; at > 0 && copy[at - 1].key > attrs[i].key; --at) copy[at] = copy[at - 1];
        if (at > 0 && copy[at - 1].key == attrs[i].key)
            return tor_invalid("%s: attribute %s is given twice", tor_op_name(node->op),
                               tor_attr_name(attrs[i].key));
        TOR_TRY(copy_attr(g, &copy[at], &attrs[i]));
    }
    node->attrs = copy;
    node->n_attrs = n;
    return TOROID_OK;
}

bool tor_attr_all(const TorNode *node, TorAttrKey key, int64_t value) {
    const TorAttr *a = tor_attr(node, key);
    for (int i = 0; a && i < a->count; i++)
        if (a->ints[i] != value) return false;
    return true;
}

ToroidStatus tor_attr_set(TorGraph *g, TorNode *node, TorAttr attr) {
    TorAttr *copy = tor_arena_alloc(g->arena, (size_t)(node->n_attrs + 1) * sizeof(*copy));
    if (!copy) return TOROID_NO_MEMORY;
    int n = 0, i = 0;
    for (; i < node->n_attrs && node->attrs[i].key < attr.key; ++i) copy[n++] = node->attrs[i];
    TOR_TRY(copy_attr(g, &copy[n++], &attr));
    if (i < node->n_attrs && node->attrs[i].key == attr.key) ++i;
    for (; i < node->n_attrs; ++i) copy[n++] = node->attrs[i];
    node->attrs = copy;
    node->n_attrs = n;
    return TOROID_OK;
}

// A scalar's bits, without the padding of the struct.
static uint64_t scalar_bits(TorScalar s) {
    uint64_t bits;
    memcpy(&bits, tor_dtype_is_float(s.dtype) ? (const void *)&s.f : (const void *)&s.i,
           sizeof(bits));
    return bits;
}

static uint64_t plain_bits(const TorAttr *a) {
    uint64_t bits = 0;
    switch (a->kind) {
        case TOR_ATTR_INT: return (uint64_t)a->i;
        case TOR_ATTR_FLOAT: memcpy(&bits, &a->f, sizeof(bits)); return bits;
        case TOR_ATTR_SCALAR: return scalar_bits(a->scalar);
        case TOR_ATTR_DTYPE: return (uint64_t)a->dtype;
        case TOR_ATTR_DIM: return a->dim;
        default: return 0;
    }
}

bool tor_attr_equal(const TorAttr *a, const TorAttr *b) {
    if (a->key != b->key || a->kind != b->kind) return false;
    if (a->kind == TOR_ATTR_SCALAR && a->scalar.dtype != b->scalar.dtype) return false;
    if (!points(a->kind)) return plain_bits(a) == plain_bits(b);
    size_t bytes = payload(a);
    return bytes == payload(b) && (bytes == 0 || memcmp(a->blob, b->blob, bytes) == 0);
}

uint64_t tor_attr_hash(const TorAttr *a) {
    uint64_t hash = tor_hash_add(a->key + 1, a->kind);
    if (!points(a->kind)) return tor_hash_add(hash, plain_bits(a));
    size_t bytes = payload(a);
    return tor_hash_memory(tor_hash_add(hash, bytes), a->blob, bytes);
}

// Splits what depends on frozen inputs alone off the graph: packing, folded batch norms,
// transposes, position tables. Each result is a small graph that runs when its sources change.
#include "passes/prologue.h"

#include <stdio.h>
#include <string.h>

#include "passes/passes.h"

typedef struct {
    const TorPrologue *prologue;
    TorGraph *from, *to;
    TorPrologueResult *result;
    const TorValue **old_value;  ///< parallel arrays: cloned values
    TorValue **new_value;
    size_t count, capacity, map_capacity;
} Clone;

// FNV-1a over two lanes with different offsets; the key identifies work, nobody attacks it.
static void hash_bytes(uint64_t key[2], const void *data, size_t bytes) {
    const unsigned char *p = data;
    for (size_t i = 0; i < bytes; i++) {
        key[0] = (key[0] ^ p[i]) * 1099511628211u;
        key[1] = (key[1] ^ (p[i] + 0x9eu)) * 1099511628211u + (key[1] >> 47);
    }
}

static void hash_int(uint64_t key[2], int64_t value) { hash_bytes(key, &value, sizeof value); }

static bool dims_known(const TorGraph *g, const TorDim *dims, int count) {
    int64_t value;
    for (int i = 0; i < count; i++)
        if (!tor_int_known(g, dims[i], &value)) return false;
    return true;
}

/// May the node run before any size is known?
static bool is_static(const TorGraph *g, const TorNode *node) {
    for (int i = 0; i < node->n_outputs; i++)
        if (!dims_known(g, node->outputs[i]->dim, node->outputs[i]->rank)) return false;
    for (int i = 0; i < node->n_attrs; i++) {
        const TorAttr *a = &node->attrs[i];
        if (a->kind == TOR_ATTR_DIM && !dims_known(g, &a->dim, 1)) return false;
        if (a->kind == TOR_ATTR_DIMS && !dims_known(g, a->dims, a->count)) return false;
    }
    return true;
}

/// Values marked frozen whose sizes are not known are not: their expression cannot be computed
/// ahead.
static void unmark_dynamic(TorGraph *g) {
    for (TorNode *node = g->first; node; node = node->next) {
        if (node->n_outputs == 0 || !node->outputs[0]->frozen) continue;
        bool fixed = is_static(g, node);
        for (int i = 0; i < node->n_inputs; i++) fixed &= tor_in(node, i)->frozen;
        for (int i = 0; i < node->n_outputs; i++) node->outputs[i]->frozen = fixed;
    }
}

static ToroidStatus remember(Clone *c, const TorValue *old, TorValue *new) {
    TOR_TRY(tor_grow((void **)&c->old_value, &c->capacity, c->count + 1, sizeof *c->old_value));
    TOR_TRY(tor_grow((void **)&c->new_value, &c->map_capacity, c->count + 1, sizeof *c->new_value));
    c->old_value[c->count] = old;
    c->new_value[c->count++] = new;
    return TOROID_OK;
}

static TorDim move_dim(const Clone *c, TorDim dim) {
    int64_t value = 0;
    tor_int_known(c->from, dim, &value);
    return tor_int_const(c->to, value);
}

/// By value: the same number has other positions in other graphs.
static void hash_dim(const Clone *c, TorDim dim) {
    int64_t value = -1;
    if (dim != TOR_NO_DIM) tor_int_known(c->from, dim, &value);
    hash_int(c->result->key, value);
}

static ToroidStatus clone_value(Clone *c, const TorValue *v, TorValue **out);

static ToroidStatus clone_source(Clone *c, const TorValue *v, TorValue **out) {
    TorPrologueResult *r = c->result;
    TorDim dims[TOR_MAX_RANK];
    char name[16];
    for (int d = 0; d < v->rank; d++) dims[d] = move_dim(c, v->dim[d]);
    snprintf(name, sizeof name, "w%u", r->n_sources);
    TOR_TRY(tor_graph_add_input(c->to, name, v->dtype, v->rank, dims, true, out));
    uint32_t number = (uint32_t)tor_attr_int(v->node, TOR_ATTR_index, 0);
    const TorInput *input = &c->from->inputs[number];
    TorInput *mine = &c->to->inputs[c->to->n_inputs - 1];
    mine->contiguous = input->contiguous;
    for (int d = 0; d < v->rank; d++) {
        mine->stride[d] =
            input->stride[d] == TOR_NO_DIM ? TOR_NO_DIM : move_dim(c, input->stride[d]);
        if (!input->contiguous) hash_dim(c, input->stride[d]);
    }
    uint32_t *grown = tor_alloc((r->n_sources + 1) * sizeof *grown);
    if (!grown) return tor_no_memory();
    if (r->n_sources) memcpy(grown, r->sources, r->n_sources * sizeof *grown);
    tor_free(r->sources);
    r->sources = grown;
    r->sources[r->n_sources++] = number;
    return TOROID_OK;
}

static ToroidStatus clone_node(Clone *c, const TorNode *node, TorNode **out) {
    TorValue *inputs[TOR_MAX_RANK + 64];
    TorAttr attrs[32];
    uint64_t *key = c->result->key;
    if (node->n_inputs > (int)TOR_COUNT_OF(inputs) || node->n_attrs > (int)TOR_COUNT_OF(attrs))
        return tor_refuse("prologue: %s has too many inputs", tor_op_name(node->op));
    for (int i = 0; i < node->n_inputs; i++) TOR_TRY(clone_value(c, tor_in(node, i), &inputs[i]));
    hash_int(key, node->op);
    for (int i = 0; i < node->n_inputs; i++) hash_int(key, inputs[i]->id);
    for (int i = 0; i < node->n_attrs; i++) {
        TorAttr *a = &attrs[i];
        *a = node->attrs[i];
        hash_int(key, a->key);
        switch (a->kind) {
            case TOR_ATTR_DIM:
                hash_dim(c, a->dim);
                a->dim = move_dim(c, a->dim);
                break;
            case TOR_ATTR_DIMS: {
                TorDim *dims = tor_arena_alloc(c->to->arena, (size_t)a->count * sizeof *dims + 1);
                if (!dims) return tor_no_memory();
                for (int d = 0; d < a->count; d++) {
                    dims[d] = move_dim(c, a->dims[d]);
                    hash_dim(c, a->dims[d]);
                }
                a->dims = dims;
                break;
            }
            case TOR_ATTR_INTS: hash_bytes(key, a->ints, (size_t)a->count * sizeof *a->ints); break;
            case TOR_ATTR_BLOB: hash_bytes(key, a->blob, (size_t)a->count); break;
            case TOR_ATTR_STR: hash_bytes(key, a->str, strlen(a->str)); break;
            case TOR_ATTR_SCALAR:
                hash_int(key, a->scalar.dtype);
                hash_int(key, a->scalar.i);
                break;
            case TOR_ATTR_FLOAT: hash_bytes(key, &a->f, sizeof a->f); break;
            case TOR_ATTR_DTYPE: hash_int(key, a->dtype); break;
            case TOR_ATTR_INT: hash_int(key, a->i); break;
        }
    }
    TOR_TRY(tor_graph_add(c->to, NULL, node->op, inputs, node->n_inputs, attrs, node->n_attrs,
                          node->n_outputs, out));
    for (int i = 0; i < node->n_outputs; i++) {
        TorValue *v = (*out)->outputs[i];
        const TorValue *old = node->outputs[i];
        if (v->rank != old->rank || v->dtype != old->dtype) {  // types that passes set
            TorDim dims[TOR_MAX_RANK];
            for (int d = 0; d < old->rank; d++) dims[d] = move_dim(c, old->dim[d]);
            tor_graph_set_type(v, old->dtype, old->rank, dims);
        }
    }
    return TOROID_OK;
}

static ToroidStatus clone_value(Clone *c, const TorValue *v, TorValue **out) {
    // An expression over an earlier result is computed from the tensors of the host again.
    for (size_t i = 0; v->node->op == TOR_OP_input && i < c->prologue->count; i++)
        if (c->prologue->results[i].value &&
            c->from->inputs[c->prologue->results[i].input].value == v)
            v = c->prologue->results[i].value;
    for (size_t i = 0; i < c->count; i++)
        if (c->old_value[i] == v) {
            *out = c->new_value[i];
            return TOROID_OK;
        }
    if (v->node->op == TOR_OP_input) {
        TOR_TRY(clone_source(c, v, out));
        hash_int(c->result->key, v->dtype);
        for (int d = 0; d < v->rank; d++) hash_dim(c, v->dim[d]);
        return remember(c, v, *out);
    }
    TorNode *node;
    TOR_TRY(clone_node(c, v->node, &node));
    for (int i = 0; i < node->n_outputs; i++)
        TOR_TRY(remember(c, v->node->outputs[i], node->outputs[i]));
    *out = node->outputs[v->index];
    return TOROID_OK;
}

/// The value to extract for `v`: views of it stay in the main graph. NULL: nothing to compute.
static TorValue *extractable(TorValue *v) {
    TorScalar number;
    while (tor_op_kind(v->node->op) == TOR_KIND_VIEW) v = tor_in(v->node, 0);
    if (v->node->op == TOR_OP_input || v->node->op == TOR_OP_constant ||
        tor_value_number(v, &number))
        return NULL;
    return v;
}

static ToroidStatus extract(TorGraph *g, TorPrologue *prologue, TorValue *v) {
    TOR_TRY(tor_grow((void **)&prologue->results, &prologue->capacity, prologue->count + 1,
                     sizeof *prologue->results));
    TorPrologueResult *r = &prologue->results[prologue->count++];
    memset(r, 0, sizeof *r);
    r->key[0] = 14695981039346656037u;
    r->key[1] = 0x84222325cbf29ce4u;
    TOR_TRY(tor_graph_create(&r->graph));
    r->graph->unguarded = g->unguarded;
    Clone c = {.prologue = prologue, .from = g, .to = r->graph, .result = r};
    TorValue *out, *input;
    ToroidStatus status = clone_value(&c, v, &out);
    tor_free(c.old_value);
    tor_free(c.new_value);
    TOR_TRY(status);
    hash_int(r->key, v->index);  // another result of the same node is another table entry
    int64_t into = -1;
    TOR_TRY(tor_graph_set_outputs(r->graph, &out, &into, 1));
    TOR_TRY(tor_graph_add_input(g, "prologue", v->dtype, v->rank, v->dim, true, &input));
    r->input = g->n_inputs - 1;
    g->inputs[r->input].contiguous = true;
    g->inputs[r->input].frozen_result = true;
    input->frozen = true;
    if (input->node != g->first) tor_graph_move_before(g, input->node, g->first);
    tor_value_replace(v, input);
    r->value = v;
    return TOROID_OK;
}

ToroidStatus tor_pass_prologue(TorGraph *g, TorPrologue *prologue) {
    unmark_dynamic(g);
    for (TorNode *node = g->first; node; node = node->next) {
        bool frozen = node->n_outputs > 0 && node->outputs[0]->frozen;
        if (frozen) continue;
        for (int i = 0; i < node->n_inputs; i++) {
            TorValue *v = tor_in(node, i)->frozen ? extractable(tor_in(node, i)) : NULL;
            if (v) TOR_TRY(extract(g, prologue, v));
        }
    }
    for (size_t i = 0; i < prologue->count; i++) prologue->results[i].value = NULL;
    return tor_pass_dce(g);
}

void tor_prologue_destroy(TorPrologue *prologue) {
    for (size_t i = 0; i < prologue->count; i++) {
        tor_graph_destroy(&prologue->results[i].graph);
        tor_free(prologue->results[i].sources);
    }
    tor_free(prologue->results);
    memset(prologue, 0, sizeof *prologue);
}

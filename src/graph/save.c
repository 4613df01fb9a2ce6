// A graph as bytes, before any pass: what load.c reads.
//
// Numbers are this machine's, enums are those of this build, whose hash comes first: bytes are for
// the same build on the same kind of machine. See save.h for the order of things.
#include "graph/save.h"

#include <string.h>

#include "base/text.h"
#include "graph/internal.h"

static void put(TorText *t, const void *bytes, size_t count) { tor_text_append(t, bytes, count); }
static void put_u8(TorText *t, unsigned value) { put(t, &(uint8_t){(uint8_t)value}, 1); }
static void put_u32(TorText *t, uint32_t value) { put(t, &value, sizeof value); }
static void put_i64(TorText *t, int64_t value) { put(t, &value, sizeof value); }

static void put_bytes(TorText *t, const void *bytes, size_t count) {
    put_u32(t, (uint32_t)count);
    put(t, bytes, count);
}

static void put_name(TorText *t, const char *name) {
    put_u8(t, name != NULL);
    if (name) put_bytes(t, name, strlen(name));
}

static void put_dims(TorText *t, const TorDim *dims, int count) {
    put(t, dims, (size_t)count * sizeof *dims);
}

static void put_ints(TorText *t, const TorGraph *g) {
    for (uint32_t i = 0; i < tor_int_count(g); i++) {
        const TorInt *x = &g->ints->items[i];
        put_u8(t, x->op);
        put_u8(t, g->ints->nonneg[i]);
        put_u32(t, x->a);
        put_u32(t, x->b);
        put_i64(t, x->op == TOR_INT_const ? x->value : 0);
    }
}

static void put_inputs(TorText *t, const TorGraph *g) {
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        const TorInput *input = &g->inputs[i];
        put_u8(t, input->kind);
        put_u8(t, input->frozen);
        put_u8(t, input->contiguous);
        put_dims(t, input->stride, TOR_MAX_RANK);
        put_name(t, input->name);
    }
}

static void put_attr(TorText *t, const TorAttr *a) {
    put_u8(t, a->key);
    put_u8(t, a->kind);
    switch (a->kind) {
        case TOR_ATTR_INT: put_i64(t, a->i); break;
        case TOR_ATTR_FLOAT: put(t, &a->f, sizeof a->f); break;
        case TOR_ATTR_SCALAR:
            put_u8(t, a->scalar.dtype);
            put_i64(t, a->scalar.i);  // the bits, of a float too
            break;
        case TOR_ATTR_DTYPE: put_u8(t, a->dtype); break;
        case TOR_ATTR_DIM: put_u32(t, a->dim); break;
        case TOR_ATTR_DIMS: put_bytes(t, a->dims, (size_t)a->count * sizeof *a->dims); break;
        case TOR_ATTR_INTS: put_bytes(t, a->ints, (size_t)a->count * sizeof *a->ints); break;
        case TOR_ATTR_STR: put_bytes(t, a->str, strlen(a->str)); break;
        case TOR_ATTR_BLOB: put_bytes(t, a->blob, (size_t)a->count); break;
    }
}

static ToroidStatus put_node(TorText *t, const TorNode *node) {
    put_u32(t, node->op);
    put_u32(t, node->id);
    put_u32(t, (uint32_t)node->n_inputs);
    put_u32(t, (uint32_t)node->n_outputs);
    put_u32(t, (uint32_t)node->n_attrs);
    put_name(t, node->origin);
    for (int i = 0; i < node->n_inputs; i++) put_u32(t, tor_in(node, i)->id);
    for (int i = 0; i < node->n_attrs; i++) put_attr(t, &node->attrs[i]);
    for (int i = 0; i < node->n_outputs; i++) {
        const TorValue *v = node->outputs[i];
        if (v->has_layout) return tor_invalid("save: the layout pass has run on the graph");
        put_u32(t, v->id);
        put_u8(t, v->dtype);
        put_u8(t, (unsigned)v->rank);
        put_u8(t, v->frozen);
        put_dims(t, v->dim, v->rank);
    }
    return TOROID_OK;
}

static void put_outputs(TorText *t, const TorGraph *g) {
    put_u8(t, g->output != NULL);
    if (!g->output) return;
    int count = g->output->n_inputs;
    put(t, g->output_memory, (size_t)count * sizeof *g->output_memory);
    put_u8(t, g->output_layouts != NULL);
    for (int i = 0; g->output_layouts && i < count; i++) {
        const TorOutputLayout *layout = &g->output_layouts[i];
        int rank = tor_in(g->output, i)->rank;
        put_u8(t, layout->given);
        put_u8(t, layout->exact);
        if (layout->given && layout->exact) put_dims(t, layout->stride, rank);
        for (int d = 0; layout->given && !layout->exact && d < rank; d++)
            put_u8(t, (unsigned)layout->order[d]);
    }
}

ToroidStatus tor_graph_save(const TorGraph *g, char **bytes, size_t *count) {
    TorText t = {0};
    uint32_t n_nodes = 0;
    *bytes = NULL;
    *count = 0;
    if (g->failed) return tor_no_memory();
    for (const TorNode *node = g->first; node; node = node->next) n_nodes++;
    put(&t, tor_build_hash(), TOR_BUILD_HASH);
    put_u32(&t, tor_int_count(g));
    put_u32(&t, g->n_inputs);
    put_u32(&t, n_nodes);
    put_u32(&t, g->next_value);
    put_u32(&t, g->next_node);
    put_u8(&t, g->unguarded);
    put_ints(&t, g);
    put_inputs(&t, g);
    ToroidStatus status = TOROID_OK;
    for (const TorNode *node = g->first; node && status == TOROID_OK; node = node->next)
        status = put_node(&t, node);
    put_outputs(&t, g);
    size_t length = t.length;
    if (status != TOROID_OK) {
        tor_free(t.text);
        return status;
    }
    TOR_TRY(tor_text_finish(&t, bytes));
    *count = length;
    return TOROID_OK;
}

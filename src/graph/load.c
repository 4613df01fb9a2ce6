// A graph from the bytes that save.c wrote.
//
// Every count is compared with the bytes that are left before anything is allocated for it, every
// number that names something with what there is to name; the verifier does the rest.
#include <string.h>

#include "base/program.h"
#include "graph/internal.h"
#include "graph/save.h"

typedef struct {
    const uint8_t *at, *end;
    TorGraph *g;
    TorValue **values;  ///< by id
    uint32_t n_ints, n_inputs, n_nodes;
    ToroidStatus status;  ///< the first failure; reading goes on with zeros
} Reader;

static void fail(Reader *r, ToroidStatus status) {
    if (r->status == TOROID_OK) r->status = status;
    r->at = r->end;
}

static void spoilt(Reader *r, const char *what) {
    if (r->status == TOROID_OK) fail(r, tor_invalid("load: %s", what));
}

static size_t left(const Reader *r) { return (size_t)(r->end - r->at); }

static void get(Reader *r, void *out, size_t count) {
    if (left(r) < count) {
        spoilt(r, "the bytes end early");
        memset(out, 0, count);
        return;
    }
    if (count) memcpy(out, r->at, count);
    r->at += count;
}

static uint32_t get_u32(Reader *r) {
    uint32_t value;
    get(r, &value, sizeof value);
    return value;
}

static int64_t get_i64(Reader *r) {
    int64_t value;
    get(r, &value, sizeof value);
    return value;
}

/// A byte that is less than `end`.
static unsigned get_below(Reader *r, unsigned end, const char *what) {
    uint8_t value;
    get(r, &value, 1);
    if (value < end) return value;
    spoilt(r, what);
    return 0;
}

static bool get_flag(Reader *r) { return get_below(r, 2, "a flag is neither 0 nor 1"); }

/// A number of things that take at least `each` bytes.
static uint32_t get_count(Reader *r, size_t each) {
    uint32_t count = get_u32(r);
    if (count <= left(r) / each) return count;
    spoilt(r, "there are fewer bytes than it says");
    return 0;
}

static void *room(Reader *r, size_t bytes) {
    void *memory = tor_arena_alloc(r->g->arena, bytes + 1);
    if (!memory) fail(r, tor_no_memory());
    return memory;
}

/// Bytes with their number before them, with a 0 behind; aligned for anything.
static void *get_bytes(Reader *r, size_t *count) {
    *count = get_count(r, 1);
    char *bytes = room(r, *count);
    if (!bytes) return NULL;
    get(r, bytes, *count);
    bytes[*count] = 0;
    return bytes;
}

static const char *get_string(Reader *r) {
    size_t count;
    const char *text = get_bytes(r, &count);
    if (text && strlen(text) != count) spoilt(r, "a text has a 0 in it");
    return text;
}

static const char *get_name(Reader *r) { return get_flag(r) ? get_string(r) : NULL; }

static void get_dims(Reader *r, TorDim *dims, int count) {
    get(r, dims, (size_t)count * sizeof *dims);
    for (int i = 0; i < count; i++)
        if (dims[i] >= r->n_ints) spoilt(r, "a dim is no integer of the graph");
}

// ---------------------------------------------------------------- integers and inputs

static void get_int(Reader *r, uint32_t number) {
    TorInt x = {.op = get_below(r, TOR_INT_le + 1, "an integer has no op")};
    bool nonneg = get_flag(r);
    x.a = get_u32(r);
    x.b = get_u32(r);
    x.value = get_i64(r);
    int what;
    bool made = x.op != TOR_INT_const && !tor_int_asks(&x, &what);
    if (made && (x.a >= number || x.b >= number))
        spoilt(r, "an integer is made of one that comes later");
    if (x.op == TOR_INT_const && (nonneg != (x.value >= 0) || x.a || x.b))
        spoilt(r, "a constant says wrong things of itself");
    if (x.op != TOR_INT_const && x.value) spoilt(r, "an integer that is no constant has a value");
    if (r->status == TOROID_OK) {
        ToroidStatus status = tor_int_restore(r->g, &x, nonneg);
        if (status != TOROID_OK) fail(r, status);
    }
}

/// What integers ask of inputs, there is to ask.
static void check_asked(Reader *r) {
    for (uint32_t i = 0; i < tor_int_count(r->g) && r->status == TOROID_OK; i++) {
        const TorInt *x = tor_int_get(r->g, i);
        int what;
        if (!tor_int_asks(x, &what)) continue;
        const TorInput *input = x->a < r->g->n_inputs ? &r->g->inputs[x->a] : NULL;
        bool number = x->op == TOR_INT_scalar;
        if (!input || (input->kind == TOR_INPUT_INT) != number)
            spoilt(r, "an integer asks what no input knows");
        else if ((x->op == TOR_INT_size || x->op == TOR_INT_stride) &&
                 x->b >= (uint32_t)input->value->rank)
            spoilt(r, "an integer asks for a dim that its input lacks");
    }
}

static void get_inputs(Reader *r) {
    TorGraph *g = r->g;
    void *inputs = NULL;
    ToroidStatus status =
        tor_grow(&inputs, &g->input_capacity, r->n_inputs + (size_t)1, sizeof *g->inputs);
    if (status != TOROID_OK) {
        fail(r, status);
        return;
    }
    g->inputs = inputs;
    for (; g->n_inputs < r->n_inputs && r->status == TOROID_OK; g->n_inputs++) {
        TorInput *input = &g->inputs[g->n_inputs];
        *input = (TorInput){.kind = get_below(r, TOR_INPUT_INT + 1, "an input has no kind")};
        input->frozen = get_flag(r);
        input->contiguous = get_flag(r);
        get(r, input->stride, sizeof input->stride);
        input->name = get_name(r);
        for (int d = 0; d < TOR_MAX_RANK; d++)
            if (input->stride[d] != TOR_NO_DIM && input->stride[d] >= r->n_ints)
                spoilt(r, "an input's stride is no integer of the graph");
    }
}

/// The table of inputs refers to the nodes.
static void note_input(Reader *r, const TorNode *node) {
    int64_t index = tor_attr_int(node, TOR_ATTR_index, -1);
    TorInput *input = index >= 0 && index < r->g->n_inputs ? &r->g->inputs[index] : NULL;
    if (!input || input->kind != TOR_INPUT_TENSOR || input->value || node->n_outputs != 1)
        spoilt(r, "a node names no input of its own");
    else
        input->value = node->outputs[0];
}

// ---------------------------------------------------------------- nodes

/// Items of a list, whose bytes have to be a multiple of one's.
static const void *get_list(Reader *r, size_t each, int *count) {
    size_t bytes;
    const void *items = get_bytes(r, &bytes);
    if (bytes % each || bytes / each > INT32_MAX) spoilt(r, "a list has a part of an item");
    *count = (int)(bytes / each);
    return items;
}

static void check_program(Reader *r, const TorAttr *a) {
    if (a->key != TOR_ATTR_program && a->key != TOR_ATTR_epilogue) return;
    if (!a->blob || a->count != sizeof(TorProgram)) {
        spoilt(r, "a program has not the size of one");
        return;
    }
    ToroidStatus status = tor_program_verify(a->blob);
    if (status != TOROID_OK) fail(r, status);
}

static void get_attr(Reader *r, TorAttr *a) {
    memset(a, 0, sizeof *a);
    a->key = get_below(r, tor_attr_keys(), "an attribute has no key");
    a->kind = get_below(r, TOR_ATTR_BLOB + 1, "an attribute has no kind");
    switch (a->kind) {
        case TOR_ATTR_INT: a->i = get_i64(r); break;
        case TOR_ATTR_FLOAT: get(r, &a->f, sizeof a->f); break;
        case TOR_ATTR_SCALAR:
            a->scalar.dtype = get_below(r, TOR_DTYPE_COUNT, "a number has no dtype");
            a->scalar.i = get_i64(r);
            break;
        case TOR_ATTR_DTYPE: a->dtype = get_below(r, TOR_DTYPE_COUNT, "no dtype"); break;
        case TOR_ATTR_DIM: get_dims(r, &a->dim, 1); break;
        case TOR_ATTR_DIMS: a->dims = get_list(r, sizeof *a->dims, &a->count); break;
        case TOR_ATTR_INTS: a->ints = get_list(r, sizeof *a->ints, &a->count); break;
        case TOR_ATTR_STR: a->str = get_string(r); break;
        case TOR_ATTR_BLOB:
            a->blob = get_list(r, 1, &a->count);
            check_program(r, a);
            break;
    }
}

static void get_attrs(Reader *r, TorNode *node, uint32_t count) {
    TorAttr *attrs = room(r, count * sizeof *attrs);
    for (uint32_t i = 0; attrs && i < count; i++) get_attr(r, &attrs[i]);
    if (r->status != TOROID_OK) return;
    ToroidStatus status = tor_attrs_copy(r->g, node, attrs, (int)count);
    if (status != TOROID_OK) fail(r, status);
}

static TorValue *get_value(Reader *r, TorNode *node, int index) {
    TorValue *v = room(r, sizeof *v);
    if (!v) return NULL;
    v->node = node;
    v->index = index;
    v->id = get_u32(r);
    v->dtype = get_below(r, TOR_DTYPE_COUNT, "a value has no dtype");
    v->rank = (int)get_below(r, TOR_MAX_RANK + 1, "a value has too many dims");
    v->frozen = get_flag(r);
    get_dims(r, v->dim, v->rank);
    if (v->id >= r->g->next_value || r->values[v->id])
        spoilt(r, "a value's id is not its own");
    else
        r->values[v->id] = v;
    return v;
}

static void get_node(Reader *r) {
    TorNode *node = room(r, sizeof *node);
    if (!node) return;
    node->op = get_u32(r);
    node->id = get_u32(r);
    uint32_t n_inputs = get_count(r, 1), n_outputs = get_count(r, 1), n_attrs = get_count(r, 1);
    if ((unsigned)node->op >= TOR_OP_COUNT) spoilt(r, "a node has no op");
    node->origin = get_name(r);
    node->inputs = room(r, n_inputs * sizeof *node->inputs);
    node->outputs = room(r, n_outputs * sizeof(TorValue *));
    for (uint32_t i = 0; i < n_inputs && r->status == TOROID_OK; i++) {
        uint32_t id = get_u32(r);
        if (id >= r->g->next_value || !r->values[id]) {
            spoilt(r, "a node's operand comes later");
            return;
        }
        node->inputs[node->n_inputs++] = (TorUse){.value = r->values[id], .user = node};
    }
    get_attrs(r, node, n_attrs);
    for (uint32_t i = 0; i < n_outputs && r->status == TOROID_OK; i++)
        node->outputs[node->n_outputs++] = get_value(r, node, (int)i);
    if (r->status != TOROID_OK) return;
    for (int i = 0; i < node->n_inputs; i++) tor_use_link(&node->inputs[i], node->inputs[i].value);
    tor_node_link(r->g, node, NULL);
    if (node->op == TOR_OP_input) note_input(r, node);
}

// ---------------------------------------------------------------- outputs

static void get_layouts(Reader *r) {
    TorGraph *g = r->g;
    size_t count = (size_t)g->output->n_inputs;
    g->output_layouts = room(r, count * sizeof *g->output_layouts);
    for (size_t i = 0; i < count && r->status == TOROID_OK; i++) {
        bool given = get_flag(r), exact = get_flag(r);
        int rank = tor_in(g->output, (int)i)->rank, order[TOR_MAX_RANK];
        TorDim stride[TOR_MAX_RANK];
        if (given && exact) get_dims(r, stride, rank);
        for (int d = 0; given && !exact && d < rank; d++)
            order[d] = (int)get_below(r, TOR_MAX_RANK, "an output's order names no dim");
        if (r->status != TOROID_OK) return;
        ToroidStatus status = tor_graph_set_output_layout(g, (int)i, given && exact ? stride : NULL,
                                                          given && !exact ? order : NULL);
        if (status != TOROID_OK) fail(r, status);
    }
}

static void get_outputs(Reader *r) {
    TorGraph *g = r->g;
    if (!get_flag(r)) return;
    if (!g->last || g->last->op != TOR_OP_output) {
        spoilt(r, "the last node is not the output");
        return;
    }
    g->output = g->last;
    size_t count = (size_t)g->output->n_inputs;
    g->output_memory = room(r, count * sizeof *g->output_memory);
    if (!g->output_memory) return;
    get(r, g->output_memory, count * sizeof *g->output_memory);
    for (size_t i = 0; i < count && r->status == TOROID_OK; i++)
        if (g->output_memory[i] >= g->next_value)  // a value that is gone is still told from others
            spoilt(r, "an output shows no value's memory");
    if (get_flag(r)) get_layouts(r);
}

// ----------------------------------------------------------------

static void get_graph(Reader *r) {
    enum { INT = 18, INPUT = 4 + TOR_MAX_RANK * sizeof(TorDim), NODE = 21, MOST_IDS = 1 << 24 };
    TorGraph *g = r->g;
    r->n_ints = get_count(r, INT);
    r->n_inputs = get_count(r, INPUT);
    r->n_nodes = get_count(r, NODE);
    g->next_value = get_u32(r);
    g->next_node = get_u32(r);
    g->unguarded = get_flag(r);
    if (g->next_value > MOST_IDS || g->next_node > MOST_IDS) spoilt(r, "ids are too large");
    if (r->status != TOROID_OK) return;
    r->values = tor_alloc_zero((g->next_value + (size_t)1) * sizeof *r->values);
    if (!r->values) fail(r, tor_no_memory());
    for (uint32_t i = 0; i < r->n_ints && r->status == TOROID_OK; i++) get_int(r, i);
    if (r->status == TOROID_OK) get_inputs(r);
    for (uint32_t i = 0; i < r->n_nodes && r->status == TOROID_OK; i++) get_node(r);
    for (uint32_t i = 0; i < g->n_inputs && r->status == TOROID_OK; i++)
        if (g->inputs[i].kind == TOR_INPUT_TENSOR && !g->inputs[i].value)
            spoilt(r, "an input has no node");
    if (r->status == TOROID_OK) get_outputs(r);
    if (r->status == TOROID_OK && left(r)) spoilt(r, "bytes are left");
    check_asked(r);
}

ToroidStatus tor_graph_load(TorGraph **out, const void *bytes, size_t count) {
    *out = NULL;
    const uint8_t *start = bytes;
    if (count < TOR_BUILD_HASH || memcmp(start, tor_build_hash(), TOR_BUILD_HASH))
        return tor_refuse("load: another build of Toroid wrote the graph");
    Reader r = {.at = start + TOR_BUILD_HASH, .end = start + count};
    TOR_TRY(tor_graph_create(&r.g));
    get_graph(&r);
    tor_free(r.values);
    if (r.status == TOROID_OK) r.status = tor_graph_verify(r.g);
    if (r.status != TOROID_OK) tor_graph_destroy(&r.g);
    *out = r.g;
    return r.status;
}

// Pointwise chains move into the kernel that makes their input: linear, matmul and conv run a
// program on each tile while it is in the cache.
#include <string.h>

#include "passes/passes.h"
#include "passes/program_builder.h"

enum { MAX_CHAIN = 24 };

typedef struct {
    TorGraph *g;
    TorNode *producer;
    TorNode *member[MAX_CHAIN];
    int count;
} Chain;

static bool in_chain(const Chain *c, const TorNode *node) {
    for (int i = 0; i < c->count; i++)
        if (c->member[i] == node) return true;
    return false;
}

static bool from_chain(const Chain *c, const TorValue *v) {
    return v == c->producer->outputs[0] || in_chain(c, v->node);
}

/// Can the kernel read `v` as an operand over [rows, columns] of the result?
static bool operand_fits(const Chain *c, const TorValue *v) {
    const TorGraph *g = c->g;
    const TorValue *out = c->producer->outputs[0];
    TorScalar number;
    if (tor_value_number(v, &number) || tor_value_same_dims(v, out)) return true;
    int column = c->producer->op == TOR_OP_conv ? 1 : out->rank - 1;
    int extra = out->rank - v->rank;
    if (extra < 0) return false;
    for (int d = 0; d < v->rank; d++) {
        if (tor_int_is(g, v->dim[d], 1)) continue;
        if (d + extra != column || v->dim[d] != out->dim[column]) return false;
    }
    return true;
}

static bool joins(const Chain *c, const TorNode *node) {
    if (tor_op_kind(node->op) != TOR_KIND_MAP ||
        !tor_value_same_dims(node->outputs[0], c->producer->outputs[0]))
        return false;
    bool linked = false;
    for (int i = 0; i < node->n_inputs; i++) {
        const TorValue *v = tor_in(node, i);
        if (from_chain(c, v))
            linked = true;
        else if (!operand_fits(c, v))
            return false;
    }
    return linked;
}

/// The one value that nodes outside the first `count` members read; NULL if there are more.
static TorValue *escaping(const Chain *c, int count) {
    Chain prefix = *c;
    prefix.count = count;
    TorValue *only = NULL;
    for (int i = -1; i < count; i++) {
        TorValue *v = i < 0 ? c->producer->outputs[0] : c->member[i]->outputs[0];
        bool out = false;
        for (const TorUse *use = v->uses; use; use = use->next)
            out |= !in_chain(&prefix, use->user);
        if (!out) continue;
        if (only) return NULL;
        only = v;
    }
    return only;
}

static ToroidStatus build(TorProgramBuilder *b, const Chain *c, TorValue *result) {
    tor_builder_begin(b, c->g);
    tor_builder_accumulator(b, c->producer->outputs[0]);
    for (int i = 0; i < c->count; i++) TOR_TRY(tor_builder_node(b, c->member[i]));
    return tor_builder_output(b, result, false);
}

/// Replaces producer and chain by one node where the chain's last member stands.
static ToroidStatus rewrite(Chain *c, TorValue *result) {
    TorProgramBuilder b;
    ToroidStatus status = build(&b, c, result);
    if (status == TOROID_UNSUPPORTED) return TOROID_OK;
    TOR_TRY(status);
    TorNode *p = c->producer, *fused;
    TorValue *inputs[TOR_PROGRAM_INPUTS + 3];
    int n = p->n_inputs, bias = n > 2;
    for (int i = 0; i < n; i++) inputs[i] = tor_in(p, i);
    for (int i = 1; i < b.program.n_inputs; i++) inputs[n + i - 1] = b.input[i];
    TorAttr attrs[32];
    int n_attrs = 0;
    for (; n_attrs < p->n_attrs; n_attrs++) attrs[n_attrs] = p->attrs[n_attrs];
    attrs[n_attrs++] = TOR_A_BLOB(epilogue, &b.program, sizeof b.program);
    attrs[n_attrs++] = TOR_A_INT(has_bias, bias);
    TOR_TRY(tor_graph_add(c->g, c->member[c->count - 1], p->op, inputs, n + b.program.n_inputs - 1,
                          attrs, n_attrs, 1, &fused));
    fused->origin = p->origin;
    tor_graph_set_type(fused->outputs[0], result->dtype, result->rank, result->dim);
    tor_value_replace(result, fused->outputs[0]);
    for (int i = c->count - 1; i >= 0; i--) tor_graph_remove(c->g, c->member[i]);
    tor_graph_remove(c->g, p);
    return TOROID_OK;
}

static ToroidStatus fuse_into(TorGraph *g, TorNode *producer) {
    Chain c = {.g = g, .producer = producer};
    int best = 0;
    TorValue *result = NULL;
    // Users in execution order: the nearest node that reads the chain, again and again.
    for (TorNode *node = producer->next; node && c.count < MAX_CHAIN; node = node->next) {
        bool reads = false;
        for (int i = 0; i < node->n_inputs; i++) reads |= from_chain(&c, tor_in(node, i));
        if (!reads) continue;
        if (!joins(&c, node)) break;
        c.member[c.count++] = node;
        TorValue *escape = escaping(&c, c.count);
        if (escape == node->outputs[0]) {
            best = c.count;
            result = escape;
        }
    }
    if (!best) return TOROID_OK;
    c.count = best;
    return rewrite(&c, result);
}

ToroidStatus tor_pass_fuse_epilogue(TorGraph *g) {
    for (TorNode *node = g->first, *next; node; node = next) {
        next = node->next;
        bool takes =
            node->op == TOR_OP_linear || node->op == TOR_OP_matmul || node->op == TOR_OP_conv;
        if (!takes || tor_attr(node, TOR_ATTR_epilogue) || node->outputs[0]->dtype != TOR_float32)
            continue;
        // The node after this one survives unless it is part of the chain; restart from the node
        // before.
        TorNode *before = node->prev;
        TOR_TRY(fuse_into(g, node));
        next = before ? before->next : g->first;
        if (next == node) next = node->next;
    }
    return TOROID_OK;
}

// What pointwise nodes, reductions, softmax and norms are left become programs: a group of nodes
// over one index space, with at most one set of row axes, is one pass over memory.
//
// Groups grow from consumers to producers: a producer joins when all its readers are inside, so a
// group never hides a value that others need and never makes a cycle.
#include <string.h>

#include "passes/passes.h"
#include "passes/program_builder.h"

enum { MAX_GROUP = 32, MAX_COST = TOR_PROGRAM_INSTRS - 2, MAX_INPUTS = TOR_PROGRAM_INPUTS - 1 };

typedef struct {
    TorGraph *g;
    const uint32_t *position;  ///< of nodes in execution order, by id
    TorNode *member[MAX_GROUP];
    int count, cost;
    int rank;
    TorDim dim[TOR_MAX_RANK];  ///< the index space
    uint32_t axes;             ///< row axes; 0: none
    bool fixed;                ///< the seed works along them (a reduction over no axis: along none)
    int reductions;
} Group;

static bool fusable(const TorNode *node) {
    TorOpKind kind = tor_op_kind(node->op);
    return kind == TOR_KIND_MAP || kind == TOR_KIND_REDUCE || kind == TOR_KIND_ROW;
}

static bool has(const Group *group, const TorNode *node) {
    for (int i = 0; i < group->count; i++)
        if (group->member[i] == node) return true;
    return false;
}

static bool all_readers_inside(const Group *group, const TorNode *node) {
    for (const TorUse *use = node->outputs[0]->uses; use; use = use->next)
        if (!has(group, use->user)) return false;
    return true;
}

/// The axes that a REDUCE or ROW node works along, as a mask over its input's dims.
static uint32_t node_axes(const TorNode *node) {
    const TorValue *in = tor_in(node, 0);
    uint32_t mask = 0;
    if (node->op == TOR_OP_layer_norm || node->op == TOR_OP_rms_norm) {
        int count = (int)tor_attr_int(node, TOR_ATTR_count, 1);
        for (int d = in->rank - count; d < in->rank; d++) mask |= 1u << d;
    } else if (tor_op_kind(node->op) == TOR_KIND_ROW) {
        mask = 1u << tor_attr_int(node, TOR_ATTR_axis, 0);
    } else {
        const TorAttr *axes = tor_attr(node, TOR_ATTR_axes);
        for (int i = 0; axes && i < axes->count; i++) mask |= 1u << axes->ints[i];
    }
    return mask;
}

static int node_reductions(const TorNode *node) {
    switch (tor_op_kind(node->op)) {
        case TOR_KIND_MAP: return 0;
        case TOR_KIND_REDUCE: return node->op == TOR_OP_mean || node->op == TOR_OP_var ? 2 : 1;
        default: return node->op == TOR_OP_layer_norm ? 1 : 2;
    }
}

static bool same_space(const Group *group, const TorValue *v) {
    if (v->rank != group->rank) return false;
    for (int d = 0; d < v->rank; d++)
        if (v->dim[d] != group->dim[d]) return false;
    return true;
}

static int outside_inputs(const Group *group) {
    const TorValue *seen[MAX_GROUP * 3];
    int count = 0;
    for (int i = 0; i < group->count; i++)
        for (int k = 0; k < group->member[i]->n_inputs; k++) {
            const TorValue *v = tor_in(group->member[i], k);
            TorScalar number;
            if (has(group, v->node) || tor_value_number(v, &number)) continue;
            int at = 0;
            while (at < count && seen[at] != v) at++;
            if (at == count) seen[count++] = v;
        }
    return count;
}

/// May this group use a value of row shape that `node` makes: a chain of maps on numbers that ends
/// in reductions over the group's space? Collects the chain; *axes are the reductions' axes.
static bool row_chain(const Group *group, TorNode *node, uint32_t *axes, TorNode **chain,
                      int *count) {
    for (int i = 0; i < *count; i++)
        if (chain[i] == node) return true;
    if (!fusable(node) || *count == 8) return false;
    if (tor_op_kind(node->op) == TOR_KIND_REDUCE) {
        uint32_t mine = node_axes(node);
        if (!tor_attr_int(node, TOR_ATTR_keepdim, 0) || !mine ||
            !same_space(group, tor_in(node, 0)))
            return false;
        if (*axes && *axes != mine) return false;
        *axes = mine;
    } else if (tor_op_kind(node->op) == TOR_KIND_MAP) {
        bool linked = false;
        for (int i = 0; i < node->n_inputs; i++) {
            TorScalar number;
            if (tor_value_number(tor_in(node, i), &number)) continue;
            if (tor_in(node, i)->rank != group->rank ||
                !row_chain(group, tor_in(node, i)->node, axes, chain, count))
                return false;
            linked = true;
        }
        if (!linked) return false;
    } else {
        return false;
    }
    chain[(*count)++] = node;
    return true;
}

static bool chain_is_private(const Group *group, TorNode **chain, int count) {
    for (int i = 0; i < count; i++)
        for (const TorUse *use = chain[i]->outputs[0]->uses; use; use = use->next) {
            bool inside = has(group, use->user);
            for (int k = 0; k < count; k++) inside |= chain[k] == use->user;
            if (!inside) return false;
        }
    return true;
}

static bool try_add(Group *group, TorNode **nodes, int count, uint32_t axes) {
    Group old = *group;
    for (int i = 0; i < count; i++) {
        if (has(group, nodes[i])) continue;
        if (group->count == MAX_GROUP) goto undo;
        group->member[group->count++] = nodes[i];
        group->cost += tor_builder_cost(nodes[i]);
        group->reductions += node_reductions(nodes[i]);
    }
    if (axes) group->axes = axes;
    if (group->cost <= MAX_COST && group->reductions <= TOR_PROGRAM_REDUCTIONS &&
        outside_inputs(group) <= MAX_INPUTS)
        return true;
undo:
    *group = old;
    return false;
}

static bool absorb(Group *group, TorNode *p) {
    if (!fusable(p) || has(group, p)) return false;
    TorOpKind kind = tor_op_kind(p->op);
    const TorValue *out = p->outputs[0];
    if (kind != TOR_KIND_REDUCE && same_space(group, out)) {
        if (!all_readers_inside(group, p)) return false;
        uint32_t axes = kind == TOR_KIND_ROW ? node_axes(p) : 0;
        if (axes && axes != group->axes && (group->axes || group->fixed)) return false;
        return try_add(group, &p, 1, axes);
    }
    TorNode *chain[8];
    int count = 0;
    uint32_t axes = group->axes;
    if (out->rank != group->rank || !row_chain(group, p, &axes, chain, &count)) return false;
    if (group->fixed && axes != group->axes) return false;
    return chain_is_private(group, chain, count) && try_add(group, chain, count, axes);
}

static void grow(Group *group) {
    for (int i = 0; i < group->count; i++)
        for (int k = 0; k < group->member[i]->n_inputs; k++)
            // A new member may make a producer private that was not before: start over.
            if (absorb(group, tor_in(group->member[i], k)->node)) {
                i = -1;
                break;
            }
}

static ToroidStatus build(TorProgramBuilder *b, Group *group, const TorNode *seed) {
    // Members in execution order.
    for (int i = 1; i < group->count; i++) {
        TorNode *node = group->member[i];
        int k = i;
        for (; k > 0 && group->position[group->member[k - 1]->id] > group->position[node->id]; k--)
            group->member[k] = group->member[k - 1];
        group->member[k] = node;
    }
    tor_builder_begin(b, group->g);
    for (int i = 0; i < group->count; i++) TOR_TRY(tor_builder_node(b, group->member[i]));
    return tor_builder_output(b, seed->outputs[0], tor_op_kind(seed->op) == TOR_KIND_REDUCE);
}

static ToroidStatus rewrite(Group *group, TorNode *seed) {
    TorProgramBuilder b;
    ToroidStatus status = build(&b, group, seed);
    if (status == TOROID_UNSUPPORTED && group->count > 1) {
        group->count = 1;  // the seed alone always fits
        group->member[0] = seed;
        group->axes = tor_op_kind(seed->op) == TOR_KIND_MAP ? 0 : node_axes(seed);
        status = build(&b, group, seed);
    }
    TOR_TRY(status);
    int64_t axes[TOR_MAX_RANK];
    int n_axes = 0;
    for (int d = 0; d < group->rank; d++)
        if (group->axes >> d & 1) axes[n_axes++] = d;
    TorAttr attrs[] = {
        TOR_A_BLOB(program, &b.program, sizeof b.program),
        TOR_A_DIMS(dims, group->dim, group->rank),
        TOR_A_INTS(axes, axes, n_axes),
    };
    TorNode *fused;
    TOR_TRY(tor_graph_add(group->g, seed, TOR_OP_fused, b.input, b.program.n_inputs, attrs, 3, 1,
                          &fused));
    const TorValue *out = seed->outputs[0];
    fused->origin = seed->origin;
    tor_graph_set_type(fused->outputs[0], out->dtype, out->rank, out->dim);
    tor_value_replace(seed->outputs[0], fused->outputs[0]);
    for (int i = group->count - 1; i >= 0; i--) tor_graph_remove(group->g, group->member[i]);
    return TOROID_OK;
}

/// Makes programs of all fusable nodes: of groups of them, or of each by itself.
static ToroidStatus make_programs(TorGraph *g, bool groups) {
    uint32_t *position = tor_arena_alloc(g->arena, ((size_t)g->next_node + 1) * sizeof *position),
             at = 0;
    if (!position) return tor_no_memory();
    uint32_t known = g->next_node;
    for (TorNode *node = g->first; node; node = node->next) position[node->id] = at++;
    for (TorNode *node = g->last, *before; node; node = before) {
        before = node->prev;
        TorNode *after = node->next;
        if (!fusable(node) || node->id >= known) continue;
        Group group = {.g = g,
                       .position = position,
                       .member = {node},
                       .count = 1,
                       .cost = tor_builder_cost(node),
                       .reductions = node_reductions(node)};
        bool reduces = tor_op_kind(node->op) == TOR_KIND_REDUCE;
        const TorValue *space = reduces ? tor_in(node, 0) : node->outputs[0];
        group.rank = space->rank;
        memcpy(group.dim, space->dim, sizeof group.dim);
        group.fixed = tor_op_kind(node->op) != TOR_KIND_MAP;
        if (group.fixed) group.axes = node_axes(node);
        if (groups) grow(&group);
        TOR_TRY(rewrite(&group, node));
        // On with what stands before the fused node; the rewrite may have left members out.
        before = (after ? after->prev : g->last)->prev;
    }
    return TOROID_OK;
}

ToroidStatus tor_pass_fuse_groups(TorGraph *g) { return make_programs(g, true); }
ToroidStatus tor_pass_programs(TorGraph *g) { return make_programs(g, false); }

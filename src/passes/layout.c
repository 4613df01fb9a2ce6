// Layouts for the whole graph, in one walk in execution order: what an op can alias becomes an
// alias, what it must own gets dense strides in the order its neighbours like, and copies are made
// only where a consumer cannot read what it is given.
#include <string.h>

#include "passes/layout.h"
#include "passes/passes.h"

typedef struct {
    TorGraph *g;
    int *pin;  ///< by value id: 1 + the output whose strides the value should take; 0: none
    uint32_t n_pins;
    bool *written;  ///< by graph input: the graph writes it
} Walk;

static void promised_strides(const Walk *w, int output, TorDim *stride) {
    const TorValue *v = tor_in(w->g->output, output);
    const TorOutputLayout *layout = w->g->output_layouts ? &w->g->output_layouts[output] : NULL;
    if (layout && layout->given && layout->exact)
        for (int d = 0; d < v->rank; d++) stride[d] = layout->stride[d];
    else
        tor_layout_dense(w->g, v->rank, v->dim, layout && layout->given ? layout->order : NULL,
                         stride);
}

/// Strides that differ in dims of size 1 only are the same memory.
static bool same_strides(const TorGraph *g, const TorValue *v, const TorDim *stride) {
    for (int d = 0; d < v->rank; d++)
        if (v->stride[d] != stride[d] && !tor_int_is(g, v->dim[d], 1)) return false;
    return true;
}

static bool promised_is_dense(const Walk *w, int output, const TorDim *stride) {
    TorValue probe = *tor_in(w->g->output, output);
    int order[TOR_MAX_RANK];
    memcpy(probe.stride, stride, sizeof probe.stride);
    return tor_layout_is_dense(w->g, &probe, order);
}

/// Gives v memory of its own: the strides that an output promised, or dense in `order`.
static void own(const Walk *w, TorValue *v, const int *order) {
    tor_layout_own(w->g, v, order);
    int pin = v->id < w->n_pins ? w->pin[v->id] : 0;
    if (pin) promised_strides(w, pin - 1, v->stride);
}

static void alias(TorValue *v, const TorValue *of) {
    v->storage = of->storage;
    v->offset = of->offset;
    v->has_layout = true;
}

/// Puts a copy between value and its use, laid out densely in `order`.
static ToroidStatus copy_input(Walk *w, TorNode *node, int input, const int *order) {
    TorNode *copy;
    TorValue *v = tor_in(node, input);
    TOR_TRY(tor_graph_add(w->g, node, TOR_OP_contiguous, &v, 1, NULL, 0, 1, &copy));
    copy->origin = node->origin;
    tor_layout_own(w->g, copy->outputs[0], order);
    tor_node_set_input(node, input, copy->outputs[0]);
    return TOROID_OK;
}

/// Rows of a mask that are read for many queries lie in one piece: one copy for all that read it,
/// since T5's positions are one mask for every layer, with the heads innermost.
static ToroidStatus copy_mask(Walk *w, TorNode *node, int input) {
    TorValue *mask = tor_in(node, input);
    int last = mask->rank - 1;
    if (tor_int_is(w->g, mask->stride[last], 1) || tor_int_is(w->g, mask->dim[last - 1], 1))
        return TOROID_OK;
    for (int d = 0; d <= last; d++)  // an expanded one would become as large as it looks
        if (tor_int_is(w->g, mask->stride[d], 0) && !tor_int_is(w->g, mask->dim[d], 1))
            return TOROID_OK;
    for (const TorUse *use = mask->uses; use; use = use->next)
        if (use->user->op == TOR_OP_contiguous && use->user->outputs[0]->has_layout &&
            tor_int_is(w->g, use->user->outputs[0]->stride[last], 1)) {
            tor_node_set_input(node, input, use->user->outputs[0]);
            return TOROID_OK;
        }
    return copy_input(w, node, input, NULL);
}

/// The order of the first operand of the result's own shape that is dense; row-major if none is.
static const int *dominant_order(TorGraph *g, const TorNode *node, const TorValue *out,
                                 int *order) {
    for (int i = 0; i < node->n_inputs; i++) {
        const TorValue *v = tor_in(node, i);
        if (tor_value_same_dims(v, out) && tor_layout_is_dense(g, v, order)) return order;
    }
    return NULL;
}

static const int *channels_last(int rank, int *order) {
    order[0] = 0;
    for (int d = 2; d < rank; d++) order[d - 1] = d;
    order[rank - 1] = 1;
    return order;
}

static ToroidStatus layout_view(Walk *w, TorNode *node) {
    TorGraph *g = w->g;
    TorValue *out = node->outputs[0];
    const TorValue *in = tor_in(node, 0);
    alias(out, in);
    switch (node->op) {
        case TOR_OP_permute: {
            const TorAttr *axes = tor_attr(node, TOR_ATTR_axes);
            for (int d = 0; d < out->rank; d++) out->stride[d] = in->stride[axes->ints[d]];
            return TOROID_OK;
        }
        case TOR_OP_expand: {
            int extra = out->rank - in->rank;
            for (int d = 0; d < out->rank; d++) {
                bool broadcast = d < extra || (tor_int_is(g, in->dim[d - extra], 1) &&
                                               !tor_int_is(g, out->dim[d], 1));
                out->stride[d] = broadcast ? tor_int_const(g, 0) : in->stride[d - extra];
            }
            return TOROID_OK;
        }
        case TOR_OP_slice: {
            int axis = (int)tor_attr_int(node, TOR_ATTR_axis, 0);
            TorDim step = tor_int_const(g, tor_attr_int(node, TOR_ATTR_step, 1));
            memcpy(out->stride, in->stride, sizeof out->stride);
            out->offset =
                tor_int_add(g, in->offset,
                            tor_int_mul(g, tor_attr(node, TOR_ATTR_start)->dim, in->stride[axis]));
            out->stride[axis] = tor_int_mul(g, step, in->stride[axis]);
            return TOROID_OK;
        }
        case TOR_OP_diagonal: {
            const int64_t *axes = tor_attr(node, TOR_ATTR_axes)->ints;
            int64_t offset = tor_attr_int(node, TOR_ATTR_offset, 0);
            int rank = 0;
            for (int d = 0; d < in->rank; d++)
                if (d != axes[0] && d != axes[1]) out->stride[rank++] = in->stride[d];
            out->stride[rank] = tor_int_add(g, in->stride[axes[0]], in->stride[axes[1]]);
            TorDim start = tor_int_mul(g, tor_int_const(g, offset < 0 ? -offset : offset),
                                       in->stride[axes[offset >= 0]]);
            // An empty diagonal may start outside.
            TorDim some = tor_int_binary(g, TOR_INT_min, out->dim[rank], tor_int_const(g, 1));
            out->offset = tor_int_add(g, in->offset, tor_int_mul(g, start, some));
            return TOROID_OK;
        }
        case TOR_OP_unfold: {
            int axis = (int)tor_attr_int(node, TOR_ATTR_axis, 0);
            TorDim step = tor_int_const(g, tor_attr_int(node, TOR_ATTR_step, 1));
            memcpy(out->stride, in->stride, sizeof out->stride);
            out->stride[in->rank] = in->stride[axis];
            out->stride[axis] = tor_int_mul(g, step, in->stride[axis]);
            return TOROID_OK;
        }
        case TOR_OP_as_strided: {
            TorDim row_major[TOR_MAX_RANK];
            tor_layout_dense(g, in->rank, in->dim, NULL, row_major);
            bool memory = tor_attr_int(node, TOR_ATTR_memory, 0);
            if (!memory && !same_strides(g, in, row_major)) {
                TOR_TRY(copy_input(w, node, 0, NULL));
                in = tor_in(node, 0);
                alias(out, in);
            }
            const TorAttr *strides = tor_attr(node, TOR_ATTR_strides),
                          *offset = tor_attr(node, TOR_ATTR_offset);
            memcpy(out->stride, strides->dims, (size_t)out->rank * sizeof(TorDim));
            if (offset) out->offset = tor_int_add(g, in->offset, offset->dim);
            return TOROID_OK;
        }
        default:  // view
            if (!tor_layout_view(g, in->rank, in->dim, in->stride, out->rank, out->dim,
                                 out->stride)) {
                TOR_TRY(copy_input(w, node, 0, NULL));
                in = tor_in(node, 0);
                alias(out, in);
                tor_layout_dense(g, out->rank, out->dim, NULL, out->stride);
            }
            return TOROID_OK;
    }
}

/// Operands of an epilogue are read as [rows, columns]: the dims in front of (linear, matmul) or
/// around (conv) the columns must merge into one stride.
static ToroidStatus layout_epilogue(Walk *w, TorNode *node, int first, const int *order) {
    TorGraph *g = w->g;
    const TorValue *out = node->outputs[0];
    for (int i = first; i < node->n_inputs; i++) {
        const TorValue *v = tor_in(node, i);
        if (!tor_value_same_dims(v, out)) continue;  // a bias or a scalar: the fuse pass made sure
        int have[TOR_MAX_RANK];
        bool ok = tor_layout_is_dense(g, v, have);
        for (int d = 0; ok && d < v->rank; d++) ok = have[d] == (order ? order[d] : d);
        if (!ok) TOR_TRY(copy_input(w, node, i, order));
    }
    return TOROID_OK;
}

static ToroidStatus layout_contract(Walk *w, TorNode *node) {
    TorGraph *g = w->g;
    TorValue *out = node->outputs[0];
    int order[TOR_MAX_RANK], bias = (int)tor_attr_int(node, TOR_ATTR_has_bias, node->n_inputs > 2);
    const int *out_order = NULL;
    if (node->op == TOR_OP_linear) {
        TorDim row;
        const TorValue *x = tor_in(node, 0);
        if (!tor_layout_mergeable(g, x, 0, x->rank - 1, &row))
            TOR_TRY(copy_input(w, node, 0, NULL));
    } else if (node->op == TOR_OP_rnn_layer) {
        const TorValue *x = tor_in(node, 0);
        if (!tor_int_is(g, x->stride[2], 1)) TOR_TRY(copy_input(w, node, 0, NULL));
        int last = node->n_inputs - 1;
        bool has_bias = tor_attr_int(node, TOR_ATTR_has_bias, 0);
        if (has_bias && !tor_int_is(g, tor_in(node, last)->stride[0], 1))
            TOR_TRY(copy_input(w, node, last, NULL));
        for (int i = 0; i < node->n_outputs; i++) own(w, node->outputs[i], NULL);
        return TOROID_OK;
    } else if (node->op == TOR_OP_conv) {
        out_order = channels_last(out->rank, order);
    } else if (node->op == TOR_OP_attention) {
        for (int i = 3; i < node->n_inputs; i++) TOR_TRY(copy_mask(w, node, i));
        // [b, h, m, e] lies as [b, m, h, e], so that the heads join again without a copy.
        static const int heads_inside[] = {0, 2, 1, 3};
        own(w, out, heads_inside);
        return TOROID_OK;
    }
    TorDim step;
    if (bias && node->op != TOR_OP_matmul &&
        !(tor_layout_mergeable(g, tor_in(node, 2), 0, 1, &step) && tor_int_is(g, step, 1)) &&
        !tor_int_is(g, tor_in(node, 2)->dim[0], 1))
        TOR_TRY(copy_input(w, node, 2, NULL));  // kernels read it as a vector
    if (tor_attr(node, TOR_ATTR_epilogue)) TOR_TRY(layout_epilogue(w, node, 2 + bias, out_order));
    for (int i = 0; i < node->n_outputs; i++) tor_layout_own(g, node->outputs[i], out_order);
    return TOROID_OK;
}

static void layout_source(Walk *w, TorNode *node) {
    TorValue *out = node->outputs[0];
    tor_layout_own(w->g, out, NULL);
    if (node->op != TOR_OP_input) return;
    uint32_t number = (uint32_t)tor_attr_int(node, TOR_ATTR_index, 0);
    const TorInput *input = &w->g->inputs[number];
    if (input->contiguous) return;
    for (int d = 0; d < out->rank; d++)
        out->stride[d] = input->stride[d] != TOR_NO_DIM ? input->stride[d]
                                                        : tor_int_stride(w->g, number, (uint32_t)d);
}

/// Ops along one axis whose results have the rank of the operand and any strides.
static bool keeps_places(TorOp op) {
    return op == TOR_OP_sort || op == TOR_OP_topk || op == TOR_OP_kth || op == TOR_OP_cumsum ||
           op == TOR_OP_cumprod || op == TOR_OP_logcumsumexp || op == TOR_OP_cummax ||
           op == TOR_OP_cummin;
}

static ToroidStatus layout_node(Walk *w, TorNode *node) {
    int order[TOR_MAX_RANK];
    switch (tor_op_kind(node->op)) {
        case TOR_KIND_SOURCE: layout_source(w, node); return TOROID_OK;
        case TOR_KIND_VIEW: return layout_view(w, node);
        case TOR_KIND_CONTRACT: return layout_contract(w, node);
        case TOR_KIND_SINK: return TOROID_OK;
        case TOR_KIND_MOVE:
            if (tor_attr_int(node, TOR_ATTR_inplace, 0)) {
                const TorValue *x = tor_in(node, 0);
                alias(node->outputs[0], x);
                memcpy(node->outputs[0]->stride, x->stride, sizeof x->stride);
                return TOROID_OK;
            }
            if (node->op == TOR_OP_contiguous) {
                if (!node->outputs[0]->has_layout) own(w, node->outputs[0], NULL);
                return TOROID_OK;
            }
            if (keeps_places(node->op)) {
                for (int i = 0; i < node->n_outputs; i++)
                    own(w, node->outputs[i],
                        tor_layout_is_dense(w->g, tor_in(node, 0), order) ? order : NULL);
                return TOROID_OK;
            }
            if (node->op == TOR_OP_cat || node->op == TOR_OP_pad || node->op == TOR_OP_flip) {
                const TorValue *x = tor_in(node, 0);
                own(w, node->outputs[0],
                    x->rank == node->outputs[0]->rank && tor_layout_is_dense(w->g, x, order)
                        ? order
                        : NULL);
                return TOROID_OK;
            }
            break;
        case TOR_KIND_POOL:
            for (int i = 0; i < node->n_outputs; i++) {
                const TorValue *x = tor_in(node, 0);
                own(w, node->outputs[i], tor_layout_is_dense(w->g, x, order) ? order : NULL);
            }
            return TOROID_OK;
        case TOR_KIND_MAP:
        case TOR_KIND_FUSED:
            for (int i = 0; i < node->n_outputs; i++)
                own(w, node->outputs[i], dominant_order(w->g, node, node->outputs[i], order));
            return TOROID_OK;
        default: break;
    }
    for (int i = 0; i < node->n_outputs; i++) {
        if (tor_op_kind(node->op) == TOR_KIND_EXTERNAL)
            own(w, node->outputs[i], NULL);
        else
            tor_layout_own(w->g, node->outputs[i], NULL);
    }
    return TOROID_OK;
}

static bool is_written_input(const Walk *w, const TorNode *root) {
    return root->op == TOR_OP_input && w->written[tor_attr_int(root, TOR_ATTR_index, 0)];
}

/// A value that is written to an input must not live in an input that is written too: the writes
/// come at the end, one after the other.
static ToroidStatus settle_write(Walk *w, int k, int64_t into) {
    const TorValue *v = tor_in(w->g->output, k);
    const TorNode *root = v->storage->node;
    bool itself = root->op == TOR_OP_input && tor_attr_int(root, TOR_ATTR_index, 0) == into;
    bool updated =
        itself && v->node->op != TOR_OP_input && tor_attr_int(v->node, TOR_ATTR_inplace, 0);
    return is_written_input(w, root) && !updated ? copy_input(w, w->g->output, k, NULL) : TOROID_OK;
}

/// Can the host make output `k` as a view of one of its own tensors? Of a graph input, then: eager
/// would return that view, and callers see whether memory is shared.
static bool is_input_view(const Walk *w, int k) {
    const TorValue *v = tor_in(w->g->output, k);
    const TorNode *root = v->storage->node;
    TorDim stride[TOR_MAX_RANK];
    if (root->op != TOR_OP_input || is_written_input(w, root)) return false;
    if (w->g->output_memory[k] != v->storage->id) return false;
    if (w->g->inputs[tor_attr_int(root, TOR_ATTR_index, 0)].frozen_result) return false;
    const TorOutputLayout *layout = w->g->output_layouts ? &w->g->output_layouts[k] : NULL;
    if (v->node->op == TOR_OP_input && !(layout && layout->given)) return true;
    promised_strides(w, k, stride);
    return same_strides(w->g, v, stride);
}

/// Eager's strides for output `k` in dims of size 1 too, where those mean nothing but are seen.
static ToroidStatus show_strides(Walk *w, int k) {
    TorValue *v = tor_in(w->g->output, k);
    TorDim stride[TOR_MAX_RANK];
    promised_strides(w, k, stride);
    const TorOutputLayout *layout = w->g->output_layouts ? &w->g->output_layouts[k] : NULL;
    bool itself = v->node->op == TOR_OP_input && !(layout && layout->given);
    if (itself || !memcmp(v->stride, stride, (size_t)v->rank * sizeof *stride)) return TOROID_OK;
    TorAttr dims = TOR_A_DIMS(dims, v->dim, v->rank);
    TorNode *view;
    TOR_TRY(tor_graph_add(w->g, w->g->output, TOR_OP_view, &v, 1, &dims, 1, 1, &view));
    view->origin = v->node->origin;
    alias(view->outputs[0], v);
    memcpy(view->outputs[0]->stride, stride, sizeof stride);
    tor_node_set_input(w->g->output, k, view->outputs[0]);
    return TOROID_OK;
}

/// Output `k` becomes a tensor of its own, with the strides that were promised, unless another
/// output has the memory already (taken[k]: that this one does).
static ToroidStatus settle_return(Walk *w, int k, const TorValue **taken) {
    TorGraph *g = w->g;
    TorNode *sink = g->output;
    TorValue *v = tor_in(sink, k);
    TorDim stride[TOR_MAX_RANK];
    promised_strides(w, k, stride);
    if (same_strides(g, v, stride))
        for (int i = 0; i < sink->n_inputs; i++)
            if (taken[i] == v->storage && (i == k || g->output_memory[i] == g->output_memory[k]))
                return show_strides(w, k);  // output i itself, or a view of it
    TOR_TRY(copy_input(w, sink, k, NULL));
    v = tor_in(sink, k);
    memcpy(v->stride, stride, sizeof stride);
    taken[k] = v->storage;
    return TOROID_OK;
}

/// Finds the outputs that can be the memory of what they show.
static void take_whole(Walk *w, int k, const TorValue **taken) {
    TorGraph *g = w->g;
    TorValue *v = tor_in(g->output, k);
    const TorNode *root = v->storage->node;
    TorDim stride[TOR_MAX_RANK];
    int order[TOR_MAX_RANK];
    promised_strides(w, k, stride);
    if (root->op == TOR_OP_input || root->op == TOR_OP_constant || !same_strides(g, v, stride) ||
        !tor_int_is(g, v->offset, 0) || tor_value_numel(g, v) != tor_value_numel(g, v->storage))
        return;
    // A part that is repeated may count as many elements as the whole, and has less memory.
    if (!tor_layout_is_dense(g, v, order)) return;
    for (int i = 0; i < k; i++)
        if (taken[i] == v->storage) return;
    memcpy(v->stride, stride, sizeof stride);
    taken[k] = v->storage;
}

ToroidStatus tor_pass_layout(TorGraph *g) {
    TorNode *sink = g->output;
    Walk w = {.g = g, .n_pins = g->next_value};
    w.pin = tor_arena_alloc(g->arena, (size_t)w.n_pins * sizeof(int) + 1);
    w.written = tor_arena_alloc(g->arena, g->n_inputs + 1);
    const TorValue **taken =
        tor_arena_alloc(g->arena, (size_t)sink->n_inputs * sizeof(TorValue *) + 1);
    if (!w.pin || !w.written || !taken) return tor_no_memory();
    const int64_t *into = tor_attr(sink, TOR_ATTR_into)->ints;
    for (int k = 0; k < sink->n_inputs; k++) {
        TorDim stride[TOR_MAX_RANK];
        if (into[k] >= 0) {
            w.written[into[k]] = true;
        } else {
            promised_strides(&w, k, stride);
            if (promised_is_dense(&w, k, stride)) w.pin[tor_in(sink, k)->id] = k + 1;
        }
    }
    for (TorNode *node = g->first; node; node = node->next) TOR_TRY(layout_node(&w, node));
    for (int k = 0; k < sink->n_inputs; k++)
        if (into[k] < 0 && !is_input_view(&w, k)) take_whole(&w, k, taken);
    for (int k = 0; k < sink->n_inputs; k++) {
        if (into[k] >= 0)
            TOR_TRY(settle_write(&w, k, into[k]));
        else if (is_input_view(&w, k))
            TOR_TRY(show_strides(&w, k));
        else
            TOR_TRY(settle_return(&w, k, taken));
    }
    return TOROID_OK;
}

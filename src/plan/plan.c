// The skeleton: storages for the values of a graph that has layouts, and a list of steps.
#include "plan/plan.h"

#include <string.h>

#include "plan/memory.h"
#include "plan/step.h"

typedef ToroidStatus (*LowerFn)(TorPlan *plan, const TorNode *node);

static LowerFn lower_fn(TorOp op) {
    switch (op) {
        case TOR_OP_fused: return tor_lower_fused;
        case TOR_OP_linear: return tor_lower_linear;
        case TOR_OP_matmul: return tor_lower_matmul;
        case TOR_OP_pack_linear: return tor_lower_pack_linear;
        case TOR_OP_conv: return tor_lower_conv;
        case TOR_OP_pack_conv: return tor_lower_pack_conv;
        case TOR_OP_max_pool:
        case TOR_OP_avg_pool:
        case TOR_OP_adaptive_avg_pool:
        case TOR_OP_adaptive_max_pool: return tor_lower_pool;
        case TOR_OP_resize: return tor_lower_resize;
        case TOR_OP_grid_sample: return tor_lower_grid;
        case TOR_OP_embedding_bag: return tor_lower_bag;
        case TOR_OP_rnn_layer: return tor_lower_rnn;
        case TOR_OP_attention: return tor_lower_attention;
        case TOR_OP_contiguous: return tor_lower_contiguous;
        case TOR_OP_cat: return tor_lower_cat;
        case TOR_OP_pad: return tor_lower_pad;
        case TOR_OP_flip: return tor_lower_flip;
        case TOR_OP_full: return tor_lower_full;
        case TOR_OP_arange: return tor_lower_arange;
        case TOR_OP_cumsum:
        case TOR_OP_cumprod:
        case TOR_OP_logcumsumexp:
        case TOR_OP_cummax:
        case TOR_OP_cummin: return tor_lower_scan;
        case TOR_OP_sort:
        case TOR_OP_topk:
        case TOR_OP_kth: return tor_lower_sort;
        case TOR_OP_searchsorted: return tor_lower_searchsorted;
        case TOR_OP_slice_scatter: return tor_lower_slice_scatter;
        case TOR_OP_embedding:
        case TOR_OP_index_select:
        case TOR_OP_gather:
        case TOR_OP_index: return tor_lower_gather;
        case TOR_OP_index_put:
        case TOR_OP_index_copy:
        case TOR_OP_scatter: return tor_lower_scatter;
        case TOR_OP_external: return tor_lower_external;
        default: return NULL;
    }
}

// ---------------------------------------------------------------- storages and views

static ToroidStatus storage_of(TorPlan *plan, const TorValue *root, int *out) {
    if (root->id < plan->n_values && plan->storage_of[root->id] >= 0) {
        *out = plan->storage_of[root->id];
        return TOROID_OK;
    }
    TOR_TRY(tor_grow((void **)&plan->storages, &plan->storage_capacity, plan->n_storages + 1,
                     sizeof *plan->storages));
    TorStorage *s = &plan->storages[plan->n_storages];
    *s = (TorStorage){.kind = TOR_STORAGE_ARENA, .root = root, .first = INT32_MAX, .last = -1};
    if (root->node->op == TOR_OP_input) {
        s->kind = TOR_STORAGE_INPUT;
        s->number = (int)tor_attr_int(root->node, TOR_ATTR_index, 0);
    } else if (root->node->op == TOR_OP_constant) {
        s->kind = TOR_STORAGE_CONSTANT;
        s->constant = tor_attr(root->node, TOR_ATTR_blob)->blob;
    }
    *out = plan->storage_of[root->id] = (int)plan->n_storages++;
    return TOROID_OK;
}

ToroidStatus tor_plan_view(TorPlan *plan, const TorValue *value, TorView *view) {
    if (!value->has_layout)
        return tor_invalid("plan: %%%u (%s) has no layout", value->id,
                           tor_op_name(value->node->op));
    TOR_TRY(storage_of(plan, value->storage, &view->storage));
    view->dtype = value->dtype;
    view->rank = value->rank;
    memcpy(view->dim, value->dim, sizeof view->dim);
    memcpy(view->stride, value->stride, sizeof view->stride);
    view->offset = value->offset;
    return TOROID_OK;
}

TorView tor_view_slice(TorPlan *plan, TorView view, int axis, TorDim start, TorDim size,
                       TorDim step) {
    view.offset = tor_int_add(plan->g, view.offset, tor_int_mul(plan->g, start, view.stride[axis]));
    view.stride[axis] = tor_int_mul(plan->g, view.stride[axis], step);
    view.dim[axis] = size;
    return view;
}

TorView tor_view_broadcast(TorPlan *plan, const TorView *view, int rank, const TorDim *dims) {
    TorView out = *view;
    int extra = rank - view->rank;
    out.rank = rank;
    for (int d = 0; d < rank; d++) {
        bool missing = d < extra || (tor_int_is(plan->g, view->dim[d - extra], 1) &&
                                     !tor_int_is(plan->g, dims[d], 1));
        out.stride[d] = missing ? tor_int_const(plan->g, 0) : view->stride[d - extra];
        // A size that only the run knows may turn out to be 1.
        if (!missing && view->dim[d - extra] != dims[d]) {
            TorDim is_one = tor_int_binary(plan->g, TOR_INT_eq, view->dim[d - extra],
                                           tor_int_const(plan->g, 1));
            out.stride[d] = tor_int_mul(plan->g, out.stride[d],
                                        tor_int_sub(plan->g, tor_int_const(plan->g, 1), is_one));
        }
        out.dim[d] = dims[d];
    }
    return out;
}

// ---------------------------------------------------------------- steps

ToroidStatus tor_step_add(TorPlan *plan, const TorStepKind *kind, const TorNode *node,
                          size_t data_bytes, size_t args_bytes, void *data) {
    TOR_TRY(tor_grow((void **)&plan->steps, &plan->step_capacity, plan->n_steps + 1,
                     sizeof *plan->steps));
    void *memory = tor_arena_alloc(plan->arena, data_bytes);
    if (!memory) return tor_no_memory();
    plan->steps[plan->n_steps++] = (TorStep){.kind = kind,
                                             .node = node,
                                             .data = memory,
                                             .args_at = plan->args_bytes,
                                             .args_bytes = args_bytes,
                                             .shared_at = SIZE_MAX};
    plan->args_bytes += (args_bytes + TOR_CACHE_LINE - 1) / TOR_CACHE_LINE * TOR_CACHE_LINE;
    *(void **)data = memory;
    return TOROID_OK;
}

ToroidStatus tor_step_pointer(TorPlan *plan, const TorView *view, size_t field) {
    TOR_TRY(tor_grow((void **)&plan->pointers, &plan->pointer_capacity, plan->n_pointers + 1,
                     sizeof *plan->pointers));
    const TorStep *step = &plan->steps[plan->n_steps - 1];
    plan->pointers[plan->n_pointers++] = (TorPointer){.at = step->args_at + field,
                                                      .storage = view->storage,
                                                      .offset = view->offset,
                                                      .element = tor_dtype_size(view->dtype)};
    TorStorage *s = &plan->storages[view->storage];
    int now = (int)plan->n_steps - 1;
    s->first = TOR_MIN(s->first, now);
    s->last = TOR_MAX(s->last, now);
    return TOROID_OK;
}

void tor_step_writes(TorPlan *plan, const TorView *to, int rank, const TorDim *size) {
    if (plan->storages[to->storage].kind != TOR_STORAGE_INPUT) return;
    TorDim element = tor_int_const(plan->g, (int64_t)tor_dtype_size(to->dtype));
    TorDim bytes = tor_int_mul(plan->g, tor_int_product(plan->g, size, rank), element);
    plan->input_bytes = tor_int_add(plan->g, plan->input_bytes, bytes);
}

void tor_step_shared(TorPlan *plan, size_t field) {
    plan->steps[plan->n_steps - 1].shared_at = field;
}

void tor_step_joins(TorPlan *plan, int count) { plan->steps[plan->n_steps - 1].joined = count; }

// ---------------------------------------------------------------- outputs

/// Decides which storages are the host's output tensors.
static ToroidStatus place_outputs(TorPlan *plan) {
    const TorNode *sink = plan->g->output;
    const int64_t *into = tor_attr(sink, TOR_ATTR_into)->ints;
    plan->output_of = tor_arena_alloc(plan->arena, (size_t)sink->n_inputs * sizeof(int) + 1);
    if (!plan->output_of) return tor_no_memory();
    for (int k = 0; k < sink->n_inputs; k++) {
        plan->output_of[k] = -1;
        if (into[k] >= 0) continue;
        plan->output_of[k] = plan->n_returned++;
    }
    // The layout pass made sure that each output has memory of its own, shows all of another
    // output's memory or a part of it, or lives in an input.
    for (int pass = 0; pass < 2; pass++)
        for (int k = 0; k < sink->n_inputs; k++) {
            const TorValue *v = tor_in(sink, k);
            int storage;
            if (into[k] >= 0) continue;
            TOR_TRY(storage_of(plan, v->storage, &storage));
            TorStorage *s = &plan->storages[storage];
            bool whole = tor_int_is(plan->g, v->offset, 0) &&
                         tor_value_numel(plan->g, v) == tor_value_numel(plan->g, v->storage);
            if (s->kind != TOR_STORAGE_ARENA || (pass == 0 && !whole)) continue;
            s->kind = TOR_STORAGE_OUTPUT;
            s->number = plan->output_of[k];
        }
    return TOROID_OK;
}

/// What the graph writes to its inputs, after everything else; in-place updates are there already.
static ToroidStatus write_inputs(TorPlan *plan) {
    const TorNode *sink = plan->g->output;
    const int64_t *into = tor_attr(sink, TOR_ATTR_into)->ints;
    for (int k = 0; k < sink->n_inputs; k++) {
        if (into[k] < 0) continue;
        const TorValue *v = tor_in(sink, k), *target = plan->g->inputs[into[k]].value;
        if (v->storage == target) continue;
        TorView from, to;
        TOR_TRY(tor_plan_view(plan, v, &from));
        TOR_TRY(tor_plan_view(plan, target, &to));
        from = tor_view_broadcast(plan, &from, to.rank, to.dim);
        TOR_TRY(tor_lower_copy(plan, sink, &from, &to));
    }
    return TOROID_OK;
}

static ToroidStatus lower(TorPlan *plan) {
    for (const TorNode *node = plan->g->first; node; node = node->next) {
        TorOpKind kind = tor_op_kind(node->op);
        if (kind == TOR_KIND_VIEW || kind == TOR_KIND_SINK || node->op == TOR_OP_input ||
            node->op == TOR_OP_constant)
            continue;
        LowerFn fn = lower_fn(node->op);
        ToroidStatus status = fn ? fn(plan, node) : tor_refuse("no kernel runs it");
        if (status != TOROID_OK)
            return tor_error_prefix(status, "plan: %%%u %s (%s)", node->outputs[0]->id,
                                    tor_op_name(node->op),
                                    node->origin ? node->origin : "made by a pass");
    }
    return write_inputs(plan);
}

static ToroidStatus plan_lifetimes(TorPlan *plan) {
    int *first = tor_arena_alloc(plan->arena, plan->n_storages * sizeof(int) + 1);
    int *last = tor_arena_alloc(plan->arena, plan->n_storages * sizeof(int) + 1);
    if (!first || !last) return tor_no_memory();
    for (size_t i = 0; i < plan->n_storages; i++) {
        TorStorage *s = &plan->storages[i];
        bool arena = s->kind == TOR_STORAGE_ARENA;
        s->elements = arena ? tor_value_numel(plan->g, s->root) : 0;
        s->element = tor_dtype_size(s->root->dtype);
        first[i] = arena ? s->first : 1;
        last[i] = arena ? s->last : 0;
    }
    return tor_lifetimes_create(&plan->lifetimes, plan->arena, first, last, plan->n_storages,
                                plan->n_steps);
}

ToroidStatus tor_plan_create(TorPlan **out, TorGraph *g, bool reference) {
    *out = NULL;
    TorPlan *plan = tor_alloc_zero(sizeof *plan);
    if (!plan) return tor_no_memory();
    static _Atomic uint64_t plans;
    plan->number = ++plans;
    plan->g = g;
    plan->reference = reference;
    plan->n_values = g->next_value;
    plan->input_bytes = tor_int_const(g, 0);
    ToroidStatus status = tor_arena_create(&plan->arena);
    if (status == TOROID_OK) {
        plan->storage_of = tor_arena_alloc(plan->arena, (plan->n_values + 1) * sizeof(int));
        if (!plan->storage_of) status = tor_no_memory();
    }
    for (uint32_t i = 0; status == TOROID_OK && i < plan->n_values; i++) plan->storage_of[i] = -1;
    if (status == TOROID_OK) status = place_outputs(plan);
    if (status == TOROID_OK) status = lower(plan);
    if (status == TOROID_OK) status = plan_lifetimes(plan);
    if (status == TOROID_OK && g->failed) status = tor_no_memory();
    if (status != TOROID_OK) tor_plan_destroy(&plan);
    *out = plan;
    return status;
}

void tor_plan_destroy(TorPlan **plan) {
    if (!plan || !*plan) return;
    tor_arena_destroy(&(*plan)->arena);
    tor_free((*plan)->steps);
    tor_free((*plan)->storages);
    tor_free((*plan)->pointers);
    tor_free(*plan);
    *plan = NULL;
}

void tor_plan_set_external(TorPlan *plan, TorExternalFn fn, void *user) {
    plan->external = fn;
    plan->external_user = user;
}

void tor_plan_set_ranges(TorPlan *plan, TorRangeHook hook, void *user) {
    plan->ranges = hook;
    plan->ranges_user = user;
}

void tor_plan_set_tune(TorPlan *plan, bool tune) { plan->tune = tune; }

int tor_plan_output_count(const TorPlan *plan) { return plan->n_returned; }
size_t tor_plan_step_count(const TorPlan *plan) { return plan->n_steps; }

ToroidStatus tor_plan_result_bytes(TorPlan *plan, size_t *bytes) {
    const TorValue *v = tor_in(plan->g->output, 0);
    int storage;
    TOR_TRY(storage_of(plan, v->storage, &storage));
    *bytes = plan->storages[storage].bytes;
    if (*bytes) return TOROID_OK;
    int64_t numel;
    if (!tor_int_known(plan->g, tor_value_numel(plan->g, v), &numel))
        return tor_invalid("plan: the result has no known size");
    *bytes = (size_t)numel * tor_dtype_size(v->dtype);
    return TOROID_OK;
}

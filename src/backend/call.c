// One call of an executable: begin, run, end.
#include <string.h>

#include "backend/internal.h"
#include "base/log.h"

enum { MAX_IDLE = 8 };  // contexts kept for the next calls

void tor_call_destroy(TorCall **call) {
    if (!call || !*call) return;
    tor_context_destroy(&(*call)->context);
    tor_free((*call)->inputs);
    tor_free((*call)->states);
    tor_free(*call);
    *call = NULL;
}

static ToroidStatus create_call(TorCall **out, TorExecutable *exe) {
    TorCall *call = tor_alloc_zero(sizeof *call);
    if (!call) return tor_no_memory();
    call->exe = exe;
    call->inputs = tor_alloc_zero((exe->g->n_inputs + 1) * sizeof *call->inputs);
    call->states = tor_alloc_zero((exe->n_frozen + 1) * sizeof *call->states);
    ToroidStatus status = call->inputs && call->states
                              ? tor_context_create(&call->context, exe->plan)
                              : tor_no_memory();
    if (status != TOROID_OK) tor_call_destroy(&call);
    *out = call;
    return status;
}

static ToroidStatus take_call(TorExecutable *exe, TorCall **out) {
    pthread_mutex_lock(&exe->lock);
    TorCall *call = exe->idle;
    if (call)
        exe->idle = call->next;
    else
        exe->contexts++;
    pthread_mutex_unlock(&exe->lock);
    *out = call;
    return call ? TOROID_OK : create_call(out, exe);
}

static const char *input_name(const TorExecutable *exe, uint32_t i) {
    return exe->g->inputs[i].name ? exe->g->inputs[i].name : "?";
}

static int64_t stride_of(const TorPlanInput *in, int rank, int dim) {
    int64_t stride = 1;
    if (in->stride) return in->stride[dim];
    for (int d = rank - 1; d > dim; d--) stride *= TOR_MAX(in->size[d], (int64_t)1);
    return stride;
}

static bool is_empty(const TorPlanInput *in, int rank) {
    for (int d = 0; d < rank; d++)
        if (in->size[d] == 0) return true;
    return false;
}

/// Memory from the first to the last element.
static size_t extent(const TorPlanInput *in, const TorValue *v) {
    int64_t last = 0;
    if (is_empty(in, v->rank)) return 0;
    for (int d = 0; d < v->rank; d++) last += (in->size[d] - 1) * stride_of(in, v->rank, d);
    return (size_t)(last + 1) * tor_dtype_size(v->dtype);
}

static ToroidStatus check_input(const TorExecutable *exe, const TorPlanInput *inputs,
                                const TorInputCheck *c, int64_t value) {
    const TorPlanInput *in = &inputs[c->input];
    int rank = exe->g->inputs[c->input].value->rank;
    const char *how = tor_int_get(exe->g, c->expected)->op == TOR_INT_const
                          ? "compiled for"
                          : "by the other inputs it must be";
    if (c->dim >= 0) {
        if (in->size[c->dim] == value) return TOROID_OK;
        return tor_invalid("input %s: dim %d has size %" PRId64 ", %s %" PRId64,
                           input_name(exe, c->input), c->dim, in->size[c->dim], how, value);
    }
    int d = -1 - c->dim;
    if (in->size[d] <= 1 || is_empty(in, rank) || stride_of(in, rank, d) == value) return TOROID_OK;
    return tor_invalid("input %s: dim %d has stride %" PRId64 ", %s %" PRId64,
                       input_name(exe, c->input), d, stride_of(in, rank, d), how, value);
}

static ToroidStatus check_inputs(const TorExecutable *exe, const TorPlanInput *inputs) {
    for (size_t i = 0; i < exe->n_static_checks; i++)
        TOR_TRY(check_input(exe, inputs, &exe->checks[i], exe->checks[i].value));
    for (uint32_t i = 0; i < exe->n_inputs; i++) {
        const TorInput *input = &exe->g->inputs[i];
        const TorPlanInput *in = &inputs[i];
        if (input->kind != TOR_INPUT_TENSOR || !input->contiguous || !in->stride) continue;
        int64_t stride = 1;
        bool row_major = true;
        for (int d = input->value->rank - 1; d >= 0; d--) {
            if (in->size[d] != 1 && in->stride[d] != stride) row_major = false;
            stride *= in->size[d];
        }
        if (!row_major && stride != 0)
            return tor_invalid("input %s: not row-major, as it was compiled for",
                               input_name(exe, i));
    }
    return TOROID_OK;
}

static ToroidStatus begin(TorCall *call, const TorCallInput *inputs) {
    TorExecutable *exe = call->exe;
    call->given = inputs;
    for (uint32_t i = 0; i < exe->n_inputs; i++)
        call->inputs[i] = (TorPlanInput){inputs[i].data,  inputs[i].size,  inputs[i].stride,
                                         inputs[i].value, inputs[i].start, inputs[i].memory};
    TOR_TRY(check_inputs(exe, call->inputs));
    // The sampled words are in no cache: ask for all of them before the first is needed.
    for (uint32_t k = 0; k < exe->n_frozen; k++) {
        uint32_t i = exe->frozen_inputs[k];
        size_t bytes = exe->frozen_bytes[k] != SIZE_MAX
                           ? exe->frozen_bytes[k]
                           : extent(&call->inputs[i], exe->g->inputs[i].value);
        call->states[k] =
            (TorFrozenState){inputs[i].uid, inputs[i].data, inputs[i].version, 0, bytes};
        tor_frozen_prefetch(inputs[i].data, bytes);
    }
    for (uint32_t k = 0; k < exe->n_frozen; k++)
        call->states[k].sample = tor_frozen_sample(call->states[k].data, call->states[k].bytes);
    if (exe->prologue.count) {
        TOR_TRY(tor_frozen_set_find(call));
        for (size_t r = 0; r < exe->prologue.count; r++)
            call->inputs[exe->prologue.results[r].input].data =
                tor_frozen_data(call->set->entries[r]);
    }
    TOR_TRY(tor_context_begin(call->context, call->inputs, call->threads));
    for (size_t i = exe->n_static_checks; i < exe->n_checks; i++)
        TOR_TRY(check_input(exe, call->inputs, &exe->checks[i],
                            tor_context_int(call->context, exe->checks[i].expected)));
    return TOROID_OK;
}

ToroidStatus tor_exe_begin(TorExecutable *exe, const TorCallInput *inputs, int threads,
                           TorCall **out) {
    TorCall *call;
    *out = NULL;
    TOR_TRY(take_call(exe, &call));
    call->threads = TOR_MAX(exe->options.threads > 0 ? exe->options.threads : threads, 1);
    ToroidStatus status = begin(call, inputs);
    if (status == TOROID_OK)
        *out = call;
    else
        tor_exe_end(&call);
    return status;
}

int tor_exe_output_count(const TorExecutable *exe) { return tor_plan_output_count(exe->plan); }

TorCallOutput *tor_exe_outputs(TorCall *call) {
    _Static_assert(sizeof(TorCallOutput) == sizeof(TorPlanOutput), "one output, two layers");
    return (TorCallOutput *)tor_context_outputs(call->context);
}

ToroidStatus tor_exe_run(TorCall *call, void *token, bool ranges) {
    return tor_context_run(call->context, call->threads, token, ranges);
}

void tor_exe_end(TorCall **ended) {
    if (!ended || !*ended) return;
    TorCall *call = *ended;
    TorExecutable *exe = call->exe;
    *ended = NULL;
    double now = tor_now();
    tor_frozen_set_release(exe, &call->set);
    pthread_mutex_lock(&exe->lock);
    exe->arena_bytes = TOR_MAX(exe->arena_bytes, (uint64_t)tor_context_arena_bytes(call->context));
    exe->input_bytes = tor_context_input_bytes(call->context);
    exe->binds = TOR_MAX(exe->binds, tor_context_binds(call->context));
    int idle = 0;
    for (const TorCall *c = exe->idle; c; c = c->next) idle++;
    if (idle < MAX_IDLE) {
        call->idle_since = now;
        call->trimmed = false;
        call->next = exe->idle;
        exe->idle = call;
        call = NULL;
    }
    pthread_mutex_unlock(&exe->lock);
    tor_call_destroy(&call);
    tor_idle_sweep(now);
}

void tor_exe_stats(const TorExecutable *exe, TorExeStats *stats) {
    memset(stats, 0, sizeof *stats);
    tor_frozen_stats(stats);
    if (!exe) return;
    TorExecutable *e = (TorExecutable *)(uintptr_t)exe;
    stats->steps = tor_plan_step_count(e->plan);
    stats->native_nodes = e->native_nodes;
    stats->external_nodes = e->external_nodes;
    pthread_mutex_lock(&e->lock);
    stats->arena_bytes = e->arena_bytes;
    stats->binds = e->binds;
    stats->input_bytes = e->input_bytes;
    stats->contexts = e->contexts;
    for (size_t r = 0; e->sets && r < e->prologue.count; r++)
        stats->weight_bytes += tor_frozen_bytes(e->sets->entries[r]);
    pthread_mutex_unlock(&e->lock);
}

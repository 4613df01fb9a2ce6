// Binding a skeleton to sizes, and running it.
#include <string.h>

#include "plan/choices.h"
#include "plan/memory.h"
#include "plan/step.h"
#include "plan/watch.h"

struct TorContext {
    TorPlan *plan;
    const TorPlanInput *inputs;
    bool bound;
    uint64_t binds;
    int64_t *ints;
    TorLeaf *leaves;       ///< what the integers ask of the inputs
    int64_t *leaf_values;  ///< at the last bind
    size_t n_leaves;
    uint8_t *args;
    TorRegionCall *calls;
    uint32_t *call_step;
    size_t n_calls;
    size_t scratch_bytes, shared_bytes, arena_bytes;
    TorRegion arena, scratch;
    size_t *storage_bytes, *storage_at;
    TorMemoryGap *gaps;
    uint32_t *moving;  ///< pointers that change at each call: into inputs and outputs
    size_t n_moving;
    TorPlanOutput *outputs;
    int error;           ///< raised by kernels
    TorTraceMark trace;  ///< where a recording has the steps
    // The tuner's part. Memory for it is there once its switches are on.
    TorTuneAsk ask;     ///< what they said at the last bind
    uint64_t settings;  ///< version of the settings that `ask` goes by
    TorChoices *choices;
    uint8_t *bucket_args;  ///< of the problems that stand for their buckets
};

static void *need(size_t count, size_t bytes) { return tor_alloc_zero(count * bytes + 1); }

ToroidStatus tor_context_create(TorContext **out, TorPlan *plan) {
    *out = NULL;
    TorContext *c = tor_alloc_zero(sizeof *c);
    if (!c) return tor_no_memory();
    uint32_t n_ints = tor_int_count(plan->g);
    c->plan = plan;
    c->ints = need(n_ints, sizeof *c->ints);
    c->leaves = need(n_ints, sizeof *c->leaves);
    c->leaf_values = need(n_ints, sizeof *c->leaf_values);
    c->args = need(plan->args_bytes, 1);
    c->calls = need(plan->n_steps * TOR_REGION_CALLS, sizeof *c->calls);
    c->call_step = need(plan->n_steps * TOR_REGION_CALLS, sizeof *c->call_step);
    c->storage_bytes = need(plan->n_storages, sizeof *c->storage_bytes);
    c->storage_at = need(plan->n_storages, sizeof *c->storage_at);
    c->gaps = need(plan->n_storages + 2, sizeof *c->gaps);
    c->moving = need(plan->n_pointers, sizeof *c->moving);
    c->outputs = need((size_t)plan->n_returned, sizeof *c->outputs);
    if (!c->ints || !c->leaves || !c->leaf_values || !c->args || !c->calls || !c->call_step ||
        !c->storage_bytes || !c->storage_at || !c->gaps || !c->moving || !c->outputs) {
        tor_context_destroy(&c);
        return tor_no_memory();
    }
    for (uint32_t i = 0; i < n_ints; i++) {
        const TorInt *x = tor_int_get(plan->g, i);
        int what;
        if (tor_int_asks(x, &what)) c->leaves[c->n_leaves++] = (TorLeaf){x->a, what};
    }
    for (size_t i = 0; i < plan->n_pointers; i++) {
        TorStorageKind kind = plan->storages[plan->pointers[i].storage].kind;
        if (kind == TOR_STORAGE_INPUT || kind == TOR_STORAGE_OUTPUT)
            c->moving[c->n_moving++] = (uint32_t)i;
    }
    const TorNode *sink = plan->g->output;
    for (int k = 0; k < sink->n_inputs; k++) {
        if (plan->output_of[k] < 0) continue;
        const TorValue *v = tor_in(sink, k);
        TorPlanOutput *o = &c->outputs[plan->output_of[k]];
        *o = (TorPlanOutput){.dtype = v->dtype,
                             .rank = v->rank,
                             .from_input = -1,
                             .from_output = -1,
                             .whole = v->node->op == TOR_OP_input};
        const TorStorage *storage = &plan->storages[plan->storage_of[v->storage->id]];
        if (storage->kind == TOR_STORAGE_INPUT)
            o->from_input = storage->number;
        else if (storage->number != plan->output_of[k])
            o->from_output = storage->number;
    }
    c->settings = UINT64_MAX;
    *out = c;
    return TOROID_OK;
}

void tor_context_destroy(TorContext **context) {
    if (!context || !*context) return;
    TorContext *c = *context;
    void *blocks[] = {c->ints,  c->leaves,    c->leaf_values,   c->args,
                      c->calls, c->call_step, c->storage_bytes, c->storage_at,
                      c->gaps,  c->moving,    c->outputs,       c->bucket_args};
    tor_choices_destroy(&c->choices);
    for (size_t i = 0; i < TOR_COUNT_OF(blocks); i++) tor_free(blocks[i]);
    tor_region_destroy(&c->arena);
    tor_region_destroy(&c->scratch);
    tor_free(c);
    *context = NULL;
}

// ---------------------------------------------------------------- bind

static int64_t input_stride(const TorPlanInput *in, int rank, int dim) {
    if (in->stride) return in->stride[dim];
    int64_t stride = 1;
    for (int d = rank - 1; d > dim; d--) stride *= in->size[d];
    return stride;
}

static int64_t leaf_value(void *user, uint32_t input, int what) {
    const TorContext *c = user;
    const TorPlanInput *in = &c->inputs[input];
    if (what >= 0) return in->size[what];
    switch (what) {
        case TOR_ASK_VALUE: return in->value;
        case TOR_ASK_START: return in->start;
        case TOR_ASK_MEMORY: return in->memory;
        default:
            return input_stride(in, c->plan->g->inputs[input].value->rank, TOR_ASK_STRIDE - what);
    }
}

static ToroidStatus place_arena(TorContext *c) {
    const TorPlan *plan = c->plan;
    for (size_t i = 0; i < plan->n_storages; i++) {
        const TorStorage *s = &plan->storages[i];
        if (s->kind == TOR_STORAGE_ARENA)
            c->storage_bytes[i] = s->bytes ? s->bytes : (size_t)c->ints[s->elements] * s->element;
    }
    c->arena_bytes = tor_memory_assign(plan->lifetimes, c->storage_bytes, c->storage_at, c->gaps);
    bool moved;
    return tor_region_fit(&c->arena, c->arena_bytes + c->shared_bytes + TOR_CACHE_LINE, &moved);
}

static void *element(void *base, const TorContext *c, const TorPointer *p) {
    return base ? (uint8_t *)base + c->ints[p->offset] * (int64_t)p->element : NULL;
}

static void set_fixed_pointers(TorContext *c) {
    const TorPlan *plan = c->plan;
    for (size_t i = 0; i < plan->n_pointers; i++) {
        const TorPointer *p = &plan->pointers[i];
        const TorStorage *s = &plan->storages[p->storage];
        void **field = (void **)(c->args + p->at);
        if (s->kind == TOR_STORAGE_ARENA)
            *field = element((uint8_t *)c->arena.base + c->storage_at[p->storage], c, p);
        else if (s->kind == TOR_STORAGE_CONSTANT)
            *field = element((void *)(uintptr_t)s->constant, c, p);
    }
    for (size_t i = 0; i < plan->n_steps; i++) {
        const TorStep *s = &plan->steps[i];
        if (s->shared_at != SIZE_MAX)
            *(void **)(c->args + s->args_at + s->shared_at) =
                (uint8_t *)c->arena.base + c->arena_bytes;
    }
}

/// What the switches say now for `threads`; they are read again only where something may have
/// changed.
static TorTuneAsk ask_now(TorContext *c, int threads) {
    TorTuneAsk none = {0};
    if (!threads || c->plan->reference) return none;
    uint64_t settings = tor_tune_settings_version();
    TorTuneAsk now = c->ask;
    if (settings != c->settings || tor_tune_asks(&c->ask))
        now = tor_tune_ask(c->plan->tune, threads);
    c->settings = settings;
    return now;
}

/// Points a binder at the choices of this bind. Without memory for them all steps take Default.
static void take_choices(TorContext *c, TorBinder *b, TorTuneChoice **choices) {
    const TorPlan *plan = c->plan;
    if (!tor_tune_asks(&c->ask)) return;
    if (!c->choices) {
        if (!c->bucket_args) c->bucket_args = need(plan->args_bytes, 1);
        if (!c->bucket_args || tor_choices_create(&c->choices, plan->g, plan->n_steps, c->leaves,
                                                  c->n_leaves) != TOROID_OK)
            return;
    }
    bool known;
    *choices = tor_choices_take(c->choices, c->inputs, &c->ask, &known);
    if (known) return;
    b->ask = &c->ask;
    b->bucket_ints = tor_choices_ints(c->choices, c->ints);
}

static ToroidStatus bind(TorContext *c) {
    TorPlan *plan = c->plan;
    c->bound = false;
    TOR_TRY(tor_int_eval(plan->g, leaf_value, c, c->ints));
    TorBinder common = {.ints = c->ints, .error = &c->error, .reference = plan->reference};
    TorTuneChoice *choices = NULL;
    take_choices(c, &common, &choices);
    c->n_calls = c->scratch_bytes = c->shared_bytes = 0;
    for (size_t i = 0; i < plan->n_steps; i++) {
        const TorStep *step = &plan->steps[i];
        TorBinder b = common;
        b.args = c->args + step->args_at;
        b.choice = choices ? &choices[i] : NULL;
        if (b.ask && b.bucket_ints != b.ints) b.bucket_args = c->bucket_args + step->args_at;
        step->kind->bind(step->data, &b);
        for (int k = 0; k < b.n_calls; k++) {
            c->call_step[c->n_calls] = (uint32_t)i;
            c->calls[c->n_calls++] = b.calls[k];
        }
        c->scratch_bytes = TOR_MAX(c->scratch_bytes, b.scratch_bytes);
        c->shared_bytes = TOR_MAX(c->shared_bytes, b.shared_bytes);
    }
    TOR_TRY(place_arena(c));
    set_fixed_pointers(c);
    const TorNode *sink = plan->g->output;
    for (int k = 0; k < sink->n_inputs; k++) {
        if (plan->output_of[k] < 0) continue;
        const TorValue *v = tor_in(sink, k);
        TorPlanOutput *o = &c->outputs[plan->output_of[k]];
        for (int d = 0; d < v->rank; d++) {
            o->size[d] = c->ints[v->dim[d]];
            o->stride[d] = c->ints[v->stride[d]];
        }
        o->offset = c->ints[v->offset];
    }
    c->bound = true;
    c->binds++;
    // What was tuned meanwhile is in use already.
    c->ask.generation = tor_tune_generation(&c->ask);
    if (common.ask) tor_choices_asked(c->choices, &c->ask);
    return TOROID_OK;
}

ToroidStatus tor_context_begin(TorContext *c, const TorPlanInput *inputs, int threads) {
    c->inputs = inputs;
    TorTuneAsk ask = ask_now(c, threads);
    bool same = c->bound && tor_tune_holds(&c->ask, &ask);
    c->ask = ask;
    for (size_t i = 0; i < c->n_leaves; i++) {
        int64_t value = leaf_value(c, c->leaves[i].input, c->leaves[i].what);
        same &= value == c->leaf_values[i];
        c->leaf_values[i] = value;
    }
    if (!same) TOR_TRY(bind(c));
    // Memory of larger sizes goes back once they have not come again for a while.
    tor_region_settle(&c->arena);
    return TOROID_OK;
}

// ---------------------------------------------------------------- run

static ToroidStatus step_error(const TorContext *c, size_t step) {
    const TorStep *s = &c->plan->steps[step];
    return s->kind->raised(s, c->args + s->args_at, c->error);
}

ToroidStatus tor_context_run(TorContext *c, int threads, void *token, bool ranges) {
    const TorPlan *plan = c->plan;
    for (size_t i = 0; i < c->n_moving; i++) {
        const TorPointer *p = &plan->pointers[c->moving[i]];
        const TorStorage *s = &plan->storages[p->storage];
        void *base =
            s->kind == TOR_STORAGE_INPUT ? c->inputs[s->number].data : c->outputs[s->number].data;
        *(void **)(c->args + p->at) = element(base, c, p);
    }
    size_t scratch = (c->scratch_bytes + TOR_CACHE_LINE - 1) / TOR_CACHE_LINE * TOR_CACHE_LINE;
    bool moved;
    TOR_TRY(tor_region_fit(&c->scratch, scratch * (size_t)threads, &moved));
    c->error = 0;
    TorTeam team;
    tor_team_begin(&team, threads, c->scratch.base, scratch);
    ToroidStatus status = TOROID_OK;
    TorWatch watch;
    const bool watched = tor_watch_begin(&watch, c, &c->trace, threads, token, ranges);
    // A step has one region or more, which follow each other.
    for (size_t i = 0; i < c->n_calls && status == TOROID_OK; i++) {
        const TorRegionCall *call = &c->calls[i];
        uint32_t step = c->call_step[i];
        if (watched && (i == 0 || c->call_step[i - 1] != step)) tor_watch_step(&watch, step);
        if (call->run) {
            tor_team_run(&team, call->run, call->args, call->items);
            // At once, while the index tensor is still there to be named in the message.
            if (c->error) status = step_error(c, step);
        } else {
            tor_team_rest(&team);
            status = tor_external_run(plan, call->args, token);
        }
        bool last = i + 1 == c->n_calls || c->call_step[i + 1] != step || status != TOROID_OK;
        if (watched && last) tor_watch_ended(&watch, step);
    }
    tor_team_end(&team);
    return status;
}

TorPlanOutput *tor_context_outputs(TorContext *c) { return c->outputs; }
int64_t tor_context_int(const TorContext *c, TorDim dim) { return c->ints[dim]; }
size_t tor_context_arena_bytes(const TorContext *c) { return c->arena_bytes + c->shared_bytes; }
uint64_t tor_context_input_bytes(const TorContext *c) {
    return c->bound ? (uint64_t)c->ints[c->plan->input_bytes] : 0;
}
uint64_t tor_context_binds(const TorContext *c) { return c->binds; }
void tor_context_trim(TorContext *c) {
    tor_region_trim(&c->arena);
    tor_region_trim(&c->scratch);
}

const TorRegionCall *tor_context_calls(const TorContext *c, size_t step, int *count) {
    *count = 0;
    const TorRegionCall *first = NULL;
    for (size_t i = 0; i < c->n_calls; i++)
        if (c->call_step[i] == step) {
            if (!first) first = &c->calls[i];
            (*count)++;
        }
    return first;
}

const TorPlan *tor_context_plan(const TorContext *c) { return c->plan; }
const int64_t *tor_context_ints(const TorContext *c) { return c->ints; }
const int64_t *tor_context_sizes(const TorContext *c, size_t *count) {
    *count = c->n_leaves;
    return c->leaf_values;
}

const void *tor_context_args(const TorContext *c, size_t step) {
    return c->args + c->plan->steps[step].args_at;
}

#include "plan/trace.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/log.h"
#include "plan/step.h"

enum { MOST_EVENTS = 1 << 22, MOST_STEPS = 1 << 18 };  // about 100 MB each

/// Sizes that a plan was bound to.
typedef struct TorTraceBinding {
    uint64_t plan;
    uint32_t first;  ///< of its steps
    const int64_t *sizes;
} TorTraceBinding;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static TorTrace *current;            // under the lock
static double started;               // under the lock
static _Atomic uint64_t recordings;  // odd: one is on

ToroidStatus tor_trace_start(void) {
    TorTrace *trace = tor_alloc_zero(sizeof *trace);
    ToroidStatus status = trace ? tor_arena_create(&trace->arena) : tor_no_memory();
    pthread_mutex_lock(&lock);
    if (status == TOROID_OK && current) status = tor_invalid("a profile is being taken already");
    if (status == TOROID_OK) {
        current = trace, trace = NULL;
        started = tor_now();
        atomic_fetch_add(&recordings, 1);
    }
    pthread_mutex_unlock(&lock);
    tor_trace_destroy(&trace);
    return status;
}

ToroidStatus tor_trace_stop(TorTrace **out) {
    pthread_mutex_lock(&lock);
    *out = current;
    if (current) {
        current->seconds = tor_now() - started;
        current = NULL;
        atomic_fetch_add(&recordings, 1);
    }
    pthread_mutex_unlock(&lock);
    return *out ? TOROID_OK : tor_invalid("no profile is being taken");
}

void tor_trace_destroy(TorTrace **trace) {
    if (!trace || !*trace) return;
    tor_free((*trace)->steps);
    tor_free((*trace)->events);
    tor_free((*trace)->bindings);
    tor_arena_destroy(&(*trace)->arena);
    tor_free(*trace);
    *trace = NULL;
}

// ---------------------------------------------------------------- steps

/// Adds all steps of a context, or none.
static bool describe_all(TorTrace *trace, const TorContext *c, const TorPlan *plan) {
    size_t before = trace->n_steps;
    if (before + plan->n_steps > MOST_STEPS ||
        tor_grow((void **)&trace->steps, &trace->step_capacity, before + plan->n_steps,
                 sizeof *trace->steps) != TOROID_OK)
        return false;
    for (uint32_t i = 0; i < plan->n_steps; i++, trace->n_steps++)
        if (!tor_step_describe(&trace->steps[trace->n_steps], trace->arena, plan, c, i)) {
            trace->n_steps = before;
            return false;
        }
    return true;
}

/// Where the steps of a context are; they are added the first time that sizes are seen.
static bool find_steps(TorTrace *trace, const TorContext *c, uint32_t *first) {
    const TorPlan *plan = tor_context_plan(c);
    size_t n;
    const int64_t *sizes = tor_context_sizes(c, &n);
    for (size_t i = trace->n_bindings; i-- > 0;) {
        const TorTraceBinding *b = &trace->bindings[i];
        if (b->plan != plan->number || memcmp(b->sizes, sizes, n * sizeof *sizes) != 0) continue;
        *first = b->first;
        return true;
    }
    int64_t *copy = tor_arena_alloc(trace->arena, n * sizeof *sizes + 1);
    if (!copy || tor_grow((void **)&trace->bindings, &trace->binding_capacity,
                          trace->n_bindings + 1, sizeof *trace->bindings) != TOROID_OK)
        return false;
    memcpy(copy, sizes, n * sizeof *sizes);
    *first = (uint32_t)trace->n_steps;
    if (!describe_all(trace, c, plan)) return false;
    trace->bindings[trace->n_bindings++] = (TorTraceBinding){plan->number, *first, copy};
    return true;
}

bool tor_trace_begin(TorTraceMark *mark, const TorContext *c) {
    uint64_t recording = atomic_load_explicit(&recordings, memory_order_relaxed);
    if (recording % 2 == 0) return false;
    uint64_t binds = tor_context_binds(c);
    if (mark->trace == recording && mark->binds == binds) return true;
    pthread_mutex_lock(&lock);
    bool on = current && atomic_load(&recordings) == recording;
    if (on) {
        uint32_t first;
        on = find_steps(current, c, &first);
        if (on)
            *mark = (TorTraceMark){recording, binds, first};
        else
            current->lost++;
    }
    pthread_mutex_unlock(&lock);
    return on;
}

// ---------------------------------------------------------------- events

static uint32_t thread_number(void) {
    static _Atomic uint32_t threads;
    static _Thread_local uint32_t number;
    if (!number) number = atomic_fetch_add(&threads, 1) + 1;
    return number;
}

void tor_trace_add(const TorTraceMark *mark, uint32_t step, int n_threads, double start,
                   double end) {
    pthread_mutex_lock(&lock);
    if (current && atomic_load(&recordings) == mark->trace) {
        TorTrace *t = current;
        if (t->n_events < MOST_EVENTS && tor_grow((void **)&t->events, &t->event_capacity,
                                                  t->n_events + 1, sizeof *t->events) == TOROID_OK)
            t->events[t->n_events++] = (TorTraceEvent){.step = mark->first + step,
                                                       .thread = thread_number(),
                                                       .n_threads = (uint32_t)n_threads,
                                                       .start = start - started,
                                                       .seconds = end - start};
        else
            t->lost++;
    }
    pthread_mutex_unlock(&lock);
}

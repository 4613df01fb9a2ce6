// Which prologue results a call uses: those of its frozen inputs as they are now.
#include <string.h>

#include "backend/internal.h"

static pthread_mutex_t watch_lock = PTHREAD_MUTEX_INITIALIZER;
static TorExecutable *watched;

enum { MAX_SETS = 256 };  // of one executable: modules that share one compiled graph

static void free_set(TorExecutable *exe, TorFrozenSet *set) {
    for (size_t i = 0; set->entries && i < exe->prologue.count; i++)
        tor_frozen_release(&set->entries[i]);
    tor_free(set->states);
    tor_free(set->entries);
    tor_free(set);
}

void tor_frozen_set_release(TorExecutable *exe, TorFrozenSet **set) {
    if (!set || !*set) return;
    pthread_mutex_lock(&exe->lock);
    bool last = --(*set)->references == 0;
    pthread_mutex_unlock(&exe->lock);
    if (last) free_set(exe, *set);
    *set = NULL;
}

static bool matches(const TorExecutable *exe, const TorFrozenSet *set,
                    const TorFrozenState *states) {
    if (set->epoch != tor_frozen_epoch()) return false;
    for (uint32_t i = 0; i < exe->n_frozen; i++)
        if (!tor_frozen_same(&set->states[i], &states[i])) return false;
    return true;
}

static bool same_tensors(const TorExecutable *exe, const TorFrozenSet *set,
                         const TorFrozenState *states) {
    for (uint32_t i = 0; i < exe->n_frozen; i++)
        if (set->states[i].uid != states[i].uid) return false;
    return true;
}

/// Runs one small graph of the prologue on this call's tensors.
static ToroidStatus compute(TorCall *call, size_t r, TorFrozenEntry *entry) {
    TorExecutable *exe = call->exe;
    const TorPrologueResult *result = &exe->prologue.results[r];
    TorPlanInput *inputs = tor_alloc_zero((result->n_sources + 1) * sizeof *inputs);
    if (!inputs) return tor_no_memory();
    for (uint32_t i = 0; i < result->n_sources; i++) inputs[i] = call->inputs[result->sources[i]];
    TorContext *context = NULL;
    ToroidStatus status = tor_context_create(&context, exe->prologue_plans[r]);
    if (status == TOROID_OK) status = tor_context_begin(context, inputs);
    if (status == TOROID_OK) {
        tor_context_outputs(context)[0].data = tor_frozen_data(entry);
        status = tor_context_run(context, call->threads, NULL, false);
    }
    tor_context_destroy(&context);
    tor_free(inputs);
    return status;
}

static ToroidStatus result_for(TorCall *call, size_t r, TorFrozenEntry **out) {
    TorExecutable *exe = call->exe;
    const TorPrologueResult *result = &exe->prologue.results[r];
    TorFrozenState stack[16], *sources = stack;
    if (result->n_sources > TOR_COUNT_OF(stack))
        sources = tor_alloc(result->n_sources * sizeof *sources);
    if (!sources) return tor_no_memory();
    for (uint32_t i = 0; i < result->n_sources; i++)
        for (uint32_t k = 0; k < exe->n_frozen; k++)
            if (exe->frozen_inputs[k] == result->sources[i]) sources[i] = call->states[k];
    int n = (int)result->n_sources;
    ToroidStatus status = TOROID_OK;
    *out = n ? tor_frozen_find(result->key, sources, n) : NULL;
    if (!*out) {
        status = tor_frozen_create(out, result->key, sources, n, exe->prologue_bytes[r]);
        if (status == TOROID_OK) status = compute(call, r, *out);
        // What depends on constants alone belongs to this executable, not to a tensor.
        if (status == TOROID_OK && n) tor_frozen_publish(*out);
        if (status != TOROID_OK) tor_frozen_release(out);
    }
    if (sources != stack) tor_free(sources);
    return status;
}

static ToroidStatus make_set(TorCall *call, TorFrozenSet **out) {
    TorExecutable *exe = call->exe;
    TorFrozenSet *set = tor_alloc_zero(sizeof *set);
    if (!set) return tor_no_memory();
    set->epoch = tor_frozen_epoch();
    set->states = tor_alloc((exe->n_frozen + 1) * sizeof *set->states);
    set->entries = tor_alloc_zero((exe->prologue.count + 1) * sizeof *set->entries);
    ToroidStatus status = set->states && set->entries ? TOROID_OK : tor_no_memory();
    if (status == TOROID_OK) memcpy(set->states, call->states, exe->n_frozen * sizeof *set->states);
    for (size_t r = 0; r < exe->prologue.count && status == TOROID_OK; r++)
        status = result_for(call, r, &set->entries[r]);
    if (status != TOROID_OK) {
        free_set(exe, set);
        return status;
    }
    *out = set;
    return TOROID_OK;
}

/// Takes sets off the list that `drop` names; the caller frees those whose last reference that was.
static TorFrozenSet *unlink_sets(TorExecutable *exe, const TorFrozenState *states, uint64_t uid) {
    TorFrozenSet *dead = NULL;
    int kept = 0;
    for (TorFrozenSet **link = &exe->sets; *link;) {
        TorFrozenSet *set = *link;
        bool drop = ++kept > MAX_SETS || (states && same_tensors(exe, set, states));
        for (uint32_t i = 0; uid && i < exe->n_frozen; i++) drop |= set->states[i].uid == uid;
        if (!drop) {
            link = &set->next;
            continue;
        }
        *link = set->next;
        if (--set->references == 0) {
            set->next = dead;
            dead = set;
        }
    }
    return dead;
}

static void free_list(TorExecutable *exe, TorFrozenSet *dead) {
    while (dead) {
        TorFrozenSet *next = dead->next;
        free_set(exe, dead);
        dead = next;
    }
}

ToroidStatus tor_frozen_set_find(TorCall *call) {
    TorExecutable *exe = call->exe;
    pthread_mutex_lock(&exe->lock);
    for (TorFrozenSet **link = &exe->sets; *link; link = &(*link)->next) {
        TorFrozenSet *set = *link;
        if (!matches(exe, set, call->states)) continue;
        *link = set->next;  // to the front
        set->next = exe->sets;
        exe->sets = set;
        set->references++;
        pthread_mutex_unlock(&exe->lock);
        call->set = set;
        return TOROID_OK;
    }
    pthread_mutex_unlock(&exe->lock);
    TorFrozenSet *set = NULL;
    TOR_TRY(make_set(call, &set));
    set->references = 2;  // the list's and the call's
    pthread_mutex_lock(&exe->lock);
    TorFrozenSet *dead = unlink_sets(exe, exe->n_frozen ? set->states : NULL, 0);
    set->next = exe->sets;
    exe->sets = set;
    pthread_mutex_unlock(&exe->lock);
    free_list(exe, dead);
    call->set = set;
    return TOROID_OK;
}

static void forget(uint64_t uid) {
    pthread_mutex_lock(&watch_lock);
    for (TorExecutable *exe = watched; exe; exe = exe->next) {
        pthread_mutex_lock(&exe->lock);
        TorFrozenSet *dead = unlink_sets(exe, NULL, uid);
        pthread_mutex_unlock(&exe->lock);
        free_list(exe, dead);
    }
    pthread_mutex_unlock(&watch_lock);
}

void tor_frozen_watch(TorExecutable *exe) {
    tor_frozen_listen(forget);
    pthread_mutex_lock(&watch_lock);
    exe->next = watched;
    watched = exe;
    pthread_mutex_unlock(&watch_lock);
}

void tor_frozen_unwatch(TorExecutable *exe) {
    pthread_mutex_lock(&watch_lock);
    for (TorExecutable **link = &watched; *link; link = &(*link)->next)
        if (*link == exe) {
            *link = exe->next;
            break;
        }
    pthread_mutex_unlock(&watch_lock);
    free_list(exe, exe->sets);
    exe->sets = NULL;
}

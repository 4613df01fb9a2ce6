/// Inside a compiled graph.
#ifndef TOR_BACKEND_INTERNAL_H
#define TOR_BACKEND_INTERNAL_H

#include <pthread.h>

#include "backend/executable.h"
#include "backend/frozen.h"
#include "passes/prologue.h"
#include "plan/plan.h"

/// Results for one state of the frozen inputs. Immutable once it is in the executable's list, but
/// for the count of references.
typedef struct TorFrozenSet {
    struct TorFrozenSet *next;
    int references;  ///< the list's own is one of them; under the executable's lock
    uint64_t epoch;
    TorFrozenState *states;    ///< of the frozen inputs, in the order of exe->frozen_inputs
    TorFrozenEntry **entries;  ///< of the prologue's results
} TorFrozenSet;

/// A size or stride that an input must have.
typedef struct {
    uint32_t input;
    int dim;          ///< -1 - dim: a stride
    TorDim expected;  ///< a size may follow from other inputs
    int64_t value;    ///< of a constant
} TorInputCheck;

struct TorCall {
    TorCall *next;
    TorExecutable *exe;
    TorContext *context;
    TorFrozenSet *set;
    int threads;
    double idle_since;          ///< tor_now(), in the list of idle ones
    bool trimmed;               ///< has given its pages back since
    const TorCallInput *given;  ///< borrowed until tor_exe_begin() returns
    TorPlanInput *inputs;       ///< the host's, then the prologue's results
    TorFrozenState *states;     ///< scratch for the check
};

struct TorExecutable {
    TorExecutable *next;  ///< in the list of all, for tor_frozen_forget()
    TorGraph *g;
    TorPlan *plan;
    TorPrologue prologue;
    TorPlan **prologue_plans;
    size_t *prologue_bytes;
    TorOptions options;
    uint32_t n_inputs;        ///< that the host gives
    uint32_t *frozen_inputs;  ///< that the prologue reads
    uint32_t n_frozen;
    size_t *frozen_bytes;  ///< extent of each, where it is known at compile time; else SIZE_MAX
    bool *released;        ///< for each: its memory goes once what is made from it is there
    TorInputCheck *checks;
    size_t n_checks, n_static_checks, check_capacity;  ///< constants come first
    TorTable *before, *after;                          ///< the passes
    uint64_t native_nodes, external_nodes;

    pthread_mutex_t lock;  ///< for what follows; held for pointer work only
    TorFrozenSet *sets;    ///< most recently used first
    TorCall *idle;
    uint64_t contexts, binds, arena_bytes, input_bytes;
};

/// Finds or makes every result of the prologue for the states in call->states. On failure those
/// that were made are left in `entries` (cleared by the caller).
ToroidStatus tor_frozen_make(TorCall *call, TorFrozenEntry **entries);
/// Finds or makes the set of results for the states in call->states, and gives the call a
/// reference.
ToroidStatus tor_frozen_set_find(TorCall *call);
void tor_frozen_set_release(TorExecutable *exe, TorFrozenSet **set);
/// Adds an executable to the list of those that hear of forgotten tensors, or takes it off.
void tor_frozen_watch(TorExecutable *exe);
void tor_frozen_unwatch(TorExecutable *exe);
/// Calls `fn` with every executable; none is destroyed meanwhile.
void tor_frozen_each_watched(void (*fn)(TorExecutable *exe, void *user), void *user);
/// Gives back the memory of calls that were idle for TOR_IDLE_SECONDS, at most once a second.
void tor_idle_sweep(double now);
void tor_frozen_stats(TorExeStats *stats);
void tor_call_destroy(TorCall **call);

#endif

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

static ToroidStatus make_set(TorCall *call, TorFrozenSet **out) {
    TorExecutable *exe = call->exe;
    TorFrozenSet *set = tor_alloc_zero(sizeof *set);
    if (!set) return tor_no_memory();
    set->epoch = tor_frozen_epoch();
    set->states = tor_alloc((exe->n_frozen + 1) * sizeof *set->states);
    set->entries = tor_alloc_zero((exe->prologue.count + 1) * sizeof *set->entries);
    ToroidStatus status = set->states && set->entries ? TOROID_OK : tor_no_memory();
    if (status == TOROID_OK) memcpy(set->states, call->states, exe->n_frozen * sizeof *set->states);
    if (status == TOROID_OK) status = tor_frozen_make(call, set->entries);
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

void tor_frozen_each_watched(void (*fn)(TorExecutable *exe, void *user), void *user) {
    pthread_mutex_lock(&watch_lock);
    for (TorExecutable *exe = watched; exe; exe = exe->next) fn(exe, user);
    pthread_mutex_unlock(&watch_lock);
}

static void forget_in(TorExecutable *exe, void *user) {
    pthread_mutex_lock(&exe->lock);
    TorFrozenSet *dead = unlink_sets(exe, NULL, *(uint64_t *)user);
    pthread_mutex_unlock(&exe->lock);
    free_list(exe, dead);
}

static void forget(uint64_t uid) { tor_frozen_each_watched(forget_in, &uid); }

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

// Memory of calls that nobody makes any more.
#include <math.h>
#include <stdatomic.h>

#include "backend/internal.h"

/// `user`: calls that are idle since then or longer give their pages back.
static void trim_idle(TorExecutable *exe, void *user) {
    double since = *(double *)user;
    pthread_mutex_lock(&exe->lock);
    for (TorCall *call = exe->idle; call; call = call->next) {
        if (call->trimmed || call->idle_since > since) continue;
        tor_context_trim(call->context);
        call->trimmed = true;
    }
    pthread_mutex_unlock(&exe->lock);
}

void tor_idle_sweep(double now) {
    static _Atomic int64_t next;  // whole seconds
    int64_t second = (int64_t)now, due = atomic_load_explicit(&next, memory_order_relaxed);
    if (second < due || !atomic_compare_exchange_strong(&next, &due, second + 1)) return;
    double since = now - TOR_IDLE_SECONDS;
    tor_frozen_each_watched(trim_idle, &since);
}

void tor_exe_trim(void) {
    double since = HUGE_VAL;
    tor_frozen_each_watched(trim_idle, &since);
}

// Messages to the host's hook.
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void to_stderr(void *user, int level, const char *message) {
    (void)user;
    fprintf(stderr, "toroid: %s%s\n", level == 0 ? "warning: " : "", message);
}

static pthread_mutex_t hook_lock = PTHREAD_MUTEX_INITIALIZER;
static TorLogHook current_hook = to_stderr;
static void *current_user;

void tor_log_set_hook(TorLogHook hook, void *user) {
    pthread_mutex_lock(&hook_lock);
    current_hook = hook != NULL ? hook : to_stderr;
    current_user = hook != NULL ? user : NULL;
    pthread_mutex_unlock(&hook_lock);
}

int tor_log_level(void) {
    static _Atomic int known = -1;
    int level = atomic_load_explicit(&known, memory_order_relaxed);
    if (level < 0) {
        const char *text = getenv("TOROID_VERBOSE");
        level = text == NULL ? 0 : atoi(text);
        level = level < 0 ? 0 : level > 3 ? 3 : level;
        atomic_store_explicit(&known, level, memory_order_relaxed);
    }
    return level;
}

void tor_log(int level, const char *format, ...) {
    if (level > tor_log_level()) return;
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    // The hook runs unlocked: it may log or set a hook itself.
    pthread_mutex_lock(&hook_lock);
    TorLogHook hook = current_hook;
    void *user = current_user;
    pthread_mutex_unlock(&hook_lock);
    hook(user, level, text);
}

double tor_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

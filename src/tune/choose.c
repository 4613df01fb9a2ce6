#include "tune/choose.h"

#include <pthread.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "tune/providers.h"
#include "tune/results.h"
#include "tune/tuner.h"
#include "tune/untuned.h"
#include "tune/verbose.h"

TorTuneAsk tor_tune_ask(bool wanted, int threads) {
    TorTuneSettings s = tor_tune_settings();
    bool use = s.enabled || (wanted && !tor_tune_is_forbidden());
    if (use) tor_providers_update(&s);
    TorTuneAsk ask = {
        .use = use, .tune = use && s.tuning, .note = s.record_untuned, .threads = threads};
    ask.generation = tor_tune_generation(&ask);
    return ask;
}

uint64_t tor_tune_generation(const TorTuneAsk *ask) {
    return (ask->use ? tor_results_generation() : 0) + (ask->note ? tor_untuned_generation() : 0);
}

bool tor_tune_holds(const TorTuneAsk *then, const TorTuneAsk *now) {
    if (!tor_tune_asks(then) && !tor_tune_asks(now)) return true;
    return then->use == now->use && then->tune == now->tune && then->note == now->note &&
           then->threads == now->threads && then->generation == now->generation;
}

int64_t tor_tune_bucket(int64_t size) {
    int64_t power = 1;
    if (size <= 1 || size > (int64_t)1 << 60) return size;
    while (power < size) power *= 2;
    return size <= power / 4 * 3 && power >= 4 ? power / 4 * 3 : power;
}

// ---------------------------------------------------------------- what is remembered

typedef struct {
    uint64_t hash, generation;
    bool taken, tuned, noted;  // looked at with tuning on, with recording on
    TorTuneChoice choice;
} Known;

enum { SETS = 1024, WAYS = 2 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Known known[SETS][WAYS];  // under the lock; a set's newest first

static bool recall(uint64_t hash, const TorTuneAsk *ask, TorTuneChoice *out) {
    bool found = false;
    pthread_mutex_lock(&lock);
    Known *set = known[hash % SETS];
    for (int i = 0; i < WAYS && !found; i++) {
        found = set[i].taken && set[i].hash == hash && set[i].generation == ask->generation &&
                (set[i].tuned || !ask->tune) && (set[i].noted || !ask->note);
        if (found) *out = set[i].choice;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static void remember(uint64_t hash, const TorTuneAsk *ask, const TorTuneChoice *choice) {
    pthread_mutex_lock(&lock);
    Known *set = known[hash % SETS];
    if (set[0].hash != hash) memmove(&set[1], &set[0], (WAYS - 1) * sizeof *set);
    set[0] = (Known){hash, tor_tune_generation(ask), true, ask->tune, ask->note, *choice};
    pthread_mutex_unlock(&lock);
}

// ---------------------------------------------------------------- tuning

/// Tells, at most every two seconds, what takes so long.
static void tell_progress(const char *op, const char *params) {
    static double first, last;
    static int count;
    pthread_mutex_lock(&lock);
    double now = tor_now();
    // A pause ends what was told as one.
    if (!first || now - last > 60) first = last = now, count = 0;
    count++;
    bool tell = now - last > 2;
    double seconds = now - first;
    int number = count;
    if (tell) last = now;
    pthread_mutex_unlock(&lock);
    if (tell) tor_log(0, "tuning for %.0f s: operator %d, %s %.200s", seconds, number, op, params);
}

/// @return false if nothing was found out
static bool tune(const TorTunable *t, const void *problem, const TorTuneAsk *ask,
                 const char *params, TorTuneChoice *out) {
    TorTuneSettings settings = tor_tune_settings();
    TorTuned tuned;
    tell_progress(t->op, params);
    ToroidStatus status = tor_tune_problem(t, problem, ask->threads, &settings, &tuned);
    if (status != TOROID_OK) {
        tor_tune_say(2, "tuning %s %s: %s", t->op, params, toroid_last_error());
        return false;
    }
    TorTuneResult result = tor_tuned_result(t, params, &tuned);
    tor_tune_say(2, "tuned %s %s: %s, %.4f ms for %.4f by Default; %d candidates", t->op, params,
                 result.solution, tuned.ms, tuned.default_ms, tuned.tried);
    *out = tuned.choice;
    if (tor_results_add(&result) != TOROID_OK) tor_log(0, "tuning: %s", toroid_last_error());
    return true;
}

/// @return false if it is worth asking again
static bool look_up(const TorTunable *t, const void *problem, const TorTuneAsk *ask,
                    TorTuneChoice *out) {
    char params[TOR_TUNE_PARAMS];
    TorTuneResult result;
    if (!tor_tune_params(t, problem, ask->threads, params)) {
        tor_tune_say(2, "tuning %s: params are too long to be kept: %.200s", t->op, params);
        return true;
    }
    if (ask->use && tor_results_find(t->op, params, &result)) {
        if (tor_choice_parse(t, result.solution, out)) return true;
        tor_tune_warn_once("tuning results: %s has no solution %s; Default is used", t->op,
                           result.solution);
        return true;
    }
    bool noted = !ask->note || tor_untuned_note(t->op, params);
    bool found = !ask->tune || tune(t, problem, ask, params, out);
    return noted && found;
}

void tor_tune_choose(const TorTunable *t, const void *problem, const TorTuneAsk *ask,
                     TorTuneChoice *out) {
    *out = (TorTuneChoice){0};
    uint64_t hash = tor_hash_add(t->hash(problem), ask->threads);
    hash = tor_hash_add(hash, (int64_t)(uintptr_t)t);
    if (recall(hash, ask, out)) return;
    if (look_up(t, problem, ask, out)) remember(hash, ask, out);
}

#include "tune/tuner.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cpu.h"
#include "base/log.h"
#include "tune/check.h"
#include "tune/providers.h"

enum { MOST_TIMES = 1000, TURNS = 32, LEAST_TURNS = 4 };
#define LEAST_MS 0.02    // that the clock is asked about
#define LEAST_GAIN 0.02  // smaller ones are not worth a row

typedef struct {
    const TorTunable *t;
    void *problem;
    int threads;
    const TorTuneSettings *settings;
    TorTuneMemory memory;
    TorTuneAnswer answer;
    TorLaunch launch;  // of the choice that is set
    TorRegion scratch, shared;
    uint64_t runs;
    bool busy;               // the pool served another run
    TorTuneFailure failure;  // of the choice that is set
} Bench;

// ---------------------------------------------------------------- running

static ToroidStatus prepare(Bench *b, const TorTuneChoice *choice) {
    b->launch = (TorLaunch){0};
    b->t->set(b->problem, choice);
    b->t->bind(b->problem, &b->launch);
    size_t each = (size_t)tor_round_up((int64_t)b->launch.scratch_bytes, TOR_CACHE_LINE);
    b->launch.scratch_bytes = each;
    bool moved;
    TOR_TRY(tor_region_fit(&b->scratch, each * (size_t)b->threads, &moved));
    TOR_TRY(tor_region_fit(&b->shared, b->launch.shared_bytes, &moved));
    if (b->launch.shared) *b->launch.shared = b->shared.base;
    b->failure = (TorTuneFailure){.noted = false};
    if (b->launch.failure) *b->launch.failure = &b->failure;
    return TOROID_OK;
}

static void run(Bench *b, TorTeam *team) {
    tor_tune_memory_point(&b->memory, b->runs++);
    for (int i = 0; i < b->launch.n_calls; i++)
        tor_team_run(team, b->launch.calls[i].run, b->launch.calls[i].args,
                     b->launch.calls[i].items);
}

/// False if another run has the pool: what would be timed then is not what was asked for.
static bool begin(Bench *b, TorTeam *team) {
    tor_team_begin(team, b->threads, b->scratch.base, b->launch.scratch_bytes);
    if (team->threads == b->threads) return true;
    tor_team_end(team);
    b->busy = true;
    return false;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/// Mean of the fastest quarter: what the machine does besides only ever adds.
static double fastest_quarter(double *times, int count) {
    int quarter = (count + 3) / 4;
    double sum = 0;
    qsort(times, (size_t)count, sizeof *times, ascending);
    for (int i = 0; i < quarter; i++) sum += times[i];
    return sum / quarter;
}

/// Seconds of the clock to go by: one thread's own, which stands still while others have its CPU;
/// of several the wall's.
static double now(const Bench *b) {
    struct timespec time;
    if (b->threads > 1 || clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0) return tor_now();
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/// The ms of `runs` runs.
static double batch_ms(Bench *b, TorTeam *team, int runs) {
    double start = now(b);
    for (int i = 0; i < runs; i++) run(b, team);
    return (now(b) - start) * 1e3;
}

/// What a run noted, as this thread's error.
static ToroidStatus failed(const Bench *b) {
    return b->failure.noted ? tor_failed("%s", b->failure.message) : TOROID_OK;
}

/// Times at least one run and at most `iterations`, which end when `most_ms` are over. The first
/// run warms up and tells how many are long against the clock.
static double timed(Bench *b, int warmups, double warmup_ms, int iterations, double most_ms) {
    static _Thread_local double times[MOST_TIMES];
    TorTeam team;
    if (!begin(b, &team)) return INFINITY;
    double spent = batch_ms(b, &team, 1);
    int batch = (int)TOR_MAX(TOR_MIN(LEAST_MS / spent, 100), 1), count = 0;
    for (int i = 1; i < warmups && spent < warmup_ms; i++) spent += batch_ms(b, &team, 1);
    for (spent = 0; count < TOR_MIN(iterations, MOST_TIMES) && (!count || spent < most_ms);) {
        double ms = batch_ms(b, &team, batch);
        times[count++] = ms / batch;
        spent += ms;
    }
    tor_team_end(&team);
    return b->failure.noted ? INFINITY : fastest_quarter(times, count);
}

static double timed_long(Bench *b) {
    const TorTuneSettings *s = b->settings;
    return timed(b, s->max_warmup_iterations, s->max_warmup_ms, TOR_MAX(s->max_iterations, 1),
                 s->max_ms);
}

// ---------------------------------------------------------------- choosing

/// Runs once on fresh results and compares, or keeps them as the answer.
static ToroidStatus checked(Bench *b, bool keep) {
    TorTeam team;
    tor_tune_memory_reset(&b->memory);
    if (!begin(b, &team)) return tor_refuse("the pool serves another run");
    run(b, &team);
    tor_team_end(&team);
    TOR_TRY(failed(b));
    return keep ? tor_tune_answer_keep(&b->answer, &b->memory)
                : tor_tune_answer_compare(&b->answer, &b->memory, b->settings);
}

static void reject(const Bench *b, const TorTuneChoice *choice, TorTuned *out) {
    char solution[TOR_TUNE_SOLUTION];
    tor_choice_print(b->t, choice, solution, sizeof solution);
    tor_log(0, "tuning %s: %s is rejected: %s", b->t->op, solution, toroid_last_error());
    out->rejected++;
}

/// The time of a candidate; infinite for one that is slow, wrong or fails.
static double candidate_ms(Bench *b, const TorTuneChoice *choice, double best, TorTuned *out) {
    const double most_ms = b->settings->max_ms;
    if (prepare(b, choice) != TOROID_OK) {
        reject(b, choice, out);
        return INFINITY;
    }
    double first = timed(b, 2, most_ms, 3, most_ms);
    if (failed(b) != TOROID_OK) {
        reject(b, choice, out);
        return INFINITY;
    }
    if (first > 1.5 * best) return INFINITY;
    if (timed(b, 1, 0, 10, most_ms) > 1.15 * best) return INFINITY;
    if (checked(b, false) != TOROID_OK) {
        if (!b->busy) reject(b, choice, out);
        return INFINITY;
    }
    return timed_long(b);
}

/// Times all choices in each turn: times[i] are those of choice i.
/// @return turns; 0 if nothing could be timed, or a run failed
static int take_turns(Bench *b, const TorTuneChoice *choices, int count, double estimate_ms,
                      double (*times)[TURNS]) {
    // A turn is long against the clock, and all turns against the limit.
    int runs = (int)TOR_MAX(TOR_MIN(0.5 / estimate_ms, 1000), 1), turn = 0;
    double start = now(b), most_ms = 3 * count * b->settings->max_ms;
    for (; turn < TURNS && (turn < LEAST_TURNS || (now(b) - start) * 1e3 < most_ms); turn++)
        for (int k = 0; k < count; k++) {
            int i = (turn + k) % count;  // none is always the first
            if (prepare(b, &choices[i]) != TOROID_OK) return 0;
            times[i][turn] = timed(b, 1, 0, runs, most_ms);
            if (b->busy || b->failure.noted) return 0;
        }
    return turn;
}

/// What every second turn, from `first` on, says.
static double half_ms(const double *times, int turns, int first) {
    double half[TURNS];
    int count = 0;
    for (int k = first; k < turns; k += 2) half[count++] = times[k];
    return fastest_quarter(half, count);
}

/// By how much two halves of the turns disagree on one choice, relatively.
static double noise(const double *times, int turns) {
    return fabs(log(half_ms(times, turns, 0) / half_ms(times, turns, 1)));
}

/// Replaces Default by the better of two, if that is faster by more than the turns' noise.
static void settle(Bench *b, const TorTuneChoice *best, int count, TorTuned *out) {
    TorTuneChoice choices[3] = {{0}};
    double times[3][TURNS];
    for (int i = 0; i < count; i++) choices[1 + i] = best[i];
    int turns = take_turns(b, choices, 1 + count, out->default_ms, times);
    if (!turns) return;
    double default_noise = noise(times[0], turns);
    out->ms = out->default_ms = fastest_quarter(times[0], turns);
    for (int i = 1; i <= count; i++) {
        double beyond = TOR_MAX(noise(times[i], turns), default_noise);
        double ms = fastest_quarter(times[i], turns);
        if (ms < out->ms && log(out->default_ms / ms) > TOR_MAX(LEAST_GAIN, beyond))
            out->ms = ms, out->choice = choices[i];
    }
}

static ToroidStatus choose(Bench *b, void *user) {
    TorTuned *out = user;
    const TorTuneChoice none = {0};
    TorTuneList list = {.count = 0};
    TorTuneChoice best[2];
    double best_ms[2] = {INFINITY, INFINITY};
    TOR_TRY(prepare(b, &none));
    b->t->candidates(b->problem, b->threads, &list);
    TOR_TRY(checked(b, true));
    out->ms = out->default_ms = timed_long(b);
    out->tried = list.count;
    for (int i = 0; i < list.count && !b->busy; i++) {
        double ms = candidate_ms(b, &list.choice[i], TOR_MIN(best_ms[0], out->default_ms), out);
        if (ms < best_ms[0]) {
            best_ms[1] = best_ms[0], best[1] = best[0];
            best_ms[0] = ms, best[0] = list.choice[i];
        } else if (ms < best_ms[1]) {
            best_ms[1] = ms, best[1] = list.choice[i];
        }
    }
    int count = (best_ms[0] < INFINITY) + (best_ms[1] < INFINITY);
    if (count && !b->busy) settle(b, best, count, out);
    return b->busy ? tor_refuse("the pool serves another run") : TOROID_OK;
}

/// What is to be done with a bench.
typedef ToroidStatus Task(Bench *b, void *user);

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

/// A child of a process that tunes may tune as well.
static void renew_lock(void) { one_at_a_time = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER; }
static void at_fork(void) { pthread_atfork(NULL, NULL, renew_lock); }

static ToroidStatus with_bench(const TorTunable *t, const void *problem, int threads,
                               const TorTuneSettings *settings, Task *task, void *user) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, at_fork);
    TorArena *arena;
    TOR_TRY(tor_arena_create(&arena));
    Bench b = {.t = t, .threads = threads, .settings = settings};
    tor_providers_update(settings);
    b.problem = t->copy(problem, arena);
    int64_t rotating = settings->rotating_bytes;
    if (rotating < 0) rotating = (int64_t)tor_cpu_l3() * 5 / 4;
    pthread_mutex_lock(&one_at_a_time);
    ToroidStatus status =
        b.problem ? tor_tune_memory_create(&b.memory, t, b.problem, rotating) : tor_no_memory();
    if (status == TOROID_OK) status = task(&b, user);
    pthread_mutex_unlock(&one_at_a_time);
    tor_tune_answer_free(&b.answer);
    tor_tune_memory_free(&b.memory);
    tor_region_destroy(&b.scratch);
    tor_region_destroy(&b.shared);
    tor_arena_destroy(&arena);
    return status;
}

ToroidStatus tor_tune_problem(const TorTunable *t, const void *problem, int threads,
                              const TorTuneSettings *settings, TorTuned *out) {
    *out = (TorTuned){0};
    return with_bench(t, problem, threads, settings, choose, out);
}

TorTuneResult tor_tuned_result(const TorTunable *t, const char *params, const TorTuned *tuned) {
    TorTuneResult result = {.mean_ms = tuned->ms};
    TorText op = tor_text_fixed(result.op, sizeof result.op);
    tor_text_add(&op, t->op);
    strcpy(result.params, params);
    tor_choice_print(t, &tuned->choice, result.solution, sizeof result.solution);
    return result;
}

/// Of tor_tune_times(): choices, and where their times go.
typedef struct {
    const TorTuneChoice *choices;
    int count;
    double *ms;
} Contest;

static ToroidStatus contest(Bench *b, void *user) {
    Contest *c = user;
    double(*times)[TURNS] = tor_alloc((size_t)c->count * sizeof *times);
    if (!times) return tor_no_memory();
    ToroidStatus status = prepare(b, &c->choices[0]);
    int turns = 0;
    if (status == TOROID_OK) turns = take_turns(b, c->choices, c->count, timed_long(b), times);
    for (int i = 0; i < c->count && turns; i++) c->ms[i] = fastest_quarter(times[i], turns);
    tor_free(times);
    return turns || status != TOROID_OK ? status : tor_refuse("the pool serves another run");
}

ToroidStatus tor_tune_times(const TorTunable *t, const void *problem, int threads,
                            const TorTuneSettings *settings, const TorTuneChoice *choices,
                            int count, double *ms) {
    Contest c = {choices, count, ms};
    return with_bench(t, problem, threads, settings, contest, &c);
}

// ---------------------------------------------------------------- rows of a file

bool tor_tune_params(const TorTunable *t, const void *problem, int threads,
                     char params[TOR_TUNE_PARAMS]) {
    TorText text = tor_text_fixed(params, TOR_TUNE_PARAMS);
    t->put(problem, &text);
    tor_text_put(&text, ";threads=%d", threads);
    return !text.full;
}

/// Takes the number of threads off the end of params.
static bool split_threads(char *params, int *threads) {
    static const char name[] = ";threads=";
    char *at = strstr(params, name), *end;
    if (!at) return false;
    long value = strtol(at + sizeof name - 1, &end, 10);
    *at = 0;
    *threads = (int)TOR_MIN(value, INT32_MAX);
    return !*end && value >= 1;
}

ToroidStatus tor_tune_row(const char *op, const char *params, TorTuneResult *best,
                          double *default_ms) {
    *best = (TorTuneResult){.mean_ms = -1};
    const TorTunable *t = tor_tunable_find(op);
    if (!t) return tor_invalid("no operator %s can be tuned", op);
    if (strlen(params) >= sizeof best->params) return tor_invalid("params are too long");
    char problem_text[TOR_TUNE_PARAMS];
    int threads;
    strcpy(problem_text, params);
    if (!split_threads(problem_text, &threads))
        return tor_invalid("params %s: no number of threads", params);
    if (threads > tor_cpu_count())
        return tor_refuse("it is for %d threads; this process has %d CPUs", threads,
                          tor_cpu_count());
    TorArena *arena;
    TOR_TRY(tor_arena_create(&arena));
    void *problem;
    TorTuned tuned;
    TorTuneSettings settings = tor_tune_settings();
    ToroidStatus status = t->parse(problem_text, arena, &problem);
    if (status == TOROID_OK) status = tor_tune_problem(t, problem, threads, &settings, &tuned);
    if (status == TOROID_OK) {
        *best = tor_tuned_result(t, params, &tuned);
        *default_ms = tuned.default_ms;
    }
    tor_arena_destroy(&arena);
    return status;
}

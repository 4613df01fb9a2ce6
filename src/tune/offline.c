#include "tune/offline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "tune/results.h"
#include "tune/settings.h"
#include "tune/untuned.h"
#include "tune/validators.h"
#include "tune/workers.h"

typedef struct {
    const TorTuneOffline *offline;
    TorTuneSummary *summary;
    int total;
    bool ended;
    TorTuneReport *failed;  ///< told last
    size_t n_failed, capacity;
} Run;

/// Tunes one operator and writes its result, in whichever process.
static void work(void *user, TorTuneReport *report) {
    const Run *r = user;
    TorTuneResult best;
    const TorTuneResult *row = &report->result;
    report->status = r->offline->tune(row->op, row->params, &best, &report->default_ms);
    if (report->status == TOROID_OK) report->status = tor_results_add(&best);
    if (report->status == TOROID_OK)
        report->result = best;
    else
        snprintf(report->message, sizeof report->message, "%s", toroid_last_error());
}

static bool tell(Run *r, TorTuneReport *report) {
    if (report) {
        ++*(report->status == TOROID_OK ? &r->summary->tuned : &r->summary->failed);
        report->done = r->summary->tuned + r->summary->failed;
        report->total = r->total;
    }
    bool go_on = r->offline->report ? r->offline->report(r->offline->user, report) : true;
    if (!go_on) r->ended = true;
    return go_on;
}

/// Puts a failure off: until the end, another process may have done the operator.
static bool put_off(Run *r, const TorTuneReport *report) {
    if (tor_grow((void **)&r->failed, &r->capacity, r->n_failed + 1, sizeof *r->failed) !=
        TOROID_OK)
        return false;
    r->failed[r->n_failed++] = *report;
    return true;
}

static bool pass_on(void *user, TorTuneReport *report) {
    Run *r = user;
    // A worker wrote it; this process knows it now too.
    if (report && report->status == TOROID_OK) tor_results_add(&report->result);
    if (report && report->status != TOROID_OK && put_off(r, report)) return !r->ended;
    return tell(r, report);
}

static void tell_failures(Run *r) {
    bool valid;
    TorTuneResult found;
    if (r->n_failed) tor_results_read(NULL, &valid);
    for (size_t i = 0; i < r->n_failed && !r->ended; i++) {
        const TorTuneResult *row = &r->failed[i].result;
        if (tor_results_find(row->op, row->params, &found))
            r->summary->known++, r->total--;
        else
            tell(r, &r->failed[i]);
    }
    tor_free(r->failed);
}

/// The operators of this call that have no result.
static ToroidStatus collect(const TorTuneOffline *o, TorTuneTable *rows, TorTuneSummary *summary) {
    TorTuneTable listed = {0};
    ToroidStatus status = TOROID_OK;
    for (int i = 0; i < o->n_files && status == TOROID_OK; i++)
        status = tor_untuned_read(o->files[i], &listed);
    summary->listed = (int)listed.count;
    for (size_t i = 0; i < listed.count && status == TOROID_OK; i++) {
        TorTuneResult known;
        bool added;
        const TorTuneResult *row = &listed.rows[i];
        if (o->ranks > 1 && i % (size_t)o->ranks != (size_t)o->rank) continue;
        if (tor_results_find(row->op, row->params, &known))
            summary->known++;
        else
            status = tor_tune_table_add(rows, row, &added);
    }
    tor_tune_table_free(&listed);
    return status;
}

static ToroidStatus tune_all(Run *r, const TorTuneTable *rows) {
    const TorTuneOffline *o = r->offline;
    bool *finished = tor_alloc_zero(rows->count + 1);
    if (!finished) return tor_no_memory();
    ToroidStatus status = TOROID_OK;
    int shares = TOR_MAX(o->local_ranks, 1),
        workers = shares > 1 ? TOR_MAX(o->workers, 1) : o->workers;
    if (workers > 0)
        status = tor_workers_run(&(TorWorkers){.rows = rows,
                                               .count = workers,
                                               .first = o->local_rank * workers,
                                               .shares = shares * workers,
                                               .work = work,
                                               .report = pass_on,
                                               .user = r},
                                 finished);
    for (size_t i = 0; i < rows->count && status == TOROID_OK && !r->ended; i++) {
        if (finished[i]) continue;
        TorTuneReport report = {.result = rows->rows[i]};
        work(r, &report);
        pass_on(r, &report);
    }
    tor_free(finished);
    tell_failures(r);
    return status;
}

/// A number from `least` on; `otherwise` where the variable is not set.
static ToroidStatus read_number(const char *variable, int least, int otherwise, int *out) {
    const char *text = getenv(variable);
    double value = otherwise;
    bool read = !text || !*text || tor_number_read(text, strlen(text), &value);
    if (!read || value < least || value >= 1e6 || value != floor(value))
        return tor_invalid("%s: expected a whole number from %d on, got \"%.40s\"", variable, least,
                           text);
    *out = (int)value;
    return TOROID_OK;
}

/// One of so many, by the variables that say which and how many.
static ToroidStatus read_rank(const char *which, const char *how_many, int *rank, int *ranks) {
    TOR_TRY(read_number(which, 0, 0, rank));
    TOR_TRY(read_number(how_many, 1, 1, ranks));
    if (*rank < *ranks) return TOROID_OK;
    return tor_invalid("%s is %d, expected less than %s, which is %d", which, *rank, how_many,
                       *ranks);
}

ToroidStatus tor_tune_offline_ranks(TorTuneOffline *o) {
    TOR_TRY(read_rank("RANK", "WORLD_SIZE", &o->rank, &o->ranks));
    return read_rank("LOCAL_RANK", "LOCAL_WORLD_SIZE", &o->local_rank, &o->local_ranks);
}

static bool is_one_of(int rank, int ranks) { return rank >= 0 && rank < TOR_MAX(ranks, 1); }

ToroidStatus tor_tune_offline(const TorTuneOffline *offline, TorTuneSummary *summary) {
    *summary = (TorTuneSummary){0};
    if (offline->workers < 0 || !is_one_of(offline->rank, offline->ranks) ||
        !is_one_of(offline->local_rank, offline->local_ranks))
        return tor_invalid("%d workers, rank %d of %d, local rank %d of %d", offline->workers,
                           offline->rank, offline->ranks, offline->local_rank,
                           offline->local_ranks);
    if (!tor_tune_settings().tuning)
        return tor_invalid("tuning is switched off: TUNING is 0, expected 1");
    TorValidator all[TOR_VALIDATORS];
    tor_validators(all);  // of all CPUs, before workers have a part of them
    TorTuneTable rows = {0};
    ToroidStatus status = collect(offline, &rows, summary);
    Run r = {.offline = offline, .summary = summary, .total = (int)rows.count};
    if (status == TOROID_OK) status = tune_all(&r, &rows);
    tor_tune_table_free(&rows);
    return status;
}

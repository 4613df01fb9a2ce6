// The tuner, for C: texts of the public header over the tables of src/tune.
#include "toroid/provider.h"
#include "toroid/tune.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "tune/offline.h"
#include "tune/providers.h"
#include "tune/results.h"
#include "tune/settings.h"
#include "tune/tuner.h"
#include "tune/validators.h"

ToroidStatus toroid_tune_set(const char *name, const char *value) {
    if (!name || !value) return tor_invalid("toroid_tune_set: an argument is NULL");
    return tor_tune_set(name, value);
}

ToroidStatus toroid_tune_get(const char *name, char *text, size_t bytes) {
    if (!name || !text || !bytes) return tor_invalid("toroid_tune_get: an argument is NULL or 0");
    return tor_tune_get(name, text, bytes);
}

void toroid_tune_insert_ordinal(bool insert) { tor_tune_insert_ordinal(insert); }

// ---------------------------------------------------------------- results

void toroid_tune_free(void *list) { tor_free(list); }

/// The public rows, and behind them, in the same memory, the table that their texts are in.
ToroidStatus toroid_tune_results(ToroidTuneResult **out, size_t *count) {
    if (!out || !count) return tor_invalid("toroid_tune_results: an argument is NULL");
    TorTuneTable table;
    *out = NULL, *count = 0;
    TOR_TRY(tor_results_copy(&table));
    ToroidTuneResult *rows = tor_alloc(table.count * (sizeof **out + sizeof *table.rows) + 1);
    if (rows) {
        TorTuneResult *texts = (TorTuneResult *)(rows + table.count);
        for (size_t i = 0; i < table.count; i++) {
            const TorTuneResult *r = memcpy(&texts[i], &table.rows[i], sizeof *texts);
            rows[i] = (ToroidTuneResult){r->op, r->params, r->solution, r->mean_ms};
        }
        *out = rows, *count = table.count;
    }
    tor_tune_table_free(&table);
    return rows ? TOROID_OK : tor_no_memory();
}

ToroidStatus toroid_tune_validators(ToroidTuneValidator **out, size_t *count) {
    if (!out || !count) return tor_invalid("toroid_tune_validators: an argument is NULL");
    *out = NULL, *count = 0;
    ToroidTuneValidator *rows = tor_alloc(TOR_VALIDATORS * (sizeof **out + sizeof(TorValidator)));
    if (!rows) return tor_no_memory();
    TorValidator *texts = (TorValidator *)(rows + TOR_VALIDATORS);
    *count = (size_t)tor_validators(texts);
    for (size_t i = 0; i < *count; i++)
        rows[i] = (ToroidTuneValidator){texts[i].key, texts[i].value};
    *out = rows;
    return TOROID_OK;
}

ToroidStatus toroid_tune_read(const char *path, bool *valid) {
    if (!valid) return tor_invalid("toroid_tune_read: an argument is NULL");
    return tor_results_read(path, valid);
}

ToroidStatus toroid_tune_write(const char *path) { return tor_results_write(path); }

// ---------------------------------------------------------------- recorded operators

static bool report(void *user, const TorTuneReport *r) {
    const ToroidTuneJob *job = user;
    if (!job->report) return true;
    if (!r) return job->report(job->user, NULL);
    return job->report(job->user, &(ToroidTuneReport){.op = r->result.op,
                                                      .params = r->result.params,
                                                      .solution = r->result.solution,
                                                      .default_ms = r->default_ms,
                                                      .best_ms = r->result.mean_ms,
                                                      .status = r->status,
                                                      .message = r->message,
                                                      .done = r->done,
                                                      .total = r->total});
}

ToroidStatus toroid_tune_files(const ToroidTuneJob *job, ToroidTuneSummary *summary) {
    if (!job || !summary) return tor_invalid("toroid_tune_files: an argument is NULL");
    *summary = (ToroidTuneSummary){0};
    if (job->struct_bytes < sizeof *job)
        return tor_invalid("ToroidTuneJob.struct_bytes is %zu, expected at least %zu",
                           job->struct_bytes, sizeof *job);
    if (job->n_files < 0 || (job->n_files > 0 && !job->files))
        return tor_invalid("%d files to tune", job->n_files);
    TorTuneOffline offline = {.files = job->files,
                              .n_files = job->n_files,
                              .workers = job->workers,
                              .tune = tor_tune_row,
                              .report = report,
                              .user = (void *)(uintptr_t)job};
    TOR_TRY(tor_tune_offline_ranks(&offline));
    TorTuneSummary done;
    ToroidStatus status = tor_tune_offline(&offline, &done);
    *summary = (ToroidTuneSummary){done.listed, done.known, done.tuned, done.failed};
    return status;
}

// ---------------------------------------------------------------- providers

ToroidStatus toroid_provider_register(const ToroidProvider *provider) {
    if (!provider) return tor_invalid("toroid_provider_register: provider is NULL");
    return tor_provider_add(provider);
}

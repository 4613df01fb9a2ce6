#include "tune/results_file.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "tune/locked_file.h"
#include "tune/rows.h"
#include "tune/validators.h"

// ---------------------------------------------------------------- reading

/// Rows that are none are left out, with one warning.
static ToroidStatus read_rows(const TorLockedFile *f, TorTuneTable *into, bool warn) {
    TorRows rows = {.at = f->text, .end = f->text + f->bytes};
    TorRow row;
    int wrong = 0, first = 0;
    while (tor_rows_next(&rows, &row)) {
        TorTuneResult result;
        bool added;
        if (tor_row_is_validator(&row)) continue;
        if (tor_row_result(&row, &result))
            TOR_TRY(tor_tune_table_add(into, &result, &added));
        else if (wrong++ == 0)
            first = rows.line;
    }
    if (wrong && warn)
        tor_log(0, "%s: %d lines are left out; line %d is no row op,params,solution[,mean_ms]",
                f->path, wrong, first);
    return TOROID_OK;
}

ToroidStatus tor_results_file_read(const char *path, TorTuneTable *into, bool *valid,
                                   char *differs) {
    TorLockedFile f;
    *valid = false, differs[0] = 0;
    TOR_TRY(tor_locked_open(&f, path, TOR_LOCKED_READ));
    ToroidStatus status = TOROID_OK;
    if (f.exists) *valid = tor_validators_match(f.text, f.bytes, differs, TOR_DIFFERS_BYTES);
    if (*valid) status = read_rows(&f, into, true);
    tor_locked_close(&f);
    return status;
}

// ---------------------------------------------------------------- setting aside

/// The path that was last set aside by this process.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char last[TOR_TUNE_PATH];

static ToroidStatus set_aside(TorLockedFile *f, const char *differs) {
    pthread_mutex_lock(&lock);
    bool again = strcmp(last, f->path) == 0;
    memcpy(last, f->path, sizeof last);
    pthread_mutex_unlock(&lock);
    if (again) return tor_failed("%s is written by others too, and %s", f->path, differs);
    char name[TOR_TUNE_PATH];
    TOR_TRY(tor_locked_set_aside(f, name));
    tor_log(0, "%s is from elsewhere: %s; it is set aside as %s", f->path, differs, name);
    return TOROID_OK;
}

static bool is_blank(const TorLockedFile *f) { return strspn(f->text, " \t\r\n") == f->bytes; }

/// Opens a file whose validators are those of this process, or an empty one.
static ToroidStatus open_ours(TorLockedFile *f, const char *path) {
    for (;;) {
        char differs[TOR_DIFFERS_BYTES];
        TOR_TRY(tor_locked_open(f, path, TOR_LOCKED_APPEND));
        if (is_blank(f) || tor_validators_match(f->text, f->bytes, differs, sizeof differs))
            return TOROID_OK;
        ToroidStatus status = set_aside(f, differs);
        tor_locked_close(f);
        TOR_TRY(status);
    }
}

ToroidStatus tor_results_file_set_aside(const char *path) {
    TorLockedFile f;
    TOR_TRY(open_ours(&f, path));
    tor_locked_close(&f);
    return TOROID_OK;
}

// ---------------------------------------------------------------- writing

static ToroidStatus append(TorLockedFile *f, const TorTuneResult *rows, size_t count,
                           TorTuneTable *others) {
    TorText text = {0};
    TorTuneTable there = {0};
    ToroidStatus status = read_rows(f, &there, false);
    bool added;
    for (size_t i = 0; i < there.count && status == TOROID_OK; i++)
        status = tor_tune_table_add(others, &there.rows[i], &added);
    if (is_blank(f)) tor_validators_print(&text);
    for (size_t i = 0; i < count; i++)
        if (!tor_tune_table_find(&there, rows[i].op, rows[i].params))
            tor_row_print(&rows[i], true, &text);
    tor_tune_table_free(&there);
    char *whole = NULL;
    size_t bytes = text.length;
    ToroidStatus finished = tor_text_finish(&text, &whole);
    if (status == TOROID_OK) status = finished;
    if (status == TOROID_OK && bytes) status = tor_locked_append(f, whole, bytes);
    tor_free(whole);
    return status;
}

ToroidStatus tor_results_file_append(const char *path, const TorTuneResult *rows, size_t count,
                                     TorTuneTable *others) {
    TorLockedFile f;
    TOR_TRY(open_ours(&f, path));
    ToroidStatus status = append(&f, rows, count, others);
    tor_locked_close(&f);
    return status;
}

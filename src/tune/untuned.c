#include "tune/untuned.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/log.h"
#include "tune/locked_file.h"
#include "tune/rows.h"
#include "tune/verbose.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static TorTuneTable noted;  // in the file `noted_in`
static char noted_in[TOR_TUNE_PATH];
static struct stat noted_file;  // what that name was for when something was last noted
static uint64_t generation;

/// @param wrong  the first line that is no row; 0: all are
static ToroidStatus read_rows(const TorLockedFile *f, TorTuneTable *into, int *wrong) {
    TorRows rows = {.at = f->text, .end = f->text + f->bytes};
    TorRow row;
    *wrong = 0;
    while (tor_rows_next(&rows, &row)) {
        TorTuneResult key;
        bool added;
        if (tor_row_is_validator(&row)) continue;
        if (tor_row_result(&row, &key) || tor_row_untuned(&row, &key)) {
            key.solution[0] = 0, key.mean_ms = -1;
            TOR_TRY(tor_tune_table_add(into, &key, &added));
        } else if (!*wrong) {
            *wrong = rows.line;
        }
    }
    return TOROID_OK;
}

ToroidStatus tor_untuned_read(const char *path, TorTuneTable *into) {
    TorLockedFile f;
    int wrong;
    TOR_TRY(tor_locked_open(&f, path, TOR_LOCKED_READ));
    if (!f.exists) return tor_failed("there is no file %s", path);
    ToroidStatus status = read_rows(&f, into, &wrong);
    tor_locked_close(&f);
    if (status == TOROID_OK && wrong)
        return tor_invalid("%s: line %d is no row op,params", path, wrong);
    return status;
}

static ToroidStatus append(TorLockedFile *f, const TorTuneResult *row) {
    TorTuneTable there = {0};
    int wrong;
    ToroidStatus status = read_rows(f, &there, &wrong);
    bool is_there = tor_tune_table_find(&there, row->op, row->params) != NULL;
    tor_tune_table_free(&there);
    if (status != TOROID_OK || is_there) return status;
    TorText text = {0};
    char *line = NULL;
    tor_row_print(row, false, &text);
    size_t bytes = text.length;
    TOR_TRY(tor_text_finish(&text, &line));
    status = tor_locked_append(f, line, bytes);
    tor_free(line);
    return status;
}

/// The list may be removed, or moved away, while operators are recorded: then all of them are new.
static void forget_if_gone(void) {
    struct stat now;
    if (!noted.count || !noted_in[0]) return;
    if (stat(noted_in, &now) == 0 && now.st_ino == noted_file.st_ino &&
        now.st_dev == noted_file.st_dev && now.st_size >= noted_file.st_size)
        return;
    tor_tune_table_free(&noted);
    generation++;
}

uint64_t tor_untuned_generation(void) {
    pthread_mutex_lock(&lock);
    forget_if_gone();
    uint64_t now = generation;
    pthread_mutex_unlock(&lock);
    return now;
}

static ToroidStatus note(const TorTuneResult *row) {
    char path[TOR_TUNE_PATH];
    bool added;
    TOR_TRY(tor_tune_file(TOR_TUNE_UNTUNED_FILENAME, path));
    if (strcmp(path, noted_in) != 0) tor_tune_table_free(&noted);
    strcpy(noted_in, path);
    forget_if_gone();
    TOR_TRY(tor_tune_table_add(&noted, row, &added));
    if (!added) return TOROID_OK;
    tor_tune_say(2, "%s,%s is not tuned", row->op, row->params);
    if (!path[0]) return TOROID_OK;
    TorLockedFile f;
    TOR_TRY(tor_locked_open(&f, path, TOR_LOCKED_APPEND));
    ToroidStatus status = append(&f, row);
    if (fstat(f.file, &noted_file) != 0) status = tor_failed("%s: %s", path, strerror(errno));
    tor_locked_close(&f);
    return status;
}

bool tor_untuned_note(const char *op, const char *params) {
    if (!tor_tune_settings().record_untuned) return true;
    TorTuneResult row = {.mean_ms = -1};
    snprintf(row.op, sizeof row.op, "%s", op);
    snprintf(row.params, sizeof row.params, "%s", params);
    if (!tor_row_fits(&row, false)) return true;
    pthread_mutex_lock(&lock);
    ToroidStatus status = note(&row);
    if (status != TOROID_OK) tor_tune_table_free(&noted);  // what is in the file is not added twice
    pthread_mutex_unlock(&lock);
    static _Atomic bool told;
    if (status != TOROID_OK && !atomic_exchange(&told, true))
        tor_log(0, "untuned operators are not recorded: %s", toroid_last_error());
    return status == TOROID_OK;
}

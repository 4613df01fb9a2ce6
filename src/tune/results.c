#include "tune/results.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/log.h"
#include "tune/providers.h"
#include "tune/results_file.h"
#include "tune/rows.h"
#include "tune/settings.h"
#include "tune/verbose.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // of what follows
static TorTuneTable table;
static TorTuneTable unwritten;          // what a full disk kept out of the file
static char known_path[TOR_TUNE_PATH];  // the file of the settings that was read last
static _Atomic uint64_t generation;

uint64_t tor_results_generation(void) {
    return atomic_load(&generation) + tor_providers_generation();
}

/// The file of the settings; "" where results stay in memory.
static void settings_path(char path[TOR_TUNE_PATH]) {
    if (tor_tune_file(TOR_TUNE_FILENAME, path) != TOROID_OK) path[0] = 0;
}

/// The first failure; a full disk would otherwise fill the log too.
static void warn(const char *path) {
    static _Atomic bool told;
    if (!atomic_exchange(&told, true))
        tor_log(0, "results of tuning are kept in memory only (%s): %s", path, toroid_last_error());
}

// ---------------------------------------------------------------- reading

static ToroidStatus read_locked(const char *path, bool ours, bool *valid) {
    char differs[TOR_DIFFERS_BYTES];
    size_t before = table.count;
    ToroidStatus status = tor_results_file_read(path, &table, valid, differs);
    if (table.count != before) atomic_fetch_add(&generation, 1);
    TOR_TRY(status);
    if (*valid) tor_tune_say(1, "%zu new results from %s", table.count - before, path);
    if (!differs[0]) return TOROID_OK;
    if (!ours || !tor_tune_settings().tuning)
        tor_log(0, "%s is from elsewhere: %s; it is not used", path, differs);
    else if (tor_results_file_set_aside(path) != TOROID_OK)
        tor_log(0, "%s", toroid_last_error());
    return TOROID_OK;
}

static void read_once(const char *path) {
    if (strcmp(path, known_path) == 0) return;
    memcpy(known_path, path, sizeof known_path);
    bool valid;
    if (path[0] && read_locked(path, true, &valid) != TOROID_OK) warn(path);
}

bool tor_results_find(const char *op, const char *params, TorTuneResult *out) {
    char path[TOR_TUNE_PATH];
    settings_path(path);
    pthread_mutex_lock(&lock);
    read_once(path);
    const TorTuneResult *found = tor_tune_table_find(&table, op, params);
    if (found) *out = *found;
    pthread_mutex_unlock(&lock);
    tor_tune_say(3, "%s,%s: %s", op, params, found ? out->solution : "no result");
    return found != NULL;
}

ToroidStatus tor_results_read(const char *path, bool *valid) {
    char ours[TOR_TUNE_PATH];
    settings_path(ours);
    *valid = false;
    if (!path) path = ours;
    if (!path[0]) return TOROID_OK;
    pthread_mutex_lock(&lock);
    ToroidStatus status = read_locked(path, strcmp(path, ours) == 0, valid);
    if (strcmp(path, ours) == 0) memcpy(known_path, ours, sizeof ours);
    pthread_mutex_unlock(&lock);
    return status;
}

ToroidStatus tor_results_copy(TorTuneTable *out) {
    char path[TOR_TUNE_PATH];
    settings_path(path);
    *out = (TorTuneTable){0};
    ToroidStatus status = TOROID_OK;
    bool added;
    pthread_mutex_lock(&lock);
    read_once(path);
    for (size_t i = 0; i < table.count && status == TOROID_OK; i++)
        status = tor_tune_table_add(out, &table.rows[i], &added);
    pthread_mutex_unlock(&lock);
    if (status != TOROID_OK) tor_tune_table_free(out);
    return status;
}

// ---------------------------------------------------------------- writing

/// Appends to a file, and takes over what others wrote there.
static ToroidStatus append_locked(const char *path, const TorTuneTable *rows) {
    TorTuneTable others = {0};
    ToroidStatus status = tor_results_file_append(path, rows->rows, rows->count, &others);
    bool added;
    for (size_t i = 0; i < others.count; i++)
        if (tor_tune_table_add(&table, &others.rows[i], &added) == TOROID_OK && added)
            atomic_fetch_add(&generation, 1);
    tor_tune_table_free(&others);
    return status;
}

static ToroidStatus add_locked(const TorTuneResult *result, const char *path) {
    bool added;
    TOR_TRY(tor_tune_table_add(&table, result, &added));
    if (!added) return TOROID_OK;
    atomic_fetch_add(&generation, 1);
    tor_tune_say(2, "%s,%s: %s is the fastest", result->op, result->params, result->solution);
    if (!path[0]) return TOROID_OK;
    TOR_TRY(tor_tune_table_add(&unwritten, result, &added));
    ToroidStatus status = append_locked(path, &unwritten);
    if (status == TOROID_OK)
        tor_tune_table_free(&unwritten);
    else
        warn(path);
    return status;
}

ToroidStatus tor_results_add(const TorTuneResult *result) {
    if (!tor_row_fits(result, true))
        return tor_invalid(
            "operator, params and solution have to be texts without comma, quote "
            "and white space");
    char path[TOR_TUNE_PATH] = "";
    if (tor_tune_settings().tuning) settings_path(path);
    pthread_mutex_lock(&lock);
    read_once(path);
    ToroidStatus status = add_locked(result, path);
    pthread_mutex_unlock(&lock);
    return status;
}

ToroidStatus tor_results_write(const char *path) {
    char ours[TOR_TUNE_PATH];
    settings_path(ours);
    if (!path) path = ours;
    if (!path[0]) return tor_invalid("there is no name of a file");
    pthread_mutex_lock(&lock);
    ToroidStatus status = append_locked(path, &table);
    pthread_mutex_unlock(&lock);
    return status;
}

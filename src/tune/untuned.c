#include "tune/untuned.h"

#include <pthread.h>
#include <stdio.h>

#include "base/log.h"
#include "tune/settings.h"
#include "tune/table.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static TorTuneTable noted;

void tor_untuned_note(const char *op, const char *params) {
    if (!tor_tune_settings().record_untuned) return;
    TorTuneResult row = {.mean_ms = -1};
    bool added;
    snprintf(row.op, sizeof row.op, "%s", op);
    snprintf(row.params, sizeof row.params, "%s", params);
    pthread_mutex_lock(&lock);
    tor_tune_table_add(&noted, &row, &added);
    pthread_mutex_unlock(&lock);
    if (added) tor_log(2, "untuned: %s,%s", op, params);
}

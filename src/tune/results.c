#include "tune/results.h"

#include <pthread.h>
#include <stdatomic.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static TorTuneTable table;
static _Atomic uint64_t generation;

bool tor_results_find(const char *op, const char *params, TorTuneResult *out) {
    pthread_mutex_lock(&lock);
    const TorTuneResult *found = tor_tune_table_find(&table, op, params);
    if (found) *out = *found;
    pthread_mutex_unlock(&lock);
    return found != NULL;
}

ToroidStatus tor_results_add(const TorTuneResult *result) {
    bool added;
    pthread_mutex_lock(&lock);
    ToroidStatus status = tor_tune_table_add(&table, result, &added);
    pthread_mutex_unlock(&lock);
    if (added) atomic_fetch_add(&generation, 1);
    return status;
}

uint64_t tor_results_generation(void) { return atomic_load(&generation); }

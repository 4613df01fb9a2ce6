/// The table of all ops, and the call through it.
#include "aten/import.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "aten/build.h"
#include "aten/tables.h"

static const TorAtenTable *const tables[] = {
#define X(theme) &tor_aten_##theme##_ops,
    TOR_ATEN_TABLES(X)
#undef X
};

static const TorAtenRow *sorted[1024];
static int n_rows;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int by_name(const void *a, const void *b) {
    return strcmp((*(const TorAtenRow *const *)a)->name, (*(const TorAtenRow *const *)b)->name);
}

static void sort_rows(void) {
    for (size_t t = 0; t < TOR_COUNT_OF(tables); t++)
        for (int i = 0; i < tables[t]->count && n_rows < (int)TOR_COUNT_OF(sorted); i++)
            sorted[n_rows++] = &tables[t]->rows[i];
    qsort(sorted, (size_t)n_rows, sizeof *sorted, by_name);
}

static const TorAtenRow *find(const char *name) {
    pthread_once(&once, sort_rows);
    int low = 0, high = n_rows;
    while (low < high) {
        int middle = (low + high) / 2;
        int order = strcmp(name, sorted[middle]->name);
        if (order == 0) return sorted[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

static bool has_rank_over(const TorArg *a) {
    if (a->kind == TOR_ARG_LIST)
        for (int i = 0; i < a->count; i++)
            if (has_rank_over(&a->list[i])) return true;
    return a->kind == TOR_ARG_VALUE && a->value && a->value->rank > TOR_MAX_RANK;
}

/// copy, permute_copy and their like, which share importers with the views.
static bool is_copy(const char *name) {
    return strstr(name, "_copy.") || strncmp(name, "aten.copy.", strlen("aten.copy.")) == 0;
}

/// Gives results memory of their own: an importer may have returned its operand, or a view of it.
static void own(TorCall *c, TorArg *result) {
    if (result->kind == TOR_ARG_VALUE && result->value)
        result->value = tor_im_contiguous(c, result->value);
    if (result->kind == TOR_ARG_LIST)
        for (int i = 0; i < result->count; i++)
            own(c, (TorArg *)&result->list[i]);  // const for readers; the call has just made it
}

ToroidStatus tor_aten_call(TorGraph *g, const char *name, const TorArg *args, int n_args,
                           const char *const *kw_names, const TorArg *kw_args, int n_kw,
                           const char *origin, TorArg *result) {
    *result = TOR_ARG_OF_NONE;
    const TorAtenRow *row = find(name);
    if (!row) return tor_refuse("%s is not known to the importer", name);
    if (g->failed) return g->failed;
    TorCall c = {.g = g, .row = row, .result = result};
    TOR_TRY(tor_schema_bind(&c, args, n_args, kw_names, kw_args, n_kw));
    for (int i = 0; i < c.n_args; i++)
        if (has_rank_over(&c.args[i]))
            return tor_im_refuse_arg(&c, i, "rank is over %d", TOR_MAX_RANK);
    if (origin && !(c.origin = tor_arena_strdup(g->arena, origin))) return tor_no_memory();
    ToroidStatus status = row->import(&c);
    if (!status && is_copy(name)) own(&c, result), status = c.status;
    if (!status && g->failed) status = g->failed;
    if (status) *result = TOR_ARG_OF_NONE;
    return status;
}

bool tor_aten_knows(const char *name) { return find(name) != NULL; }

int tor_aten_count(void) {
    pthread_once(&once, sort_rows);
    return n_rows;
}

const char *tor_aten_name(int index, const char **schema) {
    if (index < 0 || index >= tor_aten_count()) return NULL;
    if (schema) *schema = sorted[index]->schema;
    return sorted[index]->name;
}

// Open addressing with linear probing, at most half full.
#include "tune/table.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/alloc.h"

static uint64_t hash(const char *op, const char *params) {
    return XXH3_64bits_withSeed(params, strlen(params), XXH3_64bits(op, strlen(op)));
}

/// Where (op, params) is, or would go.
static uint32_t *slot(const TorTuneTable *t, const char *op, const char *params) {
    for (size_t at = hash(op, params);; at++) {
        uint32_t *s = &t->slots[at & (t->n_slots - 1)];
        if (*s == 0) return s;
        const TorTuneResult *row = &t->rows[*s - 1];
        if (strcmp(row->op, op) == 0 && strcmp(row->params, params) == 0) return s;
    }
}

static ToroidStatus grow_slots(TorTuneTable *t) {
    size_t n = t->n_slots ? 2 * t->n_slots : 64;
    uint32_t *slots = tor_alloc_zero(n * sizeof *slots);
    if (!slots) return tor_no_memory();
    tor_free(t->slots);
    t->slots = slots, t->n_slots = n;
    for (size_t i = 0; i < t->count; i++)
        *slot(t, t->rows[i].op, t->rows[i].params) = (uint32_t)i + 1;
    return TOROID_OK;
}

const TorTuneResult *tor_tune_table_find(const TorTuneTable *t, const char *op,
                                         const char *params) {
    if (t->count == 0) return NULL;
    uint32_t found = *slot(t, op, params);
    return found ? &t->rows[found - 1] : NULL;
}

ToroidStatus tor_tune_table_add(TorTuneTable *t, const TorTuneResult *row, bool *added) {
    *added = false;
    if (tor_tune_table_find(t, row->op, row->params)) return TOROID_OK;
    if (t->count >= UINT32_MAX / 2) return tor_refuse("the table of tuned operators is full");
    if (2 * (t->count + 1) > t->n_slots) TOR_TRY(grow_slots(t));
    TOR_TRY(tor_grow((void **)&t->rows, &t->capacity, t->count + 1, sizeof *t->rows));
    t->rows[t->count++] = *row;
    *slot(t, row->op, row->params) = (uint32_t)t->count;
    *added = true;
    return TOROID_OK;
}

void tor_tune_table_free(TorTuneTable *t) {
    tor_free(t->rows);
    tor_free(t->slots);
    *t = (TorTuneTable){0};
}

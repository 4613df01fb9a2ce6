// The frozen table: a hash table under one mutex. It is touched when a weight is new or has
// changed, never by a call whose weights are the ones it saw before.
#include "backend/frozen.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "backend/internal.h"
#include "base/alloc.h"
#include "base/slab.h"
#include "base/spill.h"

enum { BUCKETS = 4096, SAMPLES = 5 };

struct TorFrozenEntry {
    TorFrozenEntry *next;
    uint64_t key[2], epoch;
    int references;  ///< the table's own is one of them while it is published
    bool published;
    void *data;
    size_t bytes;
    TorStored stored;  ///< where the data lies, if it is a file's
    int n_sources;
    TorFrozenState sources[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static TorFrozenEntry *buckets[BUCKETS];
static uint64_t n_entries, n_bytes, n_mapped, n_packs;
static _Atomic uint64_t epoch = 1;
static _Atomic(TorFrozenListener) listener;

static size_t sample_at(size_t bytes, size_t i) {
    return bytes < 8 ? 0 : (bytes - 8) * i / (SAMPLES - 1) / 4 * 4;
}

void tor_frozen_prefetch(const void *data, size_t bytes) {
    for (size_t i = 0; data && bytes && i < SAMPLES; i++)
        __builtin_prefetch((const char *)data + sample_at(bytes, i));
}

uint64_t tor_frozen_sample(const void *data, size_t bytes) {
    uint64_t hash = bytes;
    if (!data || bytes == 0) return hash;
    const unsigned char *p = data;
    for (size_t i = 0; i < SAMPLES; i++) {
        uint64_t word = 0;
        memcpy(&word, p + sample_at(bytes, i), bytes < 8 ? bytes : 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return hash;
}

void tor_frozen_spill(const TorFrozenState *state) {
    if (!tor_spill(state->data, state->bytes)) return;
    const void *sampled[SAMPLES];
    for (size_t i = 0; i < SAMPLES; i++)
        sampled[i] = (const char *)state->data + sample_at(state->bytes, i);
    tor_spill_keep(sampled, SAMPLES);
}

uint64_t tor_frozen_new_uid(void) {
    static _Atomic uint64_t last;
    return atomic_fetch_add(&last, 1) + 1;
}

static TorFrozenEntry **bucket_of(const uint64_t key[2], const TorFrozenState *sources, int n) {
    uint64_t hash = key[0] ^ key[1];
    for (int i = 0; i < n; i++) hash = (hash ^ sources[i].uid) * 0x9e3779b97f4a7c15u;
    return &buckets[hash >> 52];
}

static bool same_work(const TorFrozenEntry *e, const uint64_t key[2], const TorFrozenState *sources,
                      int n) {
    if (e->key[0] != key[0] || e->key[1] != key[1] || e->n_sources != n) return false;
    for (int i = 0; i < n; i++)
        if (e->sources[i].uid != sources[i].uid) return false;
    return true;
}

static void drop_reference(TorFrozenEntry *e) {
    if (--e->references > 0) return;
    n_bytes -= e->bytes;
    n_mapped -= e->stored.bytes;
    n_entries--;
    if (e->stored.data)
        tor_store_unmap(&e->stored);
    else
        tor_slab_free(e->data);
    tor_free(e);
}

static void unlink_entry(TorFrozenEntry **link) {
    TorFrozenEntry *e = *link;
    *link = e->next;
    e->published = false;
    drop_reference(e);
}

TorFrozenEntry *tor_frozen_find(const uint64_t key[2], const TorFrozenState *sources,
                                int n_sources) {
    TorFrozenEntry *found = NULL;
    uint64_t now = tor_frozen_epoch();
    pthread_mutex_lock(&lock);
    for (TorFrozenEntry *e = *bucket_of(key, sources, n_sources); e && !found; e = e->next) {
        if (!same_work(e, key, sources, n_sources) || e->epoch != now) continue;
        bool same = true;
        for (int i = 0; i < n_sources; i++) same &= tor_frozen_same(&e->sources[i], &sources[i]);
        if (same) found = e;
    }
    if (found) found->references++;
    pthread_mutex_unlock(&lock);
    return found;
}

static TorFrozenEntry *new_entry(const uint64_t key[2], const TorFrozenState *sources,
                                 int n_sources) {
    TorFrozenEntry *e = tor_alloc_zero(sizeof *e + (size_t)n_sources * sizeof *sources);
    if (!e) return NULL;
    memcpy(e->key, key, sizeof e->key);
    if (n_sources) memcpy(e->sources, sources, (size_t)n_sources * sizeof *sources);
    e->n_sources = n_sources;
    e->references = 1;
    e->epoch = tor_frozen_epoch();
    return e;
}

static void count_entry(const TorFrozenEntry *e) {
    pthread_mutex_lock(&lock);
    n_entries++;
    n_bytes += e->bytes;
    n_mapped += e->stored.bytes;
    pthread_mutex_unlock(&lock);
}

ToroidStatus tor_frozen_create(TorFrozenEntry **out, const uint64_t key[2],
                               const TorFrozenState *sources, int n_sources, size_t bytes) {
    TorFrozenEntry *e = new_entry(key, sources, n_sources);
    if (e) e->data = tor_slab_alloc(bytes);
    if (!e || !e->data) {
        tor_free(e);
        return tor_no_memory();
    }
    e->bytes = bytes;
    count_entry(e);
    *out = e;
    return TOROID_OK;
}

static void take_stored(TorFrozenEntry *e, TorStored *stored) {
    e->stored = *stored;
    e->data = stored->data;
    e->bytes = stored->bytes;
    *stored = (TorStored){0};
}

ToroidStatus tor_frozen_adopt(TorFrozenEntry **out, const uint64_t key[2],
                              const TorFrozenState *sources, int n_sources, TorStored *stored) {
    TorFrozenEntry *e = new_entry(key, sources, n_sources);
    if (!e) {
        tor_store_unmap(stored);
        return tor_no_memory();
    }
    take_stored(e, stored);
    count_entry(e);
    *out = e;
    return TOROID_OK;
}

void tor_frozen_replace(TorFrozenEntry *entry, TorStored *stored) {
    tor_slab_free(entry->data);
    take_stored(entry, stored);
    pthread_mutex_lock(&lock);
    n_mapped += entry->stored.bytes;
    pthread_mutex_unlock(&lock);
}

void tor_frozen_publish(TorFrozenEntry *entry) {
    pthread_mutex_lock(&lock);
    TorFrozenEntry **bucket = bucket_of(entry->key, entry->sources, entry->n_sources);
    for (TorFrozenEntry **link = bucket; *link;) {
        if (same_work(*link, entry->key, entry->sources, entry->n_sources))
            unlink_entry(link);
        else
            link = &(*link)->next;
    }
    entry->next = *bucket;
    *bucket = entry;
    entry->published = true;
    entry->references++;
    n_packs++;
    pthread_mutex_unlock(&lock);
}

void *tor_frozen_data(const TorFrozenEntry *entry) { return entry->data; }
size_t tor_frozen_bytes(const TorFrozenEntry *entry) { return entry->bytes; }

void tor_frozen_release(TorFrozenEntry **entry) {
    if (!entry || !*entry) return;
    pthread_mutex_lock(&lock);
    drop_reference(*entry);
    pthread_mutex_unlock(&lock);
    *entry = NULL;
}

void tor_frozen_forget(uint64_t uid) {
    TorFrozenListener tell = atomic_load(&listener);
    if (tell) tell(uid);
    pthread_mutex_lock(&lock);
    for (int b = 0; b < BUCKETS; b++)
        for (TorFrozenEntry **link = &buckets[b]; *link;) {
            bool uses = false;
            for (int i = 0; i < (*link)->n_sources; i++) uses |= (*link)->sources[i].uid == uid;
            if (uses)
                unlink_entry(link);
            else
                link = &(*link)->next;
        }
    pthread_mutex_unlock(&lock);
}

void tor_frozen_refresh(void) { atomic_fetch_add(&epoch, 1); }
uint64_t tor_frozen_epoch(void) { return atomic_load(&epoch); }
void tor_frozen_listen(TorFrozenListener fn) { atomic_store(&listener, fn); }

void tor_frozen_stats(TorExeStats *stats) {
    pthread_mutex_lock(&lock);
    stats->frozen_entries = n_entries;
    stats->frozen_bytes = n_bytes;
    stats->mapped_bytes = n_mapped;
    stats->frozen_packs = n_packs;
    stats->released_bytes = tor_spill_bytes();
    pthread_mutex_unlock(&lock);
}

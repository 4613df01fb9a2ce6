/// The process's one table of what prologues made: packed weights, folded batch norms, ...
///
/// An entry is keyed by the expression and by the identity of its source tensors; it is right while
/// their addresses, change counters and sampled words are what they were. Recompilations, shapes
/// and modules that share a compiled graph find each other's entries here, so there is one copy a
/// weight. All functions may be called from any thread.
#ifndef TOR_BACKEND_FROZEN_H
#define TOR_BACKEND_FROZEN_H

#include "backend/store.h"

/// What can be seen of a tensor without reading all of it.
typedef struct {
    uint64_t uid;  ///< of the tensor object; never used twice
    const void *data;
    int64_t version;
    uint64_t sample;  ///< a hash of a few words
    size_t bytes;     ///< extent in memory
} TorFrozenState;

uint64_t tor_frozen_sample(const void *data, size_t bytes);
/// Starts loading what tor_frozen_sample() will read.
void tor_frozen_prefetch(const void *data, size_t bytes);
static inline bool tor_frozen_same(const TorFrozenState *a, const TorFrozenState *b) {
    return a->uid == b->uid && a->data == b->data && a->version == b->version &&
           a->sample == b->sample;
}

/// Spills what the tensor holds (see base/spill.h), but for the pages that every call samples.
void tor_frozen_spill(const TorFrozenState *state);

/// A number for a tensor that no other gets in this process; never 0.
uint64_t tor_frozen_new_uid(void);

typedef struct TorFrozenEntry TorFrozenEntry;

/// Finds the entry for an expression over sources in the given states, and takes a reference.
/// @return NULL if there is none, or none that is still right
TorFrozenEntry *tor_frozen_find(const uint64_t key[2], const TorFrozenState *sources,
                                int n_sources);
/// Adds an entry with `bytes` of memory, not yet visible to tor_frozen_find(), with one reference.
ToroidStatus tor_frozen_create(TorFrozenEntry **out, const uint64_t key[2],
                               const TorFrozenState *sources, int n_sources, size_t bytes);
/// The same, over a file's content instead; takes it, also on failure.
ToroidStatus tor_frozen_adopt(TorFrozenEntry **out, const uint64_t key[2],
                              const TorFrozenState *sources, int n_sources, TorStored *stored);
/// Puts an equal file in the place of the entry's memory, before the entry is published.
void tor_frozen_replace(TorFrozenEntry *entry, TorStored *stored);
/// Makes a filled entry visible; it replaces one for the same expression and tensors.
void tor_frozen_publish(TorFrozenEntry *entry);
void *tor_frozen_data(const TorFrozenEntry *entry);
size_t tor_frozen_bytes(const TorFrozenEntry *entry);
void tor_frozen_release(TorFrozenEntry **entry);

/// Counts refreshes; whoever holds results from an older one looks them up again.
uint64_t tor_frozen_epoch(void);
/// Called, under no lock, with each uid that is forgotten.
typedef void (*TorFrozenListener)(uint64_t uid);
void tor_frozen_listen(TorFrozenListener listener);

#endif

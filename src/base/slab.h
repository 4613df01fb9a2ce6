/// Memory for packed weights: many blocks of about a megabyte that live long and are streamed.
///
/// Blocks share chunks of whole huge pages. A megabyte alone lies on 256 small pages, and a core
/// that streams it waits for as many translations: a product of 4 rows runs at half the speed that
/// memory would give.
#ifndef TOR_BASE_SLAB_H
#define TOR_BASE_SLAB_H

#include "base/status.h"

/// `bytes` of memory aligned to TOR_CACHE_LINE, not cleared. NULL if there is none (sets the
/// message). Thread-safe. Free with tor_slab_free().
void *tor_slab_alloc(size_t bytes);
/// Accepts NULL. Whole huge pages that no block lies on any more go back to the system.
void tor_slab_free(void *memory);

/// Chunks held now.
size_t tor_slab_chunks(void);

#endif

/// What the next process need not make again, on disk in the folder that TOROID_CACHE_DIR names:
/// results of prologues (packed weights), which are mapped, and compiled graphs.
///
/// A file is named by the content that it was made from, is written whole under another name
/// first, and carries a checksum, so two writers, a full disk and a torn or altered file cost the
/// time to make it again and nothing else. Mapped files are shared between processes. The folder is
/// kept under TOROID_CACHE_SIZE bytes (K, M, G; 8G by default): what was used longest ago goes
/// first. Nothing here makes a call fail; what goes wrong is told in one line.
#ifndef TOR_BACKEND_STORE_H
#define TOR_BACKEND_STORE_H

#include "base/status.h"

typedef struct {
    uint64_t half[2];
} TorContentKey;

/// A running hash (XXH3, 128 bits) of pieces of memory.
TorContentKey tor_content_hash(const void *data, size_t bytes);
/// Order matters.
TorContentKey tor_content_join(TorContentKey a, TorContentKey b);

typedef enum {
    TOR_STORE_WEIGHTS,
    TOR_STORE_GRAPH,  ///< read as a program would be: only files that none but their owner, who is
                      ///< this user or root, can write
} TorStoreKind;

/// A file's content in memory; data NULL: none.
typedef struct {
    void *data;
    size_t bytes;
    void *base;  ///< private
    size_t mapped;
} TorStored;

/// Smaller results are made again faster than they are found.
#define TOR_STORE_LEAST ((size_t)256 << 10)

/// Is a folder named? Read from the environment at each call.
bool tor_store_enabled(void);
#define TOR_STORE_ANY SIZE_MAX
/// The file of `key` with exactly `bytes`, or any number of them, checked. Any thread.
TorStored tor_store_find(TorStoreKind kind, TorContentKey key, size_t bytes);
/// Writes the file and maps it; nothing where that fails. Any thread.
TorStored tor_store_put(TorStoreKind kind, TorContentKey key, const void *data, size_t bytes);
void tor_store_unmap(TorStored *stored);
/// Removes files until the folder is under its limit.
void tor_store_trim(void);

#endif

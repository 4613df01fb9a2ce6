/// A hash of numbers, for keys of one process.
#ifndef TOR_BASE_HASH_H
#define TOR_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t tor_hash_add(uint64_t hash, int64_t value) {
    hash = (hash ^ (uint64_t)value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static inline uint64_t tor_hash_list(uint64_t hash, const int64_t *values, int count) {
    for (int i = 0; i < count; i++) hash = tor_hash_add(hash, values[i]);
    return hash;
}

/// Of whole words; what is left over is zero-extended.
static inline uint64_t tor_hash_memory(uint64_t hash, const void *memory, size_t bytes) {
    for (size_t i = 0; i < bytes; i += sizeof(int64_t)) {
        int64_t word = 0;
        memcpy(&word, (const char *)memory + i, bytes - i < sizeof word ? bytes - i : sizeof word);
        hash = tor_hash_add(hash, word);
    }
    return hash;
}

#endif

// Chunks of huge pages, each with a list of its blocks in the order of their addresses. What lies
// between two blocks is free; the first gap that is wide enough takes a new block.
#include "base/slab.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"

#define CHUNK_BYTES ((size_t)32 << 20)
#define SMALL ((size_t)128 << 10)  // under this a block is not worth a place here

typedef struct {
    size_t begin, end;  // bytes from the chunk's start
} Extent;

typedef struct Chunk {
    struct Chunk *next;
    char *base;
    size_t bytes;
    Extent *blocks;  // in order, none empty
    size_t count, capacity;
} Chunk;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Chunk *chunks;  // under the lock

// Where in blocks[] one of `bytes` would go, and its offset; false if no gap takes it.
static bool find_gap(const Chunk *chunk, size_t bytes, size_t *index, size_t *begin) {
    size_t free_from = 0;
    for (size_t i = 0; i <= chunk->count; i++) {
        size_t free_to = i < chunk->count ? chunk->blocks[i].begin : chunk->bytes;
        if (free_to - free_from >= bytes) {
            *index = i, *begin = free_from;
            return true;
        }
        if (i < chunk->count) free_from = chunk->blocks[i].end;
    }
    return false;
}

static Chunk *new_chunk(size_t bytes) {
    Chunk *chunk = tor_alloc_zero(sizeof *chunk);
    if (chunk) chunk->base = tor_alloc_large(bytes);
    if (!chunk || !chunk->base) {
        tor_free(chunk);
        return NULL;
    }
    chunk->bytes = bytes;
    chunk->next = chunks;
    return chunks = chunk;
}

static void free_chunk(Chunk *chunk) {
    for (Chunk **link = &chunks; *link; link = &(*link)->next)
        if (*link == chunk) {
            *link = chunk->next;
            break;
        }
    tor_free(chunk->base);
    tor_free(chunk->blocks);
    tor_free(chunk);
}

static void *place(Chunk *chunk, size_t index, size_t begin, size_t bytes) {
    if (tor_grow((void **)&chunk->blocks, &chunk->capacity, chunk->count + 1,
                 sizeof *chunk->blocks) != TOROID_OK)
        return NULL;
    Extent *at = chunk->blocks + index;
    memmove(at + 1, at, (chunk->count - index) * sizeof *at);
    *at = (Extent){begin, begin + bytes};
    chunk->count++;
    return chunk->base + begin;
}

static void *allocate(size_t bytes) {
    size_t index = 0, begin = 0;
    for (Chunk *chunk = chunks; chunk; chunk = chunk->next)
        if (find_gap(chunk, bytes, &index, &begin)) return place(chunk, index, begin, bytes);
    // One that fills most of a chunk gets its own, no longer than itself.
    Chunk *chunk = new_chunk(bytes > CHUNK_BYTES / 2 ? bytes : CHUNK_BYTES);
    if (!chunk) return NULL;
    void *memory = place(chunk, 0, 0, bytes);
    if (!memory) free_chunk(chunk);
    return memory;
}

void *tor_slab_alloc(size_t bytes) {
    if (bytes < SMALL || bytes > PTRDIFF_MAX) return tor_alloc(bytes);
    bytes = (bytes + TOR_CACHE_LINE - 1) / TOR_CACHE_LINE * TOR_CACHE_LINE;
    pthread_mutex_lock(&lock);
    void *memory = allocate(bytes);
    pthread_mutex_unlock(&lock);
    return memory;
}

// The gap that blocks[index] leaves behind, without its parts of huge pages.
static void give_back(const Chunk *chunk, size_t index) {
    size_t from = index ? chunk->blocks[index - 1].end : 0;
    size_t to = index < chunk->count ? chunk->blocks[index].begin : chunk->bytes;
    from = (from + TOR_HUGE_PAGE - 1) / TOR_HUGE_PAGE * TOR_HUGE_PAGE;
    to = to / TOR_HUGE_PAGE * TOR_HUGE_PAGE;
    if (from < to) (void)madvise(chunk->base + from, to - from, MADV_DONTNEED);
}

static void remove_block(Chunk *chunk, size_t begin) {
    size_t index = 0;
    while (chunk->blocks[index].begin != begin) index++;
    chunk->count--;
    memmove(chunk->blocks + index, chunk->blocks + index + 1,
            (chunk->count - index) * sizeof *chunk->blocks);
    if (chunk->count == 0)
        free_chunk(chunk);
    else
        give_back(chunk, index);
}

void tor_slab_free(void *memory) {
    pthread_mutex_lock(&lock);
    Chunk *chunk = chunks;
    uintptr_t address = (uintptr_t)memory;
    while (chunk && address - (uintptr_t)chunk->base >= chunk->bytes) chunk = chunk->next;
    if (chunk) remove_block(chunk, address - (uintptr_t)chunk->base);
    pthread_mutex_unlock(&lock);
    if (!chunk) tor_free(memory);
}

size_t tor_slab_chunks(void) {
    pthread_mutex_lock(&lock);
    size_t count = 0;
    for (Chunk *chunk = chunks; chunk; chunk = chunk->next) count++;
    pthread_mutex_unlock(&lock);
    return count;
}

// A bump allocator over a list of blocks that grow with what was already given out.
#include "base/alloc.h"

#include <string.h>

#define ALIGNMENT 16
#define FIRST_BLOCK ((size_t)16 << 10)
#define LARGEST_BLOCK ((size_t)1 << 20)

typedef struct Block {
    struct Block *next;
    size_t bytes, used;  // of `data`
    _Alignas(ALIGNMENT) unsigned char data[];
} Block;

struct TorArena {
    Block *blocks;  // the newest first
    size_t next_bytes;
};

ToroidStatus tor_arena_create(TorArena **out) {
    *out = tor_alloc_zero(sizeof **out);
    if (*out == NULL) return TOROID_NO_MEMORY;
    (*out)->next_bytes = FIRST_BLOCK;
    return TOROID_OK;
}

void tor_arena_destroy(TorArena **arena) {
    if (arena == NULL || *arena == NULL) return;
    for (Block *block = (*arena)->blocks; block != NULL;) {
        Block *next = block->next;
        tor_free(block);
        block = next;
    }
    tor_free(*arena);
    *arena = NULL;
}

void *tor_arena_alloc(TorArena *arena, size_t bytes) {
    if (bytes > PTRDIFF_MAX - sizeof(Block) - ALIGNMENT) {
        tor_no_memory();
        return NULL;
    }
    // An empty allocation still gets an address of its own.
    size_t rounded = (TOR_MAX(bytes, (size_t)1) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    Block *block = arena->blocks;
    if (block == NULL || block->bytes - block->used < rounded) {
        size_t block_bytes = TOR_MAX(rounded, arena->next_bytes);
        block = tor_alloc(sizeof *block + block_bytes);
        if (block == NULL) return NULL;
        block->next = arena->blocks;
        block->bytes = block_bytes;
        block->used = 0;
        arena->blocks = block;
        arena->next_bytes = TOR_MIN(2 * arena->next_bytes, LARGEST_BLOCK);
    }
    void *memory = block->data + block->used;
    block->used += rounded;
    return memset(memory, 0, rounded);
}

char *tor_arena_strdup(TorArena *arena, const char *text) {
    size_t bytes = strlen(text) + 1;
    char *copy = tor_arena_alloc(arena, bytes);
    return copy == NULL ? NULL : memcpy(copy, text, bytes);
}

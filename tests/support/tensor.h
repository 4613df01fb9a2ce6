// Tensors of tests: strided memory with nothing behind its last element, freed all at once.
#ifndef TESTS_SUPPORT_TENSOR_H
#define TESTS_SUPPORT_TENSOR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "graph/graph.h"

typedef struct Tensor {
    struct Tensor *next;
    TorDtype dtype;
    int rank;
    int64_t size[TOR_MAX_RANK], stride[TOR_MAX_RANK], value;
    void *memory;
    size_t bytes;
    uint64_t uid;
    int64_t version;
} Tensor;

static Tensor *all_tensors;

static inline int64_t tensor_numel(const Tensor *t) {
    int64_t n = 1;
    for (int d = 0; d < t->rank; d++) n *= t->size[d];
    return n;
}

/// Offset in elements of the `flat`-th element in row-major order.
static inline int64_t tensor_place(const Tensor *t, int64_t flat) {
    int64_t at = 0;
    for (int d = t->rank - 1; d >= 0; d--) {
        at += flat % t->size[d] * t->stride[d];
        flat /= t->size[d];
    }
    return at;
}

static inline double tensor_at(const Tensor *t, int64_t flat) {
    TorScalar s = tor_scalar_load(
        (uint8_t *)t->memory + (size_t)tensor_place(t, flat) * tor_dtype_size(t->dtype), t->dtype);
    return tor_dtype_is_float(s.dtype) ? s.f : (double)s.i;
}

static inline void tensor_set(Tensor *t, int64_t flat, double x) {
    TorScalar s = {.dtype = TOR_float64, .f = x};
    tor_scalar_store(
        (uint8_t *)t->memory + (size_t)tensor_place(t, flat) * tor_dtype_size(t->dtype),
        tor_scalar_cast(s, t->dtype));
}

/// Memory that holds the elements and no byte more, filled with a pattern that is no sensible
/// number.
static inline void tensor_allocate(Tensor *t) {
    int64_t last = 0;
    for (int d = 0; d < t->rank; d++) last += (t->size[d] - 1) * t->stride[d];
    t->bytes = tensor_numel(t) ? (size_t)(last + 1) * tor_dtype_size(t->dtype) : 0;
    t->memory = malloc(t->bytes ? t->bytes : 1);
    memset(t->memory, 0xfe, t->bytes);
}

static inline Tensor *new_tensor(TorDtype dtype, int rank, const int64_t *size,
                                 const int64_t *stride) {
    static uint64_t uid;
    Tensor *t = calloc(1, sizeof *t);
    t->next = all_tensors;
    all_tensors = t;
    t->dtype = dtype;
    t->rank = rank;
    t->uid = ++uid;
    int64_t step = 1;
    for (int d = rank - 1; d >= 0; d--) {
        t->size[d] = size[d];
        t->stride[d] = stride ? stride[d] : step;
        step *= TOR_MAX(size[d], (int64_t)1);
    }
    tensor_allocate(t);
    return t;
}

static inline void free_tensors(void) {
    while (all_tensors) {
        Tensor *next = all_tensors->next;
        free(all_tensors->memory);
        free(all_tensors);
        all_tensors = next;
    }
}

static uint64_t random_state = 1;
static inline uint64_t random_word(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    uint64_t x = random_state ^ random_state >> 33;
    return x * 0xff51afd7ed558ccdu >> 16;
}
static inline int64_t random_below(int64_t n) { return (int64_t)(random_word() % (uint64_t)n); }

/// Uniform in [-1, 1) for floats, [0, 10) for integers.
static inline Tensor *randomise(Tensor *t) {
    for (int64_t i = 0; i < tensor_numel(t); i++)
        tensor_set(t, i,
                   tor_dtype_is_float(t->dtype)
                       ? (double)(random_below(1 << 20) - (1 << 19)) / (1 << 19)
                   : t->dtype == TOR_bool ? (double)random_below(2)
                                          : (double)random_below(10));
    return t;
}

/// Numbers from a text like "2 3 4".
static inline int parse_sizes(const char *text, int64_t *out) {
    int n = 0;
    for (char *end; *text; text = end) {
        while (*text == ' ') text++;
        if (!*text) break;
        out[n++] = strtoll(text, &end, 10);
    }
    return n;
}

static inline Tensor *tensor_of(TorDtype dtype, const char *sizes) {
    int64_t size[TOR_MAX_RANK];
    int rank = parse_sizes(sizes, size);
    return randomise(new_tensor(dtype, rank, size, NULL));
}
static inline Tensor *strided(TorDtype dtype, const char *sizes, const char *strides) {
    int64_t size[TOR_MAX_RANK], stride[TOR_MAX_RANK];
    int rank = parse_sizes(sizes, size);
    parse_sizes(strides, stride);
    return randomise(new_tensor(dtype, rank, size, stride));
}
#define FLOATS(sizes) tensor_of(TOR_float32, sizes)

/// int64 of one dim with these numbers.
static inline Tensor *numbers_of(TorDtype dtype, const int64_t *numbers, int64_t n) {
    Tensor *t = new_tensor(dtype, 1, &n, NULL);
    for (int64_t i = 0; i < n; i++) tensor_set(t, i, (double)numbers[i]);
    return t;
}
#define INDICES(...)                                      \
    numbers_of(TOR_int64, (const int64_t[]){__VA_ARGS__}, \
               (int64_t)TOR_COUNT_OF(((const int64_t[]){__VA_ARGS__})))

#endif

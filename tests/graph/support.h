// Short ways to build a graph in a test, and to compare its printed text.
#ifndef TESTS_GRAPH_SUPPORT_H
#define TESTS_GRAPH_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "graph/internal.h"
#include "passes/passes.h"

// Letters in dims are symbols: the first use of one names the size of that dim of that input.
static TorDim symbols[128];

static inline TorGraph *new_graph(void) {
    TorGraph *g;
    assert_int_equal(tor_graph_create(&g), TOROID_OK);
    for (int i = 0; i < 128; ++i) symbols[i] = TOR_NO_DIM;
    return g;
}

// "2 s 768": constants and symbols. `input` >= 0: new symbols are sizes of that input.
static inline int parse_dims(TorGraph *g, const char *text, int input, TorDim *dims) {
    int n = 0;
    while (*text) {
        if (*text == ' ') {
            ++text;
        } else if ((*text >= '0' && *text <= '9') || *text == '-') {
            char *end;
            dims[n++] = tor_int_const(g, strtoll(text, &end, 10));
            text = end;
        } else {
            int c = *text++;
            if (symbols[c] == TOR_NO_DIM && input >= 0)
                symbols[c] = tor_int_size(g, (uint32_t)input, (uint32_t)n);
            dims[n++] = symbols[c];
        }
    }
    return n;
}

static inline TorValue *make_input(TorGraph *g, const char *name, TorDtype dtype, const char *dims,
                                   bool frozen) {
    TorDim d[TOR_MAX_RANK + 4];
    TorValue *v;
    int rank = parse_dims(g, dims, (int)g->n_inputs, d);
    assert_int_equal(tor_graph_add_input(g, name, dtype, rank, d, frozen, &v), TOROID_OK);
    return v;
}
#define INPUT(g, name, dims) make_input(g, name, TOR_float32, dims, false)
#define WEIGHT(g, name, dims) make_input(g, name, TOR_float32, dims, true)

// An attribute of dims; lives until eight more are made.
static inline TorAttr dims_attr(TorGraph *g, TorAttrKey key, const char *text) {
    static TorDim ring[8][TOR_MAX_RANK + 4];
    static int at;
    TorDim *dims = ring[at++ & 7];
    int n = parse_dims(g, text, -1, dims);
    return (TorAttr){.key = key, .kind = TOR_ATTR_DIMS, .dims = dims, .count = n};
}
#define DIMS(g, text) dims_attr(g, TOR_ATTR_dims, text)
#define INTS(key, ...)                                \
    TOR_A_INTS(key, ((const int64_t[]){__VA_ARGS__}), \
               (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))

#define INS(...) \
    (TorValue *[]){__VA_ARGS__}, (int)(sizeof((TorValue *[]){__VA_ARGS__}) / sizeof(TorValue *))
#define ATTRS(...) \
    (TorAttr[]){__VA_ARGS__}, (int)(sizeof((TorAttr[]){__VA_ARGS__}) / sizeof(TorAttr))
#define NONE NULL, 0

static inline TorValue *add_op(TorGraph *g, TorOp op, TorValue **inputs, int n_inputs,
                               TorAttr *attrs, int n_attrs) {
    TorNode *node;
    ToroidStatus status = tor_graph_add(g, NULL, op, inputs, n_inputs, attrs, n_attrs, 1, &node);
    if (status != TOROID_OK) print_error("%s\n", toroid_last_error());
    assert_int_equal(status, TOROID_OK);
    return node->outputs[0];
}
#define OP(g, op, ...) add_op(g, TOR_OP_##op, __VA_ARGS__)

static inline TorValue *number(TorGraph *g, double f) {
    TorValue *v;
    assert_int_equal(tor_graph_number(g, (TorScalar){.dtype = TOR_float64, .f = f}, &v), TOROID_OK);
    return v;
}

static inline void set_outputs(TorGraph *g, TorValue **values, int n) {
    int64_t into[16];
    for (int i = 0; i < 16; ++i) into[i] = -1;
    assert_int_equal(tor_graph_set_outputs(g, values, into, n), TOROID_OK);
}

static inline void expect_text(TorGraph *g, const char *expected) {
    char *text;
    ToroidStatus status = tor_graph_verify(g);
    if (status != TOROID_OK) print_error("%s\n", toroid_last_error());
    assert_int_equal(status, TOROID_OK);
    assert_int_equal(tor_graph_print(g, &text), TOROID_OK);
    if (strcmp(text, expected)) print_error("got:\n%s\nexpected:\n%s\n", text, expected);
    assert_string_equal(text, expected);
    tor_free(text);
}

/// Runs passes named with spaces between.
static inline void run_passes(TorGraph *g, const char *names) {
    char copy[128];
    const char *list[16];
    int n = 0;
    snprintf(copy, sizeof(copy), "%s", names);
    for (char *name = strtok(copy, " "); name; name = strtok(NULL, " ")) list[n++] = name;
    ToroidStatus status = tor_passes_run(g, list, n);
    if (status != TOROID_OK) print_error("%s\n", toroid_last_error());
    assert_int_equal(status, TOROID_OK);
}

#endif

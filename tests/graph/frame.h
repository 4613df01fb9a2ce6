// One graph for each test, and short ways to add to it.
#ifndef TESTS_GRAPH_FRAME_H
#define TESTS_GRAPH_FRAME_H

#include "support.h"

static TorGraph *g;

static inline int setup(void **state) {
    (void)state;
    g = new_graph();
    return 0;
}

static inline int teardown(void **state) {
    (void)state;
    tor_graph_destroy(&g);
    return 0;
}

static inline TorValue *permuted(TorValue *x, int64_t a, int64_t b, int64_t c, int64_t d) {
    return OP(g, permute, INS(x), ATTRS(INTS(axes, a, b, c, d)));
}
#define BINARY(fn, a, b) OP(g, fn, INS(a, b), NONE)

#endif

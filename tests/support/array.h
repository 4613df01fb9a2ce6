// Dense arrays of doubles, as the interpreter computes with, and where a graph's values are.
#ifndef TESTS_SUPPORT_ARRAY_H
#define TESTS_SUPPORT_ARRAY_H

#include <math.h>

#include "tensor.h"

typedef struct {
    int rank;
    int64_t size[TOR_MAX_RANK];
    double *data;
} Array;

typedef struct {
    TorGraph *g;
    Tensor *const *inputs;
    int64_t ints[4096];
    Array values[4096];  // by value id
} Interpreter;

static inline int64_t array_numel(const Array *a) {
    int64_t n = 1;
    for (int d = 0; d < a->rank; d++) n *= a->size[d];
    return n;
}

static inline void array_index(const Array *a, int64_t flat, int64_t *at) {
    for (int d = a->rank - 1; d >= 0; d--) {
        at[d] = flat % a->size[d];
        flat /= a->size[d];
    }
}

static inline int64_t array_flat(const Array *a, const int64_t *at) {
    int64_t flat = 0;
    for (int d = 0; d < a->rank; d++) flat = flat * a->size[d] + at[d];
    return flat;
}

/// The item that numpy's broadcasting puts at `at` of a result of `rank` dims.
static inline double array_broadcast(const Array *a, int rank, const int64_t *at) {
    int64_t own[TOR_MAX_RANK];
    for (int d = 0; d < a->rank; d++) own[d] = a->size[d] == 1 ? 0 : at[d + rank - a->rank];
    return a->data[array_flat(a, own)];
}

static inline double scalar_fn(TorOp op, double a, double b, double c) {
    switch (op) {
        case TOR_OP_add: return a + b;
        case TOR_OP_sub: return a - b;
        case TOR_OP_mul: return a * b;
        case TOR_OP_div: return a / b;
        case TOR_OP_minimum: return isnan(a) || a < b ? a : b;
        case TOR_OP_maximum: return isnan(a) || a > b ? a : b;
        case TOR_OP_lt: return a < b;
        case TOR_OP_gt: return a > b;
        case TOR_OP_ge: return a >= b;
        case TOR_OP_eq: return a == b;
        case TOR_OP_where: return a != 0 ? b : c;
        case TOR_OP_neg: return -a;
        case TOR_OP_abs: return fabs(a);
        case TOR_OP_exp: return exp(a);
        case TOR_OP_tanh: return tanh(a);
        case TOR_OP_sqrt: return sqrt(a);
        case TOR_OP_rsqrt: return 1 / sqrt(a);
        case TOR_OP_sigmoid: return 1 / (1 + exp(-a));
        case TOR_OP_silu: return a / (1 + exp(-a));
        case TOR_OP_relu: return a > 0 ? a : 0;
        case TOR_OP_gelu_erf: return 0.5 * a * (1 + erf(a / sqrt(2)));
        case TOR_OP_copy: return a;
        default: fail_msg("interpreter: no rule for %s", tor_op_name(op)); return 0;
    }
}

static inline Array *interpreted(Interpreter *it, const TorNode *node, int i) {
    return &it->values[tor_in(node, i)->id];
}

static inline uint32_t axes_mask(const TorNode *node) {
    uint32_t mask = 0;
    const TorAttr *axes = tor_attr(node, TOR_ATTR_axes);
    for (int i = 0; i < axes->count; i++) mask |= 1u << axes->ints[i];
    return mask;
}

#endif

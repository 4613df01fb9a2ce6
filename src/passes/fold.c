// Folds arithmetic of numbers: scalar functions whose operands are all Python numbers, computed in
// double and int64, and casts of 0-d constants. Sources (full, arange) stay as they are: they are
// cheaper to make than to load.
#include <math.h>

#include "passes/passes.h"
#include "passes/rewrite.h"

static TorScalar real(double f) { return (TorScalar){.dtype = TOR_float64, .f = f}; }
static TorScalar whole(int64_t i) { return (TorScalar){.dtype = TOR_int64, .i = i}; }
static TorScalar truth(bool b) { return (TorScalar){.dtype = TOR_bool, .i = b}; }

static bool fold_float(TorOp op, double a, double b, TorScalar *out) {
    switch (op) {
        case TOR_OP_add: *out = real(a + b); return true;
        case TOR_OP_sub: *out = real(a - b); return true;
        case TOR_OP_mul: *out = real(a * b); return true;
        case TOR_OP_div: *out = real(a / b); return true;
        case TOR_OP_pow: *out = real(pow(a, b)); return true;
        case TOR_OP_minimum: *out = real(isnan(a) || a < b ? a : b); return true;
        case TOR_OP_maximum: *out = real(isnan(a) || a > b ? a : b); return true;
        case TOR_OP_neg: *out = real(-a); return true;
        case TOR_OP_abs: *out = real(fabs(a)); return true;
        case TOR_OP_sqrt: *out = real(sqrt(a)); return true;
        case TOR_OP_rsqrt: *out = real(1 / sqrt(a)); return true;
        case TOR_OP_reciprocal: *out = real(1 / a); return true;
        case TOR_OP_exp: *out = real(exp(a)); return true;
        case TOR_OP_log: *out = real(log(a)); return true;
        case TOR_OP_floor: *out = real(floor(a)); return true;
        case TOR_OP_ceil: *out = real(ceil(a)); return true;
        case TOR_OP_trunc: *out = real(trunc(a)); return true;
        case TOR_OP_eq: *out = truth(a == b); return true;
        case TOR_OP_ne: *out = truth(a != b); return true;
        case TOR_OP_lt: *out = truth(a < b); return true;
        case TOR_OP_le: *out = truth(a <= b); return true;
        case TOR_OP_gt: *out = truth(a > b); return true;
        case TOR_OP_ge: *out = truth(a >= b); return true;
        default: return false;
    }
}

// Integers wrap, as the scalar functions do.
static bool fold_int(TorOp op, int64_t a, int64_t b, TorScalar *out) {
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    switch (op) {
        case TOR_OP_add: *out = whole((int64_t)(x + y)); return true;
        case TOR_OP_sub: *out = whole((int64_t)(x - y)); return true;
        case TOR_OP_mul: *out = whole((int64_t)(x * y)); return true;
        case TOR_OP_minimum: *out = whole(TOR_MIN(a, b)); return true;
        case TOR_OP_maximum: *out = whole(TOR_MAX(a, b)); return true;
        case TOR_OP_neg: *out = whole((int64_t)(0 - x)); return true;
        case TOR_OP_abs: *out = whole(a < 0 ? (int64_t)(0 - x) : a); return true;
        case TOR_OP_eq: *out = truth(a == b); return true;
        case TOR_OP_ne: *out = truth(a != b); return true;
        case TOR_OP_lt: *out = truth(a < b); return true;
        case TOR_OP_le: *out = truth(a <= b); return true;
        case TOR_OP_gt: *out = truth(a > b); return true;
        case TOR_OP_ge: *out = truth(a >= b); return true;
        default: return false;
    }
}

static ToroidStatus fold_fn(TorRewrite *r) {
    TorNode *node = r->node;
    TorScalar s[2] = {{0}, {0}}, result;
    if (!tor_op_is_scalar_fn(node->op) || node->n_inputs > 2) return TOROID_OK;
    TorDtype type = TOR_bool;  // of the operands together, by the type rule
    for (int i = 0; i < node->n_inputs; ++i) {
        if (!tor_is_weak_number(tor_in(node, i)) || !tor_value_number(tor_in(node, i), &s[i]))
            return TOROID_OK;
        type = TOR_MAX(type, s[i].dtype);
    }
    if (type == TOR_bool)
        return TOROID_OK;  // logic on two Python bools does not occur in traced graphs
    for (int i = 0; i < node->n_inputs; ++i) s[i] = tor_scalar_cast(s[i], type);
    bool known = type == TOR_float64
                     ? fold_float(node->op, s[0].f, s[1].f, &result)
                     : type == TOR_int64 && fold_int(node->op, s[0].i, s[1].i, &result);
    if (!known) return TOROID_OK;
    TorValue *value;
    TOR_TRY(tor_graph_number(r->g, result, &value));
    tor_rewrite_replace(r, value);
    return TOROID_OK;
}

// The result has the cast's type, and is no longer weak: it is a tensor of that type.
static ToroidStatus fold_cast(TorRewrite *r) {
    TorScalar number;
    if (r->node->op != TOR_OP_cast || !tor_value_number(tor_in(r->node, 0), &number))
        return TOROID_OK;
    uint8_t bytes[8] = {0};
    TorDtype dtype = r->node->outputs[0]->dtype;
    TorValue *value;
    tor_scalar_store(bytes, tor_scalar_cast(number, dtype));
    TorAttr attrs[] = {TOR_A_BLOB(blob, bytes, (int)tor_dtype_size(dtype)),
                       TOR_A_DTYPE(dtype, dtype)};
    TOR_TRY(tor_rewrite_add(r, TOR_OP_constant, NULL, 0, attrs, 2, &value));
    tor_rewrite_replace(r, value);
    return TOROID_OK;
}

ToroidStatus tor_pass_fold(TorGraph *g) {
    static TorRule *const rules[] = {fold_fn, fold_cast, NULL};
    return tor_rewrite_sweep(g, rules);
}

// GELU and SiLU that models spell out become the functions that kernels have.
//
//   x * 0.5 * (1 + erf(x / sqrt 2))                                   gelu_erf
//   x * 0.5 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3)))      gelu_tanh
//   x * sigmoid(x),  x / (1 + exp(-x))                                silu
//
// in any order and grouping of factors and summands; x ** 3 as pow, as x * x * x, or taken out as
// x * (1 + 0.044715 * x * x). Products and sums are flattened first, so that spellings are few.
// Functions of half types stay: eager rounds after each step of a spelling.
#include <math.h>

#include "passes/passes.h"
#include "passes/rewrite.h"

enum { MAX_PARTS = 6 };

/// number * part[0] * part[1] * ..., or number + part[0] + part[1] + ...
typedef struct {
    double number;
    const TorValue *part[MAX_PARTS];
    int count;
} Flat;

static bool near(double a, double b) { return fabs(a - b) <= 1e-6 * fabs(b); }

/// Takes `v` apart at nodes of `op` (mul or add) that nobody else reads.
static bool flatten(Flat *f, TorOp op, const TorValue *v, bool root) {
    double x;
    const TorNode *node = v->node;
    if (tor_is_number(v, &x)) {
        f->number = op == TOR_OP_mul ? f->number * x : f->number + x;
        return true;
    }
    if (node->op == op && (root || tor_single_use(v)))
        return flatten(f, op, tor_in(node, 0), false) && flatten(f, op, tor_in(node, 1), false);
    if (op == TOR_OP_mul && node->op == TOR_OP_div && (root || tor_single_use(v)) &&
        tor_is_number(tor_in(node, 1), &x) && x != 0) {
        f->number /= x;
        return flatten(f, op, tor_in(node, 0), false);
    }
    if (op == TOR_OP_mul && node->op == TOR_OP_pow && (root || tor_single_use(v)) &&
        tor_is_number(tor_in(node, 1), &x) && (x == 2 || x == 3)) {
        for (int i = 0; i < (int)x; i++)
            if (!flatten(f, op, tor_in(node, 0), false)) return false;
        return true;
    }
    if (f->count == MAX_PARTS) return false;
    f->part[f->count++] = v;
    return true;
}

static bool product(Flat *f, const TorValue *v, bool root) {
    *f = (Flat){.number = 1};
    return flatten(f, TOR_OP_mul, v, root);
}

static bool sum(Flat *f, const TorValue *v) {
    *f = (Flat){.number = 0};
    return flatten(f, TOR_OP_add, v, false);
}

/// number * x ** power?
static bool is_power(const Flat *f, const TorValue *x, int power, double number) {
    if (f->count != power || !near(f->number, number)) return false;
    for (int i = 0; i < power; i++)
        if (f->part[i] != x) return false;
    return true;
}

/// sqrt(2 / pi) * (x + 0.044715 x^3), or the same with x taken out.
static bool is_cubic(const TorValue *v, const TorValue *x) {
    const double outer = 0.79788456080286536, inner = 0.044715;
    Flat f, s, term;
    if (!product(&f, v, true) || !near(f.number, outer)) return false;
    if (f.count == 1) {
        if (!sum(&s, f.part[0]) || s.number != 0 || s.count != 2) return false;
        for (int i = 0; i < 2; i++)
            if (s.part[i] == x && product(&term, s.part[1 - i], false))
                return is_power(&term, x, 3, inner);
        return false;
    }
    for (int i = 0; i < 2 && f.count == 2; i++)
        if (f.part[i] == x && sum(&s, f.part[1 - i]) && s.number == 1 && s.count == 1)
            return product(&term, s.part[0], false) && is_power(&term, x, 2, inner);
    return false;
}

/// The op that 0.5 * x * gate is, or TOR_OP_COUNT.
static TorOp gelu(const TorValue *x, const TorValue *gate) {
    Flat s, f;
    if (!tor_single_use(gate) || !sum(&s, gate) || s.number != 1 || s.count != 1 ||
        !tor_single_use(s.part[0]))
        return TOR_OP_COUNT;
    const TorNode *node = s.part[0]->node;
    if (node->op == TOR_OP_tanh && is_cubic(tor_in(node, 0), x)) return TOR_OP_gelu_tanh;
    if (node->op == TOR_OP_erf && product(&f, tor_in(node, 0), true) &&
        is_power(&f, x, 1, 0.70710678118654752))
        return TOR_OP_gelu_erf;
    return TOR_OP_COUNT;
}

/// Is `v` sigmoid(x)?
static bool is_sigmoid(const TorValue *v, const TorValue *x) {
    return tor_single_use(v) && v->node->op == TOR_OP_sigmoid && tor_in(v->node, 0) == x;
}

/// x / (1 + exp(-x))?
static bool is_quotient_silu(const TorNode *node) {
    const TorValue *x = tor_in(node, 0);
    Flat s;
    if (!tor_single_use(tor_in(node, 1)) || !sum(&s, tor_in(node, 1)) || s.number != 1 ||
        s.count != 1)
        return false;
    const TorNode *exp = s.part[0]->node;
    if (exp->op != TOR_OP_exp || !tor_single_use(s.part[0])) return false;
    const TorNode *neg = tor_in(exp, 0)->node;
    return neg->op == TOR_OP_neg && tor_single_use(tor_in(exp, 0)) && tor_in(neg, 0) == x;
}

/// The function that `node` ends the spelling of, with its argument; TOR_OP_COUNT for none.
static TorOp recognise(const TorNode *node, const TorValue **x) {
    double divisor;
    if (node->op == TOR_OP_div && !tor_is_number(tor_in(node, 1), &divisor)) {
        *x = tor_in(node, 0);
        return is_quotient_silu(node) ? TOR_OP_silu : TOR_OP_COUNT;
    }
    Flat f;
    if (!product(&f, node->outputs[0], true) || f.count != 2) return TOR_OP_COUNT;
    for (int i = 0; i < 2; i++) {
        *x = f.part[i];
        const TorValue *gate = f.part[1 - i];
        if (f.number == 1 && is_sigmoid(gate, *x)) return TOR_OP_silu;
        TorOp op = f.number == 0.5 ? gelu(*x, gate) : TOR_OP_COUNT;
        if (op != TOR_OP_COUNT) return op;
    }
    return TOR_OP_COUNT;
}

ToroidStatus tor_pass_recognise_activation(TorGraph *g) {
    for (TorNode *node = g->first, *next; node; node = next) {
        next = node->next;
        if (node->op != TOR_OP_mul && node->op != TOR_OP_div) continue;
        TorValue *old = node->outputs[0];
        if (old->dtype != TOR_float32 && old->dtype != TOR_float64) continue;
        const TorValue *x;
        TorOp op = recognise(node, &x);
        // A number, or what is broadcast to the result's dims, is no argument.
        if (op == TOR_OP_COUNT || !tor_value_same_dims(x, old)) continue;
        TorNode *made;
        TOR_TRY(tor_graph_add(g, node, op, (TorValue *[]){(TorValue *)x}, 1, NULL, 0, 1, &made));
        made->origin = node->origin;
        made->outputs[0]->frozen = old->frozen;
        tor_value_replace(old, made->outputs[0]);
        tor_graph_remove(g, node);
    }
    return TOROID_OK;
}

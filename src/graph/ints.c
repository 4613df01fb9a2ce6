// The integers of a graph: a hash-consed DAG that is folded as it is made.
//
// Normal forms, so that equal sizes get equal indices in the usual cases:
//   product  ((f1 * f2) * f3) * c    factors sorted by index, the constant last
//   sum      ((t1 + t2) + t3) + c    t = base * coefficient, sorted by base; a - b is a sum with -1
// What does not fit MAX_TERMS, or whose constants overflow, is kept as written.
#include "graph/internal.h"

#include <string.h>

#include "base/hash.h"

enum { MAX_TERMS = 24 };

typedef struct {
    TorDim item[MAX_TERMS];
    int64_t coef[MAX_TERMS];  // of sums
    int n;
    int64_t c;  // the constant: factor or addend
} Terms;

// ---------------------------------------------------------------- the table

void tor_int_table_free(TorGraph *g) {
    if (!g->ints) return;
    tor_free(g->ints->items);
    tor_free(g->ints->nonneg);
    tor_free(g->ints->slots);
    tor_free(g->ints);
    g->ints = NULL;
}

static uint64_t hash_int(TorIntOp op, uint32_t a, uint32_t b, int64_t value) {
    uint64_t hash = tor_hash_add(op + 1, ((uint64_t)a << 32) | b);
    return op == TOR_INT_const ? tor_hash_add(hash, (uint64_t)value) : hash;
}

static ToroidStatus rehash(struct TorIntTable *t) {
    uint32_t n = t->n_slots ? t->n_slots * 2 : 64;
    uint32_t *slots = tor_alloc_zero(n * sizeof(*slots));
    if (!slots) return TOROID_NO_MEMORY;
    for (uint32_t i = 0; i < t->count; ++i) {
        TorInt *x = &t->items[i];
        uint64_t s = hash_int(x->op, x->a, x->b, x->value);
        while (slots[s & (n - 1)]) ++s;
        slots[s & (n - 1)] = i + 1;
    }
    tor_free(t->slots);
    t->slots = slots;
    t->n_slots = n;
    return TOROID_OK;
}

static TorDim fail(TorGraph *g) {
    if (g->failed == TOROID_OK) g->failed = tor_no_memory();
    return TOR_NO_DIM;
}

static TorDim intern(TorGraph *g, TorIntOp op, uint32_t a, uint32_t b, int64_t value, bool nonneg) {
    if (!g->ints && !(g->ints = tor_alloc_zero(sizeof(*g->ints)))) return fail(g);
    struct TorIntTable *t = g->ints;
    if (t->count >= t->n_slots / 2 && rehash(t) != TOROID_OK) return fail(g);
    uint64_t s = hash_int(op, a, b, value);
    for (uint32_t found; (found = t->slots[s & (t->n_slots - 1)]); ++s) {
        TorInt *x = &t->items[found - 1];
        if (x->op == op && x->a == a && x->b == b && (op != TOR_INT_const || x->value == value))
            return found - 1;
    }
    void *items = t->items, *flags = t->nonneg;
    ToroidStatus status = tor_grow(&items, &t->capacity, t->count + 1u, sizeof(*t->items));
    t->items = items;
    if (status != TOROID_OK) return fail(g);
    status = tor_grow(&flags, &t->nonneg_capacity, t->count + 1u, sizeof(*t->nonneg));
    t->nonneg = flags;
    if (status != TOROID_OK) return fail(g);
    TorInt made = {.op = op, .a = a, .b = b, .value = value};
    int what;
    if (tor_int_asks(&made, &what)) made.value = t->leaves++;
    t->items[t->count] = made;
    t->nonneg[t->count] = nonneg;
    t->slots[s & (t->n_slots - 1)] = t->count + 1;
    return t->count++;
}

ToroidStatus tor_int_restore(TorGraph *g, const TorInt *x, bool nonneg) {
    uint32_t next = tor_int_count(g);
    TorDim dim = intern(g, x->op, x->a, x->b, x->value, nonneg);
    if (dim == TOR_NO_DIM) return tor_no_memory();
    return dim == next ? TOROID_OK : tor_invalid("integer %u is integer %u again", next, dim);
}

TorDim tor_int_const(TorGraph *g, int64_t value) {
    return intern(g, TOR_INT_const, 0, 0, value, value >= 0);
}
TorDim tor_int_scalar(TorGraph *g, uint32_t input) {
    return intern(g, TOR_INT_scalar, input, 0, 0, false);
}
TorDim tor_int_size(TorGraph *g, uint32_t input, uint32_t dim) {
    return intern(g, TOR_INT_size, input, dim, 0, true);
}
TorDim tor_int_stride(TorGraph *g, uint32_t input, uint32_t dim) {
    return intern(g, TOR_INT_stride, input, dim, 0, true);
}
TorDim tor_int_start(TorGraph *g, uint32_t input) {
    return intern(g, TOR_INT_start, input, 0, 0, true);
}
TorDim tor_int_memory(TorGraph *g, uint32_t input) {
    return intern(g, TOR_INT_memory, input, 0, 0, true);
}

bool tor_int_asks(const TorInt *x, int *what) {
    switch (x->op) {
        case TOR_INT_scalar: *what = TOR_ASK_VALUE; return true;
        case TOR_INT_size: *what = (int)x->b; return true;
        case TOR_INT_stride: *what = TOR_ASK_STRIDE - (int)x->b; return true;
        case TOR_INT_start: *what = TOR_ASK_START; return true;
        case TOR_INT_memory: *what = TOR_ASK_MEMORY; return true;
        default: return false;
    }
}

const TorInt *tor_int_get(const TorGraph *g, TorDim dim) { return &g->ints->items[dim]; }
uint32_t tor_int_count(const TorGraph *g) { return g->ints ? g->ints->count : 0; }

bool tor_int_known(const TorGraph *g, TorDim dim, int64_t *value) {
    if (dim >= tor_int_count(g) || g->ints->items[dim].op != TOR_INT_const) return false;
    *value = g->ints->items[dim].value;
    return true;
}

bool tor_int_is(const TorGraph *g, TorDim dim, int64_t value) {
    int64_t known;
    return tor_int_known(g, dim, &known) && known == value;
}

static bool nonneg(const TorGraph *g, TorDim dim) { return g->ints->nonneg[dim]; }

// ---------------------------------------------------------------- one operation on numbers

typedef enum { GOOD, OVERFLOWS, CLASHES, DIFFERS, OUTSIDE, NEGATIVE_POWER } Outcome;

static int64_t floor_div(int64_t a, int64_t b) {
    int64_t q = a / b;
    return q - (a % b != 0 && (a < 0) != (b < 0));
}

static Outcome power(int64_t base, int64_t exponent, int64_t *out) {
    if (exponent < 0) return NEGATIVE_POWER;
    int64_t result = 1;
    while (true) {
        if ((exponent & 1) && __builtin_mul_overflow(result, base, &result)) return OVERFLOWS;
        if (!(exponent >>= 1)) break;
        if (__builtin_mul_overflow(base, base, &base)) return OVERFLOWS;
    }
    *out = result;
    return GOOD;
}

static inline Outcome apply(TorIntOp op, int64_t a, int64_t b, int64_t *out) {
    switch (op) {
        case TOR_INT_add: return __builtin_add_overflow(a, b, out) ? OVERFLOWS : GOOD;
        case TOR_INT_sub: return __builtin_sub_overflow(a, b, out) ? OVERFLOWS : GOOD;
        case TOR_INT_mul: return __builtin_mul_overflow(a, b, out) ? OVERFLOWS : GOOD;
        case TOR_INT_floordiv:
            if (b == -1) return __builtin_sub_overflow((int64_t)0, a, out) ? OVERFLOWS : GOOD;
            *out = b ? floor_div(a, b) : 0;
            return GOOD;
        case TOR_INT_mod: *out = b == 0 || b == -1 ? 0 : a - floor_div(a, b) * b; return GOOD;
        case TOR_INT_pow: return power(a, b, out);
        case TOR_INT_min: *out = TOR_MIN(a, b); return GOOD;
        case TOR_INT_max: *out = TOR_MAX(a, b); return GOOD;
        case TOR_INT_broadcast:
            *out = a == 1 ? b : a;
            return a == b || a == 1 || b == 1 ? GOOD : CLASHES;
        case TOR_INT_within: *out = a; return a <= b ? GOOD : OUTSIDE;
        case TOR_INT_same: *out = a; return a == b ? GOOD : DIFFERS;
        case TOR_INT_eq: *out = a == b; return GOOD;
        case TOR_INT_ne: *out = a != b; return GOOD;
        case TOR_INT_lt: *out = a < b; return GOOD;
        case TOR_INT_le: *out = a <= b; return GOOD;
        default: break;
    }
    *out = 0;
    return GOOD;
}

// ---------------------------------------------------------------- products

// Multiplies `dim` into `terms`; false: does not fit.
static bool collect_factors(const TorGraph *g, TorDim dim, Terms *terms) {
    if (dim == TOR_NO_DIM) return false;
    TorInt x = *tor_int_get(g, dim);
    if (x.op == TOR_INT_const) return !__builtin_mul_overflow(terms->c, x.value, &terms->c);
    // A product leans left: only its last factor can be a constant, and no right operand is a
    // product.
    while (x.op == TOR_INT_mul) {
        if (!collect_factors(g, x.b, terms)) return false;
        dim = x.a;
        x = *tor_int_get(g, dim);
    }
    if (x.op == TOR_INT_const) return !__builtin_mul_overflow(terms->c, x.value, &terms->c);
    if (terms->n == MAX_TERMS) return false;
    terms->item[terms->n++] = dim;
    return true;
}

static bool factors_of(const TorGraph *g, TorDim dim, Terms *terms) {
    terms->n = 0;
    terms->c = 1;
    return collect_factors(g, dim, terms);
}

static TorDim raw(TorGraph *g, TorIntOp op, TorDim a, TorDim b) {
    if (a == TOR_NO_DIM || b == TOR_NO_DIM) return TOR_NO_DIM;
    bool both = nonneg(g, a) && nonneg(g, b);
    bool sign = op == TOR_INT_max   ? nonneg(g, a) || nonneg(g, b)
                : op == TOR_INT_sub ? false
                : op == TOR_INT_mod ? nonneg(g, b)
                                    : op >= TOR_INT_eq || both;
    return intern(g, op, a, b, 0, sign);
}

static void sort_terms(Terms *t) {
    for (int i = 1; i < t->n; ++i) {
        TorDim item = t->item[i];
        int64_t coef = t->coef[i];
        int j = i;
        for (; j > 0 && t->item[j - 1] > item; --j)
            t->item[j] = t->item[j - 1], t->coef[j] = t->coef[j - 1];
        t->item[j] = item;
        t->coef[j] = coef;
    }
}

static TorDim build_product(TorGraph *g, Terms *t) {
    if (t->c == 0 || t->n == 0) return tor_int_const(g, t->c);
    for (int i = 0; i < t->n; ++i) t->coef[i] = 0;
    sort_terms(t);
    TorDim result = t->item[0];
    for (int i = 1; i < t->n; ++i) result = raw(g, TOR_INT_mul, result, t->item[i]);
    return t->c == 1 ? result : raw(g, TOR_INT_mul, result, tor_int_const(g, t->c));
}

static TorDim make_mul(TorGraph *g, TorDim a, TorDim b) {
    Terms t;
    if (!factors_of(g, a, &t) || !collect_factors(g, b, &t))
        return raw(g, TOR_INT_mul, TOR_MIN(a, b), TOR_MAX(a, b));
    return build_product(g, &t);
}

// ---------------------------------------------------------------- sums

// Adds coef * dim to `terms`; false: does not fit.
static bool collect_terms(const TorGraph *g, TorDim dim, int64_t coef, Terms *t) {
    if (dim == TOR_NO_DIM) return false;
    TorInt x = *tor_int_get(g, dim);
    int64_t c;
    switch (x.op) {
        case TOR_INT_const:
            return !__builtin_mul_overflow(x.value, coef, &c) &&
                   !__builtin_add_overflow(t->c, c, &t->c);
        case TOR_INT_add: return collect_terms(g, x.a, coef, t) && collect_terms(g, x.b, coef, t);
        case TOR_INT_sub:
            return !__builtin_mul_overflow(coef, (int64_t)-1, &c) &&
                   collect_terms(g, x.a, coef, t) && collect_terms(g, x.b, c, t);
        case TOR_INT_mul:
            if (tor_int_known(g, x.b, &c))
                return !__builtin_mul_overflow(coef, c, &c) && collect_terms(g, x.a, c, t);
            break;
        default: break;
    }
    for (int i = 0; i < t->n; ++i)
        if (t->item[i] == dim) return !__builtin_add_overflow(t->coef[i], coef, &t->coef[i]);
    if (t->n == MAX_TERMS) return false;
    t->item[t->n] = dim;
    t->coef[t->n++] = coef;
    return true;
}

static TorDim build_sum(TorGraph *g, Terms *t) {
    sort_terms(t);
    TorDim result = TOR_NO_DIM;
    bool first = true;
    for (int i = 0; i < t->n; ++i) {
        if (t->coef[i] == 0) continue;
        TorDim term =
            t->coef[i] == 1 ? t->item[i] : make_mul(g, t->item[i], tor_int_const(g, t->coef[i]));
        result = first ? term : raw(g, TOR_INT_add, result, term);
        if (result == TOR_NO_DIM) return result;
        first = false;
    }
    if (first) return tor_int_const(g, t->c);
    return t->c == 0 ? result : raw(g, TOR_INT_add, result, tor_int_const(g, t->c));
}

static TorDim make_sum(TorGraph *g, TorIntOp op, TorDim a, TorDim b) {
    if (tor_int_is(g, b, 0)) return a;
    if (op == TOR_INT_add && tor_int_is(g, a, 0)) return b;
    Terms t = {.n = 0};
    if (collect_terms(g, a, 1, &t) && collect_terms(g, b, op == TOR_INT_add ? 1 : -1, &t))
        return build_sum(g, &t);
    if (op == TOR_INT_add && a > b) return raw(g, op, b, a);
    return raw(g, op, a, b);
}

// ---------------------------------------------------------------- quotients

static int64_t gcd(int64_t a, int64_t b) {
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a < 0 ? -a : a;
}

// Takes factors that both have out of both. True if anything went.
static bool cancel(Terms *a, Terms *b) {
    bool any = false;
    for (int i = 0; i < b->n; ++i) {
        for (int j = 0; j < a->n; ++j) {
            if (a->item[j] != b->item[i]) continue;
            a->item[j] = a->item[--a->n];
            b->item[i--] = b->item[--b->n];
            any = true;
            break;
        }
    }
    if (a->c == INT64_MIN || b->c == INT64_MIN || b->c == 0) return any;
    int64_t common = gcd(a->c, b->c);
    if (b->c < 0) common = -common;
    if (common == 1) return any;
    a->c /= common;
    b->c /= common;
    return true;
}

static TorDim make_floordiv(TorGraph *g, TorDim a, TorDim b) {
    int64_t c, inner;
    if (tor_int_is(g, b, 1)) return a;
    if (tor_int_is(g, a, 0) || tor_int_is(g, b, 0)) return tor_int_const(g, 0);
    Terms fa, fb;
    if (factors_of(g, a, &fa) && factors_of(g, b, &fb) && cancel(&fa, &fb)) {
        a = build_product(g, &fa);
        b = build_product(g, &fb);
        if (a == TOR_NO_DIM || b == TOR_NO_DIM) return TOR_NO_DIM;
        return make_floordiv(g, a, b);
    }
    if (tor_int_known(g, b, &c) && c > 1) {
        TorInt x = *tor_int_get(g, a);
        int64_t both;
        if (x.op == TOR_INT_floordiv && tor_int_known(g, x.b, &inner) && inner > 0 &&
            !__builtin_mul_overflow(c, inner, &both))
            return make_floordiv(g, x.a, tor_int_const(g, both));
        Terms t = {.n = 0};
        if (x.op == TOR_INT_add && collect_terms(g, a, 1, &t) && t.c % c == 0) {
            bool all = true;
            for (int i = 0; i < t.n; ++i) all = all && t.coef[i] % c == 0;
            if (all) {
                for (int i = 0; i < t.n; ++i) t.coef[i] /= c;
                t.c /= c;
                return build_sum(g, &t);
            }
        }
    }
    return raw(g, TOR_INT_floordiv, a, b);
}

static TorDim make_mod(TorGraph *g, TorDim a, TorDim b) {
    if (a == b || tor_int_is(g, b, 1) || tor_int_is(g, b, 0) || tor_int_is(g, a, 0))
        return tor_int_const(g, 0);
    Terms fa, fb;
    if (factors_of(g, a, &fa) && factors_of(g, b, &fb)) {
        cancel(&fa, &fb);
        if (fb.n == 0 && fb.c == 1) return tor_int_const(g, 0);
    }
    return raw(g, TOR_INT_mod, a, b);
}

// ---------------------------------------------------------------- the rest

static TorDim make_pow(TorGraph *g, TorDim a, TorDim b) {
    int64_t n;
    if (!tor_int_known(g, b, &n) || n < 0 || n > 4) return raw(g, TOR_INT_pow, a, b);
    TorDim result = tor_int_const(g, 1);
    for (; n > 0 && result != TOR_NO_DIM; --n) result = make_mul(g, result, a);
    return result;
}

static TorDim make_extreme(TorGraph *g, TorIntOp op, TorDim a, TorDim b) {
    if (a == b) return a;
    int64_t c, inner;
    if (tor_int_known(g, a, &c)) {  // the constant stands second
        TorDim swap = a;
        a = b;
        b = swap;
    } else if (!tor_int_known(g, b, &c)) {
        return raw(g, op, TOR_MIN(a, b), TOR_MAX(a, b));
    }
    if (op == TOR_INT_min && c == INT64_MAX) return a;
    if (op == TOR_INT_max && c == INT64_MIN) return a;
    if (nonneg(g, a) && c <= 0) return op == TOR_INT_max ? a : b;
    TorInt x = *tor_int_get(g, a);
    if (x.op == op && tor_int_known(g, x.b, &inner)) {
        int64_t value = op == TOR_INT_min ? TOR_MIN(c, inner) : TOR_MAX(c, inner);
        return raw(g, op, x.a, tor_int_const(g, value));
    }
    return raw(g, op, a, b);
}

static TorDim make_broadcast(TorGraph *g, TorDim a, TorDim b) {
    int64_t c;
    if (a == b) return a;
    if (tor_int_known(g, a, &c)) {
        int64_t other;
        if (c == 1) return b;
        if (!tor_int_known(g, b, &other) || other == 1) return a;
        return raw(g, TOR_INT_broadcast, a, b);  // two constants that clash: binding will say so
    }
    if (tor_int_known(g, b, &c)) return c == 1 ? a : b;
    TorInt x = *tor_int_get(g, a), y = *tor_int_get(g, b);
    if (x.op == TOR_INT_broadcast && (x.a == b || x.b == b)) return a;
    if (y.op == TOR_INT_broadcast && (y.a == a || y.b == a)) return b;
    return raw(g, TOR_INT_broadcast, TOR_MIN(a, b), TOR_MAX(a, b));
}

static TorDim make_within(TorGraph *g, TorDim a, TorDim b) {
    int64_t least, most;
    if (a == b) return a;
    if (tor_int_known(g, a, &least) &&
        (nonneg(g, b) ? least <= 0 : tor_int_known(g, b, &most) && least <= most))
        return a;
    return raw(g, TOR_INT_within, a, b);
}

static TorDim make_compare(TorGraph *g, TorIntOp op, TorDim a, TorDim b) {
    if (a == b) return tor_int_const(g, op == TOR_INT_eq || op == TOR_INT_le);
    if (op == TOR_INT_lt && nonneg(g, a) && tor_int_is(g, b, 0)) return tor_int_const(g, 0);
    if (op == TOR_INT_le && nonneg(g, b) && tor_int_is(g, a, 0)) return tor_int_const(g, 1);
    if ((op == TOR_INT_eq || op == TOR_INT_ne) && a > b) return raw(g, op, b, a);
    return raw(g, op, a, b);
}

TorDim tor_int_binary(TorGraph *g, TorIntOp op, TorDim a, TorDim b) {
    if (a == TOR_NO_DIM || b == TOR_NO_DIM) return fail(g);
    int64_t x, y, value;
    if (tor_int_known(g, a, &x) && tor_int_known(g, b, &y)) {
        // What cannot be computed stays an expression, and binding says what is wrong with it.
        return apply(op, x, y, &value) == GOOD ? tor_int_const(g, value) : raw(g, op, a, b);
    }
    switch (op) {
        case TOR_INT_add:
        case TOR_INT_sub: return make_sum(g, op, a, b);
        case TOR_INT_mul: return make_mul(g, a, b);
        case TOR_INT_floordiv: return make_floordiv(g, a, b);
        case TOR_INT_mod: return make_mod(g, a, b);
        case TOR_INT_pow: return make_pow(g, a, b);
        case TOR_INT_min:
        case TOR_INT_max: return make_extreme(g, op, a, b);
        case TOR_INT_broadcast: return make_broadcast(g, a, b);
        case TOR_INT_within: return make_within(g, a, b);
        case TOR_INT_same: return a == b ? a : raw(g, op, TOR_MIN(a, b), TOR_MAX(a, b));
        case TOR_INT_eq:
        case TOR_INT_ne:
        case TOR_INT_lt:
        case TOR_INT_le: return make_compare(g, op, a, b);
        default: return raw(g, op, a, b);
    }
}

TorDim tor_int_product(TorGraph *g, const TorDim *dims, int count) {
    TorDim result = tor_int_const(g, 1);
    for (int i = 0; i < count && result != TOR_NO_DIM; ++i)
        result = tor_int_mul(g, result, dims[i]);
    return result;
}

// ---------------------------------------------------------------- evaluation

static ToroidStatus explain(const TorGraph *g, uint32_t i, Outcome outcome, int64_t a, int64_t b) {
    char text[160];
    tor_int_print(g, i, text, sizeof(text));
    if (outcome == CLASHES)
        return tor_invalid("sizes %" PRId64 " and %" PRId64 " do not broadcast: %s", a, b, text);
    if (outcome == DIFFERS)
        return tor_invalid("sizes %" PRId64 " and %" PRId64 " must be equal: %s", a, b, text);
    if (outcome == OUTSIDE)
        return tor_invalid_data("out of bounds: %" PRId64 " is over %" PRId64 ": %s", a, b, text);
    if (outcome == NEGATIVE_POWER)
        return tor_invalid("integer power with a negative exponent (%" PRId64 "): %s", b, text);
    return tor_invalid("an integer overflows 64 bits (operands %" PRId64 " and %" PRId64 "): %s", a,
                       b, text);
}

ToroidStatus tor_int_eval(const TorGraph *g, int64_t (*sizes)(void *user, uint32_t input, int what),
                          void *user, int64_t *values) {
    const uint32_t count = tor_int_count(g);
    if (count == 0) return TOROID_OK;
    const TorInt *items = g->ints->items;
    for (uint32_t i = 0; i < count; ++i) {
        const TorInt *x = &items[i];
        Outcome outcome = GOOD;
        int what;
        switch (x->op) {
            case TOR_INT_const: values[i] = x->value; break;
            case TOR_INT_scalar:
            case TOR_INT_size:
            case TOR_INT_stride:
            case TOR_INT_start:
            case TOR_INT_memory:
                tor_int_asks(x, &what);
                values[i] = sizes(user, x->a, what);
                break;
            case TOR_INT_add:
                if (__builtin_add_overflow(values[x->a], values[x->b], &values[i]))
                    outcome = OVERFLOWS;
                break;
            case TOR_INT_mul:
                if (__builtin_mul_overflow(values[x->a], values[x->b], &values[i]))
                    outcome = OVERFLOWS;
                break;
            default: outcome = apply(x->op, values[x->a], values[x->b], &values[i]); break;
        }
        if (__builtin_expect(outcome != GOOD, 0))
            return explain(g, i, outcome, values[x->a], values[x->b]);
    }
    return TOROID_OK;
}

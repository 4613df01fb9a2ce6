// Attention spelled out as matmul, softmax, matmul becomes one node.
//
//   softmax(q k^T * scale + mask) v     with scale as mul or div, before or after, on q, on k or on
//   the product; any number of masks and biases (causal, T5's and ALiBi's positions, DeBERTa's),
//   added, subtracted or chosen by where(mask, scores, fill), fill being any number;
//   half types, with the softmax in float32 or not;
//   heads in the batch (3 dims), beside it (4), or taken apart between the product and the softmax;
//   softmax plain (NaN for rows that are all -inf), or "safe" (0 for them).
//
// The walk goes from the softmax down to the product and notes what is added and chosen on its way.
// What is added becomes one mask, what is chosen one keep: a choice replaces the score, so that NaN
// or infinity of a key does not reach the queries that do not see it.
#include <math.h>

#include "passes/passes.h"
#include "passes/rewrite.h"

enum { MAX_TERMS = 6 };

/// What happens to the scores at one place: `value * factor` is added, or `value` tells where the
/// scores stay (keep) or go (drop) and `fill` is put in their place.
typedef struct {
    enum { ADDED, KEEP, DROP } kind;
    TorValue *value;
    double factor, fill;
    int rank;  ///< of the scores where it is added or chosen: its dims count from their end
} Term;

typedef struct {
    TorGraph *g;
    TorDtype type;                   ///< of the operands: float32 or a half type
    const TorValue *scores;          ///< the softmax's operand
    TorValue *q, *k_transposed, *v;  ///< k_transposed is [..., d, n]
    Term term[MAX_TERMS];            ///< from the softmax down
    int n_terms;
    double scale;
    bool safe;        ///< hidden rows are 0, not NaN
    TorNode *output;  ///< the second matmul
} Match;

/// The operand that a mul or div by a number scales; NULL if the node is neither.
static TorValue *scaled(const TorNode *node, double *scale) {
    double x;
    if (node->op == TOR_OP_mul && tor_is_number(tor_in(node, 1), &x)) {
        *scale *= x;
        return tor_in(node, 0);
    }
    if (node->op == TOR_OP_mul && tor_is_number(tor_in(node, 0), &x)) {
        *scale *= x;
        return tor_in(node, 1);
    }
    if (node->op == TOR_OP_div && tor_is_number(tor_in(node, 1), &x) && x != 0) {
        *scale /= x;
        return tor_in(node, 0);
    }
    return NULL;
}

static TorValue *take_scale(TorValue *v, double *scale) {
    for (TorValue *inner; (inner = scaled(v->node, scale));) v = inner;
    return v;
}

/// Would `mask` broadcast against scores without making them larger?
static bool mask_fits(const TorGraph *g, const TorValue *mask, const TorValue *scores) {
    int extra = scores->rank - mask->rank;
    if (extra < 0) return false;
    for (int d = 0; d < mask->rank; d++)
        if (!tor_int_is(g, mask->dim[d], 1) && mask->dim[d] != scores->dim[d + extra]) return false;
    return true;
}

/// where(all(s == -inf), 0, softmax(s)) gives the softmax; anything else gives itself.
static TorValue *without_guard(TorValue *p) {
    const TorNode *node = p->node;
    double zero, least;
    if (node->op != TOR_OP_where || !tor_is_number(tor_in(node, 1), &zero) || zero != 0) return p;
    TorValue *softmax = tor_in(node, 2), *dead = tor_in(node, 0);
    if (softmax->node->op != TOR_OP_softmax || !tor_single_use(softmax) ||
        dead->node->op != TOR_OP_all || !tor_single_use(dead))
        return p;
    const TorNode *eq = tor_in(dead->node, 0)->node;
    bool guard = eq->op == TOR_OP_eq && tor_single_use(eq->outputs[0]) &&
                 tor_in(eq, 0) == tor_in(softmax->node, 0) &&
                 tor_is_number(tor_in(eq, 1), &least) && least == -INFINITY;
    return guard ? softmax : p;
}

/// What a cast between `a` and `b` casts; NULL for anything else.
static TorValue *cast_between(const TorNode *node, TorDtype a, TorDtype b) {
    if (node->op != TOR_OP_cast) return NULL;
    TorDtype from = tor_in(node, 0)->dtype, to = node->outputs[0]->dtype;
    return (from == a && to == b) || (from == b && to == a) ? tor_in(node, 0) : NULL;
}

/// [b, h, m, n] seen as [b * h, m, n], the heads in the batch.
static bool joins_heads(TorGraph *g, const TorNode *view) {
    const TorValue *in = tor_in(view, 0), *out = view->outputs[0];
    return view->op == TOR_OP_view && out->rank == 4 && in->rank == 3 &&
           in->dim[0] == tor_int_mul(g, out->dim[0], out->dim[1]) && in->dim[1] == out->dim[2] &&
           in->dim[2] == out->dim[3];
}

static bool find_product(Match *m, TorValue *v, double factor, bool shared, int depth);

/// One way down from `v`: `term` is noted, the scores go on at `inner`.
static bool follow(Match *m, const TorValue *v, Term term, TorValue *inner, double factor,
                   int depth) {
    if (m->n_terms == MAX_TERMS || !tor_value_same_dims(inner, v) ||
        !mask_fits(m->g, term.value, v) ||
        (term.kind == ADDED && term.value->dtype != TOR_float32 && term.value->dtype != m->type))
        return false;
    m->term[m->n_terms++] = term;
    if (find_product(m, inner, factor, false, depth - 1)) return true;
    m->n_terms--;
    return false;
}

/// Would a half type round away what is added to `fill` above? Rows that see no key show it: they
/// are even means then, but not in float32.
static bool loses_sums(const Match *m, TorDtype type, double fill) {
    if (!tor_dtype_is_half(type) || isinf(fill)) return false;
    for (int i = 0; i < m->n_terms; i++)
        if (m->term[i].kind == ADDED) return true;
    return false;
}

/// Walks down from scores to the product q k^T. `factor` is what later nodes multiply by; `shared`
/// allows the second use that the guard of a safe softmax is.
static bool find_product(Match *m, TorValue *v, double factor, bool shared, int depth) {
    const TorNode *node = v->node;
    double fill, scale = factor;
    if ((!shared && !tor_single_use(v)) || depth == 0 ||
        (v->dtype != TOR_float32 && v->dtype != m->type))
        return false;
    TorValue *inner = cast_between(node, m->type, TOR_float32);
    if (inner) return find_product(m, inner, factor, false, depth - 1);
    inner = scaled(node, &scale);
    if (inner) return find_product(m, inner, scale, false, depth - 1);
    if (joins_heads(m->g, node)) return find_product(m, tor_in(node, 0), factor, false, depth - 1);
    if (node->op == TOR_OP_matmul && !tor_attr(node, TOR_ATTR_epilogue)) {
        double parts = factor;
        m->q = take_scale(tor_in(node, 0), &parts);
        m->k_transposed = take_scale(tor_in(node, 1), &parts);
        m->scale = parts;
        return m->q->dtype == m->type && m->k_transposed->dtype == m->type &&
               m->q->rank == v->rank && m->k_transposed->rank == v->rank;
    }
    if (node->op == TOR_OP_add || node->op == TOR_OP_sub) {
        double sign = node->op == TOR_OP_sub ? -factor : factor;
        for (int i = 0; i < (node->op == TOR_OP_add ? 2 : 1); i++) {
            Term term = {ADDED, tor_in(node, 1 - i), i == 0 ? sign : factor, 0, v->rank};
            if (follow(m, v, term, tor_in(node, i), factor, depth)) return true;
        }
        return false;
    }
    if (node->op != TOR_OP_where) return false;
    bool drop = tor_is_number(tor_in(node, 1), &fill);
    if (!drop && !tor_is_number(tor_in(node, 2), &fill)) return false;
    if (loses_sums(m, v->dtype, fill)) return false;
    fill = tor_scalar_cast((TorScalar){.dtype = TOR_float64, .f = fill}, v->dtype).f;
    Term term = {drop ? DROP : KEEP, tor_in(node, 0), factor, fill * factor, v->rank};
    return follow(m, v, term, tor_in(node, drop ? 2 : 1), factor, depth);
}

static bool match(Match *m, TorNode *output) {
    m->type = output->outputs[0]->dtype;
    if (m->type != TOR_float32 && !tor_dtype_is_half(m->type)) return false;
    TorValue *guarded = tor_in(output, 0), *wide = NULL;
    if (m->type != TOR_float32 && tor_single_use(guarded))
        wide = cast_between(guarded->node, TOR_float32, m->type);
    if (wide) guarded = wide;
    TorValue *p = without_guard(guarded);
    m->v = tor_in(output, 1);
    m->output = output;
    m->safe = guarded != p;
    if (p->rank < 3 || p->rank > 4) return false;
    if (p->node->op != TOR_OP_softmax || !tor_single_use(guarded) || !tor_single_use(p) ||
        tor_attr_int(p->node, TOR_ATTR_axis, 0) != p->rank - 1)
        return false;
    TorValue *s = tor_in(p->node, 0);
    m->scores = s;
    // The scores are read by the softmax, and by its guard.
    if (tor_value_use_count(s) != 1 + m->safe || s->rank != p->rank || m->v->dtype != m->type ||
        m->v->rank != p->rank)
        return false;
    return find_product(m, s, 1, m->safe, 12);
}

// ---------------------------------------------------------------- rewriting

static ToroidStatus add(const Match *m, TorOp op, TorValue **in, int n, const TorAttr *attrs,
                        int n_attrs, TorValue **out) {
    TorNode *node;
    TOR_TRY(tor_graph_add(m->g, m->output, op, in, n, attrs, n_attrs, 1, &node));
    node->origin = m->output->origin;
    bool frozen = n > 0;
    for (int i = 0; i < n; i++) {
        TorScalar number;
        frozen = frozen && (in[i]->frozen || tor_value_number(in[i], &number));
    }
    node->outputs[0]->frozen = frozen;
    *out = node->outputs[0];
    return TOROID_OK;
}

/// What belongs to scores of `rank` dims, with four: [h, m, d] to [1, h, m, d], or [b * h, m, d] to
/// [b, h, m, d] where the heads were in the batch at first.
static ToroidStatus as_4d(const Match *m, TorValue *v, int rank, TorValue **out) {
    *out = v;
    if (v->rank >= 4) return TOROID_OK;
    TorGraph *g = m->g;
    TorDim dims[4];
    int extra = 4 - v->rank;
    for (int d = 0; d < 4; d++) dims[d] = d < extra ? tor_int_const(g, 1) : v->dim[d - extra];
    if (m->scores->rank == 4 && rank == 3 && v->rank == 3 && !tor_int_is(g, v->dim[0], 1))
        dims[0] = m->scores->dim[0], dims[1] = m->scores->dim[1];
    TorAttr attr = TOR_A_DIMS(dims, dims, 4);
    return add(m, TOR_OP_view, &v, 1, &attr, 1, out);
}

static ToroidStatus number(const Match *m, double x, TorValue **out) {
    return tor_graph_number(m->g, (TorScalar){.dtype = TOR_float64, .f = x}, out);
}

/// A 0-d float32: gives a where of two numbers its type.
static ToroidStatus typed_zero(const Match *m, TorValue **out) {
    static const float zero = 0;
    TorAttr attrs[] = {TOR_A_BLOB(blob, &zero, sizeof zero), TOR_A_DTYPE(dtype, TOR_float32)};
    return add(m, TOR_OP_constant, NULL, 0, attrs, 2, out);
}

/// Is one number put in the place of scores, before anything is added? Then attention does that;
/// else what the choices put there is part of the mask, and attention puts 0.
static bool one_fill(const Match *m, double *fill) {
    *fill = 0;
    const Term *end = &m->term[m->n_terms], *t = m->term;
    while (t < end && t->kind == ADDED) t++;
    for (const Term *first = t; t < end; t++)
        if (t->kind == ADDED || t->fill != first->fill) return false;
    if (m->n_terms) *fill = end[-1].fill;
    return true;
}

/// Where no choice drops the score; NULL without one.
static ToroidStatus make_keep(const Match *m, TorValue **out) {
    *out = NULL;
    for (int i = 0; i < m->n_terms; i++) {
        const Term *t = &m->term[i];
        TorValue *keep = t->value;
        if (t->kind == ADDED) continue;
        if (t->kind == DROP && keep->node->op == TOR_OP_bit_not)
            keep = tor_in(keep->node, 0);
        else if (t->kind == DROP)
            TOR_TRY(add(m, TOR_OP_bit_not, &keep, 1, NULL, 0, &keep));
        TOR_TRY(as_4d(m, keep, t->rank, &keep));
        if (*out) TOR_TRY(add(m, TOR_OP_bit_and, (TorValue *[]){*out, keep}, 2, NULL, 0, &keep));
        *out = keep;
    }
    return TOROID_OK;
}

/// What is added to the scores, from the product's end on, since a choice hides what was added
/// before it; NULL for nothing. `filled`: attention puts the choices' number there.
static ToroidStatus make_mask(const Match *m, bool filled, TorValue **out) {
    TorValue *sum = NULL;
    for (int i = m->n_terms; i-- > 0;) {
        const Term *t = &m->term[i];
        TorValue *value, *x;
        if (filled && t->kind != ADDED) continue;
        TOR_TRY(as_4d(m, t->value, t->rank, &value));
        if (t->kind == ADDED) {
            if (t->factor != 1) {
                TOR_TRY(number(m, t->factor, &x));
                TOR_TRY(add(m, TOR_OP_mul, (TorValue *[]){value, x}, 2, NULL, 0, &value));
            }
            if (sum) TOR_TRY(add(m, TOR_OP_add, (TorValue *[]){sum, value}, 2, NULL, 0, &value));
            sum = value;
            continue;
        }
        if (!sum) TOR_TRY(typed_zero(m, &sum));
        TOR_TRY(number(m, t->fill, &x));
        TorValue *in[] = {value, t->kind == KEEP ? sum : x, t->kind == KEEP ? x : sum};
        TOR_TRY(add(m, TOR_OP_where, in, 3, NULL, 0, &sum));
    }
    *out = sum;
    return TOROID_OK;
}

static ToroidStatus rewrite(const Match *m) {
    TorNode *attention;
    TorValue *in[5], *k, *mask, *keep;
    double fill;
    int64_t axes[4];
    int rank = m->k_transposed->rank;
    for (int d = 0; d < rank; d++) axes[d] = d < rank - 2 ? d : 2 * rank - 3 - d;
    TorAttr swap = TOR_A_INTS(axes, axes, rank);
    TOR_TRY(add(m, TOR_OP_permute, (TorValue *[]){m->k_transposed}, 1, &swap, 1, &k));
    TOR_TRY(as_4d(m, m->q, m->q->rank, &in[0]));
    TOR_TRY(as_4d(m, k, k->rank, &in[1]));
    TOR_TRY(as_4d(m, m->v, m->v->rank, &in[2]));
    TOR_TRY(make_mask(m, one_fill(m, &fill), &mask));
    TOR_TRY(make_keep(m, &keep));
    int n = 3;
    if (mask) in[n++] = mask;
    if (keep) in[n++] = keep;
    TorAttr attrs[] = {TOR_A_FLOAT(scale, m->scale), TOR_A_INT(causal, 0),
                       TOR_A_INT(nan_rows, !m->safe), TOR_A_FLOAT(fill, fill)};
    TOR_TRY(tor_graph_add(m->g, m->output, TOR_OP_attention, in, n, attrs, keep ? 4 : 3, 1,
                          &attention));
    attention->origin = m->output->origin;
    TorValue *out = attention->outputs[0], *old = m->output->outputs[0];
    if (old->rank == 3) {
        TorAttr dims = TOR_A_DIMS(dims, old->dim, 3);
        TOR_TRY(add(m, TOR_OP_view, (TorValue *[]){out}, 1, &dims, 1, &out));
    }
    tor_value_replace(old, out);
    return TOROID_OK;
}

ToroidStatus tor_pass_recognise_attention(TorGraph *g) {
    for (TorNode *node = g->first; node; node = node->next) {
        Match m = {.g = g};
        if (node->op != TOR_OP_matmul || tor_attr(node, TOR_ATTR_epilogue) || !match(&m, node))
            continue;
        TOR_TRY(rewrite(&m));
    }
    return TOROID_OK;
}

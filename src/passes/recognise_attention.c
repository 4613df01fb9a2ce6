// Attention spelled out as matmul, softmax, matmul becomes one node.
//
//   softmax(q k^T * scale + mask) v     with scale as mul or div, before or after, on q, on k or on
//   the product; half types, with the softmax in float32 or not; masks added or chosen by
//   where(mask, scores, -inf); queries of 3 dims (heads in the batch) or 4; softmax plain (NaN for
//   rows that are all -inf), or "safe" (0 for them).
#include <math.h>

#include "passes/passes.h"

typedef struct {
    TorGraph *g;
    TorValue *q, *k_transposed, *v, *mask;  ///< k_transposed is [..., d, n]
    double scale;
    bool safe;        ///< hidden rows are 0, not NaN
    TorNode *output;  ///< the second matmul
} Match;

static bool single_use(const TorValue *v) { return v->uses && !v->uses->next; }

static bool scalar_of(const TorNode *node, int i, double *number) {
    TorScalar s;
    if (!tor_value_number(tor_in(node, i), &s)) return false;
    *number = tor_dtype_is_float(s.dtype) ? s.f : (double)s.i;
    return true;
}

/// Takes mul or div by a number off `v`; the factor goes into *scale.
static TorValue *take_scale(TorValue *v, double *scale, bool must_be_single) {
    double x;
    while ((!must_be_single || single_use(v)) && v->node->n_inputs == 2) {
        const TorNode *node = v->node;
        if (node->op == TOR_OP_mul && scalar_of(node, 1, &x)) {
            *scale *= x;
            v = tor_in(node, 0);
        } else if (node->op == TOR_OP_mul && scalar_of(node, 0, &x)) {
            *scale *= x;
            v = tor_in(node, 1);
        } else if (node->op == TOR_OP_div && scalar_of(node, 1, &x) && x != 0) {
            *scale /= x;
            v = tor_in(node, 0);
        } else {
            break;
        }
    }
    return v;
}

/// What a cast from `from` casts; anything else gives itself.
static TorValue *without_cast(TorValue *v, TorDtype from) {
    bool cast = v->node->op == TOR_OP_cast && single_use(v) && tor_in(v->node, 0)->dtype == from;
    return cast ? tor_in(v->node, 0) : v;
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
    if (node->op != TOR_OP_where || !scalar_of(node, 1, &zero) || zero != 0) return p;
    TorValue *softmax = tor_in(node, 2), *dead = tor_in(node, 0);
    if (softmax->node->op != TOR_OP_softmax || !single_use(softmax) ||
        dead->node->op != TOR_OP_all || !single_use(dead))
        return p;
    const TorNode *eq = tor_in(dead->node, 0)->node;
    bool guard = eq->op == TOR_OP_eq && single_use(eq->outputs[0]) &&
                 tor_in(eq, 0) == tor_in(softmax->node, 0) && scalar_of(eq, 1, &least) &&
                 least == -INFINITY;
    return guard ? softmax : p;
}

static int uses(const TorValue *v) { return tor_value_use_count(v); }

static bool match(Match *m, TorNode *output) {
    const TorGraph *g = m->g;
    const TorDtype type = output->outputs[0]->dtype;
    TorValue *guarded = without_cast(tor_in(output, 0), TOR_float32), *p = without_guard(guarded);
    m->v = tor_in(output, 1);
    m->output = output;
    m->mask = NULL;
    m->scale = 1;
    m->safe = guarded != p;
    if ((type != TOR_float32 && !tor_dtype_is_half(type)) || output->outputs[0]->rank < 3 ||
        output->outputs[0]->rank > 4)
        return false;
    if (p->node->op != TOR_OP_softmax || !single_use(guarded) || !single_use(p) ||
        tor_attr_int(p->node, TOR_ATTR_axis, 0) != p->rank - 1)
        return false;
    TorValue *s = tor_in(p->node, 0);
    // The scores are read by the softmax, and by its guard.
    if (uses(s) != 1 + (guarded != p) || s->rank != p->rank) return false;
    if (guarded == p) s = take_scale(without_cast(s, type), &m->scale, true);
    bool entry = guarded != p;  // `s` has the guard's use beside the softmax's
    double factor = m->scale, fill;
    if (s->node->op == TOR_OP_add && (entry || single_use(s))) {
        // The mask is the operand that is not the product.
        TorValue *a = tor_in(s->node, 0), *b = tor_in(s->node, 1);
        bool left = single_use(a) && tor_value_same_dims(a, s) &&
                    without_cast(take_scale(a, &factor, true), type)->node->op == TOR_OP_matmul;
        m->mask = left ? b : a;
        if ((m->mask->dtype != TOR_float32 && m->mask->dtype != type) ||
            !mask_fits(g, m->mask, s) || m->scale != 1)
            return false;
        s = left ? a : b;
        entry = false;
    } else if (s->node->op == TOR_OP_where && (entry || single_use(s)) &&
               scalar_of(s->node, 2, &fill) && fill == -INFINITY && m->scale > 0) {
        m->mask = tor_in(s->node, 0);
        if (!mask_fits(g, m->mask, s)) return false;
        s = tor_in(s->node, 1);
        entry = false;
    }
    if (!entry && !single_use(s)) return false;
    TorValue *product = take_scale(s, &m->scale, !entry);
    if (single_use(product)) product = take_scale(without_cast(product, type), &m->scale, true);
    if (product != s) entry = false;
    s = product;
    if (s->node->op != TOR_OP_matmul || (!entry && !single_use(s)) ||
        tor_attr(s->node, TOR_ATTR_epilogue) || !tor_value_same_dims(s, p))
        return false;
    m->q = take_scale(tor_in(s->node, 0), &m->scale, false);
    m->k_transposed = take_scale(tor_in(s->node, 1), &m->scale, false);
    return m->q->dtype == type && m->k_transposed->dtype == type && m->q->rank == p->rank &&
           m->k_transposed->rank == p->rank && m->v->rank == p->rank;
}

static ToroidStatus add(TorGraph *g, TorNode *before, TorOp op, TorValue *in, TorAttr attr,
                        TorValue **out) {
    TorNode *node;
    TOR_TRY(tor_graph_add(g, before, op, &in, 1, &attr, 1, 1, &node));
    *out = node->outputs[0];
    return TOROID_OK;
}

/// [h, m, d] -> [1, h, m, d]
static ToroidStatus as_4d(TorGraph *g, TorNode *before, TorValue *v, TorValue **out) {
    *out = v;
    if (v->rank >= 4) return TOROID_OK;
    TorDim dims[4];
    int extra = 4 - v->rank;
    for (int d = 0; d < 4; d++) dims[d] = d < extra ? tor_int_const(g, 1) : v->dim[d - extra];
    return add(g, before, TOR_OP_view, v, TOR_A_DIMS(dims, dims, 4), out);
}

static ToroidStatus rewrite(const Match *m) {
    TorGraph *g = m->g;
    TorNode *at = m->output, *attention;
    TorValue *in[4], *k;
    int64_t axes[4];
    int rank = m->k_transposed->rank;
    for (int d = 0; d < rank; d++) axes[d] = d < rank - 2 ? d : 2 * rank - 3 - d;
    TOR_TRY(add(g, at, TOR_OP_permute, m->k_transposed, TOR_A_INTS(axes, axes, rank), &k));
    TOR_TRY(as_4d(g, at, m->q, &in[0]));
    TOR_TRY(as_4d(g, at, k, &in[1]));
    TOR_TRY(as_4d(g, at, m->v, &in[2]));
    if (m->mask) TOR_TRY(as_4d(g, at, m->mask, &in[3]));
    TorAttr attrs[] = {TOR_A_FLOAT(scale, m->scale), TOR_A_INT(causal, 0),
                       TOR_A_INT(nan_rows, !m->safe)};
    TOR_TRY(tor_graph_add(g, at, TOR_OP_attention, in, m->mask ? 4 : 3, attrs, 3, 1, &attention));
    attention->origin = at->origin;
    TorValue *out = attention->outputs[0], *old = at->outputs[0];
    if (old->rank == 3) TOR_TRY(add(g, at, TOR_OP_view, out, TOR_A_DIMS(dims, old->dim, 3), &out));
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

/// Scaled dot-product attention, kept whole.
#include "aten/build.h"
#include "aten/tables.h"

#include <math.h>

typedef struct {
    TorValue *q, *k, *v, *mask;
    bool causal;
    double scale;
} Attention;

/// Reads the arguments that the overloads share.
static Attention attention_args(TorCall *c, int mask, int dropout, int causal, int scale) {
    Attention a = {tor_im_tensor(c, 0),    tor_im_tensor(c, 1),
                   tor_im_tensor(c, 2),    tor_im_tensor_or_null(c, mask),
                   tor_im_flag(c, causal), 0};
    int64_t width;
    if (tor_im_float(c, dropout) > 0)
        tor_im_refuse_arg(c, dropout, "random numbers are not supported");
    if (c->status) return a;
    if (!tor_dtype_is_float(a.q->dtype) || a.k->dtype != a.q->dtype || a.v->dtype != a.q->dtype)
        tor_im_refuse(c, "expected floats of one type");
    else if (a.q->rank < 2)
        tor_im_refuse_arg(c, 0, "expected at least 2 dims");
    else if (tor_im_has(c, scale))
        a.scale = tor_im_float(c, scale);
    else if (tor_int_known(c->g, a.q->dim[a.q->rank - 1], &width))
        a.scale = width ? 1 / sqrt((double)width) : 1;
    else
        tor_im_refuse(c, "the scale depends on a width that is not known when compiling");
    if (!c->status && a.mask && a.mask->dtype != TOR_bool && !tor_dtype_is_float(a.mask->dtype))
        tor_im_refuse_arg(c, mask, "expected bool or floats, got %s",
                          tor_dtype_name(a.mask->dtype));
    return a;
}

/// In float64, which has no kernel of its own: softmax(scale * q k^T + mask) v from its parts. Rows
/// without keys are 0, as the kernels have it.
static TorValue *spelled_out(TorCall *c, Attention a) {
    if (a.k->dim[1] != a.q->dim[1])
        return tor_im_refuse(c, "grouped heads of float64 are not supported"), NULL;
    int64_t axis = 3;
    TorValue *s = F2(mul, tor_im_matmul(c, a.q, tor_im_transpose(c, a.k, 2, 3)), NUM(a.scale));
    if (a.mask)
        s = a.mask->dtype == TOR_bool ? F3(where, a.mask, s, NUM(-INFINITY))
                                      : F2(add, s, tor_im_cast(c, a.mask, TOR_float64));
    if (a.causal) {
        TorDim zero = tor_im_const(c, 0);
        TorValue *query = tor_im_arange(c, a.q->dim[2], zero, 1, TOR_int64),
                 *key = tor_im_arange(c, a.k->dim[2], zero, 1, TOR_int64);
        s = F3(where, F2(ge, tor_im_unsqueeze(c, query, 1), key), s, NUM(-INFINITY));
    }
    TorAttr attrs[] = {TOR_A_INT(axis, axis), TOR_A_DTYPE(dtype, TOR_float64)};
    TorValue *p = tor_im_add(c, TOR_OP_softmax, &s, 1, attrs, 2);
    if (a.mask || a.causal) {
        TorValue *dead = tor_im_reduce(c, TOR_OP_all, F2(eq, s, NUM(-INFINITY)), &axis, 1, true);
        p = F3(where, dead, NUM(0), p);
    }
    return tor_im_matmul(c, p, a.v);
}

/// All of rank 4.
static TorValue *attention(TorCall *c, Attention a) {
    if (a.q->dtype == TOR_float64) return spelled_out(c, a);
    TorValue *inputs[] = {a.q, a.k, a.v, a.mask};
    TorAttr attrs[] = {TOR_A_FLOAT(scale, a.scale), TOR_A_INT(causal, a.causal)};
    return tor_im_add(c, TOR_OP_attention, inputs, a.mask ? 4 : 3, attrs, 2);
}

/// The second result, logsumexp, is for the backward only: NONE.
static ToroidStatus import_flash(TorCall *c) {
    Attention a = attention_args(c, 5, 3, 4, 6);
    if (c->status) return c->status;
    if (a.q->rank != 4 || a.k->rank != 4 || a.v->rank != 4)
        return tor_im_refuse(c, "expected 4 dims, got %d", a.q->rank);
    TorValue *results[] = {attention(c, a), NULL};
    return tor_im_return_list(c, results, 2);
}

/// [.., h, m, d] with any number of batch dims to [b, h, m, d].
static TorValue *to_rank4(TorCall *c, TorValue *x) {
    if (c->status || !x) return NULL;
    TorDim dims[4] = {tor_im_const(c, 1), tor_im_const(c, 1)};
    int n = x->rank;
    if (n > 4)
        dims[0] = tor_int_product(c->g, x->dim, n - 3);
    else if (n == 4)
        dims[0] = x->dim[0];
    if (n > 2) dims[1] = x->dim[n - 3];
    dims[2] = x->dim[n - 2], dims[3] = x->dim[n - 1];
    return tor_im_view(c, x, 4, dims);
}

/// Batch dims as `dims` says, broadcast where they are fewer or 1.
static TorValue *with_batch(TorCall *c, TorValue *x, const TorDim *batch, int n, bool keep_heads) {
    if (c->status || !x) return NULL;
    TorDim dims[TOR_MAX_RANK];
    for (int i = 0; i < n; i++) dims[i] = batch[i];
    if (keep_heads && n > 0) dims[n - 1] = x->dim[x->rank - 3];
    for (int i = 0; i < 2; i++) dims[n + i] = x->dim[x->rank - 2 + i];
    return tor_im_expand(c, x, n + 2, dims);
}

static ToroidStatus import_attention(TorCall *c) {
    Attention a = attention_args(c, 3, 4, 5, 6);
    bool grouped = tor_im_flag(c, 7);
    if (c->status) return c->status;
    if (a.k->rank < 2 || a.v->rank < 2 ||
        (grouped && (a.q->rank < 3 || a.k->rank != a.q->rank || a.v->rank != a.q->rank)))
        return tor_im_refuse(c, "ranks %d, %d and %d are not supported", a.q->rank, a.k->rank,
                             a.v->rank);
    if (a.mask && a.causal) return tor_im_refuse(c, "attn_mask and is_causal exclude each other");
    if (a.q->rank == 4 && a.k->rank == 4 && a.v->rank == 4 && a.q->dim[0] == a.k->dim[0] &&
        a.q->dim[0] == a.v->dim[0] &&
        (grouped || (a.q->dim[1] == a.k->dim[1] && a.q->dim[1] == a.v->dim[1])))
        return RETURN(attention(c, a));
    TorDim batch[TOR_MAX_RANK], part[TOR_MAX_RANK];
    int n = tor_im_broadcast(c, a.q->dim, a.q->rank - 2 - grouped, a.k->dim,
                             a.k->rank - 2 - grouped, part);
    n = tor_im_broadcast(c, part, n, a.v->dim, a.v->rank - 2 - grouped, batch);
    if (grouped) batch[n] = a.q->dim[n], n++;
    if (n + 2 > TOR_MAX_RANK || (a.mask && a.mask->rank > TOR_MIN(n + 2, 4)))
        return tor_im_refuse(c, "too many dims");
    if (a.mask && n > 2)
        return tor_im_refuse_arg(c, 3, "a mask with more than one batch dim is not supported");
    TorValue *q = with_batch(c, a.q, batch, n, false);
    if (!q) return c->status;
    a.q = to_rank4(c, q);
    a.k = to_rank4(c, with_batch(c, a.k, batch, n, grouped));
    a.v = to_rank4(c, with_batch(c, a.v, batch, n, grouped));
    TorValue *r = attention(c, a);
    if (!r) return c->status;
    TorDim dims[TOR_MAX_RANK];
    for (int i = 0; i < n + 1; i++) dims[i] = q->dim[i];
    dims[n + 1] = r->dim[3];
    return RETURN(tor_im_view(c, r, n + 2, dims));
}

static const TorAtenRow rows[] = {
    {"aten._scaled_dot_product_flash_attention_for_cpu.default",
     "query, key, value, dropout_p=0.0, is_causal=False, *, attn_mask=None, scale=None",
     import_flash, 0},
    {"aten.scaled_dot_product_attention.default",
     "query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, "
     "enable_gqa=False",
     import_attention, 0},
};
TOR_ATEN_TABLE(attention, rows);

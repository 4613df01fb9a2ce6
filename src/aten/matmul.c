/// Matrix products.
///
/// A product with a bias of one row becomes `linear`, whatever eager calls it; the weight of
/// `linear` is [n, k], so what eager passes as a transposed weight is the weight itself.
#include "aten/build.h"
#include "aten/tables.h"

static bool one(const TorOperand *o) {
    return !o->value && tor_scalar_cast(o->number, TOR_float64).f == 1;
}
static bool zero(const TorOperand *o) {
    return !o->value && tor_scalar_cast(o->number, TOR_float64).f == 0;
}

static TorValue *linear(TorCall *c, TorValue *x, TorValue *w, TorValue *bias) {
    TorValue *inputs[] = {x, w, bias};
    return tor_im_add(c, TOR_OP_linear, inputs, bias ? 3 : 2, NULL, 0);
}

/// w^T, which undoes the transposition that a graph often holds.
static TorValue *transposed(TorCall *c, TorValue *w) {
    if (c->status || !w) return NULL;
    const TorAttr *axes = w->node->op == TOR_OP_permute ? tor_attr(w->node, TOR_ATTR_axes) : NULL;
    return axes && axes->count == 2 && axes->ints[0] == 1 ? tor_in(w->node, 0)
                                                          : tor_im_transpose(c, w, 0, 1);
}

static bool need_rank(TorCall *c, TorValue *x, int i, int rank) {
    if (x && x->rank != rank) tor_im_refuse_arg(c, i, "expected %d dims, got %d", rank, x->rank);
    return !c->status;
}

/// Whether eager does not even read matrices that count zero times, so that their NaN is lost: BLAS
/// does not, eager's own loops (halves, small batched products) do.
static bool skips_product(TorCall *c, const TorValue *a, const TorValue *b) {
    if (a->dtype != TOR_float32 && a->dtype != TOR_float64) return false;
    if (a->rank == 2) return true;
    int64_t work;
    TorDim dims[] = {a->dim[1], a->dim[2], b->dim[2]};
    return tor_int_known(c->g, tor_int_product(c->g, dims, 3), &work) && work >= 400;
}

/// beta * self + alpha * product. Half types: the product in float32, one rounding.
static TorValue *scaled_sum(TorCall *c, TorValue *self, TorValue *a, TorValue *b, TorOperand beta,
                            TorOperand alpha) {
    if (c->status) return NULL;
    TorDtype t = a->dtype, wide = tor_dtype_compute(t);
    if (self->dtype != t)
        return tor_im_refuse(c, "operands must have one type, got %s and %s",
                             tor_dtype_name(self->dtype), tor_dtype_name(t)),
               NULL;
    if (beta.value || alpha.value)
        return tor_im_refuse(c, "beta and alpha must be known when compiling"), NULL;
    if (zero(&alpha) && skips_product(c, a, b)) {
        TorDim dims[TOR_MAX_RANK];
        for (int d = 0; d < a->rank; d++) dims[d] = d < a->rank - 1 ? a->dim[d] : b->dim[d];
        if (zero(&beta)) return tor_im_repeated(c, (TorScalar){.dtype = t}, t, a->rank, dims);
        TorValue *rest = F2(mul, self, tor_im_convert(c, beta, t, false));
        return tor_im_expand(c, rest, a->rank, dims);
    }
    TorValue *r = tor_im_matmul(c, tor_im_up(c, a), tor_im_up(c, b));
    if (!one(&alpha)) r = F2(mul, r, tor_im_convert(c, alpha, wide, false));
    // With beta = 0 self does not count, not even its NaN.
    if (!zero(&beta)) {
        TorValue *s = tor_im_up(c, self);
        r = F2(add, one(&beta) ? s : F2(mul, s, tor_im_convert(c, beta, wide, false)), r);
    }
    return tor_im_cast(c, r, t);
}

static ToroidStatus import_addmm(TorCall *c) {
    TorValue *self = tor_im_tensor(c, 0), *a = tor_im_tensor(c, 1), *b = tor_im_tensor(c, 2);
    TorOperand beta = tor_im_operand(c, 3), alpha = tor_im_operand(c, 4);
    if (!need_rank(c, a, 1, 2) || !need_rank(c, b, 2, 2)) return c->status;
    bool row = self->rank == 1 && a->dtype != TOR_bool && self->dtype == a->dtype &&
               b->dtype == a->dtype && self->dim[0] == b->dim[1];
    if (row && one(&alpha) && one(&beta)) return RETURN(linear(c, a, transposed(c, b), self));
    return RETURN(scaled_sum(c, self, a, b, beta, alpha));
}

static ToroidStatus import_baddbmm(TorCall *c) {
    TorValue *self = tor_im_tensor(c, 0), *a = tor_im_tensor(c, 1), *b = tor_im_tensor(c, 2);
    TorOperand beta = tor_im_operand(c, 3), alpha = tor_im_operand(c, 4);
    if (!need_rank(c, a, 1, 3) || !need_rank(c, b, 2, 3)) return c->status;
    return RETURN(scaled_sum(c, self, a, b, beta, alpha));
}

/// The sum over the batch is a product of [n, batch * m] and [batch * m, p].
static ToroidStatus import_addbmm(TorCall *c) {
    TorValue *self = tor_im_tensor(c, 0), *a = tor_im_tensor(c, 1), *b = tor_im_tensor(c, 2);
    TorOperand beta = tor_im_operand(c, 3), alpha = tor_im_operand(c, 4);
    if (!need_rank(c, a, 1, 3) || !need_rank(c, b, 2, 3)) return c->status;
    TorDim k = tor_int_mul(c->g, a->dim[0], a->dim[2]), rows[] = {a->dim[1], k},
           cols[] = {k, b->dim[2]};
    a = tor_im_view(c, tor_im_transpose(c, a, 0, 1), 2, rows);
    b = tor_im_view(c, b, 2, cols);
    return RETURN(scaled_sum(c, self, a, b, beta, alpha));
}

static ToroidStatus import_addmv(TorCall *c) {
    TorValue *self = tor_im_tensor(c, 0), *a = tor_im_tensor(c, 1), *v = tor_im_tensor(c, 2);
    TorOperand beta = tor_im_operand(c, 3), alpha = tor_im_operand(c, 4);
    if (!need_rank(c, a, 1, 2) || !need_rank(c, v, 2, 1)) return c->status;
    TorValue *s = self->rank == 1 ? tor_im_unsqueeze(c, self, 1) : self;
    return RETURN(
        tor_im_squeeze(c, scaled_sum(c, s, a, tor_im_unsqueeze(c, v, 1), beta, alpha), 1));
}

static ToroidStatus import_mm(TorCall *c) {
    TorValue *a = tor_im_tensor(c, 0), *b = tor_im_tensor(c, 1);
    int rank = c->row->op;
    if (!need_rank(c, a, 0, rank) || !need_rank(c, b, 1, rank)) return c->status;
    return RETURN(tor_im_matmul(c, a, b));
}

static ToroidStatus import_linear(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0), *w = tor_im_tensor(c, 1),
             *bias = tor_im_tensor_or_null(c, 2);
    if (c->status) return c->status;
    if (x->dtype == TOR_bool)
        return tor_im_refuse_arg(c, 0, "products of bool matrices are not supported");
    if (x->rank < 1 || w->rank < 1 || w->rank > 2)
        return tor_im_refuse(c, "ranks %d and %d are not supported", x->rank, w->rank);
    bool vector_x = x->rank == 1, vector_w = w->rank == 1;
    if (vector_w && bias && bias->rank == 0) bias = tor_im_unsqueeze(c, bias, 0);
    if (vector_x) x = tor_im_unsqueeze(c, x, 0);
    if (vector_w) w = tor_im_unsqueeze(c, w, 0);
    TorValue *r = linear(c, x, w, bias);
    if (vector_w && r) r = tor_im_squeeze(c, r, r->rank - 1);
    return RETURN(vector_x ? tor_im_squeeze(c, r, 0) : r);
}

static ToroidStatus import_matmul(TorCall *c) {
    TorValue *a = tor_im_tensor(c, 0), *b = tor_im_tensor(c, 1);
    if (c->status) return c->status;
    if (a->rank == 0 || b->rank == 0) return tor_im_refuse(c, "0-d operands are not supported");
    bool row = a->rank == 1, column = b->rank == 1;
    if (row) a = tor_im_unsqueeze(c, a, 0);
    if (column) b = tor_im_unsqueeze(c, b, 1);
    TorValue *r = tor_im_matmul(c, a, b);
    if (column && r) r = tor_im_squeeze(c, r, r->rank - 1);
    if (row && r) r = tor_im_squeeze(c, r, r->rank - (column ? 1 : 2));
    return RETURN(r);
}

static ToroidStatus import_mv(TorCall *c) {
    if (!need_rank(c, tor_im_tensor(c, 0), 0, 2) || !need_rank(c, tor_im_tensor(c, 1), 1, 1))
        return c->status;
    return import_matmul(c);
}

static ToroidStatus import_dot(TorCall *c) {
    if (!need_rank(c, tor_im_tensor(c, 0), 0, 1) || !need_rank(c, tor_im_tensor(c, 1), 1, 1))
        return c->status;
    return import_matmul(c);
}

static ToroidStatus import_outer(TorCall *c) {
    TorValue *a = tor_im_tensor(c, 0), *b = tor_im_tensor(c, 1);
    if (!need_rank(c, a, 0, 1) || !need_rank(c, b, 1, 1)) return c->status;
    TorOperand o[] = {tor_im_operand_of(a), tor_im_operand_of(b)};
    TorDtype t = tor_im_promote(o, 2);
    a = tor_im_unsqueeze(c, tor_im_cast(c, a, t), 1), b = tor_im_cast(c, b, t);
    return RETURN(t == TOR_bool ? F2(bit_and, a, b) : F2(mul, a, b));
}

static const TorAtenRow rows[] = {
    {"aten.addmm.default", "self, mat1, mat2, *, beta=1, alpha=1", import_addmm, 0},
    {"aten.baddbmm.default", "self, batch1, batch2, *, beta=1, alpha=1", import_baddbmm, 0},
    {"aten.addbmm.default", "self, batch1, batch2, *, beta=1, alpha=1", import_addbmm, 0},
    {"aten.addmv.default", "self, mat, vec, *, beta=1, alpha=1", import_addmv, 0},
    {"aten.mm.default", "self, mat2", import_mm, 2},
    {"aten.bmm.default", "self, mat2", import_mm, 3},
    {"aten.linear.default", "input, weight, bias=None", import_linear, 0},
    {"aten.matmul.default", "self, other", import_matmul, 0},
    {"aten.mv.default", "self, vec", import_mv, 0},
    {"aten.dot.default", "self, tensor", import_dot, 0},
    {"aten.vdot.default", "self, other", import_dot, 0},
    {"aten.outer.default", "self, vec2", import_outer, 0},
    {"aten.ger.default", "self, vec2", import_outer, 0},
};
TOR_ATEN_TABLE(matmul, rows);

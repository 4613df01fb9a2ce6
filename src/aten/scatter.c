/// Writes along an axis and to elements that indices name.
///
/// A reduction is a scatter with `reduce`. Without include_self the places are first set to what
/// the reduction starts from. A mean divides the sum by a count that is scattered the same way.
#include "aten/build.h"
#include "aten/tables.h"

#include <math.h>
#include <string.h>

/// Returns `written`, which is `tor_im_at_least_1d()` of `x` with some elements changed.
static ToroidStatus return_written(TorCall *c, const TorValue *x, TorValue *written) {
    return RETURN(x->rank == 0 ? tor_im_squeeze(c, written, 0) : written);
}

static ToroidStatus import_index_copy(TorCall *c) {
    TorValue *self = tor_im_tensor(c, 0), *source = tor_im_tensor(c, 3);
    if (c->status) return c->status;
    int axis = tor_im_axis(c, 1, self->rank);
    TorValue *x = tor_im_at_least_1d(c, self), *index = tor_im_index_vector(c, 2);
    if (c->status) return c->status;
    if (source->rank == x->rank - 1) source = tor_im_unsqueeze(c, source, axis);
    TorValue *inputs[] = {x, index, source};
    TorAttr a = TOR_A_INT(axis, axis);
    return return_written(c, self, tor_im_add(c, TOR_OP_index_copy, inputs, 3, &a, 1));
}

static ToroidStatus import_index_fill(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    TorOperand value = tor_im_operand(c, 3);
    if (c->status) return c->status;
    int64_t axis = tor_im_axis(c, 1, x->rank);
    TorValue *index = tor_im_index_vector(c, 2);
    if (value.value && value.value->rank > 0) return tor_im_refuse(c, "expected a 0-d value");
    TorValue *v = value.value ? tor_im_cast(c, value.value, x->dtype)
                              : tor_im_full(c, value.number, x->dtype, 0, NULL);
    TorValue *inputs[] = {tor_im_at_least_1d(c, x), v, index};
    TorAttr a[] = {TOR_A_INTS(axes, &axis, 1), TOR_A_INT(accumulate, 0)};
    return return_written(c, x, tor_im_add(c, TOR_OP_index_put, inputs, 3, a, 2));
}

// ---------------------------------------------------------------- reductions

/// Where a write goes: elements of `index` along an axis.
typedef struct {
    TorCall *c;
    TorValue *index;
    int64_t axis;
    bool index_error;  ///< what a wrong index raises
} Place;

static TorValue *write(const Place *p, TorValue *x, TorValue *src, const char *reduce) {
    TorValue *inputs[] = {x, p->index, src};
    TorAttr a[] = {TOR_A_INT(axis, p->axis), TOR_A_STR(reduce, reduce), TOR_A_INT(index_error, 1)};
    return tor_im_add(p->c, TOR_OP_scatter, inputs, 3, a, p->index_error ? 3 : 2);
}

/// Whole slices of the axis: the vector of argument 2 in the shape of `source`.
static Place slices(TorCall *c, const TorValue *x, const TorValue *source) {
    Place p = {.c = c, .axis = tor_im_axis(c, 1, x->rank)};
    TorDim dims[TOR_MAX_RANK];
    p.index = tor_im_index_vector(c, 2);
    if (!c->status && source->rank != x->rank)
        tor_im_refuse(c, "self and source must have the same rank");
    for (int d = 0; d < x->rank && !c->status; d++) {
        dims[d] = d == p.axis ? p.index->dim[0] : tor_im_const(c, 1);
        int64_t have, want;
        bool known = d == p.axis || (tor_int_known(c->g, source->dim[d], &have) &&
                                     tor_int_known(c->g, x->dim[d], &want));
        if (d != p.axis && known && have != want)
            tor_im_refuse_arg(c, 3, "dim %d has size %" PRId64 ", not %" PRId64, d, have, want);
    }
    p.index = tor_im_view(c, p.index, x->rank, dims);
    p.index = tor_im_expand(c, p.index, x->rank, source->dim);
    return p;
}

/// `number` in the shape of `like`.
static TorValue *filled(TorCall *c, TorScalar number, TorDtype dtype, const TorValue *like) {
    if (c->status) return NULL;
    return tor_im_repeated(c, number, dtype, like->rank, like->dim);
}

static TorScalar integer(int64_t i) { return (TorScalar){.dtype = TOR_int64, .i = i}; }

/// What a reduction starts from.
static TorScalar identity(const char *reduce, TorDtype dtype) {
    bool max = strcmp(reduce, "amax") == 0;
    if (!max && strcmp(reduce, "amin") != 0) return integer(strcmp(reduce, "mul") == 0);
    if (tor_dtype_is_float(dtype))
        return (TorScalar){.dtype = TOR_float64, .f = max ? -INFINITY : INFINITY};
    bool is_signed = tor_dtype_kind(dtype) == 'i';
    int bits = dtype == TOR_bool ? 1 : 8 * (int)tor_dtype_size(dtype) - is_signed;
    int64_t high = (int64_t)(((uint64_t)1 << bits) - 1);
    return integer(!max ? high : is_signed ? -high - 1 : 0);
}

/// PyTorch's names: those of scatter and of scatter_reduce. NULL: unknown.
static const char *known_reduce(TorCall *c, int arg) {
    static const char *const names[][2] = {{"sum", "add"},      {"add", "add"},   {"prod", "mul"},
                                           {"multiply", "mul"}, {"mean", "mean"}, {"amax", "amax"},
                                           {"amin", "amin"}};
    const char *name = tor_im_str(c, arg, "");
    for (size_t i = 0; i < TOR_COUNT_OF(names) && !c->status; i++)
        if (strcmp(name, names[i][0]) == 0) return names[i][1];
    if (!c->status) tor_im_refuse_arg(c, arg, "'%s' is not known", name);
    return NULL;
}

/// x reduced with src at a place. `wide`: halves are computed in float32 and rounded once.
static TorValue *reduce_into(const Place *p, TorValue *x, TorValue *src, const char *reduce,
                             bool include_self, bool wide) {
    TorCall *c = p->c;
    if (c->status || !x || !src || !reduce) return NULL;
    TorDtype dtype = x->dtype;
    bool mean = strcmp(reduce, "mean") == 0;
    if (mean) reduce = "add";
    if (mean && dtype == TOR_bool) return tor_im_refuse_arg(c, 0, "the mean of bool"), NULL;
    TorDtype work = wide ? tor_dtype_compute(dtype) : dtype;
    TorValue *to = tor_im_cast(c, x, work), *from = tor_im_cast(c, src, work);
    if (!include_self) to = write(p, to, filled(c, identity(reduce, work), work, src), "");
    TorValue *r = tor_im_cast(c, write(p, to, from, reduce), dtype);
    if (!mean || c->status) return r;
    TorValue *count = write(p, filled(c, integer(include_self), work, x),
                            filled(c, integer(1), work, src), "add");
    count = tor_im_cast(c, count, dtype);
    TorValue *none = tor_dtype_is_float(dtype) ? NUM(0) : tor_im_int_number(c, 0);
    TorValue *one = tor_im_full(c, integer(1), dtype, 0, NULL);
    if (c->status) return NULL;
    count = F3(where, F2(eq, count, none), one, count);
    return tor_dtype_is_float(dtype) ? F2(div, r, count) : F2(div_floor, r, count);
}

/// Of a source larger than the index the leading part counts.
static TorValue *leading_part(TorCall *c, TorValue *src, const TorValue *index) {
    if (c->status || !src) return NULL;
    if (src->rank != index->rank) {
        tor_im_refuse_arg(c, 3, "expected rank %d, got %d", index->rank, src->rank);
        return NULL;
    }
    for (int i = 0; i < index->rank; i++)
        src = tor_im_slice(c, src, i, tor_im_const(c, 0), 1, index->dim[i]);
    return src;
}

/// self, dim, index and src or value are arguments 0 to 3 of all scatters.
static ToroidStatus scatter(TorCall *c, const char *reduce, bool include_self) {
    TorValue *self = tor_im_tensor(c, 0), *x = tor_im_at_least_1d(c, self);
    if (!x) return c->status;
    Place p = {.c = c, .axis = tor_im_axis(c, 1, self->rank)};
    p.index = tor_im_at_least_1d(c, tor_im_index(c, tor_im_tensor(c, 2), 2));
    TorOperand source = tor_im_operand(c, 3);
    if (c->status) return c->status;
    if (p.index->rank != x->rank) return tor_im_refuse(c, "self and index must have the same rank");
    TorValue *src = source.value;
    if (source.is_number) {
        src =
            src ? tor_im_cast(c, src, x->dtype) : tor_im_full(c, source.number, x->dtype, 0, NULL);
        src = tor_im_expand(c, src, p.index->rank, p.index->dim);
    } else {
        src = leading_part(c, tor_im_at_least_1d(c, src), p.index);
        if (src && src->dtype != x->dtype)
            return tor_im_refuse_arg(c, 3, "expected %s, got %s", tor_dtype_name(x->dtype),
                                     tor_dtype_name(src->dtype));
    }
    if (!reduce) return c->status;
    TorValue *written =
        *reduce ? reduce_into(&p, x, src, reduce, include_self, true) : write(&p, x, src, "");
    return return_written(c, self, written);
}

static ToroidStatus import_scatter(TorCall *c) { return scatter(c, c->row->op ? "add" : "", true); }

static ToroidStatus import_scatter_reduce(TorCall *c) {
    return scatter(c, known_reduce(c, 4), c->row->op ? tor_im_flag(c, 5) : true);
}

static ToroidStatus import_index_reduce(TorCall *c) {
    TorValue *self = tor_im_tensor(c, 0), *x = tor_im_at_least_1d(c, self);
    TorValue *source = tor_im_at_least_1d(c, tor_im_tensor(c, 3));
    const char *reduce = known_reduce(c, 4);
    bool include_self = tor_im_flag(c, 5);
    if (c->status) return c->status;
    Place p = slices(c, x, source);
    p.index_error = true;
    return return_written(c, self, reduce_into(&p, x, source, reduce, include_self, false));
}

/// Eager rounds halves once along some dims and after each addition along others; here once.
static ToroidStatus import_index_add(TorCall *c) {
    TorValue *self = tor_im_tensor(c, 0), *x = tor_im_at_least_1d(c, self);
    TorValue *source = tor_im_at_least_1d(c, tor_im_tensor(c, 3));
    TorOperand alpha = tor_im_operand(c, 4);
    if (c->status) return c->status;
    Place p = slices(c, x, source);
    // Eager scatters along an outer dim and loops over slices otherwise.
    bool scaled = alpha.is_number && tor_scalar_cast(alpha.number, TOR_float64).f != 1;
    bool outer = x->rank > 1 && (p.axis == 0 || p.axis == x->rank - 1);
    p.index_error = scaled || !outer;
    if (alpha.value)
        return tor_im_refuse_arg(c, 4, "expected a number that is known when compiling");
    if (scaled) source = F2(mul, tor_im_up(c, source), tor_im_convert(c, alpha, x->dtype, false));
    return return_written(c, self, reduce_into(&p, x, source, "add", true, true));
}

// ---------------------------------------------------------------- flat places, masks, diagonals

static ToroidStatus import_put(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0), *index = tor_im_index(c, tor_im_tensor(c, 1), 1);
    TorValue *source = tor_im_tensor(c, 2);
    bool accumulate = tor_im_flag(c, 3);
    if (c->status) return c->status;
    TorDim count = tor_value_numel(c->g, index), all = tor_value_numel(c->g, x);
    if (tor_value_numel(c->g, source) != count)
        return tor_im_refuse_arg(c, 2, "expected as many elements as the index has");
    TorValue *inputs[] = {tor_im_view(c, x, 1, &all), tor_im_view(c, source, 1, &count),
                          tor_im_view(c, index, 1, &count)};
    int64_t axis = 0;
    TorAttr a[] = {TOR_A_INTS(axes, &axis, 1), TOR_A_INT(accumulate, accumulate)};
    return RETURN(
        tor_im_view(c, tor_im_add(c, TOR_OP_index_put, inputs, 3, a, 2), x->rank, x->dim));
}

/// The n-th place of the mask takes the n-th element of the source.
static ToroidStatus import_masked_scatter(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0), *mask = tor_im_tensor(c, 1), *source = tor_im_tensor(c, 2);
    TorDim dims[TOR_MAX_RANK], items;
    int64_t known;
    if (c->status) return c->status;
    items = tor_value_numel(c->g, source);
    if (mask->dtype != TOR_bool || source->dtype != x->dtype)
        return tor_im_refuse(c, "expected a bool mask, and self and source of one type");
    if (!tor_int_known(c->g, items, &known) || known == 0)
        return tor_im_refuse_arg(c, 2, "expected a source of known size, at least 1");
    int rank = tor_im_broadcast(c, x->dim, x->rank, mask->dim, mask->rank, dims);
    TorDim count = tor_int_product(c->g, dims, rank);
    TorValue *flat = tor_im_view(c, tor_im_expand(c, mask, rank, dims), 1, &count);
    TorValue *number = tor_im_cast(c, flat, TOR_int64);
    TorAttr axis0[] = {TOR_A_INT(axis, 0), TOR_A_DTYPE(dtype, TOR_int64)};
    number = tor_im_add(c, TOR_OP_cumsum, &number, 1, axis0, 2);
    number = F2(sub, number, tor_im_int_number(c, 1));
    number = F3(where, flat, number, tor_im_int_number(c, 0));
    TorValue *inputs[] = {tor_im_view(c, source, 1, &items), number};
    TorValue *picked = tor_im_add(c, TOR_OP_index_select, inputs, 2, axis0, 1);
    return RETURN(F3(where, mask, tor_im_view(c, picked, rank, dims), x));
}

/// Planes of zeros of the given sizes, with each element of x at its place in its plane.
static TorValue *into_planes(TorCall *c, TorValue *x, TorValue *index, const TorDim *sizes,
                             int spatial, const char *reduce) {
    TorDim dims[TOR_MAX_RANK];
    int lead = x->rank - spatial;
    for (int d = 0; d < lead; d++) dims[d] = x->dim[d];
    Place p = {.c = c, .axis = lead};
    dims[lead] = tor_int_product(c->g, x->dim + lead, spatial);
    p.index = tor_im_view(c, index, lead + 1, dims);
    x = tor_im_view(c, x, lead + 1, dims);
    dims[lead] = tor_int_product(c->g, sizes, spatial);
    TorValue *zeros = tor_im_repeated(c, integer(0), x->dtype, lead + 1, dims);
    for (int d = 0; d < spatial; d++) dims[lead + d] = sizes[d];
    return tor_im_view(c, write(&p, zeros, x, reduce), lead + spatial, dims);
}

/// Zeros with each element of x at its place in the plane that it belongs to. The row's number:
/// spatial dims.
static ToroidStatus import_max_unpool(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0), *index = tor_im_tensor(c, 1);
    TorDim sizes[TOR_MAX_RANK];
    int spatial = c->row->op, n = tor_im_dims(c, 2, sizes);
    if (c->status) return c->status;
    int lead = x->rank - spatial;
    if (n != spatial || lead < 1 || lead > 2 || index->rank != x->rank || index->dtype != TOR_int64)
        return tor_im_refuse(c, "expected %d sizes, %d or %d dims and int64 indices", spatial,
                             spatial + 1, spatial + 2);
    for (int d = 1; d < x->rank; d++)
        if (tor_int_is(c->g, x->dim[d], 0)) return tor_im_refuse_arg(c, 0, "dim %d is empty", d);
    return RETURN(into_planes(c, x, index, sizes, spatial, ""));
}

/// The gradient of a maximum goes to where it was found; windows that overlap add theirs. The row's
/// number: spatial dims.
static ToroidStatus import_max_pool_backward(TorCall *c) {
    TorValue *grad = tor_im_tensor(c, 0), *x = tor_im_tensor(c, 1), *index = tor_im_tensor(c, 7);
    int spatial = c->row->op;
    if (c->status) return c->status;
    // Eager adds half types in float32 and rounds once.
    if (grad->dtype != TOR_float32 && grad->dtype != TOR_float64)
        return tor_im_refuse_arg(c, 0, "expected float32 or float64");
    if (x->rank != grad->rank || index->rank != grad->rank || grad->rank <= spatial)
        return tor_im_refuse(c, "expected %d or %d dims", spatial + 1, spatial + 2);
    const TorDim *sizes = x->dim + x->rank - spatial;
    return RETURN(into_planes(c, grad, index, sizes, spatial, "add"));
}

/// x with the diagonal of two dims replaced: those become the last two, and are indexed together.
static ToroidStatus import_diagonal_scatter(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0), *src = tor_im_tensor(c, 1);
    int64_t offset = tor_im_int(c, 2), order[TOR_MAX_RANK], inverse[TOR_MAX_RANK];
    if (c->status) return c->status;
    int a = tor_im_axis(c, 3, x->rank), b = tor_im_axis(c, 4, x->rank), n = 0;
    if (c->status) return c->status;
    if (a == b || src->dtype != x->dtype)
        return tor_im_refuse(c, "expected two different dims, and one type");
    for (int d = 0; d < x->rank; d++)
        if (d != a && d != b) order[n++] = d;
    order[n++] = a, order[n++] = b;
    for (int d = 0; d < n; d++) inverse[order[d]] = d;
    TorDim count = tor_im_diagonal_size(c, x, a, b, offset);
    TorValue *i = tor_im_arange(c, count, tor_im_const(c, TOR_MAX(-offset, 0)), 1, TOR_int64);
    TorValue *j = tor_im_arange(c, count, tor_im_const(c, TOR_MAX(offset, 0)), 1, TOR_int64);
    int64_t axes[] = {n - 2, n - 1};
    TorValue *inputs[] = {tor_im_permute(c, x, order), src, i, j};
    TorAttr attrs[] = {TOR_A_INTS(axes, axes, 2), TOR_A_INT(accumulate, 0)};
    return RETURN(tor_im_permute(c, tor_im_add(c, TOR_OP_index_put, inputs, 4, attrs, 2), inverse));
}

#define SCATTER "self, dim, index, "
#define MAX_POOL_BACKWARD \
    "grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices"

static const TorAtenRow rows[] = {
    {"aten.index_copy.default", "self, dim, index, source", import_index_copy, 0},
    {"aten.index_add.default", "self, dim, index, source, *, alpha=1", import_index_add, 0},
    {"aten.index_fill.int_Scalar", "self, dim, index, value", import_index_fill, 0},
    {"aten.index_fill.int_Tensor", "self, dim, index, value", import_index_fill, 0},
    {"aten.scatter.src", SCATTER "src", import_scatter, 0},
    {"aten.scatter.value", SCATTER "value", import_scatter, 0},
    {"aten.scatter_add.default", SCATTER "src", import_scatter, 1},
    {"aten.scatter.reduce", SCATTER "src, *, reduce", import_scatter_reduce, 0},
    {"aten.scatter.value_reduce", SCATTER "value, *, reduce", import_scatter_reduce, 0},
    {"aten.scatter_reduce.two", SCATTER "src, reduce, *, include_self=True", import_scatter_reduce,
     1},
    {"aten.index_reduce.default", SCATTER "source, reduce, *, include_self=True",
     import_index_reduce, 0},
    {"aten.put.default", "self, index, source, accumulate=False", import_put, 0},
    {"aten.masked_scatter.default", "self, mask, source", import_masked_scatter, 0},
    {"aten.max_unpool2d.default", "self, indices, output_size", import_max_unpool, 2},
    {"aten.max_unpool3d.default", "self, indices, output_size, stride, padding", import_max_unpool,
     3},
    {"aten.max_pool2d_with_indices_backward.default", MAX_POOL_BACKWARD, import_max_pool_backward,
     2},
    {"aten.max_pool3d_with_indices_backward.default", MAX_POOL_BACKWARD, import_max_pool_backward,
     3},
    {"aten.diagonal_scatter.default", "self, src, offset=0, dim1=0, dim2=1",
     import_diagonal_scatter, 0},
};
TOR_ATEN_TABLE(scatter, rows);

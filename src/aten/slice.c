/// Parts of a tensor, and writing parts back.
#include "aten/build.h"
#include "aten/tables.h"

#define FAR (INT64_C(1) << 62)

/// A bound of a slice, wrapped and clamped into [low, size].
static TorDim bound(TorCall *c, int i, TorDim size, TorDim low, bool is_end) {
    TorDim none = is_end ? size : tor_im_const(c, 0);
    TorDim b = tor_im_has(c, i) ? tor_im_dim(c, i) : none;
    int64_t v, n, l;
    if (c->status) return low;
    if (tor_int_known(c->g, b, &v)) {
        if (v >= FAR) return size;
        if (v == 0) return low;
        if (tor_int_known(c->g, size, &n)) {
            v = TOR_MIN(TOR_MAX(v < 0 ? v + n : v, 0), n);
            if (tor_int_known(c->g, low, &l)) return tor_im_const(c, TOR_MAX(v, l));
            return tor_im_max(c, tor_im_const(c, v), low);
        }
    }
    if (b == size || b == low) return b;
    return tor_im_max(c, tor_im_min(c, tor_im_wrap_index(c, b, size), size), low);
}

typedef struct {
    int axis;
    TorDim start, count;
    int64_t step;
} Range;

/// Arguments (dim, start, end, step) from `i` on, of a slice of x.
static Range range_of(TorCall *c, TorValue *x, int i) {
    Range r = {.step = 1};
    if (!x) return r;
    if (x->rank == 0) {
        tor_im_refuse_arg(c, 0, "a 0-d tensor cannot be sliced");
        return r;
    }
    r.axis = tor_im_axis(c, i, x->rank);
    r.step = tor_im_int(c, i + 3);
    if (!c->status && r.step <= 0) tor_im_refuse(c, "step must be positive, got %" PRId64, r.step);
    if (c->status) return r;
    TorDim size = x->dim[r.axis];
    r.start = bound(c, i + 1, size, tor_im_const(c, 0), false);
    TorDim end = bound(c, i + 2, size, r.start, true);
    r.count = tor_int_sub(c->g, end, r.start);
    if (r.step > 1)
        r.count = tor_int_floordiv(c->g, tor_int_add(c->g, r.count, tor_im_const(c, r.step - 1)),
                                   tor_im_const(c, r.step));
    return r;
}

static ToroidStatus import_slice(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    Range r = range_of(c, x, 1);
    return RETURN(tor_im_slice(c, x, r.axis, r.start, r.step, r.count));
}

static TorValue *slice_scatter(TorCall *c, TorValue *x, TorValue *src, Range r) {
    if (c->status) return NULL;
    TorDim dims[TOR_MAX_RANK];
    for (int i = 0; i < x->rank; i++) dims[i] = i == r.axis ? r.count : x->dim[i];
    if (tor_int_is(c->g, r.count, 0)) return tor_im_contiguous(c, x);
    src = tor_im_expand(c, tor_im_cast(c, src, x->dtype), x->rank, dims);
    TorAttr a[] = {TOR_A_INT(axis, r.axis), TOR_A_DIM(start, r.start), TOR_A_INT(step, r.step)};
    TorValue *inputs[] = {x, src};
    return tor_im_add(c, TOR_OP_slice_scatter, inputs, 2, a, 3);
}

static ToroidStatus import_slice_scatter(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0), *src = tor_im_tensor(c, 1);
    Range r = range_of(c, x, 2);
    return RETURN(slice_scatter(c, x, src, r));
}

/// One index of an axis as a range of one.
static Range index_of(TorCall *c, TorValue *x, int axis_arg, int index_arg) {
    Range r = {.step = 1};
    if (!x) return r;
    if (x->rank == 0) {
        tor_im_refuse_arg(c, 0, "a 0-d tensor has no axis");
        return r;
    }
    r.axis = tor_im_axis(c, axis_arg, x->rank);
    TorDim index = tor_im_dim(c, index_arg);
    if (c->status) return r;
    int64_t i, n;
    if (tor_int_known(c->g, index, &i) && tor_int_known(c->g, x->dim[r.axis], &n) &&
        (i < -n || i >= n))
        tor_im_refuse_arg(c, index_arg, "%" PRId64 " is out of range for size %" PRId64, i, n);
    r.start = tor_im_wrap_index(c, index, x->dim[r.axis]);
    r.count = tor_im_const(c, 1);
    return r;
}

static ToroidStatus import_select(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    Range r = index_of(c, x, 1, 2);
    return RETURN(tor_im_squeeze(c, tor_im_slice(c, x, r.axis, r.start, 1, r.count), r.axis));
}

static ToroidStatus import_select_scatter(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0), *src = tor_im_tensor(c, 1);
    Range r = index_of(c, x, 2, 3);
    return RETURN(slice_scatter(c, x, tor_im_unsqueeze(c, src, r.axis), r));
}

static ToroidStatus import_narrow(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (!x) return c->status;
    if (x->rank == 0) return tor_im_refuse_arg(c, 0, "a 0-d tensor has no axis");
    int axis = tor_im_axis(c, 1, x->rank);
    TorDim start = tor_im_dim(c, 2), length = tor_im_dim(c, 3);
    if (c->status) return c->status;
    return RETURN(tor_im_slice(c, x, axis, tor_im_wrap_index(c, start, x->dim[axis]), 1, length));
}

// ---------------------------------------------------------------- several parts

#define MAX_PARTS 4096

static ToroidStatus return_parts(TorCall *c, TorValue *x, int axis, const TorDim *sizes, int count,
                                 bool drop_axis) {
    if (c->status) return c->status;
    TorValue **parts = tor_arena_alloc(c->g->arena, (size_t)TOR_MAX(count, 1) * sizeof(TorValue *));
    if (!parts) return tor_no_memory();
    TorDim start = tor_im_const(c, 0);
    for (int i = 0; i < count; i++) {
        parts[i] = tor_im_slice(c, x, axis, start, 1, sizes[i]);
        if (drop_axis) parts[i] = tor_im_squeeze(c, parts[i], axis);
        start = tor_int_add(c->g, start, sizes[i]);
    }
    return tor_im_return_list(c, parts, count);
}

/// Parts of `part` items each, the last with what is left.
static ToroidStatus even_parts(TorCall *c, TorValue *x, int axis, int64_t size, int64_t part,
                               bool drop_axis) {
    int64_t count = size == 0 && !drop_axis ? 1 : tor_ceil_div(size, part);
    if (count > MAX_PARTS) return tor_im_refuse(c, "%" PRId64 " parts are too many", count);
    TorDim *sizes = tor_arena_alloc(c->g->arena, (size_t)TOR_MAX(count, 1) * sizeof *sizes);
    if (!sizes) return tor_no_memory();
    for (int64_t i = 0; i < count; i++) sizes[i] = tor_im_const(c, TOR_MIN(part, size - i * part));
    return return_parts(c, x, axis, sizes, (int)count, drop_axis);
}

static bool known_size(TorCall *c, TorValue *x, int axis_arg, int *axis, int64_t *size) {
    if (!x) return false;
    if (x->rank == 0) return tor_im_refuse_arg(c, 0, "a 0-d tensor has no axis"), false;
    *axis = tor_im_axis(c, axis_arg, x->rank);
    if (!c->status && !tor_int_known(c->g, x->dim[*axis], size))
        tor_im_refuse(c, "the number of parts depends on a size that is not known when compiling");
    return !c->status;
}

static ToroidStatus import_split(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    int axis;
    int64_t size, part = tor_im_int(c, 1);
    if (!known_size(c, x, 2, &axis, &size)) return c->status;
    if (part < 0 || (part == 0 && size != 0))
        return tor_im_refuse_arg(c, 1, "expected a positive size, got %" PRId64, part);
    return even_parts(c, x, axis, size, TOR_MAX(part, 1), false);
}

static ToroidStatus import_chunk(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    int axis;
    int64_t size, chunks = tor_im_int(c, 1);
    if (!known_size(c, x, 2, &axis, &size)) return c->status;
    if (chunks < 1 || size == 0)
        return tor_im_refuse_arg(c, 1, "expected a positive number of parts");
    return even_parts(c, x, axis, size, tor_ceil_div(size, chunks), false);
}

static ToroidStatus import_unbind(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    int axis;
    int64_t size;
    if (!known_size(c, x, 1, &axis, &size)) return c->status;
    return even_parts(c, x, axis, size, 1, true);
}

static ToroidStatus import_split_sizes(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (!x) return c->status;
    if (x->rank == 0) return tor_im_refuse_arg(c, 0, "a 0-d tensor has no axis");
    int axis = tor_im_axis(c, 2, x->rank);
    const TorArg list = c->args[1];
    if (list.kind != TOR_ARG_LIST) return tor_im_refuse_arg(c, 1, "expected a list of sizes");
    TorDim *sizes = tor_arena_alloc(c->g->arena, (size_t)TOR_MAX(list.count, 1) * sizeof *sizes);
    if (!sizes) return tor_no_memory();
    for (int i = 0; i < list.count; i++) {
        c->args[1] = list.list[i];
        sizes[i] = tor_im_dim(c, 1);
    }
    c->args[1] = list;
    return return_parts(c, x, axis, sizes, list.count, false);
}

static const TorAtenRow rows[] = {
    {"aten.slice.Tensor", "self, dim=0, start=None, end=None, step=1", import_slice, 0},
    {"aten.slice_copy.Tensor", "self, dim=0, start=None, end=None, step=1", import_slice, 0},
    {"aten.slice_scatter.default", "self, src, dim=0, start=None, end=None, step=1",
     import_slice_scatter, 0},
    {"aten.select.int", "self, dim, index", import_select, 0},
    {"aten.select_copy.int", "self, dim, index", import_select, 0},
    {"aten.select_scatter.default", "self, src, dim, index", import_select_scatter, 0},
    {"aten.narrow.default", "self, dim, start, length", import_narrow, 0},
    {"aten.narrow_copy.default", "self, dim, start, length", import_narrow, 0},
    {"aten.split.Tensor", "self, split_size, dim=0", import_split, 0},
    {"aten.split_copy.Tensor", "self, split_size, dim=0", import_split, 0},
    {"aten.split.sizes", "self, split_size, dim=0", import_split_sizes, 0},
    {"aten.split_with_sizes.default", "self, split_sizes, dim=0", import_split_sizes, 0},
    {"aten.split_with_sizes_copy.default", "self, split_sizes, dim=0", import_split_sizes, 0},
    {"aten.chunk.default", "self, chunks, dim=0", import_chunk, 0},
    {"aten.unbind.int", "self, dim=0", import_unbind, 0},
    {"aten.unbind_copy.int", "self, dim=0", import_unbind, 0},
};
TOR_ATEN_TABLE(slice, rows);

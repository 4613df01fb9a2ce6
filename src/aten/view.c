/// Views that keep all elements (reshape, permute, squeeze, …) or repeat them (expand).
#include "aten/build.h"
#include "aten/tables.h"

/// Fills in the one size that is -1.
static void complete(TorCall *c, TorDim numel, TorDim *dims, int rank) {
    int hole = -1;
    for (int i = 0; i < rank; i++)
        if (tor_int_is(c->g, dims[i], -1)) {
            if (hole >= 0) tor_im_refuse(c, "only one size can be -1");
            hole = i;
        }
    if (hole < 0 || c->status) return;
    dims[hole] = tor_im_const(c, 1);
    TorDim others = tor_int_product(c->g, dims, rank);
    if (tor_int_is(c->g, others, 0)) tor_im_refuse(c, "-1 stands for no definite size beside 0");
    dims[hole] = tor_int_floordiv(c->g, numel, others);
}

static ToroidStatus import_view(TorCall *c) {
    TorDim dims[TOR_MAX_RANK];
    TorValue *x = tor_im_tensor(c, 0);
    int rank = tor_im_dims(c, 1, dims);
    if (c->status) return c->status;
    complete(c, tor_value_numel(c->g, x), dims, rank);
    return RETURN(tor_im_view(c, x, rank, dims));
}

/// Bits seen as another type; sizes must agree.
static ToroidStatus import_view_dtype(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    TorDtype dtype = x ? tor_im_dtype(c, 1, x->dtype) : TOR_float32;
    if (x && dtype != x->dtype)
        return tor_im_refuse(c, "bits seen as another type are not supported");
    return RETURN(x);
}

static ToroidStatus import_view_as(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0), *other = tor_im_tensor(c, 1);
    return RETURN(other ? tor_im_view(c, x, other->rank, other->dim) : NULL);
}

static ToroidStatus import_flatten(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (!x) return c->status;
    int first = tor_im_axis(c, 1, x->rank), last = tor_im_axis(c, 2, x->rank), n = 0;
    if (c->status) return c->status;
    if (first > last) return tor_im_refuse(c, "start_dim comes after end_dim");
    TorDim dims[TOR_MAX_RANK] = {tor_im_const(c, 1)};
    if (x->rank == 0) return RETURN(tor_im_view(c, x, 1, dims));
    for (int i = 0; i < first; i++) dims[n++] = x->dim[i];
    dims[n++] = tor_int_product(c->g, x->dim + first, last - first + 1);
    for (int i = last + 1; i < x->rank; i++) dims[n++] = x->dim[i];
    return RETURN(tor_im_view(c, x, n, dims));
}

static ToroidStatus import_unflatten(TorCall *c) {
    TorDim sizes[TOR_MAX_RANK], dims[TOR_MAX_RANK];
    TorValue *x = tor_im_tensor(c, 0);
    if (!x) return c->status;
    int axis = tor_im_axis(c, 1, x->rank), n = tor_im_dims(c, 2, sizes), rank = 0;
    if (c->status) return c->status;
    if (x->rank == 0) return tor_im_refuse_arg(c, 0, "expected at least one dim");
    complete(c, x->dim[axis], sizes, n);
    if (x->rank - 1 + n > TOR_MAX_RANK) return tor_im_refuse(c, "rank is over %d", TOR_MAX_RANK);
    for (int i = 0; i < x->rank; i++) {
        if (i != axis)
            dims[rank++] = x->dim[i];
        else
            for (int k = 0; k < n; k++) dims[rank++] = sizes[k];
    }
    return RETURN(tor_im_view(c, x, rank, dims));
}

// ---------------------------------------------------------------- order of dims

static ToroidStatus import_permute(TorCall *c) {
    int64_t axes[TOR_MAX_RANK];
    bool seen[TOR_MAX_RANK] = {false};
    TorValue *x = tor_im_tensor(c, 0);
    int n = tor_im_int_list(c, 1, axes);
    if (c->status) return c->status;
    if (n != x->rank) return tor_im_refuse_arg(c, 1, "expected %d axes, got %d", x->rank, n);
    for (int i = 0; i < n; i++) {
        axes[i] = tor_im_wrap_axis(c, axes[i], n);
        if (seen[axes[i]]) return tor_im_refuse_arg(c, 1, "an axis appears twice");
        seen[axes[i]] = true;
    }
    return RETURN(tor_im_permute(c, x, axes));
}

static ToroidStatus import_transpose(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (!x) return c->status;
    int a = tor_im_axis(c, 1, x->rank), b = tor_im_axis(c, 2, x->rank);
    return RETURN(tor_im_transpose(c, x, a, b));
}

static ToroidStatus import_t(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (x && x->rank > 2)
        return tor_im_refuse_arg(c, 0, "expected at most 2 dims, got %d", x->rank);
    return RETURN(x && x->rank == 2 ? tor_im_transpose(c, x, 0, 1) : x);
}

/// mT: the last two dims.
static ToroidStatus import_matrix_t(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (x && x->rank < 2) return tor_im_refuse_arg(c, 0, "expected at least 2 dims");
    return RETURN(x ? tor_im_transpose(c, x, x->rank - 2, x->rank - 1) : NULL);
}

static ToroidStatus import_movedim(TorCall *c) {
    int64_t from[TOR_MAX_RANK], to[TOR_MAX_RANK], axes[TOR_MAX_RANK];
    bool moved[TOR_MAX_RANK] = {false};
    TorValue *x = tor_im_tensor(c, 0);
    int n = tor_im_int_list(c, 1, from), m = tor_im_int_list(c, 2, to);
    if (c->status) return c->status;
    if (n != m || n > x->rank) return tor_im_refuse(c, "expected as many destinations as sources");
    for (int i = 0; i < x->rank; i++) axes[i] = -1;
    for (int i = 0; i < n; i++) {
        int f = tor_im_wrap_axis(c, from[i], x->rank), t = tor_im_wrap_axis(c, to[i], x->rank);
        if (c->status || moved[f] || axes[t] >= 0) return tor_im_refuse(c, "an axis appears twice");
        moved[f] = true;
        axes[t] = f;
    }
    for (int i = 0, next = 0; i < x->rank; i++) {
        if (axes[i] >= 0) continue;
        while (moved[next]) next++;
        axes[i] = next++;
    }
    return RETURN(tor_im_permute(c, x, axes));
}

// ---------------------------------------------------------------- number of dims

static ToroidStatus import_unsqueeze(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (!x) return c->status;
    int axis = tor_im_axis(c, 1, x->rank + 1);
    return RETURN(tor_im_unsqueeze(c, x, axis));
}

/// Drops the axes of `axes` that have size 1. A size that is not known yet counts as another
/// than 1.
static ToroidStatus squeeze(TorCall *c, TorValue *x, const int64_t *axes, int n) {
    TorDim dims[TOR_MAX_RANK];
    int rank = 0;
    if (c->status) return c->status;
    for (int i = 0, k = 0; i < x->rank; i++) {
        bool named = k < n && axes[k] == i;
        k += named;
        if (!named || !tor_int_is(c->g, x->dim[i], 1)) dims[rank++] = x->dim[i];
    }
    return RETURN(tor_im_view(c, x, rank, dims));
}

static ToroidStatus import_squeeze(TorCall *c) {
    int64_t axes[TOR_MAX_RANK];
    TorValue *x = tor_im_tensor(c, 0);
    if (!x) return c->status;
    int n = 0;
    if (c->row->op == 0)
        while (n < x->rank) axes[n] = n, n++;
    else if (c->args[1].kind != TOR_ARG_LIST || c->args[1].count > 0)
        n = tor_im_axes(c, 1, x->rank, axes);
    return squeeze(c, x, axes, n);
}

// ---------------------------------------------------------------- repetition

static ToroidStatus import_expand(TorCall *c) {
    TorDim dims[TOR_MAX_RANK];
    TorValue *x = tor_im_tensor(c, 0);
    int rank = tor_im_dims(c, 1, dims);
    if (c->status) return c->status;
    if (rank < x->rank)
        return tor_im_refuse_arg(c, 1, "expected at least %d sizes, got %d", x->rank, rank);
    for (int i = 0; i < rank; i++) {
        if (!tor_int_is(c->g, dims[i], -1)) continue;
        if (i < rank - x->rank) return tor_im_refuse_arg(c, 1, "-1 is not allowed for a new dim");
        dims[i] = x->dim[i - (rank - x->rank)];
    }
    return RETURN(tor_im_expand(c, x, rank, dims));
}

static ToroidStatus import_expand_as(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0), *other = tor_im_tensor(c, 1);
    return RETURN(other ? tor_im_expand(c, x, other->rank, other->dim) : NULL);
}

static ToroidStatus import_broadcast_in_dim(TorCall *c) {
    TorDim shape[TOR_MAX_RANK], dims[TOR_MAX_RANK];
    int64_t where[TOR_MAX_RANK];
    TorValue *x = tor_im_tensor(c, 0);
    int rank = tor_im_dims(c, 1, shape), n = tor_im_int_list(c, 2, where);
    if (c->status) return c->status;
    if (n != x->rank) return tor_im_refuse_arg(c, 2, "expected %d axes, got %d", x->rank, n);
    for (int i = 0; i < rank; i++) dims[i] = tor_im_const(c, 1);
    for (int i = 0; i < n; i++) dims[tor_im_wrap_axis(c, where[i], rank)] = x->dim[i];
    return RETURN(tor_im_expand(c, tor_im_view(c, x, rank, dims), rank, shape));
}

/// [a, b] repeated (r, s): [a, b] -> [1, a, 1, b] -> [r, a, s, b] -> [r * a, s * b]; a dim that is
/// not repeated needs no pair.
static TorValue *repeat(TorCall *c, TorValue *x, const TorDim *times, int n) {
    TorDim split[2 * TOR_MAX_RANK], grown[2 * TOR_MAX_RANK], result[TOR_MAX_RANK];
    if (c->status) return NULL;
    TorDim one = tor_im_const(c, 1);
    int rank = 0;
    for (int i = 0; i < n; i++) {
        int k = i - (n - x->rank);
        TorDim size = k < 0 ? one : x->dim[k];
        result[i] = tor_int_mul(c->g, size, times[i]);
        bool stretch = tor_int_is(c->g, size, 1);
        if (!tor_int_is(c->g, times[i], 1) && !stretch) split[rank] = one, grown[rank++] = times[i];
        split[rank] = size;
        grown[rank++] = stretch ? times[i] : size;
    }
    if (rank > TOR_MAX_RANK) {
        tor_im_refuse(c, "%d repeated dims are too many", n);
        return NULL;
    }
    TorValue *r = tor_im_expand(c, tor_im_view(c, x, rank, split), rank, grown);
    return tor_im_contiguous(c, tor_im_view(c, r, n, result));  // never the memory of x
}

static ToroidStatus import_repeat(TorCall *c) {
    TorDim times[TOR_MAX_RANK];
    TorValue *x = tor_im_tensor(c, 0);
    int n = tor_im_dims(c, 1, times);
    if (!c->status && n < x->rank)
        return tor_im_refuse_arg(c, 1, "expected at least %d counts, got %d", x->rank, n);
    return RETURN(repeat(c, x, times, n));
}

static ToroidStatus import_tile(TorCall *c) {
    TorDim given[TOR_MAX_RANK], times[TOR_MAX_RANK];
    TorValue *x = tor_im_tensor(c, 0);
    int n = tor_im_dims(c, 1, given);
    if (c->status) return c->status;
    int rank = TOR_MAX(n, x->rank);
    for (int i = 0; i < rank; i++)
        times[i] = i < rank - n ? tor_im_const(c, 1) : given[i - (rank - n)];
    return RETURN(repeat(c, x, times, rank));
}

static ToroidStatus import_repeat_interleave(TorCall *c) {
    TorDim grown[TOR_MAX_RANK], result[TOR_MAX_RANK];
    TorValue *x = tor_im_tensor(c, 0);
    TorDim times = tor_im_dim(c, 1);
    if (c->status) return c->status;
    TorDim numel = tor_value_numel(c->g, x);
    if (!tor_im_has(c, 2)) x = tor_im_view(c, x, 1, &numel);
    int axis = tor_im_has(c, 2) ? tor_im_axis(c, 2, x->rank) : 0;
    if (c->status) return c->status;
    if (x->rank == 0 || x->rank == TOR_MAX_RANK)
        return tor_im_refuse_arg(c, 0, "rank %d is not supported", x->rank);
    for (int i = 0, k = 0; i < x->rank; i++) {
        grown[k++] = x->dim[i];
        if (i == axis) grown[k++] = times;
        result[i] = i == axis ? tor_int_mul(c->g, x->dim[i], times) : x->dim[i];
    }
    TorValue *r = tor_im_expand(c, tor_im_unsqueeze(c, x, axis + 1), x->rank + 1, grown);
    return RETURN(tor_im_view(c, r, x->rank, result));
}

// ---------------------------------------------------------------- blocks

/// [.., c * r * r, h, w] -> [.., c, h * r, w * r], and back.
static ToroidStatus import_pixel_shuffle(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    TorDim r = tor_im_dim(c, 1);
    if (c->status) return c->status;
    int n = x->rank - 3;
    if (n < 0 || n > TOR_MAX_RANK - 5)
        return tor_im_refuse_arg(c, 0, "rank %d is not supported", x->rank);
    bool back = c->row->op;
    TorGraph *g = c->g;
    TorDim split[TOR_MAX_RANK], result[TOR_MAX_RANK];
    int64_t axes[TOR_MAX_RANK];
    for (int i = 0; i < n; i++) split[i] = result[i] = x->dim[i], axes[i] = i;
    TorDim ch = x->dim[n], h = x->dim[n + 1], w = x->dim[n + 2], rr = tor_int_mul(g, r, r);
    static const int forth_order[] = {0, 3, 1, 4, 2}, back_order[] = {0, 2, 4, 1, 3};
    for (int i = 0; i < 5; i++) axes[n + i] = n + (back ? back_order[i] : forth_order[i]);
    if (back) {
        TorDim parts[] = {ch, tor_int_floordiv(g, h, r), r, tor_int_floordiv(g, w, r), r};
        for (int i = 0; i < 5; i++) split[n + i] = parts[i];
        result[n] = tor_int_mul(g, ch, rr), result[n + 1] = parts[1], result[n + 2] = parts[3];
    } else {
        TorDim parts[] = {tor_int_floordiv(g, ch, rr), r, r, h, w};
        for (int i = 0; i < 5; i++) split[n + i] = parts[i];
        result[n] = parts[0], result[n + 1] = tor_int_mul(g, h, r),
        result[n + 2] = tor_int_mul(g, w, r);
    }
    x = tor_im_view(c, tor_im_permute(c, tor_im_view(c, x, n + 5, split), axes), n + 3, result);
    return RETURN(tor_im_contiguous(c, x));  // never the memory of self
}

static ToroidStatus import_channel_shuffle(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    TorDim groups = tor_im_dim(c, 1);
    if (c->status) return c->status;
    if (x->rank < 3 || x->rank == TOR_MAX_RANK)
        return tor_im_refuse_arg(c, 0, "rank %d is not supported", x->rank);
    TorDim split[TOR_MAX_RANK] = {x->dim[0], groups, tor_int_floordiv(c->g, x->dim[1], groups)};
    for (int i = 2; i < x->rank; i++) split[i + 1] = x->dim[i];
    TorValue *swapped = tor_im_transpose(c, tor_im_view(c, x, x->rank + 1, split), 1, 2);
    // Memory of its own in eager, one group or not.
    return RETURN(tor_im_contiguous(c, tor_im_view(c, swapped, x->rank, x->dim)));
}

// ---------------------------------------------------------------- strides

/// The tensor itself, with other strides where they do not count (sizes of 1): what eager's
/// adaptive_avg_pool2d does to a mean that it keeps channels-last.
static bool is_identity(TorCall *c, const TorValue *x, int rank, const TorDim *dims,
                        const TorDim *strides, TorDim offset) {
    if (rank != x->rank || !tor_int_is(c->g, offset, 0)) return false;
    bool input = x->node->op == TOR_OP_input;
    for (int i = 0; i < rank; i++) {
        TorDim stride = input ? tor_im_input_stride(c, x, i)
                              : tor_int_product(c->g, x->dim + i + 1, rank - i - 1);
        if (dims[i] != x->dim[i] || (!tor_int_is(c->g, dims[i], 1) && strides[i] != stride))
            return false;
    }
    return true;
}

/// Makes a call fail in which the view would leave the `room` elements of its memory.
static ToroidStatus check_bounds(TorCall *c, int rank, const TorDim *dims, const TorDim *strides,
                                 TorDim offset, TorDim room) {
    TorGraph *g = c->g;
    TorDim zero = tor_im_const(c, 0), one = tor_im_const(c, 1), end = tor_int_add(g, offset, one);
    tor_int_binary(g, TOR_INT_within, zero, offset);
    for (int i = 0; i < rank; i++) {
        tor_int_binary(g, TOR_INT_within, zero, strides[i]);
        end = tor_int_add(g, end, tor_int_mul(g, tor_int_sub(g, dims[i], one), strides[i]));
    }
    for (int i = 0; i < rank; i++)  // of an empty view nothing is read
        end = tor_int_mul(g, end, tor_im_min(c, dims[i], one));
    tor_int_binary(g, TOR_INT_within, end, room);
    return c->status;
}

/// Strides speak of memory. Of a graph input that is the host's, of which the input may be a part;
/// a computed tensor the frontend gives as eager stores it, row-major and whole.
static ToroidStatus import_as_strided(TorCall *c) {
    TorGraph *g = c->g;
    TorDim dims[TOR_MAX_RANK], strides[TOR_MAX_RANK];
    TorValue *x = tor_im_tensor(c, 0);
    int rank = tor_im_dims(c, 1, dims), n = tor_im_dims(c, 2, strides);
    TorDim given = tor_im_has(c, 3) ? tor_im_dim(c, 3) : TOR_NO_DIM;
    if (c->status) return c->status;
    if (n != rank) return tor_im_refuse_arg(c, 2, "expected %d strides, got %d", rank, n);
    bool memory = x->node->op == TOR_OP_input;
    uint32_t index = memory ? tor_im_input_index(x) : 0;
    TorDim start = memory ? tor_int_start(g, index) : tor_im_const(c, 0);
    TorDim room = memory ? tor_int_memory(g, index) : tor_value_numel(g, x);
    TorDim offset = given == TOR_NO_DIM ? tor_im_const(c, 0) : tor_int_sub(g, given, start);
    if (is_identity(c, x, rank, dims, strides, offset)) return RETURN(x);
    TOR_TRY(check_bounds(c, rank, dims, strides, tor_int_add(g, start, offset), room));
    TorAttr a[] = {TOR_A_DIMS(dims, dims, rank), TOR_A_DIMS(strides, strides, rank),
                   TOR_A_DIM(offset, offset), TOR_A_INT(memory, memory)};
    return RETURN(tor_im_add(c, TOR_OP_as_strided, &x, 1, a, memory ? 4 : 3));
}

TorDim tor_im_diagonal_size(TorCall *c, const TorValue *x, int a, int b, int64_t offset) {
    TorDim rows = tor_int_add(c->g, x->dim[a], tor_im_const(c, TOR_MIN(offset, 0)));
    TorDim columns = tor_int_sub(c->g, x->dim[b], tor_im_const(c, TOR_MAX(offset, 0)));
    return tor_im_max(c, tor_im_min(c, rows, columns), tor_im_const(c, 0));
}

static ToroidStatus import_diagonal(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    int64_t offset = tor_im_int(c, 1);
    if (c->status) return c->status;
    int64_t axes[] = {tor_im_axis(c, 2, x->rank), tor_im_axis(c, 3, x->rank)};
    if (c->status) return c->status;
    if (axes[0] == axes[1]) return tor_im_refuse_arg(c, 3, "expected two different dims");
    TorDim size = tor_im_diagonal_size(c, x, (int)axes[0], (int)axes[1], offset);
    TorAttr a[] = {TOR_A_INTS(axes, axes, 2), TOR_A_INT(offset, offset),
                   TOR_A_DIMS(dims, &size, 1)};
    return RETURN(tor_im_add(c, TOR_OP_diagonal, &x, 1, a, 3));
}

/// Windows of `size` along a dim, `step` apart.
static ToroidStatus import_unfold(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    int64_t size = tor_im_int(c, 2), step = tor_im_int(c, 3);
    if (c->status) return c->status;
    int axis = tor_im_axis(c, 1, x->rank);
    if (x->rank == 0 || step < 1)
        return tor_im_refuse(c, "expected a dim, and a step of at least 1");
    TorDim room = tor_int_sub(c->g, x->dim[axis], tor_im_const(c, size));
    TorDim windows =
        tor_int_add(c->g, tor_int_floordiv(c->g, room, tor_im_const(c, step)), tor_im_const(c, 1));
    TorAttr a[] = {TOR_A_INT(axis, axis), TOR_A_INT(size, size), TOR_A_INT(step, step),
                   TOR_A_DIMS(dims, &windows, 1)};
    return RETURN(tor_im_add(c, TOR_OP_unfold, &x, 1, a, 4));
}

#define VIEW(name) \
    { "aten." #name ".default", "self, size", import_view, 0 }

static const TorAtenRow rows[] = {
    VIEW(view),
    VIEW(_unsafe_view),
    VIEW(view_copy),
    VIEW(_reshape_copy),
    {"aten.reshape.default", "self, shape", import_view, 0},
    {"aten._reshape_alias.default", "self, size, stride", import_view, 0},
    {"aten.view.dtype", "self, dtype", import_view_dtype, 0},
    {"aten.view_as.default", "self, other", import_view_as, 0},
    {"aten.reshape_as.default", "self, other", import_view_as, 0},
    {"aten.flatten.using_ints", "self, start_dim=0, end_dim=-1", import_flatten, 0},
    {"aten.unflatten.int", "self, dim, sizes", import_unflatten, 0},
    {"aten.permute.default", "self, dims", import_permute, 0},
    {"aten.permute_copy.default", "self, dims", import_permute, 0},
    {"prims.transpose.default", "a, permutation", import_permute, 0},
    {"aten.transpose.int", "self, dim0, dim1", import_transpose, 0},
    {"aten.transpose_copy.int", "self, dim0, dim1", import_transpose, 0},
    {"aten.swapaxes.default", "self, axis0, axis1", import_transpose, 0},
    {"aten.swapdims.default", "self, dim0, dim1", import_transpose, 0},
    {"aten.t.default", "self", import_t, 0},
    {"aten.t_copy.default", "self", import_t, 0},
    {"aten.numpy_T.default", "self", import_t, 0},
    {"aten.mT.default", "self", import_matrix_t, 0},
    {"aten.movedim.intlist", "self, source, destination", import_movedim, 0},
    {"aten.movedim.int", "self, source, destination", import_movedim, 0},
    {"aten.unsqueeze.default", "self, dim", import_unsqueeze, 0},
    {"aten.unsqueeze_copy.default", "self, dim", import_unsqueeze, 0},
    {"aten.squeeze.default", "self", import_squeeze, 0},
    {"aten.squeeze.dim", "self, dim", import_squeeze, 1},
    {"aten.squeeze.dims", "self, dim", import_squeeze, 1},
    {"aten.squeeze_copy.dim", "self, dim", import_squeeze, 1},
    {"aten.expand.default", "self, size, *, implicit=False", import_expand, 0},
    {"aten.expand_copy.default", "self, size, *, implicit=False", import_expand, 0},
    {"aten.expand_as.default", "self, other", import_expand_as, 0},
    {"aten.broadcast_to.default", "self, size", import_expand, 0},
    {"prims.broadcast_in_dim.default", "a, shape, broadcast_dimensions", import_broadcast_in_dim,
     0},
    {"aten.repeat.default", "self, repeats", import_repeat, 0},
    {"aten.tile.default", "self, dims", import_tile, 0},
    {"aten.repeat_interleave.self_int", "self, repeats, dim=None, *, output_size=None",
     import_repeat_interleave, 0},
    {"aten.pixel_shuffle.default", "self, upscale_factor", import_pixel_shuffle, 0},
    {"aten.pixel_unshuffle.default", "self, downscale_factor", import_pixel_shuffle, 1},
    {"aten.channel_shuffle.default", "self, groups", import_channel_shuffle, 0},
    {"aten.native_channel_shuffle.default", "self, groups", import_channel_shuffle, 0},
    {"aten.diagonal.default", "self, offset=0, dim1=0, dim2=1", import_diagonal, 0},
    {"aten.diagonal_copy.default", "self, offset=0, dim1=0, dim2=1", import_diagonal, 0},
    {"aten.unfold.default", "self, dimension, size, step", import_unfold, 0},
    {"aten.unfold_copy.default", "self, dimension, size, step", import_unfold, 0},
    {"aten.as_strided.default", "self, size, stride, storage_offset=None", import_as_strided, 0},
};
TOR_ATEN_TABLE(view, rows);

/// Diagonals and sliding windows: views in eager, built here from slices and gathers.
#include "aten/build.h"
#include "aten/tables.h"

/// A diagonal of the matrices [rows, columns] that axes `row` and `column` span.
typedef struct {
    int row, column;
    int64_t rows, columns, offset, count;
    int64_t axes[TOR_MAX_RANK];  ///< the other axes in order, then row and column
} Diagonal;

/// Arguments (offset, dim1, dim2) from `i` on, of a diagonal of x.
static Diagonal diagonal_of(TorCall *c, TorValue *x, int i) {
    Diagonal d = {0};
    d.offset = tor_im_int(c, i);
    if (!c->status && x->rank < 2) tor_im_refuse_arg(c, 0, "expected at least 2 dims");
    if (c->status) return d;
    d.row = tor_im_axis(c, i + 1, x->rank), d.column = tor_im_axis(c, i + 2, x->rank);
    if (!c->status && d.row == d.column) tor_im_refuse(c, "an axis appears twice");
    if (c->status) return d;
    if (!tor_int_known(c->g, x->dim[d.row], &d.rows) ||
        !tor_int_known(c->g, x->dim[d.column], &d.columns)) {
        tor_im_refuse_arg(c, 0, "the sizes of a matrix must be known when compiling");
        return d;
    }
    d.count = TOR_MIN(d.rows + TOR_MIN(d.offset, 0), d.columns - TOR_MAX(d.offset, 0));
    d.count = TOR_MAX(d.count, 0);
    int n = 0;
    for (int k = 0; k < x->rank; k++)
        if (k != d.row && k != d.column) d.axes[n++] = k;
    d.axes[n++] = d.row, d.axes[n++] = d.column;
    return d;
}

/// In a matrix laid out by rows, the diagonal has a step of columns + 1.
static ToroidStatus import_diagonal(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (!x) return c->status;
    Diagonal d = diagonal_of(c, x, 1);
    if (c->status) return c->status;
    int last = x->rank - 2;
    TorDim dims[TOR_MAX_RANK];
    for (int i = 0; i < last; i++) dims[i] = x->dim[d.axes[i]];
    dims[last] = tor_im_const(c, d.rows * d.columns);
    TorValue *flat = tor_im_view(c, tor_im_permute(c, x, d.axes), x->rank - 1, dims);
    int64_t start = d.offset >= 0 ? d.offset : -d.offset * d.columns;
    return RETURN(tor_im_slice(c, flat, last, tor_im_const(c, d.count > 0 ? start : 0),
                               d.columns + 1, tor_im_const(c, d.count)));
}

/// src [.., count] becomes a column [.., rows, 1]; a mask picks where it goes.
static ToroidStatus import_diagonal_scatter(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0), *src = tor_im_tensor(c, 1);
    if (c->status) return c->status;
    Diagonal d = diagonal_of(c, x, 2);
    if (c->status) return c->status;
    if (src->rank != x->rank - 1 || !tor_int_is(c->g, src->dim[src->rank - 1], d.count))
        return tor_im_refuse_arg(c, 1, "expected the shape of the diagonal");
    if (d.count == 0) return RETURN(tor_im_contiguous(c, x));
    int last = src->rank - 1;
    TorDim low[TOR_MAX_RANK], high[TOR_MAX_RANK], zero = tor_im_const(c, 0);
    for (int i = 0; i < last; i++) low[i] = high[i] = zero;
    int64_t above = TOR_MAX(-d.offset, 0);
    low[last] = tor_im_const(c, above), high[last] = tor_im_const(c, d.rows - d.count - above);
    src = tor_im_cast(c, src, x->dtype);
    if (d.count < d.rows) {
        TorAttr a[] = {
            TOR_A_DIMS(low, low, src->rank), TOR_A_DIMS(high, high, src->rank),
            TOR_A_SCALAR(value, tor_scalar_cast((TorScalar){.dtype = TOR_int64}, x->dtype))};
        src = tor_im_add(c, TOR_OP_pad, &src, 1, a, 3);
    }
    TorValue *row = tor_im_arange(c, tor_im_const(c, d.rows), zero, 1, TOR_int64);
    TorValue *column = tor_im_arange(c, tor_im_const(c, d.columns), zero, 1, TOR_int64);
    row = F2(add, tor_im_unsqueeze(c, row, 1), tor_im_int_number(c, d.offset));
    TorValue *r = F3(where, F2(eq, row, column), tor_im_unsqueeze(c, src, last + 1),
                     tor_im_permute(c, x, d.axes));
    int64_t back[TOR_MAX_RANK];
    for (int i = 0; i < x->rank; i++) back[d.axes[i]] = i;
    return RETURN(tor_im_permute(c, r, back));
}

/// Windows of `size` items, `step` apart: [.., n, ..] -> [.., count, .., size].
static ToroidStatus import_unfold(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    int64_t size = tor_im_int(c, 2), step = tor_im_int(c, 3), n;
    if (!x) return c->status;
    int axis = tor_im_axis(c, 1, x->rank);
    if (c->status) return c->status;
    if (x->rank == 0 || x->rank == TOR_MAX_RANK)
        return tor_im_refuse_arg(c, 0, "rank %d is not supported", x->rank);
    if (!tor_int_known(c->g, x->dim[axis], &n))
        return tor_im_refuse(c, "the number of windows must be known when compiling");
    if (size < 0 || size > n || step <= 0)
        return tor_im_refuse(c, "no window of %" PRId64 " in %" PRId64, size, n);
    TorDim count = tor_im_const(c, (n - size) / step + 1), width = tor_im_const(c, size);
    TorDim zero = tor_im_const(c, 0), all = tor_int_mul(c->g, count, width);
    TorValue *first = tor_im_unsqueeze(c, tor_im_arange(c, count, zero, step, TOR_int64), 1);
    TorValue *index = F2(add, first, tor_im_arange(c, width, zero, 1, TOR_int64));
    TorValue *inputs[] = {x, tor_im_view(c, index, 1, &all)};
    TorAttr a = TOR_A_INT(axis, axis);
    TorValue *r = tor_im_add(c, TOR_OP_index_select, inputs, 2, &a, 1);
    TorDim split[TOR_MAX_RANK];
    int64_t axes[TOR_MAX_RANK];
    int rank = x->rank + 1;
    for (int i = 0; i < rank; i++) {
        split[i] = i < axis    ? x->dim[i]
                   : i == axis ? count
                               : (i == axis + 1 ? width : x->dim[i - 1]);
        axes[i] = i <= axis ? i : i < rank - 1 ? i + 1 : axis + 1;
    }
    return RETURN(tor_im_permute(c, tor_im_view(c, r, rank, split), axes));
}

static const TorAtenRow rows[] = {
    {"aten.diagonal.default", "self, offset=0, dim1=0, dim2=1", import_diagonal, 0},
    {"aten.diagonal_copy.default", "self, offset=0, dim1=0, dim2=1", import_diagonal, 0},
    {"aten.diagonal_scatter.default", "self, src, offset=0, dim1=0, dim2=1",
     import_diagonal_scatter, 0},
    {"aten.unfold.default", "self, dimension, size, step", import_unfold, 0},
    {"aten.unfold_copy.default", "self, dimension, size, step", import_unfold, 0},
};
TOR_ATEN_TABLE(diagonal, rows);

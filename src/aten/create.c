/// Tensors out of nothing: full, arange and their kin, triangles.
#include "aten/build.h"
#include "aten/tables.h"

#include <math.h>
#include <string.h>

/// layout, device at `first`, `first + 1`
static void strided_on_cpu(TorCall *c, int first) {
    const char *layout = tor_im_str(c, first, "torch.strided");
    if (!strstr(layout, "strided"))
        tor_im_refuse_arg(c, first, "expected a strided layout, got %s", layout);
    tor_im_cpu_only(c, first + 1);
}

static TorDtype number_dtype(TorDtype d) { return d == TOR_float64 ? TOR_float32 : d; }

/// Filled with a number, or with an integer that is not known yet, or a 0-d tensor.
static TorValue *filled(TorCall *c, TorOperand value, TorDtype dtype, int rank,
                        const TorDim *dims) {
    if (c->status) return NULL;
    if (value.value) return tor_im_expand(c, tor_im_cast(c, value.value, dtype), rank, dims);
    return tor_im_full(c, value.number, dtype, rank, dims);
}

static ToroidStatus import_full(TorCall *c) {
    TorDim dims[TOR_MAX_RANK];
    int rank = tor_im_dims(c, 0, dims);
    TorOperand value = tor_im_operand(c, 1);
    TorDtype dtype =
        tor_im_dtype(c, 2, number_dtype(value.is_number ? value.number.dtype : value.value->dtype));
    strided_on_cpu(c, 3);
    return RETURN(filled(c, value, dtype, rank, dims));
}

static ToroidStatus import_scalar_tensor(TorCall *c) {
    TorOperand value = tor_im_operand(c, 0);
    TorDtype dtype = tor_im_dtype(c, 1, TOR_float32);
    strided_on_cpu(c, 2);
    return RETURN(filled(c, value, dtype, 0, NULL));
}

/// zeros, ones, empty (which is zeros: any value will do). The number is the row's.
static TorOperand row_number(const TorCall *c) {
    return (TorOperand){.is_number = true, .number = {.dtype = TOR_int64, .i = c->row->op}};
}

static ToroidStatus import_fill(TorCall *c) {
    TorDim dims[TOR_MAX_RANK];
    int rank = tor_im_dims(c, 0, dims);
    TorDtype dtype = tor_im_dtype(c, 1, TOR_float32);
    strided_on_cpu(c, 2);
    return RETURN(filled(c, row_number(c), dtype, rank, dims));
}

static ToroidStatus import_empty_strided(TorCall *c) {
    TorDim dims[TOR_MAX_RANK];
    int rank = tor_im_dims(c, 0, dims);
    TorDtype dtype = tor_im_dtype(c, 2, TOR_float32);
    strided_on_cpu(c, 3);
    return RETURN(filled(c, row_number(c), dtype, rank, dims));
}

static ToroidStatus import_fill_like(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (!x) return c->status;
    TorDtype dtype = tor_im_dtype(c, 1, x->dtype);
    strided_on_cpu(c, 2);
    return RETURN(filled(c, row_number(c), dtype, x->rank, x->dim));
}

static ToroidStatus import_full_like(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    TorOperand value = tor_im_operand(c, 1);
    if (c->status) return c->status;
    TorDtype dtype = tor_im_dtype(c, 2, x->dtype);
    strided_on_cpu(c, 3);
    return RETURN(filled(c, value, dtype, x->rank, x->dim));
}

/// self only gives the type.
static ToroidStatus import_new(TorCall *c) {
    TorDim dims[TOR_MAX_RANK];
    TorValue *x = tor_im_tensor(c, 0);
    int rank = tor_im_dims(c, 1, dims);
    if (c->status) return c->status;
    bool strided = c->row->op == 2, full = c->row->op == 3;
    TorOperand value = full ? tor_im_operand(c, 2) : row_number(c);
    if (strided) value.number.i = 0;
    int at = strided || full ? 3 : 2;
    TorDtype dtype = tor_im_dtype(c, at, x->dtype);
    strided_on_cpu(c, at + 1);
    return RETURN(filled(c, value, dtype, rank, dims));
}

static ToroidStatus import_fill_self(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    TorOperand value = tor_im_operand(c, 1);
    return RETURN(x ? filled(c, value, x->dtype, x->rank, x->dim) : NULL);
}

static ToroidStatus import_zero(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    return RETURN(x ? filled(c, row_number(c), x->dtype, x->rank, x->dim) : NULL);
}

// ---------------------------------------------------------------- arange

static TorValue *int_arange(TorCall *c, TorDim start, TorDim end, int64_t step, TorDtype dtype) {
    TorGraph *g = c->g;
    TorDim span = step > 0 ? tor_int_sub(g, end, start) : tor_int_sub(g, start, end);
    int64_t size = step > 0 ? step : -step;
    TorDim count = size == 1 ? span
                             : tor_int_floordiv(g, tor_int_add(g, span, tor_im_const(c, size - 1)),
                                                tor_im_const(c, size));
    int64_t known;
    if (tor_int_known(g, count, &known) && known < 0) {
        tor_im_refuse(c, "the end lies before the start");
        return NULL;
    }
    TorDtype made = tor_dtype_is_float(dtype) || dtype == TOR_bool ? TOR_int64 : dtype;
    return tor_im_cast(c, tor_im_arange(c, count, start, step, made), dtype);
}

/// A float argument as the integer that eager cuts it to.
static void cut(TorCall *c, int i) {
    if (i < 0 || c->args[i].kind != TOR_ARG_FLOAT) return;
    double number = trunc(c->args[i].f);
    if (!(fabs(number) < 9e15)) tor_im_refuse_arg(c, i, "expected an integer");
    if (!c->status) c->args[i] = (TorArg){.kind = TOR_ARG_INT, .i = (int64_t)number};
}

static ToroidStatus arange(TorCall *c, int start_arg, int end_arg, int step_arg, int options) {
    bool floats = false;
    int used[] = {start_arg, end_arg, step_arg};
    for (int i = 0; i < 3; i++) floats |= used[i] >= 0 && c->args[used[i]].kind == TOR_ARG_FLOAT;
    TorDtype dtype = tor_im_dtype(c, options, floats ? TOR_float32 : TOR_int64);
    strided_on_cpu(c, options + 1);
    // Of an int64 range eager counts the cut numbers, of a narrower one the floats.
    for (int i = 0; i < 3 && dtype == TOR_int64; i++) cut(c, used[i]);
    if (!floats || dtype == TOR_int64) {
        TorDim start = start_arg >= 0 ? tor_im_dim(c, start_arg) : tor_im_const(c, 0),
               end = tor_im_dim(c, end_arg);
        int64_t step = step_arg >= 0 ? tor_im_int(c, step_arg) : 1;
        if (step == 0) return tor_im_refuse(c, "step must not be 0");
        return c->status ? c->status : RETURN(int_arange(c, start, end, step, dtype));
    }
    double start = start_arg >= 0 ? tor_im_float(c, start_arg) : 0, end = tor_im_float(c, end_arg);
    double step = step_arg >= 0 ? tor_im_float(c, step_arg) : 1;
    if (c->status) return c->status;
    double count = ceil((end - start) / step);
    if (step == 0 || !(count >= 0 && count < 9e15))
        return tor_im_refuse(c, "start, end and step do not give a length");
    TorDim n = tor_im_const(c, (int64_t)count);
    if (!tor_dtype_is_float(dtype)) {
        if (!(fabs(start) < 9e15 && fabs(step) < 9e15))
            return tor_im_refuse(c, "expected numbers that fit %s", tor_dtype_name(dtype));
        return RETURN(tor_im_cast(
            c, tor_im_arange(c, n, tor_im_const(c, (int64_t)start), (int64_t)step, TOR_int64),
            dtype));
    }
    TorDtype wide = tor_dtype_compute(dtype);
    TorAttr a[] = {TOR_A_DTYPE(dtype, wide), TOR_A_DIMS(dims, &n, 1), TOR_A_FLOAT(fstart, start),
                   TOR_A_FLOAT(fstep, step)};
    return RETURN(tor_im_cast(c, tor_im_add(c, TOR_OP_arange, NULL, 0, a, 4), dtype));
}

static ToroidStatus import_arange(TorCall *c) { return arange(c, -1, 0, -1, 1); }
static ToroidStatus import_arange_start(TorCall *c) { return arange(c, 0, 1, -1, 2); }
static ToroidStatus import_arange_step(TorCall *c) { return arange(c, 0, 1, 2, 3); }

static ToroidStatus import_iota(TorCall *c) {
    TorDim length = tor_im_dim(c, 0), start = tor_im_dim(c, 1);
    int64_t step = tor_im_int(c, 2);
    TorDtype dtype = tor_im_dtype(c, 3, TOR_int64);
    tor_im_cpu_only(c, 4);
    return c->status ? c->status : RETURN(tor_im_arange(c, length, start, step, dtype));
}

// ---------------------------------------------------------------- triangles

/// True where column - row is on the kept side of the diagonal.
static TorValue *triangle(TorCall *c, TorDim rows, TorDim columns, int64_t diagonal, bool lower) {
    TorDim zero = tor_im_const(c, 0);
    TorValue *row = tor_im_unsqueeze(c, tor_im_arange(c, rows, zero, 1, TOR_int64), 1);
    TorValue *limit = diagonal ? F2(add, row, tor_im_int_number(c, diagonal)) : row;
    TorValue *column = tor_im_arange(c, columns, zero, 1, TOR_int64);
    return lower ? F2(le, column, limit) : F2(ge, column, limit);
}

static ToroidStatus import_triangle(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    int64_t diagonal = tor_im_int(c, 1);
    if (!x) return c->status;
    if (x->rank < 2) return tor_im_refuse_arg(c, 0, "expected at least 2 dims, got %d", x->rank);
    TorValue *mask = triangle(c, x->dim[x->rank - 2], x->dim[x->rank - 1], diagonal, c->row->op);
    TorOperand zero = {.is_number = true, .number = {.dtype = TOR_int64}};
    return RETURN(F3(where, mask, x, tor_im_convert(c, zero, x->dtype, true)));
}

static ToroidStatus import_eye(TorCall *c) {
    bool square = c->row->op;
    TorDim n = tor_im_dim(c, 0), m = square ? n : tor_im_dim(c, 1);
    TorDtype dtype = tor_im_dtype(c, square ? 1 : 2, TOR_float32);
    strided_on_cpu(c, square ? 2 : 3);
    if (c->status) return c->status;
    TorValue *row = tor_im_unsqueeze(c, tor_im_arange(c, n, tor_im_const(c, 0), 1, TOR_int64), 1);
    return RETURN(
        tor_im_cast(c, F2(eq, tor_im_arange(c, m, tor_im_const(c, 0), 1, TOR_int64), row), dtype));
}

#define OPTIONS "dtype=None, layout=None, device=None, pin_memory=None"

static const TorAtenRow rows[] = {
    {"aten.full.default", "size, fill_value, *, " OPTIONS, import_full, 0},
    {"aten.full_like.default", "self, fill_value, *, " OPTIONS ", memory_format=None",
     import_full_like, 0},
    {"aten.scalar_tensor.default", "s, *, " OPTIONS, import_scalar_tensor, 0},
    {"aten.zeros.default", "size, *, " OPTIONS, import_fill, 0},
    {"aten.ones.default", "size, *, " OPTIONS, import_fill, 1},
    {"aten.empty.memory_format", "size, *, " OPTIONS ", memory_format=None", import_fill, 0},
    {"aten.empty_permuted.default", "size, physical_layout, *, " OPTIONS, import_empty_strided, 0},
    {"aten.empty_strided.default", "size, stride, *, " OPTIONS, import_empty_strided, 0},
    {"aten.zeros_like.default", "self, *, " OPTIONS ", memory_format=None", import_fill_like, 0},
    {"aten.ones_like.default", "self, *, " OPTIONS ", memory_format=None", import_fill_like, 1},
    {"aten.empty_like.default", "self, *, " OPTIONS ", memory_format=None", import_fill_like, 0},
    {"aten.new_zeros.default", "self, size, *, " OPTIONS, import_new, 0},
    {"aten.new_ones.default", "self, size, *, " OPTIONS, import_new, 1},
    {"aten.new_empty.default", "self, size, *, " OPTIONS, import_new, 0},
    {"aten.new_empty_strided.default", "self, size, stride, *, " OPTIONS, import_new, 2},
    {"aten.new_full.default", "self, size, fill_value, *, " OPTIONS, import_new, 3},
    {"aten.fill.Scalar", "self, value", import_fill_self, 0},
    {"aten.fill.Tensor", "self, value", import_fill_self, 0},
    {"aten.zero.default", "self", import_zero, 0},
    {"aten.arange.default", "end, *, " OPTIONS, import_arange, 0},
    {"aten.arange.start", "start, end, *, " OPTIONS, import_arange_start, 0},
    {"aten.arange.start_step", "start, end, step=1, *, " OPTIONS, import_arange_step, 0},
    {"prims.iota.default", "length, *, start, step, dtype, device, requires_grad", import_iota, 0},
    {"aten.tril.default", "self, diagonal=0", import_triangle, 1},
    {"aten.triu.default", "self, diagonal=0", import_triangle, 0},
    {"aten.eye.default", "n, *, " OPTIONS, import_eye, 1},
    {"aten.eye.m", "n, m, *, " OPTIONS, import_eye, 0},
};
TOR_ATEN_TABLE(create, rows);

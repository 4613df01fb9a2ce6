/// Integer arithmetic of FX's shape nodes, on the graph's integers; and calls that only assert.
///
/// Numbers that are known are folded here, floats too; a float that depends on a symbol is refused.
#include "aten/build.h"
#include "aten/tables.h"

#include <math.h>

static bool is_known(TorCall *c, int i, double *f, bool *is_float) {
    const TorArg *a = &c->args[i];
    int64_t v;
    *is_float = a->kind == TOR_ARG_FLOAT;
    if (*is_float)
        *f = a->f;
    else if (a->kind == TOR_ARG_INT)
        *f = (double)a->i;
    else if (a->kind == TOR_ARG_BOOL)
        *f = a->b;
    else if (a->kind == TOR_ARG_DIM && tor_int_known(c->g, a->dim, &v))
        *f = (double)v;
    else
        return false;
    return true;
}

static ToroidStatus return_float(TorCall *c, double f) {
    *c->result = TOR_ARG_OF_FLOAT(f);
    return TOROID_OK;
}

static ToroidStatus return_bool(TorCall *c, TorDim dim) {
    int64_t v;
    if (c->status || !tor_int_known(c->g, dim, &v)) return tor_im_return_dim(c, dim);
    *c->result = TOR_ARG_OF_BOOL(v != 0);
    return TOROID_OK;
}

/// Python's result for two known numbers of which one is a float.
static ToroidStatus float_arithmetic(TorCall *c, double a, double b) {
    switch (c->row->op) {
        case TOR_INT_add: return return_float(c, a + b);
        case TOR_INT_sub: return return_float(c, a - b);
        case TOR_INT_mul: return return_float(c, a * b);
        case TOR_INT_floordiv: return return_float(c, floor(a / b));
        case TOR_INT_pow: return return_float(c, pow(a, b));
        case TOR_INT_min: return return_float(c, a < b ? a : b);
        case TOR_INT_max: return return_float(c, a > b ? a : b);
        case TOR_INT_mod: {
            double r = fmod(a, b);
            return return_float(c, r != 0 && (r < 0) != (b < 0) ? r + b : r);
        }
        default: return tor_im_refuse(c, "floats are not supported");
    }
}

static ToroidStatus import_binary(TorCall *c) {
    double a = 0, b = 0;
    bool fa, fb;
    if (is_known(c, 0, &a, &fa) & is_known(c, 1, &b, &fb) && (fa || fb))
        return float_arithmetic(c, a, b);
    TorDim x = tor_im_dim(c, 0), y = tor_im_dim(c, 1);
    return c->status ? c->status
                     : tor_im_return_dim(c, tor_int_binary(c->g, (TorIntOp)c->row->op, x, y));
}

enum { EQ, NE, LT, LE, GT, GE };

static ToroidStatus import_compare(TorCall *c) {
    double a = 0, b = 0;
    bool fa, fb;
    int op = c->row->op;
    if (is_known(c, 0, &a, &fa) & is_known(c, 1, &b, &fb) && (fa || fb)) {
        bool r = op == EQ   ? a == b
                 : op == NE ? a != b
                 : op == LT ? a < b
                 : op == LE ? a <= b
                 : op == GT ? a > b
                            : a >= b;
        *c->result = TOR_ARG_OF_BOOL(r);
        return TOROID_OK;
    }
    TorDim x = tor_im_dim(c, 0), y = tor_im_dim(c, 1);
    if (c->status) return c->status;
    static const TorIntOp ops[] = {TOR_INT_eq, TOR_INT_ne, TOR_INT_lt,
                                   TOR_INT_le, TOR_INT_lt, TOR_INT_le};
    return return_bool(
        c, op >= GT ? tor_int_binary(c->g, ops[op], y, x) : tor_int_binary(c->g, ops[op], x, y));
}

static ToroidStatus import_truediv(TorCall *c) {
    double a = 0, b = 0;
    bool fa, fb;
    if (!(is_known(c, 0, &a, &fa) & is_known(c, 1, &b, &fb)))
        return tor_im_refuse(c, "a fraction of symbolic integers is not supported");
    if (b == 0) return tor_im_refuse(c, "division by zero");
    return return_float(c, a / b);
}

enum { IDENTITY, NEGATE, ABSOLUTE, NOT, TO_INT, FLOOR, CEIL, TO_FLOAT };

static ToroidStatus import_unary(TorCall *c) {
    double f = 0;
    bool is_float;
    bool known = is_known(c, 0, &f, &is_float);
    int op = c->row->op;
    if (op == TO_FLOAT)
        return known ? return_float(c, f)
                     : tor_im_refuse(c, "a float of a symbolic integer is not supported");
    if (known && is_float) {
        if (op == NEGATE) return return_float(c, -f);
        if (op == ABSOLUTE) return return_float(c, fabs(f));
        if (op == NOT) return tor_im_refuse(c, "expected a bool");
        f = op == FLOOR ? floor(f) : op == CEIL ? ceil(f) : trunc(f);
        if (!(fabs(f) < 9e18)) return tor_im_refuse(c, "%g is no integer", f);
        return tor_im_return_dim(c, tor_im_const(c, (int64_t)f));
    }
    TorDim x = tor_im_dim(c, 0);
    if (c->status) return c->status;
    TorDim zero = tor_im_const(c, 0);
    switch (op) {
        case NEGATE: return tor_im_return_dim(c, tor_int_sub(c->g, zero, x));
        case ABSOLUTE:
            return tor_im_return_dim(
                c, tor_int_binary(c->g, TOR_INT_max, x, tor_int_sub(c->g, zero, x)));
        case NOT: return return_bool(c, tor_int_binary(c->g, TOR_INT_eq, x, zero));
        default: return tor_im_return_dim(c, x);
    }
}

static ToroidStatus import_sum(TorCall *c) {
    TorDim sum = tor_im_const(c, 0), dim;
    const TorArg list = c->args[0];
    if (list.kind != TOR_ARG_LIST) return tor_im_refuse_arg(c, 0, "expected a list of integers");
    for (int i = 0; i < list.count; i++) {
        c->args[0] = list.list[i];
        dim = tor_im_dim(c, 0);
        if (c->status) return c->status;
        sum = tor_int_add(c->g, sum, dim);
    }
    return tor_im_return_dim(c, sum);
}

/// a and b, a or b, of bools.
static ToroidStatus import_logic(TorCall *c) {
    TorDim x = tor_im_dim(c, 0), y = tor_im_dim(c, 1);
    return c->status ? c->status : return_bool(c, tor_int_binary(c->g, (TorIntOp)c->row->op, x, y));
}

// ---------------------------------------------------------------- sizes of tensors

static ToroidStatus import_size(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (!x) return c->status;
    int axis = tor_im_axis(c, 1, x->rank);
    if (!c->status && x->rank == 0) return tor_im_refuse(c, "a 0-d tensor has no sizes");
    return c->status ? c->status : tor_im_return_dim(c, x->dim[axis]);
}

static ToroidStatus import_stride(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (!x) return c->status;
    int axis = tor_im_axis(c, 1, x->rank);
    if (!c->status && x->rank == 0) return tor_im_refuse(c, "a 0-d tensor has no strides");
    if (c->status) return c->status;
    if (x->node->op != TOR_OP_input)
        return tor_im_refuse(c, "the stride of a computed tensor is not known");
    return tor_im_return_dim(c, tor_im_input_stride(c, x, axis));
}

static ToroidStatus import_storage_offset(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (!x) return c->status;
    if (x->node->op != TOR_OP_input)
        return tor_im_refuse(c, "where a computed tensor lies is not known");
    return tor_im_return_dim(c, tor_int_start(c->g, tor_im_input_index(x)));
}

static ToroidStatus import_numel(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    return x ? tor_im_return_dim(c, tor_value_numel(c->g, x)) : c->status;
}

static ToroidStatus import_size_list(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    if (!x) return c->status;
    TorArg *items = tor_arena_alloc(c->g->arena, (size_t)TOR_MAX(x->rank, 1) * sizeof *items);
    if (!items) return tor_no_memory();
    for (int i = 0; i < x->rank; i++) {
        int64_t v;
        items[i] =
            tor_int_known(c->g, x->dim[i], &v) ? TOR_ARG_OF_INT(v) : TOR_ARG_OF_DIM(x->dim[i]);
    }
    *c->result = TOR_ARG_OF_LIST(items, x->rank);
    return TOROID_OK;
}

static ToroidStatus import_nothing(TorCall *c) { return tor_im_return_none(c); }

static const TorAtenRow rows[] = {
    {"_operator.add", "a, b", import_binary, TOR_INT_add},
    {"_operator.sub", "a, b", import_binary, TOR_INT_sub},
    {"_operator.mul", "a, b", import_binary, TOR_INT_mul},
    {"_operator.floordiv", "a, b", import_binary, TOR_INT_floordiv},
    {"_operator.mod", "a, b", import_binary, TOR_INT_mod},
    {"_operator.pow", "a, b", import_binary, TOR_INT_pow},
    {"torch.sym_min", "a, b", import_binary, TOR_INT_min},
    {"torch.sym_max", "a, b", import_binary, TOR_INT_max},
    {"builtins.min", "a, b", import_binary, TOR_INT_min},
    {"builtins.max", "a, b", import_binary, TOR_INT_max},
    {"_operator.truediv", "a, b", import_truediv, 0},
    {"_operator.eq", "a, b", import_compare, EQ},
    {"_operator.ne", "a, b", import_compare, NE},
    {"_operator.lt", "a, b", import_compare, LT},
    {"_operator.le", "a, b", import_compare, LE},
    {"_operator.gt", "a, b", import_compare, GT},
    {"_operator.ge", "a, b", import_compare, GE},
    {"_operator.and_", "a, b", import_logic, TOR_INT_min},
    {"_operator.or_", "a, b", import_logic, TOR_INT_max},
    {"_operator.neg", "a", import_unary, NEGATE},
    {"_operator.pos", "a", import_unary, IDENTITY},
    {"_operator.abs", "a", import_unary, ABSOLUTE},
    {"_operator.not_", "a", import_unary, NOT},
    {"torch.sym_not", "a", import_unary, NOT},
    {"torch.sym_int", "a", import_unary, TO_INT},
    {"torch.sym_float", "a", import_unary, TO_FLOAT},
    {"math.floor", "a", import_unary, FLOOR},
    {"math.ceil", "a", import_unary, CEIL},
    {"math.trunc", "a", import_unary, TO_INT},
    {"torch.sym_sum", "args", import_sum, 0},
    {"aten.sym_size.int", "self, dim", import_size, 0},
    {"aten.sym_size.default", "self", import_size_list, 0},
    {"aten.sym_stride.int", "self, dim", import_stride, 0},
    {"aten.sym_storage_offset.default", "self", import_storage_offset, 0},
    {"aten.sym_numel.default", "self", import_numel, 0},
    {"aten._assert_tensor_metadata.default",
     "a, size=None, stride=None, dtype=None, *, device=None, layout=None", import_nothing, 0},
    {"aten._assert_scalar.default", "self, assert_msg", import_nothing, 0},
    {"aten._assert_async.default", "self", import_nothing, 0},
    {"aten._assert_async.msg", "self, assert_msg", import_nothing, 0},
    {"aten.sym_constrain_range.default", "size, *, min=None, max=None", import_nothing, 0},
    {"aten.sym_constrain_range_for_size.default", "size, *, min=None, max=None", import_nothing, 0},
};
TOR_ATEN_TABLE(integers, rows);

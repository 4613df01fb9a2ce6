/// Reading the arguments of a call.
#include "aten/build.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *kind_name(const TorArg *a) {
    static const char *const names[] = {"None",     "an integer", "a symbolic integer",
                                        "a float",  "a bool",     "a dtype",
                                        "a string", "a tensor",   "a list"};
    return names[a->kind];
}

static ToroidStatus keep(TorCall *c, const char *param, const char *format, va_list list) {
    if (c->status) return c->status;
    char message[256];
    vsnprintf(message, sizeof message, format, list);
    c->status = param ? tor_refuse("%s: argument '%s': %s", c->row->name, param, message)
                      : tor_refuse("%s: %s", c->row->name, message);
    return c->status;
}

ToroidStatus tor_im_refuse(TorCall *c, const char *format, ...) {
    va_list list;
    va_start(list, format);
    keep(c, NULL, format, list);
    va_end(list);
    return c->status;
}

ToroidStatus tor_im_refuse_arg(TorCall *c, int i, const char *format, ...) {
    char name[48];
    va_list list;
    va_start(list, format);
    keep(c, tor_schema_param(c->row->schema, i, name, sizeof name), format, list);
    va_end(list);
    return c->status;
}

ToroidStatus tor_im_check(TorCall *c, ToroidStatus status) {
    if (c->status || status == TOROID_OK) return c->status;
    // What the IR calls wrong is either wrong in eager too, which then says so best, or a limit of
    // the IR.
    if (status == TOROID_INVALID) {
        char message[512];
        snprintf(message, sizeof message, "%s", toroid_last_error());
        status = tor_refuse("%s", message);
    }
    return c->status = tor_error_prefix(status, "%s", c->row->name);
}

static void expected(TorCall *c, int i, const char *what) {
    tor_im_refuse_arg(c, i, "expected %s, got %s", what, kind_name(&c->args[i]));
}

TorValue *tor_im_tensor(TorCall *c, int i) {
    if (c->status) return NULL;
    if (c->args[i].kind == TOR_ARG_VALUE && c->args[i].value) return c->args[i].value;
    expected(c, i, "a tensor");
    return NULL;
}

TorValue *tor_im_tensor_or_null(TorCall *c, int i) {
    return tor_im_has(c, i) ? tor_im_tensor(c, i) : NULL;
}

static bool known_int(const TorCall *c, const TorArg *a, int64_t *out) {
    if (a->kind == TOR_ARG_INT)
        *out = a->i;
    else if (a->kind == TOR_ARG_BOOL)
        *out = a->b;
    else if (a->kind == TOR_ARG_DIM)
        return tor_int_known(c->g, a->dim, out);
    else
        return false;
    return true;
}

bool tor_im_flag(TorCall *c, int i) {
    int64_t v = 0;
    if (c->status) return false;
    if (!tor_im_has(c, i)) return false;
    if (!known_int(c, &c->args[i], &v)) expected(c, i, "a bool");
    return v != 0;
}

int64_t tor_im_int(TorCall *c, int i) {
    int64_t v = 0;
    if (!c->status && !known_int(c, &c->args[i], &v))
        expected(c, i, "an integer that is known when compiling");
    return v;
}

double tor_im_float(TorCall *c, int i) {
    int64_t v = 0;
    if (c->status) return 0;
    if (c->args[i].kind == TOR_ARG_FLOAT) return c->args[i].f;
    if (!known_int(c, &c->args[i], &v)) expected(c, i, "a number that is known when compiling");
    return (double)v;
}

static bool any_int(TorCall *c, const TorArg *a, TorDim *out) {
    int64_t v;
    if (a->kind == TOR_ARG_DIM)
        *out = a->dim;
    else if (known_int(c, a, &v))
        *out = tor_int_const(c->g, v);
    else
        return false;
    return true;
}

TorDim tor_im_dim(TorCall *c, int i) {
    TorDim dim = TOR_NO_DIM;
    if (!c->status && !any_int(c, &c->args[i], &dim)) expected(c, i, "an integer");
    return dim;
}

TorDtype tor_im_dtype(TorCall *c, int i, TorDtype or_dtype) {
    if (c->status || !tor_im_has(c, i)) return or_dtype;
    TorDtype dtype = or_dtype;
    if (c->args[i].kind == TOR_ARG_DTYPE)
        dtype = c->args[i].dtype;
    else if (c->args[i].kind == TOR_ARG_STR) {
        const char *name = c->args[i].str;
        if (strncmp(name, "torch.", 6) == 0) name += 6;
        if (tor_dtype_parse(&dtype, name))
            tor_im_refuse_arg(c, i, "type %s is not supported", name);
    } else
        expected(c, i, "a dtype");
    return dtype;
}

const char *tor_im_str(TorCall *c, int i, const char *or_str) {
    if (c->status || !tor_im_has(c, i)) return or_str;
    if (c->args[i].kind == TOR_ARG_STR) return c->args[i].str;
    expected(c, i, "a string");
    return or_str;
}

int tor_im_dims(TorCall *c, int i, TorDim *out) {
    if (c->status) return 0;
    const TorArg *a = &c->args[i];
    int n = a->kind == TOR_ARG_LIST ? a->count : 1;
    if (n > TOR_MAX_RANK) {
        tor_im_refuse_arg(c, i, "at most %d integers are supported, got %d", TOR_MAX_RANK, n);
        return 0;
    }
    for (int k = 0; k < n; k++)
        if (!any_int(c, a->kind == TOR_ARG_LIST ? &a->list[k] : a, &out[k])) {
            expected(c, i, "a list of integers");
            return 0;
        }
    return n;
}

int tor_im_int_list(TorCall *c, int i, int64_t *out) {
    TorDim dims[TOR_MAX_RANK];
    int n = tor_im_dims(c, i, dims);
    for (int k = 0; k < n; k++)
        if (!tor_int_known(c->g, dims[k], &out[k])) {
            expected(c, i, "integers that are known when compiling");
            return 0;
        }
    return n;
}

void tor_im_ints(TorCall *c, int i, int64_t *out, int count) {
    int64_t given[TOR_MAX_RANK] = {0};
    int n = tor_im_int_list(c, i, given);
    if (c->status)
        n = 0;
    else if (n != 1 && n != count)
        tor_im_refuse_arg(c, i, "expected %d integers, got %d", count, n);
    for (int k = 0; k < count; k++) out[k] = n == 1 ? given[0] : n == count ? given[k] : 1;
}

int tor_im_wrap_axis(TorCall *c, int64_t axis, int rank) {
    int limit = TOR_MAX(rank, 1);
    if (axis < -limit || axis >= limit) {
        tor_im_refuse(c, "axis %" PRId64 " is out of range for rank %d", axis, rank);
        return 0;
    }
    return (int)(axis < 0 ? axis + limit : axis);
}

int tor_im_axis(TorCall *c, int i, int rank) { return tor_im_wrap_axis(c, tor_im_int(c, i), rank); }

int tor_im_axes(TorCall *c, int i, int rank, int64_t *out) {
    int64_t given[TOR_MAX_RANK];
    int n = tor_im_has(c, i) ? tor_im_int_list(c, i, given) : 0;
    bool in[TOR_MAX_RANK + 1] = {false};
    for (int k = 0; k < n; k++) {
        int axis = tor_im_wrap_axis(c, given[k], rank);
        if (in[axis]) tor_im_refuse_arg(c, i, "axis %d appears twice", axis);
        in[axis] = true;
    }
    int count = 0;
    for (int axis = 0; axis < rank; axis++)
        if (n == 0 || in[axis]) out[count++] = axis;
    return count;
}

int tor_im_tensors(TorCall *c, int i, TorValue **out, int max, bool optional) {
    if (c->status) return 0;
    const TorArg *a = &c->args[i];
    if (a->kind != TOR_ARG_LIST) {
        expected(c, i, "a list of tensors");
        return 0;
    }
    if (a->count > max) {
        tor_im_refuse_arg(c, i, "at most %d tensors are supported, got %d", max, a->count);
        return 0;
    }
    for (int k = 0; k < a->count; k++) {
        const TorArg *item = &a->list[k];
        if (item->kind == TOR_ARG_VALUE)
            out[k] = item->value;
        else if (item->kind == TOR_ARG_NONE && optional)
            out[k] = NULL;
        else {
            tor_im_refuse_arg(c, i, "expected tensors, item %d is %s", k, kind_name(item));
            return 0;
        }
    }
    return a->count;
}

void tor_im_cpu_only(TorCall *c, int i) {
    const char *device = tor_im_str(c, i, "cpu");
    if (strncmp(device, "cpu", 3) != 0) tor_im_refuse_arg(c, i, "expected the CPU, got %s", device);
}

// ---------------------------------------------------------------- operands

TorOperand tor_im_operand_of(TorValue *value) {
    TorOperand o = {.value = value};
    TorScalar number;
    // A Python number that the frontend gave as a value.
    if (value && value->rank == 0 && value->node && value->node->op == TOR_OP_constant &&
        tor_attr_int(value->node, TOR_ATTR_weak, 0) && tor_value_number(value, &number))
        o = (TorOperand){.is_number = true, .number = number};
    return o;
}

TorOperand tor_im_operand(TorCall *c, int i) {
    TorOperand o = {.is_number = true};
    const TorArg *a = &c->args[i];
    if (c->status) return o;
    int64_t v;
    switch (a->kind) {
        case TOR_ARG_VALUE: return tor_im_operand_of(tor_im_tensor(c, i));
        case TOR_ARG_FLOAT: o.number = (TorScalar){.dtype = TOR_float64, .f = a->f}; break;
        case TOR_ARG_INT: o.number = (TorScalar){.dtype = TOR_int64, .i = a->i}; break;
        case TOR_ARG_BOOL: o.number = (TorScalar){.dtype = TOR_bool, .i = a->b}; break;
        case TOR_ARG_DIM:
            o.number = (TorScalar){.dtype = TOR_int64};
            if (tor_int_known(c->g, a->dim, &v))
                o.number.i = v;
            else
                o.value = tor_im_dim_tensor(c, a->dim);
            break;
        default: expected(c, i, "a tensor or a number");
    }
    return o;
}

TorDtype tor_im_promote(const TorOperand *operands, int count) {
    TorPromotion p = TOR_PROMOTION_NONE;
    for (int i = 0; i < count; i++) {
        const TorOperand *o = &operands[i];
        if (o->is_number)
            tor_promote_number(&p, o->number.dtype);
        else if (o->value)
            tor_promote_tensor(&p, o->value->dtype, o->value->rank);
    }
    return tor_promote_result(&p);
}

TorValue *tor_im_convert(TorCall *c, TorOperand o, TorDtype dtype, bool round) {
    if (c->status) return NULL;
    if (o.value) return tor_im_cast(c, o.value, dtype);
    TorScalar s = o.number;
    if (round || !tor_dtype_is_float(dtype)) s = tor_scalar_cast(s, dtype);
    s = tor_scalar_cast(s, tor_dtype_is_float(dtype) ? TOR_float64
                           : dtype == TOR_bool       ? TOR_bool
                                                     : TOR_int64);
    TorValue *v = NULL;
    tor_im_check(c, tor_graph_number(c->g, s, &v));
    return v;
}

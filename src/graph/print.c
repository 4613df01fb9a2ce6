// Integers, types, numbers and attributes as text.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/print.h"

// ---------------------------------------------------------------- integers

static int precedence(TorIntOp op) {
    switch (op) {
        case TOR_INT_eq:
        case TOR_INT_ne:
        case TOR_INT_lt:
        case TOR_INT_le: return 1;
        case TOR_INT_add:
        case TOR_INT_sub: return 2;
        case TOR_INT_mul:
        case TOR_INT_floordiv:
        case TOR_INT_mod: return 3;
        case TOR_INT_pow: return 4;
        default: return 5;
    }
}

static void put_call(TorText *t, const TorGraph *g, const char *name, const TorInt *x) {
    tor_text_put(t, "%s(", name);
    tor_put_int(t, g, x->a, 0);
    tor_text_put(t, ", ");
    tor_put_int(t, g, x->b, 0);
    tor_text_put(t, ")");
}

// a + b; b's minus sign, if it has one, becomes the operator.
static void put_sum(TorText *t, const TorGraph *g, const TorInt *x) {
    const TorInt *b = tor_int_get(g, x->b);
    int64_t c;
    tor_put_int(t, g, x->a, 2);
    if (b->op == TOR_INT_const && b->value < 0 && b->value != INT64_MIN) {
        tor_text_put(t, "-%" PRId64, -b->value);
    } else if (b->op == TOR_INT_mul && tor_int_known(g, b->b, &c) && c < 0 && c != INT64_MIN) {
        tor_text_put(t, "-");
        tor_put_int(t, g, b->a, 3);
        if (c != -1) tor_text_put(t, "*%" PRId64, -c);
    } else {
        tor_text_put(t, "+");
        tor_put_int(t, g, x->b, 3);
    }
}

void tor_put_int(TorText *t, const TorGraph *g, TorDim dim, int outer) {
    static const char *const signs[] = {
        [TOR_INT_sub] = "-", [TOR_INT_mul] = "*",  [TOR_INT_floordiv] = "//",
        [TOR_INT_mod] = "%", [TOR_INT_pow] = "**", [TOR_INT_eq] = "==",
        [TOR_INT_ne] = "!=", [TOR_INT_lt] = "<",   [TOR_INT_le] = "<="};
    if (t->full) return;  // also what ends a deep expression
    if (dim >= tor_int_count(g)) {
        tor_text_put(t, "?");
        return;
    }
    const TorInt *x = tor_int_get(g, dim);
    switch (x->op) {
        case TOR_INT_const: tor_text_put(t, "%" PRId64, x->value); return;
        case TOR_INT_scalar:
        case TOR_INT_size:
        case TOR_INT_stride:
        case TOR_INT_start:
        case TOR_INT_memory: tor_text_put(t, "s%" PRId64, x->value); return;
        case TOR_INT_min: put_call(t, g, "min", x); return;
        case TOR_INT_max: put_call(t, g, "max", x); return;
        case TOR_INT_broadcast: put_call(t, g, "broadcast", x); return;
        case TOR_INT_within: put_call(t, g, "within", x); return;
        case TOR_INT_same: put_call(t, g, "same", x); return;
        default: break;
    }
    int own = precedence(x->op);
    if (own < outer) tor_text_put(t, "(");
    if (x->op == TOR_INT_add) {
        put_sum(t, g, x);
    } else {
        tor_put_int(t, g, x->a, x->op == TOR_INT_pow ? own + 1 : own);
        tor_text_put(t, "%s", signs[x->op]);
        tor_put_int(t, g, x->b, own + 1);
    }
    if (own < outer) tor_text_put(t, ")");
}

const char *tor_int_print(const TorGraph *g, TorDim dim, char *text, size_t bytes) {
    TorText t = tor_text_fixed(text, bytes);
    tor_put_int(&t, g, dim, 0);
    if (t.full && bytes > 4) memcpy(text + bytes - 4, "...", 4);
    return text;
}

// ---------------------------------------------------------------- types and numbers

void tor_put_dims(TorText *t, const TorGraph *g, const TorDim *dims, int n) {
    tor_text_put(t, "[");
    for (int i = 0; i < n; ++i) {
        if (i) tor_text_put(t, ", ");
        tor_put_int(t, g, dims[i], 0);
    }
    tor_text_put(t, "]");
}

void tor_put_type(TorText *t, const TorGraph *g, const TorValue *v) {
    tor_text_put(t, "%s", tor_dtype_name(v->dtype));
    tor_put_dims(t, g, v->dim, v->rank);
}

const char *tor_type_print(const TorGraph *g, const TorValue *v, char *text, size_t bytes) {
    TorText t = tor_text_fixed(text, bytes);
    tor_put_type(&t, g, v);
    if (t.full && bytes > 4) memcpy(text + bytes - 4, "...", 4);
    return text;
}

// The shortest text that reads back as the same number, and looks like a float.
static void put_float(TorText *t, double f) {
    char text[40];
    for (int digits = 6; digits <= 17; ++digits) {
        snprintf(text, sizeof(text), "%.*g", digits, f);
        double back;
        if (isnan(f) || (sscanf(text, "%lf", &back) == 1 && back == f)) break;
    }
    tor_text_put(t, "%s%s", text, strpbrk(text, ".en") ? "" : ".0");
}

void tor_put_scalar(TorText *t, TorScalar s) {
    if (s.dtype == TOR_bool)
        tor_text_put(t, "%s", s.i ? "true" : "false");
    else if (tor_dtype_is_float(s.dtype))
        put_float(t, s.f);
    else
        tor_text_put(t, "%" PRId64, s.i);
}

// Small data is shown, of large data the size.
static void put_blob(TorText *t, const TorNode *node, const TorAttr *a) {
    enum { SHOWN = 8 };
    size_t item = node->op == TOR_OP_constant ? tor_dtype_size(node->outputs[0]->dtype) : 0;
    if (!item || (size_t)a->count > SHOWN * item) {
        tor_text_put(t, "%d bytes", a->count);
        return;
    }
    tor_text_put(t, "{");
    for (size_t i = 0; i < (size_t)a->count / item; ++i) {
        if (i) tor_text_put(t, ", ");
        tor_put_scalar(
            t, tor_scalar_load((const uint8_t *)a->blob + i * item, node->outputs[0]->dtype));
    }
    tor_text_put(t, "}");
}

void tor_put_attr(TorText *t, const TorGraph *g, const TorNode *node, const TorAttr *a) {
    switch (a->kind) {
        case TOR_ATTR_INT: tor_text_put(t, "%" PRId64, a->i); break;
        case TOR_ATTR_FLOAT: put_float(t, a->f); break;
        case TOR_ATTR_SCALAR: tor_put_scalar(t, a->scalar); break;
        case TOR_ATTR_DTYPE: tor_text_put(t, "%s", tor_dtype_name(a->dtype)); break;
        case TOR_ATTR_DIM: tor_put_int(t, g, a->dim, 0); break;
        case TOR_ATTR_DIMS: tor_put_dims(t, g, a->dims, a->count); break;
        case TOR_ATTR_INTS:
            tor_text_put(t, "[");
            for (int i = 0; i < a->count; ++i)
                tor_text_put(t, "%s%" PRId64, i ? ", " : "", a->ints[i]);
            tor_text_put(t, "]");
            break;
        case TOR_ATTR_STR:
            tor_text_put(t, "\"");
            tor_text_add(t, a->str);
            tor_text_put(t, "\"");
            break;
        case TOR_ATTR_BLOB: put_blob(t, node, a); break;
    }
}

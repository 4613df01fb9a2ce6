// The graph as a table for people:
//
//   s0 = x.size(0)
//
//   %0  input   float32[s0, 768]          x
//   %1  input   float32[3072, 768]        w (frozen)
//   %2  linear  float32[s0, 3072]  %0 %1
//   %3  mul     float32[s0, 3072]  %2 2.0
//       output                     %3
//
// Python numbers stand in their users' lines and have no line of their own.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "graph/internal.h"

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

static void put_int(TorText *t, const TorGraph *g, TorDim dim, int outer);

static void put_call(TorText *t, const TorGraph *g, const char *name, const TorInt *x) {
    tor_text_put(t, "%s(", name);
    put_int(t, g, x->a, 0);
    tor_text_put(t, ", ");
    put_int(t, g, x->b, 0);
    tor_text_put(t, ")");
}

// a + b; b's minus sign, if it has one, becomes the operator.
static void put_sum(TorText *t, const TorGraph *g, const TorInt *x) {
    const TorInt *b = tor_int_get(g, x->b);
    int64_t c;
    put_int(t, g, x->a, 2);
    if (b->op == TOR_INT_const && b->value < 0 && b->value != INT64_MIN) {
        tor_text_put(t, "-%" PRId64, -b->value);
    } else if (b->op == TOR_INT_mul && tor_int_known(g, b->b, &c) && c < 0 && c != INT64_MIN) {
        tor_text_put(t, "-");
        put_int(t, g, b->a, 3);
        if (c != -1) tor_text_put(t, "*%" PRId64, -c);
    } else {
        tor_text_put(t, "+");
        put_int(t, g, x->b, 3);
    }
}

static void put_int(TorText *t, const TorGraph *g, TorDim dim, int outer) {
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
        put_int(t, g, x->a, x->op == TOR_INT_pow ? own + 1 : own);
        tor_text_put(t, "%s", signs[x->op]);
        put_int(t, g, x->b, own + 1);
    }
    if (own < outer) tor_text_put(t, ")");
}

const char *tor_int_print(const TorGraph *g, TorDim dim, char *text, size_t bytes) {
    TorText t = tor_text_fixed(text, bytes);
    put_int(&t, g, dim, 0);
    if (t.full && bytes > 4) memcpy(text + bytes - 4, "...", 4);
    return text;
}

// ---------------------------------------------------------------- parts of a line

static void put_dims(TorText *t, const TorGraph *g, const TorDim *dims, int n) {
    tor_text_put(t, "[");
    for (int i = 0; i < n; ++i) {
        if (i) tor_text_put(t, ", ");
        put_int(t, g, dims[i], 0);
    }
    tor_text_put(t, "]");
}

static void put_type(TorText *t, const TorGraph *g, const TorValue *v) {
    tor_text_put(t, "%s", tor_dtype_name(v->dtype));
    put_dims(t, g, v->dim, v->rank);
}

const char *tor_type_print(const TorGraph *g, const TorValue *v, char *text, size_t bytes) {
    TorText t = tor_text_fixed(text, bytes);
    put_type(&t, g, v);
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

static void put_scalar(TorText *t, TorScalar s) {
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
        put_scalar(t,
                   tor_scalar_load((const uint8_t *)a->blob + i * item, node->outputs[0]->dtype));
    }
    tor_text_put(t, "}");
}

static void put_attr(TorText *t, const TorGraph *g, const TorNode *node, const TorAttr *a) {
    tor_text_put(t, "%s=", tor_attr_name(a->key));
    switch (a->kind) {
        case TOR_ATTR_INT: tor_text_put(t, "%" PRId64, a->i); break;
        case TOR_ATTR_FLOAT: put_float(t, a->f); break;
        case TOR_ATTR_SCALAR: put_scalar(t, a->scalar); break;
        case TOR_ATTR_DTYPE: tor_text_put(t, "%s", tor_dtype_name(a->dtype)); break;
        case TOR_ATTR_DIM: put_int(t, g, a->dim, 0); break;
        case TOR_ATTR_DIMS: put_dims(t, g, a->dims, a->count); break;
        case TOR_ATTR_INTS:
            tor_text_put(t, "[");
            for (int i = 0; i < a->count; ++i)
                tor_text_put(t, "%s%" PRId64, i ? ", " : "", a->ints[i]);
            tor_text_put(t, "]");
            break;
        case TOR_ATTR_STR: tor_text_put(t, "\"%s\"", a->str); break;
        case TOR_ATTR_BLOB: put_blob(t, node, a); break;
    }
}

// Said elsewhere in the line: the type column, or the input column of the output node.
static bool is_implied(const TorNode *node, const TorAttr *a) {
    if (a->key == TOR_ATTR_dtype)
        return a->kind == TOR_ATTR_DTYPE && node->n_outputs == 1 &&
               node->outputs[0]->dtype == a->dtype;
    if (a->key == TOR_ATTR_dims)
        return node->op != TOR_OP_slice && node->op != TOR_OP_adaptive_avg_pool;
    return a->key == TOR_ATTR_into || (node->op == TOR_OP_input && a->key == TOR_ATTR_index);
}

static void put_layout(TorText *t, const TorGraph *g, const TorValue *v) {
    if (!v->has_layout) return;
    tor_text_put(t, "  @");
    if (v->storage && v->storage != v) tor_text_put(t, "%%%u", v->storage->id);
    put_dims(t, g, v->stride, v->rank);
    if (!tor_int_is(g, v->offset, 0)) {
        tor_text_put(t, "+");
        put_int(t, g, v->offset, 2);
    }
}

static bool is_inline(const TorNode *node) {
    return node->op == TOR_OP_constant && node->outputs[0]->rank == 0 &&
           tor_attr_int(node, TOR_ATTR_weak, 0) == 1;
}

static const char *input_name(const TorGraph *g, int64_t index) {
    return index >= 0 && index < g->n_inputs && g->inputs[index].name ? g->inputs[index].name
                                                                      : NULL;
}

// ---------------------------------------------------------------- lines

enum { ID, OP, TYPE, INPUTS, COLUMNS };
enum { WIDEST = 40 };  // of a column

static void put_column(TorText *t, const TorGraph *g, const TorNode *node, int column) {
    switch (column) {
        case ID:
            for (int i = 0; i < node->n_outputs; ++i)
                tor_text_put(t, "%s%%%u", i ? " " : "", node->outputs[i]->id);
            break;
        case OP: tor_text_put(t, "%s", tor_op_name(node->op)); break;
        case TYPE:
            for (int i = 0; i < node->n_outputs; ++i) {
                if (i) tor_text_put(t, ", ");
                put_type(t, g, node->outputs[i]);
                put_layout(t, g, node->outputs[i]);
            }
            break;
        case INPUTS:
            for (int i = 0; i < node->n_inputs; ++i) {
                const TorValue *v = tor_in(node, i);
                TorScalar number;
                if (i) tor_text_put(t, " ");
                if (is_inline(v->node) && tor_value_number(v, &number))
                    put_scalar(t, number);
                else
                    tor_text_put(t, "%%%u", v->id);
                const TorAttr *into =
                    node->op == TOR_OP_output ? tor_attr(node, TOR_ATTR_into) : NULL;
                if (!into || into->ints[i] < 0) continue;
                const char *name = input_name(g, into->ints[i]);
                if (name)
                    tor_text_put(t, ">%s", name);
                else
                    tor_text_put(t, ">input%" PRId64, into->ints[i]);
            }
            break;
        default: break;
    }
}

static void put_rest(TorText *t, const TorGraph *g, const TorNode *node) {
    if (node->op == TOR_OP_input) {
        int64_t index = tor_attr_int(node, TOR_ATTR_index, -1);
        const char *name = input_name(g, index);
        if (name)
            tor_text_put(t, "  %s", name);
        else
            tor_text_put(t, "  input%" PRId64, index);
        if (node->outputs[0]->frozen) tor_text_put(t, " (frozen)");
    }
    for (int i = 0; i < node->n_attrs; ++i) {
        if (is_implied(node, &node->attrs[i])) continue;
        tor_text_put(t, "  ");
        put_attr(t, g, node, &node->attrs[i]);
    }
    if (node->origin) tor_text_put(t, "  ; %s", node->origin);
}

// "s0 = x.size(0)": what the symbols stand for.
static void put_symbols(TorText *t, const TorGraph *g) {
    bool any = false;
    for (uint32_t i = 0; i < tor_int_count(g); ++i) {
        const TorInt *x = tor_int_get(g, i);
        int what;
        if (!tor_int_asks(x, &what)) continue;
        const char *name = input_name(g, x->a);
        tor_text_put(t, "s%" PRId64 " = ", x->value);
        if (name)
            tor_text_put(t, "%s", name);
        else
            tor_text_put(t, "input%u", x->a);
        if (x->op == TOR_INT_size || x->op == TOR_INT_stride)
            tor_text_put(t, ".%s(%u)", x->op == TOR_INT_size ? "size" : "stride", x->b);
        else if (x->op != TOR_INT_scalar)
            tor_text_put(t, ".%s", x->op == TOR_INT_start ? "start" : "memory");
        tor_text_put(t, "\n");
        any = true;
    }
    if (any) tor_text_put(t, "\n");
}

ToroidStatus tor_graph_print(const TorGraph *g, char **text) {
    *text = NULL;
    TorText all = {0}, cell = {0};
    size_t width[COLUMNS] = {0};
    for (int pass = 0; pass < 2; ++pass) {  // measure, then write
        if (pass == 1) put_symbols(&all, g);
        for (const TorNode *node = g->first; node; node = node->next) {
            if (is_inline(node)) continue;
            size_t pending = 0;  // spaces owed before the next text, so that no line ends in spaces
            for (int c = 0; c < COLUMNS; ++c) {
                cell.length = 0;
                put_column(&cell, g, node, c);
                if (pass == 0) {
                    // Nothing follows the output's list, and one long line should not widen all.
                    bool counts =
                        cell.length <= WIDEST && (c != INPUTS || node->op != TOR_OP_output);
                    if (counts) width[c] = TOR_MAX(width[c], cell.length);
                    continue;
                }
                if (cell.length) {
                    for (; pending; --pending) tor_text_append(&all, " ", 1);
                    tor_text_append(&all, cell.text, cell.length);
                }
                pending += width[c] - TOR_MIN(cell.length, width[c]);
                if (c + 1 < COLUMNS && width[c]) pending += 2;
            }
            if (pass == 0) continue;
            cell.length = 0;
            put_rest(&cell, g, node);
            if (cell.length) {
                for (; pending; --pending) tor_text_append(&all, " ", 1);
                tor_text_append(&all, cell.text, cell.length);
            }
            tor_text_append(&all, "\n", 1);
        }
    }
    if (cell.full) all.full = true;
    tor_free(cell.text);
    return tor_text_finish(&all, text);
}

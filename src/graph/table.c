#include "graph/table.h"

#include "graph/print.h"

typedef struct {
    const TorGraph *g;
    TorTable *table;
    TorText text;  ///< scratch
} Builder;

/// What the scratch text holds, in the table's arena; NULL without memory.
static const char *kept(Builder *b) {
    const char *copy = b->text.full ? NULL : tor_arena_strdup(b->table->arena, b->text.text);
    b->text.length = 0;
    return copy;
}

/// Room for a list; NULL without memory.
static void *list_of(Builder *b, size_t count, size_t item) {
    return tor_arena_alloc(b->table->arena, (count + 1) * item);
}

// ---------------------------------------------------------------- what is told where

// Said elsewhere in the record: by the type of the result, or by an operand.
static bool is_implied(const TorNode *node, const TorAttr *a) {
    if (a->key == TOR_ATTR_dtype)
        return a->kind == TOR_ATTR_DTYPE && node->n_outputs == 1 &&
               node->outputs[0]->dtype == a->dtype;
    if (a->key == TOR_ATTR_dims)
        return node->op != TOR_OP_slice && node->op != TOR_OP_adaptive_avg_pool;
    return a->key == TOR_ATTR_into || (node->op == TOR_OP_input && a->key == TOR_ATTR_index);
}

static bool is_inline(const TorNode *node) {
    return node->op == TOR_OP_constant && node->outputs[0]->rank == 0 &&
           tor_attr_int(node, TOR_ATTR_weak, 0) == 1;
}

static const char *input_name(Builder *b, int64_t index) {
    const TorGraph *g = b->g;
    if (index >= 0 && index < g->n_inputs && g->inputs[index].name) return g->inputs[index].name;
    tor_text_put(&b->text, "input%" PRId64, index);
    return kept(b);
}

// ---------------------------------------------------------------- records

static bool describe_result(Builder *b, const TorValue *v, TorTableResult *out) {
    out->value = v;
    tor_put_type(&b->text, b->g, v);
    if (!(out->type = kept(b))) return false;
    if (!v->has_layout) return true;
    tor_text_put(&b->text, "@");
    if (v->storage && v->storage != v) tor_text_put(&b->text, "%%%u", v->storage->id);
    tor_put_dims(&b->text, b->g, v->stride, v->rank);
    if (!tor_int_is(b->g, v->offset, 0)) {
        tor_text_put(&b->text, "+");
        tor_put_int(&b->text, b->g, v->offset, 2);
    }
    return (out->layout = kept(b)) != NULL;
}

static bool describe_operand(Builder *b, const TorNode *node, int i, TorTableOperand *out) {
    out->value = tor_in(node, i);
    TorScalar number;
    if (is_inline(out->value->node) && tor_value_number(out->value, &number)) {
        tor_put_scalar(&b->text, number);
        if (!(out->number = kept(b))) return false;
    }
    const TorAttr *into = node->op == TOR_OP_output ? tor_attr(node, TOR_ATTR_into) : NULL;
    if (!into || into->ints[i] < 0) return true;
    return (out->into = input_name(b, into->ints[i])) != NULL;
}

static bool describe_attrs(Builder *b, const TorNode *node, TorTableNode *out) {
    if (!(out->attrs = list_of(b, (size_t)node->n_attrs, sizeof *out->attrs))) return false;
    for (int i = 0; i < node->n_attrs; i++) {
        if (is_implied(node, &node->attrs[i])) continue;
        tor_put_attr(&b->text, b->g, node, &node->attrs[i]);
        const char *text = kept(b);
        if (!text) return false;
        out->attrs[out->n_attrs++] = (TorTableAttr){tor_attr_name(node->attrs[i].key), text};
    }
    return true;
}

static bool describe_node(Builder *b, const TorNode *node, TorTableNode *out) {
    *out = (TorTableNode){
        .node = node,
        .op = node->op,
        .origin = node->origin,
        .reason = node->op == TOR_OP_external ? tor_attr_str(node, TOR_ATTR_reason, NULL) : NULL,
        .n_results = node->n_outputs,
        .n_operands = node->n_inputs,
        .results = list_of(b, (size_t)node->n_outputs, sizeof *out->results),
        .operands = list_of(b, (size_t)node->n_inputs, sizeof *out->operands)};
    if (!out->results || !out->operands) return false;
    if (node->op == TOR_OP_input) {
        out->frozen = node->outputs[0]->frozen;
        if (!(out->name = input_name(b, tor_attr_int(node, TOR_ATTR_index, -1)))) return false;
    }
    for (int i = 0; i < node->n_outputs; i++)
        if (!describe_result(b, node->outputs[i], &out->results[i])) return false;
    for (int i = 0; i < node->n_inputs; i++)
        if (!describe_operand(b, node, i, &out->operands[i])) return false;
    return describe_attrs(b, node, out);
}

static bool describe_nodes(Builder *b) {
    size_t count = 0;
    for (const TorNode *node = b->g->first; node; node = node->next) count += !is_inline(node);
    TorTable *table = b->table;
    if (!(table->nodes = list_of(b, count, sizeof *table->nodes))) return false;
    for (const TorNode *node = b->g->first; node; node = node->next)
        if (!is_inline(node) && !describe_node(b, node, &table->nodes[table->n_nodes++]))
            return false;
    return true;
}

static bool describe_symbols(Builder *b) {
    TorTable *table = b->table;
    if (!(table->symbols = list_of(b, tor_int_count(b->g), sizeof *table->symbols))) return false;
    for (uint32_t i = 0; i < tor_int_count(b->g); i++) {
        const TorInt *x = tor_int_get(b->g, i);
        int what;
        if (!tor_int_asks(x, &what)) continue;
        const char *name = input_name(b, x->a);
        if (!name) return false;
        tor_text_put(&b->text, "s%" PRId64 " = ", x->value);
        tor_text_add(&b->text, name);
        if (x->op == TOR_INT_size || x->op == TOR_INT_stride)
            tor_text_put(&b->text, ".%s(%u)", x->op == TOR_INT_size ? "size" : "stride", x->b);
        else if (x->op != TOR_INT_scalar)
            tor_text_put(&b->text, ".%s", x->op == TOR_INT_start ? "start" : "memory");
        if (!(table->symbols[table->n_symbols++] = kept(b))) return false;
    }
    return true;
}

ToroidStatus tor_table_create(TorTable **out, const TorGraph *g) {
    *out = NULL;
    TorTable *table = tor_alloc_zero(sizeof *table);
    if (!table) return tor_no_memory();
    Builder b = {g, table, {0}};
    bool done =
        tor_arena_create(&table->arena) == TOROID_OK && describe_symbols(&b) && describe_nodes(&b);
    tor_free(b.text.text);
    if (!done) {
        tor_table_destroy(&table);
        return tor_no_memory();
    }
    *out = table;
    return TOROID_OK;
}

void tor_table_destroy(TorTable **table) {
    if (!table || !*table) return;
    tor_arena_destroy(&(*table)->arena);
    tor_free(*table);
    *table = NULL;
}

// ---------------------------------------------------------------- the table for people
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

enum { ID, OP, TYPE, INPUTS, COLUMNS };
enum { WIDEST = 40 };  // of a column

static void put_column(TorText *t, const TorTableNode *node, int column) {
    switch (column) {
        case ID:
            for (int i = 0; i < node->n_results; ++i)
                tor_text_put(t, "%s%%%u", i ? " " : "", node->results[i].value->id);
            break;
        case OP: tor_text_add(t, tor_op_name(node->op)); break;
        case TYPE:
            for (int i = 0; i < node->n_results; ++i) {
                const TorTableResult *r = &node->results[i];
                if (i) tor_text_add(t, ", ");
                tor_text_add(t, r->type);
                if (r->layout) tor_text_add(t, "  ");
                if (r->layout) tor_text_add(t, r->layout);
            }
            break;
        case INPUTS:
            for (int i = 0; i < node->n_operands; ++i) {
                const TorTableOperand *o = &node->operands[i];
                if (i) tor_text_add(t, " ");
                if (o->number)
                    tor_text_add(t, o->number);
                else
                    tor_text_put(t, "%%%u", o->value->id);
                if (o->into) tor_text_add(t, ">");
                if (o->into) tor_text_add(t, o->into);
            }
            break;
        default: break;
    }
}

static void put_rest(TorText *t, const TorTableNode *node) {
    if (node->name) {
        tor_text_add(t, "  ");
        tor_text_add(t, node->name);
        if (node->frozen) tor_text_add(t, " (frozen)");
    }
    for (int i = 0; i < node->n_attrs; ++i) {
        tor_text_put(t, "  %s=", node->attrs[i].key);
        tor_text_add(t, node->attrs[i].text);
    }
    if (node->origin) {
        tor_text_add(t, "  ; ");
        tor_text_add(t, node->origin);
    }
}

ToroidStatus tor_table_print(const TorTable *table, char **text) {
    TorText all = {0}, cell = {0};
    for (size_t i = 0; i < table->n_symbols; i++) {
        tor_text_add(&all, table->symbols[i]);
        tor_text_add(&all, "\n");
    }
    if (table->n_symbols) tor_text_add(&all, "\n");
    size_t width[COLUMNS] = {0};
    for (size_t i = 0; i < table->n_nodes; i++)
        for (int c = 0; c < COLUMNS; ++c) {
            cell.length = 0;
            put_column(&cell, &table->nodes[i], c);
            // Nothing follows the output's list, and one long line should not widen all.
            if (cell.length <= WIDEST && (c != INPUTS || table->nodes[i].op != TOR_OP_output))
                width[c] = TOR_MAX(width[c], cell.length);
        }
    for (size_t i = 0; i < table->n_nodes; i++) {
        size_t pending = 0;  // spaces owed before the next text, so that no line ends in spaces
        for (int c = 0; c <= COLUMNS; ++c) {
            cell.length = 0;
            if (c < COLUMNS)
                put_column(&cell, &table->nodes[i], c);
            else
                put_rest(&cell, &table->nodes[i]);
            if (cell.length) {
                for (; pending; --pending) tor_text_add(&all, " ");
                tor_text_append(&all, cell.text, cell.length);
            }
            if (c == COLUMNS) break;
            pending += width[c] - TOR_MIN(cell.length, width[c]);
            if (c + 1 < COLUMNS && width[c]) pending += 2;
        }
        tor_text_add(&all, "\n");
    }
    if (cell.full) all.full = true;
    tor_free(cell.text);
    return tor_text_finish(&all, text);
}

ToroidStatus tor_graph_print(const TorGraph *g, char **text) {
    *text = NULL;
    TorTable *table;
    TOR_TRY(tor_table_create(&table, g));
    ToroidStatus status = tor_table_print(table, text);
    tor_table_destroy(&table);
    return status;
}

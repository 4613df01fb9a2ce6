/// What became of a graph as plain Python objects, for toroid/html.py.
#include "core.h"

/// A list of what `make` gives for each i; NULL with an exception set.
#define LIST_OF(list, count, make)                                                  \
    PyObject *list = PyList_New((Py_ssize_t)(count));                               \
    for (size_t i = 0; list && i < (size_t)(count); i++) {                          \
        PyObject *item = make;                                                      \
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0) Py_CLEAR(list); \
    }

static PyObject *results_of(const TorTableNode *node) {
    const TorTableResult *r = node->results;
    LIST_OF(list, node->n_results,
            Py_BuildValue("(Isz)", (unsigned)r[i].value->id, r[i].type, r[i].layout))
    return list;
}

static PyObject *operands_of(const TorTableNode *node) {
    const TorTableOperand *o = node->operands;
    LIST_OF(list, node->n_operands,
            o[i].number ? Py_BuildValue("(sz)", o[i].number, o[i].into)
                        : Py_BuildValue("(Iz)", (unsigned)o[i].value->id, o[i].into))
    return list;
}

static PyObject *attrs_of(const TorTableNode *node) {
    LIST_OF(list, node->n_attrs, Py_BuildValue("(ss)", node->attrs[i].key, node->attrs[i].text))
    return list;
}

static PyObject *node_dict(const TorTableNode *node) {
    return Py_BuildValue("{ss ss sz sO sz sz sN sN sN}", "op", tor_op_name(node->op), "kind",
                         tor_op_kind_name(node->op), "name", node->name, "frozen",
                         node->frozen ? Py_True : Py_False, "origin", node->origin, "reason",
                         node->reason, "results", results_of(node), "operands", operands_of(node),
                         "attrs", attrs_of(node));
}

static PyObject *table_dict(const TorTable *table) {
    LIST_OF(symbols, table->n_symbols, PyUnicode_FromString(table->symbols[i]))
    if (!symbols) return NULL;
    LIST_OF(nodes, table->n_nodes, node_dict(&table->nodes[i]))
    return Py_BuildValue("{sN sN}", "symbols", symbols, "nodes", nodes);
}

static PyObject *places_list(const TorPlaces *places) {
    LIST_OF(list, places->count, PyLong_FromUnsignedLong(places->nodes[i]))
    return list;
}

static PyObject *step_dict(const TorStepRecord *s, uint32_t node) {
    return Py_BuildValue("{ss ss ss sI sd sd sO}", "work", s->work, "shape", s->shape, "kernel",
                         s->kernel, "node", (unsigned)node, "flops", s->flops, "bytes", s->bytes,
                         "external", s->external ? Py_True : Py_False);
}

static PyObject *record_dict(const TorExeRecord *record) {
    LIST_OF(places, record->before->n_nodes, places_list(&record->places[i]))
    if (!places) return NULL;
    LIST_OF(steps, record->n_steps, step_dict(&record->steps[i], record->step_nodes[i]))
    return Py_BuildValue("{sN sN sN sN sO}", "before", table_dict(record->before), "after",
                         table_dict(record->after), "places", places, "steps", steps, "bound",
                         record->bound ? Py_True : Py_False);
}

PyObject *tor_py_record(const TorExecutable *exe) {
    TorExeRecord *record;
    ToroidStatus status = tor_exe_record(exe, &record);
    if (status != TOROID_OK) return tor_py_raise(status);
    PyObject *dict = record_dict(record);
    tor_exe_record_destroy(&record);
    return dict;
}

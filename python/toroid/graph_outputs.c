/// Graph.external() and Graph.set_outputs(): nodes that Python runs, and what a compiled graph
/// returns.
#include <string.h>

#include "graph_object.h"

// ---------------------------------------------------------------- external nodes

static PyObject *external_with(TorPyGraph *self, TorArena *arena, long long callable,
                               PyObject *inputs, PyObject *ints, PyObject *outputs,
                               const char *reason, int random, const char *origin) {
    int n_inputs = (int)PyList_Size(inputs), n_ints = (int)PyList_Size(ints),
        n_outputs = (int)PyList_Size(outputs);
    TorValue **values = tor_arena_alloc(arena, (size_t)(n_inputs + 1) * sizeof *values);
    TorDim *operands = tor_arena_alloc(arena, (size_t)(n_ints + 1) * sizeof *operands);
    if (!values || !operands) return PyErr_NoMemory();
    for (int i = 0; i < n_inputs; i++) {
        PyObject *item = PyList_GetItem(inputs, i);
        if (!PyObject_TypeCheck(item, tor_py_value_type))
            return PyErr_Format(PyExc_TypeError, "external input %d is no Value", i);
        if (!tor_py_same_graph(self, ((TorPyValue *)item)->owner)) return NULL;
        values[i] = ((TorPyValue *)item)->value;
    }
    for (int i = 0; i < n_ints; i++)
        if (tor_py_parse_size(self, PyList_GetItem(ints, i), -1, 0, &operands[i]) < 0) return NULL;

    // Output types are read first: a refusal must leave no node behind.
    struct {
        TorDtype dtype;
        int rank;
        TorDim dims[TOR_MAX_RANK];
    } *types = tor_arena_alloc(arena, (size_t)(n_outputs + 1) * sizeof *types);
    if (!types) return PyErr_NoMemory();
    for (int i = 0; i < n_outputs; i++) {
        const char *dtype;
        PyObject *sizes;
        if (!PyArg_ParseTuple(PyList_GetItem(outputs, i), "sO", &dtype, &sizes) ||
            tor_py_parse_dtype(dtype, &types[i].dtype) < 0)
            return NULL;
        types[i].rank = tor_py_parse_sizes(self, sizes, -1, types[i].dims);
        if (types[i].rank < 0) return NULL;
    }
    TorAttr attrs[] = {
        TOR_A_INT(callable, callable),
        TOR_A_STR(reason, reason),
        TOR_A_INT(random, random),
        TOR_A_DIMS(operands, operands, n_ints),
    };
    char *kept = tor_arena_strdup(self->graph->arena, origin);
    if (!kept) return PyErr_NoMemory();
    TorNode *node;
    ToroidStatus status = tor_graph_add(self->graph, NULL, TOR_OP_external, values, n_inputs, attrs,
                                        (int)TOR_COUNT_OF(attrs), n_outputs, &node);
    if (status != TOROID_OK) return tor_py_raise(status);
    node->origin = kept;
    PyObject *result = PyTuple_New(n_outputs);
    for (int i = 0; result && i < n_outputs; i++) {
        tor_graph_set_type(node->outputs[i], types[i].dtype, types[i].rank, types[i].dims);
        PyObject *value = tor_py_value_new(self, node->outputs[i]);
        if (!value) {
            Py_DECREF(result);
            return NULL;
        }
        PyTuple_SetItem(result, i, value);
    }
    return result;
}

PyObject *tor_py_graph_external(PyObject *object, PyObject *args) {
    long long callable;
    const char *reason, *origin;
    PyObject *inputs, *ints, *outputs;
    int random;
    TorPyGraph *self = tor_py_graph_alive(object);
    if (!self || !PyArg_ParseTuple(args, "LOOOsps:external", &callable, &inputs, &ints, &outputs,
                                   &reason, &random, &origin))
        return NULL;
    if (!PyList_Check(inputs) || !PyList_Check(ints) || !PyList_Check(outputs))
        return PyErr_Format(PyExc_TypeError, "external() takes lists of inputs, ints and outputs");
    TorArena *arena = NULL;
    ToroidStatus status = tor_arena_create(&arena);
    if (status != TOROID_OK) return tor_py_raise(status);
    PyObject *result =
        external_with(self, arena, callable, inputs, ints, outputs, reason, random, origin);
    tor_arena_destroy(&arena);
    return result;
}

// ---------------------------------------------------------------- outputs

/// An integer as a 0-d int64 tensor: executables return tensors only.
static ToroidStatus int_as_tensor(TorGraph *g, TorDim dim, TorValue **out) {
    TorDim one = tor_int_const(g, 1);
    TorAttr attrs[] = {
        TOR_A_DTYPE(dtype, TOR_int64),
        TOR_A_DIMS(dims, &one, 1),
        TOR_A_DIM(start, dim),
        TOR_A_INT(step, 1),
    };
    TorNode *node;
    TOR_TRY(
        tor_graph_add(g, NULL, TOR_OP_arange, NULL, 0, attrs, (int)TOR_COUNT_OF(attrs), 1, &node));
    *out = node->outputs[0];
    return TOROID_OK;
}

/// One returned item: fills returns[i], and values[*n] where it takes an output.
static int parse_return(TorPyGraph *self, PyObject *item, TorPyReturn *ret, TorValue **values,
                        int *n) {
    if (PyObject_TypeCheck(item, tor_py_value_type)) {
        if (!tor_py_same_graph(self, ((TorPyValue *)item)->owner)) return -1;
        values[*n] = ((TorPyValue *)item)->value;
        *ret = (TorPyReturn){.kind = TOR_PY_TENSOR, .output = (*n)++};
        return 0;
    }
    if (PyObject_TypeCheck(item, tor_py_int_type)) {
        if (!tor_py_same_graph(self, ((TorPyInt *)item)->owner)) return -1;
        ToroidStatus status = int_as_tensor(self->graph, ((TorPyInt *)item)->dim, &values[*n]);
        if (status != TOROID_OK) {
            tor_py_raise(status);
            return -1;
        }
        *ret = (TorPyReturn){.kind = TOR_PY_INT, .output = (*n)++};
        return 0;
    }
    if (item != Py_None && !PyLong_Check(item) && !PyFloat_Check(item)) {
        PyErr_SetString(tor_py_unsupported,
                        "an output that is neither a tensor nor an integer nor None");
        return -1;
    }
    Py_INCREF(item);
    *ret = (TorPyReturn){.kind = TOR_PY_OBJECT, .object = item};
    return 0;
}

/// One expected layout: None, ("strides", [ints and Ints]) or ("order", [dims from outermost to
/// innermost]).
static int set_layout(TorPyGraph *self, int output, int rank, PyObject *layout) {
    if (layout == Py_None) return 0;
    const char *kind;
    PyObject *list;
    TorDim strides[TOR_MAX_RANK];
    int order[TOR_MAX_RANK];
    if (!PyArg_ParseTuple(layout, "sO!", &kind, &PyList_Type, &list)) return -1;
    if (PyList_Size(list) != rank) {
        PyErr_Format(PyExc_ValueError, "output %d: a layout of %zd dims for rank %d", output,
                     PyList_Size(list), rank);
        return -1;
    }
    for (int i = 0; i < rank; i++) {
        PyObject *item = PyList_GetItem(list, i);
        if (PyObject_TypeCheck(item, tor_py_int_type)) {
            const TorPyInt *integer = (const TorPyInt *)item;
            if (!tor_py_same_graph(self, integer->owner)) return -1;
            strides[i] = integer->dim;
            continue;
        }
        int64_t number = PyLong_AsLongLong(item);
        if (number == -1 && PyErr_Occurred()) return -1;
        strides[i] = tor_int_const(self->graph, number);
        order[i] = (int)number;
    }
    bool ordered = !strcmp(kind, "order");
    ToroidStatus status = tor_graph_set_output_layout(self->graph, output, ordered ? NULL : strides,
                                                      ordered ? order : NULL);
    if (status == TOROID_OK) return 0;
    tor_py_raise(status);
    return -1;
}

static int set_outputs_with(TorPyGraph *self, TorArena *arena, PyObject *returned,
                            PyObject *layouts, PyObject *writes) {
    int count = (int)PyList_Size(returned), n_writes = (int)PyList_Size(writes), n = 0;
    if (PyList_Size(layouts) != count) {
        PyErr_SetString(PyExc_ValueError, "one layout for each returned item is needed");
        return -1;
    }
    size_t room = (size_t)(count + n_writes + 1);
    TorValue **values = tor_arena_alloc(arena, room * sizeof *values);
    int64_t *into = tor_arena_alloc(arena, room * sizeof *into);
    self->returns = tor_alloc_zero(room * sizeof *self->returns);
    self->written = tor_alloc_zero(self->graph->n_inputs + 1);
    if (!values || !into || !self->returns || !self->written) {
        PyErr_NoMemory();
        return -1;
    }
    self->n_returns = 0;
    for (int i = 0; i < count; i++) {
        if (parse_return(self, PyList_GetItem(returned, i), &self->returns[i], values, &n) < 0)
            return -1;
        self->n_returns++;
    }
    for (int i = 0; i < n; i++) into[i] = -1;
    for (int i = 0; i < n_writes; i++, n++) {
        PyObject *value;
        unsigned int input;
        if (!PyArg_ParseTuple(PyList_GetItem(writes, i), "O!I", tor_py_value_type, &value, &input))
            return -1;
        if (!tor_py_same_graph(self, ((TorPyValue *)value)->owner)) return -1;
        if (input >= self->graph->n_inputs) {
            PyErr_Format(PyExc_ValueError, "a write into input %u of %u", input,
                         self->graph->n_inputs);
            return -1;
        }
        values[n] = ((TorPyValue *)value)->value;
        into[n] = input;
        self->written[input] = true;
    }
    self->n_outputs = n;
    ToroidStatus status = tor_graph_set_outputs(self->graph, values, into, n);
    if (status != TOROID_OK) {
        tor_py_raise(status);
        return -1;
    }
    for (int i = 0; i < count; i++) {
        const TorPyReturn *r = &self->returns[i];
        if (r->kind == TOR_PY_TENSOR &&
            set_layout(self, r->output, values[r->output]->rank, PyList_GetItem(layouts, i)) < 0)
            return -1;
    }
    return 0;
}

PyObject *tor_py_graph_set_outputs(PyObject *object, PyObject *args) {
    PyObject *returned, *layouts, *writes;
    TorPyGraph *self = tor_py_graph_alive(object);
    if (!self || !PyArg_ParseTuple(args, "O!O!O!:set_outputs", &PyList_Type, &returned,
                                   &PyList_Type, &layouts, &PyList_Type, &writes))
        return NULL;
    if (self->written) return PyErr_Format(PyExc_ValueError, "set_outputs() was called before");
    TorArena *arena = NULL;
    ToroidStatus status = tor_arena_create(&arena);
    if (status != TOROID_OK) return tor_py_raise(status);
    int result = set_outputs_with(self, arena, returned, layouts, writes);
    tor_arena_destroy(&arena);
    if (result < 0) return NULL;
    Py_RETURN_NONE;
}

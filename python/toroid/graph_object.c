/// The type Graph: a frontend adds inputs and calls node by node, then compiles.
#include "core.h"

#include <string.h>

#include "backend/import.h"
#include "graph_object.h"

TorPyGraph *tor_py_graph_alive(PyObject *self) {
    TorPyGraph *graph = (TorPyGraph *)self;
    return tor_py_same_graph(graph, graph) ? graph : NULL;
}

static void free_returns(TorPyGraph *self) {
    for (int i = 0; i < self->n_returns; i++) Py_XDECREF(self->returns[i].object);
    tor_free(self->returns);
    self->returns = NULL;
    self->n_returns = -1;
}

static PyObject *graph_new(PyTypeObject *type, PyObject *Py_UNUSED(args),
                           PyObject *Py_UNUSED(kwargs)) {
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    TorPyGraph *self = (TorPyGraph *)alloc(type, 0);
    if (!self) return NULL;
    self->n_returns = -1;
    self->sizes = PyDict_New();
    if (!self->sizes) {
        Py_DECREF((PyObject *)self);
        return NULL;
    }
    ToroidStatus status = tor_graph_create(&self->graph);
    if (status != TOROID_OK) {
        Py_DECREF((PyObject *)self);
        return tor_py_raise(status);
    }
    return (PyObject *)self;
}

static void graph_dealloc(PyObject *object) {
    TorPyGraph *self = (TorPyGraph *)object;
    PyTypeObject *type = Py_TYPE(object);
    tor_graph_destroy(&self->graph);
    free_returns(self);
    tor_free(self->written);
    Py_XDECREF(self->sizes);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

// ---------------------------------------------------------------- sizes

/// Gives key its TorDim, or returns the one it has: *dim is read where the key is new.
static int keyed(TorPyGraph *self, PyObject *key, TorDim *dim) {
    PyObject *number = PyDict_GetItemWithError(self->sizes, key);
    if (number) {
        *dim = (TorDim)PyLong_AsUnsignedLong(number);
        return 0;
    }
    if (PyErr_Occurred()) return -1;
    number = PyLong_FromUnsignedLong(*dim);
    int result = number ? PyDict_SetItem(self->sizes, key, number) : -1;
    Py_XDECREF(number);
    return result;
}

int tor_py_parse_size(TorPyGraph *self, PyObject *object, int64_t input, uint32_t dim,
                      TorDim *out) {
    if (PyObject_TypeCheck(object, tor_py_int_type)) {
        *out = ((TorPyInt *)object)->dim;
        return tor_py_same_graph(self, ((TorPyInt *)object)->owner) ? 0 : -1;
    }
    if (PyUnicode_Check(object)) {
        PyObject *known = PyDict_GetItemWithError(self->sizes, object);
        if (!known && PyErr_Occurred()) return -1;
        if (!known && input < 0) {
            PyErr_Format(PyExc_ValueError, "size '%U' is not a size of any input", object);
            return -1;
        }
        if (!known) *out = tor_int_size(self->graph, (uint32_t)input, dim);
        if (!known && *out == TOR_NO_DIM) {
            PyErr_NoMemory();
            return -1;
        }
        return keyed(self, object, out);
    }
    long long value = PyLong_AsLongLong(object);
    if (value == -1 && PyErr_Occurred()) return -1;
    *out = tor_int_const(self->graph, value);
    if (*out == TOR_NO_DIM) PyErr_NoMemory();
    return *out == TOR_NO_DIM ? -1 : 0;
}

int tor_py_parse_sizes(TorPyGraph *self, PyObject *list, int64_t input, TorDim *dims) {
    PyObject *items = PySequence_Tuple(list);
    if (!items) return -1;
    Py_ssize_t rank = PyTuple_Size(items);
    if (rank > TOR_MAX_RANK) {
        PyErr_Format(tor_py_unsupported, "a tensor of rank %zd; the limit is %d", rank,
                     TOR_MAX_RANK);
        rank = -1;
    }
    for (Py_ssize_t i = 0; i < rank; i++)
        if (tor_py_parse_size(self, PyTuple_GetItem(items, i), input, (uint32_t)i, &dims[i]) < 0)
            rank = -1;
    Py_DECREF(items);
    return (int)rank;
}

int tor_py_parse_dtype(const char *name, TorDtype *out) {
    ToroidStatus status = tor_dtype_parse(out, strncmp(name, "torch.", 6) ? name : name + 6);
    if (status == TOROID_OK) return 0;
    tor_py_raise(status);
    return -1;
}

// ---------------------------------------------------------------- inputs

static PyObject *add_input(PyObject *object, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"name", "dtype", "sizes", "strides", "contiguous", "frozen", NULL};
    const char *name, *dtype_name;
    PyObject *sizes, *strides = Py_None;
    int contiguous = 0, frozen = 0;
    TorPyGraph *self = tor_py_graph_alive(object);
    if (!self || !PyArg_ParseTupleAndKeywords(args, kwargs, "ssO|Opp:add_input", names, &name,
                                              &dtype_name, &sizes, &strides, &contiguous, &frozen))
        return NULL;
    TorDtype dtype;
    TorDim dims[TOR_MAX_RANK], stride[TOR_MAX_RANK];
    uint32_t number = self->graph->n_inputs;
    if (tor_py_parse_dtype(dtype_name, &dtype) < 0) return NULL;
    int rank = tor_py_parse_sizes(self, sizes, number, dims);
    if (rank < 0) return NULL;
    if (strides != Py_None) {
        int n = tor_py_parse_sizes(self, strides, -1, stride);
        if (n < 0) return NULL;
        if (n != rank)
            return PyErr_Format(PyExc_ValueError, "input %s: %d strides for rank %d", name, n,
                                rank);
    }
    TorValue *value;
    ToroidStatus status = tor_graph_add_input(self->graph, name, dtype, rank, dims, frozen, &value);
    if (status != TOROID_OK) return tor_py_raise(status);
    TorInput *input = &self->graph->inputs[number];
    input->contiguous = contiguous;
    for (int i = 0; i < rank; i++) input->stride[i] = strides == Py_None ? TOR_NO_DIM : stride[i];
    return tor_py_value_new(self, value);
}

static PyObject *add_int_input(PyObject *object, PyObject *args) {
    const char *name;
    PyObject *key;
    TorPyGraph *self = tor_py_graph_alive(object);
    if (!self || !PyArg_ParseTuple(args, "sO:add_int_input", &name, &key)) return NULL;
    TorDim dim;
    ToroidStatus status = tor_graph_add_int_input(self->graph, name, &dim);
    if (status != TOROID_OK) return tor_py_raise(status);
    if (key != Py_None && keyed(self, key, &dim) < 0) return NULL;
    return tor_py_int_new(self, dim);
}

static PyObject *size(PyObject *object, PyObject *key) {
    TorPyGraph *self = tor_py_graph_alive(object);
    TorDim dim;
    if (!self || tor_py_parse_size(self, key, -1, 0, &dim) < 0) return NULL;
    return tor_py_int_new(self, dim);
}

// ---------------------------------------------------------------- nodes

/// Arguments in `arena`, then the call; the importer's answer as a Python object.
static PyObject *call_with(TorPyGraph *self, TorArena *arena, const char *target, PyObject *args,
                           PyObject *kwargs, const char *origin) {
    TorArg positional, result;
    if (tor_py_argument(self, arena, args, &positional) < 0) return NULL;
    Py_ssize_t n_kw = kwargs == Py_None ? 0 : PyDict_Size(kwargs), at = 0;
    const char **kw_names = tor_arena_alloc(arena, (size_t)(n_kw + 1) * sizeof *kw_names);
    TorArg *kw_args = tor_arena_alloc(arena, (size_t)(n_kw + 1) * sizeof *kw_args);
    if (!kw_names || !kw_args) return PyErr_NoMemory();
    PyObject *key, *item;
    for (Py_ssize_t i = 0; i < n_kw && PyDict_Next(kwargs, &at, &key, &item); i++) {
        kw_names[i] = PyUnicode_AsUTF8AndSize(key, NULL);
        if (!kw_names[i] || tor_py_argument(self, arena, item, &kw_args[i]) < 0) return NULL;
    }
    ToroidStatus status = tor_backend_import(self->graph, target, positional.list, positional.count,
                                             kw_names, kw_args, (int)n_kw, origin, &result);
    if (status != TOROID_OK) return tor_py_raise(status);
    return tor_py_result(self, &result);
}

static PyObject *call(PyObject *object, PyObject *args) {
    const char *target, *origin = NULL;
    PyObject *call_args, *call_kwargs = Py_None;
    TorPyGraph *self = tor_py_graph_alive(object);
    if (!self || !PyArg_ParseTuple(args, "sO|Oz:call", &target, &call_args, &call_kwargs, &origin))
        return NULL;
    if ((!PyTuple_Check(call_args) && !PyList_Check(call_args)) ||
        (call_kwargs != Py_None && !PyDict_Check(call_kwargs)))
        return PyErr_Format(PyExc_TypeError, "call() takes a name, a tuple, a dict and a name");
    TorArena *arena = NULL;
    ToroidStatus status = tor_arena_create(&arena);
    if (status != TOROID_OK) return tor_py_raise(status);
    PyObject *result = call_with(self, arena, target, call_args, call_kwargs, origin);
    tor_arena_destroy(&arena);
    return result;
}

// ---------------------------------------------------------------- the rest

static PyObject *text(PyObject *object, PyObject *Py_UNUSED(ignored)) {
    TorPyGraph *self = tor_py_graph_alive(object);
    if (!self) return NULL;
    char *printed = NULL;
    ToroidStatus status = tor_graph_print(self->graph, &printed);
    if (status != TOROID_OK) return tor_py_raise(status);
    PyObject *result = PyUnicode_FromString(printed);
    tor_free(printed);
    return result;
}

static PyObject *compile(PyObject *object, PyObject *args, PyObject *kwargs) {
    TorPyGraph *self = tor_py_graph_alive(object);
    return self ? tor_py_compile(self, args, kwargs) : NULL;
}

static PyMethodDef methods[] = {
    {"add_input", (PyCFunction)(void (*)(void))add_input, METH_VARARGS | METH_KEYWORDS,
     "add_input(name, dtype, sizes, strides=None, contiguous=False, frozen=False) -> Value\n\n"
     "A size is an int, an Int, or a key: its first occurrence names the size of this input's "
     "dim."},
    {"add_int_input", add_int_input, METH_VARARGS,
     "add_int_input(name, key) -> Int\n\nAn integer input; key may be None."},
    {"size", size, METH_O, "size(key) -> Int | int\n\nThe integer of a key that occurred."},
    {"call", call, METH_VARARGS,
     "call(target, args, kwargs=None, origin=None) -> Value | Int | int | float | bool | tuple | "
     "None\n\n"
     "Adds one ATen call. Raises Unsupported with the reason where the importer refuses it."},
    {"external", tor_py_graph_external, METH_VARARGS,
     "external(callable, inputs, ints, outputs, reason, random, origin) -> tuple of Values\n\n"
     "A node that Python runs: callable is its number, outputs a list of (dtype, sizes)."},
    {"set_outputs", tor_py_graph_set_outputs, METH_VARARGS,
     "set_outputs(returned, layouts, writes)\n\n"
     "returned: Values, Ints, ints and None. layouts: for each None, ('strides', [...]) or "
     "('order', [...]).\n"
     "writes: (Value, number of the input that it is written to)."},
    {"to_bytes", tor_py_graph_to_bytes, METH_NOARGS,
     "to_bytes() -> (bytes, list)\n\nThe graph, and what it returns, for from_bytes()."},
    {"from_bytes", tor_py_graph_from_bytes, METH_VARARGS | METH_CLASS,
     "from_bytes(bytes, returns) -> Graph\n\nOnly what the same build wrote; ready to compile."},
    {"text", text, METH_NOARGS, "text() -> str\n\nThe graph as a table."},
    {"compile", (PyCFunction)(void (*)(void))compile, METH_VARARGS | METH_KEYWORDS,
     "compile(callables, constants, threads=0, freeze=True, reference=False, precision='f32', "
     "unguarded=False) -> Executable\n\n"
     "Ends the graph's life, also where it fails."},
    {0},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A graph under construction."},
    {Py_tp_new, graph_new},
    {Py_tp_dealloc, graph_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};
static PyType_Spec spec = {"toroid._core.Graph", sizeof(TorPyGraph), 0, Py_TPFLAGS_DEFAULT, slots};

int tor_py_graph_init(PyObject *module) {
    tor_py_value_type = tor_py_add_type(module, &tor_py_value_spec);
    tor_py_int_type = tor_py_value_type ? tor_py_add_type(module, &tor_py_int_spec) : NULL;
    return tor_py_int_type && tor_py_add_type(module, &spec) ? 0 : -1;
}

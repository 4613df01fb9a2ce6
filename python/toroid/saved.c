/// Graphs as bytes for Python, and the files of TOROID_CACHE_DIR that Python fills.
#define PY_SSIZE_T_CLEAN  // lengths in formats are Py_ssize_t

#include "backend/store.h"
#include "graph/save.h"
#include "graph_object.h"

// ---------------------------------------------------------------- graphs

/// What a graph returns, as a list of (kind, output, object).
static PyObject *returns_of(const TorPyGraph *self) {
    PyObject *list = PyList_New(self->n_returns);
    for (int i = 0; list && i < self->n_returns; i++) {
        const TorPyReturn *r = &self->returns[i];
        PyObject *item =
            Py_BuildValue("(iiO)", (int)r->kind, r->output, r->object ? r->object : Py_None);
        if (!item) {
            Py_DECREF(list);
            return NULL;
        }
        PyList_SetItem(list, i, item);
    }
    return list;
}

PyObject *tor_py_graph_to_bytes(PyObject *object, PyObject *Py_UNUSED(ignored)) {
    TorPyGraph *self = tor_py_graph_alive(object);
    if (!self) return NULL;
    if (!self->written) return PyErr_Format(PyExc_ValueError, "to_bytes() before set_outputs()");
    PyObject *returns = returns_of(self);
    if (!returns) return NULL;
    char *bytes;
    size_t count;
    ToroidStatus status = tor_graph_save(self->graph, &bytes, &count);
    if (status != TOROID_OK) {
        Py_DECREF(returns);
        return tor_py_raise(status);
    }
    PyObject *result = Py_BuildValue("(y#N)", bytes, (Py_ssize_t)count, returns);
    tor_free(bytes);
    return result;
}

/// One item of returns_of(); an output is given once.
static int read_return(TorPyGraph *self, PyObject *item, TorPyReturn *ret, int *next) {
    int kind, output;
    PyObject *object;
    if (!PyArg_ParseTuple(item, "iiO", &kind, &output, &object)) return -1;
    if (kind == TOR_PY_OBJECT) {
        Py_INCREF(object);
        *ret = (TorPyReturn){.kind = TOR_PY_OBJECT, .object = object};
        return 0;
    }
    if ((kind != TOR_PY_TENSOR && kind != TOR_PY_INT) || output != *next ||
        output >= self->n_outputs) {
        PyErr_Format(PyExc_ValueError, "from_bytes(): output %d of kind %d is none of the graph's",
                     output, kind);
        return -1;
    }
    *ret = (TorPyReturn){.kind = kind, .output = (*next)++};
    return 0;
}

static int read_returns(TorPyGraph *self, PyObject *returns) {
    const TorGraph *g = self->graph;
    const int64_t *into = tor_attr(g->output, TOR_ATTR_into)->ints;
    Py_ssize_t count = PyList_Size(returns);
    int next = 0;
    self->n_outputs = g->output->n_inputs;
    self->returns = tor_alloc_zero((size_t)(count + 1) * sizeof *self->returns);
    self->written = tor_alloc_zero(g->n_inputs + 1);
    if (!self->returns || !self->written) {
        PyErr_NoMemory();
        return -1;
    }
    self->n_returns = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (read_return(self, PyList_GetItem(returns, i), &self->returns[i], &next) < 0) return -1;
        self->n_returns++;
    }
    for (int i = 0; i < self->n_outputs; i++) {
        if ((i < next) != (into[i] < 0)) {
            PyErr_SetString(PyExc_ValueError, "from_bytes(): returns and writes do not fit");
            return -1;
        }
        if (into[i] >= 0) self->written[into[i]] = true;
    }
    return 0;
}

PyObject *tor_py_graph_from_bytes(PyObject *type, PyObject *args) {
    const char *bytes;
    Py_ssize_t count;
    PyObject *returns;
    if (!PyArg_ParseTuple(args, "y#O!:from_bytes", &bytes, &count, &PyList_Type, &returns))
        return NULL;
    TorGraph *loaded;
    ToroidStatus status = tor_graph_load(&loaded, bytes, (size_t)count);
    if (status == TOROID_OK && !loaded->output) {
        tor_graph_destroy(&loaded);
        status = tor_invalid("load: the graph has no outputs");
    }
    if (status != TOROID_OK) return tor_py_raise(status);
    PyObject *object = PyObject_CallNoArgs(type);
    if (!object) {
        tor_graph_destroy(&loaded);
        return NULL;
    }
    TorPyGraph *self = (TorPyGraph *)object;
    tor_graph_destroy(&self->graph);
    self->graph = loaded;
    if (read_returns(self, returns) == 0) return object;
    Py_DECREF(object);
    return NULL;
}

// ---------------------------------------------------------------- files

static PyObject *enabled(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored)) {
    return PyBool_FromLong(tor_store_enabled());
}

static bool key_of(PyObject *text, TorContentKey *key) {
    Py_ssize_t length;
    const char *name = PyUnicode_AsUTF8AndSize(text, &length);
    if (name) *key = tor_content_hash(name, (size_t)length);
    return name != NULL;
}

static PyObject *find(PyObject *Py_UNUSED(module), PyObject *text) {
    TorContentKey key;
    if (!key_of(text, &key)) return NULL;
    TorStored stored = tor_store_find(TOR_STORE_GRAPH, key, TOR_STORE_ANY);
    if (!stored.data) Py_RETURN_NONE;
    PyObject *bytes = PyBytes_FromStringAndSize(stored.data, (Py_ssize_t)stored.bytes);
    tor_store_unmap(&stored);
    return bytes;
}

static PyObject *put(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *text;
    const char *bytes;
    Py_ssize_t count;
    TorContentKey key;
    if (!PyArg_ParseTuple(args, "Uy#:store_put", &text, &bytes, &count) || !key_of(text, &key))
        return NULL;
    TorStored stored = tor_store_put(TOR_STORE_GRAPH, key, bytes, (size_t)count);
    bool kept = stored.data != NULL;
    tor_store_unmap(&stored);
    if (kept) tor_store_trim();
    return PyBool_FromLong(kept);
}

static PyObject *build(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored)) {
    return PyUnicode_FromString(tor_build_hash());
}

PyMethodDef tor_py_saved_methods[] = {
    {"build", build, METH_NOARGS, "build() -> str\n\nA hash of the sources of this build."},
    {"store_enabled", enabled, METH_NOARGS,
     "store_enabled() -> bool\n\nWhether TOROID_CACHE_DIR names a folder."},
    {"store_find", find, METH_O,
     "store_find(key) -> bytes or None\n\nWhat was kept under this text."},
    {"store_put", put, METH_VARARGS,
     "store_put(key, content) -> bool\n\nWhether the bytes are kept now."},
    {0},
};

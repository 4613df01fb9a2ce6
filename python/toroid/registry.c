/// The table of backends, as Python sees it: a backend that was resolved is a capsule.
#include "api/frontend.h"
#include "core.h"

#define CAPSULE "toroid.Backend"

const ToroidBackend *tor_py_backend(PyObject *object) {
    return PyCapsule_GetPointer(object, CAPSULE);
}

static PyObject *wrap(const ToroidBackend *backend) {
    return PyCapsule_New((void *)(uintptr_t)backend, CAPSULE, NULL);
}

typedef ToroidStatus (*LookUp)(const ToroidBackend **out, const char *name);

/// Plugins and hooks run without the GIL.
static PyObject *look_up(LookUp function, PyObject *name) {
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    if (!text) return NULL;
    const ToroidBackend *backend;
    PyThreadState *state = PyEval_SaveThread();
    ToroidStatus status = function(&backend, text);
    PyEval_RestoreThread(state);
    return status == TOROID_OK ? wrap(backend) : tor_py_raise(status);
}

static PyObject *resolve(PyObject *Py_UNUSED(module), PyObject *name) {
    return look_up(toroid_backend_resolve, name);
}

static PyObject *find(PyObject *Py_UNUSED(module), PyObject *name) {
    return look_up(tor_backend_find, name);
}

static PyObject *init(PyObject *Py_UNUSED(module), PyObject *object) {
    const ToroidBackend *backend = tor_py_backend(object);
    if (!backend) return NULL;
    PyThreadState *state = PyEval_SaveThread();
    ToroidStatus status = toroid_backend_init(backend);
    PyEval_RestoreThread(state);
    if (status != TOROID_OK) return tor_py_raise(status);
    Py_RETURN_NONE;
}

/// The texts of a tuple, ending in NULL; they live as long as it does.
static const char **texts(PyObject *tuple) {
    Py_ssize_t count = PyTuple_Size(tuple);
    const char **items = tor_alloc((size_t)(count + 1) * sizeof *items);
    if (!items) return (const char **)PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++) {
        items[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(tuple, i), NULL);
        if (!items[i]) {
            tor_free(items);
            return NULL;
        }
    }
    items[count] = NULL;
    return items;
}

static PyObject *list(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *tags;
    if (!PyArg_ParseTuple(args, "O!:backend_list", &PyTuple_Type, &tags)) return NULL;
    const char **exclude = texts(tags);
    if (!exclude) return NULL;
    char **names;
    ToroidStatus status = toroid_backend_list(exclude, &names);
    tor_free(exclude);
    if (status != TOROID_OK) return tor_py_raise(status);
    PyObject *found = PyList_New(0);
    for (char **name = names; found && *name; name++) {
        PyObject *text = PyUnicode_FromString(*name);
        if (!text || PyList_Append(found, text) < 0) Py_CLEAR(found);
        Py_XDECREF(text);
    }
    toroid_names_free(names);
    return found;
}

static PyObject *compose(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *names;
    if (!PyArg_ParseTuple(args, "O!:backend_compose", &PyTuple_Type, &names)) return NULL;
    const char **members = texts(names);
    if (!members) return NULL;
    int count = (int)PyTuple_Size(names);
    const ToroidBackend *backend;
    PyThreadState *state = PyEval_SaveThread();
    ToroidStatus status = toroid_backend_compose(&backend, members, count);
    PyEval_RestoreThread(state);
    tor_free(members);
    return status == TOROID_OK ? wrap(backend) : tor_py_raise(status);
}

static PyObject *name(PyObject *Py_UNUSED(module), PyObject *object) {
    const ToroidBackend *backend = tor_py_backend(object);
    return backend ? PyUnicode_FromString(backend->name) : NULL;
}

PyMethodDef tor_py_registry_methods[] = {
    {"backend_compose", compose, METH_VARARGS,
     "backend_compose(names) -> Backend\n\nResolves them all."},
    {"backend_name", name, METH_O, "backend_name(backend) -> str"},
    {"backend_resolve", resolve, METH_O,
     "backend_resolve(name) -> Backend\n\nLoads a plugin where needed and calls the init hook."},
    {"backend_find", find, METH_O,
     "backend_find(name) -> Backend\n\nAs backend_resolve, without the init hook."},
    {"backend_init", init, METH_O, "backend_init(backend)\n\nCalls its init hook."},
    {"backend_list", list, METH_VARARGS,
     "backend_list(exclude_tags) -> list of names\n\nIn order; loads nothing."},
    {0},
};

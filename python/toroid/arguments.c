/// Python arguments of an ATen call to TorArgs, and the importer's answer back.
#include "core.h"

#include <string.h>

static int from_list(TorPyGraph *graph, TorArena *arena, PyObject *list, TorArg *out) {
    bool tuple = PyTuple_Check(list);
    Py_ssize_t count = tuple ? PyTuple_Size(list) : PyList_Size(list);
    TorArg *items = tor_arena_alloc(arena, (size_t)(count ? count : 1) * sizeof(TorArg));
    if (!items) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (tor_py_argument(graph, arena,
                            tuple ? PyTuple_GetItem(list, i) : PyList_GetItem(list, i),
                            &items[i]) < 0)
            return -1;
    *out = TOR_ARG_OF_LIST(items, (int)count);
    return 0;
}

/// torch.dtype and its like, by what they print as.
static int from_torch(TorArena *arena, PyObject *object, TorArg *out) {
    PyObject *type = PyType_GetName(Py_TYPE(object));
    const char *name = type ? PyUnicode_AsUTF8AndSize(type, NULL) : NULL;
    if (!name) {
        Py_XDECREF(type);
        return -1;
    }
    bool dtype = !strcmp(name, "dtype");
    int result = -1;
    if (dtype || !strcmp(name, "device") || !strcmp(name, "layout") ||
        !strcmp(name, "memory_format")) {
        PyObject *printed = PyObject_Str(object);
        const char *text = printed ? PyUnicode_AsUTF8AndSize(printed, NULL) : NULL;
        if (text && dtype) {
            TorDtype parsed;
            ToroidStatus status =
                tor_dtype_parse(&parsed, strncmp(text, "torch.", 6) ? text : text + 6);
            if (status == TOROID_OK) {
                *out = TOR_ARG_OF_DTYPE(parsed);
                result = 0;
            } else
                tor_py_raise(status);
        } else if (text) {
            char *copy = tor_arena_strdup(arena, text);
            if (copy) {
                *out = TOR_ARG_OF_STR(copy);
                result = 0;
            } else
                PyErr_NoMemory();
        }
        Py_XDECREF(printed);
    } else
        PyErr_Format(tor_py_unsupported, "an argument of type %s", name);
    Py_DECREF(type);
    return result;
}

int tor_py_argument(TorPyGraph *graph, TorArena *arena, PyObject *object, TorArg *out) {
    if (object == Py_None)
        *out = TOR_ARG_OF_NONE;
    else if (PyObject_TypeCheck(object, tor_py_value_type)) {
        if (!tor_py_same_graph(graph, ((TorPyValue *)object)->owner)) return -1;
        *out = TOR_ARG_OF_VALUE(((TorPyValue *)object)->value);
    } else if (PyObject_TypeCheck(object, tor_py_int_type)) {
        if (!tor_py_same_graph(graph, ((TorPyInt *)object)->owner)) return -1;
        *out = TOR_ARG_OF_DIM(((TorPyInt *)object)->dim);
    } else if (PyBool_Check(object))
        *out = TOR_ARG_OF_BOOL(object == Py_True);
    else if (PyLong_Check(object)) {
        int overflow;
        long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
        if (overflow) {
            PyErr_SetString(tor_py_unsupported, "an integer argument beyond 64 bits");
            return -1;
        }
        if (value == -1 && PyErr_Occurred()) return -1;
        *out = TOR_ARG_OF_INT(value);
    } else if (PyFloat_Check(object))
        *out = TOR_ARG_OF_FLOAT(PyFloat_AsDouble(object));
    else if (PyUnicode_Check(object)) {
        const char *text = PyUnicode_AsUTF8AndSize(object, NULL);
        if (!text) return -1;
        *out = TOR_ARG_OF_STR(text);
    } else if (PyTuple_Check(object) || PyList_Check(object))
        return from_list(graph, arena, object, out);
    else if (PyComplex_Check(object)) {
        PyErr_SetString(tor_py_unsupported, "a complex argument");
        return -1;
    } else
        return from_torch(arena, object, out);
    return 0;
}

PyObject *tor_py_result(TorPyGraph *graph, const TorArg *result) {
    switch (result->kind) {
        case TOR_ARG_INT: return PyLong_FromLongLong(result->i);
        case TOR_ARG_DIM: return tor_py_int_new(graph, result->dim);
        case TOR_ARG_FLOAT: return PyFloat_FromDouble(result->f);
        case TOR_ARG_BOOL: return PyBool_FromLong(result->b);
        case TOR_ARG_VALUE: return tor_py_value_new(graph, result->value);
        case TOR_ARG_LIST: {
            PyObject *tuple = PyTuple_New(result->count);
            for (int i = 0; tuple && i < result->count; i++) {
                PyObject *item = tor_py_result(graph, &result->list[i]);
                if (!item) {
                    Py_DECREF(tuple);
                    return NULL;
                }
                PyTuple_SetItem(tuple, i, item);
            }
            return tuple;
        }
        default: Py_RETURN_NONE;
    }
}

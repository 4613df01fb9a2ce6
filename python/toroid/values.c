/// The types Value (a tensor of a graph) and Int (an integer of a graph that is not known yet).
///
/// Int has Python's integer arithmetic, so that size expressions of any frontend can be evaluated
/// on it; what can be folded comes back as a Python int.
#include "core.h"

PyTypeObject *tor_py_value_type, *tor_py_int_type;

bool tor_py_same_graph(const TorPyGraph *graph, const TorPyGraph *owner) {
    if (graph == owner && graph->graph) return true;
    PyErr_SetString(PyExc_ValueError,
                    graph == owner ? "the graph is compiled already" : "a value of another graph");
    return false;
}

static void value_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF((PyObject *)((TorPyValue *)self)->owner);
    PyObject_Free(self);
    Py_DECREF(type);
}

static void int_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF((PyObject *)((TorPyInt *)self)->owner);
    PyObject_Free(self);
    Py_DECREF(type);
}

PyObject *tor_py_value_new(TorPyGraph *owner, TorValue *value) {
    TorPyValue *self = PyObject_New(TorPyValue, tor_py_value_type);
    if (!self) return NULL;
    Py_INCREF((PyObject *)owner);
    self->owner = owner;
    self->value = value;
    return (PyObject *)self;
}

PyObject *tor_py_int_new(TorPyGraph *owner, TorDim dim) {
    int64_t known;
    if (dim == TOR_NO_DIM) return PyErr_NoMemory();
    if (tor_int_known(owner->graph, dim, &known)) return PyLong_FromLongLong(known);
    TorPyInt *self = PyObject_New(TorPyInt, tor_py_int_type);
    if (!self) return NULL;
    Py_INCREF((PyObject *)owner);
    self->owner = owner;
    self->dim = dim;
    return (PyObject *)self;
}

static PyObject *value_repr(PyObject *self) {
    TorPyValue *v = (TorPyValue *)self;
    if (!v->owner->graph) return PyUnicode_FromString("<Value of a compiled graph>");
    return PyUnicode_FromFormat("<Value %%%u %s, rank %d>", v->value->id,
                                tor_dtype_name(v->value->dtype), v->value->rank);
}

static PyObject *value_dtype(PyObject *self, void *Py_UNUSED(closure)) {
    TorPyValue *v = (TorPyValue *)self;
    if (!tor_py_same_graph(v->owner, v->owner)) return NULL;
    return PyUnicode_FromString(tor_dtype_name(v->value->dtype));
}

static PyObject *value_rank(PyObject *self, void *Py_UNUSED(closure)) {
    TorPyValue *v = (TorPyValue *)self;
    if (!tor_py_same_graph(v->owner, v->owner)) return NULL;
    return PyLong_FromLong(v->value->rank);
}

static PyObject *int_repr(PyObject *self) {
    TorPyInt *i = (TorPyInt *)self;
    char text[256];
    if (!i->owner->graph) return PyUnicode_FromString("<Int of a compiled graph>");
    return PyUnicode_FromFormat("<Int %s>",
                                tor_int_print(i->owner->graph, i->dim, text, sizeof text));
}

// ---------------------------------------------------------------- arithmetic

/// An operand: 1, or 0 where it is neither Int nor int, or -1 with an exception.
static int operand(PyObject *object, TorPyGraph *graph, TorDim *out) {
    if (PyObject_TypeCheck(object, tor_py_int_type)) {
        *out = ((TorPyInt *)object)->dim;
        return tor_py_same_graph(graph, ((TorPyInt *)object)->owner) ? 1 : -1;
    }
    if (!PyLong_Check(object)) return 0;
    long long value = PyLong_AsLongLong(object);
    if (value == -1 && PyErr_Occurred()) return -1;
    *out = tor_int_const(graph->graph, value);
    return 1;
}

static PyObject *binary(PyObject *left, PyObject *right, TorIntOp op) {
    PyObject *known = PyObject_TypeCheck(left, tor_py_int_type) ? left : right;
    TorPyGraph *graph = ((TorPyInt *)known)->owner;
    if (!tor_py_same_graph(graph, graph)) return NULL;
    TorDim a, b;
    int good = operand(left, graph, &a);
    if (good > 0) good = operand(right, graph, &b);
    if (good < 0) return NULL;
    if (good == 0) {
        Py_INCREF(Py_NotImplemented);
        return Py_NotImplemented;
    }
    return tor_py_int_new(graph, tor_int_binary(graph->graph, op, a, b));
}

static PyObject *int_add(PyObject *a, PyObject *b) { return binary(a, b, TOR_INT_add); }
static PyObject *int_sub(PyObject *a, PyObject *b) { return binary(a, b, TOR_INT_sub); }
static PyObject *int_mul(PyObject *a, PyObject *b) { return binary(a, b, TOR_INT_mul); }
static PyObject *int_floordiv(PyObject *a, PyObject *b) { return binary(a, b, TOR_INT_floordiv); }
static PyObject *int_mod(PyObject *a, PyObject *b) { return binary(a, b, TOR_INT_mod); }
static PyObject *int_pow(PyObject *a, PyObject *b, PyObject *modulus) {
    if (modulus == Py_None) return binary(a, b, TOR_INT_pow);
    Py_INCREF(Py_NotImplemented);
    return Py_NotImplemented;
}
static PyObject *int_max(PyObject *a, PyObject *b) { return binary(a, b, TOR_INT_max); }
static PyObject *int_min(PyObject *a, PyObject *b) { return binary(a, b, TOR_INT_min); }
static PyObject *int_neg(PyObject *a) {
    TorPyGraph *graph = ((TorPyInt *)a)->owner;
    if (!tor_py_same_graph(graph, graph)) return NULL;
    return tor_py_int_new(
        graph, tor_int_sub(graph->graph, tor_int_const(graph->graph, 0), ((TorPyInt *)a)->dim));
}

static PyGetSetDef value_fields[] = {
    {"dtype", value_dtype, NULL, "\"float32\"", NULL},
    {"rank", value_rank, NULL, "number of dims", NULL},
    {0},
};

static PyType_Slot value_slots[] = {
    {Py_tp_doc, "A tensor of a Graph."},
    {Py_tp_dealloc, value_dealloc},
    {Py_tp_repr, value_repr},
    {Py_tp_getset, value_fields},
    {0, NULL},
};
PyType_Spec tor_py_value_spec = {"toroid._core.Value", sizeof(TorPyValue), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                 value_slots};

static PyMethodDef int_methods[] = {
    {"max", int_max, METH_O, "max(other) -> Int | int, the larger"},
    {"min", int_min, METH_O, "min(other) -> Int | int, the smaller"},
    {0},
};

static PyType_Slot int_slots[] = {
    {Py_tp_doc, "An integer of a Graph that is known when the graph is called."},
    {Py_tp_dealloc, int_dealloc},
    {Py_tp_repr, int_repr},
    {Py_tp_methods, int_methods},
    {Py_nb_add, int_add},
    {Py_nb_subtract, int_sub},
    {Py_nb_multiply, int_mul},
    {Py_nb_floor_divide, int_floordiv},
    {Py_nb_remainder, int_mod},
    {Py_nb_power, int_pow},
    {Py_nb_negative, int_neg},
    {0, NULL},
};
PyType_Spec tor_py_int_spec = {"toroid._core.Int", sizeof(TorPyInt), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, int_slots};

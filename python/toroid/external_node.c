/// Runs a node by PyTorch: tensors out of the plan, a Python call, its tensors back into the plan.
///
/// A tensor over plan memory must not escape into Python, so inputs that are not the caller's own
/// tensors are copied, and results are copied into the plan's memory.
#include "core.h"

/// A Python tensor for one operand of the node.
static PyObject *to_python(const TorPyFrame *frame, const TorHostTensor *t) {
    if (t->graph_input >= 0 && frame->objects[t->graph_input]) {
        PyObject *own = frame->objects[t->graph_input];
        Py_INCREF(own);
        return own;
    }
    int64_t row_major[TOR_MAX_RANK], next = 1;
    for (int i = t->rank; i-- > 0; next *= TOR_MAX(t->size[i], 1)) row_major[i] = next;
    void *memory;
    PyObject *tensor = tor_py_new_tensor(t->dtype, t->rank, t->size, row_major, &memory);
    if (tensor)
        tor_py_copy(t->rank, t->size, tor_dtype_size(t->dtype), memory, row_major, t->data,
                    t->stride ? t->stride : row_major);
    return tensor;
}

static int from_python(PyObject *object, int number, const TorHostTensor *out) {
    if (!out->data) {
        // An output that nobody reads, or an empty one.
        bool empty = false;
        for (int i = 0; i < out->rank; i++) empty |= out->size[i] == 0;
        if (!empty) return 0;
    }
    TorPyTensor t;
    if (tor_py_borrow(object, "result", number, &t) < 0) return -1;
    bool same = t.dtype == out->dtype && t.rank == out->rank;
    for (int i = 0; same && i < t.rank; i++) same = t.size[i] == out->size[i];
    if (!same) {
        PyErr_Format(PyExc_ValueError,
                     "result %d of an external node: expected %s of rank %d, got %s of rank %d, or "
                     "another size",
                     number, tor_dtype_name(out->dtype), out->rank, tor_dtype_name(t.dtype),
                     t.rank);
        return -1;
    }
    tor_py_copy(t.rank, t.size, tor_dtype_size(t.dtype), out->data, out->stride, t.data, t.stride);
    return 0;
}

static PyObject *tensors_tuple(const TorPyFrame *frame, const TorHostTensor *inputs, int count) {
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; tuple && i < count; i++) {
        PyObject *tensor = to_python(frame, &inputs[i]);
        if (!tensor)
            Py_CLEAR(tuple);
        else
            PyTuple_SetItem(tuple, i, tensor);
    }
    return tuple;
}

static PyObject *ints_tuple(const int64_t *ints, int count) {
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; tuple && i < count; i++) {
        PyObject *number = PyLong_FromLongLong(ints[i]);
        if (!number)
            Py_CLEAR(tuple);
        else
            PyTuple_SetItem(tuple, i, number);
    }
    return tuple;
}

static int run(TorPyExecutable *exe, TorPyFrame *frame, int64_t callable,
               const TorHostTensor *inputs, int n_inputs, const int64_t *ints, int n_ints,
               const TorHostTensor *outputs, int n_outputs) {
    PyObject *function = PyList_GetItem(exe->callables, (Py_ssize_t)callable);
    if (!function) return -1;
    PyObject *tensors = tensors_tuple(frame, inputs, n_inputs),
             *numbers = tensors ? ints_tuple(ints, n_ints) : NULL;
    PyObject *answer =
        numbers ? PyObject_CallFunctionObjArgs(function, tensors, numbers, NULL) : NULL;
    Py_XDECREF(tensors);
    Py_XDECREF(numbers);
    PyObject *results = answer ? PySequence_Tuple(answer) : NULL;
    Py_XDECREF(answer);
    if (!results) return -1;
    int status = 0;
    if (PyTuple_Size(results) != n_outputs) {
        PyErr_Format(PyExc_ValueError, "an external node gave %zd results instead of %d",
                     PyTuple_Size(results), n_outputs);
        status = -1;
    }
    for (int i = 0; status == 0 && i < n_outputs; i++)
        status = from_python(PyTuple_GetItem(results, i), i, &outputs[i]);
    Py_DECREF(results);
    return status;
}

ToroidStatus tor_py_external(void *user, void *token, int64_t callable, const TorHostTensor *inputs,
                             int n_inputs, const int64_t *ints, int n_ints,
                             const TorHostTensor *outputs, int n_outputs) {
    TorPyFrame *frame = token;
    PyGILState_STATE gil = PyGILState_Ensure();
    int status = run(user, frame, callable, inputs, n_inputs, ints, n_ints, outputs, n_outputs);
    if (status < 0) PyErr_Fetch(&frame->error[0], &frame->error[1], &frame->error[2]);
    PyGILState_Release(gil);
    return status < 0 ? tor_failed("external node %lld raised an exception", (long long)callable)
                      : TOROID_OK;
}

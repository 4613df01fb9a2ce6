/// The type Executable: a compiled graph as a callable that takes one list and empties it
/// (PyTorch's "boxed" convention), and gives a list.
#include "api/frontend.h"
#include "core.h"
#include "frames.h"

// ---------------------------------------------------------------- a call, step by step

/// Input `i` of the call: `object` is borrowed; a tensor is kept in the frame until the call ends.
static int take_input(TorPyExecutable *exe, TorPyFrame *frame, int i, PyObject *object) {
    const TorPyInput *expected = &exe->inputs[i];
    TorCallInput *input = &frame->inputs[i];
    if (expected->is_int) {
        // None stands for a token, which orders side effects while PyTorch traces.
        if (object == Py_None) return 0;
        input->value = PyLong_AsLongLong(object);
        return input->value == -1 && PyErr_Occurred() ? -1 : 0;
    }
    Py_INCREF(object);
    frame->objects[i] = object;
    TorPyTensor tensor;
    if (exe->unguarded) {
        int negative = tor_py_is_negative(object);
        if (negative < 0) return -1;
        if (negative && !expected->memory) {
            PyObject *plain = PyObject_CallMethod(object, "resolve_neg", NULL);
            if (!plain) return -1;
            frame->objects[i] = plain;
            Py_DECREF(object);
            object = plain;
        }
    }
    if (tor_py_borrow(object, "input", i, &tensor) < 0) return -1;
    if (tensor.dtype != expected->dtype || tensor.rank != expected->rank) {
        PyErr_Format(PyExc_ValueError, "input %d: expected %s of rank %d, got %s of rank %d", i,
                     tor_dtype_name(expected->dtype), expected->rank, tor_dtype_name(tensor.dtype),
                     tensor.rank);
        return -1;
    }
    if (expected->contiguous && !tor_py_is_row_major(tensor.rank, tensor.size, tensor.stride)) {
        if (expected->written || expected->memory) {
            PyErr_Format(PyExc_ValueError,
                         "input %d: the graph needs its memory, and was promised it row-major", i);
            return -1;
        }
        PyObject *dense = PyObject_CallMethod(object, "contiguous", NULL);
        if (!dense) return -1;
        frame->objects[i] = dense;
        Py_DECREF(object);
        object = dense;
        if (tor_py_borrow(object, "input", i, &tensor) < 0) return -1;
    }
    input->owner = object;
    input->data = tensor.data;
    input->size = tensor.size;
    input->stride = tensor.stride;
    if (expected->memory &&
        tor_py_memory(object, tensor.dtype, &input->data, &input->start, &input->memory) < 0)
        return -1;
    return expected->tracked ? tor_py_identity(object, &exe->seen[i], &input->uid, &input->version)
                             : 0;
}

static int take_inputs(TorPyExecutable *exe, TorPyFrame *frame, PyObject *list) {
    int n = exe->n_inputs - exe->n_constants;
    for (int i = 0; i < n; i++)
        if (take_input(exe, frame, i, PyList_GetItem(list, i)) < 0) return -1;
    for (int i = 0; i < exe->n_constants; i++)
        if (take_input(exe, frame, n + i, PyTuple_GetItem(exe->constants, i)) < 0) return -1;
    return PyList_SetSlice(list, 0, n, NULL);
}

/// Memory for every output that the caller gets.
static int make_outputs(TorPyExecutable *exe, TorPyFrame *frame, TorCallOutput *outputs) {
    for (int r = 0; r < exe->n_returns; r++) {
        const TorPyReturn *ret = &exe->returns[r];
        if (ret->kind == TOR_PY_OBJECT) continue;
        TorCallOutput *output = &outputs[ret->output];
        if (ret->kind == TOR_PY_INT) {
            output->data = &frame->ints[ret->output];
            continue;
        }
        if (output->from_input >= 0 || output->from_output >= 0) continue;
        frame->results[ret->output] = tor_py_new_tensor(output->dtype, output->rank, output->size,
                                                        output->stride, &output->data);
        if (!frame->results[ret->output]) return -1;
    }
    return 0;
}

/// An output that is a view of one of the host's tensors.
static PyObject *make_view(PyObject *base, const TorCallOutput *output) {
    PyObject *first = PyObject_CallMethod(base, "storage_offset", NULL);
    int64_t offset = first ? PyLong_AsLongLong(first) + output->offset : 0;
    Py_XDECREF(first);
    PyObject *size = PyTuple_New(output->rank), *stride = PyTuple_New(output->rank);
    bool ok = first && size && stride;
    for (int i = 0; ok && i < output->rank; i++)
        ok = PyTuple_SetItem(size, i, PyLong_FromLongLong(output->size[i])) == 0 &&
             PyTuple_SetItem(stride, i, PyLong_FromLongLong(output->stride[i])) == 0;
    PyObject *view = ok && !PyErr_Occurred() ? PyObject_CallMethod(base, "as_strided", "(OOL)",
                                                                   size, stride, (long long)offset)
                                             : NULL;
    Py_XDECREF(size);
    Py_XDECREF(stride);
    return view;
}

/// A new reference to the tensor of one output.
static PyObject *output_tensor(TorPyFrame *frame, const TorCallOutput *outputs, int k) {
    const TorCallOutput *output = &outputs[k];
    if (output->from_input >= 0 && !output->whole)
        return make_view(frame->objects[output->from_input], output);
    if (output->from_output >= 0) return make_view(frame->results[output->from_output], output);
    PyObject *tensor =
        output->from_input >= 0 ? frame->objects[output->from_input] : frame->results[k];
    Py_XINCREF(tensor);
    return tensor;
}

static PyObject *collect(TorPyExecutable *exe, TorPyFrame *frame, const TorCallOutput *outputs) {
    PyObject *list = PyList_New(exe->n_returns);
    if (!list) return NULL;
    for (int r = 0; r < exe->n_returns; r++) {
        const TorPyReturn *ret = &exe->returns[r];
        PyObject *item;
        if (ret->kind == TOR_PY_INT) {
            item = PyLong_FromLongLong(frame->ints[ret->output]);
        } else {
            item = ret->kind == TOR_PY_OBJECT ? ret->object
                                              : output_tensor(frame, outputs, ret->output);
            if (ret->kind == TOR_PY_OBJECT) Py_XINCREF(item);
        }
        if (!item || PyList_SetItem(list, r, item) < 0) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

static PyObject *run(TorPyExecutable *exe, TorPyFrame *frame, PyObject *list) {
    if (take_inputs(exe, frame, list) < 0) return NULL;
    int threads = exe->threads ? exe->threads : tor_py_threads();
    if (threads < 0) return NULL;
    TorCall *call = NULL;
    ToroidStatus status = tor_exe_begin(exe->exe, frame->inputs, threads, &call);
    if (status != TOROID_OK) return tor_py_raise(status);
    TorCallOutput *outputs = tor_exe_outputs(call);
    PyObject *result = NULL;
    if (make_outputs(exe, frame, outputs) == 0) {
        bool ranges = tor_py_wants_ranges();
        PyThreadState *state = PyEval_SaveThread();
        status = tor_exe_run(call, frame, ranges);
        PyEval_RestoreThread(state);
        if (status == TOROID_OK) {
            result = collect(exe, frame, outputs);
        } else if (frame->error[0]) {
            PyErr_Restore(frame->error[0], frame->error[1], frame->error[2]);
            frame->error[0] = frame->error[1] = frame->error[2] = NULL;
        } else
            tor_py_raise(status);
    }
    tor_exe_end(&call);
    return result;
}

static PyObject *executable_call(PyObject *object, PyObject *args, PyObject *kwargs) {
    TorPyExecutable *exe = (TorPyExecutable *)object;
    PyObject *list = PyTuple_Size(args) == 1 ? PyTuple_GetItem(args, 0) : NULL;
    if (!list || !PyList_Check(list) || (kwargs && PyDict_Size(kwargs)))
        return PyErr_Format(PyExc_TypeError,
                            "an Executable takes one list of inputs, which it empties");
    if (PyList_Size(list) != exe->n_inputs - exe->n_constants)
        return PyErr_Format(PyExc_TypeError, "expected %d inputs, got %zd",
                            exe->n_inputs - exe->n_constants, PyList_Size(list));
    TorPyFrame *frame = tor_py_frame_take(exe);
    if (!frame) return NULL;
    // A tensor's deleter may run Python code that drops the last other reference.
    Py_INCREF(object);
    PyObject *result = run(exe, frame, list);
    tor_py_frame_give(exe, frame);
    Py_DECREF(object);
    return result;
}

// ---------------------------------------------------------------- making and freeing

static PyTypeObject *executable_type;

/// What the graph says of its inputs, before it is given away.
static int note_inputs(TorPyExecutable *exe, const TorPyGraph *graph) {
    const TorGraph *g = graph->graph;
    exe->n_inputs = (int)g->n_inputs;
    exe->inputs = tor_alloc_zero((g->n_inputs + 1) * sizeof *exe->inputs);
    exe->seen = tor_alloc_zero((g->n_inputs + 1) * sizeof *exe->seen);
    if (!exe->inputs || !exe->seen) {
        PyErr_NoMemory();
        return -1;
    }
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        const TorInput *from = &g->inputs[i];
        exe->inputs[i] = (TorPyInput){.is_int = from->kind == TOR_INPUT_INT,
                                      .contiguous = from->contiguous,
                                      .written = graph->written[i]};
        if (from->kind == TOR_INPUT_INT) continue;
        exe->inputs[i].dtype = from->value->dtype;
        exe->inputs[i].rank = from->value->rank;
    }
    for (uint32_t k = 0; k < tor_int_count(g); k++) {
        const TorInt *x = tor_int_get(g, k);
        if (x->op == TOR_INT_start || x->op == TOR_INT_memory) exe->inputs[x->a].memory = true;
    }
    return 0;
}

PyObject *tor_py_compile(TorPyGraph *graph, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"callables", "constants", "threads", "freeze", "reference", "precision",
                            "unguarded", "release",   "backend", "tune",   NULL};
    PyObject *callables, *constants, *wanted = Py_None;
    const char *precision = "f32";
    int threads = 0, freeze = 1, reference = 0, unguarded = 0, release = 0, tune = 0;
    if (!tor_py_attached() ||
        !PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!|ippsppOp:compile", names, &PyList_Type,
                                     &callables, &PyTuple_Type, &constants, &threads, &freeze,
                                     &reference, &precision, &unguarded, &release, &wanted, &tune))
        return NULL;
    const ToroidBackend *backend = wanted == Py_None ? NULL : tor_py_backend(wanted);
    if (!backend && wanted != Py_None) return NULL;
    if (!graph->written) return PyErr_Format(PyExc_ValueError, "compile() before set_outputs()");
    if (PyTuple_Size(constants) > (Py_ssize_t)graph->graph->n_inputs)
        return PyErr_Format(PyExc_ValueError, "more constants than inputs");

    allocfunc alloc = (allocfunc)PyType_GetSlot(executable_type, Py_tp_alloc);
    TorPyExecutable *exe = (TorPyExecutable *)alloc(executable_type, 0);
    if (!exe) return NULL;
    if (note_inputs(exe, graph) < 0) {
        Py_DECREF((PyObject *)exe);
        return NULL;
    }
    tor_py_keep(&exe->callables, callables);
    tor_py_keep(&exe->constants, constants);
    exe->n_constants = (int)PyTuple_Size(constants);
    exe->threads = threads;
    exe->backend = "toroid";
    exe->unguarded = unguarded;
    exe->n_outputs = graph->n_outputs;
    exe->n_returns = graph->n_returns;
    exe->returns = graph->returns;
    graph->returns = NULL;
    graph->n_returns = -1;

    TorOptions options = {.host = {.user = exe,
                                   .external = tor_py_external,
                                   .range = tor_py_range,
                                   .releases = tor_py_releases},
                          .release = release,
                          .threads = threads,
                          .freeze = freeze,
                          .reference = reference,
                          .tune = tune,
                          .precision = precision};
    TorGraph *taken = graph->graph;
    graph->graph = NULL;
    PyThreadState *state = PyEval_SaveThread();
    ToroidStatus status =
        backend ? tor_frontend_compile(&exe->exe, &taken, &options, backend, &exe->backend)
                : tor_exe_compile(&exe->exe, &taken, &options);
    PyEval_RestoreThread(state);
    if (status != TOROID_OK) {
        Py_DECREF((PyObject *)exe);
        return tor_py_raise(status);
    }
    for (int i = 0; i < exe->n_inputs; i++)
        exe->inputs[i].tracked = tor_exe_tracks(exe->exe, (uint32_t)i);
    return (PyObject *)exe;
}

static void executable_dealloc(PyObject *object) {
    TorPyExecutable *exe = (TorPyExecutable *)object;
    PyTypeObject *type = Py_TYPE(object);
    tor_exe_destroy(&exe->exe);
    tor_py_frames_free(exe);
    for (int i = 0; i < exe->n_returns; i++) Py_XDECREF(exe->returns[i].object);
    tor_free(exe->returns);
    tor_free(exe->inputs);
    tor_free(exe->seen);
    Py_XDECREF(exe->callables);
    Py_XDECREF(exe->constants);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

// ---------------------------------------------------------------- looking inside

static PyObject *executable_stats(PyObject *object, PyObject *Py_UNUSED(ignored)) {
    TorExeStats s = {0};
    tor_exe_stats(((TorPyExecutable *)object)->exe, &s);
    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {
        {"frozen_entries", s.frozen_entries},
        {"frozen_bytes", s.frozen_bytes},
        {"mapped_bytes", s.mapped_bytes},
        {"released_bytes", s.released_bytes},
        {"frozen_packs", s.frozen_packs},
        {"steps", s.steps},
        {"native_nodes", s.native_nodes},
        {"external_nodes", s.external_nodes},
        {"arena_bytes", s.arena_bytes},
        {"binds", s.binds},
        {"contexts", s.contexts},
        {"input_bytes", s.input_bytes},
        {"weight_bytes", s.weight_bytes},
    };
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict && i < TOR_COUNT_OF(rows); i++) {
        PyObject *number = PyLong_FromUnsignedLongLong(rows[i].value);
        if (!number || PyDict_SetItemString(dict, rows[i].name, number) < 0) Py_CLEAR(dict);
        Py_XDECREF(number);
    }
    return dict;
}

static PyObject *executable_describe(PyObject *object, PyObject *Py_UNUSED(ignored)) {
    char *before = NULL, *after = NULL, *steps = NULL;
    ToroidStatus status =
        tor_exe_describe(((TorPyExecutable *)object)->exe, &before, &after, &steps);
    if (status != TOROID_OK) return tor_py_raise(status);
    PyObject *result = Py_BuildValue("{szszsz}", "before", before, "after", after, "steps", steps);
    tor_free(before);
    tor_free(after);
    tor_free(steps);
    return result;
}

static PyObject *executable_record(PyObject *object, PyObject *Py_UNUSED(ignored)) {
    return tor_py_record(((TorPyExecutable *)object)->exe);
}

static PyObject *executable_boxed(PyObject *Py_UNUSED(object), void *Py_UNUSED(closure)) {
    Py_RETURN_TRUE;
}

static PyObject *executable_backend(PyObject *object, void *Py_UNUSED(closure)) {
    return PyUnicode_FromString(((TorPyExecutable *)object)->backend);
}

static PyMethodDef methods[] = {
    {"stats", executable_stats, METH_NOARGS,
     "stats() -> dict of counts; those named frozen_* are the process's"},
    {"describe", executable_describe, METH_NOARGS,
     "describe() -> dict of tables: before, after (graph), steps (with kernels)"},
    {"record", executable_record, METH_NOARGS,
     "record() -> dict\n\nThe same tables as plain objects, and where each node went."},
    {0},
};

static PyGetSetDef fields[] = {
    {"backend", executable_backend, NULL, "name of the backend that compiled it", NULL},
    {"_boxed_call", executable_boxed, NULL, "True: AOTAutograd then passes one list", NULL},
    {0},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A compiled graph. Call it with one list of inputs."},
    {Py_tp_dealloc, executable_dealloc},
    {Py_tp_call, executable_call},
    {Py_tp_methods, methods},
    {Py_tp_getset, fields},
    {0, NULL},
};
static PyType_Spec spec = {"toroid._core.Executable", sizeof(TorPyExecutable), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

int tor_py_executable_init(PyObject *module) {
    executable_type = tor_py_add_type(module, &spec);
    return executable_type ? 0 : -1;
}

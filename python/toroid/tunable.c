/// The tuner, as Python sees it: functions of toroid/tune.h.
#include "core.h"
#include "toroid/tune.h"

static PyObject *none_or(ToroidStatus status) {
    if (status != TOROID_OK) return tor_py_raise(status);
    Py_RETURN_NONE;
}

static PyObject *set(PyObject *Py_UNUSED(module), PyObject *args) {
    const char *name;
    PyObject *value;  // a path may have bytes that are no text
    if (!PyArg_ParseTuple(args, "sO&:tune_set", &name, PyUnicode_FSConverter, &value)) return NULL;
    ToroidStatus status = toroid_tune_set(name, PyBytes_AsString(value));
    Py_DECREF(value);
    return none_or(status);
}

static PyObject *get(PyObject *Py_UNUSED(module), PyObject *name) {
    char value[4096];
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    if (!text) return NULL;
    ToroidStatus status = toroid_tune_get(text, value, sizeof value);
    return status == TOROID_OK ? PyUnicode_DecodeFSDefault(value) : tor_py_raise(status);
}

static PyObject *insert_ordinal(PyObject *Py_UNUSED(module), PyObject *insert) {
    int truth = PyObject_IsTrue(insert);
    if (truth < 0) return NULL;
    toroid_tune_insert_ordinal(truth);
    Py_RETURN_NONE;
}

/// Row i of a tuple; takes `row` over. False with an exception set where that is NULL.
static bool put(PyObject **tuple, size_t i, PyObject *row) {
    if (!row || PyTuple_SetItem(*tuple, (Py_ssize_t)i, row) < 0) Py_CLEAR(*tuple);
    return *tuple != NULL;
}

static PyObject *results(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored)) {
    ToroidTuneResult *list;
    size_t count;
    ToroidStatus status = toroid_tune_results(&list, &count);
    if (status != TOROID_OK) return tor_py_raise(status);
    PyObject *rows = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; rows && i < count; i++)
        if (!put(&rows, i,
                 Py_BuildValue("(sssd)", list[i].op, list[i].params, list[i].solution,
                               list[i].mean_ms)))
            break;
    toroid_tune_free(list);
    return rows;
}

static PyObject *validators(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored)) {
    ToroidTuneValidator *list;
    size_t count;
    ToroidStatus status = toroid_tune_validators(&list, &count);
    if (status != TOROID_OK) return tor_py_raise(status);
    PyObject *rows = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; rows && i < count; i++)
        if (!put(&rows, i, Py_BuildValue("(ss)", list[i].key, list[i].value))) break;
    toroid_tune_free(list);
    return rows;
}

/// None for the file of the settings, else what names a file; *path is `*bytes`'s.
static bool path_of(PyObject *object, PyObject **bytes, const char **path) {
    *bytes = NULL, *path = NULL;
    if (object == Py_None) return true;
    if (!PyUnicode_FSConverter(object, bytes)) return false;
    *path = PyBytes_AsString(*bytes);
    return *path != NULL;
}

static PyObject *read_file(PyObject *Py_UNUSED(module), PyObject *name) {
    PyObject *bytes;
    const char *path;
    bool valid = false;
    if (!path_of(name, &bytes, &path)) return NULL;
    PyThreadState *state = PyEval_SaveThread();  // others may have the lock
    ToroidStatus status = toroid_tune_read(path, &valid);
    PyEval_RestoreThread(state);
    Py_XDECREF(bytes);
    return status == TOROID_OK ? PyBool_FromLong(valid) : tor_py_raise(status);
}

static PyObject *write_file(PyObject *Py_UNUSED(module), PyObject *name) {
    PyObject *bytes;
    const char *path;
    if (!path_of(name, &bytes, &path)) return NULL;
    PyThreadState *state = PyEval_SaveThread();
    ToroidStatus status = toroid_tune_write(path);
    PyEval_RestoreThread(state);
    Py_XDECREF(bytes);
    return none_or(status);
}

// ---------------------------------------------------------------- recorded operators

/// Lets Python's own handlers see a signal, and the caller's function each report.
static bool report(void *user, const ToroidTuneReport *r) {
    PyObject *function = user;
    PyGILState_STATE state = PyGILState_Ensure();
    bool go_on = PyErr_CheckSignals() == 0;
    if (go_on && r && function != Py_None) {
        PyObject *answer =
            PyObject_CallFunction(function, "sssddsii", r->op, r->params, r->solution,
                                  r->default_ms, r->best_ms, r->message, r->done, r->total);
        go_on = answer != NULL;
        Py_XDECREF(answer);
    }
    PyGILState_Release(state);
    return go_on;
}

/// The paths of a tuple, as bytes that `*owner` keeps.
static const char **paths_of(PyObject *tuple, PyObject **owner) {
    Py_ssize_t count = PyTuple_Size(tuple);
    const char **paths = tor_alloc_zero((size_t)(count + 1) * sizeof *paths);
    *owner = PyTuple_New(count);
    for (Py_ssize_t i = 0; paths && *owner && i < count; i++) {
        PyObject *bytes;
        if (!PyUnicode_FSConverter(PyTuple_GetItem(tuple, i), &bytes) ||
            PyTuple_SetItem(*owner, i, bytes) < 0 || !(paths[i] = PyBytes_AsString(bytes)))
            Py_CLEAR(*owner);
    }
    if (paths && *owner) return paths;
    if (!PyErr_Occurred()) PyErr_NoMemory();
    Py_CLEAR(*owner);
    tor_free(paths);
    return NULL;
}

static PyObject *tune_files(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *names, *function, *owner;
    int workers;
    if (!PyArg_ParseTuple(args, "O!iO:tune_files", &PyTuple_Type, &names, &workers, &function))
        return NULL;
    const char **paths = paths_of(names, &owner);
    if (!paths) return NULL;
    ToroidTuneJob job = {.struct_bytes = sizeof job,
                         .files = paths,
                         .n_files = (int)PyTuple_Size(names),
                         .workers = workers,
                         .report = report,
                         .user = function};
    ToroidTuneSummary s;
    PyThreadState *state = PyEval_SaveThread();
    ToroidStatus status = toroid_tune_files(&job, &s);
    PyEval_RestoreThread(state);
    tor_free(paths);
    Py_DECREF(owner);
    if (PyErr_Occurred()) return NULL;  // of the function, or KeyboardInterrupt
    if (status != TOROID_OK) return tor_py_raise(status);
    return Py_BuildValue("(iiii)", s.listed, s.known, s.tuned, s.failed);
}

PyMethodDef tor_py_tunable_methods[] = {
    {"tune_set", set, METH_VARARGS,
     "tune_set(name, value)\n\nA switch or limit of the tuner, as text."},
    {"tune_get", get, METH_O, "tune_get(name) -> str\n\nWhat holds now."},
    {"tune_insert_ordinal", insert_ordinal, METH_O,
     "tune_insert_ordinal(insert)\n\nWhether names of files get an ordinal."},
    {"tune_results", results, METH_NOARGS,
     "tune_results() -> tuple of (op, params, solution, mean_ms)"},
    {"tune_validators", validators, METH_NOARGS, "tune_validators() -> tuple of (key, value)"},
    {"tune_read", read_file, METH_O, "tune_read(path or None) -> bool\n\nWhether it was valid."},
    {"tune_write", write_file, METH_O,
     "tune_write(path or None)\n\nAppends what the file has not."},
    {"tune_files", tune_files, METH_VARARGS,
     "tune_files(paths, workers, report) -> (listed, known, tuned, failed)\n\n"
     "report(op, params, solution, default_ms, best_ms, message, done, total), or None."},
    {0},
};

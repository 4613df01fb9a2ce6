/// The module toroid._core: its exceptions, its types, and what belongs to the process.
#include "base/cpu.h"
#include "core.h"

PyObject *tor_py_unsupported;

PyObject *tor_py_raise(ToroidStatus status) {
    const char *message = toroid_last_error();
    switch (status) {
        case TOROID_UNSUPPORTED: PyErr_SetString(tor_py_unsupported, message); break;
        case TOROID_INVALID: PyErr_SetString(PyExc_ValueError, message); break;
        case TOROID_INVALID_INDEX: PyErr_SetString(PyExc_IndexError, message); break;
        case TOROID_NO_MEMORY: PyErr_SetString(PyExc_MemoryError, message); break;
        default: PyErr_SetString(PyExc_RuntimeError, message);
    }
    return NULL;
}

PyTypeObject *tor_py_add_type(PyObject *module, PyType_Spec *spec) {
    PyObject *type = PyType_FromSpec(spec);
    if (!type) return NULL;
    if (PyModule_AddType(module, (PyTypeObject *)type) < 0) {
        Py_DECREF(type);
        return NULL;
    }
    return (PyTypeObject *)type;
}

static PyObject *knows(PyObject *Py_UNUSED(module), PyObject *name) {
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    if (!text) return NULL;
    return PyBool_FromLong(tor_aten_knows(text));
}

static PyObject *refresh(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored)) {
    tor_frozen_refresh();
    Py_RETURN_NONE;
}

static PyObject *trim(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored)) {
    tor_exe_trim();
    Py_RETURN_NONE;
}

static PyObject *stats(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored)) {
    TorExeStats s = {0};
    tor_exe_stats(NULL, &s);
    return Py_BuildValue("{sKsKsKsKsK}", "frozen_entries", (unsigned long long)s.frozen_entries,
                         "frozen_bytes", (unsigned long long)s.frozen_bytes, "mapped_bytes",
                         (unsigned long long)s.mapped_bytes, "frozen_packs",
                         (unsigned long long)s.frozen_packs, "released_bytes",
                         (unsigned long long)s.released_bytes);
}

static PyObject *machine(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored)) {
    char features[256];
    tor_cpu_feature_names(tor_cpu_features(), features, sizeof features);
    return Py_BuildValue("{sssssisnsnsn}", "cpu", tor_cpu_model(), "features", features, "cpus",
                         tor_cpu_count(), "l1d", (Py_ssize_t)tor_cpu_l1d(), "l2",
                         (Py_ssize_t)tor_cpu_l2(), "l3", (Py_ssize_t)tor_cpu_l3());
}

static PyObject *threads(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored)) {
    if (!tor_py_attached()) return NULL;
    int count = tor_py_threads();
    return count < 0 ? NULL : PyLong_FromLong(count);
}

/// Names of the dtypes that a graph's tensors may have.
static PyObject *dtypes(void) {
    PyObject *names = PyTuple_New(TOR_DTYPE_COUNT);
    for (int i = 0; names && i < TOR_DTYPE_COUNT; i++) {
        PyObject *name = PyUnicode_FromString(tor_dtype_name((TorDtype)i));
        if (!name)
            Py_CLEAR(names);
        else
            PyTuple_SetItem(names, i, name);
    }
    return names;
}

static PyMethodDef methods[] = {
    {"attach", tor_py_attach, METH_VARARGS,
     "attach(tensor_type, exchange, version, is_inference, is_neg, get_num_threads)\n\nHands "
     "PyTorch's entry points to the module."},
    {"attach_release", tor_py_attach_release, METH_O,
     "attach_release(is_cow_tensor)\n\nFor a PyTorch whose storages can exchange their memory."},
    {"knows", knows, METH_O,
     "knows(name) -> bool\n\nWhether the importer has a row for an ATen name "
     "(\"aten.addmm.default\")."},
    {"machine", machine, METH_NOARGS,
     "machine() -> dict\n\nThe CPU: model, features in use, CPUs for this process, bytes of "
     "caches."},
    {"threads", threads, METH_NOARGS,
     "threads() -> int\n\nOf a call whose options name no number."},
    {"rewritten", tor_py_rewritten, METH_O,
     "rewritten(tensor)\n\nMakes stale what was made from this tensor."},
    {"refresh", refresh, METH_NOARGS,
     "refresh()\n\nMakes every packed weight stale; each is packed again at its next use."},
    {"trim", trim, METH_NOARGS,
     "trim()\n\nGives the memory of executables that do not run back to the system."},
    {"stats", stats, METH_NOARGS, "stats() -> dict\n\nProcess-wide counts of the frozen table."},
    {0},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "toroid._core",
    .m_doc = "Toroid's compiler and runtime, as Python sees them.",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void) {
    PyObject *module = PyModule_Create(&definition);
    if (!module) return NULL;
    tor_py_unsupported = PyErr_NewExceptionWithDoc(
        "toroid.Unsupported",
        "A correct request that this build or machine cannot serve; the message is the reason.",
        PyExc_RuntimeError, NULL);
    PyObject *names = dtypes();
    int named = names ? PyModule_AddObjectRef(module, "dtypes", names) : -1;
    Py_XDECREF(names);
    if (named < 0 || !tor_py_unsupported ||
        PyModule_AddObjectRef(module, "Unsupported", tor_py_unsupported) < 0 ||
        tor_py_graph_init(module) < 0 || tor_py_executable_init(module) < 0 ||
        tor_py_profile_init(module) < 0 ||
        PyModule_AddFunctions(module, tor_py_registry_methods) < 0 ||
        PyModule_AddFunctions(module, tor_py_saved_methods) < 0 ||
        PyModule_AddFunctions(module, tor_py_tunable_methods) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}

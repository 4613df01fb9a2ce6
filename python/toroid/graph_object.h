/// What the files of the type Graph share.
#ifndef TOROID_PYTHON_GRAPH_OBJECT_H
#define TOROID_PYTHON_GRAPH_OBJECT_H

#include "core.h"

/// `self` as a graph that is not compiled yet; NULL with an exception set.
TorPyGraph *tor_py_graph_alive(PyObject *self);
/// A size: an int, an Int, or a key. A key that is new becomes the size of dim `dim` of input
/// `input`; with input < 0 it is an error. All return -1 with an exception set.
int tor_py_parse_size(TorPyGraph *self, PyObject *object, int64_t input, uint32_t dim, TorDim *out);
/// A list of sizes into dims[TOR_MAX_RANK]; returns the rank.
int tor_py_parse_sizes(TorPyGraph *self, PyObject *list, int64_t input, TorDim *dims);
/// "float32" or "torch.float32".
int tor_py_parse_dtype(const char *name, TorDtype *out);

// Methods of the type (graph_outputs.c).
PyObject *tor_py_graph_external(PyObject *object, PyObject *args);
PyObject *tor_py_graph_set_outputs(PyObject *object, PyObject *args);
// (saved.c)
PyObject *tor_py_graph_to_bytes(PyObject *object, PyObject *ignored);
PyObject *tor_py_graph_from_bytes(PyObject *type, PyObject *args);

#endif

/// What the files of toroid._core share. The module is CPython's limited API (3.11) and knows no
/// header of PyTorch: what it needs from there, toroid/_torch.py hands over through attach().
///
/// Nothing here compiles a graph or chooses anything; src/aten and src/backend do.
#ifndef TOROID_PYTHON_CORE_H
#define TOROID_PYTHON_CORE_H

#include <Python.h>

#include "aten/import.h"
#include "backend/executable.h"
#include "toroid/backend.h"

struct DLManagedTensor;  // dlpack.h

// ---------------------------------------------------------------- module (_core.c)

/// toroid.Unsupported
extern PyObject *tor_py_unsupported;

/// Sets the exception that belongs to a failed status and its message; returns NULL.
PyObject *tor_py_raise(ToroidStatus status);
/// Makes a heap type and adds it to the module; NULL with an exception set.
PyTypeObject *tor_py_add_type(PyObject *module, PyType_Spec *spec);

/// *slot = object, with the references that this takes.
static inline void tor_py_keep(PyObject **slot, PyObject *object) {
    PyObject *old = *slot;
    Py_XINCREF(object);
    *slot = object;
    Py_XDECREF(old);
}

// ---------------------------------------------------------------- graphs (graph_object.c)

/// What one returned item of the compiled function is made of.
typedef struct {
    enum { TOR_PY_TENSOR, TOR_PY_INT, TOR_PY_OBJECT } kind;
    int output;        ///< of the executable: TENSOR, and INT, whose output is one int64 element
    PyObject *object;  ///< OBJECT: None or a known integer; owned
} TorPyReturn;

typedef struct {
    PyObject_HEAD TorGraph *graph;  ///< NULL once compiled
    PyObject *sizes;                ///< dict: key of a size -> number of its TorDim
    TorPyReturn *returns;
    int n_returns;  ///< -1 until set_outputs()
    int n_outputs;  ///< of the executable, writes included
    bool *written;  ///< for each input: a write goes there; NULL until set_outputs()
} TorPyGraph;

typedef struct {
    PyObject_HEAD TorPyGraph *owner;
    TorValue *value;
} TorPyValue;

typedef struct {
    PyObject_HEAD TorPyGraph *owner;
    TorDim dim;
} TorPyInt;

extern PyTypeObject *tor_py_value_type, *tor_py_int_type;
extern PyType_Spec tor_py_value_spec, tor_py_int_spec;

int tor_py_graph_init(PyObject *module);
PyObject *tor_py_value_new(TorPyGraph *owner, TorValue *value);
/// A Python int where the integer is known, else an Int.
PyObject *tor_py_int_new(TorPyGraph *owner, TorDim dim);
/// Sets an exception and returns false if `object` (a Value or Int) is of another graph or dead.
bool tor_py_same_graph(const TorPyGraph *graph, const TorPyGraph *owner);

/// One Python argument of a call to a TorArg whose lists and texts live in `arena` or in `object`.
/// @return -1 with an exception set
int tor_py_argument(TorPyGraph *graph, TorArena *arena, PyObject *object, TorArg *out);
/// The other way.
PyObject *tor_py_result(TorPyGraph *graph, const TorArg *result);

// ---------------------------------------------------------------- executables

/// Buffers of one running call; an executable keeps those that no call uses.
typedef struct TorPyFrame {
    struct TorPyFrame *next;
    TorCallInput *inputs;
    PyObject **objects;  ///< tensors of the inputs, owned while the call runs; NULL for integers
    PyObject **results;  ///< for each output its tensor, owned while the call runs
    int64_t *ints;       ///< for each output room for an integer
    PyObject *range;     ///< the profiler's, around the present step
    PyObject *error[3];  ///< exception of an external node, as PyErr_Fetch gives it
} TorPyFrame;

typedef struct {
    TorDtype dtype;
    int rank;
    bool is_int, contiguous, written;
    bool memory;   ///< the graph looks at its memory, which may be more than its elements
    bool tracked;  ///< see tor_exe_tracks()
} TorPyInput;

/// What tor_py_identity() found last in one place, so that the next look-up is a comparison.
typedef struct {
    PyObject *object;      ///< borrowed; never followed
    uint64_t uid, losses;  ///< how many tensors the table had lost then
    bool inference;
} TorPySeen;

typedef struct {
    PyObject_HEAD TorExecutable *exe;
    TorPyFrame *free_frames;
    TorPyInput *inputs;
    TorPySeen *seen;  ///< for each input
    TorPyReturn *returns;
    PyObject *callables;  ///< list: external node's number -> callable(tensors, ints)
    PyObject *constants;  ///< tuple of tensors that follow the caller's inputs
    int n_inputs, n_constants, n_outputs, n_returns;
    const char *backend;  ///< that compiled it; kept for good
    int threads;          ///< 0: PyTorch's number
    bool unguarded;       ///< inputs may carry bits that no guard has seen (negative views)
} TorPyExecutable;

int tor_py_executable_init(PyObject *module);
/// A dict of what became of the graph (record.c).
PyObject *tor_py_record(const TorExecutable *exe);
/// Graph.compile(): takes the graph over.
PyObject *tor_py_compile(TorPyGraph *graph, PyObject *args, PyObject *kwargs);

/// TorHost.external: runs external node `callable` by Python. `user` is the TorPyExecutable,
/// `token` the TorPyFrame. (external_node.c)
ToroidStatus tor_py_external(void *user, void *token, int64_t callable, const TorHostTensor *inputs,
                             int n_inputs, const int64_t *ints, int n_ints,
                             const TorHostTensor *outputs, int n_outputs);

// ---------------------------------------------------------------- tensors (tensors.c)

/// What a borrowed tensor looks like; pointers are the tensor's own.
typedef struct {
    void *data;
    TorDtype dtype;
    int rank;
    const int64_t *size, *stride;
} TorPyTensor;

/// attach(tensor_type, exchange, version, is_inference, is_neg, get_num_threads): see
/// toroid/_torch.py.
PyObject *tor_py_attach(PyObject *module, PyObject *args);
/// False with an exception set unless attach() was called.
bool tor_py_attached(void);
/// Borrows a torch tensor; -1 with an exception set ("<what> <number>: ..." where it is Toroid's
/// own).
int tor_py_borrow(PyObject *object, const char *what, int number, TorPyTensor *out);
/// 1 for a tensor whose values are the negatives of its memory, 0 else, -1 with an exception.
int tor_py_is_negative(PyObject *tensor);
/// A new tensor with memory of its own; *data is that memory. Strides of NULL mean row-major.
PyObject *tor_py_new_tensor(TorDtype dtype, int rank, const int64_t *size, const int64_t *stride,
                            void **data);
/// A tensor over memory described by DLPack, whose deleter it will call; NULL with an exception.
PyObject *tor_py_from_dlpack(struct DLManagedTensor *managed);
/// The integer that a method without arguments gives; -1 with an exception set.
int64_t tor_py_ask(PyObject *object, const char *method);
/// torch.get_num_threads(), but no more than this process has CPUs; -1 with an exception.
int tor_py_threads(void);
/// The memory of a tensor, in elements: those before its first, and all.
/// @return -1 with an exception set
int tor_py_memory(PyObject *tensor, TorDtype dtype, void **data, int64_t *start, int64_t *memory);
bool tor_py_is_row_major(int rank, const int64_t *size, const int64_t *stride);
/// Copies elements of `bytes` bytes between two strided tensors of one size.
void tor_py_copy(int rank, const int64_t *size, size_t bytes, void *dst, const int64_t *dst_stride,
                 const void *src, const int64_t *src_stride);

// ---------------------------------------------------------------- backends (registry.c)

extern PyMethodDef tor_py_registry_methods[];
/// What backend_resolve() gave; NULL with an exception set for any other object.
const ToroidBackend *tor_py_backend(PyObject *object);

// ---------------------------------------------------------------- saved graphs (saved.c)

extern PyMethodDef tor_py_saved_methods[];

// ---------------------------------------------------------------- the tuner (tunable.c)

extern PyMethodDef tor_py_tunable_methods[];

// ---------------------------------------------------------------- profiles (profile.c)

int tor_py_profile_init(PyObject *module);
/// Is PyTorch's profiler on?
bool tor_py_wants_ranges(void);
/// TorHost.range; `token` is the TorPyFrame.
void tor_py_range(void *user, void *token, const char *name);

// ---------------------------------------------------------------- released weights (release.c)

/// attach_release(is_cow_tensor)
PyObject *tor_py_attach_release(PyObject *module, PyObject *is_cow_tensor);
/// TorHost.releases: `owner` is a tensor. Needs the GIL.
bool tor_py_releases(void *user, void *owner);

// ---------------------------------------------------------------- identities (identity.c)

/// A tensor's number, used once in a process, and its version counter (0 for inference tensors).
/// @return -1 with an exception set
int tor_py_identity(PyObject *tensor, TorPySeen *seen, uint64_t *uid, int64_t *version);
int tor_py_identity_attach(PyObject *version_descriptor, PyObject *is_inference);
/// The tensor was written and its version counter does not show it: from now on it is another one.
PyObject *tor_py_rewritten(PyObject *module, PyObject *tensor);

#endif

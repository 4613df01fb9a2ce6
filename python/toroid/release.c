/// Weights whose memory may be spilled: those that PyTorch allocated. Their storage gets the same
/// memory again, with a deleter of ours before PyTorch's, so that the allocator gets back plain
/// pages as it gave them out.
#include "base/spill.h"
#include "core.h"
#include "dlpack.h"

typedef struct Claim {
    DLManagedTensor managed;
    struct Claim *next;
    void *data;
    int64_t bytes;
    PyObject *original;  ///< a storage that holds the memory now; NULL until then
} Claim;

static Claim *claims;  ///< under the GIL
static PyObject *is_cow;

PyObject *tor_py_attach_release(PyObject *Py_UNUSED(module), PyObject *function) {
    tor_py_keep(&is_cow, function);
    Py_RETURN_NONE;
}

/// PyTorch calls it when the storage dies, in any thread, with or without the GIL.
static void end_claim(DLManagedTensor *managed) {
    Claim *claim = (Claim *)managed;
    PyGILState_STATE gil = PyGILState_Ensure();
    for (Claim **link = &claims; *link; link = &(*link)->next)
        if (*link == claim) {
            *link = claim->next;
            break;
        }
    tor_spill_end(claim->data, (size_t)claim->bytes);
    Py_XDECREF(claim->original);
    PyGILState_Release(gil);
    tor_free(claim);
}

static bool is_true(PyObject *answer) {
    bool truth = answer && PyObject_IsTrue(answer) == 1;
    Py_XDECREF(answer);
    return truth;
}

/// numpy's memory and that of other libraries is not resizable; they may go on using it.
static bool is_pytorchs_own(PyObject *tensor, PyObject *storage) {
    return is_true(PyObject_CallMethod(storage, "resizable", NULL)) &&
           !is_true(PyObject_CallFunctionObjArgs(is_cow, tensor, NULL)) && !PyErr_Occurred();
}

static bool claim_storage(PyObject *storage, void *data, int64_t bytes) {
    Claim *claim = tor_alloc_zero(sizeof *claim);
    if (!claim) return false;
    claim->data = data;
    claim->bytes = bytes;
    claim->managed = (DLManagedTensor){.version = {DLPACK_MAJOR, 0},
                                       .deleter = end_claim,
                                       .dl_tensor = {.data = data,
                                                     .device = {DLPACK_CPU, 0},
                                                     .ndim = 1,
                                                     .dtype = {DLPACK_UINT, 8, 1},
                                                     .shape = &claim->bytes}};
    PyObject *ours = tor_py_from_dlpack(&claim->managed);
    PyObject *other = ours ? PyObject_CallMethod(ours, "untyped_storage", NULL) : NULL;
    // Tensors and threads that use the storage see no difference: the pointer is the same.
    PyObject *done = other ? PyObject_CallMethod(storage, "_swap_data_ptr_", "(O)", other) : NULL;
    if (done) {
        claim->original = other;
        claim->next = claims;
        claims = claim;
    } else
        Py_XDECREF(other);
    Py_XDECREF(ours);
    Py_XDECREF(done);
    return done != NULL;
}

bool tor_py_releases(void *Py_UNUSED(user), void *owner) {
    PyObject *storage = is_cow ? PyObject_CallMethod(owner, "untyped_storage", NULL) : NULL;
    int64_t bytes = tor_py_ask(storage, "nbytes");
    void *data = (void *)(uintptr_t)tor_py_ask(storage, "data_ptr");
    const Claim *claim = claims;
    while (claim && claim->data != data) claim = claim->next;
    bool ours = claim && !PyErr_Occurred();
    if (!ours && !PyErr_Occurred() && storage && is_pytorchs_own(owner, storage))
        ours = claim_storage(storage, data, bytes);
    Py_XDECREF(storage);
    PyErr_Clear();  // it is a wish: what cannot be released stays
    return ours;
}

/// Tensors across the door, by the DLPack exchange functions that torch.Tensor carries.
///
/// Borrowing costs about 0.1 us and checks little: it does not see negative views, and gives a NULL
/// pointer for tensors without memory (FakeTensor, wrapper subclasses).
#include "core.h"

#include <string.h>

#include "base/cpu.h"
#include "dlpack.h"

static const DLPackExchange *exchange;
static PyObject *tensor_type, *is_neg, *get_num_threads;

static const struct {
    uint8_t code, bits;
} dlpack_types[TOR_DTYPE_COUNT] = {
    [TOR_bool] = {DLPACK_BOOL, 8},      [TOR_uint8] = {DLPACK_UINT, 8},
    [TOR_int8] = {DLPACK_INT, 8},       [TOR_int16] = {DLPACK_INT, 16},
    [TOR_int32] = {DLPACK_INT, 32},     [TOR_int64] = {DLPACK_INT, 64},
    [TOR_float16] = {DLPACK_FLOAT, 16}, [TOR_bfloat16] = {DLPACK_BFLOAT, 16},
    [TOR_float32] = {DLPACK_FLOAT, 32}, [TOR_float64] = {DLPACK_FLOAT, 64},
};

PyObject *tor_py_attach(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *type, *capsule, *version, *inference, *negative, *threads;
    if (!PyArg_ParseTuple(args, "OOOOOO:attach", &type, &capsule, &version, &inference, &negative,
                          &threads))
        return NULL;
    const DLPackHeader *header = PyCapsule_GetPointer(capsule, DLPACK_EXCHANGE_NAME);
    if (!header) return NULL;
    uint32_t newest = header->version.major;
    while (header && header->version.major > DLPACK_MAJOR) header = header->prev_api;
    if (!header || header->version.major != DLPACK_MAJOR) {
        PyErr_Format(PyExc_ImportError, "this PyTorch speaks DLPack %u; Toroid needs version %d",
                     newest, DLPACK_MAJOR);
        return NULL;
    }
    const DLPackExchange *found = (const DLPackExchange *)header;
    if (!found->borrow || !found->allocate || !found->to_py) {
        PyErr_SetString(PyExc_ImportError,
                        "this PyTorch's DLPack exchange table lacks functions that Toroid needs");
        return NULL;
    }
    if (tor_py_identity_attach(version, inference) < 0) return NULL;
    exchange = found;
    tor_py_keep(&tensor_type, type);
    tor_py_keep(&is_neg, negative);
    tor_py_keep(&get_num_threads, threads);
    Py_RETURN_NONE;
}

bool tor_py_attached(void) {
    if (exchange) return true;
    PyErr_SetString(PyExc_RuntimeError,
                    "toroid._core is not attached to PyTorch: import toroid.backend first");
    return false;
}

/// Puts Toroid's own words in place of the exception for what is no tensor at all; returns -1.
static int no_tensor(PyObject *object, const char *what, int number) {
    PyObject *error[3];
    PyErr_Fetch(&error[0], &error[1], &error[2]);
    PyObject *type =
        PyObject_IsInstance(object, tensor_type) == 0 ? PyType_GetName(Py_TYPE(object)) : NULL;
    if (!type) {
        PyErr_Restore(error[0], error[1], error[2]);
        return -1;
    }
    PyErr_Format(PyExc_TypeError, "%s %d: expected a tensor, got %U", what, number, type);
    Py_DECREF(type);
    for (int i = 0; i < 3; i++) Py_XDECREF(error[i]);
    return -1;
}

int tor_py_borrow(PyObject *object, const char *what, int number, TorPyTensor *out) {
    DLTensor t;
    if (exchange->borrow(object, &t) < 0) return no_tensor(object, what, number);
    if (t.device.type != DLPACK_CPU) {
        PyErr_Format(PyExc_ValueError, "%s %d: expected a tensor on the CPU", what, number);
        return -1;
    }
    int dtype = 0;
    while (dtype < TOR_DTYPE_COUNT &&
           (dlpack_types[dtype].code != t.dtype.code || dlpack_types[dtype].bits != t.dtype.bits))
        dtype++;
    if (dtype == TOR_DTYPE_COUNT || t.dtype.lanes != 1) {
        PyErr_Format(PyExc_ValueError, "%s %d: a dtype that Toroid does not have", what, number);
        return -1;
    }
    if (!t.data) {
        bool empty = false;
        for (int i = 0; i < t.ndim; i++) empty |= t.shape[i] == 0;
        if (!empty) {
            PyErr_Format(PyExc_ValueError,
                         "%s %d: a tensor without memory (a FakeTensor or a wrapper subclass?)",
                         what, number);
            return -1;
        }
    }
    *out = (TorPyTensor){t.data ? (char *)t.data + t.byte_offset : NULL, (TorDtype)dtype, t.ndim,
                         t.shape, t.strides};
    return 0;
}

int tor_py_is_negative(PyObject *tensor) {
    PyObject *answer = PyObject_CallFunctionObjArgs(is_neg, tensor, NULL);
    if (!answer) return -1;
    int truth = PyObject_IsTrue(answer);
    Py_DECREF(answer);
    return truth;
}

int64_t tor_py_ask(PyObject *object, const char *method) {
    PyObject *number = object ? PyObject_CallMethod(object, method, NULL) : NULL;
    int64_t value = number ? PyLong_AsLongLong(number) : -1;
    Py_XDECREF(number);
    return value;
}

int tor_py_memory(PyObject *tensor, TorDtype dtype, void **data, int64_t *start, int64_t *memory) {
    int64_t bytes = (int64_t)tor_dtype_size(dtype);
    PyObject *storage = PyObject_CallMethod(tensor, "untyped_storage", NULL);
    int64_t all = tor_py_ask(storage, "nbytes"), at = tor_py_ask(storage, "data_ptr");
    Py_XDECREF(storage);
    *start = tor_py_ask(tensor, "storage_offset");
    if (PyErr_Occurred()) return -1;
    *memory = all / bytes;
    *data =
        at ? (char *)(uintptr_t)at + *start * bytes : NULL;  // also of a tensor without elements
    return 0;
}

int tor_py_threads(void) {
    PyObject *number = PyObject_CallNoArgs(get_num_threads);
    if (!number) return -1;
    long threads = PyLong_AsLong(number);
    Py_DECREF(number);
    return (int)TOR_MAX(TOR_MIN(threads, (long)tor_cpu_count()), 1L);
}

PyObject *tor_py_from_dlpack(struct DLManagedTensor *managed) {
    void *tensor = NULL;
    return exchange->to_py(managed, &tensor) < 0 ? NULL : tensor;
}

/// What PyTorch owns of a tensor that Toroid made; the elements lie behind it or in `memory`.
typedef struct {
    DLManagedTensor managed;
    int64_t shape[TOR_MAX_RANK], stride[TOR_MAX_RANK];
    void *memory;
} Made;

enum {
    MADE_BYTES = (sizeof(Made) + TOR_CACHE_LINE - 1) / TOR_CACHE_LINE * TOR_CACHE_LINE,
    SMALL_BYTES = 4096  // elements that share their description's block
};

/// PyTorch calls it when the storage dies, in any thread, with or without the GIL.
static void delete_made(DLManagedTensor *managed) {
    Made *made = (Made *)managed;
    tor_free(made->memory);
    tor_free(made);
}

PyObject *tor_py_new_tensor(TorDtype dtype, int rank, const int64_t *size, const int64_t *stride,
                            void **data) {
    int64_t row_major[TOR_MAX_RANK], extent = 1;
    if (!stride) {
        int64_t next = 1;
        for (int i = rank; i-- > 0; next *= TOR_MAX(size[i], 1)) row_major[i] = next;
        stride = row_major;
    }
    for (int i = 0; i < rank; i++)
        extent = size[i] == 0 || extent == 0 ? 0 : extent + (size[i] - 1) * stride[i];

    // Half the price of DLPack's own allocator, which makes a tensor only to describe it.
    size_t bytes = (size_t)extent * tor_dtype_size(dtype);
    const bool small = bytes <= SMALL_BYTES;
    Made *made = tor_alloc(MADE_BYTES + (small ? bytes : 0));
    void *memory = made && !small ? tor_alloc(bytes) : NULL;
    if (!made || (!small && !memory)) {
        tor_free(made);
        return PyErr_Format(PyExc_MemoryError, "an output of %zu bytes could not be allocated",
                            bytes);
    }
    *data = small ? (char *)made + MADE_BYTES : memory;
    made->memory = memory;
    memcpy(made->shape, size, (size_t)rank * sizeof(int64_t));
    memcpy(made->stride, stride, (size_t)rank * sizeof(int64_t));
    made->managed = (DLManagedTensor){
        .version = {DLPACK_MAJOR, 0},
        .deleter = delete_made,
        .dl_tensor = {.data = extent ? *data : NULL,
                      .device = {DLPACK_CPU, 0},
                      .ndim = rank,
                      .dtype = {dlpack_types[dtype].code, dlpack_types[dtype].bits, 1},
                      .shape = made->shape,
                      .strides = made->stride},
    };
    return tor_py_from_dlpack(&made->managed);
}

bool tor_py_is_row_major(int rank, const int64_t *size, const int64_t *stride) {
    int64_t expected = 1;
    bool row_major = true;
    for (int i = rank; i-- > 0; expected *= size[i]) {
        if (size[i] == 0) return true;
        row_major &= size[i] == 1 || stride[i] == expected;
    }
    return row_major;
}

void tor_py_copy(int rank, const int64_t *size, size_t bytes, void *dst, const int64_t *dst_stride,
                 const void *src, const int64_t *src_stride) {
    for (int i = 0; i < rank; i++)
        if (size[i] == 0) return;
    // Dims from the right that are dense in both are one block.
    size_t block = bytes;
    int64_t dense = 1;
    while (rank > 0 && (size[rank - 1] == 1 ||
                        (dst_stride[rank - 1] == dense && src_stride[rank - 1] == dense))) {
        dense *= size[--rank];
        block = bytes * (size_t)dense;
    }
    int64_t at[TOR_MAX_RANK] = {0};
    char *d = dst;
    const char *s = src;
    for (;;) {
        memcpy(d, s, block);
        int i = rank - 1;
        for (; i >= 0; i--) {
            d += dst_stride[i] * (int64_t)bytes;
            s += src_stride[i] * (int64_t)bytes;
            if (++at[i] < size[i]) break;
            d -= dst_stride[i] * size[i] * (int64_t)bytes;
            s -= src_stride[i] * size[i] * (int64_t)bytes;
            at[i] = 0;
        }
        if (i < 0) return;
    }
}

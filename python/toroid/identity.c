/// Tensors as keys: a number for each tensor object that no other ever gets, and its version
/// counter.
///
/// A freed tensor's address and version are soon met again, so the address alone is no key. The
/// table below maps the object's address to its number and holds a weak reference to it, whose
/// callback removes the entry and tells the frozen table. Everything here runs under the GIL.
#include "backend/frozen.h"
#include "core.h"

typedef struct {
    PyObject *object;   ///< borrowed; NULL: empty
    PyObject *weakref;  ///< owned
    uint64_t uid;
    bool inference;  ///< has no version counter
} Entry;

static struct {
    Entry *entries;
    size_t capacity, count;  ///< capacity is 0 or a power of two
    uint64_t losses;
    PyObject *version, *is_inference;
    descrgetfunc get_version;
} table;

int tor_py_identity_attach(PyObject *version, PyObject *is_inference) {
    descrgetfunc get = (descrgetfunc)PyType_GetSlot(Py_TYPE(version), Py_tp_descr_get);
    if (!get) {
        PyErr_SetString(PyExc_TypeError, "torch.Tensor._version is no descriptor");
        return -1;
    }
    table.get_version = get;
    tor_py_keep(&table.version, version);
    tor_py_keep(&table.is_inference, is_inference);
    return 0;
}

static size_t slot_of(const PyObject *object) {
    // Objects are at least 16 bytes apart; Fibonacci hashing spreads what is left.
    return (size_t)(((uintptr_t)object >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 20) &
           (table.capacity - 1);
}

/// The entry of `object`, or the empty one where it would stand.
static Entry *find(const PyObject *object) {
    size_t i = slot_of(object);
    while (table.entries[i].object && table.entries[i].object != object)
        i = (i + 1) & (table.capacity - 1);
    return &table.entries[i];
}

static int reserve(void) {
    if (table.count * 2 < table.capacity) return 0;
    size_t old_capacity = table.capacity;
    Entry *old = table.entries;
    size_t capacity = old_capacity ? old_capacity * 2 : 256;
    Entry *entries = tor_alloc_zero(capacity * sizeof(Entry));
    if (!entries) {
        PyErr_NoMemory();
        return -1;
    }
    table.entries = entries;
    table.capacity = capacity;
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i].object) *find(old[i].object) = old[i];
    tor_free(old);
    return 0;
}

/// Takes an entry out and moves those behind it, so that no chain is cut (Knuth 6.4, algorithm R).
static void take_out(Entry *entry) {
    table.losses++;
    size_t mask = table.capacity - 1, hole = (size_t)(entry - table.entries), i = hole;
    table.count--;
    for (;;) {
        table.entries[hole].object = NULL;
        for (;;) {
            i = (i + 1) & mask;
            if (!table.entries[i].object) return;
            size_t home = slot_of(table.entries[i].object);
            bool stays = hole <= i ? hole < home && home <= i : hole < home || home <= i;
            if (!stays) break;
        }
        table.entries[hole] = table.entries[i];
        hole = i;
    }
}

/// The tensor whose address `self` holds is being freed.
static PyObject *forget(PyObject *self, PyObject *weakref) {
    PyObject *object = PyLong_AsVoidPtr(self);
    Entry *entry = table.capacity ? find(object) : NULL;
    if (entry && entry->object && entry->weakref == weakref) {
        uint64_t uid = entry->uid;
        take_out(entry);
        tor_frozen_forget(uid);
        Py_DECREF(weakref);
    }
    Py_RETURN_NONE;
}

static PyMethodDef forget_method = {"forget", forget, METH_O, NULL};

static Entry *add(PyObject *tensor) {
    PyObject *inference = PyObject_CallFunctionObjArgs(table.is_inference, tensor, NULL);
    if (!inference) return NULL;
    bool is_inference = PyObject_IsTrue(inference) == 1;
    Py_DECREF(inference);

    PyObject *address = PyLong_FromVoidPtr(tensor);
    PyObject *callback = address ? PyCFunction_New(&forget_method, address) : NULL;
    PyObject *weakref = callback ? PyWeakref_NewRef(tensor, callback) : NULL;
    Py_XDECREF(callback);
    Py_XDECREF(address);
    if (!weakref) return NULL;
    if (reserve() < 0) {
        Py_DECREF(weakref);
        return NULL;
    }
    // Looked up only now: the calls above may have run a callback that moved entries.
    Entry *entry = find(tensor);
    *entry = (Entry){tensor, weakref, tor_frozen_new_uid(), is_inference};
    table.count++;
    return entry;
}

PyObject *tor_py_rewritten(PyObject *Py_UNUSED(module), PyObject *tensor) {
    Entry *entry = table.capacity ? find(tensor) : NULL;
    if (entry && entry->object) {
        uint64_t uid = entry->uid;
        entry->uid = tor_frozen_new_uid();
        table.losses++;
        tor_frozen_forget(uid);
    }
    Py_RETURN_NONE;
}

static int look_up(PyObject *tensor, TorPySeen *seen) {
    Entry *entry = table.capacity ? find(tensor) : NULL;
    if (!entry || !entry->object) entry = add(tensor);
    if (!entry) return -1;
    *seen = (TorPySeen){tensor, entry->uid, table.losses, entry->inference};
    return 0;
}

int tor_py_identity(PyObject *tensor, TorPySeen *seen, uint64_t *uid, int64_t *version) {
    // An address stands for the same tensor as long as no tensor of the table has died.
    if ((seen->object != tensor || seen->losses != table.losses) && look_up(tensor, seen) < 0)
        return -1;
    *uid = seen->uid;
    *version = 0;
    if (seen->inference) return 0;
    PyObject *number = table.get_version(table.version, tensor, (PyObject *)Py_TYPE(tensor));
    if (!number) return -1;
    *version = PyLong_AsLongLong(number);
    Py_DECREF(number);
    return 0;
}

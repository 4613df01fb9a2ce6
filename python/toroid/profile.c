/// Profiles: the recording of steps as Python objects, and ranges for PyTorch's own profiler.
#include <string.h>

#include "base/log.h"
#include "base/peak.h"
#include "core.h"
#include "plan/trace.h"

// ---------------------------------------------------------------- recordings

static PyObject *trace_start(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored)) {
    ToroidStatus status = tor_trace_start();
    if (status != TOROID_OK) return tor_py_raise(status);
    Py_RETURN_NONE;
}

static PyObject *step_tuple(const TorStepRecord *s) {
    return Py_BuildValue("(KIssssddO)", (unsigned long long)s->plan, (unsigned)s->number, s->work,
                         s->shape, s->kernel, s->origin, s->flops, s->bytes,
                         s->external ? Py_True : Py_False);
}

static PyObject *event_tuple(const TorTraceEvent *e) {
    return Py_BuildValue("(IIIdd)", (unsigned)e->step, (unsigned)e->thread, (unsigned)e->n_threads,
                         e->start, e->seconds);
}

#define TUPLES(list, count, make)                                                   \
    for (size_t i = 0; list && i < (count); i++) {                                  \
        PyObject *item = make;                                                      \
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0) Py_CLEAR(list); \
    }

static PyObject *trace_stop(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored)) {
    TorTrace *trace;
    ToroidStatus status = tor_trace_stop(&trace);
    if (status != TOROID_OK) return tor_py_raise(status);
    PyObject *steps = PyList_New((Py_ssize_t)trace->n_steps),
             *events = PyList_New((Py_ssize_t)trace->n_events), *result = NULL;
    TUPLES(steps, trace->n_steps, step_tuple(&trace->steps[i]))
    TUPLES(events, trace->n_events, event_tuple(&trace->events[i]))
    if (steps && events)
        result =
            Py_BuildValue("(OOdK)", steps, events, trace->seconds, (unsigned long long)trace->lost);
    Py_XDECREF(steps);
    Py_XDECREF(events);
    tor_trace_destroy(&trace);
    return result;
}

static PyObject *peaks(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored)) {
    double flops, bytes = 0;
    PyThreadState *state = PyEval_SaveThread();
    flops = tor_peak_flops(tor_now);
    size_t size = tor_peak_read_bytes();
    uint8_t *memory = tor_alloc(size);
    if (memory) {
        memset(memory, 0, size);
        bytes = tor_peak_read(memory, size, tor_now);
        tor_free(memory);
    }
    PyEval_RestoreThread(state);
    if (!memory) return tor_py_raise(TOROID_NO_MEMORY);
    return Py_BuildValue("(dd)", flops, bytes);
}

// ---------------------------------------------------------------- ranges

static PyObject *profiler_state, *state_name, *range_type;

static PyObject *attach_ranges(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *state, *name, *type;
    if (!PyArg_ParseTuple(args, "OUO:attach_ranges", &state, &name, &type)) return NULL;
    tor_py_keep(&profiler_state, state);
    tor_py_keep(&state_name, name);
    tor_py_keep(&range_type, type);
    Py_RETURN_NONE;
}

bool tor_py_wants_ranges(void) {
    if (!profiler_state) return false;
    PyObject *on = PyObject_GetAttr(profiler_state, state_name);
    bool wanted = on == Py_True;
    if (!on) PyErr_Clear();
    Py_XDECREF(on);
    return wanted;
}

void tor_py_range(void *user, void *token, const char *name) {
    (void)user;
    TorPyFrame *frame = token;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *answer = NULL;
    if (name) {
        frame->range = PyObject_CallFunction(range_type, "s", name);
        answer = frame->range ? PyObject_CallMethod(frame->range, "__enter__", NULL) : NULL;
        if (!answer) Py_CLEAR(frame->range);
    } else if (frame->range) {
        answer = PyObject_CallMethod(frame->range, "__exit__", "OOO", Py_None, Py_None, Py_None);
        Py_CLEAR(frame->range);
    }
    Py_XDECREF(answer);
    // A profile that misses a range is no reason to stop a run.
    PyErr_Clear();
    PyGILState_Release(gil);
}

// ----------------------------------------------------------------

static PyMethodDef methods[] = {
    {"trace_start", trace_start, METH_NOARGS,
     "trace_start()\n\nRecords the steps of every graph from now on; ValueError if it does."},
    {"trace_stop", trace_stop, METH_NOARGS,
     "trace_stop() -> (steps, events, seconds, lost)\n\nsteps: (graph, number, work, shape, "
     "kernel, "
     "origin, flops, bytes, external); events: (index of the step, thread, threads, start, "
     "seconds)."},
    {"peaks", peaks, METH_NOARGS,
     "peaks() -> (flops, bytes)\n\nWhat one core does in a second at best, measured now."},
    {"attach_ranges", attach_ranges, METH_VARARGS,
     "attach_ranges(module, name, range_type)\n\nWhile module.name is True, each step runs inside "
     "range_type(what it does)."},
    {0},
};

int tor_py_profile_init(PyObject *module) { return PyModule_AddFunctions(module, methods); }

/// Buffers of running calls. An executable keeps those that no call uses, so that a call allocates
/// nothing. Everything here runs under the GIL.
#include "core.h"

#include "frames.h"

TorPyFrame *tor_py_frame_take(TorPyExecutable *exe) {
    TorPyFrame *frame = exe->free_frames;
    if (frame) {
        exe->free_frames = frame->next;
        return frame;
    }
    size_t n = (size_t)exe->n_inputs, m = (size_t)exe->n_outputs;
    size_t bytes = sizeof *frame + n * (sizeof *frame->inputs + sizeof *frame->objects) +
                   m * (sizeof *frame->results + sizeof *frame->ints);
    frame = tor_alloc_zero(bytes);
    if (!frame) {
        PyErr_NoMemory();
        return NULL;
    }
    // Every member of the block is a multiple of 8 bytes.
    frame->inputs = (TorCallInput *)(frame + 1);
    frame->objects = (PyObject **)(frame->inputs + n);
    frame->results = (PyObject **)(frame->objects + n);
    frame->ints = (int64_t *)(frame->results + m);
    return frame;
}

void tor_py_frame_give(TorPyExecutable *exe, TorPyFrame *frame) {
    for (int i = 0; i < exe->n_inputs; i++) {
        Py_XDECREF(frame->objects[i]);
        frame->objects[i] = NULL;
    }
    for (int i = 0; i < exe->n_outputs; i++) {
        Py_XDECREF(frame->results[i]);
        frame->results[i] = NULL;
    }
    for (int i = 0; i < 3; i++) {
        Py_XDECREF(frame->error[i]);
        frame->error[i] = NULL;
    }
    frame->next = exe->free_frames;
    exe->free_frames = frame;
}

void tor_py_frames_free(TorPyExecutable *exe) {
    while (exe->free_frames) {
        TorPyFrame *next = exe->free_frames->next;
        tor_free(exe->free_frames);
        exe->free_frames = next;
    }
}

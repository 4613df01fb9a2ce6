/// Buffers of running calls (frames.c).
#ifndef TOROID_PYTHON_FRAMES_H
#define TOROID_PYTHON_FRAMES_H

#include "core.h"

/// A cleared frame; NULL with an exception set.
TorPyFrame *tor_py_frame_take(TorPyExecutable *exe);
/// Drops every reference that the frame owns and keeps it for the next call.
void tor_py_frame_give(TorPyExecutable *exe, TorPyFrame *frame);
void tor_py_frames_free(TorPyExecutable *exe);

#endif

/// For front ends inside the library: a graph of theirs through a backend that was registered.
#ifndef TOR_API_FRONTEND_H
#define TOR_API_FRONTEND_H

#include "backend/executable.h"
#include "toroid/backend.h"

/// tor_exe_compile() by a backend, which sees `threads` of the options; all others hold for what it
/// makes.
/// @param by  name of the backend that compiled; kept until the process ends
ToroidStatus tor_frontend_compile(TorExecutable **out, TorGraph **graph, const TorOptions *options,
                                  const ToroidBackend *backend, const char **by);

/// toroid_backend_resolve() without the init hook: for a compiler whose hook does not count.
ToroidStatus tor_backend_find(const ToroidBackend **out, const char *name);

#endif

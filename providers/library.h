/// What providers share: opening the library that an environment variable names.
#ifndef PROVIDERS_LIBRARY_H
#define PROVIDERS_LIBRARY_H

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "toroid/provider.h"

/// A failure with a text of its own.
__attribute__((format(printf, 3, 4))) static inline ToroidStatus fail(
    const ToroidProviderHost *host, ToroidStatus status, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return host->set_error(status, text);
}

/// Opens the library that `variable` names: an absolute path, or a soname, for which the system's
/// folders are searched.
/// @return NULL with the reason set
static inline void *open_library(const ToroidProviderHost *host, const char *variable,
                                 const char *example) {
    const char *name = secure_getenv(variable);
    if (!name || !*name) {
        fail(host, TOROID_INVALID, "%s names no library; expected a path, or a soname as %s",
             variable, example);
        return NULL;
    }
    if (name[0] != '/' && strchr(name, '/')) {
        fail(host, TOROID_INVALID, "%s: %s is neither an absolute path nor a soname", variable,
             name);
        return NULL;
    }
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) fail(host, TOROID_FAILED, "%s: %s", variable, dlerror());
    return library;
}

/// Opens the library and has `look_at` take what it needs of it; closes it if that refuses.
static inline ToroidStatus take_library(const ToroidProviderHost *host, const char *variable,
                                        const char *example,
                                        ToroidStatus (*look_at)(const ToroidProviderHost *host,
                                                                void *library)) {
    void *library = open_library(host, variable, example);
    if (!library) return TOROID_FAILED;
    ToroidStatus status = look_at(host, library);
    if (status != TOROID_OK) dlclose(library);
    return status;
}

/// A function of a library or of those that it needs, into a pointer to that function; NULL: it has
/// none of that name.
static inline void find_function(void *library, const char *name, void *function) {
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
}

/// A library that is parallel by OpenMP is held to one thread round each call, since that number is
/// one of the calling thread, in which PyTorch may go by it as well. {0}: there is nothing to hold.
typedef struct {
    int (*max_threads)(void);
    void (*set_threads)(int);
} OpenMp;

/// @return false where neither the library nor what it needs has OpenMP
static inline bool find_openmp(void *library, OpenMp *out) {
    find_function(library, "omp_get_max_threads", &out->max_threads);
    find_function(library, "omp_set_num_threads", &out->set_threads);
    if (out->max_threads && out->set_threads) return true;
    *out = (OpenMp){0};
    return false;
}

static inline int openmp_begin(const OpenMp *openmp) {
    int threads = openmp->max_threads ? openmp->max_threads() : 1;
    if (threads != 1) openmp->set_threads(1);
    return threads;
}

static inline void openmp_end(const OpenMp *openmp, int threads) {
    if (threads != 1) openmp->set_threads(threads);
}

#endif

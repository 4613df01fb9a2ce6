/// A plugin that writes a byte to a file whenever it is loaded.
#include <stdio.h>
#include <stdlib.h>

#include "toroid/backend.h"

__attribute__((constructor)) static void loaded(void) {
    FILE *file = fopen(getenv("TOROID_TEST_LOADS"), "a");
    if (!file) return;
    fputc('.', file);
    fclose(file);
}

static ToroidStatus compile(const ToroidHost *host, void *user, ToroidExecutable **out,
                            ToroidGraph **graph, const ToroidOptions *options) {
    (void)user;
    return host->compile(out, graph, options);
}

TOROID_API const ToroidBackend toroid_backend = {
    sizeof(ToroidBackend), TOROID_BACKEND_ABI, "loaded_once", compile, NULL, NULL, NULL};

/* A backend in a shared object: prints each graph, then has Toroid compile it for one thread. */
#include <stdio.h>
#include <stdlib.h>

#include "toroid/backend.h"

/* Called whenever someone asks for the backend by name: the place to look for what it needs. */
static ToroidStatus init(const ToroidHost *host, void *user) {
    (void)user;
    if (getenv("PRINTING_FAILS")) return host->set_error(TOROID_FAILED, "PRINTING_FAILS is set");
    return TOROID_OK;
}

/* `host` has the library's functions: a plugin links nothing. */
static ToroidStatus compile(const ToroidHost *host, void *user, ToroidExecutable **out,
                            ToroidGraph **graph, const ToroidOptions *options) {
    ToroidOptions mine = {.struct_bytes = sizeof mine, .threads = 1};
    char *text;
    ToroidStatus status = host->graph_print(*graph, &text);
    (void)user;
    (void)options;
    if (status != TOROID_OK) return status;
    printf("printing: a graph\n%s", text);
    fflush(stdout);
    host->text_free(text);
    return host->compile(out, graph, &mine);
}

static const char *const tags[] = {"example", NULL};

TOROID_API const ToroidBackend toroid_backend = {
    sizeof(ToroidBackend), TOROID_BACKEND_ABI, "printing", compile, tags, init, NULL};

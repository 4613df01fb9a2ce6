// The public graph round one of a front end, and the executable out of the public one.
#include "api/frontend.h"

#include "api/internal.h"

ToroidStatus tor_frontend_compile(TorExecutable **out, TorGraph **graph, const TorOptions *options,
                                  const ToroidBackend *backend, const char **by) {
    *out = NULL;
    ToroidGraph *given = tor_alloc_zero(sizeof *given);
    if (!given) {
        tor_graph_destroy(graph);
        return tor_no_memory();
    }
    *given = (ToroidGraph){.g = *graph, .finished = true, .options = *options};
    given->number = tor_api_new_number();
    *graph = NULL;
    const ToroidOptions wanted = {.struct_bytes = sizeof wanted,
                                  .threads = options->threads,
                                  .reference = options->reference,
                                  .tune = options->tune};
    ToroidExecutable *made = NULL;
    TOR_TRY(toroid_backend_compile(backend, &made, &given, &wanted));
    *by = toroid_executable_backend(made);
    *out = made->exe;
    made->exe = NULL;
    toroid_executable_destroy(&made);
    return TOROID_OK;
}

#include "backend/import.h"

#include "plan/support.h"

ToroidStatus tor_backend_import(TorGraph *g, const char *name, const TorArg *args, int n_args,
                                const char *const *kw_names, const TorArg *kw_args, int n_kw,
                                const char *origin, TorArg *result) {
    // Of a graph whose outputs are set, the output node stays the last.
    TorNode *before = g->output ? g->output->prev : g->last;
    TOR_TRY(tor_aten_call(g, name, args, n_args, kw_names, kw_args, n_kw, origin, result));
    for (const TorNode *node = before ? before->next : g->first; node != g->output;
         node = node->next) {
        ToroidStatus status = tor_plan_supports(node);
        if (status != TOROID_OK) return tor_error_prefix(status, "%s", name);
    }
    return TOROID_OK;
}

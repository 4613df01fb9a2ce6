// The driver: looks passes up by name, runs, times and verifies them.
#include "passes/passes.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"

typedef struct {
    const char *name;
    TorPassFn *run;
} Pass;

static const Pass passes[] = {
#define X(name, doc) {#name, tor_pass_##name},
    TOR_PASSES(X)
#undef X
};

static const Pass *find(const char *name) {
    for (size_t i = 0; i < TOR_COUNT_OF(passes); ++i)
        if (!strcmp(passes[i].name, name)) return &passes[i];
    return NULL;
}

static bool verifies(void) {
    const char *text = getenv("TOROID_VERIFY");
#ifndef __OPTIMIZE__  // a debug build
    return !text || strcmp(text, "0") != 0;
#else
    return text && *text && strcmp(text, "0") != 0;
#endif
}

static int count_nodes(const TorGraph *g) {
    int count = 0;
    for (const TorNode *node = g->first; node; node = node->next) ++count;
    return count;
}

static ToroidStatus run_one(TorGraph *g, const Pass *pass, bool verify) {
    const bool timed = tor_log_level() >= 2;
    int before = timed ? count_nodes(g) : 0;
    double start = timed ? tor_now() : 0;
    ToroidStatus status = pass->run(g);
    if (status != TOROID_OK) return tor_error_prefix(status, "pass %s", pass->name);
    if (timed)
        tor_log(2, "pass %-20s %8.3f ms  %5d -> %5d nodes", pass->name, (tor_now() - start) * 1e3,
                before, count_nodes(g));
    if (!verify) return TOROID_OK;
    status = tor_graph_verify(g);
    return status == TOROID_OK ? status : tor_error_prefix(status, "after pass %s", pass->name);
}

ToroidStatus tor_passes_run(TorGraph *g, const char *const *names, int count) {
    for (int i = 0; i < count; ++i)
        if (!find(names[i])) return tor_invalid("there is no pass \"%s\"", names[i]);
    const bool verify = verifies();
    for (int i = 0; i < count; ++i) TOR_TRY(run_one(g, find(names[i]), verify));
    return TOROID_OK;
}

const char *const *tor_passes_simplify(int *count) {
    // frozen first: canonicalise asks for it. dce before views: a dead user would hide a single
    // use.
    static const char *const names[] = {"frozen", "fold",         "canonicalise", "cse", "dce",
                                        "views",  "canonicalise", "cse",          "dce"};
    *count = TOR_COUNT_OF(names);
    return names;
}

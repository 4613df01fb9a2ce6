// The driver: looks passes up by name, runs, times and verifies them.
#include "passes/passes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

typedef enum { optional, required } Need;

typedef struct {
    const char *name;
    Need need;
    TorPassFn *run;
} Pass;

static const Pass passes[] = {
#define X(name, need, doc) {#name, need, tor_pass_##name},
    TOR_PASSES(X)
#undef X
};

static const Pass *find(const char *name) {
    for (size_t i = 0; i < TOR_COUNT_OF(passes); ++i)
        if (!strcmp(passes[i].name, name)) return &passes[i];
    return NULL;
}

bool tor_passes_verify(void) {
    const char *text = getenv("TOROID_VERIFY");
#ifndef __OPTIMIZE__  // a debug build
    return !text || strcmp(text, "0") != 0;
#else
    return text && *text && strcmp(text, "0") != 0;
#endif
}

/// The next name of a list with commas; *text moves behind it. 0: the end.
static size_t next_name(const char **text, const char **name) {
    *text += strspn(*text, ", ");
    *name = *text;
    size_t length = strcspn(*text, ", ");
    *text += length;
    return length;
}

bool tor_pass_skipped(const char *name) {
    const char *text = getenv("TOROID_SKIP_PASS"), *item;
    size_t length;
    while (text && (length = next_name(&text, &item)))
        if (length == strlen(name) && !strncmp(item, name, length)) return true;
    return false;
}

/// Every name in TOROID_SKIP_PASS is one that may be skipped.
static ToroidStatus check_skipped(void) {
    const char *text = getenv("TOROID_SKIP_PASS"), *item;
    size_t length;
    while (text && (length = next_name(&text, &item))) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)length, item);
        const Pass *pass = find(name);
        if (!pass && strcmp(name, "prologue") != 0) {
            char known[512] = "prologue";
            for (size_t i = 0; i < TOR_COUNT_OF(passes); ++i)
                if (passes[i].need == optional) {
                    size_t at = strlen(known);
                    snprintf(known + at, sizeof known - at, ", %s", passes[i].name);
                }
            return tor_invalid(
                "TOROID_SKIP_PASS: there is no pass \"%s\"; these can be skipped: %s", name, known);
        }
        if (pass && pass->need == required)
            return tor_invalid("TOROID_SKIP_PASS: no graph can run without pass \"%s\"", name);
    }
    return TOROID_OK;
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
    TOR_TRY(check_skipped());
    const bool verify = tor_passes_verify();
    for (int i = 0; i < count; ++i)
        if (!tor_pass_skipped(names[i])) TOR_TRY(run_one(g, find(names[i]), verify));
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

// Compositions: several backends as one, tried in order for each graph.
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "api/internal.h"
#include "base/log.h"
#include "base/text.h"
#include "toroid/backend.h"

typedef struct Composition {
    ToroidBackend backend;
    struct Composition *next;
    int count;
    const ToroidBackend *members[];
} Composition;

static ToroidStatus init(const ToroidHost *host, void *user) {
    (void)host;
    const Composition *c = user;
    for (int i = 0; i < c->count; i++) TOR_TRY(toroid_backend_init(c->members[i]));
    return TOROID_OK;
}

/// The graph for member `i`: the last one gets the caller's.
static ToroidStatus take_graph(const Composition *c, int i, ToroidGraph **graph,
                               ToroidGraph **out) {
    if (i + 1 < c->count) return tor_api_clone(out, *graph);
    *out = *graph;
    *graph = NULL;
    return TOROID_OK;
}

static ToroidStatus compile(const ToroidHost *host, void *user, ToroidExecutable **out,
                            ToroidGraph **graph, const ToroidOptions *options) {
    (void)host;
    const Composition *c = user;
    char reasons[1024];
    TorText text = tor_text_fixed(reasons, sizeof reasons);
    ToroidStatus result = TOROID_UNSUPPORTED;
    for (int i = 0; i < c->count; i++) {
        ToroidGraph *mine = NULL;
        TOR_TRY(take_graph(c, i, graph, &mine));
        ToroidStatus status = toroid_backend_compile(c->members[i], out, &mine, options);
        if (status == TOROID_OK) return status;
        // All have to refuse for the whole to be a refusal.
        if (status != TOROID_UNSUPPORTED) result = status;
        tor_log(1, "%s: %s", c->backend.name, toroid_last_error());
        tor_text_put(&text, "%s%s", i ? "; " : "", toroid_last_error());
    }
    return toroid_set_error(result, reasons);
}

// ---------------------------------------------------------------- making them

static ToroidStatus name(const Composition *c, char **out) {
    TorText text = {0};
    for (int i = 0; i < c->count; i++)
        tor_text_put(&text, "%s%s", i ? ", " : "compose(", c->members[i]->name);
    tor_text_put(&text, ")");
    return tor_text_finish(&text, out);
}

/// The same members give the same composition; none is ever freed.
static const Composition *keep(Composition *made) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static Composition *all;
    const size_t bytes = (size_t)made->count * sizeof *made->members;
    pthread_mutex_lock(&lock);
    Composition *c = all;
    while (c && (c->count != made->count || memcmp(c->members, made->members, bytes) != 0))
        c = c->next;
    if (!c) {
        made->next = all;
        all = c = made;
    }
    pthread_mutex_unlock(&lock);
    return c;
}

static ToroidStatus fill(Composition *c, const char *const *names, char **text) {
    for (int i = 0; i < c->count; i++) {
        if (!names[i]) return tor_invalid("toroid_backend_compose: name %d is NULL", i);
        TOR_TRY(toroid_backend_resolve(&c->members[i], names[i]));
    }
    TOR_TRY(name(c, text));
    c->backend = (ToroidBackend){.struct_bytes = sizeof c->backend,
                                 .abi = TOROID_BACKEND_ABI,
                                 .name = *text,
                                 .compile = compile,
                                 .init = init,
                                 .user = c};
    return TOROID_OK;
}

ToroidStatus toroid_backend_compose(const ToroidBackend **out, const char *const *names,
                                    int count) {
    if (out) *out = NULL;
    if (!out || !names || count < 1)
        return tor_invalid("toroid_backend_compose: expected at least one name");
    size_t bytes = offsetof(Composition, members) + (size_t)count * sizeof(const ToroidBackend *);
    Composition *c = tor_alloc_zero(bytes);
    if (!c) return tor_no_memory();
    c->count = count;
    char *text = NULL;
    ToroidStatus status = fill(c, names, &text);
    const Composition *kept = status == TOROID_OK ? keep(c) : NULL;
    if (kept != c) {
        tor_free(text);
        tor_free(c);
    }
    if (kept) *out = &kept->backend;
    return status;
}

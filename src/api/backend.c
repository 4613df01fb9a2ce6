// Backends by name, for C: what is built in, resolving, and a look at what a backend made.
#include "toroid/backend.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "api/frontend.h"
#include "api/internal.h"
#include "backend/registry.h"
#include "base/log.h"

static const ToroidHost host = {
    .struct_bytes = sizeof(ToroidHost),
    .abi = TOROID_BACKEND_ABI,
    .set_error = toroid_set_error,
    .last_error = toroid_last_error,
    .status_name = toroid_status_name,
    .compile = toroid_compile,
    .executable_destroy = toroid_executable_destroy,
    .input_count = toroid_input_count,
    .output_count = toroid_output_count,
    .backend_resolve = toroid_backend_resolve,
    .backend_compile = toroid_backend_compile,
    .graph_create = toroid_graph_create,
    .graph_destroy = toroid_graph_destroy,
    .graph_input = toroid_graph_input,
    .graph_call = toroid_graph_call,
    .graph_outputs = toroid_graph_outputs,
    .graph_print = toroid_graph_print,
    .text_free = toroid_text_free,
    .value_dtype = toroid_value_dtype,
    .value_rank = toroid_value_rank,
    .value_size = toroid_value_size,
    .graph_nodes = toroid_graph_nodes,
    .node_op = toroid_node_op,
    .node_input_count = toroid_node_input_count,
    .node_input = toroid_node_input,
    .node_output_count = toroid_node_output_count,
    .node_output = toroid_node_output,
    .node_attributes = toroid_node_attributes,
    .value_node = toroid_value_node,
    .value_use_count = toroid_value_use_count,
    .graph_rewrite = toroid_graph_rewrite,
    .graph_replace = toroid_graph_replace,
};

ToroidStatus toroid_set_error(ToroidStatus status, const char *message) {
    return tor_set_error(status, message);
}

// ---------------------------------------------------------------- built in

static ToroidStatus compile_plainly(const ToroidHost *given, void *user, ToroidExecutable **out,
                                    ToroidGraph **graph, const ToroidOptions *options) {
    (void)given, (void)user;
    return toroid_compile(out, graph, options);
}

/// On standard output: the graph as it came and as it runs.
static ToroidStatus compile_printing(const ToroidHost *given, void *user, ToroidExecutable **out,
                                     ToroidGraph **graph, const ToroidOptions *options) {
    (void)given, (void)user;
    TOR_TRY(toroid_compile(out, graph, options));
    char *before = NULL, *after = NULL, *steps = NULL;
    ToroidStatus status = tor_exe_describe((*out)->exe, &before, &after, &steps);
    if (status == TOROID_OK) {
        printf("graph before the passes:\n%s\ngraph after the passes:\n%s\n", before, after);
        fflush(stdout);
    } else {
        toroid_executable_destroy(out);
    }
    tor_free(before);
    tor_free(after);
    tor_free(steps);
    return status;
}

static ToroidStatus compile_by_reference(const ToroidHost *given, void *user,
                                         ToroidExecutable **out, ToroidGraph **graph,
                                         const ToroidOptions *options) {
    (void)given, (void)user;
    ToroidOptions mine = {.struct_bytes = sizeof mine, .reference = 1};
    if (options) mine.threads = options->threads;
    return toroid_compile(out, graph, &mine);
}

static const char *const debug_tags[] = {"debug", NULL};
static const ToroidBackend builtin[] = {
    {sizeof(ToroidBackend), TOROID_BACKEND_ABI, "toroid", compile_plainly, NULL, NULL, NULL},
    {sizeof(ToroidBackend), TOROID_BACKEND_ABI, "toroid_debug", compile_printing, debug_tags, NULL,
     NULL},
    {sizeof(ToroidBackend), TOROID_BACKEND_ABI, "toroid_reference", compile_by_reference,
     debug_tags, NULL, NULL},
};

/// Sees to it that what is built in is registered before anything else.
static ToroidStatus start(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    ToroidStatus status = TOROID_OK;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; status == TOROID_OK && i < TOR_COUNT_OF(builtin); i++)
        if (!tor_registry_find(builtin[i].name)) status = tor_registry_add(&builtin[i]);
    pthread_mutex_unlock(&lock);
    return status;
}

// ---------------------------------------------------------------- by name

ToroidStatus toroid_backend_register(const ToroidBackend *backend) {
    if (!backend) return tor_invalid("toroid_backend_register: backend is NULL");
    TOR_TRY(start());
    return tor_registry_add(backend);
}

/// A plugin that is loaded is listed by its tags, any other always.
static ToroidStatus list(TorNames *names, const char *const *exclude_tags) {
    TOR_TRY(start());
    TorNames plugins = {0};
    ToroidStatus status = tor_plugin_list(&tor_backend_plugins, &plugins);
    for (size_t i = 0; status == TOROID_OK && i < plugins.count; i++)
        if (!tor_registry_find(plugins.items[i])) status = tor_names_add(names, plugins.items[i]);
    tor_names_free(plugins.items);
    return status == TOROID_OK ? tor_registry_list(names, exclude_tags) : status;
}

ToroidStatus toroid_backend_list(const char *const *exclude_tags, char ***out) {
    static const char *const unless_asked[] = {"debug", "experimental", NULL};
    if (!out) return tor_invalid("toroid_backend_list: names is NULL");
    *out = NULL;
    TorNames names = {0};
    ToroidStatus status = list(&names, exclude_tags ? exclude_tags : unless_asked);
    if (status == TOROID_OK && !names.items) {
        names.items = tor_alloc_zero(sizeof *names.items);
        if (!names.items) status = tor_no_memory();
    }
    if (status == TOROID_OK)
        *out = names.items;
    else
        tor_names_free(names.items);
    return status;
}

void toroid_names_free(char **names) { tor_names_free(names); }

/// @param refused  folders that were not searched
static ToroidStatus unknown(const char *name, const char *refused) {
    static const char *const no_tags[] = {NULL};
    char buffer[512];
    TorText text = tor_text_fixed(buffer, sizeof buffer);
    TorNames names = {0};
    ToroidStatus status = list(&names, no_tags);
    if (status == TOROID_OK) {
        tor_names_suggest(&names, name, &text);
        status = tor_invalid("there is no backend \"%.80s\"; %s%s%s", name, buffer,
                             *refused ? "; not searched" : "", refused);
    }
    tor_names_free(names.items);
    return status;
}

/// Of threads that want one plugin, one loads it.
static ToroidStatus load(const ToroidBackend **out, const char *name) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    char refused[400];
    TorText text = tor_text_fixed(refused, sizeof refused);
    ToroidStatus status = TOROID_OK;
    bool found = true;
    pthread_mutex_lock(&lock);
    *out = tor_registry_find(name);
    if (!*out) status = tor_plugin_load(&tor_backend_plugins, name, &found, &text);
    pthread_mutex_unlock(&lock);
    if (!*out) *out = tor_registry_find(name);
    if (*out) return TOROID_OK;
    return found ? status : unknown(name, refused);
}

ToroidStatus tor_backend_find(const ToroidBackend **out, const char *name) {
    *out = NULL;
    TOR_TRY(start());
    *out = tor_registry_find(name);
    return *out ? TOROID_OK : load(out, name);
}

ToroidStatus toroid_backend_resolve(const ToroidBackend **out, const char *name) {
    if (out) *out = NULL;
    if (!out || !name) return tor_invalid("toroid_backend_resolve: an argument is NULL");
    const ToroidBackend *backend = NULL;
    TOR_TRY(tor_backend_find(&backend, name));
    TOR_TRY(toroid_backend_init(backend));
    *out = backend;
    return TOROID_OK;
}

// ---------------------------------------------------------------- calls into a backend

/// Before a backend's function is called: a message that is there afterwards is its own.
/// What a backend's function returned, with the backend's name before its message.
static ToroidStatus judge(const ToroidBackend *backend, const char *what, ToroidStatus status) {
    if (status == TOROID_OK) return status;
    if ((unsigned)status > TOROID_INVALID_DATA)
        return tor_failed("backend \"%s\": its %s returned %d, which is no status", backend->name,
                          what, (int)status);
    if (!*toroid_last_error())
        return tor_error_prefix(tor_set_error(status, toroid_status_name(status)),
                                "backend \"%s\": its %s gave no reason", backend->name, what);
    return tor_error_prefix(status, "backend \"%s\"", backend->name);
}

ToroidStatus toroid_backend_init(const ToroidBackend *backend) {
    if (!backend) return tor_invalid("toroid_backend_init: backend is NULL");
    if (!backend->init) return TOROID_OK;
    tor_set_error(TOROID_OK, NULL);
    return judge(backend, "init hook", backend->init(&host, backend->user));
}

/// What `expected` has, `made` must have too: the caller calls it as the graph it gave away.
static ToroidStatus check_made(const TorSignature *expected, const TorSignature *made) {
    if (expected->graph == made->graph) return TOROID_OK;
    if (made->n_outputs != expected->n_outputs)
        return tor_invalid("it made an executable with %d outputs, expected %d", made->n_outputs,
                           expected->n_outputs);
    if (made->n_inputs != expected->n_inputs)
        return tor_invalid("it made an executable with %d inputs, expected %d", made->n_inputs,
                           expected->n_inputs);
    if (expected->has_layouts)
        return tor_refuse(
            "it made an executable of another graph, whose outputs lie otherwise in "
            "memory");
    for (int i = 0; i < expected->n_inputs + expected->n_outputs; i++) {
        const TorSignatureTensor *a = &made->tensors[i], *b = &expected->tensors[i];
        bool input = i < expected->n_inputs;
        if (a->dtype != b->dtype || a->rank != b->rank)
            return tor_invalid(
                "it made an executable whose %s %d is %s of rank %d, expected %s "
                "of rank %d",
                input ? "input" : "output", input ? i : i - expected->n_inputs,
                tor_dtype_name(a->dtype), a->rank, tor_dtype_name(b->dtype), b->rank);
    }
    return TOROID_OK;
}

static ToroidStatus compile(const ToroidBackend *backend, ToroidExecutable **out,
                            ToroidGraph **graph, const ToroidOptions *options,
                            const TorSignature *expected) {
    tor_set_error(TOROID_OK, NULL);
    ToroidStatus status = backend->compile(&host, backend->user, out, graph, options);
    TOR_TRY(judge(backend, "compile function", status));
    if (!*out)
        return tor_failed("backend \"%s\": its compile function made no executable", backend->name);
    status = check_made(expected, &(*out)->signature);
    if (status != TOROID_OK) return tor_error_prefix(status, "backend \"%s\"", backend->name);
    if (!(*out)->backend) (*out)->backend = backend->name;
    tor_log(1, "backend %s took a graph of %d outputs", (*out)->backend, expected->n_outputs);
    return TOROID_OK;
}

ToroidStatus toroid_backend_compile(const ToroidBackend *backend, ToroidExecutable **out,
                                    ToroidGraph **graph, const ToroidOptions *options) {
    if (out) *out = NULL;
    if (!backend || !out || !graph || !*graph) {
        if (graph) toroid_graph_destroy(graph);
        return tor_invalid("toroid_backend_compile: an argument is NULL");
    }
    TorSignature expected = {0};
    ToroidStatus status = tor_signature_read(&expected, *graph);
    if (status == TOROID_OK) status = compile(backend, out, graph, options, &expected);
    tor_signature_free(&expected);
    toroid_graph_destroy(graph);
    if (status != TOROID_OK) toroid_executable_destroy(out);
    return status;
}

const char *toroid_executable_backend(const ToroidExecutable *executable) {
    return executable && executable->backend ? executable->backend : "toroid";
}

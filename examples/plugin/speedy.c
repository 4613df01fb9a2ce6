/* A backend with passes of its own: it rewrites Toroid's graph, then has Toroid compile it.
 *
 *     log(softmax(x))  ->  log_softmax(x)   one kernel instead of two, and exact where softmax is 0
 *     relu(relu(x))    ->  relu(x)
 */
#include <stdio.h>
#include <string.h>

#include "toroid/backend.h"

typedef struct {
    const ToroidHost *host;
    int changes;
} Pass;

/* The node that computes operand 0 of `node`, if both are of these operators. */
static const ToroidNode *pair(const ToroidHost *host, const ToroidNode *node, const char *outer,
                              const char *inner) {
    const ToroidNode *source;
    if (strcmp(host->node_op(node), outer) != 0) return NULL;
    source = host->value_node(host->node_input(node, 0));
    return source && strcmp(host->node_op(source), inner) == 0 ? source : NULL;
}

static ToroidStatus replace(Pass *pass, ToroidGraph *graph, const ToroidNode *node,
                            ToroidValue *with) {
    pass->changes++;
    return pass->host->graph_replace(graph, pass->host->node_output(node, 0), with);
}

/* What log(softmax(x)) becomes; the operator along the softmax's axis. */
static ToroidStatus log_softmax(Pass *pass, ToroidGraph *graph, const ToroidNode *node,
                                const ToroidNode *softmax) {
    const ToroidHost *host = pass->host;
    const ToroidArg *attributes;
    ToroidArg args[2];
    ToroidValue *x = host->node_input(softmax, 0), *y;
    int i, count, axes = 0;
    ToroidStatus status = host->node_attributes(graph, softmax, &attributes, &count);
    if (status != TOROID_OK) return status;
    args[0] = toroid_tensor(x);
    for (i = 0; i < count; i++)
        if (strcmp(attributes[i].name, "axis") == 0)
            args[1] = toroid_int(attributes[i].value.integer), axes++;
    /* A softmax that casts has another type than its operand. */
    if (!axes || host->value_dtype(x) != host->value_dtype(host->node_output(softmax, 0)))
        return TOROID_OK;
    status = host->graph_call(graph, "aten.log_softmax.int", args, 2, &y, 1);
    return status == TOROID_OK ? replace(pass, graph, node, y) : status;
}

static ToroidStatus rewrite(ToroidGraph *graph, ToroidNode *node, void *user) {
    Pass *pass = user;
    const ToroidNode *inner = pair(pass->host, node, "log", "softmax");
    if (inner) return log_softmax(pass, graph, node, inner);
    inner = pair(pass->host, node, "relu", "relu");
    return inner ? replace(pass, graph, node, pass->host->node_output(inner, 0)) : TOROID_OK;
}

static ToroidStatus compile(const ToroidHost *host, void *user, ToroidExecutable **out,
                            ToroidGraph **graph, const ToroidOptions *options) {
    Pass pass = {host, 0};
    ToroidStatus status;
    (void)user;
    if (host->struct_bytes < sizeof *host)
        return host->set_error(TOROID_UNSUPPORTED, "speedy needs a newer Toroid");
    status = host->graph_rewrite(*graph, rewrite, &pass);
    if (status != TOROID_OK) return status;
    printf("speedy: %d changes\n", pass.changes);
    fflush(stdout);
    return host->compile(out, graph, options);
}

static const char *const tags[] = {"example", NULL};

TOROID_API const ToroidBackend toroid_backend = {
    sizeof(ToroidBackend), TOROID_BACKEND_ABI, "speedy", compile, tags, NULL, NULL};

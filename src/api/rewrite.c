// A visit of all nodes that may put new ones in their place, within the graph.
//
// Calls append to a graph; what one visit appended is moved behind the node that was visited. So a
// new node may read that node's results and all before it, and whoever reads these comes later.
#include "toroid/rewrite.h"

#include <string.h>

#include "api/internal.h"

static TorNode *last_before_output(const TorGraph *g) { return g->output->prev; }

/// Moves what stands between `mark` and the output behind `node`.
static void place(TorGraph *g, TorNode *node, const TorNode *mark) {
    TorNode *before = node->next;
    if (before == g->output || node == mark) return;
    for (TorNode *moved = mark->next; moved != g->output;) {
        TorNode *next = moved->next;
        tor_graph_move_before(g, moved, before);
        moved = next;
    }
}

static ToroidStatus visit(ToroidGraph *graph, TorNode *node, ToroidRewriteFn rewrite, void *user) {
    TorNode *mark = last_before_output(graph->g);
    TOR_TRY(tor_api_give_all(graph, node));
    graph->visited = node;
    graph->first_new = graph->g->next_node;
    ToroidStatus status = rewrite(graph, (ToroidNode *)node, user);
    place(graph->g, node, mark);
    return status;
}

ToroidStatus toroid_graph_rewrite(ToroidGraph *graph, ToroidRewriteFn rewrite, void *user) {
    if (!graph || !rewrite) return tor_invalid("toroid_graph_rewrite: an argument is NULL");
    if (!graph->finished)
        return tor_invalid("toroid_graph_rewrite: the outputs of the graph are not set");
    if (graph->visited)
        return tor_invalid("toroid_graph_rewrite: the graph is being rewritten already");
    if (graph->known_capacity)
        memset(graph->known, 0, graph->known_capacity * sizeof *graph->known);
    ToroidStatus status = TOROID_OK;
    for (TorNode *node = graph->g->first, *next; node != graph->g->output; node = next) {
        next = node->next;
        status = visit(graph, node, rewrite, user);
        graph->visited = NULL;
        if (status != TOROID_OK) return status;
    }
    return TOROID_OK;
}

static bool same_type(const TorValue *a, const TorValue *b) {
    return a->dtype == b->dtype && tor_value_same_dims(a, b);
}

ToroidStatus toroid_graph_replace(ToroidGraph *graph, ToroidValue *old, ToroidValue *with) {
    TorValue *from, *to;
    if (!graph || !graph->visited)
        return tor_invalid("toroid_graph_replace: no node is being visited");
    TOR_TRY(tor_api_take(graph, old, &from));
    TOR_TRY(tor_api_take(graph, with, &to));
    if (from->node != graph->visited)
        return tor_invalid("toroid_graph_replace: no result of the node that is visited");
    if (!same_type(from, to)) {
        char a[160], b[160];
        return tor_invalid("toroid_graph_replace: %s in the place of %s",
                           tor_type_print(graph->g, to, b, sizeof b),
                           tor_type_print(graph->g, from, a, sizeof a));
    }
    if (from == to) return TOROID_OK;
    for (TorUse *use = from->uses, *next; use; use = next) {
        next = use->next;
        TorNode *user = use->user;
        if (user->id < graph->first_new) tor_node_set_input(user, (int)(use - user->inputs), to);
    }
    return TOROID_OK;
}

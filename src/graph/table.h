/// A graph as records of texts. Tables for people are printed from them, and programs read them: a
/// page that draws the graph, say. A record outlives the passes, so it tells what they began with.
#ifndef TOR_GRAPH_TABLE_H
#define TOR_GRAPH_TABLE_H

#include "graph/graph.h"

typedef struct {
    const TorValue *value;
    const char *type;    ///< "float32[8, s0]"
    const char *layout;  ///< "@%3[64, 1]+8": storage, strides, offset; NULL before the layout pass
} TorTableResult;

typedef struct {
    const TorValue *value;
    const char *number;  ///< of a Python number, which has no record of its own; else NULL
    const char *into;    ///< of an output: the input that it is written to; NULL: it is returned
} TorTableOperand;

typedef struct {
    const char *key, *text;
} TorTableAttr;

typedef struct {
    const TorNode *node;  ///< may have left the graph since
    TorOp op;
    bool frozen;         ///< a weight or buffer
    const char *name;    ///< of an input; else NULL
    const char *origin;  ///< the frontend's name; may be NULL
    const char *reason;  ///< of an external node
    TorTableResult *results;
    TorTableOperand *operands;
    TorTableAttr *attrs;  ///< without those that other fields tell
    int n_results, n_operands, n_attrs;
} TorTableNode;

typedef struct {
    TorTableNode *nodes;   ///< in order of execution
    const char **symbols;  ///< "s0 = x.size(0)"
    size_t n_nodes, n_symbols;
    TorArena *arena;  ///< of the records and texts
} TorTable;

/// Names are borrowed from the graph, which must outlive the table.
ToroidStatus tor_table_create(TorTable **out, const TorGraph *g);
void tor_table_destroy(TorTable **table);
/// The table for people. Free with tor_free().
ToroidStatus tor_table_print(const TorTable *table, char **text);

#endif

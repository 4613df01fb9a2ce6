/// What the files behind the public headers share.
#ifndef TOR_API_INTERNAL_H
#define TOR_API_INTERNAL_H

#include "backend/executable.h"
#include "toroid/compile.h"
#include "toroid/rewrite.h"

struct ToroidGraph {
    TorGraph *g;
    TorValue **known;  ///< by id: values that the user was given
    size_t known_capacity;
    bool finished;       ///< outputs are set
    uint64_t number;     ///< of this graph in the process
    TorOptions options;  ///< what ToroidOptions has no fields for
    ToroidNode **nodes;  ///< what toroid_graph_nodes() gave
    size_t nodes_capacity;
    const TorNode *visited;  ///< by toroid_graph_rewrite(); NULL: none is under way
    uint32_t first_new;      ///< nodes from this id on were made in this visit
};

typedef struct {
    char *name;  ///< of an input
    TorDtype dtype;
    int rank;
} TorSignatureTensor;

/// Inputs and outputs of a graph, after which passes may change it.
typedef struct {
    uint64_t graph;  ///< its number
    int n_inputs, n_outputs;
    bool has_layouts;             ///< outputs may be other than new and row-major
    TorSignatureTensor *tensors;  ///< inputs, then outputs
} TorSignature;

/// @return TOROID_INVALID for a graph without outputs; then too, free what is there
ToroidStatus tor_signature_read(TorSignature *s, const ToroidGraph *graph);
void tor_signature_free(TorSignature *s);

struct ToroidExecutable {
    TorExecutable *exe;
    TorSignature signature;
    const char *backend;  ///< NULL: toroid_compile() was called directly
};

/// For a ToroidGraph.
uint64_t tor_api_new_number(void);
/// A copy under the same number, whose values nobody was given: it can be compiled only.
ToroidStatus tor_api_clone(ToroidGraph **out, const ToroidGraph *from);

/// Lets the caller use a node's results.
ToroidStatus tor_api_give_all(ToroidGraph *graph, const TorNode *node);
/// @return TOROID_INVALID for a value that the caller was not given
ToroidStatus tor_api_take(const ToroidGraph *graph, const ToroidValue *given, TorValue **out);
/// A size as callers have it.
ToroidSize tor_api_size(const TorGraph *g, TorDim dim);

/// @return TOROID_INVALID for a number that is no type
ToroidStatus tor_api_dtype(TorDtype *out, ToroidDtype dtype);
ToroidDtype tor_api_public_dtype(TorDtype dtype);

#endif

/// What the files behind the public headers share.
#ifndef TOR_API_INTERNAL_H
#define TOR_API_INTERNAL_H

#include "backend/executable.h"
#include "toroid/compile.h"

struct ToroidGraph {
    TorGraph *g;
    TorValue **known;  ///< by id: values that the user was given
    size_t known_capacity;
    bool finished;       ///< outputs are set
    uint64_t number;     ///< of this graph in the process
    TorOptions options;  ///< what ToroidOptions has no fields for
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

/// @return TOROID_INVALID for a number that is no type
ToroidStatus tor_api_dtype(TorDtype *out, ToroidDtype dtype);
ToroidDtype tor_api_public_dtype(TorDtype dtype);

#endif

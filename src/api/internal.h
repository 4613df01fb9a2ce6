/// What the files behind the public headers share.
#ifndef TOR_API_INTERNAL_H
#define TOR_API_INTERNAL_H

#include "graph/graph.h"
#include "toroid/graph.h"

struct ToroidGraph {
    TorGraph *g;
    TorValue **known;  ///< by id: values that the user was given
    size_t known_capacity;
    bool finished;  ///< outputs are set
};

/// @return TOROID_INVALID for a number that is no type
ToroidStatus tor_api_dtype(TorDtype *out, ToroidDtype dtype);
ToroidDtype tor_api_public_dtype(TorDtype dtype);

#endif

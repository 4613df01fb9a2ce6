/// Spatial dims of conv and pool as the kernels want them: always three, with leading ones.
#ifndef TOR_PLAN_SPATIAL_H
#define TOR_PLAN_SPATIAL_H

#include "graph/graph.h"

/// An attribute with one integer a spatial dim (or one for all) into out[3]; `missing` in front.
static inline void tor_spatial_attr(const TorNode *node, TorAttrKey key, int spatial,
                                    int64_t missing, int64_t *out) {
    const TorAttr *a = tor_attr(node, key);
    int lead = 3 - spatial;
    for (int i = 0; i < 3; i++) {
        int64_t value = missing;
        if (i >= lead && a && a->count) value = a->ints[a->count == 1 ? 0 : i - lead];
        out[i] = value;
    }
}

/// Spatial sizes into out[3].
static inline void tor_spatial_dims(TorGraph *g, int spatial, const TorDim *dims, TorDim *out) {
    for (int i = 0; i < 3; i++)
        out[i] = i < 3 - spatial ? tor_int_const(g, 1) : dims[i - (3 - spatial)];
}

/// [b, c, spatial...] strides into out[5]; 0 for the added dims.
static inline void tor_spatial_strides(TorGraph *g, int spatial, const TorDim *strides,
                                       TorDim *out) {
    out[0] = strides[0];
    out[1] = strides[1];
    for (int i = 0; i < 3; i++)
        out[2 + i] = i < 3 - spatial ? tor_int_const(g, 0) : strides[2 + i - (3 - spatial)];
}

#endif

// Weights of linear and conv are read in the packed format of their kernel family. Packing is a
// node, so a frozen weight is packed once by the prologue, and any other at each call where that
// pays.
#include <math.h>

#include "passes/passes.h"

static ToroidStatus pack_linear(TorGraph *g, TorNode *node) {
    TorValue *w = tor_in(node, 1);
    // A recurrent layer reads its weight at each step, so that packing always pays.
    bool pays = w->frozen || node->op == TOR_OP_rnn_layer;
    if (w->dtype != TOR_float32 || w->rank != 2 || !pays) return TOROID_OK;
    bool trans = tor_attr_int(node, TOR_ATTR_trans, 0);
    int64_t n, k;
    if (!tor_int_known(g, w->dim[trans], &n) || !tor_int_known(g, w->dim[!trans], &k))
        return TOROID_OK;
    TorDim bytes = tor_int_const(g, 0);  // known to the planner alone
    TorAttr attrs[] = {TOR_A_INT(trans, trans), TOR_A_DIMS(dims, &bytes, 1)};
    TorNode *pack;
    TOR_TRY(tor_graph_add(g, node, TOR_OP_pack_linear, &w, 1, attrs, 2, 1, &pack));
    pack->outputs[0]->frozen = w->frozen;
    TOR_TRY(tor_attr_set(g, node, TOR_A_INT(packed, 1)));
    TOR_TRY(tor_attr_set(g, node, TOR_A_INT(n, n)));
    TOR_TRY(tor_attr_set(g, node, TOR_A_INT(k, k)));
    tor_node_set_input(node, 1, pack->outputs[0]);
    return TOROID_OK;
}

// Sizes that are not known are taken for those of the middle of a net for images.
static double known_or(TorGraph *g, TorDim dim, int64_t usual) {
    int64_t value;
    return (double)(tor_int_known(g, dim, &value) ? value : usual);
}

// Whether a convolution is faster as Winograd's F(4x4, 3x3): 36 products for a tile of 16 pixels
// that would take 144, but transforms at both ends and weights four times as large. The cost is in
// multiply-adds by vectors of 8, as measured with AVX2; other levels have other vectors, but much
// the same ratios. Weights that change are packed at each call, which would cost more than it
// saves.
static bool winograd_pays(TorGraph *g, const TorNode *node, const int64_t *weight) {
    enum { OUT = 4, POINTS = 36, TAPS = 9 };
    const TorValue *w = tor_in(node, 1), *y = node->outputs[0];
    if (!w->frozen || w->dtype != TOR_float32 || w->rank != 4 || weight[2] != 3 || weight[3] != 3)
        return false;
    if (tor_attr_int(node, TOR_ATTR_transposed, 0) || tor_attr_int(node, TOR_ATTR_groups, 1) != 1 ||
        !tor_attr_all(node, TOR_ATTR_stride, 1) || !tor_attr_all(node, TOR_ATTR_dilation, 1))
        return false;
    double o = (double)weight[0], c = (double)weight[1], batch = known_or(g, y->dim[0], 1),
           height = known_or(g, y->dim[2], 28), width = known_or(g, y->dim[3], 28),
           tiles = batch * ceil(height / OUT) * ceil(width / OUT);
    double direct = batch * height * width * TAPS * c * o / 8,
           // A sum of products costs as much as 16 more of them.
        products = tiles * POINTS * (c + 16) * ceil(o / 8) / 0.85,
           // A line of weights comes from memory in the time of 26.
        weights = POINTS * c * o / 16 * 26, transforms = tiles * (200 * c + 180 * o) / 8;
    return fmax(products, weights) + transforms < 0.9 * direct;
}

static ToroidStatus pack_conv(TorGraph *g, TorNode *node) {
    TorValue *w = tor_in(node, 1);
    int64_t size[TOR_MAX_RANK];
    for (int d = 0; d < w->rank; d++)
        if (!tor_int_known(g, w->dim[d], &size[d]))
            return tor_refuse("conv: a weight of unknown size");
    int64_t groups = tor_attr_int(node, TOR_ATTR_groups, 1);
    bool transposed = tor_attr_int(node, TOR_ATTR_transposed, 0);
    TorDim bytes = tor_int_const(g, 0);
    TorAttr attrs[] = {TOR_A_INT(groups, groups), TOR_A_DIMS(dims, &bytes, 1),
                       TOR_A_INT(transposed, transposed), TOR_A_INT(winograd, 1)};
    const bool winograd = winograd_pays(g, node, size);
    TorNode *pack;
    TOR_TRY(tor_graph_add(g, node, TOR_OP_pack_conv, &w, 1, attrs, winograd ? 4 : 3, 1, &pack));
    if (winograd) TOR_TRY(tor_attr_set(g, node, TOR_A_INT(winograd, 1)));
    pack->outputs[0]->frozen = w->frozen;
    TOR_TRY(tor_attr_set(g, node, TOR_A_INT(packed, 1)));
    TOR_TRY(tor_attr_set(g, node, TOR_A_INT(n, transposed ? size[1] * groups : size[0])));
    TOR_TRY(tor_attr_set(g, node, TOR_A_INTS(kernel, size + 2, w->rank - 2)));
    tor_node_set_input(node, 1, pack->outputs[0]);
    return TOROID_OK;
}

ToroidStatus tor_pass_prepack(TorGraph *g) {
    for (TorNode *node = g->first; node; node = node->next) {
        if (tor_attr_int(node, TOR_ATTR_packed, 0)) continue;
        if (node->op == TOR_OP_linear || node->op == TOR_OP_rnn_layer)
            TOR_TRY(pack_linear(g, node));
        if (node->op == TOR_OP_conv) TOR_TRY(pack_conv(g, node));
    }
    return TOROID_OK;
}

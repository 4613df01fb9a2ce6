// A depthwise convolution and the 1x1 convolutions before and after it, as MobileNets have them,
// may be computed together, some lines at a time, so that what lies between them never leaves the
// cache. The pass marks those that only the next one reads; the planner decides by sizes.
#include "passes/passes.h"

/// A packed convolution of float32 images.
static bool is_image_conv(const TorNode *node) {
    return node->op == TOR_OP_conv && tor_attr_int(node, TOR_ATTR_packed, 0) &&
           !tor_attr_int(node, TOR_ATTR_transposed, 0) && tor_in(node, 0)->rank == 4 &&
           tor_in(node, 0)->dtype == TOR_float32 && node->outputs[0]->dtype == TOR_float32;
}

static bool is_1x1(const TorNode *node) {
    return is_image_conv(node) && tor_attr_int(node, TOR_ATTR_groups, 1) == 1 &&
           tor_attr_all(node, TOR_ATTR_kernel, 1) && tor_attr_all(node, TOR_ATTR_stride, 1) &&
           tor_attr_all(node, TOR_ATTR_padding, 0) && tor_attr_all(node, TOR_ATTR_padding_high, 0);
}

static bool is_depthwise(const TorGraph *g, const TorNode *node) {
    int64_t groups = tor_attr_int(node, TOR_ATTR_groups, 1);
    return is_image_conv(node) && groups > 1 && tor_attr_int(node, TOR_ATTR_n, 0) == groups &&
           tor_int_is(g, tor_in(node, 0)->dim[1], groups);
}

/// The one node that reads what `node` makes, as its input 0; NULL if others do.
static TorNode *only_reader(const TorNode *node) {
    const TorUse *use = node->outputs[0]->uses;
    return use && !use->next && use == &use->user->inputs[0] ? use->user : NULL;
}

static bool is_joined(const TorNode *node) { return tor_attr_int(node, TOR_ATTR_bands, 0); }

/// Marks `node`, and moves it to where it is computed then.
static ToroidStatus join(TorGraph *g, TorNode *node, TorNode *reader) {
    tor_graph_move_before(g, node, reader);
    return tor_attr_set(g, node, TOR_A_INT(bands, 1));
}

ToroidStatus tor_pass_fuse_bands(TorGraph *g) {
    for (TorNode *node = g->first, *next; node; node = next) {
        next = node->next;
        if (!is_depthwise(g, node)) continue;
        TorNode *before = tor_in(node, 0)->node, *after = only_reader(node);
        // One that ends a chain of its own begins no other.
        if (is_1x1(before) && only_reader(before) == node && !is_joined(tor_in(before, 0)->node))
            TOR_TRY(join(g, before, node));
        if (!after || !is_1x1(after)) continue;
        TOR_TRY(join(g, node, after));
        if (is_joined(before)) tor_graph_move_before(g, before, node);
    }
    return TOROID_OK;
}

// Constant padding of the spatial dims moves into the convolution or pool that follows, which reads
// beyond its input without a copy. The two sides may differ: padding is the low side's,
// padding_high the other's.
#include <math.h>

#include "passes/passes.h"

typedef struct {
    int64_t low[TOR_MAX_RANK], high[TOR_MAX_RANK];  ///< spatial dims
    int n;
} Sides;

/// The numbers of a pad that touches spatial dims only and cuts nothing off.
static bool read_pad(const TorGraph *g, const TorNode *pad, Sides *s) {
    const TorAttr *low = tor_attr(pad, TOR_ATTR_low), *high = tor_attr(pad, TOR_ATTR_high);
    s->n = low->count - 2;
    for (int d = 0; d < low->count; d++) {
        int64_t a, b;
        if (!tor_int_known(g, low->dims[d], &a) || !tor_int_known(g, high->dims[d], &b) || a < 0 ||
            b < 0 || (d < 2 && a + b > 0))
            return false;
        if (d < 2) continue;
        s->low[d - 2] = a;
        s->high[d - 2] = b;
    }
    return s->n > 0;
}

static bool pads_with(const TorNode *pad, double value) {
    TorScalar s = tor_attr(pad, TOR_ATTR_value)->scalar;
    return (tor_dtype_is_float(s.dtype) ? s.f : (double)s.i) == value;
}

/// Adds the padding that the node has already.
static void add_own(const TorNode *node, Sides *s) {
    const TorAttr *low = tor_attr(node, TOR_ATTR_padding),
                  *high = tor_attr(node, TOR_ATTR_padding_high);
    if (!high) high = low;
    for (int i = 0; i < s->n; i++) {
        s->low[i] += low->ints[i];
        s->high[i] += high->ints[i];
    }
}

/// Does a window hold at most half padding at each side, as pools want it?
static bool pool_takes(const TorNode *node, const Sides *s) {
    const TorAttr *kernel = tor_attr(node, TOR_ATTR_kernel);
    for (int i = 0; i < s->n; i++)
        if (s->low[i] > kernel->ints[i] / 2 || s->high[i] > kernel->ints[i] / 2) return false;
    return !tor_attr_int(node, TOR_ATTR_ceil_mode, 0);
}

static bool pads_itself(const TorNode *node) {
    const TorAttr *padding = tor_attr(node, TOR_ATTR_padding);
    for (int i = 0; i < padding->count; i++)
        if (padding->ints[i]) return true;
    return false;
}

/// Without ceil_mode each window lies inside the padded input, so all have the same count.
static ToroidStatus count_padding(TorGraph *g, TorNode *node) {
    if (tor_attr_int(node, TOR_ATTR_divisor, 0)) return TOROID_OK;
    const TorAttr *kernel = tor_attr(node, TOR_ATTR_kernel);
    int64_t count = 1;
    for (int i = 0; i < kernel->count; i++) count *= kernel->ints[i];
    return tor_attr_set(g, node, TOR_A_INT(divisor, count));
}

/// Does padding by the node itself, `s` in all, give what the pad before it gave?
static bool takes(const TorNode *node, const TorNode *pad, const Sides *s) {
    switch (node->op) {
        case TOR_OP_conv: return !tor_attr_int(node, TOR_ATTR_transposed, 0) && pads_with(pad, 0);
        case TOR_OP_max_pool:  // indices are those of the padded input
            return !node->outputs[1]->uses && pads_with(pad, -INFINITY) && pool_takes(node, s);
        case TOR_OP_avg_pool:
            return pads_with(pad, 0) && pool_takes(node, s) &&
                   (tor_attr_int(node, TOR_ATTR_count_include_pad, 1) || !pads_itself(node));
        default: return false;
    }
}

static ToroidStatus fold(TorGraph *g, TorNode *node) {
    for (const TorNode *pad; (pad = tor_in(node, 0)->node)->op == TOR_OP_pad;) {
        Sides s;
        if (!read_pad(g, pad, &s)) return TOROID_OK;
        add_own(node, &s);
        if (!takes(node, pad, &s)) return TOROID_OK;
        if (node->op == TOR_OP_avg_pool) TOR_TRY(count_padding(g, node));
        tor_node_set_input(node, 0, tor_in(pad, 0));
        TOR_TRY(tor_attr_set(g, node, TOR_A_INTS(padding, s.low, s.n)));
        TOR_TRY(tor_attr_set(g, node, TOR_A_INTS(padding_high, s.high, s.n)));
    }
    return TOROID_OK;
}

ToroidStatus tor_pass_fold_pad(TorGraph *g) {
    for (TorNode *node = g->first; node; node = node->next)
        if (node->op == TOR_OP_conv || node->op == TOR_OP_max_pool || node->op == TOR_OP_avg_pool)
            TOR_TRY(fold(g, node));
    return TOROID_OK;
}

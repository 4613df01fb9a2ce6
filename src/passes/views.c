// View algebra: views move below elementwise ops wherever all operands allow it, so that fusion
// sees chains of elementwise ops, and meet other views there. Permutes stay: they change what is
// contiguous. Slices of a product's rows move above it.
#include "passes/passes.h"
#include "passes/rewrite.h"

ToroidStatus tor_pass_views(TorGraph *g) {
    static TorRule *const rules[] = {
        tor_rule_identity,    tor_rule_merge_views, tor_rule_sink_linear, tor_rule_raise_linear,
        tor_rule_linear_bias, tor_rule_sink_map,    tor_rule_raise_slice, NULL,
    };
    return tor_rewrite_sweep(g, rules);
}

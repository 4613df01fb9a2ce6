// One spelling for what has many. What must meet in one sweep is in one list: a linear moves past
// the view before it, the view moves on past unary ops to the next linear, or meets the view back.
#include "passes/passes.h"
#include "passes/rewrite.h"

ToroidStatus tor_pass_canonicalise(TorGraph *g) {
    static TorRule *const rules[] = {
        tor_rule_identity,
        tor_rule_merge_views,
        tor_rule_permute_to_view,
        tor_rule_merge_casts,
        tor_rule_number,
        tor_rule_batch_matmul,
        tor_rule_matmul_linear,
        tor_rule_linear_trans,
        tor_rule_linear_bias,
        tor_rule_sink_linear,
        tor_rule_raise_linear,
        tor_rule_sink_unary,
        NULL,
    };
    return tor_rewrite_sweep(g, rules);
}

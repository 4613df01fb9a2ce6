#include "plan/work.h"

static double size(const int64_t *ints, TorDim dim) { return (double)ints[dim]; }

/// Distinct elements in memory: a dim that repeats them does not count.
static double elements(const TorValue *v, const int64_t *ints) {
    double count = 1;
    for (int d = 0; d < v->rank; d++)
        if (!v->has_layout || ints[v->stride[d]] != 0) count *= size(ints, v->dim[d]);
    return count;
}

static double bytes(const TorValue *v, const int64_t *ints) {
    return elements(v, ints) * (double)tor_dtype_size(v->dtype);
}

/// Ops that read only those rows of input 0 that an index names.
static bool reads_chosen_rows(TorOp op) {
    return op == TOR_OP_embedding || op == TOR_OP_embedding_bag || op == TOR_OP_index_select ||
           op == TOR_OP_gather || op == TOR_OP_index;
}

static double kernel_elements(const TorNode *conv) {
    const TorAttr *kernel = tor_attr(conv, TOR_ATTR_kernel);
    double count = 1;
    for (int i = 0; kernel && i < kernel->count; i++) count *= (double)kernel->ints[i];
    return count;
}

/// Half of the scores where queries see no later keys.
static double attention_flops(const TorNode *node, const int64_t *ints) {
    const TorValue *q = tor_in(node, 0), *k = tor_in(node, 1), *v = tor_in(node, 2);
    double m = size(ints, q->dim[2]), n = size(ints, k->dim[2]);
    double scores = size(ints, q->dim[0]) * size(ints, q->dim[1]) * m * n;
    if (tor_attr_int(node, TOR_ATTR_causal, 0)) scores -= scores * TOR_MIN(m, n) / n / 2;
    return 2 * scores * (size(ints, q->dim[3]) + size(ints, v->dim[3]));
}

static double flops(const TorNode *node, const int64_t *ints) {
    const TorValue *x = node->n_inputs ? tor_in(node, 0) : NULL;
    switch (node->op) {
        case TOR_OP_linear:
        case TOR_OP_matmul:
            return 2 * elements(node->outputs[0], ints) * size(ints, x->dim[x->rank - 1]);
        case TOR_OP_attention: return attention_flops(node, ints);
        case TOR_OP_conv: {
            // Each element of the input of a transposed one, else of the output, meets the kernel.
            bool transposed = tor_attr_int(node, TOR_ATTR_transposed, 0);
            const TorValue *each = transposed ? x : node->outputs[0];
            const TorValue *other = transposed ? node->outputs[0] : x;
            return 2 * elements(each, ints) * kernel_elements(node) * size(ints, other->dim[1]) /
                   (double)tor_attr_int(node, TOR_ATTR_groups, 1);
        }
        case TOR_OP_rnn_layer: return 2 * elements(x, ints) * size(ints, node->outputs[0]->dim[2]);
        default: return 0;
    }
}

/// The packed weight of a linear, a recurrent layer or a conv has no size of its own in the graph.
static double packed_bytes(const TorNode *node, const int64_t *ints) {
    const TorValue *x = tor_in(node, 0);
    double n = (double)tor_attr_int(node, TOR_ATTR_n, 0), item = (double)tor_dtype_size(x->dtype);
    if (node->op != TOR_OP_conv) return item * n * (double)tor_attr_int(node, TOR_ATTR_k, 0);
    return item * n * kernel_elements(node) * size(ints, x->dim[1]) /
           (double)tor_attr_int(node, TOR_ATTR_groups, 1);
}

static TorWork node_work(const TorNode *node, const int64_t *ints) {
    // What packing writes has no size of its own in the graph: as much as it reads.
    if (tor_op_kind(node->op) == TOR_KIND_PACK)
        return (TorWork){.bytes = 2 * bytes(tor_in(node, 0), ints)};
    TorWork work = {.flops = flops(node, ints)};
    for (int i = 0; i < node->n_outputs; i++)
        if (node->outputs[i]->uses) work.bytes += bytes(node->outputs[i], ints);
    for (int i = 0; i < node->n_inputs; i++) {
        if (i == 0 && reads_chosen_rows(node->op))
            work.bytes += work.bytes;
        else if (i == 1 && tor_attr_int(node, TOR_ATTR_packed, 0))
            work.bytes += packed_bytes(node, ints);
        else
            work.bytes += bytes(tor_in(node, i), ints);
    }
    return work;
}

TorWork tor_step_work(const TorStep *step, const int64_t *ints) {
    const TorNode *node = step->node;
    TorWork work = node_work(node, ints);
    for (int i = 0; i < step->joined; i++) {
        work.bytes -= 2 * bytes(tor_in(node, 0), ints);
        node = tor_in(node, 0)->node;
        TorWork one = node_work(node, ints);
        work.flops += one.flops;
        work.bytes += one.bytes;
    }
    return work;
}

// Steps of the attention family.
#include <string.h>

#include "plan/step.h"
#include "tune/families.h"

typedef struct {
    TorDim b, h, g, m, n, d, e;
    TorDim q[4], k[4], v[4], mask[4], keep[4], out[4];
    TorAttentionMask mask_kind;
    bool causal, nan_rows, has_keep;
    float scale, fill;
} AttentionData;

static void attention_ref_range(const void *args, int64_t begin, int64_t end, void *scratch) {
    (void)begin, (void)end;
    tor_attention_ref(args, scratch);
}

static void fill(const void *data, const int64_t *ints, void *problem) {
    const AttentionData *t = data;
    TorAttentionArgs *args = problem;
    args->b = ints[t->b];
    args->h = ints[t->h];
    args->g = ints[t->g];
    args->m = ints[t->m];
    args->n = ints[t->n];
    args->d = ints[t->d];
    args->e = ints[t->e];
    tor_bind_dims(ints, t->q, 4, args->q_stride);
    tor_bind_dims(ints, t->k, 4, args->k_stride);
    tor_bind_dims(ints, t->v, 4, args->v_stride);
    tor_bind_dims(ints, t->out, 4, args->out_stride);
    if (t->mask_kind != TOR_ATTENTION_NO_MASK) tor_bind_dims(ints, t->mask, 4, args->mask_stride);
    if (t->has_keep) tor_bind_dims(ints, t->keep, 4, args->keep_stride);
    args->mask_kind = t->mask_kind;
    args->has_keep = t->has_keep;
    args->fill = t->fill;
    args->causal = t->causal;
    args->nan_rows = t->nan_rows;
    args->scale = t->scale;
}

static void bind_attention(const void *data, TorBinder *b) {
    const TorAttentionArgs *args = b->args;
    fill(data, b->ints, b->args);
    if (tor_bind_reference(b, attention_ref_range, (size_t)args->n * sizeof(double))) return;
    tor_bind_tunable_args(b, &tor_tunable_attention, fill, data);
}

static const char *attention_kernel(const void *args) {
    const TorAttentionKernel *kernel = ((const TorAttentionArgs *)args)->kernel;
    return kernel ? tor_attention_kernel_name(kernel) : NULL;
}

static const TorStepKind attention_kind = {.name = "attention",
                                           .bind = bind_attention,
                                           .kernel = attention_kernel,
                                           .reference = "tor_attention_ref"};

/// The strides of operand `input` as one of scores, and its pointer.
static ToroidStatus lower_mask(TorPlan *plan, const TorNode *node, int input,
                               const TorDim scores[4], TorDim stride[4], size_t pointer) {
    TorView mask;
    TOR_TRY(tor_plan_view(plan, tor_in(node, input), &mask));
    TorView wide = tor_view_broadcast(plan, &mask, 4, scores);
    memcpy(stride, wide.stride, sizeof wide.stride[0] * 4);
    return tor_step_pointer(plan, &mask, pointer);
}

ToroidStatus tor_lower_attention(TorPlan *plan, const TorNode *node) {
    const TorValue *q = tor_in(node, 0), *out = node->outputs[0];
    if (q->dtype != TOR_float32)
        return tor_refuse("attention in %s: only float32 has kernels", tor_dtype_name(q->dtype));
    TorView view[3], result;
    for (int i = 0; i < 3; i++) TOR_TRY(tor_plan_view(plan, tor_in(node, i), &view[i]));
    TOR_TRY(tor_plan_view(plan, out, &result));
    AttentionData *t;
    TOR_TRY(tor_step_add(plan, &attention_kind, node, sizeof *t, sizeof(TorAttentionArgs), &t));
    t->b = view[0].dim[0];
    t->h = view[0].dim[1];
    t->g = view[1].dim[1];
    t->m = view[0].dim[2];
    t->n = view[1].dim[2];
    t->d = view[0].dim[3];
    t->e = view[2].dim[3];
    memcpy(t->q, view[0].stride, sizeof t->q);
    memcpy(t->k, view[1].stride, sizeof t->k);
    memcpy(t->v, view[2].stride, sizeof t->v);
    memcpy(t->out, result.stride, sizeof t->out);
    t->causal = tor_attr_int(node, TOR_ATTR_causal, 0);
    t->nan_rows = tor_attr_int(node, TOR_ATTR_nan_rows, 0);
    t->scale = (float)tor_attr_float(node, TOR_ATTR_scale, 1);
    TOR_TRY(tor_step_pointer(plan, &view[0], offsetof(TorAttentionArgs, q)));
    TOR_TRY(tor_step_pointer(plan, &view[1], offsetof(TorAttentionArgs, k)));
    TOR_TRY(tor_step_pointer(plan, &view[2], offsetof(TorAttentionArgs, v)));
    TOR_TRY(tor_step_pointer(plan, &result, offsetof(TorAttentionArgs, out)));
    int mask = tor_attention_mask(node), keep = tor_attention_keep(node);
    TorDim scores[4] = {t->b, t->h, t->m, t->n};
    if (mask) {
        TorDtype type = tor_in(node, mask)->dtype;
        if (type != TOR_bool && type != TOR_float32)
            return tor_refuse("a mask of %s", tor_dtype_name(type));
        t->mask_kind = type == TOR_bool ? TOR_ATTENTION_MASK_BOOL : TOR_ATTENTION_MASK_F32;
        TOR_TRY(lower_mask(plan, node, mask, scores, t->mask, offsetof(TorAttentionArgs, mask)));
    }
    if (keep) {
        t->has_keep = true;
        t->fill = (float)tor_attr_float(node, TOR_ATTR_fill, 0);
        TOR_TRY(lower_mask(plan, node, keep, scores, t->keep, offsetof(TorAttentionArgs, keep)));
    }
    tor_step_shared(plan, offsetof(TorAttentionArgs, partial));
    return TOROID_OK;
}

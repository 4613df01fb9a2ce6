/// Attention's oracle: whole rows of scores, everything in double, rounded once.
#include <math.h>

#include "kernels/attention/contract.h"

static double score(const TorAttentionArgs *a, int64_t b, int64_t h, int64_t i, int64_t j) {
    if (a->causal && j > i) return -INFINITY;
    const float *q = a->q + b * a->q_stride[0] + h * a->q_stride[1] + i * a->q_stride[2];
    const float *k =
        a->k + b * a->k_stride[0] + h / (a->h / a->g) * a->k_stride[1] + j * a->k_stride[2];
    double dot = 0;
    for (int64_t c = 0; c < a->d; c++) dot += (double)q[c * a->q_stride[3]] * k[c * a->k_stride[3]];
    dot *= a->scale;
    if (a->has_keep && !a->keep[b * a->keep_stride[0] + h * a->keep_stride[1] +
                                i * a->keep_stride[2] + j * a->keep_stride[3]])
        dot = a->fill;
    int64_t at = b * a->mask_stride[0] + h * a->mask_stride[1] + i * a->mask_stride[2] +
                 j * a->mask_stride[3];
    if (a->mask_kind == TOR_ATTENTION_MASK_F32) dot += ((const float *)a->mask)[at];
    if (a->mask_kind == TOR_ATTENTION_MASK_BOOL)
        dot += ((const uint8_t *)a->mask)[at] ? 0 : -INFINITY;
    return dot;
}

static void row(const TorAttentionArgs *a, int64_t b, int64_t h, int64_t i, double *s) {
    const float *v = a->v + b * a->v_stride[0] + h / (a->h / a->g) * a->v_stride[1];
    double top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < a->n; j++) {
        s[j] = score(a, b, h, i, j);
        if (s[j] > top) top = s[j];
    }
    if (top == -INFINITY) top = 0;
    for (int64_t j = 0; j < a->n; j++) sum += s[j] = exp(s[j] - top);
    for (int64_t c = 0; c < a->e; c++) {
        double acc = 0;
        for (int64_t j = 0; j < a->n; j++)
            if (!(a->causal && j > i)) acc += s[j] * v[j * a->v_stride[2] + c * a->v_stride[3]];
        a->out[b * a->out_stride[0] + h * a->out_stride[1] + i * a->out_stride[2] +
               c * a->out_stride[3]] =
            (float)(sum == 0 ? (a->nan_rows && a->n > 0 ? NAN : acc) : acc / sum);
    }
}

void tor_attention_ref(const TorAttentionArgs *a, double *scores) {
    for (int64_t b = 0; b < a->b; b++)
        for (int64_t h = 0; h < a->h; h++)
            for (int64_t i = 0; i < a->m; i++) row(a, b, h, i, scores);
}

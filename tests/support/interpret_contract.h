// The interpreter's rules for contractions and pools.
#ifndef TESTS_SUPPORT_INTERPRET_CONTRACT_H
#define TESTS_SUPPORT_INTERPRET_CONTRACT_H

#include "array.h"

static inline void interpret_contract(Interpreter *it, const TorNode *node, Array *y) {
    const Array *a = interpreted(it, node, 0), *b = interpreted(it, node, 1);
    bool linear = node->op == TOR_OP_linear, trans = tor_attr_int(node, TOR_ATTR_trans, 0);
    int64_t n = y->size[y->rank - 1], k = a->size[a->rank - 1],
            m = linear ? 1 : y->size[y->rank - 2];
    for (int64_t i = 0; i < array_numel(y); i++) {
        int64_t column = i % n, row = i / n;
        double sum = linear && node->n_inputs > 2 ? interpreted(it, node, 2)->data[column] : 0;
        for (int64_t j = 0; j < k; j++)
            sum += a->data[row * k + j] * b->data[linear ? (trans ? j * n + column : column * k + j)
                                                         : (row / m * k + j) * n + column];
        y->data[i] = sum;
    }
}

static inline void interpret_attention(Interpreter *it, const TorNode *node, Array *y) {
    const Array *q = interpreted(it, node, 0), *k = interpreted(it, node, 1),
                *v = interpreted(it, node, 2),
                *mask = tor_attention_mask(node) ? interpreted(it, node, 3) : NULL,
                *keep = tor_attention_keep(node) ? interpreted(it, node, tor_attention_keep(node))
                                                 : NULL;
    bool is_bool = mask && tor_in(node, 3)->dtype == TOR_bool,
         causal = tor_attr_int(node, TOR_ATTR_causal, 0);
    int64_t H = q->size[1], G = k->size[1], M = q->size[2], N = k->size[2], D = q->size[3],
            E = v->size[3];
    double *p = calloc((size_t)N + 1, sizeof *p);
    for (int64_t bh = 0; bh < q->size[0] * H; bh++)
        for (int64_t m = 0; m < M; m++) {
            int64_t bg = bh / H * G + bh % H / (H / G);
            double most = -INFINITY, sum = 0;
            for (int64_t n = 0; n < N; n++) {
                p[n] = 0;
                for (int64_t d = 0; d < D; d++)
                    p[n] += q->data[(bh * M + m) * D + d] * k->data[(bg * N + n) * D + d];
                p[n] *= tor_attr_float(node, TOR_ATTR_scale, 1);
                int64_t at[] = {bh / H, bh % H, m, n};
                if (keep && array_broadcast(keep, 4, at) == 0)
                    p[n] = tor_attr_float(node, TOR_ATTR_fill, 0);
                double w = mask ? array_broadcast(mask, 4, at) : is_bool;
                if (mask) p[n] = is_bool ? (w != 0 ? p[n] : -INFINITY) : p[n] + w;
                if (causal && n > m) p[n] = -INFINITY;
                most = fmax(most, p[n]);
            }
            for (int64_t n = 0; n < N; n++) sum += p[n] = exp(p[n] - most);
            for (int64_t e = 0; e < E; e++) {
                double r = 0;
                for (int64_t n = 0; n < N; n++) r += p[n] / sum * v->data[(bg * N + n) * E + e];
                y->data[(bh * M + m) * E + e] = r;
            }
        }
    free(p);
}

static inline int64_t spatial_attr(const TorNode *node, TorAttrKey key, int d, int64_t missing) {
    const TorAttr *a = tor_attr(node, key);
    return a ? a->ints[d] : missing;
}

static inline int64_t window_size(const int64_t *kernel, int spatial) {
    int64_t n = 1;
    for (int d = 0; d < spatial; d++) n *= kernel[d];
    return n;
}

/// Where tap `i` of the window at output `at` reads; false: in the padding.
static inline bool window_place(const TorNode *node, const Array *x, const int64_t *kernel,
                                int64_t i, const int64_t *at, int64_t *where) {
    bool inside = true;
    for (int d = x->rank - 3; d >= 0; d--) {
        int64_t k = i % kernel[d];
        i /= kernel[d];
        where[2 + d] = at[2 + d] * spatial_attr(node, TOR_ATTR_stride, d, 1) -
                       spatial_attr(node, TOR_ATTR_padding, d, 0) +
                       k * spatial_attr(node, TOR_ATTR_dilation, d, 1);
        inside &= where[2 + d] >= 0 && where[2 + d] < x->size[2 + d];
    }
    return inside;
}

static inline void interpret_conv(Interpreter *it, const TorNode *node, Array *y) {
    const Array *x = interpreted(it, node, 0), *w = interpreted(it, node, 1);
    int64_t groups = tor_attr_int(node, TOR_ATTR_groups, 1), at[TOR_MAX_RANK], where[TOR_MAX_RANK];
    int64_t c = w->size[1], taps = window_size(w->size + 2, w->rank - 2);
    assert_false(tor_attr_int(node, TOR_ATTR_transposed, 0));
    for (int64_t i = 0; i < array_numel(y); i++) {
        array_index(y, i, at);
        double sum = node->n_inputs > 2 ? interpreted(it, node, 2)->data[at[1]] : 0;
        for (int64_t t = 0; t < taps; t++) {
            if (!window_place(node, x, w->size + 2, t, at, where)) continue;
            where[0] = at[0];
            for (int64_t j = 0; j < c; j++) {
                where[1] = at[1] / (y->size[1] / groups) * c + j;
                sum += x->data[array_flat(x, where)] * w->data[(at[1] * c + j) * taps + t];
            }
        }
        y->data[i] = sum;
    }
}

static inline void interpret_pool(const TorNode *node, const Array *x, Array *y, Array *index) {
    int64_t at[TOR_MAX_RANK], where[TOR_MAX_RANK];
    bool adaptive = node->op == TOR_OP_adaptive_avg_pool;
    for (int64_t i = 0; i < array_numel(y); i++) {
        array_index(y, i, at);
        double most = -INFINITY, sum = 0;
        int64_t best = 0, count = 0, padded = 1;
        memcpy(where, at, sizeof where);
        if (adaptive) {
            assert_int_equal(x->rank, 4);
            for (int64_t a = at[2] * x->size[2] / y->size[2];
                 a < ((at[2] + 1) * x->size[2] + y->size[2] - 1) / y->size[2]; a++)
                for (int64_t b = at[3] * x->size[3] / y->size[3];
                     b < ((at[3] + 1) * x->size[3] + y->size[3] - 1) / y->size[3]; b++, count++) {
                    where[2] = a, where[3] = b;
                    sum += x->data[array_flat(x, where)];
                }
            y->data[i] = sum / (double)count;
            continue;
        }
        const int64_t *kernel = tor_attr(node, TOR_ATTR_kernel)->ints;
        for (int d = 0; d < x->rank - 2; d++) {
            int64_t start = at[2 + d] * spatial_attr(node, TOR_ATTR_stride, d, 1) -
                            spatial_attr(node, TOR_ATTR_padding, d, 0);
            padded *= TOR_MIN(start + kernel[d],
                              x->size[2 + d] + spatial_attr(node, TOR_ATTR_padding, d, 0)) -
                      start;
        }
        for (int64_t t = 0; t < window_size(kernel, x->rank - 2); t++) {
            if (!window_place(node, x, kernel, t, at, where)) continue;
            double v = x->data[array_flat(x, where)];
            sum += v;
            count++;
            if (v > most) {
                most = v;
                best = where[2];
                for (int d = 3; d < x->rank; d++) best = best * x->size[d] + where[d];
            }
        }
        if (node->op == TOR_OP_max_pool) {
            y->data[i] = most;
            index->data[i] = (double)best;
        } else {
            y->data[i] =
                sum / (double)(tor_attr_int(node, TOR_ATTR_count_include_pad, 1) ? padded : count);
        }
    }
}

#endif

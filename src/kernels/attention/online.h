/// The parts of online softmax that the SIMD sources of attention share: which rows and keys an
/// item has, one row's step over one tile of scores, and the division at the end.
///
/// A row keeps its maximum so far (`top`), the sum of its probabilities relative to it, and an
/// output row not yet divided. A tile raises the maximum, so what came before is scaled by exp(old
/// - new). The maximum ignores NaN, which reaches the sum through exp instead; while it is -inf the
/// exponent's base is 0, so that rows without keys have probabilities of 0.
#ifndef TOR_KERNELS_ATTENTION_ONLINE_H
#define TOR_KERNELS_ATTENTION_ONLINE_H

#include <math.h>

#include "base/simd.h"
#include "base/simd_math.h"
#include "kernels/attention/tiles.h"

typedef struct {
    const TorAttentionArgs *args;
    int64_t batch, head, kv_head;  ///< head: the first of row_heads
    int64_t row, rows;             ///< of row_heads * m
    int64_t key, key_end;
    const float *k, *v;            ///< of this batch and head
    float *partial;                ///< this item's first row there, or NULL
    int64_t tile_key, tile_keys;   ///< the tile at work
    bool bias_shared, bias_ready;  ///< one mask row serves all rows of a tile
    bool keep_shared;              ///< one row of keep does
    TorAttentionScratch at;
    float *scratch;
} Item;

TOR_INLINE int64_t item_query(const Item *item, int64_t row) {
    return item->args->row_heads == 1 ? item->row + row : (item->row + row) / item->args->row_heads;
}

TOR_INLINE int64_t item_head(const Item *item, int64_t row) {
    return item->args->row_heads == 1 ? item->head
                                      : item->head + (item->row + row) % item->args->row_heads;
}

/// Row `row` of q, where it lies in memory.
TOR_INLINE const float *item_q(const Item *item, int64_t row) {
    const TorAttentionArgs *args = item->args;
    return args->q + item->batch * args->q_stride[0] + item_head(item, row) * args->q_stride[1] +
           item_query(item, row) * args->q_stride[2];
}

/// Do all rows of an item read one row of what has these strides?
TOR_INLINE bool rows_share(const TorAttentionArgs *args, const int64_t stride[4]) {
    return stride[2] == 0 && (args->row_heads == 1 || stride[1] == 0);
}

/// Item `index` of tor_attention_run(): what it works on.
TOR_INLINE Item item_find(const TorAttentionArgs *args, int64_t index, void *scratch) {
    Item item = {.args = args, .scratch = scratch, .at = tor_attention_scratch(args, args->kernel)};
    int64_t unit_rows = args->row_heads * args->m,
            blocks = tor_ceil_div(unit_rows, args->row_block);
    int64_t units = args->h / args->row_heads, split = index % args->kv_splits,
            tile = index / args->kv_splits;
    int64_t block = tile % blocks, unit = tile / blocks % units;
    item.batch = tile / blocks / units;
    item.head = unit * args->row_heads;
    item.kv_head = item.head / (args->h / args->g);
    item.row = block * args->row_block;
    item.rows = TOR_MIN(args->row_block, unit_rows - item.row);
    int64_t split_keys = tor_attention_split_keys(args);
    item.key = TOR_MIN(split * split_keys, args->n);
    item.key_end = TOR_MIN(item.key + split_keys, args->n);
    if (args->causal) item.key_end = TOR_MIN(item.key_end, item_query(&item, item.rows - 1) + 1);
    item.k = args->k + item.batch * args->k_stride[0] + item.kv_head * args->k_stride[1];
    item.v = args->v + item.batch * args->v_stride[0] + item.kv_head * args->v_stride[1];
    if (args->kv_splits > 1)
        item.partial =
            (float *)args->partial + index * args->row_block * tor_attention_partial_row(args);
    item.bias_shared = rows_share(args, args->mask_stride);
    item.keep_shared = rows_share(args, args->keep_stride);
    return item;
}

/// The same, its running values cleared.
TOR_INLINE Item item_begin(const TorAttentionArgs *args, int64_t index, void *scratch) {
    Item item = item_find(args, index, scratch);
    float *acc = item.scratch + item.at.acc, *top = item.scratch + item.at.top,
          *sum = item.scratch + item.at.sum;
    memset(acc, 0, (size_t)(item.at.rows * item.at.acc_stride) * sizeof(float));
    for (int64_t i = 0; i < item.at.rows; i++) top[i] = -INFINITY, sum[i] = 0;
    return item;
}

TOR_INLINE void item_tile(Item *item, int64_t key) {
    item->tile_key = key;
    item->tile_keys = TOR_MIN(item->args->key_tile, item->key_end - key);
    item->bias_ready = false;
}

/// Where a mask of these strides has `row` and `key`.
TOR_INLINE int64_t mask_at(const Item *item, const int64_t stride[4], int64_t row, int64_t key) {
    return item->batch * stride[0] + item_head(item, row) * stride[1] +
           item_query(item, row) * stride[2] + key * stride[3];
}

TOR_INLINE bool all_zero(const uint8_t *mask, int64_t stride, int64_t n) {
    bool all = true;
    for (int64_t j = 0; j < n; j++) all &= !mask[j * stride];
    return all;
}

/// Whether the mask, of one row, hides n keys.
TOR_INLINE bool mask_hides(const TorAttentionArgs *args, int64_t at, int64_t n) {
    int64_t stride = args->mask_stride[3];
    if (args->mask_kind == TOR_ATTENTION_MASK_BOOL)
        return all_zero((const uint8_t *)args->mask + at, stride, n);
    const float *mask = (const float *)args->mask + at;
    bool all = true;
    if (stride == 1)
        for (int64_t j = 0; j < n; j++) all &= mask[j] == -INFINITY;
    else
        for (int64_t j = 0; j < n; j++) all &= mask[j * stride] == -INFINITY;
    return all;
}

/// The same of keep and the mask together: NaN or infinity added to a fill of -inf does not hide.
TOR_INLINE bool both_hide(const TorAttentionArgs *args, int64_t keep_at, int64_t at, int64_t n) {
    bool all = true;
    for (int64_t j = 0; j < n; j++) {
        float s = args->keep[keep_at + j * args->keep_stride[3]] ? 0 : args->fill;
        int64_t own = at + j * args->mask_stride[3];
        if (args->mask_kind == TOR_ATTENTION_MASK_F32)
            s += ((const float *)args->mask)[own];
        else if (!((const uint8_t *)args->mask)[own])
            s += -INFINITY;
        all &= s == -INFINITY;
    }
    return all;
}

TOR_INLINE bool row_hides(const Item *item, int64_t row, int64_t key, int64_t n) {
    const TorAttentionArgs *args = item->args;
    int64_t at = mask_at(item, args->mask_stride, row, key);
    if (!args->has_keep) return mask_hides(args, at, n);
    int64_t keep_at = mask_at(item, args->keep_stride, row, key);
    if (args->mask_kind == TOR_ATTENTION_NO_MASK)
        return all_zero(args->keep + keep_at, args->keep_stride[3], n);
    return both_hide(args, keep_at, at, n);
}

enum { HIDDEN_KEYS = 32 };  ///< fewer that are hidden are not worth a tile's end

/// Whether keys from `key` to `end` are hidden from every row of the item.
TOR_INLINE bool item_hides(const Item *item, int64_t key, int64_t end) {
    const TorAttentionArgs *args = item->args;
    bool keeps_all = !args->has_keep || args->fill != -INFINITY;
    if (args->mask_kind == TOR_ATTENTION_NO_MASK && keeps_all) return false;
    bool shared = item->bias_shared && (!args->has_keep || item->keep_shared);
    for (int64_t row = 0; row < (shared ? 1 : item->rows); row++)
        for (int64_t j = key; j < end; j += HIDDEN_KEYS)
            if (!row_hides(item, row, j, TOR_MIN(HIDDEN_KEYS, end - j))) return false;
    return true;
}

/// Puts `fill` in the place of scores of `row` that keep does not let through.
TOR_INLINE void item_keep(const Item *item, int64_t row, int64_t n, float *s) {
    const TorAttentionArgs *args = item->args;
    int64_t stride = args->keep_stride[3];
    const uint8_t *keep = args->keep + mask_at(item, args->keep_stride, row, item->tile_key);
    const float fill = args->fill;
    if (stride == 1)
        for (int64_t j = 0; j < n; j++) s[j] = keep[j] ? s[j] : fill;
    else
        for (int64_t j = 0; j < n; j++) s[j] = keep[j * stride] ? s[j] : fill;
}

/// The mask of `row` at the keys of the tile, as floats; NULL without a mask.
TOR_INLINE const float *item_bias(Item *item, int64_t row) {
    const TorAttentionArgs *args = item->args;
    int64_t n = item->tile_keys;
    if (args->mask_kind == TOR_ATTENTION_NO_MASK) return NULL;
    int64_t stride = args->mask_stride[3],
            at = mask_at(item, args->mask_stride, row, item->tile_key);
    float *bias = item->scratch + item->at.bias;
    if (args->mask_kind == TOR_ATTENTION_MASK_F32) {
        const float *mask = (const float *)args->mask + at;
        if (stride == 1) return mask;
        if (!(item->bias_shared && item->bias_ready))
            for (int64_t j = 0; j < n; j++) bias[j] = mask[j * stride];
    } else if (!(item->bias_shared && item->bias_ready)) {
        const uint8_t *mask = (const uint8_t *)args->mask + at;
        if (stride == 1)
            for (int64_t j = 0; j < n; j++) bias[j] = mask[j] ? 0.0f : -INFINITY;
        else
            for (int64_t j = 0; j < n; j++) bias[j] = mask[j * stride] ? 0.0f : -INFINITY;
    }
    item->bias_ready = true;
    return bias;
}

/// All lanes hold the sum (maximum) of the lanes, halves first.
#if VF32 == 4
#define FOLD(v, op) (v = op(v, TOR_SHUFFLE(v, 2, 3, 0, 1)), op(v, TOR_SHUFFLE(v, 1, 0, 3, 2)))
#elif VF32 == 8
#define FOLD(v, op)                                     \
    (v = op(v, TOR_SHUFFLE(v, 4, 5, 6, 7, 0, 1, 2, 3)), \
     v = op(v, TOR_SHUFFLE(v, 2, 3, 0, 1, 6, 7, 4, 5)), \
     op(v, TOR_SHUFFLE(v, 1, 0, 3, 2, 5, 4, 7, 6)))
#else
#define FOLD(v, op)                                                                   \
    (v = op(v, TOR_SHUFFLE(v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7)), \
     v = op(v, TOR_SHUFFLE(v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11)), \
     v = op(v, TOR_SHUFFLE(v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13)), \
     op(v, TOR_SHUFFLE(v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14)))
#endif
#define TOR_SHUFFLE(v, ...) __builtin_shufflevector(v, v, __VA_ARGS__)
#define ADD(a, b) ((a) + (b))
TOR_INLINE vf32 lanes_sum(vf32 v) { return FOLD(v, ADD); }
TOR_INLINE vf32 lanes_max(vf32 v) { return FOLD(v, vf32_max); }

TOR_INLINE vf32 first_lanes(vf32 v, int64_t n, float rest) {
    vi32 lane = {0};
    for (int i = 0; i < VF32; i++) lane[i] = i;
    return vf32_select(lane < vi32_set((int32_t)n), v, vf32_set(rest));
}

/// exp(x) for x <= 0, to 1.4 ulp: 2^n 2^r with x log2(e) = n + r. Results below the normal range
/// are 0 (2^n is then bits of 0), which also spares masked scores the subnormal arithmetic that is
/// slow on many CPUs. The coefficients are a least maximum fit of 2^r - 1 (Lawson's iteration,
/// 1961); exp(0) is 1.
TOR_INLINE vf32 exp_negative(vf32 x) {
    const vf32 log2e = vf32_set(1.44269504088896341f), bias = vf32_set(12582912.0f + 127.0f);
    x = vf32_max(vf32_set(-88.0f), x);  // NaN passes
    vf32 shifted = vf32_fma(x, log2e, bias), r = vf32_fma(x, log2e, bias - shifted);
    vf32 p = vf32_set(1.3264727e-3f);
    p = vf32_fma(p, r, vf32_set(9.6715130e-3f));
    p = vf32_fma(p, r, vf32_set(5.5507336e-2f));
    p = vf32_fma(p, r, vf32_set(2.4022242e-1f));
    p = vf32_fma(p, r, vf32_set(6.9314700e-1f));
    p = vf32_fma(p, r, vf32_set(1.0f));
    return p * (vf32)((vu32)shifted << 23);
}

/// Turns the scores s[0..n) of `row` at the first n keys of the tile into probabilities relative to
/// the row's new maximum; s is padded to whole vectors, which become 0.
TOR_INLINE void item_softmax(Item *item, int64_t row, int64_t n, float *s) {
    const float *bias = item_bias(item, row);
    float *top = item->scratch + item->at.top + row, *sum = item->scratch + item->at.sum + row;
    int64_t whole = n / VF32 * VF32;
    vf32 m0 = vf32_set(-INFINITY), m1 = m0;
    if (item->args->has_keep) item_keep(item, row, n, s);
    if (item->args->causal) {
        int64_t own = TOR_MAX(item_query(item, row) + 1 - item->tile_key, 0);
        if (bias)
            for (int64_t j = 0; j < TOR_MIN(own, n); j++) s[j] += bias[j];
        for (int64_t j = own; j < n; j++) s[j] = -INFINITY;
        bias = NULL;
    }
    if (bias) {
        for (int64_t j = 0; j < whole; j += VF32) {
            vf32 x = vf32_load(s + j) + vf32_load(bias + j);
            vf32_store(s + j, x);
            m0 = vf32_max(x, m0);
        }
    } else {
        int64_t j = 0;
        for (; j + 2 * VF32 <= whole; j += 2 * VF32) {
            m0 = vf32_max(vf32_load(s + j), m0);
            m1 = vf32_max(vf32_load(s + j + VF32), m1);
        }
        if (j < whole) m0 = vf32_max(vf32_load(s + j), m0);
    }
    if (whole < n) {
        vf32 x = vf32_load(s + whole);
        if (bias) x += vf32_load_n(bias + whole, (int)(n - whole));
        x = first_lanes(x, n - whole, -INFINITY);
        vf32_store(s + whole, x);
        m0 = vf32_max(x, m0);
    }
    vf32 old = vf32_set(*top), most = vf32_max(lanes_max(vf32_max(m0, m1)), old);
    vf32 base = vf32_select(most == vf32_set(-INFINITY), vf32_set(0), most);
    vf32 s0 = {0}, s1 = {0};
    int64_t j = 0;
    for (; j + VF32 < n; j += 2 * VF32) {
        vf32 p0 = exp_negative(vf32_load(s + j) - base),
             p1 = exp_negative(vf32_load(s + j + VF32) - base);
        vf32_store(s + j, p0);
        vf32_store(s + j + VF32, p1);
        s0 += p0;
        s1 += p1;
    }
    if (j < n) {
        vf32 p0 = exp_negative(vf32_load(s + j) - base);
        vf32_store(s + j, p0);
        s0 += p0;
    }
    vf32 total = lanes_sum(s0 + s1);
    float factor = 0;
    if (item->tile_key > item->key) {
        vf32 fade = exp_negative(old - base);
        total = vf32_fma(vf32_set(*sum), fade, total);
        factor = fade[0];
    }
    *top = most[0];
    *sum = total[0];
    item->scratch[item->at.scale + row] = factor;
}

/// Writes the item's rows: divided to `out`, or as they are to `partial`.
TOR_INLINE void item_end(const Item *item) {
    const TorAttentionArgs *args = item->args;
    int64_t e = args->e, stride = args->out_stride[3];
    for (int64_t i = 0; i < item->rows; i++) {
        const float *acc = item->scratch + item->at.acc + i * item->at.acc_stride;
        float top = item->scratch[item->at.top + i], sum = item->scratch[item->at.sum + i];
        if (item->partial) {
            float *out = item->partial + i * tor_attention_partial_row(args);
            memcpy(out, acc, (size_t)e * sizeof(float));
            out[e] = top;
            out[e + 1] = sum;
            continue;
        }
        float *out = args->out + item->batch * args->out_stride[0] +
                     item_head(item, i) * args->out_stride[1] +
                     item_query(item, i) * args->out_stride[2];
        const float dead = args->nan_rows && args->n > 0 ? NAN : 1.0f;
        float factor = sum == 0 ? dead : 1.0f / sum;
        if (stride != 1) {
            for (int64_t c = 0; c < e; c++) out[c * stride] = acc[c] * factor;
            continue;
        }
        int64_t c = 0;
        for (; c + VF32 <= e; c += VF32) vf32_store(out + c, vf32_load(acc + c) * factor);
        if (c < e) vf32_store_n(out + c, vf32_load(acc + c) * factor, (int)(e - c));
    }
}

#endif

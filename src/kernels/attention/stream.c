/// Attention for few rows (decoding): K and V are read once, in place, at the speed of memory.
///
/// Scores are dot products along d, VF32 keys at a time; the output is summed in registers over a
/// few keys, eight vectors wide. All rows of an item take their turn at those few keys, which then
/// come from L1, while memory streams on.
#include "kernels/attention/online.h"
#include "kernels/copy/transpose.h"

/// Lane i of the result is the sum of v[i]'s lanes.
TOR_INLINE vf32 transpose_sum(vf32 v[VF32]) {
    vf32 quad[VF32 / 4];
    for (int i = 0; i < VF32 / 4; i++) {
        vf32_transpose4(v + 4 * i);
        quad[i] = (v[4 * i] + v[4 * i + 1]) + (v[4 * i + 2] + v[4 * i + 3]);
    }
#if VF32 == 4
    return quad[0];
#elif VF32 == 8
    return __builtin_shufflevector(quad[0], quad[1], 0, 1, 2, 3, 8, 9, 10, 11) +
           __builtin_shufflevector(quad[0], quad[1], 4, 5, 6, 7, 12, 13, 14, 15);
#else
    vf32 half[2];
    for (int i = 0; i < 2; i++)
        half[i] = __builtin_shufflevector(quad[2 * i], quad[2 * i + 1], 0, 1, 2, 3, 8, 9, 10, 11,
                                          16, 17, 18, 19, 24, 25, 26, 27) +
                  __builtin_shufflevector(quad[2 * i], quad[2 * i + 1], 4, 5, 6, 7, 12, 13, 14, 15,
                                          20, 21, 22, 23, 28, 29, 30, 31);
    return __builtin_shufflevector(half[0], half[1], 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24,
                                   25, 26, 27) +
           __builtin_shufflevector(half[0], half[1], 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28,
                                   29, 30, 31);
#endif
}

enum { KEYS = 16 };  ///< of v, between two turns of a row

/// q . k[j] for VF32 keys; q is padded with zeros.
TOR_INLINE vf32 dots(const float *q, const float *const k[VF32], int64_t d) {
    vf32 sum[VF32] = {0};
    int64_t c = 0;
    for (; c + VF32 <= d; c += VF32) {
        vf32 a = vf32_load(q + c);
        for (int i = 0; i < VF32; i++) sum[i] = vf32_fma(a, vf32_load(k[i] + c), sum[i]);
    }
    if (c < d) {
        vf32 a = vf32_load(q + c);
        for (int i = 0; i < VF32; i++)
            sum[i] = vf32_fma(a, vf32_load_n(k[i] + c, (int)(d - c)), sum[i]);
    }
    return transpose_sum(sum);
}

/// Scores of all rows against the n keys at k, written in whole vectors.
static void scores(const Item *item, const float *k, int64_t k_stride, int64_t n) {
    const float *q = item->scratch + item->at.q;
    float *s = item->scratch + item->at.s;
    for (int64_t j = 0; j < n; j += VF32) {
        const float *key[VF32];
        for (int i = 0; i < VF32; i++) key[i] = k + TOR_MIN(j + i, n - 1) * k_stride;
        for (int64_t r = 0; r < item->rows; r++)
            vf32_store(s + r * item->at.s_stride + j,
                       dots(q + r * item->at.q_row, key, item->args->d) * item->args->scale);
    }
}

/// acc[0..width*VF32) = acc * factor + sum_j p[j] * v[j], the last vector read in part if tail > 0.
TOR_INLINE void weigh(const float *p, const float *v, int64_t v_stride, int64_t n, float factor,
                      float *acc, int width, int tail) {
    vf32 c[8];
    for (int i = 0; i < width; i++) c[i] = vf32_load(acc + i * VF32) * factor;
    for (int64_t j = 0; j < n; j++, v += v_stride) {
        vf32 a = vf32_set(p[j]);
        for (int i = 0; i < width; i++)
            c[i] =
                vf32_fma(a, tail ? vf32_load_n(v + i * VF32, tail) : vf32_load(v + i * VF32), c[i]);
    }
    for (int i = 0; i < width; i++) vf32_store(acc + i * VF32, c[i]);
}

static void weigh_row(const float *p, const float *v, int64_t v_stride, int64_t n, int64_t e,
                      float factor, float *acc) {
    int64_t c = 0;
    for (; c + 8 * VF32 <= e; c += 8 * VF32) weigh(p, v + c, v_stride, n, factor, acc + c, 8, 0);
    for (; c + 4 * VF32 <= e; c += 4 * VF32) weigh(p, v + c, v_stride, n, factor, acc + c, 4, 0);
    for (; c + VF32 <= e; c += VF32) weigh(p, v + c, v_stride, n, factor, acc + c, 1, 0);
    if (c < e) weigh(p, v + c, v_stride, n, factor, acc + c, 1, (int)(e - c));
}

/// Rows of `width` elements from any strides into rows of row_size.
static void pack_rows(const float *src, int64_t row_stride, int64_t stride, int64_t rows,
                      int64_t width, float *dst, int64_t row_size) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < width; c++)
            dst[i * row_size + c] = src[i * row_stride + c * stride];
}

/// The next tile from `*key` on: keys that some row sees, without long stretches that none does, as
/// a cache has behind what was written. @return false if no key is left
static bool next_tile(Item *item, int64_t *key) {
    int64_t end = item->key_end, step = TOR_MIN(HIDDEN_KEYS, item->args->key_tile);
    while (*key < end && item_hides(item, *key, TOR_MIN(*key + step, end))) *key += step;
    if (*key >= end) return false;
    int64_t most = TOR_MIN(*key + item->args->key_tile, end), last = TOR_MIN(*key + step, most);
    while (last < most && !item_hides(item, last, TOR_MIN(last + step, most)))
        last = TOR_MIN(last + step, most);
    while (item_hides(item, last - 1, last)) last--;
    while (item_hides(item, *key, *key + 1)) ++*key;
    item_tile(item, *key);
    item->tile_keys = last - *key;
    return true;
}

void TOR_KERNEL_IMPL(tor_attention_f32, stream)(const TorAttentionArgs *args, int64_t begin,
                                                int64_t end, void *scratch);
void TOR_KERNEL_IMPL(tor_attention_f32, stream)(const TorAttentionArgs *args, int64_t begin,
                                                int64_t end, void *scratch) {
    for (int64_t index = begin; index < end; index++) {
        Item item = item_begin(args, index, scratch);
        float *q = item.scratch + item.at.q, *s = item.scratch + item.at.s,
              *acc = item.scratch + item.at.acc;
        memset(q, 0, (size_t)(item.rows * item.at.q_row) * sizeof(float));
        for (int64_t i = 0; i < item.rows; i++)
            pack_rows(item_q(&item, i), 0, args->q_stride[3], 1, args->d, q + i * item.at.q_row, 0);
        for (int64_t key = item.key; next_tile(&item, &key); key += item.tile_keys) {
            int64_t n = item.tile_keys;
            const float *k = item.k + key * args->k_stride[2],
                        *v = item.v + key * args->v_stride[2];
            int64_t k_stride = args->k_stride[2], v_stride = args->v_stride[2];
            if (args->k_stride[3] != 1) {
                pack_rows(k, k_stride, args->k_stride[3], n, args->d, item.scratch + item.at.k,
                          item.at.k_row);
                k = item.scratch + item.at.k, k_stride = item.at.k_row;
            }
            if (args->v_stride[3] != 1) {
                pack_rows(v, v_stride, args->v_stride[3], n, args->e, item.scratch + item.at.v,
                          item.at.v_row);
                v = item.scratch + item.at.v, v_stride = item.at.v_row;
            }
            scores(&item, k, k_stride, n);
            for (int64_t i = 0; i < item.rows; i++)
                item_softmax(&item, i, n, s + i * item.at.s_stride);
            for (int64_t j = 0; j < n; j += KEYS)
                for (int64_t i = 0; i < item.rows; i++)
                    weigh_row(s + i * item.at.s_stride + j, v + j * v_stride, v_stride,
                              TOR_MIN(KEYS, n - j), args->e,
                              j ? 1.0f : item.scratch[item.at.scale + i],
                              acc + i * item.at.acc_stride);
        }
        item_end(&item);
    }
}

/// Attention for many rows: K in transposed panels, both products by register tiles of ROWS x COLS.
///
/// An item packs a tile of keys once and then works on PASS * ROWS rows at a time, whose scores
/// stay in L1. Rows past the item's last repeat it, columns past the last key are cut by the
/// softmax.
#include "base/alloc.h"
#include "kernels/attention/online.h"
#include "kernels/copy/transpose.h"

#define ROWS (TOR_NREGS == 32 ? 12 : 6)
#define COLS (2 * VF32)

/// s[r][0..COLS) = scale * q[r] . panel, for ROWS rows.
TOR_INLINE void scores(const float *const q[ROWS], const float *panel, int64_t d, float scale,
                       float *s, int64_t s_stride) {
    vf32 c[ROWS][2] = {0};
#pragma GCC unroll 8
    for (int64_t k = 0; k < d; k++, panel += COLS) {
        vf32 b0 = vf32_load(panel), b1 = vf32_load(panel + VF32);
        for (int r = 0; r < ROWS; r++) {
            vf32 a = vf32_set(q[r][k]);
            c[r][0] = vf32_fma(a, b0, c[r][0]);
            c[r][1] = vf32_fma(a, b1, c[r][1]);
        }
    }
    for (int r = 0; r < ROWS; r++) {
        vf32_store(s + r * s_stride, c[r][0] * scale);
        vf32_store(s + r * s_stride + VF32, c[r][1] * scale);
    }
}

/// acc[r][0..COLS) = acc[r][..] * factor[r] + p[r] . panel over n keys.
TOR_INLINE void weigh(const float *p, int64_t p_stride, const float *panel, int64_t n,
                      const float *factor, float *acc, int64_t acc_stride) {
    vf32 c[ROWS][2];
    for (int r = 0; r < ROWS; r++) {
        c[r][0] = vf32_load(acc + r * acc_stride) * factor[r];
        c[r][1] = vf32_load(acc + r * acc_stride + VF32) * factor[r];
    }
#pragma GCC unroll 8
    for (int64_t j = 0; j < n; j++, panel += COLS, p++) {
        vf32 b0 = vf32_load(panel), b1 = vf32_load(panel + VF32);
        for (int r = 0; r < ROWS; r++) {
            vf32 a = vf32_set(p[r * p_stride]);
            c[r][0] = vf32_fma(a, b0, c[r][0]);
            c[r][1] = vf32_fma(a, b1, c[r][1]);
        }
    }
    for (int r = 0; r < ROWS; r++) {
        vf32_store(acc + r * acc_stride, c[r][0]);
        vf32_store(acc + r * acc_stride + VF32, c[r][1]);
    }
}

/// The tile's keys into panels [d][COLS]; the last key fills up the last panel.
static void pack_keys(const Item *item, float *panel) {
    const TorAttentionArgs *args = item->args;
    int64_t n = item->tile_keys, d = args->d, row_stride = args->k_stride[2],
            stride = args->k_stride[3];
    const float *k = item->k + item->tile_key * row_stride;
    for (int64_t j = 0; j < n; j += COLS, panel += d * COLS) {
        for (int half = 0; half < COLS; half += VF32) {
            const float *row[VF32];
            for (int i = 0; i < VF32; i++) row[i] = k + TOR_MIN(j + half + i, n - 1) * row_stride;
            int64_t c = 0;
            for (; stride == 1 && c + 4 <= d; c += 4) {
                vf32 column[4];
                vf32_load_columns4(column, row, c);
                for (int i = 0; i < 4; i++) vf32_store(panel + (c + i) * COLS + half, column[i]);
            }
            for (; c < d; c++)
                for (int i = 0; i < VF32; i++) panel[c * COLS + half + i] = row[i][c * stride];
        }
    }
}

/// The tile's values into panels [key_tile][COLS], the last one filled up with zeros.
static void pack_values(const Item *item, float *panels) {
    const TorAttentionArgs *args = item->args;
    int64_t e = args->e, stride = args->v_stride[3], panel_size = args->key_tile * COLS;
    for (int64_t c = 0; c < e; c += COLS, panels += panel_size)
        for (int64_t j = 0; j < item->tile_keys; j++) {
            const float *row = item->v + (item->tile_key + j) * args->v_stride[2] + c * stride;
            float *dst = panels + j * COLS;
            if (stride == 1 && c + COLS <= e) {
                vf32_store(dst, vf32_load(row));
                vf32_store(dst + VF32, vf32_load(row + VF32));
            } else
                for (int64_t i = 0; i < COLS; i++) dst[i] = c + i < e ? row[i * stride] : 0.0f;
        }
}

/// Where each row of q lies: in place, or packed if its elements are not next to each other.
static const float *query_row(const Item *item, int64_t row) {
    return item->args->q_stride[3] == 1 ? item_q(item, row)
                                        : item->scratch + item->at.q + row * item->at.q_row;
}

static void pack_queries(const Item *item) {
    const TorAttentionArgs *args = item->args;
    for (int64_t i = 0; i < item->rows; i++) {
        const float *q = item_q(item, i);
        for (int64_t c = 0; c < args->d; c++)
            item->scratch[item->at.q + i * item->at.q_row + c] = q[c * args->q_stride[3]];
    }
}

/// Rows that the next tile of keys will read, asked for while this one is at work: heads lie side
/// by side in memory, so their rows are too far apart for the hardware's own prefetching.
typedef struct {
    struct {
        const float *row;
        int64_t stride, rows, width;
    } part[3];
    int at;            ///< the part that is being fetched
    int64_t per_tile;  ///< rows for every register tile of scores
} Ahead;

static void ahead_add(Ahead *ahead, int part, const float *row, int64_t stride, int64_t rows,
                      int64_t width) {
    ahead->part[part].row = row;
    ahead->part[part].stride = stride;
    ahead->part[part].rows = rows;
    ahead->part[part].width = width;
}

/// What follows the tile of `item` at work, whose item is `index` of those up to `end`.
static Ahead ahead_find(const Item *item, int64_t index, int64_t end) {
    const TorAttentionArgs *args = item->args;
    Ahead ahead = {0};
    int64_t key = item->tile_key + args->key_tile, keys = item->key_end - key;
    const float *k = item->k, *v = item->v;
    if (keys <= 0 && index + 1 < end) {
        Item next = item_find(args, index + 1, item->scratch);
        k = next.k, v = next.v, key = next.key, keys = next.key_end - key;
        if (k == item->k && key == item->tile_key) keys = 0;
        if (args->row_heads == 1)
            ahead_add(&ahead, 2, item_q(&next, 0), args->q_stride[2], next.rows, args->d);
    }
    keys = TOR_MAX(TOR_MIN(keys, args->key_tile), 0);
    ahead_add(&ahead, 0, k + key * args->k_stride[2], args->k_stride[2], keys, args->d);
    ahead_add(&ahead, 1, v + key * args->v_stride[2], args->v_stride[2], keys, args->e);
    int64_t tiles = tor_ceil_div(item->rows, ROWS) * tor_ceil_div(item->tile_keys, COLS);
    ahead.per_tile = tor_ceil_div(2 * keys + ahead.part[2].rows, TOR_MAX(tiles - 3, 1));
    return ahead;
}

TOR_INLINE void ahead_fetch(Ahead *ahead) {
    if (ahead->at == 3) return;
    const float *row = ahead->part[ahead->at].row;
    int64_t stride = ahead->part[ahead->at].stride, width = ahead->part[ahead->at].width,
            rows = TOR_MIN(ahead->part[ahead->at].rows, ahead->per_tile);
    for (int64_t i = 0; i < rows; i++, row += stride)
        for (int64_t c = 0; c < width; c += TOR_CACHE_LINE / (int)sizeof(float))
            __builtin_prefetch(row + c, 0, 2);
    ahead->part[ahead->at].row = row;
    if ((ahead->part[ahead->at].rows -= rows) == 0) ahead->at++;
}

/// Rows [row, row + PASS * ROWS) over the packed tile.
static void pass(Item *item, int64_t row, Ahead *ahead) {
    const TorAttentionArgs *args = item->args;
    int64_t n = item->tile_keys;
    float *s = item->scratch + item->at.s, *acc = item->scratch + item->at.acc,
          *k = item->scratch + item->at.k;
    float *v = item->scratch + item->at.v, *factor = item->scratch + item->at.scale;
    int64_t s_stride = item->at.s_stride, acc_stride = item->at.acc_stride;
    int tiles = (int)TOR_MIN(tor_ceil_div(item->rows - row, ROWS), TOR_ATTENTION_PASS);
    const float *q[TOR_ATTENTION_PASS][ROWS];
    int64_t seen[TOR_ATTENTION_PASS];  // keys that a tile's last row may see
    for (int t = 0; t < tiles; t++) {
        for (int r = 0; r < ROWS; r++)
            q[t][r] = query_row(item, TOR_MIN(row + t * ROWS + r, item->rows - 1));
        int64_t last = TOR_MIN(row + t * ROWS + ROWS, item->rows) - 1;
        seen[t] = args->causal ? TOR_MIN(item_query(item, last) + 1 - item->tile_key, n) : n;
    }
    for (int64_t j = 0; j < n; j += COLS)
        for (int t = 0; t < tiles; t++)
            if (j < seen[t]) {
                ahead_fetch(ahead);
                scores(q[t], k + j * args->d, args->d, args->scale, s + t * ROWS * s_stride + j,
                       s_stride);
            }
    for (int t = 0; t < tiles; t++) {
        if (seen[t] <= 0) continue;
        for (int r = 0; r < ROWS; r++) {
            int64_t i = row + t * ROWS + r;
            if (i < item->rows)
                item_softmax(item, i, seen[t], s + (t * ROWS + r) * s_stride);
            else
                factor[i] = 0;
        }
    }
    for (int64_t c = 0; c < args->e; c += COLS)
        for (int t = 0; t < tiles; t++) {
            int64_t i = row + t * ROWS;
            if (seen[t] > 0)
                weigh(s + t * ROWS * s_stride, s_stride, v + c * args->key_tile, seen[t],
                      factor + i, acc + i * acc_stride + c, acc_stride);
        }
}

void TOR_KERNEL_IMPL(tor_attention_f32, flash)(const TorAttentionArgs *args, int64_t begin,
                                               int64_t end, void *scratch);
void TOR_KERNEL_IMPL(tor_attention_f32, flash)(const TorAttentionArgs *args, int64_t begin,
                                               int64_t end, void *scratch) {
    for (int64_t index = begin; index < end; index++) {
        Item item = item_begin(args, index, scratch);
        if (args->q_stride[3] != 1) pack_queries(&item);
        for (int64_t key = item.key; key < item.key_end; key += args->key_tile) {
            item_tile(&item, key);
            if (item_hides(&item, key, key + item.tile_keys)) continue;
            pack_keys(&item, item.scratch + item.at.k);
            pack_values(&item, item.scratch + item.at.v);
            Ahead ahead = ahead_find(&item, index, end);
            for (int64_t row = 0; row < item.rows; row += TOR_ATTENTION_PASS * ROWS)
                pass(&item, row, &ahead);
        }
        item_end(&item);
    }
}

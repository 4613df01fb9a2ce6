// What may be chosen for attention: the kernel row, rows an item, keys a tile, and parts of the
// keys that are worked on apart.
#include <string.h>

#include "base/cpu.h"
#include "base/hash.h"
#include "tune/families.h"
#include "tune/params.h"

enum { ROWS, KEYS, SPLITS };  // knobs

static const char *row_name(int number) {
    const TorAttentionKernel *kernel = tor_attention_kernel(number);
    return kernel ? tor_attention_kernel_name(kernel) : NULL;
}

static int64_t float_bits(float x) {
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static uint64_t hash(const void *problem) {
    const TorAttentionArgs *a = problem;
    int64_t flags = (int64_t)a->mask_kind | a->causal << 2 | a->nan_rows << 3;
    int64_t numbers[] = {a->b, a->h, a->g, a->m, a->n, a->d, a->e, flags, float_bits(a->scale)};
    uint64_t h = tor_hash_list(0, numbers, (int)TOR_COUNT_OF(numbers));
    h = tor_hash_list(h, a->q_stride, 4);
    h = tor_hash_list(h, a->k_stride, 4);
    h = tor_hash_list(h, a->v_stride, 4);
    if (a->mask_kind != TOR_ATTENTION_NO_MASK) h = tor_hash_list(h, a->mask_stride, 4);
    if (a->has_keep) {
        int64_t fill = float_bits(a->fill);
        h = tor_hash_list(tor_hash_list(h, a->keep_stride, 4), &fill, 1);
    }
    return tor_hash_list(h, a->out_stride, 4);
}

static void put(const void *problem, TorText *t) {
    const TorAttentionArgs *a = problem;
    tor_params_put(t, "b", a->b);
    tor_params_put_list(t, "h", (int64_t[]){a->h, a->g}, 2);
    tor_params_put(t, "m", a->m);
    tor_params_put(t, "n", a->n);
    tor_params_put_list(t, "d", (int64_t[]){a->d, a->e}, 2);
    tor_params_put_list(t, "q", a->q_stride, 4);
    tor_params_put_list(t, "k", a->k_stride, 4);
    tor_params_put_list(t, "v", a->v_stride, 4);
    tor_params_put_list(t, "out", a->out_stride, 4);
    if (a->mask_kind != TOR_ATTENTION_NO_MASK)
        tor_params_put_list(t, a->mask_kind == TOR_ATTENTION_MASK_BOOL ? "mask_bool" : "mask_f32",
                            a->mask_stride, 4);
    if (a->has_keep) {
        tor_params_put_list(t, "keep", a->keep_stride, 4);
        tor_params_put(t, "fill_bits", float_bits(a->fill));
    }
    tor_params_put(t, "causal", a->causal);
    tor_params_put(t, "nan_rows", a->nan_rows);
    tor_params_put(t, "scale_bits", float_bits(a->scale));
}

/// Elements of q, k, v, mask, out and keep.
static bool extents(const TorAttentionArgs *a, int64_t out[6]) {
    int64_t q[] = {a->b, a->h, a->m, a->d}, k[] = {a->b, a->g, a->n, a->d},
            v[] = {a->b, a->g, a->n, a->e}, mask[] = {a->b, a->h, a->m, a->n},
            to[] = {a->b, a->h, a->m, a->e};
    out[3] = out[5] = 0;
    return tor_params_extent(q, a->q_stride, 4, &out[0]) &&
           tor_params_extent(k, a->k_stride, 4, &out[1]) &&
           tor_params_extent(v, a->v_stride, 4, &out[2]) &&
           (a->mask_kind == TOR_ATTENTION_NO_MASK ||
            tor_params_extent(mask, a->mask_stride, 4, &out[3])) &&
           (!a->has_keep || tor_params_extent(mask, a->keep_stride, 4, &out[5])) &&
           tor_params_extent(to, a->out_stride, 4, &out[4]);
}

static bool is_sane(const TorAttentionArgs *a) {
    int64_t count[6];
    double work = (double)TOR_MAX(a->b, 1) * (double)TOR_MAX(a->h, 1) * (double)TOR_MAX(a->m, 1) *
                  (double)TOR_MAX(a->n, 1) * (double)(a->d + a->e + 1);
    return work < 1e14 && a->d + a->e < 1 << 16 && a->g > 0 && a->h % a->g == 0 &&
           extents(a, count);
}

static void get_pair(TorParams *p, const char *name, int64_t *first, int64_t *second) {
    int64_t pair[2] = {0};
    tor_params_get_all(p, name, pair, 2);
    *first = pair[0], *second = pair[1];
}

static float get_float(TorParams *p, const char *name) {
    int32_t bits = (int32_t)tor_params_get(p, name, INT32_MIN, INT32_MAX);
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static ToroidStatus parse(const char *params, TorArena *arena, void **problem) {
    TorAttentionArgs *a = tor_arena_alloc(arena, sizeof *a);
    if (!a) return tor_no_memory();
    TorParams p = tor_params_read(params);
    a->b = tor_params_get(&p, "b", 0, TOR_PARAMS_MOST);
    get_pair(&p, "h", &a->h, &a->g);
    a->m = tor_params_get(&p, "m", 0, TOR_PARAMS_MOST);
    a->n = tor_params_get(&p, "n", 0, TOR_PARAMS_MOST);
    get_pair(&p, "d", &a->d, &a->e);
    tor_params_get_all(&p, "q", a->q_stride, 4);
    tor_params_get_all(&p, "k", a->k_stride, 4);
    tor_params_get_all(&p, "v", a->v_stride, 4);
    tor_params_get_all(&p, "out", a->out_stride, 4);
    if (strncmp(p.at, "mask_bool=", 10) == 0) {
        a->mask_kind = TOR_ATTENTION_MASK_BOOL;
        tor_params_get_all(&p, "mask_bool", a->mask_stride, 4);
    } else if (strncmp(p.at, "mask_f32=", 9) == 0) {
        a->mask_kind = TOR_ATTENTION_MASK_F32;
        tor_params_get_all(&p, "mask_f32", a->mask_stride, 4);
    }
    a->has_keep = strncmp(p.at, "keep=", 5) == 0;
    if (a->has_keep) {
        tor_params_get_all(&p, "keep", a->keep_stride, 4);
        a->fill = get_float(&p, "fill_bits");
    }
    a->causal = tor_params_get(&p, "causal", 0, 1);
    a->nan_rows = tor_params_get(&p, "nan_rows", 0, 1);
    a->scale = get_float(&p, "scale_bits");
    TOR_TRY(tor_params_end(&p));
    if (!is_sane(a)) return tor_invalid("params %s: no such attention could have run", params);
    *problem = a;
    return TOROID_OK;
}

static void *copy(const void *problem, TorArena *arena) {
    TorAttentionArgs *to = tor_arena_alloc(arena, sizeof *to);
    return to ? memcpy(to, problem, sizeof *to) : NULL;
}

// ---------------------------------------------------------------- choices

static void candidates(const void *problem, int threads, TorTuneList *list) {
    const TorAttentionArgs *a = problem;
    if (!a->items) return;
    // Another row: a stream row for a flash row, and the other way round.
    for (int i = 0; tor_attention_kernel(i); i++) {
        TorAttentionArgs other = *a;
        const TorAttentionKernel *kernel = tor_attention_kernel(i);
        if (kernel != a->kernel && tor_attention_bind_kernel(&other, kernel))
            tor_tune_list_add(list, &(TorTuneChoice){.row = i + 1});
    }
    static const int64_t rows[] = {16, 32, 48, 64, 96, 128, 192, 256},
                         keys[] = {32, 64, 96, 128, 192, 256, 384, 512};
    int64_t all_rows = a->row_heads * a->m;
    for (size_t i = 0; i < TOR_COUNT_OF(rows); i++)
        if (rows[i] != a->row_block && (rows[i] < all_rows || a->row_block < all_rows))
            tor_tune_list_knob(list, ROWS, rows[i]);
    for (size_t i = 0; i < TOR_COUNT_OF(keys); i++)
        if (keys[i] != a->key_tile && (keys[i] < a->n || a->key_tile < a->n))
            tor_tune_list_knob(list, KEYS, keys[i]);
    for (size_t i = 2; i < TOR_COUNT_OF(rows); i += 2)
        for (size_t j = 1; j < TOR_COUNT_OF(keys); j += 2) {
            TorTuneChoice both = {0};
            both.knob[ROWS] = rows[i], both.knob[KEYS] = keys[j];
            if (rows[i] < all_rows && keys[j] < a->n) tor_tune_list_add(list, &both);
        }
    int64_t items = a->items / a->kv_splits;
    for (int64_t splits = 1; splits <= 32; splits *= 2)
        if (splits != a->kv_splits && items * splits <= 64 * threads && a->n / splits >= 128)
            tor_tune_list_knob(list, SPLITS, splits);
}

static void set(void *problem, const TorTuneChoice *choice) {
    TorAttentionArgs *a = problem;
    a->wish.kernel = choice->row > 0 ? tor_attention_kernel((int)choice->row - 1) : NULL;
    a->wish.row_block = choice->knob[ROWS];
    a->wish.key_tile = choice->knob[KEYS];
    a->wish.kv_splits = choice->knob[SPLITS];
}

static bool operands(void *problem, TorTuneOperands *list) {
    TorAttentionArgs *a = problem;
    int64_t count[6];
    if (!extents(a, count)) return false;
    // Many more keys than queries are a cache, which no step before has just written.
    bool cache = a->n >= 8 * a->m;
    tor_tune_operand(list, &a->q, (size_t)count[0] * 4, TOR_float32, false, false);
    tor_tune_operand(list, &a->k, (size_t)count[1] * 4, TOR_float32, false, cache);
    tor_tune_operand(list, &a->v, (size_t)count[2] * 4, TOR_float32, false, cache);
    if (a->mask_kind == TOR_ATTENTION_MASK_BOOL)
        tor_tune_operand(list, &a->mask, (size_t)count[3], TOR_bool, false, false);
    else if (a->mask_kind == TOR_ATTENTION_MASK_F32)
        tor_tune_operand(list, &a->mask, (size_t)count[3] * 4, TOR_float32, false, false);
    if (a->has_keep) tor_tune_operand(list, &a->keep, (size_t)count[5], TOR_bool, false, false);
    tor_tune_operand(list, &a->out, (size_t)count[4] * 4, TOR_float32, true, false);
    return true;
}

static void bind(void *problem, TorLaunch *launch) {
    TorAttentionArgs *a = problem;
    tor_attention_bind(a);
    launch->scratch_bytes = a->scratch_bytes;
    launch->shared_bytes = a->partial_bytes;
    launch->shared = &a->partial;
    tor_launch_region(launch, tor_attention_run, a, a->items);
    if (a->combine_items) tor_launch_region(launch, tor_attention_combine, a, a->combine_items);
}

const TorTunable tor_tunable_attention = {
    .op = "attention_f32",
    .knobs = {"rows", "keys", "splits"},
    .row = row_name,
    .hash = hash,
    .put = put,
    .parse = parse,
    .copy = copy,
    .candidates = candidates,
    .operands = operands,
    .set = set,
    .bind = bind,
};

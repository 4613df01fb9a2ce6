/// Attention's kernels against the oracle.
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "harness.h"
#include "kernels/attention/contract.h"

/// Strides for [size...] with the axes in a random order and random gaps; last axis 1 unless
/// `wild`.
static int64_t lay_out(const int64_t size[4], int64_t stride[4], bool wild) {
    int order[4] = {0, 1, 2, 3};
    int last = wild ? 4 : 3;
    for (int i = last - 1; i > 0; i--) {
        int j = (int)tor_check_range(0, i), t = order[i];
        order[i] = order[j], order[j] = t;
    }
    int64_t at = 1;
    for (int i = 3; i >= 0; i--) {
        stride[order[i]] = at;
        at = at * (size[order[i]] + (i == 3 && !wild ? tor_check_range(0, 3) : 0)) +
             (wild ? tor_check_range(0, 2) : 0);
    }
    return at;
}

typedef struct {
    TorAttentionArgs args;
    int64_t out_count;
} Problem;

static int64_t extent(const int64_t size[4], const int64_t stride[4]) {
    int64_t last = 0;
    for (int i = 0; i < 4; i++) {
        if (size[i] == 0) return 0;
        last += (size[i] - 1) * stride[i];
    }
    return last + 1;
}

static float *operand(const int64_t size[4], int64_t stride[4], bool wild, TorFill fill) {
    lay_out(size, stride, wild);
    int64_t count = extent(size, stride);
    float *data = tor_check_buffer((size_t)count * sizeof(float), sizeof(float));
    tor_check_fill(TOR_float32, data, count, fill);
    return data;
}

static Problem make(int64_t b, int64_t h, int64_t g, int64_t m, int64_t n, int64_t d, int64_t e,
                    bool wild, TorFill fill) {
    Problem p = {
        .args = {
            .b = b, .h = h, .g = g, .m = m, .n = n, .d = d, .e = e, .scale = 1 / sqrtf((float)d)}};
    TorAttentionArgs *a = &p.args;
    a->q = operand((int64_t[]){b, h, m, d}, a->q_stride, wild, fill);
    a->k = operand((int64_t[]){b, g, n, d}, a->k_stride, wild, fill);
    a->v = operand((int64_t[]){b, g, n, e}, a->v_stride, wild, fill);
    int64_t size[4] = {b, h, m, e};
    lay_out(size, a->out_stride, wild);
    p.out_count = extent(size, a->out_stride);
    return p;
}

/// Strides of something as large as the scores; `broadcast` bits name the axes of stride 0.
/// @return its elements
static int64_t lay_out_mask(const TorAttentionArgs *a, int64_t stride[4], int broadcast,
                            bool wild) {
    int64_t size[4] = {a->b, a->h, a->m, a->n};
    for (int i = 0; i < 4; i++)
        if (broadcast >> i & 1) size[i] = 1;
    lay_out(size, stride, wild);
    for (int i = 0; i < 4; i++)
        if (broadcast >> i & 1) stride[i] = 0;
    return extent(size, stride);
}

static uint8_t *bools(int64_t count, bool keep_all) {
    uint8_t *mask = tor_check_buffer((size_t)count, 1);
    for (int64_t i = 0; i < count; i++) mask[i] = keep_all || tor_check_range(0, 3);
    return mask;
}

/// Where a mask hides no key: else a whole output may be 0, and is not to be trusted.
static bool keeps_all(const TorAttentionArgs *a, int broadcast) {
    return broadcast >> 3 || a->n < 8;
}

/// A keep that lets most keys through.
static void add_keep(Problem *p, float fill, int broadcast, bool wild) {
    TorAttentionArgs *a = &p->args;
    int64_t count = lay_out_mask(a, a->keep_stride, broadcast, wild);
    a->has_keep = true;
    a->fill = fill;
    a->keep = bools(count, fill == -INFINITY && keeps_all(a, broadcast));
}

/// A mask that keeps most keys.
static void add_mask(Problem *p, TorAttentionMask kind, int broadcast, bool wild) {
    TorAttentionArgs *a = &p->args;
    int64_t count = lay_out_mask(a, a->mask_stride, broadcast, wild);
    a->mask_kind = kind;
    bool keep_all = keeps_all(a, broadcast);
    if (kind == TOR_ATTENTION_MASK_BOOL) {
        a->mask = bools(count, keep_all);
    } else {
        float *mask = tor_check_buffer((size_t)count * sizeof(float), sizeof(float));
        for (int64_t i = 0; i < count; i++)
            mask[i] = keep_all || tor_check_range(0, 3) ? (float)tor_check_uniform() : -INFINITY;
        a->mask = mask;
    }
}

static void run_on(TorAttentionArgs *a, float *out, int threads) {
    TorTeam team;
    uint8_t *scratch = tor_check_buffer((size_t)threads * a->scratch_bytes, TOR_CACHE_LINE);
    memset(scratch, 0xFF,
           (size_t)threads * a->scratch_bytes);  // NaN: nothing may be read before it is written
    a->out = out;
    a->partial = a->partial_bytes ? tor_check_buffer(a->partial_bytes, TOR_CACHE_LINE) : NULL;
    tor_team_begin(&team, threads, scratch, a->scratch_bytes);
    tor_team_run(&team, tor_attention_run, a, a->items);
    if (a->combine_items) tor_team_run(&team, tor_attention_combine, a, a->combine_items);
    tor_team_end(&team);
}

static float *output(const Problem *p) {
    size_t bytes = (size_t)p->out_count * sizeof(float);
    float *out = tor_check_buffer(bytes, sizeof(float));
    memset(out, TOR_CHECK_GUARD, bytes);
    return out;
}

/// Every row of kernels.inc that may run, on one thread and on three, against the oracle; and with
/// its rows cut in any other way, which no bit of an answer may depend on.
static void check(Problem *p, double tolerance) {
    TorAttentionArgs *a = &p->args;
    const TorAttentionKernel *kernel;
    float *want = output(p);
    int ran = 0;
    a->out = want;
    tor_attention_ref(a, tor_check_buffer((size_t)a->n * sizeof(double), sizeof(double)));
    for (int i = 0; (kernel = tor_attention_kernel(i)); i++) {
        if (!tor_attention_bind_kernel(a, kernel)) continue;
        ran++;
        float *one = output(p), *three = output(p);
        run_on(a, one, 1);
        run_on(a, three, 3);
        if (tor_check_compare(TOR_float32, one, want, p->out_count, tolerance, tolerance) > 1)
            tor_check_fail("by %s", tor_attention_kernel_name(kernel));
        tor_check_same(three, one, (size_t)p->out_count * sizeof(float));
        float *cut = output(p);
        a->wish.row_block = tor_check_range(1, 300);
        tor_attention_bind_kernel(a, kernel);
        run_on(a, cut, 1);
        tor_check_same(cut, one, (size_t)p->out_count * sizeof(float));
        a->wish.row_block = 0;
    }
    TOR_CHECK(ran > 0);
    tor_attention_bind(a);
    TOR_CHECK(a->kernel != NULL);
}

static void sizes(void) {
    static const float fills[] = {-INFINITY, -FLT_MAX, -5, 0, 3};
    static const int64_t m[] = {1, 2, 5, 6, 7, 24, 25, 31, 33, 64, 128, 129},
                         n[] = {1, 3, 8, 15, 16, 17, 63, 64, 65, 128, 129, 257, 513};
    static const int64_t width[] = {1, 3, 4, 8, 15, 16, 17, 32, 40, 64, 80, 96, 128};
    for (size_t i = 0; i < TOR_COUNT_OF(m); i++)
        for (size_t j = 0; j < TOR_COUNT_OF(n); j++) {
            int64_t d = width[tor_check_range(0, TOR_COUNT_OF(width) - 1)],
                    e = width[tor_check_range(0, TOR_COUNT_OF(width) - 1)];
            bool wild = tor_check_range(0, 2) == 0, causal = tor_check_range(0, 3) == 0;
            int64_t b = tor_check_range(1, 2), g = tor_check_range(1, 2),
                    h = g * tor_check_range(1, 3);
            TorAttentionMask mask = (TorAttentionMask)tor_check_range(0, 2);
            int broadcast = (int)tor_check_range(0, 15), keep = (int)tor_check_range(0, 31);
            float fill = fills[tor_check_range(0, 4)];
            tor_check_case(
                "b=%d h=%d g=%d m=%d n=%d d=%d e=%d wild=%d causal=%d mask=%d "
                "broadcast=%d keep=%d fill=%g",
                (int)b, (int)h, (int)g, (int)m[i], (int)n[j], (int)d, (int)e, wild, causal,
                (int)mask, broadcast, keep, (double)fill);
            Problem p = make(b, h, g, m[i], n[j], d, e, wild, TOR_FILL_UNIFORM);
            p.args.causal = causal;
            p.args.nan_rows = tor_check_coin();
            if (mask) add_mask(&p, mask, broadcast, wild);
            if (keep < 16) add_keep(&p, fill, keep, wild);
            check(&p, 4e-6);
            tor_check_done();
        }
}

/// Few rows, many keys: the keys are split over items and combined.
static void decode(void) {
    static const int64_t n[] = {1000, 1024, 1535, 2047, 4100};
    for (size_t j = 0; j < TOR_COUNT_OF(n); j++)
        for (int mask = 0; mask < 3; mask++) {
            int64_t g = tor_check_range(1, 2), h = g * tor_check_range(1, 4),
                    m = tor_check_range(1, 2), e = tor_check_range(30, 70);
            tor_check_case("h=%d g=%d m=%d n=%d e=%d mask=%d", (int)h, (int)g, (int)m, (int)n[j],
                           (int)e, mask);
            Problem p = make(1, h, g, m, n[j], 64, e, tor_check_coin(), TOR_FILL_UNIFORM);
            if (mask) add_mask(&p, (TorAttentionMask)mask, (int)tor_check_range(0, 15), false);
            if (tor_check_coin())
                add_keep(&p, tor_check_coin() ? -INFINITY : -FLT_MAX, (int)tor_check_range(0, 15),
                         tor_check_coin());
            check(&p, 4e-6);
            tor_check_done();
        }
}

/// Even weights over 2^k keys and small integers as values: every sum is exact.
static void exact(void) {
    for (int64_t n = 1; n <= 2048; n *= 2) {
        tor_check_case("n=%d", (int)n);
        Problem p = make(1, 2, 1, tor_check_coin() ? 1 : 40, n, 16, 24, false, TOR_FILL_EXACT);
        p.args.scale = 0;
        check(&p, 0);
        tor_check_done();
    }
}

/// Rows without keys are 0, or NaN where nan_rows asks for it, with either kind of mask and across
/// key tiles; 0 for n = 0 in any case.
static void masked_rows(void) {
    for (int kind = 1; kind < 3; kind++)
        for (int turn = 0; turn < 4; turn++) {
            bool few = turn & 1, nan_rows = turn & 2;
            int64_t m = few ? 4 : 40, n = 300;
            tor_check_case("kind=%d m=%d nan=%d", kind, (int)m, nan_rows);
            Problem p = make(1, 1, 1, m, n, 8, 8, false, TOR_FILL_UNIFORM);
            p.args.nan_rows = nan_rows;
            add_mask(&p, (TorAttentionMask)kind, 3, false);
            for (int64_t i = 0; i < m;
                 i++)  // row 0: no key; row 1: the last tile only; row 2: the first only
                for (int64_t j = 0; j < n; j++) {
                    bool keep = i == 0 ? false : i == 1 ? j >= 290 : i == 2 ? j < 10 : true;
                    int64_t at = i * p.args.mask_stride[2] + j * p.args.mask_stride[3];
                    if (kind == TOR_ATTENTION_MASK_BOOL)
                        ((uint8_t *)(uintptr_t)p.args.mask)[at] = keep;
                    else
                        ((float *)(uintptr_t)p.args.mask)[at] = keep ? 0 : -INFINITY;
                }
            check(&p, 4e-6);
            tor_attention_bind(&p.args);
            float *out = output(&p);
            run_on(&p.args, out, 1);
            for (int64_t c = 0; c < 8; c++) {
                float got = out[c * p.args.out_stride[3]];
                TOR_CHECK(nan_rows ? isnan(got) : got == 0);
            }
            tor_check_done();
        }
    for (int64_t m = 1; m < 60; m += 50) {
        tor_check_case("n=0 m=%d", (int)m);
        Problem p = make(2, 2, 1, m, 0, 8, 8, false, TOR_FILL_UNIFORM);
        p.args.nan_rows = true;
        tor_attention_bind(&p.args);
        float *out = output(&p);
        run_on(&p.args, out, 2);
        for (int64_t i = 0; i < 8; i++) TOR_CHECK(out[i * p.args.out_stride[3]] == 0);
        tor_check_done();
    }
    tor_check_case("empty");
    for (int zero = 0; zero < 4; zero++) {
        TorAttentionArgs a = {.b = zero != 0,
                              .h = zero != 1,
                              .g = zero != 1,
                              .m = zero != 2,
                              .e = zero != 3,
                              .n = 4,
                              .d = 4};
        tor_attention_bind(&a);
        TOR_CHECK(a.items == 0 && a.combine_items == 0);
    }
    tor_check_done();
}

/// Keys that no row sees, like those of a cache's part that is not filled, are not read: NaN there
/// changes nothing.
static void hidden_keys(void) {
    enum { N = 1000, SEEN = 512 };
    for (int kind = 1; kind < 3; kind++)
        for (int turn = 0; turn < 6; turn++) {
            static const int64_t rows[] = {1, 3, 40};
            int64_t m = rows[turn / 2];
            bool last = turn & 1;  // are the last keys hidden, or the first?
            tor_check_case("kind=%d m=%d last=%d", kind, (int)m, last);
            Problem p = make(1, 2, 1, m, N, 16, 24, false, TOR_FILL_UNIFORM);
            TorAttentionArgs *a = &p.args;
            add_mask(&p, (TorAttentionMask)kind, 3, false);
            float *k = (float *)(uintptr_t)a->k, *v = (float *)(uintptr_t)a->v;
            for (int64_t j = last ? SEEN : 0; j < (last ? N : SEEN); j++) {
                for (int64_t i = 0; i < m; i++) {
                    int64_t at = i * a->mask_stride[2] + j * a->mask_stride[3];
                    if (kind == TOR_ATTENTION_MASK_BOOL)
                        ((uint8_t *)(uintptr_t)a->mask)[at] = 0;
                    else
                        ((float *)(uintptr_t)a->mask)[at] = -INFINITY;
                }
                for (int64_t c = 0; c < 16; c++) k[j * a->k_stride[2] + c] = 0;
                for (int64_t c = 0; c < 24; c++) v[j * a->v_stride[2] + c] = 0;
            }
            float *want = output(&p), *got = output(&p);
            tor_attention_bind(a);
            run_on(a, want, 1);
            check(&p, 4e-6);
            for (int64_t j = last ? SEEN : 0; j < (last ? N : SEEN); j++)
                k[j * a->k_stride[2]] = v[j * a->v_stride[2]] = NAN;
            tor_attention_bind(a);
            run_on(a, got, 1);
            tor_check_same(got, want, (size_t)p.out_count * sizeof(float));
            tor_check_done();
        }
}

/// Tiles shorter than the stretches that hidden keys are looked for in, and a tile that is all
/// hidden.
static void short_tiles(void) {
    enum { N = 100, FIRST = 52 };
    tor_check_case("tile=16");
    Problem p = make(1, 2, 1, 3, N, 16, 24, false, TOR_FILL_UNIFORM);
    p.args.wish.key_tile = 16;
    add_mask(&p, TOR_ATTENTION_MASK_BOOL, 7, false);
    for (int64_t j = 0; j < N; j++)
        ((uint8_t *)(uintptr_t)p.args.mask)[j * p.args.mask_stride[3]] = j >= FIRST;
    check(&p, 4e-6);
    tor_check_done();
}

/// A mask of the lowest float is an even mean; NaN reaches its own row, through q, k and mask.
static void special(void) {
    for (int few = 0; few < 2; few++) {
        int64_t m = few ? 3 : 40, n = 70;
        tor_check_case("m=%d", (int)m);
        Problem p = make(1, 1, 1, m, n, 8, 16, false, TOR_FILL_UNIFORM);
        add_mask(&p, TOR_ATTENTION_MASK_F32, 3, false);
        float *mask = (float *)(uintptr_t)p.args.mask, *q = (float *)(uintptr_t)p.args.q;
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++)
                mask[i * p.args.mask_stride[2] + j * p.args.mask_stride[3]] =
                    i == 0 ? -3.40282347e38f : 0;
        mask[1 * p.args.mask_stride[2] + 69 * p.args.mask_stride[3]] = NAN;
        q[2 * p.args.q_stride[2]] = NAN;
        check(&p, 4e-6);
        tor_check_done();

        tor_check_case("huge m=%d", (int)m);
        p = make(1, 1, 1, m, n, 8, 16, false, TOR_FILL_UNIFORM);
        p.args.scale = 300;
        check(&p, 4e-4);
        tor_check_done();

        tor_check_case("infinite mask m=%d", (int)m);
        p = make(1, 1, 1, m, n, 8, 16, false, TOR_FILL_UNIFORM);
        add_mask(&p, TOR_ATTENTION_MASK_F32, 15, false);
        *(float *)(uintptr_t)p.args.mask = INFINITY;
        check(&p, 4e-6);
        tor_check_done();
    }
}

/// What keep replaces does not matter, NaN and infinity included; a row whose scores are all
/// replaced is NaN or 0 with -inf, else an even mean.
static void replaced(void) {
    static const float fills[] = {-INFINITY, -FLT_MAX, -5};
    enum { N = 300, HIDDEN = 7, LATE = 290 };
    for (int turn = 0; turn < 12; turn++) {
        int64_t m = turn & 1 ? 4 : 40;
        float fill = fills[turn / 4];
        tor_check_case("m=%d fill=%g nan=%d", (int)m, (double)fill, turn >> 1 & 1);
        Problem p = make(1, 2, 1, m, N, 8, 16, false, TOR_FILL_UNIFORM);
        TorAttentionArgs *a = &p.args;
        a->nan_rows = turn >> 1 & 1;
        add_keep(&p, fill, 3, false);
        if (tor_check_coin()) add_mask(&p, TOR_ATTENTION_MASK_F32, 3, false);
        float *k = (float *)(uintptr_t)a->k;
        for (int64_t c = 0; c < 8; c++) {
            k[HIDDEN * a->k_stride[2] + c * a->k_stride[3]] = c ? 0 : NAN;
            k[LATE * a->k_stride[2] + c * a->k_stride[3]] = c & 1 ? INFINITY : -INFINITY;
        }
        // Row 0 keeps nothing, row 1 reads the broken keys.
        uint8_t *keep = (uint8_t *)(uintptr_t)a->keep;
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < N; j++)
                if (i == 0 || j == HIDDEN || j == LATE)
                    keep[i * a->keep_stride[2] + j * a->keep_stride[3]] = i == 1;
        check(&p, 4e-6);
        tor_attention_bind(a);
        float *out = output(&p);
        run_on(a, out, 1);
        for (int64_t i = 0; i < m; i++) {
            float got = out[i * a->out_stride[2]];
            bool dead = i == 0 && fill == -INFINITY;
            TOR_CHECK((dead && a->nan_rows) || i == 1 ? isnan(got)
                      : dead                          ? got == 0
                                                      : isfinite(got));
        }
        tor_check_done();
    }
}

static void bench_call(void *context) {
    const TorAttentionArgs *a = *(TorAttentionArgs **)context;
    void *scratch = ((void **)context)[1];
    tor_attention_run(a, 0, a->items, scratch);
    if (a->combine_items) tor_attention_combine(a, 0, a->combine_items, scratch);
}

/// One thread. Tensors as models have them: [b, n, h, d] in memory, or [b, h, n, d] for a cache.
static void bench_one(const char *name, int64_t b, int64_t h, int64_t g, int64_t m, int64_t n,
                      int64_t d, bool causal, bool mask) {
    tor_check_case("%s", name);
    TorAttentionArgs a = {.b = b,
                          .h = h,
                          .g = g,
                          .m = m,
                          .n = n,
                          .d = d,
                          .e = d,
                          .causal = causal,
                          .scale = 1 / sqrtf((float)d)};
    bool cache = m == 1;
    int64_t q[4] = {m * h * d, d, h * d, 1},
            kv[4] = {n * g * d, cache ? n * d : d, cache ? d : g * d, 1};
    memcpy(a.q_stride, q, sizeof q), memcpy(a.out_stride, q, sizeof q),
        memcpy(a.k_stride, kv, sizeof kv), memcpy(a.v_stride, kv, sizeof kv);
    float *data[4];
    int64_t count[4] = {b * m * h * d, b * n * g * d, b * n * g * d, b * m * h * d};
    for (int i = 0; i < 4; i++) {
        data[i] = tor_check_buffer((size_t)count[i] * sizeof(float), 64);
        tor_check_fill(TOR_float32, data[i], count[i], TOR_FILL_UNIFORM);
    }
    a.q = data[0], a.k = data[1], a.v = data[2], a.out = data[3];
    if (mask) {
        float *bias = tor_check_buffer((size_t)(b * n) * sizeof(float), 64);
        for (int64_t i = 0; i < b * n; i++) bias[i] = 0;
        a.mask = bias, a.mask_kind = TOR_ATTENTION_MASK_F32, a.mask_stride[0] = n,
        a.mask_stride[3] = 1;
    }
    tor_attention_bind(&a);
    a.partial = a.partial_bytes ? tor_check_buffer(a.partial_bytes, 64) : NULL;
    void *context[2] = {&a, tor_check_buffer(a.scratch_bytes, 64)};
    double flops = 4.0 * (double)(b * h * m) * (double)(n * d) * (causal ? 0.5 : 1);
    if (m > 1)
        tor_check_bench_flops(name, flops, 1, bench_call, context);
    else
        tor_check_bench_bytes(name, 8.0 * (double)(b * g * n * d), bench_call, context);
    tor_check_done();
}

static void bench(void) {
    bench_one("bert m=128 n=128 d=64 h=12", 1, 12, 12, 128, 128, 64, false, false);
    bench_one("bert, mask [b,1,1,n]", 1, 12, 12, 128, 128, 64, false, true);
    bench_one("minilm m=128 n=128 d=32 h=12", 1, 12, 12, 128, 128, 32, false, false);
    bench_one("vit m=197 n=197 d=64 h=12", 1, 12, 12, 197, 197, 64, false, false);
    bench_one("long m=1024 n=1024 d=64 h=4", 1, 4, 4, 1024, 1024, 64, false, false);
    bench_one("causal m=1024 n=1024 d=64 h=4", 1, 4, 4, 1024, 1024, 64, true, false);
    bench_one("llama m=256 n=256 d=128 h=8 g=2", 1, 8, 2, 256, 256, 128, true, false);
    bench_one("sd m=1024 n=77 d=40 h=8", 1, 8, 8, 1024, 77, 40, false, false);
    bench_one("decode m=1 n=4096 d=64 h=12", 1, 12, 12, 1, 4096, 64, false, false);
    bench_one("decode m=1 n=4096 d=128 h=32 g=8", 1, 32, 8, 1, 4096, 128, false, false);
    bench_one("decode m=1 n=256 d=64 h=12 (cached)", 1, 12, 12, 1, 256, 64, false, false);
}

int main(int argc, char **argv) {
    static const TorCheckTest tests[] = {{"sizes", sizes},
                                         {"decode", decode},
                                         {"exact", exact},
                                         {"masked_rows", masked_rows},
                                         {"hidden_keys", hidden_keys},
                                         {"short_tiles", short_tiles},
                                         {"special", special},
                                         {"replaced", replaced}};
    static const TorCheckTest benches[] = {{"shapes", bench}};
    return tor_check_main(argc, argv, tests, TOR_COUNT_OF(tests), benches, TOR_COUNT_OF(benches));
}

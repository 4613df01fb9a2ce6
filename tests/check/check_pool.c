/// The pool family against its oracle: kinds, dtypes, layouts, paddings, NaN, threads; and timings.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "harness.h"
#include "kernels/pool/contract.h"

typedef enum { CHANNELS_LAST, CHANNELS_FIRST, SHUFFLED } Layout;

static int64_t lay_out(int64_t *stride, const int64_t *size, Layout layout) {
    int order[5] = {0, 1, 2, 3, 4};  // outermost first
    if (layout == CHANNELS_LAST) memcpy(order, (int[]){0, 2, 3, 4, 1}, sizeof order);
    if (layout == SHUFFLED)
        for (int i = 4; i > 0; i--) {
            int j = (int)tor_check_range(0, i), t = order[i];
            order[i] = order[j];
            order[j] = t;
        }
    int64_t step = layout == SHUFFLED ? tor_check_range(1, 2) : 1, last = 0;
    for (int i = 4; i >= 0; i--) {
        stride[order[i]] = step;
        last += (size[order[i]] - 1) * step;
        step *= TOR_MAX(size[order[i]], 1);
        if (layout == SHUFFLED) step += tor_check_range(0, 3);
    }
    return last + 1;
}

/// torch's: the last window starts inside the input or the low padding.
static int64_t out_size(const TorPoolArgs *a, int i, bool ceil_mode) {
    int64_t dilation = a->kind == TOR_POOL_max ? a->dilation[i] : 1;
    int64_t free = a->in_size[i] + 2 * a->padding[i] - dilation * (a->kernel[i] - 1) - 1;
    if (free < 0 && (!ceil_mode || free <= -a->stride[i])) return 0;
    int64_t out = (free + (ceil_mode ? a->stride[i] - 1 : 0)) / a->stride[i] + 1;
    if (ceil_mode && (out - 1) * a->stride[i] >= a->in_size[i] + a->padding[i]) out--;
    return out;
}

static void run_team(const TorPoolArgs *a, int threads) {
    tor_check_run(tor_pool_run, a, a->items, a->scratch_bytes, threads);
}

static void check(TorPoolArgs *a, Layout lx, Layout ly, TorFill fill, bool want_values,
                  bool want_index) {
    static const char *const kinds[] = {"max", "avg", "adaptive_avg", "adaptive_max"};
    int64_t in[5] = {a->batch, a->channels, a->in_size[0], a->in_size[1], a->in_size[2]};
    int64_t out[5] = {a->batch, a->channels, a->out_size[0], a->out_size[1], a->out_size[2]};
    tor_check_case(
        "%s %s b=%d c=%d in=%dx%dx%d out=%dx%dx%d k=%dx%dx%d s=%d,%d,%d p=%d,%d,%d d=%d,%d,%d "
        "pad=%d div=%d x=%d y=%d fill=%d",
        kinds[a->kind], tor_dtype_name(a->dtype), (int)a->batch, (int)a->channels, (int)in[2],
        (int)in[3], (int)in[4], (int)out[2], (int)out[3], (int)out[4], (int)a->kernel[0],
        (int)a->kernel[1], (int)a->kernel[2], (int)a->stride[0], (int)a->stride[1],
        (int)a->stride[2], (int)a->padding[0], (int)a->padding[1], (int)a->padding[2],
        (int)a->dilation[0], (int)a->dilation[1], (int)a->dilation[2], a->count_include_pad,
        (int)a->divisor, lx, ly, fill);
    int64_t x_count = lay_out(a->x_stride, in, lx), y_count = lay_out(a->y_stride, out, ly),
            i_count = lay_out(a->index_stride, out, ly);
    size_t size = tor_dtype_size(a->dtype);
    void *x = tor_check_buffer((size_t)x_count * size, size);
    tor_check_fill(a->dtype, x, x_count, fill);
    void *y[3];
    int64_t *index[3];
    const char *reason;
    TOR_CHECK(tor_pool_supported(a, &reason));
    tor_pool_bind(a);
    a->x = x;
    for (int i = 0; i < 3; i++) {  // oracle, one range after the other, a team
        y[i] = tor_check_buffer((size_t)y_count * size, size);
        index[i] = tor_check_buffer((size_t)i_count * 8, 8);
        a->y = want_values ? y[i] : NULL;
        a->index = want_index ? index[i] : NULL;
        int64_t half = tor_check_range(0, a->items);
        if (i == 0) tor_pool_run_ref(a);
        if (i == 1) {
            void *scratch = tor_check_buffer(a->scratch_bytes, 64);
            tor_pool_run(a, half, a->items, scratch), tor_pool_run(a, 0, half, scratch);
        }
        if (i == 2) run_team(a, (int)tor_check_range(2, 5));
    }
    double tolerance = tor_pool_is_max(a->kind)   ? 0
                       : a->dtype == TOR_float16  ? 2e-3
                       : a->dtype == TOR_bfloat16 ? 1.6e-2
                       : a->dtype == TOR_float32  ? 1e-5
                                                  : 1e-14;
    if (want_values) tor_check_compare(a->dtype, y[1], y[0], y_count, tolerance / 4, tolerance);
    tor_check_same(y[2], y[1], (size_t)y_count * size);
    if (want_index) tor_check_same(index[1], index[0], (size_t)i_count * 8);
    tor_check_same(index[2], index[1], (size_t)i_count * 8);
    tor_check_done();
}

static const TorDtype max_types[] = {TOR_float32, TOR_float32,  TOR_float32, TOR_float64,
                                     TOR_float16, TOR_bfloat16, TOR_uint8,   TOR_int8,
                                     TOR_int16,   TOR_int32,    TOR_int64};
static const TorDtype avg_types[] = {TOR_float32, TOR_float32,  TOR_float32, TOR_float64,
                                     TOR_float16, TOR_bfloat16, TOR_int64};

static bool random_window(TorPoolArgs *a) {
    int rank = (int)tor_check_range(1, 3);
    bool ceil_mode = tor_check_coin();
    a->batch = tor_check_range(1, 3);
    a->channels = tor_check_range(0, 4) ? tor_check_range(1, 40) : tor_check_range(60, 200);
    for (int i = 0; i < 3; i++) {
        bool used = i >= 3 - rank;
        a->kernel[i] = used ? tor_check_range(1, 5) : 1;
        a->stride[i] = used ? tor_check_range(1, 4) : 1;
        a->padding[i] = used ? tor_check_range(0, a->kernel[i] / 2) : 0;
        a->dilation[i] = used && tor_check_range(0, 2) == 0 ? tor_check_range(2, 3) : 1;
        a->in_size[i] = used ? tor_check_range(1, rank == 1 ? 60 : rank == 2 ? 14 : 8) : 1;
        a->out_size[i] = tor_pool_is_adaptive(a->kind) ? (used ? tor_check_range(1, 9) : 1)
                                                       : out_size(a, i, ceil_mode);
        if (a->out_size[i] < 1) return false;
    }
    return true;
}

static void max_pool(void) {
    for (int n = 0; n < 400;) {
        TorPoolArgs a = {.kind = TOR_POOL_max,
                         .dtype = max_types[tor_check_range(0, TOR_COUNT_OF(max_types) - 1)]};
        if (!random_window(&a)) continue;
        // Dilated windows that miss the input give the lowest value, which must not be all there
        // is.
        if (a.dtype == TOR_uint8 && (a.dilation[0] | a.dilation[1] | a.dilation[2]) > 1) continue;
        n++;
        // Small integers make ties, whose first must win; others are anything that their type has.
        TorFill fill = tor_check_coin() ? TOR_FILL_EXACT : TOR_FILL_SPECIAL;
        bool values = tor_check_range(0, 5) > 0;
        check(&a, (Layout)tor_check_range(0, 2), (Layout)tor_check_range(0, 2), fill, values,
              !values || tor_check_coin());
    }
}

static void avg_pool(void) {
    for (int n = 0; n < 300;) {
        TorPoolArgs a = {.kind = TOR_POOL_avg,
                         .dtype = avg_types[tor_check_range(0, TOR_COUNT_OF(avg_types) - 1)]};
        a.count_include_pad = tor_check_coin();
        if (tor_check_range(0, 3) == 0) a.divisor = tor_check_range(1, 7);
        if (!random_window(&a)) continue;
        n++;
        bool exact = a.dtype == TOR_int64;
        if (exact) a.divisor = 1;  // quotients would mostly be zero
        check(&a, (Layout)tor_check_range(0, 2), (Layout)tor_check_range(0, 2),
              exact ? TOR_FILL_EXACT : TOR_FILL_UNIFORM, true, false);
    }
}

static void adaptive(void) {
    for (int n = 0; n < 200; n++) {
        bool max = tor_check_coin();
        TorPoolArgs a = {.kind = max ? TOR_POOL_adaptive_max : TOR_POOL_adaptive_avg,
                         .dtype = avg_types[tor_check_range(0, TOR_COUNT_OF(avg_types) - 2)]};
        if (!random_window(&a)) continue;
        check(&a, (Layout)tor_check_range(0, 2), (Layout)tor_check_range(0, 2),
              max ? TOR_FILL_SPECIAL : TOR_FILL_UNIFORM, true, max);
    }
}

/// Right values by hand, ATen's corner cases.
static void rules(void) {
    uint8_t scratch[4096];
    for (int last = 0; last < 2; last++) {  // generic loops, lanes
        TorPoolArgs a = {.kind = TOR_POOL_max,
                         .dtype = TOR_float32,
                         .batch = 1,
                         .channels = 1,
                         .in_size = {1, 1, 5},
                         .out_size = {1, 1, 3},
                         .kernel = {1, 1, 3},
                         .stride = {1, 1, 2},
                         .padding = {0, 0, 1},
                         .dilation = {1, 1, 1},
                         .x_stride = {5, last ? 1 : 5, 5, 5, 1},
                         .y_stride = {3, last ? 1 : 3, 3, 3, 1},
                         .index_stride = {3, 1, 3, 3, 1}};
        float x[5] = {-INFINITY, -INFINITY, NAN, NAN, 1}, y[3];
        int64_t index[3];
        tor_check_case("max, channels last %d", last);
        tor_pool_bind(&a);
        TOR_CHECK((a.row->layout == TOR_POOL_channels_last) == last);
        a.x = x, a.y = y, a.index = index;
        tor_pool_run(&a, 0, a.items, scratch);
        TOR_CHECK(y[0] == -INFINITY && index[0] == 0);
        TOR_CHECK(isnan(y[1]) && index[1] == 3);
        TOR_CHECK(isnan(y[2]) && index[2] == 3);
        tor_check_done();

        // avg_pool1d([1 2 3 4 5], 3, stride 2, padding 1, ceil_mode): windows [p12] [234] [45p].
        tor_check_case("avg, channels last %d", last);
        a.kind = TOR_POOL_avg;
        float count[5] = {1, 2, 3, 4, 5};
        a.x = count, a.index = NULL;
        for (int pad = 0; pad < 2; pad++) {
            a.count_include_pad = pad;
            tor_pool_bind(&a);
            tor_pool_run(&a, 0, a.items, scratch);
            TOR_CHECK(y[0] == (pad ? 1.0f : 1.5f) && y[1] == 3.0f && y[2] == (pad ? 3.0f : 4.5f));
        }
        // Kernel 2, stride 2, ceil_mode: the last window is [5], of one even with
        // count_include_pad.
        a.kernel[2] = 2;
        a.padding[2] = 0;
        tor_pool_bind(&a);
        tor_pool_run(&a, 0, a.items, scratch);
        TOR_CHECK(y[0] == 1.5f && y[1] == 3.5f && y[2] == 5.0f);
        tor_check_done();
    }
    tor_check_case("empty");
    TorPoolArgs a = {.kind = TOR_POOL_max,
                     .dtype = TOR_float32,
                     .batch = 2,
                     .channels = 0,
                     .in_size = {1, 1, 5},
                     .out_size = {1, 1, 3},
                     .kernel = {1, 1, 3},
                     .stride = {1, 1, 2},
                     .padding = {0, 0, 1},
                     .dilation = {1, 1, 1}};
    tor_pool_bind(&a);
    TOR_CHECK(a.items == 0);
    a.channels = 3;
    a.out_size[2] = 0;
    tor_pool_bind(&a);
    TOR_CHECK(a.items == 0);
    tor_check_done();
}

// Benches.

static void bench_run(void *ctx) {
    TorPoolArgs *a = ctx;
    static uint8_t scratch[1 << 16];
    tor_pool_run(a, 0, a->items, scratch);
}

static void bench_one(const char *name, TorPoolKind kind, int64_t c, int64_t size, int64_t out,
                      int64_t kernel, int64_t stride, int64_t padding, Layout layout, bool index) {
    TorPoolArgs a = {.kind = kind,
                     .dtype = TOR_float32,
                     .batch = 1,
                     .channels = c,
                     .in_size = {1, size, size},
                     .out_size = {1, out, out},
                     .kernel = {1, kernel, kernel},
                     .stride = {1, stride, stride},
                     .padding = {0, padding, padding},
                     .dilation = {1, 1, 1},
                     .count_include_pad = true};
    int64_t x_count = lay_out(a.x_stride, (int64_t[]){1, c, 1, size, size}, layout);
    int64_t y_count = lay_out(a.y_stride, (int64_t[]){1, c, 1, out, out}, layout);
    memcpy(a.index_stride, a.y_stride, sizeof a.y_stride);
    float *x = tor_alloc((size_t)x_count * 4), *y = tor_alloc((size_t)y_count * 4);
    int64_t *where = tor_alloc((size_t)y_count * 8);
    tor_check_fill(TOR_float32, x, x_count, TOR_FILL_UNIFORM);
    tor_pool_bind(&a);
    a.x = x;
    a.y = y;
    a.index = index ? where : NULL;
    tor_check_bench_bytes(name, (double)(x_count + y_count) * 4 + (index ? (double)y_count * 8 : 0),
                          bench_run, &a);
    tor_free(where);
    tor_free(y);
    tor_free(x);
}

static void networks(void) {
    bench_one("max 3x3/2 64 @112 nhwc (ResNet)", TOR_POOL_max, 64, 112, 56, 3, 2, 1, CHANNELS_LAST,
              false);
    bench_one("max 3x3/2 64 @112 nhwc, indices", TOR_POOL_max, 64, 112, 56, 3, 2, 1, CHANNELS_LAST,
              true);
    bench_one("max 3x3/2 64 @112 nchw", TOR_POOL_max, 64, 112, 56, 3, 2, 1, CHANNELS_FIRST, false);
    bench_one("adaptive 2048 @7 to 1 nhwc", TOR_POOL_adaptive_avg, 2048, 7, 1, 1, 1, 0,
              CHANNELS_LAST, false);
    bench_one("adaptive 2048 @7 to 1 nchw", TOR_POOL_adaptive_avg, 2048, 7, 1, 1, 1, 0,
              CHANNELS_FIRST, false);
    bench_one("avg 2x2/2 256 @56 nhwc", TOR_POOL_avg, 256, 56, 28, 2, 2, 0, CHANNELS_LAST, false);
}

int main(int argc, char **argv) {
    static const TorCheckTest tests[] = {{"rules", rules},
                                         {"max_pool", max_pool},
                                         {"avg_pool", avg_pool},
                                         {"adaptive", adaptive}},
                              benches[] = {{"networks", networks}};
    return tor_check_main(argc, argv, tests, TOR_COUNT_OF(tests), benches, TOR_COUNT_OF(benches));
}

/// The recurrent family against its oracle: modes, directions, batches round the blocks, strides,
/// packed and plain weights, threads; and timings.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "harness.h"
#include "kernels/rnn/contract.h"

static float *uniform(int64_t count) {
    float *data = tor_check_buffer((size_t)count * sizeof(float), sizeof(float));
    tor_check_fill(TOR_float32, data, count, TOR_FILL_UNIFORM);
    return data;
}

static void run_team(const TorRnnArgs *a, int threads) {
    tor_check_run(tor_rnn_run, a, a->items, a->scratch_bytes, threads);
}

static float *pack(const TorRnnArgs *a, const float *w) {
    int64_t n = tor_rnn_gates(a->mode) * a->width;
    TorGemmPackArgs p = {
        .n = n, .k = a->width, .n_stride = a->w_row, .k_stride = a->w_col, .batch = 1, .w = w};
    p.packed = tor_check_buffer(tor_gemm_packed_bytes(n, a->width), TOR_CACHE_LINE);
    tor_gemm_pack_bind(&p);
    tor_gemm_pack_run(&p, 0, p.items, NULL);
    return p.packed;
}

static void one(TorRnnMode mode, int64_t steps, int64_t batch, int64_t width, bool packed) {
    int64_t gates = tor_rnn_gates(mode) * width, gap = tor_check_range(0, 5);
    TorRnnArgs a = {
        .mode = mode, .reverse = tor_check_coin(), .steps = steps, .batch = batch, .width = width};
    bool bias = tor_check_coin(), swapped = tor_check_coin(), batch_first = tor_check_coin();
    tor_check_case("mode=%d t=%d b=%d h=%d packed=%d bias=%d reverse=%d", mode, (int)steps,
                   (int)batch, (int)width, packed, bias, a.reverse);
    a.x_row = batch_first ? steps * (gates + gap) : gates + gap;
    a.x_step = batch_first ? gates + gap : batch * (gates + gap);
    a.y_row = width + gap, a.y_step = batch * (width + gap);
    a.h0_row = swapped ? 1 : width, a.h0_col = swapped ? batch : 1;
    a.c0_row = a.cn_row = width + gap, a.c0_col = a.cn_col = 1;
    a.w_row = swapped ? 1 : width, a.w_col = swapped ? gates : 1;
    const float *w = uniform(gates * width);
    a.x = uniform(steps * batch * (gates + gap));
    // relu is the one function here that might lose it.
    if (mode == TOR_RNN_relu && tor_check_coin()) ((float *)a.x)[0] = NAN;
    a.h0 = uniform(batch * width);
    a.c0 = uniform(batch * (width + gap));
    a.bias = bias ? uniform(gates) : NULL;
    for (int64_t i = 0; i < gates * width; i++) ((float *)w)[i] /= (float)(width > 16 ? 4 : 1);
    size_t y_bytes = (size_t)(steps * batch * (width + gap)) * 4,
           c_bytes = (size_t)(batch * (width + gap)) * 4;
    float *y[3], *cn[3];
    for (int i = 0; i < 3; i++) {
        y[i] = tor_check_buffer(y_bytes, 4), cn[i] = tor_check_buffer(c_bytes, 4);
        a.y = y[i], a.cn = mode == TOR_RNN_lstm ? cn[i] : NULL;
        a.w = w, a.packed = false;
        if (i == 0) tor_rnn_run_ref(&a, tor_check_buffer(tor_rnn_ref_scratch(&a), 8));
        if (i > 0 && packed) a.w = pack(&a, w), a.packed = true;
        if (i > 0) tor_rnn_bind(&a), run_team(&a, i == 1 ? 1 : 3);
    }
    if (mode == TOR_RNN_relu) {  // grows without bound over the steps
        tor_check_compare(TOR_float32, y[1], y[0], (int64_t)y_bytes / 4, 1e-4, 1e-4);
    } else {
        tor_check_compare(TOR_float32, y[1], y[0], (int64_t)y_bytes / 4, 1e-5, 1e-5);
        tor_check_compare(TOR_float32, cn[1], cn[0], (int64_t)c_bytes / 4, 1e-5, 2e-5);
    }
    tor_check_same(y[2], y[1], y_bytes);
    tor_check_same(cn[2], cn[1], c_bytes);
    tor_check_done();
}

static void layers(void) {
    for (int mode = 0; mode < 4; mode++)
        for (int n = 0; n < 60; n++)
            one((TorRnnMode)mode, tor_check_range(1, 6), tor_check_range(1, 40),
                tor_check_range(1, n % 4 ? 40 : 130), tor_check_coin());
}

/// Nothing is written for no rows, no width, or no steps but the last c.
static void empty(void) {
    for (int mode = 0; mode < 4; mode++)
        for (int n = 0; n < 3; n++) {
            TorRnnArgs a = {
                .mode = (TorRnnMode)mode, .steps = n != 0, .batch = n != 1, .width = n != 2};
            tor_check_case("mode=%d empty=%d", mode, n);
            float one_float = 0.5f, c = 0;
            a.x = a.w = a.h0 = a.c0 = &one_float;
            a.h0_row = a.c0_row = a.cn_row = a.w_row = 1;
            a.cn = mode == TOR_RNN_lstm ? &c : NULL;
            tor_rnn_bind(&a);
            run_team(&a, 2);
            TOR_CHECK(c == (n == 0 && a.cn ? 0.5f : 0));
            tor_check_done();
        }
}

static void call(void *ctx) {
    TorRnnArgs *a = ctx;
    static uint8_t scratch[1 << 22];
    tor_rnn_run(a, 0, a->items, scratch);
}

static void bench(void) {
    static const int64_t shapes[][3] = {{50, 1, 256}, {50, 16, 256}, {50, 1, 512}, {50, 32, 512}};
    for (int mode = 0; mode < 2; mode++)
        for (size_t s = 0; s < TOR_COUNT_OF(shapes); s++) {
            int64_t t = shapes[s][0], b = shapes[s][1], h = shapes[s][2],
                    gates = tor_rnn_gates((TorRnnMode)mode) * h;
            char name[64];
            snprintf(name, sizeof name, "%s t=%d b=%d h=%d", mode ? "gru" : "lstm", (int)t, (int)b,
                     (int)h);
            tor_check_case("%s", name);
            TorRnnArgs a = {.mode = (TorRnnMode)mode,
                            .steps = t,
                            .batch = b,
                            .width = h,
                            .x_step = b * gates,
                            .x_row = gates,
                            .y_step = b * h,
                            .y_row = h,
                            .h0_row = h,
                            .h0_col = 1,
                            .c0_row = h,
                            .c0_col = 1,
                            .w_row = h,
                            .w_col = 1};
            a.w = pack(&a, uniform(gates * h)), a.packed = true;
            a.x = uniform(t * b * gates), a.h0 = uniform(b * h), a.c0 = uniform(b * h);
            a.y = uniform(t * b * h);
            tor_rnn_bind(&a);
            tor_check_bench_flops(name, 2.0 * (double)(t * b * gates * h), 1, call, &a);
            tor_check_done();
        }
}

int main(int argc, char **argv) {
    static const TorCheckTest tests[] = {{"layers", layers}, {"empty", empty}},
                              benches[] = {{"steps", bench}};
    return tor_check_main(argc, argv, tests, TOR_COUNT_OF(tests), benches, TOR_COUNT_OF(benches));
}

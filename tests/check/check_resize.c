/// The resize family against its oracle: modes, types, layouts, scales, threads; and timings.
#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "kernels/resize/contract.h"

typedef enum { FIRST, LAST, GAPS } Layout;

static int64_t lay_out(int64_t *stride, const int64_t *size, Layout layout) {
    int order[] = {0, 1, 2, 3, 4};
    if (layout == LAST) memcpy(order, (int[]){0, 2, 3, 4, 1}, sizeof order);
    int64_t step = layout == GAPS ? 2 : 1, last = 0;
    for (int i = 4; i >= 0; i--) {
        stride[order[i]] = step;
        last += (size[order[i]] - 1) * step;
        step = step * size[order[i]] + (layout == GAPS);
    }
    return last + 1;
}

static void run_team(const TorResizeArgs *a, int threads) {
    tor_check_run(tor_resize_run, a, a->items, a->scratch_bytes, threads);
}

static void one(TorResizeArgs a, Layout lx, Layout ly) {
    int64_t in[] = {a.batch, a.channels, a.in_size[0], a.in_size[1], a.in_size[2]},
            out[] = {a.batch, a.channels, a.out_size[0], a.out_size[1], a.out_size[2]};
    tor_check_case("mode=%d %s b=%d c=%d in=%dx%dx%d out=%dx%dx%d align=%d scale=%g x=%d y=%d",
                   a.mode, tor_dtype_name(a.dtype), (int)in[0], (int)in[1], (int)in[2], (int)in[3],
                   (int)in[4], (int)out[2], (int)out[3], (int)out[4], a.align_corners, a.scale[2],
                   lx, ly);
    size_t size = tor_dtype_size(a.dtype);
    int64_t x_count = lay_out(a.x_stride, in, lx), y_count = lay_out(a.y_stride, out, ly);
    void *x = tor_check_buffer((size_t)x_count * size, size), *y[3];
    bool nearest = a.mode <= TOR_RESIZE_nearest_exact;
    tor_check_fill(a.dtype, x, x_count, nearest ? TOR_FILL_SPECIAL : TOR_FILL_UNIFORM);
    const char *reason;
    TOR_CHECK(tor_resize_supported(&a, &reason));
    tor_resize_bind(&a);
    a.x = x;
    for (int i = 0; i < 3; i++) {
        a.y = y[i] = tor_check_buffer((size_t)y_count * size, size);
        if (i == 0)
            tor_resize_run_ref(&a);
        else
            run_team(&a, i == 1 ? 1 : 3);
    }
    double tolerance = a.dtype == TOR_float64   ? 1e-14
                       : a.dtype == TOR_float32 ? 2e-6
                       : a.dtype == TOR_float16 ? 1e-3
                                                : 8e-3;
    if (nearest)
        tor_check_same(y[1], y[0], (size_t)y_count * size);
    else
        tor_check_compare(a.dtype, y[1], y[0], y_count, tolerance, tolerance);
    tor_check_same(y[2], y[1], (size_t)y_count * size);
    tor_check_done();
}

static void sizes(void) {
    static const TorDtype types[] = {TOR_float32, TOR_float64, TOR_float16, TOR_bfloat16,
                                     TOR_uint8};
    for (int n = 0; n < 400; n++) {
        TorResizeArgs a = {.mode = (TorResizeMode)(n % 4), .align_corners = tor_check_coin()};
        bool nearest = a.mode <= TOR_RESIZE_nearest_exact;
        int rank = a.mode == TOR_RESIZE_cubic ? 2 : (int)tor_check_range(1, 3);
        a.dtype = types[tor_check_range(0, nearest ? 4 : 3)];
        a.batch = tor_check_range(1, 2), a.channels = tor_check_range(1, 20);
        bool twice = tor_check_coin(), scaled = tor_check_coin();
        for (int i = 0; i < 3; i++) {
            bool used = i >= 3 - rank;
            a.in_size[i] = used ? tor_check_range(1, rank == 3 ? 7 : 19) : 1;
            a.out_size[i] = !used ? 1 : twice ? 2 * a.in_size[i] : tor_check_range(1, 25);
            if (scaled && used && !twice)
                a.scale[i] = (double)a.out_size[i] / (double)a.in_size[i] + 0.07;
        }
        one(a, (Layout)tor_check_range(0, 2), (Layout)tor_check_range(0, 2));
    }
}

static void call(void *ctx) {
    static uint8_t scratch[1 << 16];
    TorResizeArgs *a = ctx;
    tor_resize_run(a, 0, a->items, scratch);
}

static void bench(void) {
    static const char *const names[] = {"nearest", "exact", "linear", "cubic"};
    for (int mode = 0; mode < 4; mode++)
        for (int layout = FIRST; layout <= LAST; layout++) {
            TorResizeArgs a = {.mode = (TorResizeMode)mode,
                               .dtype = TOR_float32,
                               .batch = 1,
                               .channels = 64,
                               .in_size = {1, 56, 56},
                               .out_size = {1, 112, 112}};
            int64_t in[] = {1, 64, 1, 56, 56}, out[] = {1, 64, 1, 112, 112};
            char name[64];
            snprintf(name, sizeof name, "%s %s 56 to 112", names[mode], layout ? "nhwc" : "nchw");
            tor_check_case("%s", name);
            int64_t x = lay_out(a.x_stride, in, (Layout)layout),
                    y = lay_out(a.y_stride, out, (Layout)layout);
            float *data = tor_check_buffer((size_t)x * 4, 4);
            tor_check_fill(TOR_float32, data, x, TOR_FILL_UNIFORM);
            a.x = data, a.y = tor_check_buffer((size_t)y * 4, 4);
            tor_resize_bind(&a);
            tor_check_bench_bytes(name, (double)(x + y) * 4, call, &a);
            tor_check_done();
        }
}

int main(int argc, char **argv) {
    static const TorCheckTest tests[] = {{"sizes", sizes}}, benches[] = {{"planes", bench}};
    return tor_check_main(argc, argv, tests, TOR_COUNT_OF(tests), benches, TOR_COUNT_OF(benches));
}

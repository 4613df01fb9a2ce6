/// The grid family against its oracle: modes, paddings, types, strides, odd places, threads.
#include <math.h>
#include <string.h>

#include "harness.h"
#include "kernels/grid/contract.h"

static int64_t lay_out(int64_t *stride, const int64_t *size, bool last, int64_t gap) {
    int order[] = {0, 1, 2, 3, 4};
    if (last) memcpy(order, (int[]){0, 2, 3, 4, 1}, sizeof order);
    int64_t step = 1, end = 0;
    for (int i = 4; i >= 0; i--) {
        stride[order[i]] = step;
        end += (size[order[i]] - 1) * step;
        step = step * size[order[i]] + gap;
    }
    return end + 1;
}

static void run_team(const TorGridArgs *a, int threads) {
    tor_check_run(tor_grid_run, a, a->items, a->scratch_bytes, threads);
}

/// Places are multiples of 1/8 pixel plus 1/16 in a power-of-two size: no rounding moves them over
/// an edge, so that the oracle in double sees the same taps.
static double place(const TorGridArgs *a, int64_t size) {
    double pixel = (double)tor_check_range(-8, 8 * size) / 8 + 0.0625;
    return a->align_corners ? (size > 1 ? pixel * 2 / (double)(size - 1) - 1 : pixel)
                            : (2 * pixel + 1) / (double)size - 1;
}

static void one(TorGridArgs a) {
    int64_t in[] = {a.batch, a.channels, a.in_size[0], a.in_size[1], a.in_size[2]},
            out[] = {a.batch, a.channels, a.out_size[0], a.out_size[1], a.out_size[2]},
            places[] = {a.batch, a.out_size[0], a.out_size[1], a.out_size[2], a.dims};
    tor_check_case("mode=%d padding=%d align=%d %s dims=%d in=%dx%dx%d out=%dx%dx%d c=%d", a.mode,
                   a.padding, a.align_corners, tor_dtype_name(a.dtype), a.dims, (int)in[2],
                   (int)in[3], (int)in[4], (int)out[2], (int)out[3], (int)out[4], (int)in[1]);
    size_t size = tor_dtype_size(a.dtype);
    int64_t x_count = lay_out(a.x_stride, in, tor_check_coin(), tor_check_range(0, 2)),
            y_count = lay_out(a.y_stride, out, tor_check_coin(), tor_check_range(0, 2)),
            g_count = lay_out(a.grid_stride, places, tor_check_coin(), tor_check_range(0, 2));
    void *x = tor_check_buffer((size_t)x_count * size, size), *y[3];
    char *grid = tor_check_buffer((size_t)g_count * size, size);
    tor_check_fill(a.dtype, x, x_count, TOR_FILL_UNIFORM);
    memset(grid, 0, (size_t)g_count * size);
    for (int64_t i = 0; i < g_count; i++) {
        // Which coordinate it is depends on the strides: all spatial sizes of a case are equal.
        TorScalar s = {.dtype = a.dtype, .f = place(&a, a.in_size[2])};
        tor_scalar_store(grid + i * (int64_t)size, s);
    }
    tor_grid_bind(&a);
    a.x = x, a.grid = grid;
    for (int i = 0; i < 3; i++) {
        a.y = y[i] = tor_check_buffer((size_t)y_count * size, size);
        if (i == 0)
            tor_grid_run_ref(&a);
        else
            run_team(&a, i == 1 ? 1 : 3);
    }
    double tolerance = a.dtype == TOR_float64   ? 1e-12
                       : a.dtype == TOR_float32 ? 3e-5
                       : a.dtype == TOR_float16 ? 2e-3
                                                : 2e-2;
    tor_check_compare(a.dtype, y[1], y[0], y_count, tolerance, tolerance);
    tor_check_same(y[2], y[1], (size_t)y_count * size);
    tor_check_done();
}

static void places(void) {
    static const TorDtype types[] = {TOR_float32, TOR_float64, TOR_float16, TOR_bfloat16};
    for (int n = 0; n < 300; n++) {
        TorGridArgs a = {.mode = (TorGridMode)(n % 3),
                         .padding = (TorGridPadding)tor_check_range(0, 2),
                         .align_corners = tor_check_coin(),
                         .dtype = types[tor_check_range(0, 3)],
                         .dims = 2,
                         .batch = tor_check_range(1, 2),
                         .channels = tor_check_range(1, 9)};
        if (a.mode != TOR_GRID_cubic && tor_check_coin()) a.dims = 3;
        // Half places are coarse, and reflection with aligned corners divides: powers of two,
        // and for halves no aligned corners.
        if (a.dtype == TOR_float16 || a.dtype == TOR_bfloat16) {
            a.align_corners = false;
            if (a.dtype == TOR_bfloat16 && a.mode == TOR_GRID_nearest) a.mode = TOR_GRID_linear;
        }
        int64_t size = (int64_t)1 << tor_check_range(2, 3);
        if (a.align_corners) size++;
        for (int i = 0; i < 3; i++) {
            bool used = i >= 3 - a.dims;
            a.in_size[i] = used ? size : 1;
            a.out_size[i] = used ? tor_check_range(1, i == 2 ? 70 : 5) : 1;
        }
        one(a);
    }
}

/// Places that are no numbers or far away read nothing.
static void wild(void) {
    static const float wild_places[] = {NAN, INFINITY, -INFINITY, 1e30f, -1e30f, 3e9f};
    for (int mode = 0; mode < 3; mode++)
        for (int padding = 0; padding < 3; padding++)
            for (size_t i = 0; i < TOR_COUNT_OF(wild_places); i++) {
                tor_check_case("mode=%d padding=%d at %g", mode, padding, (double)wild_places[i]);
                TorGridArgs a = {.mode = (TorGridMode)mode,
                                 .padding = (TorGridPadding)padding,
                                 .dtype = TOR_float32,
                                 .dims = 2,
                                 .batch = 1,
                                 .channels = 1,
                                 .in_size = {1, 3, 3},
                                 .out_size = {1, 1, 1},
                                 .x_stride = {9, 9, 9, 3, 1},
                                 .y_stride = {1, 1, 1, 1, 1},
                                 .grid_stride = {2, 2, 2, 2, 1}};
                float *x = tor_check_buffer(36, 4), *grid = tor_check_buffer(8, 4),
                      *y = tor_check_buffer(4, 4);
                for (int k = 0; k < 9; k++) x[k] = (float)k;
                grid[0] = wild_places[i], grid[1] = 0.25f;
                a.x = x, a.grid = grid, a.y = y;
                tor_grid_bind(&a);
                run_team(&a, 1);
                TOR_CHECK(isnan(*y) || (*y >= -4 && *y <= 12));
                tor_check_done();
            }
}

int main(int argc, char **argv) {
    static const TorCheckTest tests[] = {{"places", places}, {"wild", wild}};
    return tor_check_main(argc, argv, tests, TOR_COUNT_OF(tests), NULL, 0);
}

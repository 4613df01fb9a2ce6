/// The bag family against its oracle: modes, types, strides, empty bags, padding, wrong indices.
#include "harness.h"
#include "kernels/bag/contract.h"

static void run_team(const TorBagArgs *a, int threads) {
    tor_check_run(tor_bag_run, a, a->items, a->scratch_bytes, threads);
}

static void store(const TorBagArgs *a, void *data, int64_t at, int64_t value) {
    if (a->index_dtype == TOR_int32)
        ((int32_t *)data)[at] = (int32_t)value;
    else
        ((int64_t *)data)[at] = value;
}

static void one(TorBagArgs a, bool factor, int wrong) {
    tor_check_case("mode=%d %s of %s bags=%d width=%d last=%d padding=%d factor=%d wrong=%d",
                   a.mode, tor_dtype_name(a.dtype), tor_dtype_name(a.index_dtype), (int)a.bags,
                   (int)a.width, a.include_last, (int)a.padding_idx, factor, wrong);
    size_t size = tor_dtype_size(a.dtype), index_size = tor_dtype_size(a.index_dtype);
    bool swapped = tor_check_coin();
    a.w_row = swapped ? 1 : a.width + 3, a.w_col = swapped ? a.rows : 1;
    a.index_stride = tor_check_range(1, 2), a.offset_stride = tor_check_range(1, 2);
    a.factor_stride = tor_check_range(0, 2), a.y_row = a.width + tor_check_range(0, 2);
    int64_t cells = (a.rows + 1) * (a.width + 3);
    void *w = tor_check_buffer((size_t)cells * size, size);
    tor_check_fill(a.dtype, w, cells, a.mode == TOR_BAG_max ? TOR_FILL_SPECIAL : TOR_FILL_UNIFORM);
    void *offsets = tor_check_buffer((size_t)((a.bags + 1) * a.offset_stride) * index_size, 8);
    store(&a, offsets, 0, 0);
    a.count = 0;
    for (int64_t i = 0; i < a.bags; i++) {
        a.count += tor_check_range(0, 3) ? tor_check_range(0, 9) : 0;
        store(&a, offsets, (i + 1) * a.offset_stride, a.count);
    }
    void *index = tor_check_buffer((size_t)((a.count + 1) * a.index_stride) * index_size, 8);
    for (int64_t i = 0; i < a.count; i++)
        store(&a, index, i * a.index_stride, tor_check_range(0, a.rows - 1));
    void *factors = tor_check_buffer((size_t)((a.count + 1) * 2) * size, size);
    tor_check_fill(a.dtype, factors, (a.count + 1) * 2, TOR_FILL_UNIFORM);
    int error = 0;
    a.w = w, a.index = index, a.offsets = offsets, a.factor = factor ? factors : NULL;
    a.error = &error;
    tor_bag_bind(&a);
    size_t bytes = (size_t)(a.bags * a.y_row) * size;
    if (wrong) {
        if (wrong == 1 && a.count) store(&a, index, 0, tor_check_coin() ? a.rows : -1);
        if (wrong == 2) store(&a, offsets, 0, 1);
        a.y = tor_check_buffer(bytes, size);
        int expected = wrong == 1 && !a.count ? 0 : wrong;
        run_team(&a, 2);
        TOR_CHECK(error == expected);
        error = 0;
        tor_bag_run_ref(&a);
        TOR_CHECK(error == expected);
        tor_check_done();
        return;
    }
    void *y[3];
    for (int i = 0; i < 3; i++) {
        a.y = y[i] = tor_check_buffer(bytes, size);
        if (i == 0)
            tor_bag_run_ref(&a);
        else
            run_team(&a, i == 1 ? 1 : 3);
    }
    double tolerance = a.mode == TOR_BAG_max    ? 0
                       : a.dtype == TOR_float64 ? 1e-14
                       : a.dtype == TOR_float32 ? 2e-6
                       : a.dtype == TOR_float16 ? 2e-3
                                                : 1e-2;
    tor_check_compare(a.dtype, y[1], y[0], a.bags * a.y_row, tolerance, tolerance);
    tor_check_same(y[2], y[1], bytes);
    TOR_CHECK(error == 0);
    tor_check_done();
}

static void bags(void) {
    static const TorDtype types[] = {TOR_float32, TOR_float64, TOR_float16, TOR_bfloat16};
    for (int n = 0; n < 300; n++) {
        TorBagArgs a = {.mode = (TorBagMode)(n % 3),
                        .dtype = types[tor_check_range(0, 3)],
                        .index_dtype = tor_check_coin() ? TOR_int64 : TOR_int32,
                        .include_last = tor_check_coin(),
                        .rows = tor_check_range(5, 30),
                        .bags = tor_check_range(8, 20),
                        .width = tor_check_range(1, 40)};
        a.padding_idx = tor_check_coin() ? tor_check_range(0, a.rows - 1) : -1;
        one(a, a.mode == TOR_BAG_sum && tor_check_coin(), n % 10 == 0 ? 1 + n / 10 % 2 : 0);
    }
}

int main(int argc, char **argv) {
    static const TorCheckTest tests[] = {{"bags", bags}};
    return tor_check_main(argc, argv, tests, TOR_COUNT_OF(tests), NULL, 0);
}

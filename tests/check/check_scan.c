/// Running values against the oracle.
#include <math.h>
#include <string.h>

#include "harness.h"
#include "kernels/scan/contract.h"

/// Strides of a tensor with its axes in a random order, gaps and signs.
static int64_t lay_out(int rank, const int64_t *size, int64_t *stride, bool dense, int64_t *first) {
    int order[TOR_SCAN_RANK];
    for (int i = 0; i < rank; i++) order[i] = rank - 1 - i;
    for (int i = rank - 1; i > 0; i--) {
        int j = (int)tor_check_range(0, i), t = order[i];
        order[i] = order[j], order[j] = t;
    }
    int64_t at = dense ? 1 : tor_check_range(1, 2), count = 1;
    *first = 0;
    for (int i = 0; i < rank; i++) {
        int d = order[i];
        int64_t span = TOR_MAX(size[d] - 1, 0) * at;
        stride[d] = at;
        at = at * TOR_MAX(size[d], 1) + (dense ? 0 : tor_check_range(0, 2));
        count += span;
        if (dense || tor_check_range(0, 3)) continue;
        stride[d] = -stride[d];
        *first += span;
    }
    return count;
}

static void check(TorScanArgs *a, TorFill how) {
    int64_t src_first, first, index_first;
    size_t elem = tor_dtype_size(a->dtype);
    bool dense = tor_check_coin();
    int64_t count = lay_out(a->rank, a->size, a->src_stride, dense, &src_first);
    uint8_t *src = tor_check_buffer((size_t)count * elem, elem);
    tor_check_fill(a->dtype, src, count, how);
    a->src = src + (size_t)src_first * elem;
    int64_t places = lay_out(a->rank, a->size, a->dst_stride, dense, &first);
    size_t bytes = (size_t)places * elem,
           index_bytes =
               (size_t)lay_out(a->rank, a->size, a->index_stride, dense, &index_first) * 8;
    uint8_t *want = tor_check_buffer(bytes, elem), *want_index = tor_check_buffer(index_bytes, 8);
    bool extreme = a->kind == TOR_SCAN_max || a->kind == TOR_SCAN_min;
    bool with_dst = !extreme || tor_check_range(0, 4),
         with_index = extreme && tor_check_range(0, 4);
    a->dst = with_dst ? want + (size_t)first * elem : NULL;
    a->index = with_index ? (int64_t *)want_index + index_first : NULL;
    tor_scan_ref(a);
    int ran = 0;
    const TorScanKernel *kernel = NULL;
    for (int i = -1; i < 0 || (kernel = tor_scan_kernel(i)); i++) {
        TorScanArgs bound = *a;
        if (i < 0)
            tor_scan_bind(&bound);
        else if (!tor_scan_bind_kernel(&bound, kernel))
            continue;
        ran++;
        for (int threads = 1; threads < 4; threads += 2) {
            uint8_t *got = tor_check_buffer(bytes, elem),
                    *got_index = tor_check_buffer(index_bytes, 8);
            bound.dst = with_dst ? got + (size_t)first * elem : NULL;
            bound.index = with_index ? (int64_t *)got_index + index_first : NULL;
            tor_check_run(tor_scan_run, &bound, bound.items, 0, threads);
            if (extreme || !tor_dtype_is_float(a->dtype))
                tor_check_same(got, want, bytes);
            else
                tor_check_compare(a->dtype, got, want, places,
                                  a->kind == TOR_SCAN_logsumexp ? 1e-12 : 0, 0);
            tor_check_same(got_index, want_index, index_bytes);
        }
    }
    TOR_CHECK(ran > 1);
}

static void scans_of(TorScanKind kind, bool special) {
    for (int round = 0; round < 120; round++) {
        TorScanArgs a = {.kind = kind, .dtype = (TorDtype)(round % TOR_DTYPE_COUNT)};
        if (!tor_scan_takes(kind, a.dtype)) continue;
        a.rank = (int)tor_check_range(round % 9 ? 1 : 0, 3);
        a.axis = a.rank ? (int)tor_check_range(0, a.rank - 1) : 0;
        for (int d = 0; d < a.rank; d++)
            a.size[d] = d == a.axis ? tor_check_range(tor_check_range(0, 20) ? 1 : 0, 120)
                                    : tor_check_range(tor_check_range(0, 20) ? 1 : 0,
                                                      a.rank == 2 ? 150 : 12);
        tor_check_case("%d: %s rank=%d axis=%d size=%d,%d,%d", round, tor_dtype_name(a.dtype),
                       a.rank, a.axis, (int)a.size[0], (int)a.size[1], (int)a.size[2]);
        check(&a, special && tor_check_coin() ? TOR_FILL_SPECIAL : TOR_FILL_UNIFORM);
        tor_check_done();
    }
}

static void sums(void) { scans_of(TOR_SCAN_sum, true); }
static void products(void) { scans_of(TOR_SCAN_prod, true); }
static void log_sums(void) { scans_of(TOR_SCAN_logsumexp, true); }
static void extremes(void) { scans_of(TOR_SCAN_max, true), scans_of(TOR_SCAN_min, true); }

/// Values by hand, so that the oracle is not alone.
static void by_hand(void) {
    float x[6] = {1, 3, 3, NAN, 2, NAN}, y[6], want[6] = {1, 3, 3, NAN, NAN, NAN};
    int64_t index[6], places[6] = {0, 1, 2, 3, 3, 5};
    TorScanArgs a = {.kind = TOR_SCAN_max,
                     .dtype = TOR_float32,
                     .rank = 1,
                     .size = {6},
                     .src_stride = {1},
                     .dst_stride = {1},
                     .index_stride = {1},
                     .src = x,
                     .dst = y,
                     .index = index};
    tor_check_case("running maximum");
    tor_scan_bind(&a);
    tor_scan_run(&a, 0, a.items, NULL);
    tor_check_compare(TOR_float32, y, want, 6, 0, 0);
    tor_check_same(index, places, sizeof places);
    tor_check_done();

    int8_t small[3] = {100, 100, 100}, sums_of_small[3], wrapped[3] = {100, -56, 44};
    TorScanArgs b = {.kind = TOR_SCAN_sum,
                     .dtype = TOR_int8,
                     .rank = 1,
                     .size = {3},
                     .src_stride = {1},
                     .dst_stride = {1},
                     .src = small,
                     .dst = sums_of_small};
    tor_check_case("wrapping sum");
    tor_scan_bind(&b);
    tor_scan_run(&b, 0, b.items, NULL);
    tor_check_same(sums_of_small, wrapped, sizeof wrapped);
    tor_check_done();
}

static void call_scan(void *args) {
    const TorScanArgs *a = args;
    tor_scan_run(a, 0, a->items, NULL);
}

static void bench_one(const char *name, TorScanKind kind, int axis, int64_t rows, int64_t n) {
    tor_check_case("%s", name);
    size_t bytes = (size_t)(rows * n) * 4;
    TorScanArgs a = {
        .kind = kind, .dtype = TOR_float32, .rank = 2, .axis = axis, .size = {rows, n}};
    a.src_stride[0] = a.dst_stride[0] = a.index_stride[0] = n;
    a.src_stride[1] = a.dst_stride[1] = a.index_stride[1] = 1;
    void *src = tor_check_buffer(bytes, 64);
    tor_check_fill(TOR_float32, src, rows * n, TOR_FILL_UNIFORM);
    a.src = src;
    a.dst = tor_check_buffer(bytes, 64);
    a.index = tor_check_buffer(bytes * 2, 64);
    tor_scan_bind(&a);
    tor_check_bench_bytes(name, 2.0 * (double)bytes, call_scan, &a);
    tor_check_done();
}

static void bench(void) {
    bench_one("cumsum f32 [512, 1024] last axis", TOR_SCAN_sum, 1, 512, 1024);
    bench_one("cumsum f32 [512, 1024] first axis", TOR_SCAN_sum, 0, 512, 1024);
    bench_one("cumprod f32 [512, 1024] first axis", TOR_SCAN_prod, 0, 512, 1024);
    bench_one("cummax f32 [512, 1024] last axis", TOR_SCAN_max, 1, 512, 1024);
    bench_one("cummax f32 [512, 1024] first axis", TOR_SCAN_max, 0, 512, 1024);
    bench_one("logcumsumexp f32 [64, 1024]", TOR_SCAN_logsumexp, 1, 64, 1024);
}

int main(int argc, char **argv) {
    static const TorCheckTest tests[] = {{"sums", sums},
                                         {"products", products},
                                         {"log_sums", log_sums},
                                         {"extremes", extremes},
                                         {"by_hand", by_hand}};
    static const TorCheckTest benches[] = {{"lines", bench}};
    return tor_check_main(argc, argv, tests, TOR_COUNT_OF(tests), benches, TOR_COUNT_OF(benches));
}

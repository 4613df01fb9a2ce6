/// Order statistics and binary searches against the oracles; every sort is stable, so results must
/// be the same bit for bit.
#include <math.h>
#include <string.h>

#include "harness.h"
#include "kernels/sort/contract.h"

/// Strides of a tensor with its axes in a random order, gaps and signs.
static int64_t lay_out(int rank, const int64_t *size, int64_t *stride, int64_t *first) {
    int order[TOR_SORT_RANK];
    for (int i = 0; i < rank; i++) order[i] = rank - 1 - i;
    for (int i = rank - 1; i > 0; i--) {
        int j = (int)tor_check_range(0, i), t = order[i];
        order[i] = order[j], order[j] = t;
    }
    int64_t at = tor_check_range(1, 2), count = 1;
    *first = 0;
    for (int i = 0; i < rank; i++) {
        int d = order[i];
        int64_t span = TOR_MAX(size[d] - 1, 0) * at;
        stride[d] = at;
        at = at * TOR_MAX(size[d], 1) + tor_check_range(0, 2);
        count += span;
        if (tor_check_range(0, 3)) continue;
        stride[d] = -stride[d];
        *first += span;
    }
    return count;
}

/// Uniform, special, or few different values with both zeros and NaN.
static void fill(TorDtype dtype, void *data, int64_t count) {
    int64_t kind = tor_check_range(0, 2);
    tor_check_fill(dtype, data, count, kind == 0 ? TOR_FILL_UNIFORM : TOR_FILL_SPECIAL);
    for (int64_t i = 0; i < count && kind == 2; i++) {
        static const double few[] = {0, -0.0, 1, -1, 2, NAN};
        TorScalar x = {.dtype = dtype};
        if (tor_dtype_is_float(dtype))
            x.f = few[tor_check_range(0, 5)];
        else
            x = tor_scalar_cast((TorScalar){.dtype = TOR_int64, .i = tor_check_range(-2, 3)},
                                dtype);
        tor_scalar_store((uint8_t *)data + (size_t)i * tor_dtype_size(dtype), x);
    }
}

static void check(TorSortArgs *a) {
    int64_t first, value_first, index_first, size[TOR_SORT_RANK];
    size_t elem = tor_dtype_size(a->dtype);
    int64_t count = lay_out(a->rank, a->size, a->src_stride, &first);
    uint8_t *src = tor_check_buffer((size_t)count * elem, elem);
    fill(a->dtype, src, count);
    a->src = src + (size_t)first * elem;
    memcpy(size, a->size, sizeof size);
    size[a->axis] = a->kind == TOR_SORT_all   ? a->size[a->axis]
                    : a->kind == TOR_SORT_top ? TOR_MIN(a->k, a->size[a->axis])
                                              : 1;
    size_t values = (size_t)lay_out(a->rank, size, a->value_stride, &value_first) * elem,
           indices = (size_t)lay_out(a->rank, size, a->index_stride, &index_first) * 8;
    uint8_t *want = tor_check_buffer(values, elem), *want_index = tor_check_buffer(indices, 8);
    bool with_values = tor_check_range(0, 5) != 0, with_indices = tor_check_range(0, 5) != 0;
    a->values = with_values ? want + (size_t)value_first * elem : NULL;
    a->indices = with_indices ? (int64_t *)want_index + index_first : NULL;
    tor_sort_ref(a, tor_check_buffer((size_t)a->size[a->axis] * 8, 8));
    int ran = 0;
    const TorSortKernel *kernel = NULL;
    for (int i = -1; i < 0 || (kernel = tor_sort_kernel(i)); i++) {
        TorSortArgs bound = *a;
        if (i < 0)
            tor_sort_bind(&bound);
        else if (!tor_sort_bind_kernel(&bound, kernel))
            continue;
        ran++;
        for (int threads = 1; threads < 4; threads += 2) {
            uint8_t *got = tor_check_buffer(values, elem),
                    *got_index = tor_check_buffer(indices, 8);
            bound.values = with_values ? got + (size_t)value_first * elem : NULL;
            bound.indices = with_indices ? (int64_t *)got_index + index_first : NULL;
            tor_check_run(tor_sort_run, &bound, bound.items, bound.scratch_bytes, threads);
            tor_check_same(got, want, values);
            tor_check_same(got_index, want_index, indices);
        }
    }
    TOR_CHECK(ran > 1);
}

static void lines_of(TorSortKind kind, int rounds) {
    for (int round = 0; round < rounds; round++) {
        TorSortArgs a = {.kind = kind, .dtype = (TorDtype)(round % TOR_DTYPE_COUNT)};
        a.rank = (int)tor_check_range(1, 3);
        a.axis = (int)tor_check_range(0, a.rank - 1);
        a.descending = (kind == TOR_SORT_all || kind == TOR_SORT_top) && tor_check_coin();
        for (int d = 0; d < a.rank; d++)
            a.size[d] = d == a.axis ? tor_check_range(kind < TOR_SORT_kth ? 0 : 1, 40)
                                    : tor_check_range(tor_check_range(0, 20) ? 1 : 0, 9);
        // Past the sizes at which ways of sorting change.
        if (round % 4 == 0)
            for (int d = 0; d < a.rank; d++)
                a.size[d] = d != a.axis             ? TOR_MIN(a.size[d], 2)
                            : kind == TOR_SORT_mode ? tor_check_range(1, 300)
                                                    : tor_check_range(1, 1500);
        int64_t n = a.size[a.axis];
        a.k = kind == TOR_SORT_kth ? tor_check_range(1, n)
              : tor_check_coin()   ? tor_check_range(0, n)
                                   : tor_check_range(0, TOR_MIN(n, 7));
        tor_check_case("%d: %s rank=%d axis=%d n=%d k=%d", round, tor_dtype_name(a.dtype), a.rank,
                       a.axis, (int)n, (int)a.k);
        check(&a);
        tor_check_done();
    }
}

static void sorts(void) { lines_of(TOR_SORT_all, 240); }
static void tops(void) { lines_of(TOR_SORT_top, 240); }
static void middles(void) {
    lines_of(TOR_SORT_kth, 80), lines_of(TOR_SORT_median, 120), lines_of(TOR_SORT_nanmedian, 120);
}
static void modes(void) { lines_of(TOR_SORT_mode, 80); }

/// Values by hand, so that the oracle is not alone.
static void by_hand(void) {
    float x[7] = {2, NAN, -0.0f, 1, 0.0f, 2, -INFINITY}, values[7];
    int64_t indices[7], order[7] = {6, 2, 4, 3, 0, 5, 1}, inverse[7] = {1, 0, 5, 3, 2, 4, 6};
    TorSortArgs a = {.kind = TOR_SORT_all,
                     .dtype = TOR_float32,
                     .rank = 1,
                     .k = 3,
                     .size = {7},
                     .src_stride = {1},
                     .value_stride = {1},
                     .index_stride = {1},
                     .src = x,
                     .values = values,
                     .indices = indices};
    tor_check_case("ascending");
    tor_sort_bind(&a);
    tor_check_run(tor_sort_run, &a, a.items, a.scratch_bytes, 1);
    tor_check_same(indices, order, sizeof order);
    TOR_CHECK(values[0] == -INFINITY && signbit(values[1]) && !signbit(values[2]));
    tor_check_done();

    tor_check_case("descending");
    a.descending = true;
    tor_sort_bind(&a);
    tor_check_run(tor_sort_run, &a, a.items, a.scratch_bytes, 1);
    tor_check_same(indices, inverse, sizeof inverse);
    tor_check_done();

    static const struct {
        TorSortKind kind;
        int64_t index;
    } cases[] = {
        {TOR_SORT_kth, 4}, {TOR_SORT_median, 1}, {TOR_SORT_nanmedian, 4}, {TOR_SORT_mode, 4}};
    for (size_t i = 0; i < TOR_COUNT_OF(cases); i++) {
        tor_check_case("kind %d", (int)cases[i].kind);
        a.kind = cases[i].kind, a.descending = false;
        tor_sort_bind(&a);
        tor_check_run(tor_sort_run, &a, a.items, a.scratch_bytes, 1);
        TOR_CHECK(indices[0] == cases[i].index);
        tor_check_done();
    }
}

static void searches(void) {
    for (int round = 0; round < 200; round++) {
        TorSearchArgs a = {.dtype = (TorDtype)(round % TOR_DTYPE_COUNT),
                           .dst_dtype = tor_check_coin() ? TOR_int64 : TOR_int32,
                           .right = tor_check_coin()};
        size_t elem = tor_dtype_size(a.dtype), dst_elem = tor_dtype_size(a.dst_dtype);
        bool shared = tor_check_coin();
        a.rank = (int)tor_check_range(0, 3);
        a.n = tor_check_range(0, 70);
        for (int d = 0; d < a.rank; d++) a.size[d] = tor_check_range(1, a.rank == 1 ? 1500 : 20);
        tor_check_case("%d: %s rank=%d n=%d", round, tor_dtype_name(a.dtype), a.rank, (int)a.n);
        // Lines come from the sort's oracle.
        TorSortArgs s = {.kind = TOR_SORT_all, .dtype = a.dtype, .rank = 2, .axis = 1};
        int64_t lines = 1, first, dst_first;
        for (int d = a.rank - 2; d >= 0 && !shared; d--) {
            a.sorted_stride[d] = lines * a.n;
            lines *= a.size[d];
        }
        a.line_stride = 1;
        s.size[0] = lines, s.size[1] = a.n;
        s.src_stride[0] = s.value_stride[0] = a.n, s.src_stride[1] = s.value_stride[1] = 1;
        uint8_t *raw = tor_check_buffer((size_t)(lines * a.n) * elem, elem),
                *sorted = tor_check_buffer((size_t)(lines * a.n) * elem, elem);
        fill(a.dtype, raw, lines * a.n);
        s.src = raw, s.values = sorted;
        tor_sort_ref(&s, tor_check_buffer((size_t)a.n * 8, 8));
        a.sorted = sorted;
        int64_t count = lay_out(a.rank, a.size, a.value_stride, &first);
        uint8_t *values = tor_check_buffer((size_t)count * elem, elem);
        fill(a.dtype, values, count);
        a.values = values + (size_t)first * elem;
        size_t bytes = (size_t)lay_out(a.rank, a.size, a.dst_stride, &dst_first) * dst_elem;
        uint8_t *want = tor_check_buffer(bytes, dst_elem);
        a.dst = want + (size_t)dst_first * dst_elem;
        tor_search_ref(&a);
        tor_search_bind(&a);
        for (int threads = 1; threads < 4; threads += 2) {
            uint8_t *got = tor_check_buffer(bytes, dst_elem);
            a.dst = got + (size_t)dst_first * dst_elem;
            tor_check_run(tor_search_run, &a, a.items, 0, threads);
            tor_check_same(got, want, bytes);
        }
        tor_check_done();
    }
}

static uint8_t *bench_scratch;

static void call_sort(void *args) {
    const TorSortArgs *a = args;
    tor_sort_run(a, 0, a->items, bench_scratch);
}

static void bench_one(const char *name, TorSortKind kind, TorDtype dtype, int64_t rows, int64_t n,
                      int64_t k) {
    tor_check_case("%s", name);
    size_t bytes = (size_t)(rows * n) * tor_dtype_size(dtype);
    TorSortArgs a = {.kind = kind,
                     .dtype = dtype,
                     .descending = kind == TOR_SORT_top,
                     .rank = 2,
                     .axis = 1,
                     .k = k,
                     .size = {rows, n}};
    a.src_stride[0] = a.value_stride[0] = a.index_stride[0] = n;
    a.src_stride[1] = a.value_stride[1] = a.index_stride[1] = 1;
    void *src = tor_check_buffer(bytes, 64);
    tor_check_fill(dtype, src, rows * n, TOR_FILL_UNIFORM);
    a.src = src;
    a.values = tor_check_buffer(bytes, 64);
    a.indices = tor_check_buffer((size_t)(rows * n) * 8, 64);
    tor_sort_bind(&a);
    bench_scratch = tor_check_buffer(a.scratch_bytes, 64);
    tor_check_bench_bytes(name, (double)bytes, call_sort, &a);
    tor_check_done();
}

static void bench(void) {
    bench_one("sort f32 [1, 1M]", TOR_SORT_all, TOR_float32, 1, 1 << 20, 0);
    bench_one("sort f32 [64, 4096]", TOR_SORT_all, TOR_float32, 64, 4096, 0);
    bench_one("sort f32 [4096, 64]", TOR_SORT_all, TOR_float32, 4096, 64, 0);
    bench_one("sort i64 [64, 4096]", TOR_SORT_all, TOR_int64, 64, 4096, 0);
    bench_one("topk 5 f32 [1, 1M]", TOR_SORT_top, TOR_float32, 1, 1 << 20, 5);
    bench_one("topk 50 f32 [4, 50257]", TOR_SORT_top, TOR_float32, 4, 50257, 50);
    bench_one("topk 8 f32 [512, 128]", TOR_SORT_top, TOR_float32, 512, 128, 8);
    bench_one("median f32 [64, 4096]", TOR_SORT_median, TOR_float32, 64, 4096, 0);
}

int main(int argc, char **argv) {
    static const TorCheckTest tests[] = {{"sorts", sorts},     {"tops", tops},
                                         {"middles", middles}, {"modes", modes},
                                         {"by_hand", by_hand}, {"searches", searches}};
    static const TorCheckTest benches[] = {{"lines", bench}};
    return tor_check_main(argc, argv, tests, TOR_COUNT_OF(tests), benches, TOR_COUNT_OF(benches));
}

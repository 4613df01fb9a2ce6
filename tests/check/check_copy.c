/// Copies, fills and aranges against the oracle.
#include <math.h>
#include <string.h>

#include "harness.h"
#include "kernels/copy/contract.h"

typedef struct {
    TorCopyArgs args;
    int64_t src_first, src_count, dst_first, dst_count;  ///< of element [0, 0, ...], and of all
} Problem;

/// Random strides: axes in a random order, gaps, signs; src may broadcast.
static void strides(int rank, const int64_t *size, int64_t *stride, bool broadcast, bool dense,
                    int64_t *first, int64_t *count) {
    int order[TOR_COPY_RANK];
    for (int i = 0; i < rank; i++) order[i] = i;
    for (int i = rank - 1; i > 0; i--) {
        int j = (int)tor_check_range(0, i), t = order[i];
        order[i] = order[j], order[j] = t;
    }
    int64_t at = dense ? 1 : tor_check_range(1, 2);
    *first = 0, *count = 1;
    for (int i = 0; i < rank; i++) {
        int d = order[i];
        if (broadcast && tor_check_range(0, 4) == 0) {
            stride[d] = 0;
            continue;
        }
        stride[d] = at;
        at = at * TOR_MAX(size[d], 1) + (dense ? 0 : tor_check_range(0, 2));
        int64_t span = TOR_MAX(size[d] - 1, 0) * stride[d];
        *count += span;
        if (!dense && tor_check_range(0, 3) == 0) {
            stride[d] = -stride[d];
            *first += span;
        }
    }
    for (int i = 0; i < rank; i++)
        if (size[i] == 0) *count = 0, *first = 0;
}

static void check(Problem *p) {
    size_t bytes = (size_t)p->dst_count * (size_t)p->args.elem_bytes,
           at = (size_t)p->dst_first * (size_t)p->args.elem_bytes;
    size_t src_bytes = (size_t)p->src_count * (size_t)p->args.elem_bytes;
    uint8_t *src = tor_check_buffer(src_bytes, (size_t)p->args.elem_bytes);
    for (size_t i = 0; i < src_bytes; i++) src[i] = (uint8_t)tor_check_random();
    p->args.src = src + (size_t)p->src_first * (size_t)p->args.elem_bytes;
    uint8_t *want = tor_check_buffer(bytes, (size_t)p->args.elem_bytes);
    memset(want, TOR_CHECK_GUARD, bytes);
    p->args.dst = want + at;
    tor_copy_ref(&p->args);
    const TorCopyKernel *kernel;
    int ran = 0;
    for (int i = -1; i < 0 || (kernel = tor_copy_kernel(i)); i++) {
        TorCopyArgs args = p->args;
        if (i < 0)
            tor_copy_bind(&args);
        else if (!tor_copy_bind_kernel(&args, kernel) || args.items == 0)
            continue;
        ran++;
        for (int threads = 1; threads < 4; threads += 2) {
            uint8_t *got = tor_check_buffer(bytes, (size_t)p->args.elem_bytes);
            memset(got, TOR_CHECK_GUARD, bytes);
            args.dst = got + at;
            tor_check_run(tor_copy_run, &args, args.items, 0, threads);
            tor_check_same(got, want, bytes);
        }
    }
    TOR_CHECK(ran > 1 || bytes == 0 || src_bytes == 0);
}

static void random_copies(void) {
    for (int round = 0; round < 600; round++) {
        Problem p = {0};
        TorCopyArgs *a = &p.args;
        a->rank = (int)tor_check_range(0, round % 20 ? 4 : TOR_COPY_RANK);
        a->elem_bytes = 1 << tor_check_range(0, 3);
        int64_t most = a->rank <= 1   ? 40000
                       : a->rank == 2 ? 200
                       : a->rank == 3 ? 40
                       : a->rank == 4 ? 12
                                      : 3;
        for (int d = 0; d < a->rank; d++)
            a->size[d] = tor_check_range(tor_check_range(0, 30) ? 1 : 0, most);
        bool dense = tor_check_coin();
        strides(a->rank, a->size, a->src_stride, tor_check_coin(), dense, &p.src_first,
                &p.src_count);
        strides(a->rank, a->size, a->dst_stride, false, dense, &p.dst_first, &p.dst_count);
        tor_check_case("%d: rank=%d bytes=%d size=%d,%d,%d dense=%d", round, a->rank, a->elem_bytes,
                       (int)a->size[0], (int)a->size[1], (int)a->size[2], dense);
        check(&p);
        tor_check_done();
    }
}

/// Sizes around the register tiles and the cache blocks.
static void transposes(void) {
    static const int64_t size[] = {1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 63, 64, 65, 130};
    for (int bytes = 1; bytes <= 8; bytes *= 2)
        for (size_t i = 0; i < TOR_COUNT_OF(size); i++)
            for (size_t j = 0; j < TOR_COUNT_OF(size); j++) {
                int64_t m = size[i], n = size[j];
                tor_check_case("bytes=%d %d x %d", bytes, (int)m, (int)n);
                Problem p = {.args = {.rank = 3,
                                      .elem_bytes = bytes,
                                      .size = {2, m, n},
                                      .src_stride = {m * n, 1, m},
                                      .dst_stride = {m * n + 1, n, 1}},
                             .src_count = 2 * m * n,
                             .dst_count = 2 * m * n + 1};
                check(&p);
                tor_check_done();
            }
}

static void fills(void) {
    for (int round = 0; round < 100; round++) {
        TorFillArgs fill = {
            .copy = {.rank = (int)tor_check_range(0, 3), .elem_bytes = 1 << tor_check_range(0, 3)}};
        for (int d = 0; d < fill.copy.rank; d++)
            fill.copy.size[d] = tor_check_range(1, fill.copy.rank == 1 ? 70000 : 50);
        for (int i = 0; i < 8; i++) fill.value[i] = (uint8_t)tor_check_random();
        int64_t first, count;
        strides(fill.copy.rank, fill.copy.size, fill.copy.dst_stride, false, tor_check_coin(),
                &first, &count);
        tor_check_case("%d: rank=%d bytes=%d", round, fill.copy.rank, fill.copy.elem_bytes);
        size_t elem = (size_t)fill.copy.elem_bytes, bytes = (size_t)count * elem;
        uint8_t *got = tor_check_buffer(bytes, elem), *want = tor_check_buffer(bytes, elem);
        memset(got, TOR_CHECK_GUARD, bytes), memset(want, TOR_CHECK_GUARD, bytes);
        fill.copy.dst = want + (size_t)first * elem;
        tor_fill_ref(&fill);
        fill.copy.dst = got + (size_t)first * elem;
        tor_fill_bind(&fill);
        tor_check_run(tor_fill_run, &fill, fill.copy.items, 0, 3);
        tor_check_same(got, want, bytes);
        tor_check_done();
    }
}

static void aranges(void) {
    for (int dtype = 0; dtype < TOR_DTYPE_COUNT; dtype++)
        for (int round = 0; round < 4; round++) {
            TorArangeArgs a = {.dtype = (TorDtype)dtype,
                               .n = round ? tor_check_range(1, 10000) : 0,
                               .dst_stride = tor_check_range(1, 2)};
            bool real = tor_dtype_is_float(a.dtype);
            a.start.dtype = a.step.dtype = real ? TOR_float64 : TOR_int64;
            if (real)
                a.start.f = tor_check_uniform(), a.step.f = tor_check_uniform() / 100;
            else
                a.start.i = tor_check_range(-100, 100), a.step.i = tor_check_range(-3, 3);
            tor_check_case("%s n=%d", tor_dtype_name(a.dtype), (int)a.n);
            size_t elem = tor_dtype_size(a.dtype), bytes = (size_t)(a.n * a.dst_stride) * elem;
            uint8_t *got = tor_check_buffer(bytes, elem), *want = tor_check_buffer(bytes, elem);
            memset(got, TOR_CHECK_GUARD, bytes), memset(want, TOR_CHECK_GUARD, bytes);
            a.dst = got;
            tor_arange_bind(&a);
            tor_check_run(tor_arange_run, &a, a.items, 0, 3);
            a.dst = want;
            tor_arange_ref(&a);
            if (tor_dtype_is_half(a.dtype))  // the compiler may or may not fuse the multiplication
                tor_check_compare(a.dtype, got, want, a.n * a.dst_stride, 0.01, 1e-4);
            else
                tor_check_same(got, want, bytes);
            tor_check_done();
        }
}

static void bench_call(void *args) {
    const TorCopyArgs *a = args;
    tor_copy_run(a, 0, a->items, NULL);
}

static void bench_one(const char *name, TorCopyArgs a) {
    tor_check_case("%s", name);
    int64_t count = 1;
    for (int d = 0; d < a.rank; d++) count *= a.size[d];
    size_t bytes = (size_t)count * (size_t)a.elem_bytes;
    void *src = tor_check_buffer(bytes, 64);
    a.src = src, a.dst = tor_check_buffer(bytes, 64);
    tor_copy_bind(&a);
    bench_call(&a);
    tor_check_bench_bytes(name, 2.0 * (double)bytes, bench_call, &a);
    tor_check_done();
}

static void bench(void) {
    bench_one(
        "contiguous 32 MB",
        (TorCopyArgs){
            .rank = 1, .elem_bytes = 4, .size = {8 << 20}, .src_stride = {1}, .dst_stride = {1}});
    bench_one(
        "contiguous 128 KB",
        (TorCopyArgs){
            .rank = 1, .elem_bytes = 4, .size = {32 << 10}, .src_stride = {1}, .dst_stride = {1}});
    bench_one("transpose f32 2048 x 2048", (TorCopyArgs){.rank = 2,
                                                         .elem_bytes = 4,
                                                         .size = {2048, 2048},
                                                         .src_stride = {1, 2048},
                                                         .dst_stride = {2048, 1}});
    bench_one("transpose f32 2000 x 2000", (TorCopyArgs){.rank = 2,
                                                         .elem_bytes = 4,
                                                         .size = {2000, 2000},
                                                         .src_stride = {1, 2000},
                                                         .dst_stride = {2000, 1}});
    bench_one("transpose f32 128 x 128", (TorCopyArgs){.rank = 2,
                                                       .elem_bytes = 4,
                                                       .size = {128, 128},
                                                       .src_stride = {1, 128},
                                                       .dst_stride = {128, 1}});
    bench_one("transpose f64 1000 x 1000", (TorCopyArgs){.rank = 2,
                                                         .elem_bytes = 8,
                                                         .size = {1000, 1000},
                                                         .src_stride = {1, 1000},
                                                         .dst_stride = {1000, 1}});
    bench_one("transpose f16 2000 x 2000", (TorCopyArgs){.rank = 2,
                                                         .elem_bytes = 2,
                                                         .size = {2000, 2000},
                                                         .src_stride = {1, 2000},
                                                         .dst_stride = {2000, 1}});
    bench_one("transpose u8 2000 x 2000", (TorCopyArgs){.rank = 2,
                                                        .elem_bytes = 1,
                                                        .size = {2000, 2000},
                                                        .src_stride = {1, 2000},
                                                        .dst_stride = {2000, 1}});
    bench_one("heads [128,12,64] to [12,128,64]", (TorCopyArgs){.rank = 3,
                                                                .elem_bytes = 4,
                                                                .size = {12, 128, 64},
                                                                .src_stride = {64, 768, 1},
                                                                .dst_stride = {8192, 64, 1}});
    bench_one("nhwc [56*56,64] to nchw", (TorCopyArgs){.rank = 2,
                                                       .elem_bytes = 4,
                                                       .size = {64, 3136},
                                                       .src_stride = {1, 64},
                                                       .dst_stride = {3136, 1}});
    bench_one("rgb nchw to nhwc 224*224*3", (TorCopyArgs){.rank = 2,
                                                          .elem_bytes = 4,
                                                          .size = {50176, 3},
                                                          .src_stride = {1, 50176},
                                                          .dst_stride = {3, 1}});
    bench_one("broadcast rows [4096, 256]", (TorCopyArgs){.rank = 2,
                                                          .elem_bytes = 4,
                                                          .size = {4096, 256},
                                                          .src_stride = {0, 1},
                                                          .dst_stride = {256, 1}});
}

int main(int argc, char **argv) {
    static const TorCheckTest tests[] = {{"random_copies", random_copies},
                                         {"transposes", transposes},
                                         {"fills", fills},
                                         {"aranges", aranges}};
    static const TorCheckTest benches[] = {{"copies", bench}};
    return tor_check_main(argc, argv, tests, TOR_COUNT_OF(tests), benches, TOR_COUNT_OF(benches));
}

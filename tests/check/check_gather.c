/// Every indexing op as the contract maps it onto loops, against the oracle.
#include <string.h>

#include "harness.h"
#include "kernels/gather/contract.h"

typedef struct {
    TorIndexArgs args;
    int64_t data_count, other_count;
    int error;
} Problem;

/// Strides of a tensor with its axes in a random order and gaps; 0 for some axes if `broadcast`.
static int64_t lay_out(int rank, const int64_t *size, int64_t *stride, bool broadcast) {
    int order[TOR_INDEX_RANK];
    bool plain = tor_check_coin();
    for (int i = 0; i < rank; i++) order[i] = rank - 1 - i;
    for (int i = rank - 1; i > 0 && !plain; i--) {
        int j = (int)tor_check_range(0, i), t = order[i];
        order[i] = order[j], order[j] = t;
    }
    int64_t at = plain ? 1 : tor_check_range(1, 2), count = 1;
    for (int i = 0; i < rank; i++) {
        int d = order[i];
        stride[d] = broadcast && tor_check_range(0, 4) == 0 ? 0 : at;
        if (stride[d]) at = at * size[d] + (plain ? 0 : tor_check_range(0, 2));
        count += (size[d] - 1) * stride[d];
    }
    return count;
}

/// kind 0: index tensors broadcast together (embedding, index_select, index, index_put,
/// index_copy); kind 1: an index of the data's rank along one axis (gather, scatter).
static void make(Problem *p, TorDtype dtype, bool scatter, bool out_of_range) {
    TorIndexArgs *a = &p->args;
    int64_t size[4], stride[4], most;
    int rank = (int)tor_check_range(1, 4), kind = (int)tor_check_range(0, 1);
    memset(p, 0, sizeof *p);
    most = rank == 1 ? 3000 : rank == 2 ? 150 : rank == 3 ? 40 : 9;
    for (int d = 0; d < rank; d++) size[d] = tor_check_range(1, most);
    p->data_count = lay_out(rank, size, stride, false);
    a->dtype = dtype;
    a->wrap = tor_check_coin();
    a->n_index = kind ? 1 : (int)tor_check_range(1, TOR_MIN(rank, 3));
    int axis = (int)tor_check_range(0, rank - a->n_index), index_rank = 0;
    int64_t index_size[4];
    if (kind) {
        a->rank = rank;
        for (int d = 0; d < rank; d++) {
            a->size[d] = d == axis ? tor_check_range(1, 2 * most) : tor_check_range(1, size[d]);
            a->data_stride[d] = d == axis ? 0 : stride[d];
        }
        index_rank = rank;
        memcpy(index_size, a->size, sizeof index_size);
    } else {
        // The indexed axes are neighbours, as numpy places them; the index dims stand in their
        // place.
        index_rank = (int)tor_check_range(0, 2);
        for (int i = 0; i < index_rank; i++)
            index_size[i] = tor_check_range(1, index_rank == 1 ? 200 : 14);
        for (int d = 0; d < axis; d++)
            a->size[a->rank] = size[d], a->data_stride[a->rank++] = stride[d];
        for (int i = 0; i < index_rank; i++) a->size[a->rank++] = index_size[i];
        for (int d = axis + a->n_index; d < rank; d++)
            a->size[a->rank] = size[d], a->data_stride[a->rank++] = stride[d];
    }
    for (int k = 0; k < a->n_index; k++) {
        static const TorDtype types[] = {TOR_int64, TOR_int64, TOR_int32,
                                         TOR_int16, TOR_int8,  TOR_uint8};
        int64_t own[4], first = kind ? 0 : axis;
        a->axis_size[k] = size[axis + k], a->axis_stride[k] = stride[axis + k];
        a->index_dtype[k] = types[tor_check_range(0, a->axis_size[k] > 100 ? 3 : 5)];
        int64_t count = lay_out(index_rank, index_size, own, true);
        for (int i = 0; i < index_rank; i++) a->index_stride[k][first + i] = own[i];
        size_t bytes = tor_dtype_size(a->index_dtype[k]);
        uint8_t *index = tor_check_buffer((size_t)count * bytes, bytes);
        for (int64_t i = 0; i < count; i++) {
            int64_t n = a->axis_size[k], least = a->wrap && a->index_dtype[k] != TOR_uint8 ? -n : 0;
            int64_t value = tor_check_range(least, n - 1);
            if (out_of_range && tor_check_range(0, 3) == 0)
                value = tor_check_coin() && a->index_dtype[k] != TOR_uint8 ? -n - 1 : n + 3;
            tor_scalar_store(index + (size_t)i * bytes,
                             (TorScalar){.dtype = a->index_dtype[k], .i = value});
        }
        a->index[k] = index;
    }
    p->other_count = lay_out(a->rank, a->size, a->other_stride, scatter && tor_check_coin());
    a->error = &p->error;
}

static void check(Problem *p, bool scatter) {
    size_t elem = tor_dtype_size(p->args.dtype);
    size_t bytes = (size_t)(scatter ? p->data_count : p->other_count) * elem;
    size_t src_bytes = (size_t)(scatter ? p->other_count : p->data_count) * elem;
    uint8_t *src = tor_check_buffer(src_bytes, elem), *base = tor_check_buffer(bytes, elem);
    tor_check_fill(p->args.dtype, src, (int64_t)(src_bytes / elem), TOR_FILL_UNIFORM);
    if (scatter)
        tor_check_fill(p->args.dtype, base, (int64_t)(bytes / elem), TOR_FILL_UNIFORM);
    else
        memset(base, TOR_CHECK_GUARD, bytes);
    uint8_t *want = tor_check_buffer(bytes, elem);
    memcpy(want, base, bytes);
    TorIndexArgs args = p->args;
    *(scatter ? &args.data : &args.other) = want;
    *(scatter ? &args.other : &args.data) = src;
    (scatter ? tor_scatter_ref : tor_gather_ref)(&args);
    int expected = p->error, ran = 0;
    const TorIndexKernel *kernel = NULL;
    for (int i = -1; i < 0 || (kernel = tor_index_kernel(i)); i++) {
        TorIndexArgs bound = args;
        if (i < 0)
            (scatter ? tor_scatter_bind : tor_gather_bind)(&bound);
        else if (!(scatter ? tor_scatter_bind_kernel : tor_gather_bind_kernel)(&bound, kernel))
            continue;
        ran++;
        for (int threads = 1; threads < 4; threads += 2) {
            uint8_t *got = tor_check_buffer(bytes, elem);
            memcpy(got, base, bytes);
            *(scatter ? &bound.data : &bound.other) = got;
            p->error = 0;
            tor_check_run(scatter ? tor_scatter_run : tor_gather_run, &bound, bound.items, 0,
                          threads);
            tor_check_same(got, want, bytes);
            TOR_CHECK(!p->error == !expected);
        }
        int which;
        int64_t value;
        TOR_CHECK(tor_index_find_error(&bound, &which, &value) == (expected != 0));
    }
    TOR_CHECK(ran > 1);
}

static void many(bool scatter, bool accumulate, bool out_of_range, int rounds) {
    for (int round = 0; round < rounds; round++) {
        TorDtype dtype = (TorDtype)(round % TOR_DTYPE_COUNT);
        tor_check_case("%d: %s", round, tor_dtype_name(dtype));
        Problem p;
        make(&p, dtype, scatter, out_of_range);
        p.args.reduce = !accumulate ? TOR_SCATTER_assign : (TorScatterReduce)tor_check_range(1, 4);
        check(&p, scatter);
        tor_check_done();
    }
}

static void gathers(void) { many(false, false, false, 300); }
static void assigns(void) { many(true, false, false, 300); }
static void reductions(void) { many(true, true, false, 800); }
static void errors(void) {
    many(false, false, true, 60), many(true, false, true, 60), many(true, true, true, 60);
}

/// Values by hand, so that the oracle is not alone: wrapped indices, the last duplicate, sums in
/// order.
static void by_hand(void) {
    int64_t index[4] = {2, -3, 0, 2};
    int error = 0;
    tor_check_case("gather");
    float x[6] = {10, 11, 20, 21, 30, 31}, rows[8] = {0},
          want[8] = {30, 31, 10, 11, 10, 11, 30, 31};
    TorIndexArgs a = {.dtype = TOR_float32,
                      .wrap = true,
                      .rank = 2,
                      .n_index = 1,
                      .size = {4, 2},
                      .data_stride = {0, 1},
                      .other_stride = {2, 1},
                      .index_stride = {{1, 0}},
                      .axis_size = {3},
                      .axis_stride = {2},
                      .index_dtype = {TOR_int64},
                      .data = x,
                      .other = rows,
                      .index = {index},
                      .error = &error};
    TorIndexArgs b = a;
    tor_gather_bind(&b);
    tor_gather_run(&b, 0, b.items, NULL);
    tor_check_same(rows, want, sizeof want);
    tor_check_done();

    tor_check_case("assign");
    float values[8] = {1, 2, 3, 4, 5, 6, 7, 8}, assigned[6] = {5, 6, 20, 21, 7, 8};
    b = a, b.other = values;
    tor_scatter_bind(&b);
    tor_scatter_run(&b, 0, b.items, NULL);
    tor_check_same(x, assigned, sizeof assigned);
    tor_check_done();

    tor_check_case("add");
    float sums[6] = {5 + 3 + 5, 6 + 4 + 6, 20, 21, 7 + 1 + 7, 8 + 2 + 8};
    b = a, b.other = values, b.reduce = TOR_SCATTER_add;
    tor_scatter_bind(&b);
    tor_scatter_run(&b, 0, b.items, NULL);
    tor_check_same(x, sums, sizeof sums);
    TOR_CHECK(error == 0);
    tor_check_done();

    tor_check_case("axis of size 0");
    int which;
    int64_t value;
    b = a, b.axis_size[0] = 0;
    tor_gather_bind(&b);
    memcpy(rows, want, sizeof want);
    tor_gather_run(&b, 0, b.items, NULL);
    TOR_CHECK(error == 1);
    TOR_CHECK(tor_index_find_error(&b, &which, &value) && which == 0 && value == 2);
    tor_check_same(rows, want, sizeof want);
    tor_check_done();

    tor_check_case("empty");
    error = 0;
    b = a, b.size[0] = 0;
    tor_gather_bind(&b);
    TOR_CHECK(b.items == 0);
    tor_check_done();
}

static void call_gather(void *args) {
    const TorIndexArgs *a = args;
    tor_gather_run(a, 0, a->items, NULL);
}

static void call_scatter(void *args) {
    const TorIndexArgs *a = args;
    tor_scatter_run(a, 0, a->items, NULL);
}

static void bench_one(const char *name, bool scatter, bool accumulate, int64_t table, int64_t count,
                      int64_t width) {
    static int error;
    tor_check_case("%s", name);
    int64_t *index = tor_check_buffer((size_t)count * 8, 64);
    for (int64_t i = 0; i < count; i++) index[i] = tor_check_range(0, table - 1);
    TorIndexArgs a = {.dtype = TOR_float32,
                      .reduce = accumulate ? TOR_SCATTER_add : TOR_SCATTER_assign,
                      .rank = 2,
                      .n_index = 1,
                      .size = {count, width},
                      .data_stride = {0, 1},
                      .other_stride = {width, 1},
                      .index_stride = {{1, 0}},
                      .axis_size = {table},
                      .axis_stride = {width},
                      .index_dtype = {TOR_int64},
                      .index = {index},
                      .error = &error};
    a.data = tor_check_buffer((size_t)(table * width) * 4, 64),
    a.other = tor_check_buffer((size_t)(count * width) * 4, 64);
    memset(a.data, 0, (size_t)(table * width) * 4), memset(a.other, 0, (size_t)(count * width) * 4);
    (scatter ? tor_scatter_bind : tor_gather_bind)(&a);
    double bytes = 4.0 * (double)(count * width) * (accumulate ? 3 : 2);
    tor_check_bench_bytes(name, bytes, scatter ? call_scatter : call_gather, &a);
    tor_check_done();
}

static void bench(void) {
    bench_one("embedding [30522, 768], 512 rows", false, false, 30522, 512, 768);
    bench_one("embedding [2000, 384], 4096 rows", false, false, 2000, 4096, 384);
    bench_one("elements [1M], 64k", false, false, 1 << 20, 1 << 16, 1);
    bench_one("index_put 16 rows of 4096", true, false, 2048, 16, 4096);
    bench_one("index_put accumulate [2000, 384], 4096 rows", true, true, 2000, 4096, 384);
}

int main(int argc, char **argv) {
    static const TorCheckTest tests[] = {{"gathers", gathers},
                                         {"assigns", assigns},
                                         {"reductions", reductions},
                                         {"errors", errors},
                                         {"by_hand", by_hand}};
    static const TorCheckTest benches[] = {{"rows", bench}};
    return tor_check_main(argc, argv, tests, TOR_COUNT_OF(tests), benches, TOR_COUNT_OF(benches));
}

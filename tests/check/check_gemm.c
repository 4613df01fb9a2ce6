// The gemm family against its reference: every row, shapes round the tiles, strides, batches,
// packed and strided b, callbacks, epilogues, and bit-identical answers for 1, 2 and 4 threads.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cpu.h"
#include "harness.h"
#include "kernels/gemm/contract.h"

typedef enum {
    EPILOGUE_NONE,
    EPILOGUE_GELU,
    EPILOGUE_RESIDUAL,
    EPILOGUE_HALF,
    EPILOGUES
} EpilogueKind;

typedef struct {
    int64_t m, n, k;
    int batch_rank;
    int64_t batch[3];
    bool a_once, b_once;     // broadcast over the first batch dim
    int a_layout, b_layout;  // 0 rows, 1 columns contiguous, 2 neither
    bool packed, callback, bias;
    EpilogueKind epilogue;
    TorFill fill;
    const TorGemmKernel *kernel;
    int64_t mc, nc, kc;
} Problem;

static TorProgram program(EpilogueKind kind) {
    TorProgram p;
    memset(&p, 0, sizeof p);
    p.n_inputs = 1, p.n_outputs = 1, p.n_instrs = 1, p.n_stages = 1;
    p.input_type[0] = TOR_float32, p.output_type[0] = TOR_float32;
    TorInstr *i = &p.instr[0];
    *i = (TorInstr){.type = TOR_float32,
                    .to = TOR_float32,
                    .dst = {TOR_OPERAND_OUTPUT, 0},
                    .src = {{TOR_OPERAND_INPUT, 0}}};
    if (kind == EPILOGUE_GELU) i->fn = TOR_FN_gelu_erf;
    if (kind == EPILOGUE_RESIDUAL) {
        p.n_inputs = 2, p.input_type[1] = TOR_float32;
        i->fn = TOR_FN_add, i->src[1] = (TorOperand){TOR_OPERAND_INPUT, 1};
    }
    if (kind == EPILOGUE_HALF) {
        p.output_type[0] = TOR_bfloat16;
        i->fn = TOR_FN_cast, i->to = TOR_bfloat16;
    }
    return p;
}

static void fill(float *data, int64_t count, TorFill kind) {
    tor_check_fill(TOR_float32, data, count, kind == TOR_FILL_EXACT ? kind : TOR_FILL_UNIFORM);
    // One zero for a can make every product zero.
    for (int64_t i = 0; kind == TOR_FILL_EXACT && i < count; i++)
        if (data[i] == 0) data[i] = 1;
    // No huge values: where double and float overflow differently there is no right answer.
    static const float specials[] = {NAN, INFINITY, -INFINITY, 0x1p-140f, 0.0f, -0.0f};
    for (int64_t i = 0; kind == TOR_FILL_SPECIAL && i < count; i++)
        if (tor_check_range(0, 60) == 0) data[i] = specials[tor_check_range(0, 5)];
}

// Strides of a [rows, cols] matrix with this layout and random gaps; returns its extent.
static int64_t lay_out(int layout, int64_t rows, int64_t cols, int64_t *row, int64_t *col) {
    int64_t gap = tor_check_range(0, 3), step = layout == 2 ? tor_check_range(2, 3) : 1;
    if (layout == 1)
        *row = 1, *col = rows + gap;
    else
        *col = step, *row = cols * step + gap;
    return rows && cols ? (rows - 1) * *row + (cols - 1) * *col + 1 : 0;
}

typedef struct {
    const float *a;
    int64_t row, matrix;
} Dense;

static void pack_dense(const void *ctx, int64_t batch, int64_t row, int64_t rows, int64_t k0,
                       int64_t kc, void *dst) {
    const Dense *d = ctx;
    for (int64_t i = 0; i < rows; i++)
        memcpy((float *)dst + i * kc, d->a + batch * d->matrix + (row + i) * d->row + k0,
               (size_t)kc * sizeof(float));
}

static void run(TorGemmArgs *args, int threads, uint8_t *scratch) {
    TorTeam team;
    tor_team_begin(&team, threads, scratch, args->scratch_bytes);
    if (args->items) tor_team_run(&team, tor_gemm_run, args, args->items);
    if (args->join_items) tor_team_run(&team, tor_gemm_join_run, args, args->join_items);
    tor_team_end(&team);
}

static void check(const Problem *p) {
    static const char *const epilogues[] = {"none", "gelu", "residual", "half"};
    tor_check_case(
        "m=%lld n=%lld k=%lld batch=%lldx%lldx%lld rank %d%s%s a%d b%d%s%s%s epilogue=%s fill=%d "
        "%s blocks %lld %lld %lld",
        (long long)p->m, (long long)p->n, (long long)p->k, (long long)p->batch[0],
        (long long)p->batch[1], (long long)p->batch[2], p->batch_rank, p->a_once ? " a once" : "",
        p->b_once ? " b once" : "", p->a_layout, p->b_layout, p->packed ? " packed" : "",
        p->callback ? " callback" : "", p->bias ? " bias" : "", epilogues[p->epilogue], p->fill,
        p->kernel ? p->kernel->name : "", (long long)p->mc, (long long)p->nc, (long long)p->kc);
    TorGemmArgs args;
    memset(&args, 0, sizeof args);
    args.m = p->m, args.n = p->n, args.k = p->k, args.batch_rank = p->batch_rank;
    int64_t a_matrix = lay_out(p->callback ? 0 : p->a_layout, p->m, p->k, &args.a_row, &args.a_col);
    int64_t b_matrix = lay_out(p->b_layout, p->k, p->n, &args.b_row, &args.b_col);
    int64_t packed_matrix = (int64_t)(tor_gemm_packed_bytes(p->n, p->k) / sizeof(float));
    args.c_row = p->n + tor_check_range(0, 3);
    int64_t c_matrix = p->m * args.c_row, batches = 1;
    for (int d = p->batch_rank - 1; d >= 0; d--) {
        bool a_once = p->a_once && d == 0 && !p->callback, b_once = p->b_once && d == 0;
        args.batch_size[d] = p->batch[d];
        args.a_batch[d] = a_once ? 0 : batches * a_matrix;
        args.b_batch[d] = b_once ? 0 : batches * (p->packed ? packed_matrix : b_matrix);
        args.c_batch[d] = batches * c_matrix;
        args.bias_batch[d] = b_once ? 0 : batches * p->n;
        batches *= p->batch[d];
    }
    size_t f = sizeof(float);
    float *a = tor_check_buffer((size_t)(batches * a_matrix) * f, f),
          *b = tor_check_buffer((size_t)(batches * b_matrix) * f, f);
    fill(a, batches * a_matrix, p->fill), fill(b, batches * b_matrix, p->fill);
    args.a = a, args.b = b;
    if (p->packed) {
        TorGemmPackArgs pack = {.n = p->n,
                                .k = p->k,
                                .n_stride = args.b_col,
                                .k_stride = args.b_row,
                                .batch = batches,
                                .batch_stride = b_matrix,
                                .w = b};
        tor_gemm_pack_bind(&pack);
        pack.packed = tor_check_buffer((size_t)(batches * packed_matrix) * f, TOR_CACHE_LINE);
        tor_gemm_pack_run(&pack, 0, pack.items / 2, NULL);
        tor_gemm_pack_run(&pack, pack.items / 2, pack.items, NULL);
        tor_check_guards();
        args.b = pack.packed, args.b_packed = true;
    }
    float *bias = tor_check_buffer((size_t)(batches * p->n) * f, f);
    fill(bias, batches * p->n, p->fill == TOR_FILL_SPECIAL ? TOR_FILL_UNIFORM : p->fill);
    if (p->bias) args.bias = bias;
    Dense dense = {a, args.a_row, a_matrix};
    if (p->callback) args.pack_a = pack_dense, args.pack_ctx = &dense;

    TorProgram chain = program(p->epilogue);
    TorEpilogue epilogue;
    memset(&epilogue, 0, sizeof epilogue);
    int out = chain.n_inputs;
    TorDtype type = p->epilogue == EPILOGUE_HALF ? TOR_bfloat16 : TOR_float32;
    size_t c_bytes = (size_t)(batches * c_matrix) * tor_dtype_size(type);
    if (p->epilogue) {
        tor_epilogue_bind(&epilogue, &chain);
        epilogue.batch_stride[out] = c_matrix, epilogue.row_stride[out] = args.c_row,
        epilogue.col_stride[out] = 1;
        if (p->epilogue == EPILOGUE_RESIDUAL) {  // broadcast over batches
            float *residual = tor_check_buffer((size_t)(p->m * p->n) * f, f);
            fill(residual, p->m * p->n, p->fill == TOR_FILL_SPECIAL ? TOR_FILL_UNIFORM : p->fill);
            epilogue.data[1] = residual, epilogue.row_stride[1] = p->n, epilogue.col_stride[1] = 1;
        }
        args.epilogue = &epilogue, args.c_row = -1;  // unused then
    }
    void *want = tor_check_buffer(c_bytes, tor_dtype_size(type));
    void *one = tor_check_buffer(c_bytes, tor_dtype_size(type));
    epilogue.data[out] = want, args.c = want;
    void *ref_scratch = tor_check_buffer(
        p->epilogue ? (size_t)tor_round_up((int64_t)tor_epilogue_scratch(&epilogue, 1), 64) : 64,
        TOR_CACHE_LINE);
    tor_gemm_run_ref(&args, ref_scratch);

    args.kernel = p->kernel, args.mc = p->mc, args.nc = p->nc, args.kc = p->kc;
    tor_gemm_bind(&args);
    TOR_CHECK(args.scratch_bytes % TOR_CACHE_LINE == 0);
    uint8_t *scratch = tor_check_buffer(4 * args.scratch_bytes, TOR_CACHE_LINE);
    if (args.shared_bytes) args.shared = tor_check_buffer(args.shared_bytes, TOR_CACHE_LINE);
    epilogue.data[out] = one, args.c = one;
    run(&args, 1, scratch);
    tor_check_guards();
    bool exact = p->fill == TOR_FILL_EXACT &&
                 (p->epilogue == EPILOGUE_NONE || p->epilogue == EPILOGUE_RESIDUAL);
    double atol = exact ? 0 : 0x1p-24 * (double)(p->k + 16), rtol = exact ? 0 : 0x1p-21;
    if (p->epilogue == EPILOGUE_HALF) rtol = 0x1.02p-7;
    // Gelu has slope up to 1.13.
    tor_check_compare(type, one, want, batches * c_matrix, rtol, 1.2 * atol);
    for (int threads = 2; threads <= 4; threads += 2) {
        void *more = tor_check_buffer(c_bytes, tor_dtype_size(type));
        epilogue.data[out] = more, args.c = more;
        run(&args, threads, scratch);
        tor_check_same(more, one, c_bytes);
    }
    tor_check_done();
}

static const int64_t edges[] = {1,  2,  3,  4,  5,  6,  7,  8,  11, 12, 13, 15, 16,  17,  19, 23,
                                24, 31, 32, 33, 37, 47, 48, 49, 63, 64, 65, 97, 127, 128, 130};

static int64_t edge(void) { return edges[tor_check_range(0, TOR_COUNT_OF(edges) - 1)]; }

static void every_row(void) {
    int count;
    const TorGemmKernel *rows = tor_gemm_kernels(&count);
    for (int r = 0; r < count; r++) {
        const TorGemmKernel *row = &rows[r];
        if (row->features & ~tor_cpu_features()) continue;
        bool packed = row->flags & TOR_GEMM_PACKED;
        if (packed && row->nr != tor_gemm_panel()) continue;
        for (int64_t m = 1; m <= 2 * row->mr + 1; m++)
            for (int64_t n = 1; n <= 2 * row->nr + 1;
                 n += n < row->nr - 1 || n > row->nr + 1 ? TOR_MAX(row->nr / 4 - 1, 1) : 1)
                for (int64_t k = 1; k <= 9; k++)
                    check(&(Problem){.m = m,
                                     .n = n,
                                     .k = k,
                                     .packed = packed,
                                     .b_layout = packed ? (int)(k % 3) : 0,
                                     .bias = m & 1,
                                     .kernel = row,
                                     .fill = TOR_FILL_EXACT});
        for (int i = 0; i < 60; i++)
            check(&(Problem){.m = edge(),
                             .n = edge(),
                             .k = edge(),
                             .packed = packed,
                             .bias = tor_check_coin(),
                             .kernel = row,
                             .mc = tor_check_coin() ? edge() : 0,
                             .nc = tor_check_range(0, 2) * row->nr,
                             .kc = tor_check_coin() ? edge() : 0,
                             .epilogue = (EpilogueKind)tor_check_range(0, EPILOGUES - 1)});
    }
}

static Problem random_problem(void) {
    Problem p = {.m = edge(), .n = edge(), .k = edge(), .batch_rank = (int)tor_check_range(0, 3)};
    for (int d = 0; d < p.batch_rank; d++) p.batch[d] = tor_check_range(1, 3);
    p.a_once = tor_check_coin(), p.b_once = tor_check_coin();
    p.a_layout = (int)tor_check_range(0, 2), p.b_layout = (int)tor_check_range(0, 2);
    p.packed = tor_check_coin(), p.callback = tor_check_range(0, 3) == 0, p.bias = tor_check_coin();
    p.epilogue = (EpilogueKind)tor_check_range(0, EPILOGUES - 1);
    return p;
}

static void layouts(void) {
    for (int i = 0; i < 400; i++) {
        Problem p = random_problem();
        check(&p);
    }
}

static void exact(void) {
    for (int i = 0; i < 150; i++) {
        Problem p = random_problem();
        p.fill = TOR_FILL_EXACT;
        check(&p);
    }
}

static void specials(void) {
    for (int i = 0; i < 150; i++) {
        Problem p = random_problem();
        p.fill = TOR_FILL_SPECIAL, p.k = TOR_MIN(p.k, 19);
        if (p.epilogue == EPILOGUE_GELU) p.epilogue = EPILOGUE_NONE;
        check(&p);
    }
}

// Long k, several blocks in every direction, rows that clash in the cache.
static void blocks(void) {
    static const int64_t shapes[][3] = {
        {1, 64, 2000},   {2, 48, 1111},    {3, 100, 999},  {7, 33, 1537},
        {130, 300, 800}, {128, 256, 1024}, {200, 17, 777}, {5, 4000, 40},
        {400, 35, 64},   {250, 600, 20},   {1, 1, 5000},   {1, 3000, 7},
        {31, 130, 1024}, {4, 8, 20000},    {64, 40, 9000}, {3, 17, 6001}};
    for (size_t i = 0; i < TOR_COUNT_OF(shapes); i++)
        for (int way = 0; way < 4; way++)
            check(&(Problem){.m = shapes[i][0],
                             .n = shapes[i][1],
                             .k = shapes[i][2],
                             .packed = way < 2,
                             .callback = way == 1,
                             .b_layout = way == 3,
                             .bias = way & 1,
                             .epilogue = (EpilogueKind)((i + (size_t)way) % EPILOGUES)});
}

static void empty(void) {
    for (int zero = 0; zero < 4; zero++)
        for (int way = 0; way < 8; way++)
            check(&(Problem){.m = zero == 0 ? 0 : 7,
                             .n = zero == 1 ? 0 : 9,
                             .k = zero == 2 ? 0 : 5,
                             .batch_rank = 1,
                             .batch = {zero == 3 ? 0 : 2},
                             .packed = way & 1,
                             .bias = zero == 2 || way & 2,
                             .epilogue = way & 4 ? EPILOGUE_RESIDUAL : EPILOGUE_NONE});
}

static void panels(void) {  // the packed format itself
    for (int i = 0; i < 40; i++) {
        int64_t n = edge(), k = edge(), nr = tor_gemm_panel(), n_stride, k_stride,
                extent = lay_out(i % 3, n, k, &n_stride, &k_stride);
        tor_check_case("pack n=%lld k=%lld layout %d", (long long)n, (long long)k, i % 3);
        float *w = tor_check_buffer((size_t)extent * sizeof(float), sizeof(float)),
              *packed = tor_check_buffer(tor_gemm_packed_bytes(n, k), TOR_CACHE_LINE);
        tor_check_fill(TOR_float32, w, extent, TOR_FILL_UNIFORM);
        TorGemmPackArgs pack = {.n = n,
                                .k = k,
                                .n_stride = n_stride,
                                .k_stride = k_stride,
                                .batch = 1,
                                .w = w,
                                .packed = packed};
        tor_gemm_pack_bind(&pack);
        tor_gemm_pack_run(&pack, 0, pack.items, NULL);
        for (int64_t j = 0; j < tor_ceil_div(n, nr) * nr; j++)
            for (int64_t p = 0; p < k; p++)
                TOR_CHECK(packed[(j / nr * k + p) * nr + j % nr] ==
                          (j < n ? w[j * n_stride + p * k_stride] : 0));
        tor_check_done();
    }
}

// ---------------------------------------------------------------- other types

static void check_typed(const TorGemmTypedKernel *row, TorDtype type, Problem p) {
    tor_check_case("%s %s m=%lld n=%lld k=%lld batch=%lld%s a%d b%d%s fill=%d", row->name,
                   tor_dtype_name(type), (long long)p.m, (long long)p.n, (long long)p.k,
                   (long long)p.batch[0], p.b_once ? " b once" : "", p.a_layout, p.b_layout,
                   p.bias ? " bias" : "", p.fill);
    size_t size = tor_dtype_size(type);
    TorGemmArgs args = {.m = p.m, .n = p.n, .k = p.k, .batch_rank = 1, .typed = row};
    int64_t a_matrix = lay_out(p.a_layout, p.m, p.k, &args.a_row, &args.a_col),
            b_matrix = lay_out(p.b_layout, p.k, p.n, &args.b_row, &args.b_col);
    args.c_row = p.n + tor_check_range(0, 3);
    int64_t batch = args.batch_size[0] = p.batch[0], c_count = batch * p.m * args.c_row;
    args.a_batch[0] = a_matrix, args.b_batch[0] = p.b_once ? 0 : b_matrix;
    args.c_batch[0] = p.m * args.c_row, args.bias_batch[0] = p.b_once ? 0 : p.n;
    void *a = tor_check_buffer((size_t)(batch * a_matrix) * size, size),
         *b = tor_check_buffer((size_t)(batch * b_matrix) * size, size),
         *bias = tor_check_buffer((size_t)(batch * p.n) * size, size),
         *want = tor_check_buffer((size_t)c_count * size, size);
    tor_check_fill(type, a, batch * a_matrix, p.fill);
    tor_check_fill(type, b, batch * b_matrix, p.fill);
    tor_check_fill(type, bias, batch * p.n, p.fill);
    args.a = a, args.b = b, args.bias = p.bias ? bias : NULL, args.c = want;
    tor_gemm_typed_run_ref(&args, type);

    tor_gemm_typed_bind(&args, type);
    for (int threads = 1; threads <= 3; threads += 2) {
        void *got = tor_check_buffer((size_t)c_count * size, size);
        args.c = got;
        tor_check_run(tor_gemm_typed_run, &args, args.items, args.scratch_bytes, threads);
        bool exact = p.fill == TOR_FILL_EXACT || !tor_dtype_is_float(type);
        tor_check_compare(type, got, want, c_count, exact ? 0 : 0x1p-50,
                          exact ? 0 : 0x1p-53 * (double)(p.k + 16));
    }
    tor_check_done();
}

static void typed(void) {
    static const TorDtype types[] = {TOR_float64, TOR_uint8, TOR_int8,
                                     TOR_int16,   TOR_int32, TOR_int64};
    int count;
    const TorGemmTypedKernel *rows = tor_gemm_typed_kernels(&count);
    for (int r = 0; r < count; r++)
        for (size_t t = 0; t < TOR_COUNT_OF(types); t++) {
            if (rows[r].features & ~tor_cpu_features()) continue;
            if (!tor_gemm_typed_takes(&rows[r], types[t])) continue;
            for (int i = 0; i < 120; i++) {
                int64_t nr = rows[r].nr;
                Problem p = {.m = i % 4 == 0 ? tor_check_range(90, 200) : tor_check_range(1, 13),
                             .n = tor_check_coin() ? tor_check_range(1, 2 * nr + 1) : edge(),
                             .k = i % 5 == 0 ? tor_check_range(250, 600) : edge(),
                             .batch = {tor_check_range(1, 3)},
                             .b_once = tor_check_coin(),
                             .a_layout = (int)tor_check_range(0, 2),
                             .b_layout = (int)tor_check_range(0, 2),
                             .bias = tor_check_coin(),
                             .fill = tor_check_coin() ? TOR_FILL_EXACT : TOR_FILL_UNIFORM};
                if (p.m * p.n * p.k > 1 << 20) p.m = 5;
                check_typed(&rows[r], types[t], p);
            }
            for (int zero = 0; zero < 4; zero++)
                check_typed(&rows[r], types[t],
                            (Problem){.m = zero == 0 ? 0 : 3,
                                      .n = zero == 1 ? 0 : 5,
                                      .k = zero == 2 ? 0 : 4,
                                      .batch = {zero == 3 ? 0 : 2},
                                      .bias = true});
        }
}

// Benches. Linear layers of one thread, weights packed; several copies of a weight in turn where it
// should come from memory.

typedef struct {
    TorGemmArgs args;
    TorEpilogue epilogue;
    TorProgram program;
    const float *weights;
    int64_t copies, at;
    void *scratch;
} Bench;

static void call(void *ctx) {
    Bench *b = ctx;
    if (b->args.b_packed)
        b->args.b = b->weights + b->at * (int64_t)(tor_gemm_packed_bytes(b->args.n, b->args.k) / 4);
    b->at = (b->at + 1) % b->copies;
    tor_gemm_run(&b->args, 0, b->args.items, b->scratch);
    if (b->args.join_items) tor_gemm_join_run(&b->args, 0, b->args.join_items, b->scratch);
}

static float *numbers(int64_t count) {
    float *data = tor_alloc((size_t)TOR_MAX(count, 16) * sizeof(float));
    if (!data) exit(2);
    for (int64_t i = 0; i < count; i++) data[i] = (float)(i * 7 % 31) * 0.02f - 0.3f;
    return data;
}

static void bench_linear(int64_t m, int64_t n, int64_t k, EpilogueKind kind, bool from_memory) {
    Bench b;
    memset(&b, 0, sizeof b);
    char name[96];
    int64_t matrix = (int64_t)(tor_gemm_packed_bytes(n, k) / 4);
    b.copies = from_memory ? ((int64_t)160 << 20) / (matrix * 4) + 1 : 1;
    float *a = numbers(m * k), *w = numbers(matrix * b.copies), *c = numbers(m * n),
          *bias = numbers(n);
    b.weights = w;
    b.args.m = m, b.args.n = n, b.args.k = k, b.args.a_row = k, b.args.a_col = 1, b.args.c_row = n,
    b.args.b_packed = true;
    b.args.a = a, b.args.c = c, b.args.bias = bias;
    if (kind) {
        b.program = program(kind);
        tor_epilogue_bind(&b.epilogue, &b.program);
        b.epilogue.row_stride[1] = n, b.epilogue.col_stride[1] = 1, b.epilogue.data[1] = c;
        b.args.epilogue = &b.epilogue;
    }
    tor_gemm_bind(&b.args);
    b.scratch = tor_alloc(b.args.scratch_bytes);
    b.args.shared = tor_alloc(b.args.shared_bytes);
    snprintf(name, sizeof name, "m=%lld n=%lld k=%lld%s%s", (long long)m, (long long)n,
             (long long)k, kind ? " gelu" : "", from_memory ? " from memory" : "");
    if (from_memory && m <= 8)
        tor_check_bench_bytes(name, (double)(n * k + m * (n + k)) * 4, call, &b);
    if (!from_memory || m > 1)
        tor_check_bench_flops(name, 2.0 * (double)m * (double)n * (double)k, 1, call, &b);
    tor_free(a), tor_free(w), tor_free(c), tor_free(bias), tor_free(b.scratch),
        tor_free(b.args.shared);
}

static const int64_t layers[][2] = {{768, 768}, {3072, 768}, {768, 3072}, {2304, 768}};

static void bench_bert(void) {
    for (size_t i = 0; i < TOR_COUNT_OF(layers); i++)
        bench_linear(128, layers[i][0], layers[i][1], EPILOGUE_NONE, false);
    for (size_t i = 0; i < TOR_COUNT_OF(layers); i++)
        bench_linear(128, layers[i][0], layers[i][1], EPILOGUE_GELU, false);
    for (size_t i = 0; i < TOR_COUNT_OF(layers); i++)
        bench_linear(128, layers[i][0], layers[i][1], EPILOGUE_NONE, true);
}

static void bench_skinny(void) {
    for (size_t i = 0; i < TOR_COUNT_OF(layers); i++)
        bench_linear(1, layers[i][0], layers[i][1], EPILOGUE_NONE, true);
    for (int64_t m = 2; m <= 8; m++) bench_linear(m, 3072, 768, EPILOGUE_NONE, true);
    bench_linear(1, 768, 768, EPILOGUE_NONE, false);
}

// A sentence and a few decoded tokens of T5.
static void bench_short(void) {
    static const int64_t t5[][2] = {{512, 512}, {2048, 512}, {512, 2048}};
    static const int64_t rows[] = {4, 14};
    for (size_t r = 0; r < TOR_COUNT_OF(rows); r++)
        for (size_t i = 0; i < TOR_COUNT_OF(t5); i++)
            bench_linear(rows[r], t5[i][0], t5[i][1], EPILOGUE_NONE, true);
}

static void bench_rows(void) {
    static const int64_t rows[] = {5, 12, 17, 100, 127, 130, 512, 1000};
    for (size_t i = 0; i < TOR_COUNT_OF(rows); i++)
        bench_linear(rows[i], 768, 768, EPILOGUE_NONE, false);
    bench_linear(1024, 1024, 1024, EPILOGUE_NONE, false);
    bench_linear(2048, 2048, 2048, EPILOGUE_NONE, false);
    bench_linear(128, 768, 64, EPILOGUE_NONE, false);
    bench_linear(128, 64, 768, EPILOGUE_NONE, false);
}

// Attention heads [12 heads, 128, 64] that lie in rows of [128, 768]: scores (b transposed), then
// values.
static void bench_heads(void) {
    for (int scores = 1; scores >= 0; scores--)
        for (int64_t s = 128; s <= 512; s *= 4) {
            Bench b;
            memset(&b, 0, sizeof b);
            b.copies = 1;
            TorGemmArgs *g = &b.args;
            float *x = numbers(s * 768), *y = numbers(s * 768), *p = numbers(12 * s * s);
            g->m = s, g->n = scores ? s : 64, g->k = scores ? 64 : s;
            g->batch_rank = 1, g->batch_size[0] = 12;
            g->a = scores ? x : p, g->a_row = scores ? 768 : s, g->a_col = 1,
            g->a_batch[0] = scores ? 64 : s * s;
            g->b = y, g->b_row = scores ? 1 : 768, g->b_col = scores ? 768 : 1, g->b_batch[0] = 64;
            g->c = scores ? p : x, g->c_row = scores ? s : 768, g->c_batch[0] = scores ? s * s : 64;
            tor_gemm_bind(g);
            b.scratch = tor_alloc(g->scratch_bytes);
            char name[96];
            snprintf(name, sizeof name, "12 heads %s m=%lld n=%lld k=%lld",
                     scores ? "scores" : "values", (long long)g->m, (long long)g->n,
                     (long long)g->k);
            tor_check_bench_flops(name, 2.0 * 12 * (double)g->m * (double)g->n * (double)g->k, 1,
                                  call, &b);
            tor_free(x), tor_free(y), tor_free(p), tor_free(b.scratch);
        }
}

static void bind_only(void *ctx) {
    TorGemmArgs *args = ctx;
    args->kernel = NULL, args->mc = args->nc = args->kc = 0;
    tor_gemm_bind(args);
}

static void bench_bind(void) {
    TorGemmArgs args = {
        .m = 128, .n = 768, .k = 768, .a_row = 768, .a_col = 1, .b_packed = true, .c_row = 768};
    printf("bind: %.0f ns\n", 1e9 * tor_check_time(bind_only, &args));
}

int main(int argc, char **argv) {
    static const TorCheckTest tests[] = {
        {"panels", panels},     {"every_row", every_row}, {"layouts", layouts}, {"exact", exact},
        {"specials", specials}, {"blocks", blocks},       {"empty", empty},     {"typed", typed}};
    static const TorCheckTest benches[] = {{"bert", bench_bert},   {"skinny", bench_skinny},
                                           {"short", bench_short}, {"rows", bench_rows},
                                           {"heads", bench_heads}, {"bind", bench_bind}};
    return tor_check_main(argc, argv, tests, TOR_COUNT_OF(tests), benches, TOR_COUNT_OF(benches));
}

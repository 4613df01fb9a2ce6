// The pointwise engine beside the loop that the compiler makes of the same arithmetic at -O3 for
// AVX2, with the same elementary functions.
#include "bench_pointwise.h"

#include <stdio.h>
#include <string.h>

#include "pointwise_programs.h"

#if defined(__x86_64__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#pragma GCC optimize("O3")
#define TOR_ISA avx2
#define TOR_ISA_avx2 1
#include "base/simd_math.h"

typedef struct {
    TorMapArgs args;
    TorPrepared prepared;
    void *scratch;
    float *x, *y, *z, *out;
    int64_t n, rows;
} Bench;

static void hand_light(void *ctx) {  // mul, add, relu, mul, add
    const Bench *b = ctx;
    for (int64_t i = 0; i < b->n; i += VF32) {
        vf32 t = vf32_fma(vf32_load(b->x + i), vf32_set(0.75f), vf32_load(b->y + i));
        vf32_store(b->out + i,
                   vf32_fma(vf32_max(vf32_set(0.0f), t), vf32_set(1.25f), vf32_set(0.5f)));
    }
}
#define HAND_CHAIN(name, f)                                                               \
    static void name(void *ctx) {                                                         \
        const Bench *b = ctx;                                                             \
        for (int64_t i = 0; i < b->n; i += VF32) {                                        \
            vf32 t = vf32_fma(vf32_load(b->x + i), vf32_set(0.75f), vf32_load(b->y + i)); \
            vf32_store(b->out + i, vf32_fma(f(t), vf32_set(1.25f), vf32_set(0.5f)));      \
        }                                                                                 \
    }
HAND_CHAIN(hand_tanh, vf32_tanh)
HAND_CHAIN(hand_gelu, vf32_gelu_tanh)
static void hand_bias(void *ctx) {  // gelu(x + bias)
    const Bench *b = ctx;
    for (int64_t r = 0; r < b->rows; r++)
        for (int64_t i = 0; i < b->n; i += VF32)
            vf32_store(b->out + r * b->n + i,
                       vf32_gelu_erf(vf32_load(b->x + r * b->n + i) + vf32_load(b->y + i)));
}
static void hand_softmax(void *ctx) {
    const Bench *b = ctx;
    for (int64_t r = 0; r < b->rows; r++) {
        const float *x = b->x + r * b->n;
        float *out = b->out + r * b->n;
        vf32 m = vf32_load(x), s = {0};
        for (int64_t i = VF32; i < b->n; i += VF32) m = vf32_max(m, vf32_load(x + i));
        m = vf32_set(vf32_hmax(m));
        for (int64_t i = 0; i < b->n; i += VF32) {
            vf32 e = vf32_exp(vf32_load(x + i) - m);
            s += e;
            vf32_store(out + i, e);
        }
        s = vf32_set(1.0f / vf32_sum(s));
        for (int64_t i = 0; i < b->n; i += VF32) vf32_store(out + i, vf32_load(out + i) * s);
    }
}
static void hand_norm(void *ctx) {
    const Bench *b = ctx;
    for (int64_t r = 0; r < b->rows; r++) {
        const float *x = b->x + r * b->n;
        vf32 s0 = {0}, s1 = {0}, q0 = {0}, q1 = {0};
        for (int64_t i = 0; i < b->n; i += 2 * VF32)
            s0 += vf32_load(x + i), s1 += vf32_load(x + i + VF32);
        vf32 mean = vf32_set(vf32_sum(s0 + s1) / (float)b->n);
        for (int64_t i = 0; i < b->n; i += 2 * VF32) {
            vf32 u = vf32_load(x + i) - mean, v = vf32_load(x + i + VF32) - mean;
            q0 += u * u;
            q1 += v * v;
        }
        vf32 scale = vf32_set(1.0f / sqrtf(vf32_sum(q0 + q1) / (float)b->n + 1e-5f));
        for (int64_t i = 0; i < b->n; i += VF32) {
            vf32 t = (vf32_load(x + i) - mean) * scale;
            vf32_store(b->out + r * b->n + i,
                       vf32_fma(t, vf32_load(b->y + i), vf32_load(b->z + i)));
        }
    }
}
static void hand_columns(void *ctx) {  // sum over dim 0
    const Bench *b = ctx;
    memset(b->out, 0, (size_t)b->n * 4);
    for (int64_t r = 0; r < b->rows; r++)
#pragma GCC ivdep
        for (int64_t i = 0; i < b->n; i++) b->out[i] += b->x[r * b->n + i];
}
#pragma GCC pop_options

static void run_bench(void *ctx) {
    Bench *b = ctx;
    tor_map_run(&b->args, 0, b->args.items, b->scratch);
}

static void compare_times(const char *name, Bench *b, double bytes, TorBenchFn hand) {
    double ours = tor_check_time(run_bench, b), theirs = tor_check_time(hand, b);
    for (int i = 0; i < 2; i++) {
        ours = TOR_MIN(ours, tor_check_time(run_bench, b));
        theirs = TOR_MIN(theirs, tor_check_time(hand, b));
    }
    printf("  %-34s %9.2f us  %6.1f GB/s   hand loop %9.2f us   ratio %.2f\n", name, ours * 1e6,
           bytes / ours * 1e-9, theirs * 1e6, ours / theirs);
}

// Operands x [rows, n], y [n] or [rows, n], z [n].
static void open_bench(Bench *b, TorProgram *p, int64_t rows, int64_t n, bool y_whole,
                       bool row_program) {
    b->rows = rows;
    b->n = n;
    b->x = tor_check_buffer((size_t)(rows * n) * 4, 64);
    b->y = tor_check_buffer((size_t)(y_whole ? rows * n : n) * 4, 64);
    b->z = tor_check_buffer((size_t)n * 4, 64);
    b->out = tor_check_buffer((size_t)(rows * n) * 4, 64);
    tor_check_fill(TOR_float32, b->x, rows * n, TOR_FILL_UNIFORM);
    tor_check_fill(TOR_float32, b->y, y_whole ? rows * n : n, TOR_FILL_UNIFORM);
    tor_check_fill(TOR_float32, b->z, n, TOR_FILL_UNIFORM);
    int64_t size[2] = {rows, n}, stride[5][TOR_MAP_RANK] = {{n, 1}, {y_whole ? n : 0, 1}, {0, 1}};
    void *data[5] = {b->x, b->y, b->z};
    stride[p->n_inputs][0] = n;
    stride[p->n_inputs][1] = 1;
    data[p->n_inputs] = data[p->n_inputs + 1] = b->out;
    stride[p->n_inputs + 1][0] = 1;
    stride[p->n_inputs + 1][1] = 0;
    if (tor_program_verify(p)) tor_check_fail("%s", toroid_last_error());
    tor_program_prepare(&b->prepared, p);
    tor_map_bind(&b->args, &b->prepared, 2, row_program, size, stride);
    for (int k = 0; k < p->n_inputs + p->n_outputs; k++) b->args.data[k] = data[k];
    b->scratch = tor_check_buffer(b->args.scratch_bytes, 64);
}

static void chain(TorProgram *p, TorScalarFn fn) {
    int x = input(p, TOR_float32), y = input(p, TOR_float32);
    p->n_stages = 1;
    output(p, 0, TOR_float32, false);
    emit(p, TOR_FN_mul, TOR_float32, TOR_float32, 0, REG(0), IN(x), imm_f(p, TOR_float32, 0.75),
         NONE);
    emit(p, TOR_FN_add, TOR_float32, TOR_float32, 0, REG(1), REG(0), IN(y), NONE);
    emit(p, fn, TOR_float32, TOR_float32, 0, REG(2), REG(1), NONE, NONE);
    emit(p, TOR_FN_mul, TOR_float32, TOR_float32, 0, REG(3), REG(2), imm_f(p, TOR_float32, 1.25),
         NONE);
    emit(p, TOR_FN_add, TOR_float32, TOR_float32, 0, OUT(0), REG(3), imm_f(p, TOR_float32, 0.5),
         NONE);
}

static void bench_chains(void) {
    static const struct {
        const char *name;
        TorScalarFn fn;
        TorBenchFn hand;
    } kinds[] = {{"relu", TOR_FN_relu, hand_light},
                 {"tanh", TOR_FN_tanh, hand_tanh},
                 {"gelu_tanh", TOR_FN_gelu_tanh, hand_gelu}};
    static const int64_t sizes[] = {768, 16384, 8 << 20};
    for (size_t k = 0; k < TOR_COUNT_OF(kinds); k++) {
        for (size_t s = 0; s < TOR_COUNT_OF(sizes); s++) {
            TorProgram p = {0};
            Bench b = {0};
            char name[64];
            chain(&p, kinds[k].fn);
            snprintf(name, sizeof name, "mul add %s mul add, %" PRId64, kinds[k].name, sizes[s]);
            tor_check_case("%s", name);
            open_bench(&b, &p, 1, sizes[s], true, false);
            compare_times(name, &b, 12.0 * (double)sizes[s], kinds[k].hand);
            tor_check_done();
        }
    }
    static const int64_t cols[] = {16, 48, 64, 256, 3072};
    for (size_t s = 0; s < TOR_COUNT_OF(cols); s++) {
        TorProgram p = {.n_stages = 1};
        Bench b;
        char name[64];
        int x = input(&p, TOR_float32), y = input(&p, TOR_float32);
        output(&p, 0, TOR_float32, false);
        emit(&p, TOR_FN_add, TOR_float32, TOR_float32, 0, REG(0), IN(x), IN(y), NONE);
        emit(&p, TOR_FN_gelu_erf, TOR_float32, TOR_float32, 0, OUT(0), REG(0), NONE, NONE);
        snprintf(name, sizeof name, "bias gelu_erf, %dx%d", (int)(49152 / cols[s]), (int)cols[s]);
        tor_check_case("%s", name);
        open_bench(&b, &p, 49152 / cols[s], cols[s], false, false);
        compare_times(name, &b, 8.0 * 49152, hand_bias);
        tor_check_done();
    }
}

static void bench_rows(void) {
    static const int64_t lengths[] = {16, 64, 128, 512, 1024, 8192};
    for (size_t s = 0; s < TOR_COUNT_OF(lengths); s++) {
        TorProgram p = {0};
        Bench b;
        char name[64];
        int64_t rows_ = TOR_MAX(131072 / lengths[s], 8);
        softmax(&p, TOR_float32);
        snprintf(name, sizeof name, "softmax %dx%d", (int)rows_, (int)lengths[s]);
        tor_check_case("%s", name);
        open_bench(&b, &p, rows_, lengths[s], false, true);
        compare_times(name, &b, 8.0 * (double)(rows_ * lengths[s]), hand_softmax);
        tor_check_done();
    }
    static const int64_t widths[] = {64, 256, 768, 4096};
    for (size_t s = 0; s < TOR_COUNT_OF(widths); s++) {
        TorProgram p = {0};
        Bench b;
        char name[64];
        layer_norm(&p, TOR_float32);
        p.n_outputs = 1;
        p.n_instrs--;
        snprintf(name, sizeof name, "layer norm 128x%d", (int)widths[s]);
        tor_check_case("%s", name);
        open_bench(&b, &p, 128, widths[s], false, true);
        compare_times(name, &b, 8.0 * 128 * (double)widths[s], hand_norm);
        tor_check_done();
    }
    TorProgram p = {0};
    Bench b;
    plain_reduction(&p, TOR_REDUCE_sum, TOR_float32);
    tor_check_case("sum over dim 0");
    open_bench(&b, &p, 512, 768, false, true);
    int64_t size[2] = {768, 512}, stride[2][TOR_MAP_RANK] = {{1, 768}, {1, 0}};
    tor_map_bind(&b.args, &b.prepared, 2, 1, size, stride);
    b.scratch = tor_check_buffer(b.args.scratch_bytes, 64);
    compare_times("sum over dim 0 of 512x768", &b, 4.0 * 512 * 768, hand_columns);
    tor_check_done();
}

static void rebind(void *ctx) {
    Bench *b = ctx;
    int64_t size[3] = {8, 12, 64},
            stride[5][TOR_MAP_RANK] = {
                {768, 64, 1}, {768, 64, 1}, {768, 64, 1}, {768, 64, 1}, {768, 64, 1}};
    for (int i = 0; i < 100; i++) tor_map_bind(&b->args, &b->prepared, 3, 0, size, stride);
}
static TorProgram prepare_me;
static void reprepare(void *ctx) {
    Bench *b = ctx;
    for (int i = 0; i < 100; i++) tor_program_prepare(&b->prepared, &prepare_me);
}
static void bench_binding(void) {
    Bench b;
    tor_check_case("bind");
    chain(&prepare_me, TOR_FN_tanh);
    tor_program_prepare(&b.prepared, &prepare_me);
    printf("  %-34s %9.0f ns\n", "bind a chain of five, rank 3", tor_check_time(rebind, &b) * 1e7);
    printf("  %-34s %9.0f ns\n", "prepare a chain of five", tor_check_time(reprepare, &b) * 1e7);
    tor_check_done();
}

const TorCheckTest pointwise_benches[] = {
    {"chains", bench_chains}, {"rows", bench_rows}, {"binding", bench_binding}};
const size_t pointwise_bench_count = TOR_COUNT_OF(pointwise_benches);
#else
const TorCheckTest pointwise_benches[1];
const size_t pointwise_bench_count = 0;
#endif

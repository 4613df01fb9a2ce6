/// Convolutions computed by bands against the oracle, one convolution after the other; and timed
/// beside the same kernels one after the other.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cpu.h"
#include "harness.h"
#include "kernels/conv/contract.h"

/// Channels from one to the next; what is 0 is left out.
typedef struct {
    int64_t batch, c, expanded, projected, height, width, kernel, stride, padding;
} Shape;

enum { NONE, BOUNDS, ADD, SILU, GATE, EPILOGUES, LAST_EXACT = ADD };

// clang-format off
#define INSTR(fn, to, ...) \
    {TOR_FN_##fn, TOR_float32, TOR_float32, 0, {TOR_OPERAND_##to, 0}, {__VA_ARGS__}}
#define ACC {TOR_OPERAND_INPUT, 0}
#define OPERAND {TOR_OPERAND_INPUT, 1}
#define SO_FAR {TOR_OPERAND_REG, 0}
#define BOUND(i) {TOR_OPERAND_IMM, i}
#define PROGRAM(inputs, instrs, ...)                                                        \
    {.n_inputs = inputs, .n_outputs = 1, .n_instrs = instrs, .n_stages = 1, .n_regs = 1,      \
     .n_imms = 2, .input_type = {TOR_float32, TOR_float32}, .output_type = {TOR_float32},     \
     .imm = {{TOR_float32, {.f = 0}}, {TOR_float32, {.f = 6}}}, .instr = {__VA_ARGS__}}
// clang-format on

/// The last one goes through scratch.
static const TorProgram programs[EPILOGUES] = {
    [BOUNDS] =
        PROGRAM(1, 2, INSTR(maximum, REG, ACC, BOUND(0)), INSTR(minimum, OUTPUT, SO_FAR, BOUND(1))),
    [SILU] = PROGRAM(1, 1, INSTR(silu, OUTPUT, ACC)),
    [ADD] = PROGRAM(2, 1, INSTR(add, OUTPUT, ACC, OPERAND)),
    [GATE] = PROGRAM(2, 2, INSTR(silu, REG, ACC), INSTR(mul, OUTPUT, SO_FAR, OPERAND)),
};

/// The convolutions of a shape with their operands, and their results one after the other.
typedef struct {
    TorConvBandsArgs bands;
    TorConvPackArgs weight[TOR_CONV_BANDS];
    TorEpilogue epilogue[TOR_CONV_BANDS];
    int program[TOR_CONV_BANDS];
    float *result[TOR_CONV_BANDS];
    int64_t count[TOR_CONV_BANDS];  ///< of results
} Problem;

static int64_t pixels_of(const TorConvArgs *a) {
    return a->batch * a->out_size[1] * a->out_size[2];
}

static void lay_out(int64_t *stride, int64_t c, const int64_t *size) {
    stride[1] = 1;
    stride[4] = c;
    stride[3] = c * size[2];
    stride[2] = stride[3] * size[1];
    stride[0] = stride[2] * size[0];
}

/// Adds a convolution that reads the last one.
static void add_conv(Problem *p, const Shape *s, int64_t c, int64_t o, int64_t groups) {
    TorConvArgs *a = &p->bands.conv[p->bands.count];
    TorConvPackArgs *w = &p->weight[p->bands.count];
    bool wide = groups > 1;
    int64_t kernel = wide ? s->kernel : 1, stride = wide ? s->stride : 1,
            padding = wide ? s->padding : 0;
    *a = (TorConvArgs){.batch = s->batch,
                       .in_channels = c,
                       .out_channels = o,
                       .groups = groups,
                       .in_size = {1, s->height, s->width},
                       .kernel = {1, kernel, kernel},
                       .stride = {1, stride, stride},
                       .padding = {0, padding, padding},
                       .dilation = {1, 1, 1}};
    if (p->bands.count) memcpy(a->in_size, a[-1].out_size, sizeof a->in_size);
    for (int d = 0; d < 3; d++)
        a->out_size[d] = (a->in_size[d] + 2 * a->padding[d] - a->kernel[d]) / a->stride[d] + 1;
    lay_out(a->x_stride, c, a->in_size);
    lay_out(a->y_stride, o, a->out_size);
    *w = (TorConvPackArgs){.out_channels = o,
                           .in_channels = c,
                           .groups = groups,
                           .kernel = {1, kernel, kernel},
                           .in_stride = kernel * kernel,
                           .out_stride = c / groups * kernel * kernel,
                           .group_stride = o / groups * (c / groups) * kernel * kernel,
                           .kernel_stride = {kernel * kernel, kernel, 1}};
    p->count[p->bands.count++] = pixels_of(a) * o;
}

static void make(Problem *p, const Shape *s) {
    memset(p, 0, sizeof *p);
    int64_t middle = s->expanded ? s->expanded : s->c;
    if (s->expanded) add_conv(p, s, s->c, middle, 1);
    add_conv(p, s, middle, middle, middle);
    if (s->projected) add_conv(p, s, middle, s->projected, 1);
}

static float *filled(int64_t count, TorFill fill) {
    float *data = tor_check_buffer((size_t)count * sizeof(float), sizeof(float));
    tor_check_fill(TOR_float32, data, count, fill);
    return data;
}

/// Operands of the open case. What is read of a result lies in p->result.
static void make_operands(Problem *p, TorFill fill) {
    const float *x = NULL;
    for (int i = 0; i < p->bands.count; i++) {
        TorConvArgs *a = &p->bands.conv[i];
        TorConvPackArgs *w = &p->weight[i];
        if (i == 0) x = filled(a->batch * a->x_stride[0], fill);
        a->x = x;
        a->bias = tor_check_coin() ? NULL : filled(a->out_channels, fill);
        float *weight = filled(a->out_channels * w->out_stride, fill);
        // Sums of about 1, so that one tolerance is right for results of several convolutions.
        for (int64_t k = 0; fill == TOR_FILL_UNIFORM && k < a->out_channels * w->out_stride; k++)
            weight[k] *= 2 / sqrtf((float)w->out_stride);
        w->weight = weight;
        w->packed = tor_check_buffer(
            tor_conv_packed_bytes(a->out_channels, a->in_channels, a->groups, a->kernel, false),
            TOR_CACHE_LINE);
        tor_conv_pack_bind(w);
        tor_conv_pack_run(w, 0, w->items, NULL);
        a->packed = w->packed;
        a->y = p->result[i] = filled(p->count[i], TOR_FILL_UNIFORM);
        x = a->y;
        const TorProgram *program = &programs[p->program[i]];
        if (p->program[i] == NONE) continue;
        TorEpilogue *e = &p->epilogue[i];
        tor_epilogue_bind(e, program);
        for (int k = 1; k <= program->n_inputs; k++) {
            e->row_stride[k] = a->out_channels;
            e->col_stride[k] = 1;
        }
        if (program->n_inputs > 1) e->data[1] = filled(p->count[i], fill);
        e->data[program->n_inputs] = a->y;
        a->epilogue = e;
    }
}

/// Points the last convolution's result elsewhere.
static void set_result(Problem *p, float *y) {
    int last = p->bands.count - 1;
    p->bands.conv[last].y = y;
    if (p->bands.conv[last].epilogue)
        p->epilogue[last].data[programs[p->program[last]].n_inputs] = y;
}

static void check(const Shape *s, const int *program, TorFill fill) {
    Problem p;
    make(&p, s);
    memcpy(p.program, program, sizeof p.program);
    const int last = p.bands.count - 1;
    tor_check_case("b=%d c=%d m=%d o=%d in=%dx%d k=%d s=%d p=%d ep=%d,%d,%d fill=%d", (int)s->batch,
                   (int)s->c, (int)s->expanded, (int)s->projected, (int)s->height, (int)s->width,
                   (int)s->kernel, (int)s->stride, (int)s->padding, program[0], program[1],
                   program[2], fill);
    make_operands(&p, fill);
    for (int i = 0; i <= last; i++) tor_conv_run_ref(&p.bands.conv[i], &p.weight[i], TOR_float32);
    TOR_CHECK(tor_conv_bands_supported(&p.bands));
    const float *want = p.result[last];
    float *got = filled(p.count[last], TOR_FILL_UNIFORM);
    for (int i = 0; i < last; i++) {  // bands have no use for them
        p.bands.conv[i].y = NULL;
        p.bands.conv[i + 1].x = NULL;
        if (p.bands.conv[i].epilogue) p.epilogue[i].data[programs[program[i]].n_inputs] = NULL;
    }
    set_result(&p, got);
    tor_conv_bands_bind(&p.bands);
    tor_check_run(tor_conv_bands_run, &p.bands, p.bands.items, p.bands.scratch_bytes, 1);
    double tolerance = fill == TOR_FILL_EXACT ? 0 : 2e-6;
    tor_check_compare(TOR_float32, got, want, p.count[last], tolerance, 4 * tolerance);
    float *again = filled(p.count[last], TOR_FILL_UNIFORM);
    set_result(&p, again);
    tor_check_run(tor_conv_bands_run, &p.bands, p.bands.items, p.bands.scratch_bytes,
                  (int)tor_check_range(2, 5));
    tor_check_same(again, got, (size_t)p.count[last] * sizeof(float));
    tor_check_done();
}

static void random_shapes(void) {
    for (int n = 0; n < 400;) {
        bool big = tor_check_range(0, 9) == 0;
        Shape s = {.batch = tor_check_range(1, 3),
                   .c = tor_check_range(2, big ? 100 : 40),
                   .expanded = tor_check_range(0, 3) ? tor_check_range(2, big ? 400 : 70) : 0,
                   .height = tor_check_range(1, big ? 60 : 20),
                   .width = tor_check_range(1, big ? 60 : 20),
                   .kernel = tor_check_range(1, 3) * 2 + 1,
                   .stride = tor_check_range(1, 2)};
        s.projected = !s.expanded || tor_check_coin() ? tor_check_range(1, big ? 100 : 40) : 0;
        s.padding = tor_check_range(0, s.kernel);
        if (s.height + 2 * s.padding < s.kernel || s.width + 2 * s.padding < s.kernel) continue;
        n++;
        TorFill fill = tor_check_coin() ? TOR_FILL_EXACT : TOR_FILL_UNIFORM;
        int program[TOR_CONV_BANDS];
        for (int i = 0; i < TOR_CONV_BANDS; i++)
            program[i] =
                (int)tor_check_range(NONE, fill == TOR_FILL_EXACT ? LAST_EXACT : EPILOGUES - 1);
        check(&s, program, fill);
    }
}

// Benches.

typedef struct {
    Problem p;
    TorConvArgs alone[TOR_CONV_BANDS];
    void *scratch;
} Bench;

static void run_bands(void *ctx) {
    Bench *b = ctx;
    tor_conv_bands_run(&b->p.bands, 0, b->p.bands.items, b->scratch);
}

static void run_alone(void *ctx) {
    Bench *b = ctx;
    for (int i = 0; i < b->p.bands.count; i++)
        tor_conv_run(&b->alone[i], 0, b->alone[i].items, b->scratch);
}

typedef struct {
    const char *name;
    Shape shape;
} Block;

static void bench_block(const Block *block, int program) {
    Bench b;
    make(&b.p, &block->shape);
    for (int i = 0; i < b.p.bands.count; i++) b.p.program[i] = program;
    if (block->shape.projected) b.p.program[b.p.bands.count - 1] = NONE;
    tor_check_case("bench");
    make_operands(&b.p, TOR_FILL_UNIFORM);
    size_t scratch = 0;
    for (int i = 0; i < b.p.bands.count; i++) {
        b.alone[i] = b.p.bands.conv[i];
        tor_conv_bind(&b.alone[i]);
        scratch = TOR_MAX(scratch, b.alone[i].scratch_bytes);
    }
    tor_conv_bands_bind(&b.p.bands);
    b.scratch = tor_alloc(TOR_MAX(scratch, b.p.bands.scratch_bytes) + 64);
    enum { TURNS = 41 };
    double best[2] = {INFINITY, INFINITY}, all[2][TURNS];
    for (int t = 0; t < TURNS; t++)
        for (int which = 0; which < 2; which++) {
            double start = tor_check_seconds();
            for (int i = 0; i < 3; i++) (which ? run_bands : run_alone)(&b);
            double s = (tor_check_seconds() - start) / 3;
            best[which] = fmin(best[which], s);
            int k = t;
            for (; k > 0 && all[which][k - 1] > s; k--) all[which][k] = all[which][k - 1];
            all[which][k] = s;
        }
    printf("%-36s alone %7.1f (%7.1f) us, bands of %2d lines %7.1f (%7.1f) us: %.2f (%.2f)\n",
           block->name, best[0] * 1e6, all[0][TURNS / 2] * 1e6, (int)b.p.bands.plan.lines,
           best[1] * 1e6, all[1][TURNS / 2] * 1e6, best[0] / best[1],
           all[0][TURNS / 2] / all[1][TURNS / 2]);
    tor_free(b.scratch);
    tor_check_done();
}

/// MobileNetV2's, then EfficientNet-B0's.
static const Block blocks[] = {
    {"32 dw 3x3 32->16 @112", {1, 32, 0, 16, 112, 112, 3, 1, 1}},
    {"16->96 dw 3x3/2 @112", {1, 16, 96, 0, 112, 112, 3, 2, 1}},
    {"16->96 dw 3x3/2 ->24 @112", {1, 16, 96, 24, 112, 112, 3, 2, 1}},
    {"24->144 dw 3x3 @56", {1, 24, 144, 0, 56, 56, 3, 1, 1}},
    {"24->144 dw 3x3 ->24 @56", {1, 24, 144, 24, 56, 56, 3, 1, 1}},
    {"24->144 dw 3x3/2 @56", {1, 24, 144, 0, 56, 56, 3, 2, 1}},
    {"24->144 dw 3x3/2 ->32 @56", {1, 24, 144, 32, 56, 56, 3, 2, 1}},
    {"24->144 dw 5x5/2 @56", {1, 24, 144, 0, 56, 56, 5, 2, 2}},
    {"32->192 dw 3x3 @28", {1, 32, 192, 0, 28, 28, 3, 1, 1}},
    {"32->192 dw 3x3 ->32 @28", {1, 32, 192, 32, 28, 28, 3, 1, 1}},
    {"32->192 dw 3x3/2 ->64 @28", {1, 32, 192, 64, 28, 28, 3, 2, 1}},
    {"40->240 dw 5x5 @28", {1, 40, 240, 0, 28, 28, 5, 1, 2}},
    {"40->240 dw 3x3/2 @28", {1, 40, 240, 0, 28, 28, 3, 2, 1}},
    {"64->384 dw 3x3 ->64 @14", {1, 64, 384, 64, 14, 14, 3, 1, 1}},
    {"96->576 dw 3x3 ->96 @14", {1, 96, 576, 96, 14, 14, 3, 1, 1}},
    {"112->672 dw 5x5 @14", {1, 112, 672, 0, 14, 14, 5, 1, 2}},
    {"160->960 dw 3x3 ->160 @7", {1, 160, 960, 160, 7, 7, 3, 1, 1}},
};

static void bounds(void) {
    for (size_t i = 0; i < TOR_COUNT_OF(blocks); i++) bench_block(&blocks[i], BOUNDS);
}

static void silu(void) {
    for (size_t i = 0; i < TOR_COUNT_OF(blocks); i++) bench_block(&blocks[i], SILU);
}

int main(int argc, char **argv) {
    static const TorCheckTest tests[] = {{"random_shapes", random_shapes}},
                              benches[] = {{"bounds", bounds}, {"silu", silu}};
    return tor_check_main(argc, argv, tests, TOR_COUNT_OF(tests), benches, TOR_COUNT_OF(benches));
}

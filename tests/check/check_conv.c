/// The conv family against its oracle: every row, random shapes and strides, epilogues, threads;
/// and ResNet-50's layers timed.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cpu.h"
#include "conv_layers.h"
#include "harness.h"
#include "kernels/conv/contract.h"

typedef struct {
    TorConvArgs conv;
    TorConvPackArgs weight;
    int64_t x_count, y_count, w_count;
} Problem;

typedef enum { CHANNELS_LAST, CHANNELS_FIRST, SHUFFLED } Layout;

/// Strides of [b, c, d, h, w] with gaps for SHUFFLED; returns the elements spanned.
static int64_t lay_out(int64_t *stride, const int64_t *size, Layout layout) {
    int order[5] = {0, 1, 2, 3, 4};  // outermost first
    if (layout == CHANNELS_LAST) memcpy(order, (int[]){0, 2, 3, 4, 1}, sizeof order);
    if (layout == SHUFFLED)
        for (int i = 4; i > 0; i--) {
            int j = (int)tor_check_range(0, i), t = order[i];
            order[i] = order[j];
            order[j] = t;
        }
    int64_t step = layout == SHUFFLED ? tor_check_range(1, 2) : 1, last = 0;
    for (int i = 4; i >= 0; i--) {
        stride[order[i]] = step;
        last += (size[order[i]] - 1) * step;
        step *= TOR_MAX(size[order[i]], 1);
        if (layout == SHUFFLED) step += tor_check_range(0, 3);
    }
    return last + 1;
}

static int64_t out_size(const TorConvArgs *a, int i) {
    int64_t reach = (a->kernel[i] - 1) * a->dilation[i];
    if (a->transposed) return (a->in_size[i] - 1) * a->stride[i] - 2 * a->padding[i] + reach + 1;
    return (a->in_size[i] + 2 * a->padding[i] - reach - 1) / a->stride[i] + 1;
}

static void set_strides(Problem *p, Layout x, Layout y) {
    TorConvArgs *a = &p->conv;
    TorConvPackArgs *w = &p->weight;
    p->x_count = lay_out(
        a->x_stride,
        (int64_t[]){a->batch, a->in_channels, a->in_size[0], a->in_size[1], a->in_size[2]}, x);
    p->y_count = lay_out(
        a->y_stride,
        (int64_t[]){a->batch, a->out_channels, a->out_size[0], a->out_size[1], a->out_size[2]}, y);
    int64_t taps = 1, c = a->in_channels / a->groups, o = a->out_channels / a->groups;
    w->out_channels = a->out_channels;
    w->in_channels = a->in_channels;
    w->groups = a->groups;
    for (int i = 2; i >= 0; i--) {
        w->kernel[i] = a->kernel[i];
        w->kernel_stride[i] = taps;
        taps *= a->kernel[i];
    }
    w->in_stride = a->transposed ? o * taps : taps;
    w->out_stride = a->transposed ? taps : c * taps;
    w->group_stride = c * o * taps;
    p->w_count = a->groups * c * o * taps;
}

enum {
    NO_EPILOGUE,
    RESIDUAL,
    RELU,
    BOUNDS,
    SUM_BOUNDS,
    SILU,
    SUM_SIGMOID,
    RELU_SILU,
    GATE,
    EPILOGUES
};

// clang-format off
#define INSTR(fn, to, ...) \
    {TOR_FN_##fn, TOR_float32, TOR_float32, 0, {TOR_OPERAND_##to, 0}, {__VA_ARGS__}}
#define ACC {TOR_OPERAND_INPUT, 0}
#define ADDEND {TOR_OPERAND_INPUT, 1}
#define SO_FAR {TOR_OPERAND_REG, 0}
#define BOUND(i) {TOR_OPERAND_IMM, i}
#define PROGRAM(inputs, instrs, ...)                                                        \
    {.n_inputs = inputs, .n_outputs = 1, .n_instrs = instrs, .n_stages = 1, .n_regs = 1,      \
     .n_imms = 2, .input_type = {TOR_float32, TOR_float32}, .output_type = {TOR_float32},     \
     .imm = {{TOR_float32, {.f = -1.5}}, {TOR_float32, {.f = 6}}}, .instr = {__VA_ARGS__}}
// clang-format on

/// What register tiles do, and a last one that goes through scratch.
static const TorProgram programs[EPILOGUES] = {
    [RESIDUAL] = PROGRAM(2, 2, INSTR(add, REG, ACC, ADDEND), INSTR(relu, OUTPUT, SO_FAR)),
    [RELU] = PROGRAM(1, 1, INSTR(relu, OUTPUT, ACC)),
    [BOUNDS] =
        PROGRAM(1, 2, INSTR(maximum, REG, ACC, BOUND(0)), INSTR(minimum, OUTPUT, BOUND(1), SO_FAR)),
    [SUM_BOUNDS] =
        PROGRAM(2, 2, INSTR(add, REG, ADDEND, ACC), INSTR(minimum, OUTPUT, SO_FAR, BOUND(1))),
    [SILU] = PROGRAM(1, 1, INSTR(silu, OUTPUT, ACC)),
    [SUM_SIGMOID] = PROGRAM(2, 2, INSTR(add, REG, ACC, ADDEND), INSTR(sigmoid, OUTPUT, SO_FAR)),
    [RELU_SILU] = PROGRAM(1, 2, INSTR(relu, REG, ACC), INSTR(silu, OUTPUT, SO_FAR)),
    [GATE] = PROGRAM(2, 2, INSTR(silu, REG, ACC), INSTR(mul, OUTPUT, SO_FAR, ADDEND)),
};

static void pack(Problem *p, float **packed) {
    size_t bytes = tor_conv_packed_bytes(p->conv.out_channels, p->conv.in_channels, p->conv.groups,
                                         p->conv.kernel, p->conv.winograd);
    p->weight.winograd = p->conv.winograd;
    *packed = tor_check_buffer(bytes, TOR_CACHE_LINE);
    tor_conv_pack_bind(&p->weight);
    p->weight.packed = *packed;
    int64_t half = tor_check_range(0, p->weight.items);
    tor_conv_pack_run(&p->weight, half, p->weight.items, NULL);
    tor_conv_pack_run(&p->weight, 0, half, NULL);
}

static void run_team(const TorConvArgs *a, int threads) {
    tor_check_run(tor_conv_run, a, a->items, a->scratch_bytes, threads);
}

static void check(Problem *p, Layout lx, Layout ly, TorFill fill, bool with_bias, int program) {
    TorConvArgs *a = &p->conv;
    set_strides(p, lx, ly);
    tor_check_case(
        "b=%d c=%d o=%d g=%d in=%dx%dx%d out=%dx%dx%d k=%dx%dx%d s=%d,%d,%d p=%d,%d,%d d=%d,%d,%d "
        "t=%d wino=%d x=%d y=%d fill=%d bias=%d ep=%d",
        (int)a->batch, (int)a->in_channels, (int)a->out_channels, (int)a->groups,
        (int)a->in_size[0], (int)a->in_size[1], (int)a->in_size[2], (int)a->out_size[0],
        (int)a->out_size[1], (int)a->out_size[2], (int)a->kernel[0], (int)a->kernel[1],
        (int)a->kernel[2], (int)a->stride[0], (int)a->stride[1], (int)a->stride[2],
        (int)a->padding[0], (int)a->padding[1], (int)a->padding[2], (int)a->dilation[0],
        (int)a->dilation[1], (int)a->dilation[2], a->transposed, a->winograd, lx, ly, fill,
        with_bias, program);
    float *x = tor_check_buffer((size_t)p->x_count * 4, 4),
          *w = tor_check_buffer((size_t)p->w_count * 4, 4), *packed;
    // Huge finite values would overflow in one order of summation and not in another.
    tor_check_fill(TOR_float32, x, p->x_count, fill == TOR_FILL_SPECIAL ? TOR_FILL_UNIFORM : fill);
    for (int i = 0; fill == TOR_FILL_SPECIAL && i < 12; i++)
        x[tor_check_range(0, p->x_count - 1)] = (float[]){NAN, INFINITY, -INFINITY, 1e-42f}[i % 4];
    tor_check_fill(TOR_float32, w, p->w_count, fill == TOR_FILL_SPECIAL ? TOR_FILL_UNIFORM : fill);
    float *got = tor_check_buffer((size_t)p->y_count * 4, 4),
          *want = tor_check_buffer((size_t)p->y_count * 4, 4);
    float *bias = NULL, *add = NULL;
    if (with_bias) {
        bias = tor_check_buffer((size_t)a->out_channels * 4, 4);
        tor_check_fill(TOR_float32, bias, a->out_channels,
                       fill == TOR_FILL_SPECIAL ? TOR_FILL_UNIFORM : fill);
    }
    p->weight.weight = w;
    pack(p, &packed);
    a->x = x;
    a->bias = bias;
    a->packed = packed;
    TorEpilogue epilogue = {0};
    a->epilogue = NULL;
    int64_t pixels = a->batch * a->out_size[0] * a->out_size[1] * a->out_size[2],
            wide = a->out_channels + 3;
    const int out = program == NO_EPILOGUE ? 0 : programs[program].n_inputs;
    if (program != NO_EPILOGUE) {
        tor_epilogue_bind(&epilogue, &programs[program]);
        add = tor_check_buffer((size_t)(pixels * a->out_channels) * 4, 4);
        tor_check_fill(TOR_float32, add, pixels * a->out_channels,
                       fill == TOR_FILL_SPECIAL ? TOR_FILL_UNIFORM : fill);
        epilogue.data[1] = add;
        epilogue.row_stride[1] = a->out_channels;
        epilogue.col_stride[1] = epilogue.col_stride[out] = 1;
        epilogue.row_stride[out] = wide;
        p->y_count = (pixels - 1) * wide + a->out_channels;
        got = tor_check_buffer((size_t)p->y_count * 4, 4);
        want = tor_check_buffer((size_t)p->y_count * 4, 4);
        a->epilogue = &epilogue;
    }
    const char *reason;
    TOR_CHECK(tor_conv_supported(a, &reason));
    tor_conv_bind(a);

    a->y = want;
    epilogue.data[out] = want;
    tor_conv_run_ref(a, &p->weight, TOR_float32);
    a->y = got;
    epilogue.data[out] = got;
    uint8_t *scratch = tor_check_buffer(a->scratch_bytes, TOR_CACHE_LINE);
    memset(scratch, 0xFF, a->scratch_bytes);
    tor_conv_run(a, 0, a->items, scratch);
    double products =
        2 + (double)(a->in_channels / a->groups * a->kernel[0] * a->kernel[1] * a->kernel[2]);
    bool exact = fill == TOR_FILL_EXACT && program < SILU && !a->winograd;
    double tolerance = exact ? 0 : 4e-7 * products;
    tor_check_compare(TOR_float32, got, want, p->y_count, exact ? 0 : 1e-6,
                      TOR_MIN(tolerance, 1e-4) * (a->winograd ? 3 : 1));

    float *again = tor_check_buffer((size_t)p->y_count * 4, 4);
    a->y = again;
    epilogue.data[out] = again;
    run_team(a, (int)tor_check_range(2, 5));
    tor_check_same(again, got, (size_t)p->y_count * 4);
    tor_check_done();
}

static Problem make(int64_t batch, int64_t c, int64_t o, int64_t groups, int64_t size,
                    int64_t kernel, int64_t stride, int64_t padding) {
    Problem p = {.conv = {.batch = batch,
                          .in_channels = c,
                          .out_channels = o,
                          .groups = groups,
                          .in_size = {1, size, size},
                          .kernel = {1, kernel, kernel},
                          .stride = {1, stride, stride},
                          .padding = {0, padding, padding},
                          .dilation = {1, 1, 1}}};
    for (int i = 0; i < 3; i++) p.conv.out_size[i] = out_size(&p.conv, i);
    return p;
}

/// The shapes around microkernel, panel and tile sizes.
static void tiles(void) {
    static const int64_t channels[] = {1, 3, 8, 16, 17, 31, 64};
    static const int64_t sizes[] = {1, 2, 5, 7, 12, 13};
    for (size_t i = 0; i < TOR_COUNT_OF(channels); i++)
        for (size_t j = 0; j < TOR_COUNT_OF(sizes); j++)
            for (int64_t k = 1; k <= 3; k += 2) {
                Problem p = make(1, 64 / channels[i] + 1, channels[i], 1, sizes[j], k, 1, k / 2);
                check(&p, CHANNELS_LAST, CHANNELS_LAST, TOR_FILL_EXACT, true, NO_EPILOGUE);
            }
}

/// The kinds of layers in ResNet-50, ResNeXt, MobileNet, at small sizes.
static void layers(void) {
    static const int64_t shape[][8] = {
        {1, 3, 64, 1, 37, 7, 2, 3},     {2, 64, 64, 1, 14, 3, 1, 1},  {1, 256, 64, 1, 7, 1, 1, 0},
        {2, 128, 128, 1, 14, 3, 2, 1},  {2, 64, 128, 1, 14, 1, 2, 0}, {1, 512, 512, 1, 7, 3, 1, 1},
        {1, 32, 32, 32, 14, 3, 1, 1},   {2, 33, 33, 33, 15, 3, 2, 1}, {1, 16, 48, 16, 9, 3, 1, 1},
        {1, 128, 128, 32, 9, 3, 1, 1},  {1, 24, 24, 12, 9, 3, 2, 1},  {1, 72, 72, 9, 11, 3, 1, 1},
        {1, 36, 36, 9, 11, 5, 1, 2},    {2, 64, 64, 4, 8, 3, 1, 1},   {1, 1, 8, 1, 20, 5, 1, 2},
        {1, 144, 144, 144, 7, 5, 1, 2}, {1, 700, 24, 1, 1, 1, 1, 0},  {3, 16, 16, 1, 11, 1, 1, 0},
        {1, 16, 16, 1, 50, 16, 16, 0},  {1, 8, 8, 1, 160, 3, 1, 1},
    };
    for (size_t i = 0; i < TOR_COUNT_OF(shape); i++)
        for (int layout = 0; layout < 4; layout++) {
            Problem p = make(shape[i][0], shape[i][1], shape[i][2], shape[i][3], shape[i][4],
                             shape[i][5], shape[i][6], shape[i][7]);
            check(&p, layout & 1 ? CHANNELS_FIRST : CHANNELS_LAST,
                  layout & 2 ? CHANNELS_FIRST : CHANNELS_LAST, TOR_FILL_UNIFORM, layout & 1,
                  NO_EPILOGUE);
            for (int program = RESIDUAL; layout < 2 && program < EPILOGUES; program++)
                check(&p, layout & 1 ? CHANNELS_FIRST : CHANNELS_LAST, CHANNELS_LAST,
                      TOR_FILL_UNIFORM, true, program);
        }
}

static void random_shapes(void) {
    for (int n = 0; n < 700;) {
        Problem p = {0};
        TorConvArgs *a = &p.conv;
        bool big = tor_check_range(0, 9) == 0;
        a->batch = tor_check_range(1, 3);
        a->groups = tor_check_coin() ? 1 : tor_check_range(1, 9);
        a->in_channels = a->groups * (tor_check_coin() ? tor_check_range(1, 5)
                                                       : tor_check_range(1, big ? 200 : 40));
        a->out_channels = a->groups * tor_check_range(1, big ? 70 : 20);
        if (tor_check_range(0, 4) == 0) {  // narrow groups
            int64_t width = (int64_t)1 << tor_check_range(1, 4);
            a->groups = tor_check_range(2, 12);
            a->in_channels = a->out_channels = a->groups * width;
        }
        if (tor_check_range(0, 3) == 0) {  // depthwise
            a->groups = a->in_channels = tor_check_range(2, 70);
            a->out_channels = a->groups * tor_check_range(1, 3);
        }
        a->transposed = tor_check_range(0, 3) == 0;
        int rank = (int)tor_check_range(1, 3);
        bool fits = true;
        for (int i = 0; i < 3; i++) {
            bool used = i >= 3 - rank;
            a->kernel[i] = used ? tor_check_range(1, rank == 3 ? 3 : 5) : 1;
            a->stride[i] = used ? tor_check_range(1, 3) : 1;
            a->dilation[i] = used && tor_check_range(0, 2) == 0 ? tor_check_range(1, 3) : 1;
            a->padding[i] = used && tor_check_coin() ? tor_check_range(0, 4) : 0;
            a->in_size[i] = used ? tor_check_range(1, rank == 1 ? 150 : rank == 2 ? 18 : 7) : 1;
            a->out_size[i] = out_size(a, i);
            if (a->in_size[i] + 2 * a->padding[i] < (a->kernel[i] - 1) * a->dilation[i] + 1)
                fits = false;
            if (used && tor_check_range(0, 3) == 0)
                a->out_size[i] += tor_check_range(0, 2);  // ceil, output padding
            if (a->out_size[i] < 1) fits = false;
        }
        if (!fits) continue;
        n++;
        TorFill fill = tor_check_range(0, 3) ? TOR_FILL_EXACT : TOR_FILL_UNIFORM;
        // Where much of y is made of padding, a bias keeps it from being zero.
        bool bias = a->transposed || tor_check_coin();
        for (int i = 0; i < 3; i++) bias |= a->padding[i] > 0 || a->out_size[i] > out_size(a, i);
        check(&p, (Layout)tor_check_range(0, 2), (Layout)tor_check_range(0, 2), fill, bias,
              tor_check_range(0, 1) ? NO_EPILOGUE : (int)tor_check_range(RESIDUAL, EPILOGUES - 1));
    }
}

/// Two lines by four pixels is a tile; 16 and 32 channels are panels.
static void depthwise_tiles(void) {
    for (int n = 0; n < 400; n++) {
        Problem p = {0};
        TorConvArgs *a = &p.conv;
        a->batch = tor_check_range(1, 2);
        a->groups = a->in_channels = a->out_channels =
            tor_check_range(2, tor_check_coin() ? 40 : 400);
        for (int i = 0; i < 3; i++) {
            a->kernel[i] = i ? tor_check_range(1, 3) * 2 + 1 : 1;
            a->stride[i] = i ? tor_check_range(1, i == 1 ? 3 : 2) : 1;
            a->dilation[i] = 1;
            a->padding[i] = i ? tor_check_range(0, a->kernel[i]) : 0;
            a->in_size[i] = i ? tor_check_range(1, 20) : tor_check_range(1, 3);
            a->in_size[i] = TOR_MAX(a->in_size[i], a->kernel[i] - 2 * a->padding[i]);
            a->out_size[i] = out_size(a, i) + (i && tor_check_coin());
        }
        check(&p, CHANNELS_LAST, CHANNELS_LAST,
              tor_check_coin() ? TOR_FILL_EXACT : TOR_FILL_UNIFORM, true,
              (int)tor_check_range(0, EPILOGUES - 1));
        TOR_CHECK(strstr(a->row->name, "depthwise") != NULL);
    }
}

/// Tiles of 4x4 pixels that hang over the edges, panels that are not full, every layout.
static void winograd(void) {
    for (int n = 0; n < 400; n++) {
        Problem p = {0};
        TorConvArgs *a = &p.conv;
        bool big = tor_check_range(0, 5) == 0;
        a->winograd = true;
        a->groups = 1;
        a->batch = tor_check_range(1, 3);
        a->in_channels = tor_check_range(1, big ? 300 : 40);
        a->out_channels = tor_check_range(1, big ? 120 : 40);
        for (int i = 0; i < 3; i++) {
            a->kernel[i] = i ? 3 : 1;
            a->stride[i] = a->dilation[i] = 1;
            a->padding[i] = i ? tor_check_range(0, tor_check_coin() ? 1 : 9) : 0;
            a->in_size[i] = i ? tor_check_range(1, 26) : tor_check_range(1, 2);
            a->in_size[i] = TOR_MAX(a->in_size[i], a->kernel[i] - 2 * a->padding[i]);
            a->out_size[i] = out_size(a, i) + (i && tor_check_range(0, 3) == 0);
        }
        TOR_CHECK(tor_conv_winograd_takes(a));
        if (tor_check_coin()) a->wish.pixels = tor_check_range(1, 60);
        if (tor_check_coin()) a->wish.n_block = tor_check_range(1, 200);
        check(&p, (Layout)tor_check_range(0, 2), (Layout)tor_check_range(0, 2), TOR_FILL_UNIFORM,
              true, tor_check_coin() ? NO_EPILOGUE : (int)tor_check_range(RESIDUAL, EPILOGUES - 1));
        TOR_CHECK(strstr(a->row->name, "winograd") != NULL);
    }
}

/// NaN and infinity in x reach what they should and nothing else. No padding: zero times infinity
/// at the border is free.
static void specials(void) {
    Problem p = make(1, 16, 24, 1, 9, 3, 1, 0), q = make(1, 16, 24, 1, 9, 1, 1, 0),
            d = make(1, 20, 20, 20, 9, 3, 1, 1);
    for (int program = NO_EPILOGUE; program < EPILOGUES; program++) {
        check(&p, CHANNELS_LAST, CHANNELS_LAST, TOR_FILL_SPECIAL, true, program);
        check(&q, CHANNELS_LAST, CHANNELS_LAST, TOR_FILL_SPECIAL, true, program);
        check(&d, CHANNELS_LAST, CHANNELS_LAST, TOR_FILL_SPECIAL, true, program);
    }
}

/// Which epilogues register tiles apply, and with which bounds.
static void register_epilogues(void) {
    tor_check_case("register epilogues");
    static const TorProgram refused[] = {
        PROGRAM(2, 2, INSTR(relu, REG, ACC), INSTR(add, OUTPUT, SO_FAR, ADDEND)),
        PROGRAM(2, 1, INSTR(maximum, OUTPUT, ACC, ADDEND)),
        PROGRAM(1, 1, INSTR(add, OUTPUT, ACC, ACC)),
        PROGRAM(1, 1, INSTR(add, OUTPUT, ACC, BOUND(0))),
        PROGRAM(1, 1, INSTR(fmax, OUTPUT, ACC, BOUND(0))),
        PROGRAM(2, 1, INSTR(silu, OUTPUT, ADDEND)),
        PROGRAM(1, 2, INSTR(silu, REG, ACC), INSTR(relu, OUTPUT, SO_FAR)),
        PROGRAM(2, 2, INSTR(relu, REG, ACC), INSTR(add, OUTPUT, ACC, ADDEND)),
    };
    static const struct {
        int add;
        float low, high;
        int fn;
    } want[] = {[RESIDUAL] = {1, 0, INFINITY, TOR_FN_copy},
                [RELU] = {0, 0, INFINITY, TOR_FN_copy},
                [BOUNDS] = {0, -1.5f, 6, TOR_FN_copy},
                [SUM_BOUNDS] = {1, -INFINITY, 6, TOR_FN_copy},
                [SILU] = {0, -INFINITY, INFINITY, TOR_FN_silu},
                [SUM_SIGMOID] = {1, -INFINITY, INFINITY, TOR_FN_sigmoid},
                [RELU_SILU] = {0, 0, INFINITY, TOR_FN_silu}};
    TorRegisterEpilogue got;
    for (int i = RESIDUAL; i < GATE; i++) {
        TOR_CHECK(tor_epilogue_in_registers(&programs[i], &got));
        TOR_CHECK(got.add == want[i].add && got.low == want[i].low && got.high == want[i].high);
        TOR_CHECK(got.fn == want[i].fn && (got.apply != NULL) == (got.fn != TOR_FN_copy));
    }
    TOR_CHECK(!tor_epilogue_in_registers(&programs[GATE], &got));
    for (size_t i = 0; i < TOR_COUNT_OF(refused); i++)
        TOR_CHECK(!tor_epilogue_in_registers(&refused[i], &got));
    tor_check_done();
}

/// One shape in another type. Values are small integers, which every type has: floats sum exactly.
static void check_typed(TorDtype type, Problem p, Layout lx, bool with_bias) {
    TorConvArgs *a = &p.conv;
    size_t size = tor_dtype_size(type);
    set_strides(&p, lx, CHANNELS_LAST);
    tor_check_case("%s c=%d o=%d g=%d in=%dx%d k=%d s=%d p=%d t=%d x=%d bias=%d",
                   tor_dtype_name(type), (int)a->in_channels, (int)a->out_channels, (int)a->groups,
                   (int)a->in_size[1], (int)a->in_size[2], (int)a->kernel[1], (int)a->stride[1],
                   (int)a->padding[1], a->transposed, lx, with_bias);
    int64_t counts[3] = {p.x_count, p.w_count, a->out_channels};
    void *typed[3], *want = tor_check_buffer((size_t)p.y_count * size, size),
                    *got = tor_check_buffer((size_t)p.y_count * size, size);
    for (int i = 0; i < 3; i++) {
        typed[i] = tor_check_buffer((size_t)counts[i] * size, size);
        tor_check_fill(type, typed[i], counts[i], TOR_FILL_EXACT);
    }
    a->x = typed[0], a->bias = with_bias ? typed[2] : NULL, a->y = want;
    p.weight.weight = typed[1];
    tor_conv_run_ref(a, &p.weight, type);

    p.weight.packed = tor_check_buffer(tor_conv_typed_packed_bytes(&p.weight, type), size);
    TorRangeFn pack_run = tor_conv_typed_pack_bind(&p.weight, type);
    pack_run(&p.weight, 0, p.weight.items / 2, NULL);
    pack_run(&p.weight, p.weight.items / 2, p.weight.items, NULL);
    TorGemmArgs gemm = {0};
    tor_conv_typed_bind(a, &gemm, type);
    gemm.b = p.weight.packed, gemm.bias = with_bias ? typed[2] : NULL, gemm.c = got;
    uint8_t *scratch = tor_check_buffer(gemm.scratch_bytes, TOR_CACHE_LINE);
    memset(scratch, 0xFF, gemm.scratch_bytes);
    tor_gemm_typed_run(&gemm, 0, gemm.items, scratch);
    tor_check_compare(type, got, want, p.y_count, 0, 0);
    tor_check_done();
}

static void typed(void) {
    static const TorDtype types[] = {TOR_float64, TOR_uint8, TOR_int8,
                                     TOR_int16,   TOR_int32, TOR_int64};
    for (size_t t = 0; t < TOR_COUNT_OF(types); t++)
        for (int i = 0; i < 60; i++) {
            int64_t groups = tor_check_coin() ? 1 : tor_check_range(2, 4),
                    kernel = tor_check_range(1, 4);
            Problem p = make(tor_check_range(1, 2), groups * tor_check_range(1, 9),
                             groups * tor_check_range(1, 20), groups, tor_check_range(4, 12),
                             kernel, tor_check_range(1, 3), tor_check_range(0, kernel - 1));
            p.conv.transposed = tor_check_range(0, 2) == 0;
            p.conv.dilation[2] = p.conv.transposed ? tor_check_range(1, 2) : 1;
            for (int d = 0; d < 3; d++) p.conv.out_size[d] = out_size(&p.conv, d);
            check_typed(types[t], p, (Layout)tor_check_range(0, 2), true);
        }
}

static void empty(void) {
    tor_check_case("empty");
    Problem p = make(0, 16, 24, 1, 9, 3, 1, 0);
    set_strides(&p, CHANNELS_LAST, CHANNELS_LAST);
    tor_conv_bind(&p.conv);
    TOR_CHECK(p.conv.items == 0);
    Problem q = make(2, 0, 8, 1, 3, 3, 1, 1);
    set_strides(&q, CHANNELS_LAST, CHANNELS_LAST);
    tor_conv_bind(&q.conv);
    float y[2 * 9 * 8], bias[8];
    for (int i = 0; i < 8; i++) bias[i] = (float)i;
    q.conv.y = y;
    q.conv.bias = bias;
    q.conv.packed = q.conv.x = y;
    run_team(&q.conv, 1);
    for (int i = 0; i < 2 * 9 * 8; i++) TOR_CHECK(y[i] == (float)(i % 8));
    tor_check_done();
}

// Benches.

typedef struct {
    TorConvArgs args;
    void *scratch;
} Bench;

static void bench_run(void *ctx) {
    Bench *b = ctx;
    tor_conv_run(&b->args, 0, b->args.items, b->scratch);
}

static const char *const program_names[EPILOGUES] = {
    [RESIDUAL] = " +add+relu", [RELU] = " relu", [BOUNDS] = " bounds", [SILU] = " silu"};

static void bench_kernel(const Layer *l, Layout x_layout, int program, bool winograd,
                         double *seconds, double *flops) {
    Problem p = make(1, l->c, l->o, l->groups, l->size, l->kernel, l->stride, l->padding);
    set_strides(&p, x_layout, CHANNELS_LAST);
    float *x = tor_alloc((size_t)p.x_count * 4), *y = tor_alloc((size_t)p.y_count * 4),
          *w = tor_alloc((size_t)p.w_count * 4);
    tor_check_fill(TOR_float32, x, p.x_count, TOR_FILL_UNIFORM);
    tor_check_fill(TOR_float32, w, p.w_count, TOR_FILL_UNIFORM);
    p.conv.winograd = p.weight.winograd = winograd;
    float *packed =
        tor_alloc(tor_conv_packed_bytes(l->o, l->c, l->groups, p.conv.kernel, winograd));
    float *bias = tor_alloc_zero((size_t)l->o * 4);
    tor_conv_pack_bind(&p.weight);
    p.weight.weight = w;
    p.weight.packed = packed;
    tor_conv_pack_run(&p.weight, 0, p.weight.items, NULL);
    float *add = tor_alloc_zero((size_t)p.y_count * 4);
    TorEpilogue epilogue = {.row_stride = {0, l->o, l->o}, .col_stride = {0, 1, 1}};
    if (program != NO_EPILOGUE) {
        tor_epilogue_bind(&epilogue, &programs[program]);
        epilogue.data[1] = add;
        epilogue.data[programs[program].n_inputs] = y;
        p.conv.epilogue = &epilogue;
    }
    tor_conv_bind(&p.conv);
    p.conv.x = x;
    p.conv.y = y;
    p.conv.bias = bias;
    p.conv.packed = packed;
    Bench b = {p.conv, tor_alloc(p.conv.scratch_bytes + 64)};
    double work = 2.0 * (double)(p.w_count * p.conv.out_size[1] * p.conv.out_size[2]);
    char name[96];
    snprintf(name, sizeof name, "%s%s%s%s", l->name, winograd ? " winograd" : "",
             x_layout == CHANNELS_FIRST ? " (nchw x)" : "",
             program == NO_EPILOGUE ? "" : program_names[program]);
    tor_check_bench_flops(name, work, 1, bench_run, &b);
    *seconds += l->times * tor_check_time(bench_run, &b);
    *flops += l->times * work;
    tor_free(b.scratch);
    tor_free(add);
    tor_free(bias);
    tor_free(packed);
    tor_free(w);
    tor_free(x);
    tor_free(y);
}

/// The kernel that a net gets: where that is winograd, igemm's time is printed too.
static void bench_layer(const Layer *l, Layout x_layout, int program, double *seconds,
                        double *flops) {
    Problem p = make(1, l->c, l->o, l->groups, l->size, l->kernel, l->stride, l->padding);
    bool winograd = tor_conv_winograd_takes(&p.conv) && l->c >= 32 && l->size > 7;
    double other[2] = {0};
    if (winograd) bench_kernel(l, x_layout, program, false, &other[0], &other[1]);
    bench_kernel(l, x_layout, program, winograd, seconds, flops);
}

static void resnet50_total(int program) {
    double seconds = 0, flops = 0;
    for (size_t i = 0; i < TOR_COUNT_OF(resnet50_layers); i++)
        bench_layer(&resnet50_layers[i], CHANNELS_LAST, program, &seconds, &flops);
    printf("ResNet-50, batch 1, all convolutions%s: %.2f ms, %.1f GFLOP/s of %.1f\n",
           program == RESIDUAL ? program_names[program] : "", seconds * 1e3, flops / seconds * 1e-9,
           tor_check_peak_flops() * 1e-9);
}

static void resnet50(void) {
    double ignore = 0;
    resnet50_total(NO_EPILOGUE);
    bench_layer(&resnet50_layers[0], CHANNELS_FIRST, NO_EPILOGUE, &ignore, &ignore);
}

static void resnet50_fused(void) { resnet50_total(RESIDUAL); }

static void narrow(void) {
    for (int program = BOUNDS; program <= SILU; program += SILU - BOUNDS) {
        double seconds = 0, flops = 0;
        for (size_t i = 0; i < TOR_COUNT_OF(narrow_layers); i++)
            bench_layer(&narrow_layers[i], i ? CHANNELS_LAST : CHANNELS_FIRST, program, &seconds,
                        &flops);
        printf("Few products%s: %.2f ms, %.1f GFLOP/s\n", program_names[program], seconds * 1e3,
               flops / seconds * 1e-9);
    }
}

/// x and y by the second: what the memory that binds gives is the limit.
static void depthwise(void) {
    double ignore = 0;
    for (size_t i = 0; i < TOR_COUNT_OF(depthwise_layers); i++) {
        const Layer *l = &depthwise_layers[i];
        double seconds = 0;
        bench_layer(l, CHANNELS_LAST, SILU, &ignore, &ignore);
        bench_layer(l, CHANNELS_LAST, NO_EPILOGUE, &seconds, &ignore);
        int64_t out = (l->size - 1) / l->stride + 1;
        printf("    x and y: %.0f KB, %.1f GB/s\n",
               (double)(l->c * (l->size * l->size + out * out)) * 4e-3,
               (double)(l->c * (l->size * l->size + out * out)) * 4e-9 / seconds);
    }
}

static void others(void) {
    double ignore = 0;
    for (size_t i = 0; i < TOR_COUNT_OF(other_layers); i++)
        bench_layer(&other_layers[i], CHANNELS_LAST, NO_EPILOGUE, &ignore, &ignore);
}

static void bind_time(void) {
    Problem p = make(1, 256, 256, 1, 14, 3, 1, 1);
    set_strides(&p, CHANNELS_LAST, CHANNELS_LAST);
    double start = tor_check_seconds();
    for (int i = 0; i < 10000; i++) tor_conv_bind(&p.conv);
    printf("bind: %.0f ns\n", (tor_check_seconds() - start) * 1e5);
}

int main(int argc, char **argv) {
    static const TorCheckTest tests[] = {{"tiles", tiles},
                                         {"layers", layers},
                                         {"random_shapes", random_shapes},
                                         {"depthwise_tiles", depthwise_tiles},
                                         {"winograd", winograd},
                                         {"specials", specials},
                                         {"register_epilogues", register_epilogues},
                                         {"empty", empty},
                                         {"typed", typed}},
                              benches[] = {{"bind", bind_time},
                                           {"resnet50", resnet50},
                                           {"resnet50_fused", resnet50_fused},
                                           {"narrow", narrow},
                                           {"depthwise", depthwise},
                                           {"others", others}};
    return tor_check_main(argc, argv, tests, TOR_COUNT_OF(tests), benches, TOR_COUNT_OF(benches));
}

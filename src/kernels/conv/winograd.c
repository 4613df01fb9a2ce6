/// Winograd convolution F(4x4, 3x3): 3x3 kernels with stride 1 in a quarter of the products.
///
/// An item is a block of tiles times a block of panels. A tile is 4x4 output pixels and the 6x6
/// inputs that they read: transformed along both axes they become 36 values a channel, the weights
/// were when they were packed, and for each of the 36 there is a matrix product over the channels,
/// tiles by output channels, which the gemm family's kernels compute. What comes out is transformed
/// to the 16 pixels. Lavin and Gray 2015, "Fast Algorithms for Convolutional Neural Networks", with
/// the points of winograd.h. Numeric policy: contract.h.
#include <string.h>

#include "base/simd.h"
#include "kernels/conv/patch.h"
#include "kernels/conv/winograd.h"

#if defined(TOR_ISA_avx512)
#define KERNEL tor_conv_f32_f32p32__avx512_winograd
#elif defined(TOR_ISA_avx2)
#define KERNEL tor_conv_f32_f32p24__avx2_winograd
#else
#define KERNEL tor_conv_f32_f32p8__generic_winograd
#endif

enum { IN = TOR_WINOGRAD_IN, OUT = TOR_WINOGRAD_OUT, POINTS = TOR_WINOGRAD_POINTS };

#define UNROLLED _Pragma("GCC unroll 6")

/// Where a run stands; the transformed inputs are kept over an item's followers of the same tiles.
typedef struct {
    const TorConvArgs *args;
    int64_t block;         ///< of tiles, -1 for none
    int64_t first, tiles;  ///< the block's
    float *inputs;         ///< [POINTS][tiles][channels], POINTS plan.input_step apart
    float *products;       ///< [POINTS][tiles][columns], POINTS plan.product_step apart
    float *patch;          ///< zeros for a pixel's channels, or 6x6 pixels copied here
    float *acc;
} State;

/// A tile's place.
typedef struct {
    int64_t batch, depth, line, column;  ///< of its first output pixel
} Place;

static Place place_of(const TorConvArgs *args, int64_t tile) {
    const int64_t *tiles = args->plan.tiles;
    int64_t image = tile / (tiles[1] * tiles[2]);
    return (Place){image / tiles[0], image % tiles[0], tile / tiles[2] % tiles[1] * OUT,
                   tile % tiles[2] * OUT};
}

/// y[stride *] = B^T x
TOR_INLINE void transform_input(vf32 *y, const int stride, const vf32 *x) {
    const vf32 a = vf32_set(TOR_WINOGRAD_A), b = vf32_set(TOR_WINOGRAD_B),
               aa = vf32_set(TOR_WINOGRAD_A * TOR_WINOGRAD_A),
               bb = vf32_set(TOR_WINOGRAD_B * TOR_WINOGRAD_B),
               abb = vf32_set(TOR_WINOGRAD_A * TOR_WINOGRAD_B * TOR_WINOGRAD_B),
               aab = vf32_set(TOR_WINOGRAD_A * TOR_WINOGRAD_A * TOR_WINOGRAD_B),
               aabb = vf32_set(TOR_WINOGRAD_A * TOR_WINOGRAD_A * TOR_WINOGRAD_B * TOR_WINOGRAD_B),
               sum = vf32_set(TOR_WINOGRAD_A * TOR_WINOGRAD_A + TOR_WINOGRAD_B * TOR_WINOGRAD_B);
    vf32 even = x[4] - bb * x[2], odd = a * x[3] - abb * x[1];
    y[0] = (x[4] - sum * x[2]) + aabb * x[0];
    y[stride] = even + odd;
    y[2 * stride] = even - odd;
    even = x[4] - aa * x[2], odd = b * x[3] - aab * x[1];
    y[3 * stride] = even + odd;
    y[4 * stride] = even - odd;
    y[5 * stride] = (x[5] - sum * x[3]) + aabb * x[1];
}

/// y[stride *] = A^T x
TOR_INLINE void transform_output(vf32 *y, const int stride, const vf32 *x) {
    const vf32 a = vf32_set(TOR_WINOGRAD_A), b = vf32_set(TOR_WINOGRAD_B),
               aa = vf32_set(TOR_WINOGRAD_A * TOR_WINOGRAD_A),
               bb = vf32_set(TOR_WINOGRAD_B * TOR_WINOGRAD_B),
               aaa = vf32_set(TOR_WINOGRAD_A * TOR_WINOGRAD_A * TOR_WINOGRAD_A),
               bbb = vf32_set(TOR_WINOGRAD_B * TOR_WINOGRAD_B * TOR_WINOGRAD_B);
    vf32 sum_a = x[1] + x[2], sum_b = x[3] + x[4], minus_a = x[1] - x[2], minus_b = x[3] - x[4];
    y[0] = x[0] + sum_a + sum_b;
    y[stride] = a * minus_a + b * minus_b;
    y[2 * stride] = aa * sum_a + bb * sum_b;
    y[3 * stride] = (x[5] + aaa * minus_a) + bbb * minus_b;
}

/// One vector of channels of a tile, from channel c on.
TOR_INLINE void input_vector(const float *const *pixel, int64_t c, int lanes, float *to,
                             int64_t step) {
    vf32 half[IN * IN];
    UNROLLED for (int j = 0; j < IN; j++) {
        vf32 x[IN];
        UNROLLED for (int i = 0; i < IN; i++) x[i] =
            lanes == VF32 ? vf32_load(pixel[i * IN + j] + c)
                          : vf32_load_n(pixel[i * IN + j] + c, lanes);
        transform_input(half + j, IN, x);
    }
    UNROLLED for (int i = 0; i < IN; i++) {
        vf32 y[IN];
        transform_input(y, 1, half + i * IN);
        UNROLLED for (int j = 0; j < IN; j++) {
            float *at = to + (i * IN + j) * step + c;
            if (lanes == VF32)
                vf32_store(at, y[j]);
            else
                vf32_store_n(at, y[j], lanes);
        }
    }
}

/// Where the inputs of a tile lie, zeros where they are outside.
static void find_pixels(const State *s, Place at, const float **pixel) {
    const TorConvArgs *args = s->args;
    const int64_t *xs = args->plan.x_stride, *in = args->plan.in_size;
    const int64_t top = at.line - args->padding[1], left = at.column - args->padding[2],
                  channels = args->in_channels;
    const float *x = args->x + at.batch * xs[0] + at.depth * xs[2];
    for (int i = 0; i < IN; i++) {
        bool inside = top + i >= 0 && top + i < in[1];
        if (args->plan.copy) {
            float *line = s->patch + i * IN * channels;
            tor_conv_copy_line(line, channels, inside ? x + (top + i) * xs[3] : NULL, channels,
                               args, inside ? left : in[2], IN);
            for (int j = 0; j < IN; j++) pixel[i * IN + j] = line + j * channels;
            continue;
        }
        for (int j = 0; j < IN; j++)
            pixel[i * IN + j] = inside && left + j >= 0 && left + j < in[2]
                                    ? x + (top + i) * xs[3] + (left + j) * xs[4]
                                    : s->patch;
    }
}

static void enter_block(State *s, int64_t block) {
    const TorConvArgs *args = s->args;
    const int64_t channels = args->in_channels, step = args->plan.input_step,
                  all = args->plan.batch * args->plan.tiles[0] * args->plan.tiles[1] *
                        args->plan.tiles[2];
    s->block = block;
    s->first = block * args->plan.pixels;
    s->tiles = TOR_MIN(args->plan.pixels, all - s->first);
    for (int64_t t = 0; t < s->tiles; t++) {
        const float *pixel[POINTS];
        find_pixels(s, place_of(args, s->first + t), pixel);
        float *to = s->inputs + t * channels;
        int64_t c = 0;
        for (; c + VF32 <= channels; c += VF32) input_vector(pixel, c, VF32, to, step);
        if (c < channels) input_vector(pixel, c, (int)(channels - c), to, step);
    }
}

/// The products of panels [first, last), columns columns.
static void multiply(const State *s, int64_t first, int64_t last, int64_t columns) {
    const TorConvArgs *args = s->args;
    const TorGemmKernel *kernel = args->plan.product;
    const int64_t c = args->in_channels, nr = kernel->nr, panel = c * nr;
    const float *weight = args->packed;
    for (int point = 0; point < POINTS; point++) {
        for (int64_t p = first; p < last; p++) {
            const float *b = weight + (p * POINTS + point) * panel;
            const bool more = p + 1 < last;
            kernel->run(&(TorGemmTile){
                .a = s->inputs + point * args->plan.input_step,
                .b = b,
                .next = more ? b + POINTS * panel : weight + (first * POINTS + point + 1) * panel,
                .c = s->products + point * args->plan.product_step + (p - first) * nr,
                .rows = s->tiles,
                .cols = TOR_MIN(nr, columns - (p - first) * nr),
                .kc = c,
                .lda = c,
                .ldb = nr,
                .ldc = columns});
        }
    }
}

/// Where the pixels of a tile go, and what finishes them.
typedef struct {
    const float *from;  ///< products of the tile
    int64_t step;       ///< from point to point
    const float *bias, *add;
    float *to;
    int64_t to_line, to_pixel, add_line, add_pixel;
    int lines, pixels;                  ///< that are inside the output
    const TorRegisterEpilogue *finish;  ///< NULL: nothing
} Target;

/// One vector of columns of a tile, from column c on.
TOR_INLINE void output_vector(const Target *t, int64_t c, int lanes) {
    vf32 half[OUT * IN], y[OUT * OUT];
    UNROLLED for (int j = 0; j < IN; j++) {
        vf32 x[IN];
        UNROLLED for (int i = 0; i < IN; i++) {
            const float *from = t->from + (i * IN + j) * t->step + c;
            x[i] = lanes == VF32 ? vf32_load(from) : vf32_load_n(from, lanes);
        }
        transform_output(half + j, IN, x);
    }
    vf32 bias = {0};
    if (t->bias) bias = lanes == VF32 ? vf32_load(t->bias + c) : vf32_load_n(t->bias + c, lanes);
    UNROLLED for (int i = 0; i < OUT; i++) {
        transform_output(y + i * OUT, 1, half + i * IN);
        UNROLLED for (int j = 0; j < OUT; j++) y[i * OUT + j] += bias;
    }
    const TorRegisterEpilogue *finish = t->finish;
    if (finish && t->add) {
        for (int i = 0; i < t->lines; i++)
            for (int j = 0; j < t->pixels; j++) {
                const float *add = t->add + i * t->add_line + j * t->add_pixel + c;
                y[i * OUT + j] += lanes == VF32 ? vf32_load(add) : vf32_load_n(add, lanes);
            }
    }
    if (finish) {
        const vf32 low = vf32_set(finish->low), high = vf32_set(finish->high);
        for (int i = 0; i < OUT * OUT; i++) y[i] = vf32_min(high, vf32_max(low, y[i]));
        if (finish->apply) finish->apply(y, y, NULL, NULL, OUT * OUT * VF32);
    }
    for (int i = 0; i < t->lines; i++)
        for (int j = 0; j < t->pixels; j++) {
            float *to = t->to + i * t->to_line + j * t->to_pixel + c;
            if (lanes == VF32)
                vf32_store(to, y[i * OUT + j]);
            else
                vf32_store_n(to, y[i * OUT + j], lanes);
        }
}

static void run_target(const Target *t, int64_t columns) {
    int64_t c = 0;
    for (; c + VF32 <= columns; c += VF32) output_vector(t, c, VF32);
    if (c < columns) output_vector(t, c, (int)(columns - c));
}

/// Lines of sums in scratch to y or through the epilogue.
static void leave(const State *s, Place at, int64_t line_stride, int64_t lines, int64_t pixels,
                  int64_t column, int64_t columns, void *scratch) {
    const TorConvArgs *args = s->args;
    const int64_t *ys = args->plan.y_stride, *rows = args->plan.row_stride;
    for (int64_t i = 0; i < lines; i++) {
        const float *acc = s->acc + i * line_stride;
        if (args->epilogue) {
            int64_t row = at.batch * rows[0] + at.depth * rows[1] + (at.line + i) * rows[2] +
                          at.column * rows[3];
            tor_epilogue_run(args->epilogue, 0, row, pixels, column, columns, acc, columns,
                             scratch);
            continue;
        }
        float *y = args->y + at.batch * ys[0] + at.depth * ys[2] + (at.line + i) * ys[3] +
                   at.column * ys[4] + column * ys[1];
        for (int64_t j = 0; j < columns; j++)
            for (int64_t p = 0; p < pixels; p++) y[j * ys[1] + p * ys[4]] = acc[p * columns + j];
    }
}

/// The pixels of a block of tiles, output channels [column, column + columns).
static void leave_block(const State *s, int64_t column, int64_t columns, void *scratch) {
    const TorConvArgs *args = s->args;
    const TorEpilogue *e = args->epilogue;
    const int64_t *ys = args->plan.y_stride, *rows = args->plan.row_stride,
                  *out = args->plan.out_size;
    const bool finishes = args->plan.finishes, in_y = !e && ys[1] == 1;
    Target t = {.step = args->plan.product_step,
                .bias = args->bias ? args->bias + column : NULL,
                .finish = finishes ? &args->plan.finish : NULL};
    // Where the pixels of the whole image are.
    int64_t to[4] = {ys[0], ys[2], ys[3], ys[4]}, add[4] = {0};
    float *y = args->y;
    const float *addend = NULL;
    if (finishes) {
        const int k = args->plan.finish.add;
        y = e->data[e->program->n_inputs];
        if (k) addend = (const float *)e->data[k] + column;
        for (int i = 0; i < 4; i++)
            to[i] = rows[i] * e->row_stride[e->program->n_inputs],
            add[i] = k ? rows[i] * e->row_stride[k] : 0;
    }
    t.add_line = add[2], t.add_pixel = add[3];
    // Tiles that follow each other along a line of tiles go together.
    for (int64_t tile = 0, n; tile < s->tiles; tile += n) {
        Place at = place_of(args, s->first + tile);
        n = TOR_MIN(s->tiles - tile, args->plan.tiles[2] - at.column / OUT);
        int64_t width = TOR_MIN(n * OUT, out[2] - at.column),
                lines = TOR_MIN(OUT, out[1] - at.line);
        t.lines = (int)lines;
        t.to_line = width * columns, t.to_pixel = columns;
        if (finishes || in_y) t.to_line = to[2], t.to_pixel = to[3];
        for (int64_t i = 0; i < n; i++) {
            int64_t first = i * OUT;
            t.pixels = (int)TOR_MIN(OUT, width - first);
            t.from = s->products + (tile + i) * columns;
            t.to = s->acc + first * columns;
            if (finishes || in_y)
                t.to = y + at.batch * to[0] + at.depth * to[1] + at.line * to[2] +
                       (at.column + first) * to[3] + column;
            if (addend)
                t.add = addend + at.batch * add[0] + at.depth * add[1] + at.line * add[2] +
                        (at.column + first) * add[3];
            run_target(&t, columns);
        }
        if (!finishes && !in_y)
            leave(s, at, width * columns, lines, width, column, columns, scratch);
    }
}

void KERNEL(const void *arg, int64_t begin, int64_t end, void *scratch);

void KERNEL(const void *arg, int64_t begin, int64_t end, void *scratch) {
    const TorConvArgs *args = arg;
    uint8_t *base = scratch;
    State s = {.args = args,
               .block = -1,
               .inputs = (float *)(base + args->plan.seg_at),
               .products = (float *)(base + args->plan.product_at),
               .patch = (float *)(base + args->plan.patch_at),
               .acc = (float *)(base + args->plan.acc_at)};
    if (!args->plan.copy) memset(s.patch, 0, (size_t)args->in_channels * sizeof(float));
    const int64_t nr = args->plan.product->nr, panels = tor_ceil_div(args->out_channels, nr);
    for (int64_t item = begin; item < end; item++) {
        int64_t block = item / args->plan.n_blocks,
                first = item % args->plan.n_blocks * args->plan.n_block,
                last = TOR_MIN(first + args->plan.n_block, panels),
                columns = TOR_MIN(last * nr, args->out_channels) - first * nr;
        if (block != s.block) enter_block(&s, block);
        multiply(&s, first, last, columns);
        leave_block(&s, first * nr, columns, base + args->plan.epilogue_at);
    }
}

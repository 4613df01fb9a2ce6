/// Implicit-gemm convolution: see contract.h for the policy.
///
/// An item is a tile of output pixels times a block of output channels. Its A rows are pixels, read
/// in place: row r of k segment s starts at pixel[r] + segment[s].a, in x itself or in a
/// zero-padded channels-last patch copied to scratch. Loops, outside in: k blocks (a panel's block
/// stays in L1), panels, microkernel tiles. Sums wait in y or, before an epilogue or a transposing
/// store, in scratch.
#include <string.h>

#include "base/simd.h"
#include "kernels/conv/geometry.h"

#define NR (2 * VF32)
#if TOR_NREGS == 32
#define MR 8
#else
#define MR 6
#endif
#if defined(TOR_ISA_avx512)
#define KERNEL tor_conv_f32_f32p32__avx512_igemm
#elif defined(TOR_ISA_avx2)
#define KERNEL tor_conv_f32_f32p16__avx2_igemm
#else
#define KERNEL tor_conv_f32_f32p8__generic_igemm
#endif

typedef struct {
    int64_t a;    ///< offset from a pixel
    int64_t b;    ///< row of the packed panel
    int64_t len;  ///< products
    int64_t end;  ///< 1: last of its k block
} Segment;

typedef struct {
    const float *a;        ///< pixel offsets are from here
    const int64_t *pixel;  ///< [mr]
    const Segment *segment;
    const float *b;  ///< panel
    int64_t next;    ///< from b to what to prefetch, if ahead
    bool ahead;
    float *c;
    const int64_t *row;  ///< [mr], offsets of c's rows
    const float *bias;   ///< NULL: zeros; only if first
    bool first;          ///< c = bias + sum, else c += sum
    int n;               ///< columns, 1..NR
} Tile;

TOR_INLINE void step(vf32 (*acc)[2], const float *const *a, int64_t k, const float *b,
                     const int mr) {
    vf32 b0 = vf32_load(b), b1 = vf32_load(b + VF32);
#pragma GCC unroll 8
    for (int r = 0; r < mr; r++) {
        vf32 x = vf32_set(a[r][k]);
        acc[r][0] = vf32_fma(x, b0, acc[r][0]);
        acc[r][1] = vf32_fma(x, b1, acc[r][1]);
    }
}

/// `mr` and `chains` are constants of each copy. Few rows take several chains of sums in turns,
/// lest they wait for the latency of one.
TOR_INLINE void run_tile(const Tile *t, const int mr, const int chains) {
    vf32 sums[4][MR][2];
    vf32(*acc)[2] = sums[0];
    for (int u = 0; u < chains; u++)
        for (int r = 0; r < mr; r++) sums[u][r][0] = sums[u][r][1] = (vf32){0};
    // Prefetching the next panel's block costs one instruction a step; other tiles touch what they
    // have.
    const int64_t ahead = t->ahead ? NR : 0;
    for (const Segment *s = t->segment;; s++) {
        const float *b = t->b + s->b * NR, *next = b + t->next;
        const float *a[MR];
        for (int r = 0; r < mr; r++) a[r] = t->a + t->pixel[r] + s->a;
        int64_t k = 0, len = s->len;
        for (; k + chains <= len; k += chains)
#pragma GCC unroll 4
            for (int u = 0; u < chains; u++, b += NR, next += ahead) {
                for (int line = 0; line < NR; line += 16) __builtin_prefetch(next + line, 0, 2);
                step(sums[u], a, k + u, b, mr);
            }
        for (; chains > 1 && k < len; k++, b += NR) step(acc, a, k, b, mr);
        if (s->end) break;
    }
#pragma GCC unroll 2
    for (int u = chains / 2; u; u /= 2)
#pragma GCC unroll 2
        for (int i = 0; i < u; i++)
#pragma GCC unroll 8
            for (int r = 0; r < mr; r++) {
                sums[i][r][0] += sums[i + u][r][0];
                sums[i][r][1] += sums[i + u][r][1];
            }
    vf32 bias0 = {0}, bias1 = {0};
    if (t->n == NR) {
        if (t->bias) bias0 = vf32_load(t->bias), bias1 = vf32_load(t->bias + VF32);
#pragma GCC unroll 8
        for (int r = 0; r < mr; r++) {
            float *c = t->c + t->row[r];
            vf32_store(c, acc[r][0] + (t->first ? bias0 : vf32_load(c)));
            vf32_store(c + VF32, acc[r][1] + (t->first ? bias1 : vf32_load(c + VF32)));
        }
        return;
    }
    int n0 = TOR_MIN(t->n, VF32), n1 = t->n - n0;
    if (t->bias) {
        bias0 = vf32_load_n(t->bias, n0);
        if (n1) bias1 = vf32_load_n(t->bias + VF32, n1);
    }
#pragma GCC unroll 8
    for (int r = 0; r < mr; r++) {
        float *c = t->c + t->row[r];
        vf32_store_n(c, acc[r][0] + (t->first ? bias0 : vf32_load_n(c, n0)), n0);
        if (n1)
            vf32_store_n(c + VF32, acc[r][1] + (t->first ? bias1 : vf32_load_n(c + VF32, n1)), n1);
    }
}

#define CHAINS(mr) ((mr) == 1 ? 4 : (mr) <= 3 ? 2 : 1)
#define TILES(X) X(1) X(2) X(3) X(4) X(5) X(6)
#if MR == 8
#define TILES_WIDE(X) X(7) X(8)
#else
#define TILES_WIDE(X)
#endif
#define X(mr)                                                            \
    static __attribute__((noinline)) void run_tile_##mr(const Tile *t) { \
        run_tile(t, mr, CHAINS(mr));                                     \
    }
TILES(X)
TILES_WIDE(X)
#undef X
#define X(mr) run_tile_##mr,
static void (*const run_tiles[MR])(const Tile *) = {TILES(X) TILES_WIDE(X)};
#undef X

/// Where a run stands; what depends on the tile alone is kept over its channel blocks.
typedef struct {
    const TorConvArgs *args;
    int64_t tile_id;  ///< the tile that the rest describes, -1 for none
    TorConvAxis axis[3];
    int64_t batch, group, first[3], size[3];  ///< in outputs q of the phase
    int64_t pixels;
    const float *a;
    int64_t *pixel, *row;  ///< row: offset in y or in acc
    Segment *segment;
    int64_t blocks;  ///< k blocks of segments, at least 1
    float *patch, *acc;
    int64_t acc_stride;
} State;

/// One line of pixels [first, first + n) of x, all channels of the group, to dst; zeros outside x.
static void copy_line(float *dst, int64_t pixel, const float *src, int64_t c,
                      const TorConvArgs *args, int64_t first, int64_t n) {
    int64_t channel_stride = args->plan.x_stride[1], step = args->plan.x_stride[4],
            width = args->plan.in_size[2];
    int64_t low = TOR_MIN(TOR_MAX(-first, 0), n), high = TOR_MAX(TOR_MIN(width - first, n), low);
    if (low == n || high == low) low = high = n;
    for (int64_t i = 0; i < low; i++) memset(dst + i * pixel, 0, (size_t)c * sizeof(float));
    for (int64_t i = high; i < n; i++) memset(dst + i * pixel, 0, (size_t)c * sizeof(float));
    if (low == high) return;
    src += (first + low) * step;
    dst += low * pixel;
    n = high - low;
    if (channel_stride == 1 && step == c && pixel == c) {
        memcpy(dst, src, (size_t)(n * c) * sizeof(float));
    } else if (channel_stride == 1) {
        for (int64_t i = 0; i < n; i++)
            memcpy(dst + i * pixel, src + i * step, (size_t)c * sizeof(float));
    } else {
        for (int64_t k = 0; k < c; k += 8) {
            int64_t lanes = TOR_MIN(c - k, 8);
            const float *from = src + k * channel_stride;
            if (lanes == 8) {
                for (int64_t i = 0; i < n; i++)
                    for (int j = 0; j < 8; j++)
                        dst[i * pixel + k + j] = from[i * step + j * channel_stride];
            } else {
                for (int64_t j = 0; j < lanes; j++)
                    for (int64_t i = 0; i < n; i++)
                        dst[i * pixel + k + j] = from[i * step + j * channel_stride];
            }
        }
    }
}

static void fill_patch(const State *s, const float *x, const int64_t *low, int64_t c) {
    const TorConvArgs *args = s->args;
    const int64_t *stride = args->plan.patch_stride;
    int64_t extent[3];
    for (int i = 0; i < 3; i++)
        extent[i] = (s->size[i] - 1) * s->axis[i].stride + tor_conv_span(&s->axis[i]) + 1;
    for (int64_t d = 0; d < extent[0]; d++) {
        for (int64_t h = 0; h < extent[1]; h++) {
            int64_t id = low[0] + d, ih = low[1] + h;
            bool inside =
                id >= 0 && id < args->plan.in_size[0] && ih >= 0 && ih < args->plan.in_size[1];
            // A line outside has no pixel inside.
            copy_line(s->patch + d * stride[0] + h * stride[1], stride[2],
                      inside ? x + id * args->plan.x_stride[2] + ih * args->plan.x_stride[3] : NULL,
                      c, args, inside ? low[2] : args->plan.in_size[2], extent[2]);
        }
    }
}

/// The products of one output of this phase as segments, in k blocks of even size.
static void make_segments(State *s, int64_t c) {
    const TorConvArgs *args = s->args;
    const TorConvAxis *d = &s->axis[0], *h = &s->axis[1], *w = &s->axis[2];
    const int64_t *stride = args->plan.patch_stride;
    int64_t products = d->n * h->n * w->n * c;
    int64_t blocks = TOR_MAX(tor_ceil_div(products, args->plan.k_block), 1),
            left = tor_ceil_div(products, blocks), block = left;
    Segment *out = s->segment;
    s->blocks = blocks;
    *out = (Segment){0, 0, 0, 1};
    if (products == 0) return;
    int64_t runs = args->plan.merged_taps ? 1 : w->n, len = args->plan.merged_taps ? w->n * c : c;
    for (int64_t i = 0; i < d->n; i++) {
        for (int64_t j = 0; j < h->n; j++) {
            for (int64_t l = 0; l < runs; l++) {
                int64_t a = (d->off + i * d->off_step - tor_conv_low(d)) * stride[0] +
                            (h->off + j * h->off_step - tor_conv_low(h)) * stride[1] +
                            (w->off + l * w->off_step - tor_conv_low(w)) * stride[2];
                int64_t tap =
                    ((d->tap + i * d->tap_step) * args->kernel[1] + h->tap + j * h->tap_step) *
                        args->kernel[2] +
                    w->tap + l * w->tap_step;
                for (int64_t k = 0, n; k < len; k += n) {
                    n = TOR_MIN(len - k, left);
                    left -= n;
                    *out++ = (Segment){a + k, tap * c + k, n, left == 0};
                    if (left == 0) left = block;
                }
            }
        }
    }
    out[-1].end = 1;
}

/// Makes the state describe tile `id`; false where the phase has no such tile.
static bool enter_tile(State *s, int64_t id, bool in_y) {
    const TorConvArgs *args = s->args;
    int64_t c = args->in_channels / args->groups, rest = id, tile[3], low[3];
    s->tile_id = id;
    for (int i = 2; i >= 0; i--) {
        tile[i] = rest % args->plan.tiles[i];
        rest /= args->plan.tiles[i];
    }
    s->batch = rest % args->plan.batch;
    rest /= args->plan.batch;
    s->group = rest % args->groups;
    rest /= args->groups;
    s->pixels = 1;
    for (int i = 2; i >= 0; i--) {
        int64_t phases = args->transposed ? args->plan.stride[i] : 1;
        s->axis[i] = tor_conv_axis(args, i, rest % phases);
        rest /= phases;
        s->first[i] = tile[i] * args->plan.tile[i];
        s->size[i] = TOR_MIN(args->plan.tile[i], s->axis[i].out - s->first[i]);
        if (s->size[i] <= 0) s->pixels = 0;
        s->pixels *= s->size[i];
        low[i] = s->first[i] * s->axis[i].stride + tor_conv_low(&s->axis[i]);
    }
    if (s->pixels == 0) return false;
    make_segments(s, c);
    const float *x =
        args->x + s->batch * args->plan.x_stride[0] + s->group * c * args->plan.x_stride[1];
    const int64_t *from = args->plan.patch_stride, *to = args->plan.y_stride;
    if (args->plan.copy) {
        fill_patch(s, x, low, c);
        s->a = s->patch;
    } else {
        s->a = x + low[0] * from[0] + low[1] * from[1] + low[2] * from[2];
    }
    int64_t n = 0;
    for (int64_t d = 0; d < s->size[0]; d++) {
        for (int64_t h = 0; h < s->size[1]; h++) {
            for (int64_t w = 0; w < s->size[2]; w++, n++) {
                const TorConvAxis *ax = s->axis;
                s->pixel[n] = d * ax[0].stride * from[0] + h * ax[1].stride * from[1] +
                              w * ax[2].stride * from[2];
                s->row[n] = !in_y ? n * s->acc_stride
                                  : s->batch * to[0] +
                                        (ax[0].first + (s->first[0] + d) * ax[0].step) * to[2] +
                                        (ax[1].first + (s->first[1] + h) * ax[1].step) * to[3] +
                                        (ax[2].first + (s->first[2] + w) * ax[2].step) * to[4];
            }
        }
    }
    return true;
}

/// Sums in scratch to y or through the epilogue, a line of pixels at a time, lines that follow each
/// other in memory together.
static void leave_tile(const State *s, int64_t col, int64_t cols, void *scratch) {
    const TorConvArgs *args = s->args;
    const TorConvAxis *ax = s->axis;
    int64_t lines = s->size[0] * s->size[1], width = s->size[2];
    TorEpilogue strided;
    const TorEpilogue *epilogue = args->epilogue;
    int64_t step = ax[2].step;
    for (int64_t line = 0, n; line < lines; line += n) {
        n = 1;
        int64_t at[3] = {ax[0].first + (s->first[0] + line / s->size[1]) * ax[0].step,
                         ax[1].first + (s->first[1] + line % s->size[1]) * ax[1].step,
                         ax[2].first + s->first[2] * ax[2].step};
        const float *acc = s->acc + line * width * s->acc_stride;
        if (!epilogue) {
            float *y = args->y + s->batch * args->plan.y_stride[0] +
                       at[0] * args->plan.y_stride[2] + at[1] * args->plan.y_stride[3] +
                       at[2] * args->plan.y_stride[4] + col * args->plan.y_stride[1];
            for (int64_t j = 0; j < cols; j++)
                for (int64_t i = 0; i < width; i++)
                    y[j * args->plan.y_stride[1] + i * step * args->plan.y_stride[4]] =
                        acc[i * s->acc_stride + j];
            continue;
        }
        const int64_t *rows = args->plan.row_stride;
        int64_t row = s->batch * rows[0] + at[0] * rows[1] + at[1] * rows[2] + at[2] * rows[3];
        if (step == 1 && width == rows[2] && ax[1].step == 1) n = s->size[1] - line % s->size[1];
        if (step != 1) {
            strided = *args->epilogue;
            epilogue = &strided;
            const TorProgram *program = strided.program;
            for (int k = 1; k < program->n_inputs + program->n_outputs; k++) {
                int type = k < program->n_inputs ? program->input_type[k]
                                                 : program->output_type[k - program->n_inputs];
                int64_t bytes =
                    row * strided.row_stride[k] * (int64_t)tor_dtype_size((TorDtype)type);
                strided.data[k] = (char *)strided.data[k] + bytes;
                strided.row_stride[k] *= step;
            }
            row = 0;
        }
        tor_epilogue_run(epilogue, 0, row, n * width, col, cols, acc, s->acc_stride, scratch);
    }
}

void KERNEL(const void *arg, int64_t begin, int64_t end, void *scratch);

void KERNEL(const void *arg, int64_t begin, int64_t end, void *scratch) {
    const TorConvArgs *args = arg;
    uint8_t *base = scratch;
    bool in_y = !args->epilogue && args->plan.y_stride[1] == 1;
    int64_t *numbers = (int64_t *)(base + args->plan.seg_at);
    State s = {
        .args = args,
        .tile_id = -1,
        .pixel = numbers,
        .row = numbers + args->plan.pixels,
        .segment = (Segment *)(numbers + 2 * args->plan.pixels),
        .patch = (float *)(base + args->plan.patch_at),
        .acc = (float *)(base + args->plan.acc_at),
        .acc_stride = args->plan.n_join * args->plan.n_block + 16,
    };
    int64_t c = args->in_channels / args->groups, o = args->out_channels / args->groups;
    int64_t panels = tor_ceil_div(o, NR),
            panel = args->kernel[0] * args->kernel[1] * args->kernel[2] * c * NR;
    for (int64_t item = begin, joined; item < end; item += joined) {
        int64_t id = item / args->plan.n_blocks, block_id = item % args->plan.n_blocks,
                first = block_id * args->plan.n_block;
        if (id != s.tile_id) enter_tile(&s, id, in_y);
        // Blocks of one tile that fall to one thread go together, so that A is read from L2 once
        // for all.
        joined = TOR_MIN(args->plan.n_blocks - block_id, end - item);
        if (!in_y) joined = TOR_MIN(joined, args->plan.n_join);
        if (s.pixels == 0) continue;
        int64_t last = TOR_MIN(first + joined * args->plan.n_block, o), channel = s.group * o;
        int64_t tiles = tor_ceil_div(s.pixels, MR);
        const Segment *block = s.segment, *after;
        for (int64_t k = 0; k < s.blocks; k++, block = after) {
            for (after = block; !after++->end;) continue;
            for (int64_t n = first; n < last; n += NR) {
                Tile t = {
                    .a = s.a,
                    .segment = block,
                    .b = (const float *)args->packed + (s.group * panels + n / NR) * panel,
                    .c = in_y ? args->y + channel + n : s.acc + (n - first),
                    .bias = args->bias ? args->bias + channel + n : NULL,
                    .first = k == 0,
                    .n = (int)TOR_MIN(NR, last - n),
                };
                // Next: this block of the next panel, or the next block of the first one.
                if (n + NR < last)
                    t.next = panel;
                else if (k + 1 < s.blocks)
                    t.next = (first - n) / NR * panel + (after->b - block->b) * NR;
                for (int64_t i = 0; i < tiles; i++) {
                    int64_t low, high;
                    t.ahead = i == 0 && t.next != 0;
                    if (i == 1) t.next = 0;
                    tor_partition(s.pixels, (int)tiles, (int)i, &low, &high);
                    t.pixel = s.pixel + low;
                    t.row = s.row + low;
                    run_tiles[high - low - 1](&t);
                }
            }
        }
        if (!in_y) leave_tile(&s, channel + first, last - first, base + args->plan.epilogue_at);
    }
}

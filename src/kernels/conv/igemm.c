/// Implicit-gemm convolution: see contract.h for the policy.
///
/// An item is a tile of output pixels times a block of panels of output channels. Its A rows are
/// pixels, read in place: row r of k run i starts at pixel[r] + run[i].a, in x itself or in a
/// zero-padded channels-last patch copied to scratch. Loops, outside in: k blocks, then panels and
/// register tiles (tile.h) in one order or the other. Sums wait where the result goes, which the
/// tiles finish; or, before an epilogue that is more than a sum, bounds and a function and before a
/// transposing store, in scratch.
#include <math.h>
#include <string.h>

#include "kernels/conv/patch.h"
#include "kernels/conv/strip.h"

#if defined(TOR_ISA_avx512)
#define KERNEL tor_conv_f32_f32p32__avx512_igemm
#elif defined(TOR_ISA_avx2)
#define KERNEL tor_conv_f32_f32p24__avx2_igemm
#else
#define KERNEL tor_conv_f32_f32p8__generic_igemm
#endif

/// Where the sums of a run go.
typedef enum {
    IN_Y,       ///< no epilogue
    IN_OUTPUT,  ///< the epilogue's output, which the register tiles finish
    IN_SCRATCH
} Target;

/// Where a run stands; what depends on the tile alone is kept over its channel blocks.
typedef struct {
    const TorConvArgs *args;
    int64_t tile_id;  ///< the tile that the rest describes, -1 for none
    int64_t phase;    ///< of which `run` holds the products, -1 for none
    int64_t place;    ///< the tile of any group that pixel, row and add describe, -1 for none
    TorConvAxis axis[3];
    int64_t batch, group, first[3], size[3];  ///< in outputs q of the phase
    int64_t pixels;
    const float *a;
    Target target;
    int64_t *pixel, *row,
        *add;   ///< row: offset in y, in output 0 or in acc; add: in the input added
    bool even;  ///< steps from pixel to pixel are the same
    TorConvRun *run;
    int64_t blocks;  ///< k blocks of runs, at least 1
    float *patch, *acc;
    int64_t acc_stride;
} State;

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
            tor_conv_copy_line(
                s->patch + d * stride[0] + h * stride[1], stride[2],
                inside ? x + id * args->plan.x_stride[2] + ih * args->plan.x_stride[3] : NULL, c,
                args, inside ? low[2] : args->plan.in_size[2], extent[2]);
        }
    }
}

/// The products of one output of this phase as runs, in chains and k blocks of even size.
static void make_runs(State *s, int64_t c) {
    const TorConvArgs *args = s->args;
    const TorConvAxis *d = &s->axis[0], *h = &s->axis[1], *w = &s->axis[2];
    const int64_t *stride = args->plan.patch_stride;
    int64_t products = d->n * h->n * w->n * c;
    TorConvRun *out = s->run;
    s->blocks = 1;
    *out = (TorConvRun){0, 0, 0, TOR_CONV_BLOCK_END};
    if (products == 0) return;
    // Chains of even length, and the same number of them in each block.
    int64_t chain = tor_ceil_div(products, tor_ceil_div(products, TOR_CONV_CHAIN)),
            chains = tor_ceil_div(products, chain),
            each = tor_ceil_div(chains, tor_ceil_div(products, args->plan.k_block)), left = chain,
            ended = 0;
    s->blocks = tor_ceil_div(chains, each);
    int64_t lines = args->plan.merged_taps ? 1 : w->n, len = args->plan.merged_taps ? w->n * c : c;
    for (int64_t i = 0; i < d->n; i++) {
        for (int64_t j = 0; j < h->n; j++) {
            for (int64_t l = 0; l < lines; l++) {
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
                    *out = (TorConvRun){(a + k) * (int64_t)sizeof(float), tap * c + k, n, 0};
                    if (left == 0) {
                        out->end = ++ended % each ? TOR_CONV_CHAIN_END : TOR_CONV_BLOCK_END;
                        left = chain;
                    }
                    out++;
                }
            }
        }
    }
    out[-1].end = TOR_CONV_BLOCK_END;
}

/// Offsets of the tile's pixels in what is read and in what is written.
static void place_pixels(State *s) {
    const TorConvArgs *args = s->args;
    const TorConvAxis *ax = s->axis;
    const TorEpilogue *epilogue = args->epilogue;
    const int64_t *from = args->plan.patch_stride, *ys = args->plan.y_stride;
    const int64_t in_y[4] = {ys[0], ys[2], ys[3], ys[4]};
    const int64_t *to = s->target == IN_Y ? in_y : args->plan.row_stride;
    int64_t row_scale = s->acc_stride, add_scale = 0;
    if (s->target == IN_Y) {
        row_scale = 1;
    } else if (s->target == IN_OUTPUT) {
        row_scale = epilogue->row_stride[epilogue->program->n_inputs];
        add_scale = epilogue->row_stride[args->plan.finish.add];
    }
    int64_t n = 0;
    for (int64_t d = 0; d < s->size[0]; d++) {
        for (int64_t h = 0; h < s->size[1]; h++) {
            int64_t pixel = d * ax[0].stride * from[0] + h * ax[1].stride * from[1],
                    pixel_step = ax[2].stride * from[2];
            int64_t row = s->batch * to[0] +
                          (ax[0].first + (s->first[0] + d) * ax[0].step) * to[1] +
                          (ax[1].first + (s->first[1] + h) * ax[1].step) * to[2] +
                          (ax[2].first + s->first[2] * ax[2].step) * to[3],
                    row_step = ax[2].step * to[3];
            if (s->target == IN_SCRATCH) row = n, row_step = 1;
            for (int64_t w = 0; w < s->size[2]; w++, n++) {
                s->pixel[n] = pixel + w * pixel_step;
                s->row[n] = (row + w * row_step) * row_scale;
                s->add[n] = (row + w * row_step) * add_scale;
            }
        }
    }
    s->even = s->size[0] * s->size[1] == 1;
    // Tiles look one further than their pixels.
    s->row[n] = s->row[n - 1];
    s->add[n] = s->add[n - 1];
}

/// Makes the state describe tile `id`; it has no pixels where the phase has no such tile.
static void enter_tile(State *s, int64_t id) {
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
    const int64_t phase = rest,
                  places = args->plan.batch * args->plan.tiles[0] * args->plan.tiles[1] *
                           args->plan.tiles[2],
                  place = phase * places + id % places;
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
    if (s->pixels == 0) return;
    if (s->phase != phase) make_runs(s, c);
    s->phase = phase;
    const float *x =
        args->x + s->batch * args->plan.x_stride[0] + s->group * c * args->plan.x_stride[1];
    const int64_t *from = args->plan.patch_stride;
    if (args->plan.copy) {
        fill_patch(s, x, low, c);
        s->a = s->patch;
    } else {
        s->a = x + low[0] * from[0] + low[1] * from[1] + low[2] * from[2];
    }
    // Groups of one tile differ in where x and the result begin, which is in `a` and in c.
    if (s->place != place) place_pixels(s);
    s->place = place;
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

static int64_t panel_column(int64_t o, int64_t p) { return tor_conv_panel(o, NR, VF32, p); }

/// A k block: runs [begin, end), the `index`-th of them.
typedef struct {
    const TorConvRun *begin, *end;
    int64_t index;
    int64_t products, slots;  ///< of a pixel; slots as Tile counts them
} Block;

static Block next_block(const TorConvRun *begin, int64_t index) {
    Block b = {.begin = begin, .end = begin, .index = index};
    do b.products += b.end->len, b.slots += b.end->len / SLOT;
    while (b.end++->end != TOR_CONV_BLOCK_END);
    return b;
}

/// Products of an output pixel.
static int64_t depth_of(const TorConvArgs *args) {
    return args->kernel[0] * args->kernel[1] * args->kernel[2] * (args->in_channels / args->groups);
}

static const float *packed_panel(const State *s, int64_t p) {
    int64_t o = s->args->out_channels / s->args->groups;
    return (const float *)s->args->packed +
           (s->group * tor_round_up(o, VF32) + panel_column(o, p)) * depth_of(s->args);
}

/// The register tiles of panel `p`, at the first pixels.
static void enter_panel(const State *s, const Block *block, int64_t first_panel, int64_t p,
                        Tile *t) {
    const TorConvArgs *args = s->args;
    const TorRegisterEpilogue *finish = &args->plan.finish;
    int64_t o = args->out_channels / args->groups, column = panel_column(o, p),
            channel = s->group * o + column;
    bool first = block->index == 0, last = s->target == IN_OUTPUT && block->index + 1 == s->blocks;
    *t = (Tile){.a = s->a,
                .pixel = s->pixel,
                .run = block->begin,
                .b = packed_panel(s, p),
                .row = s->row,
                .add_row = s->add,
                .first = first,
                .bounded_below = last && finish->low > -INFINITY,
                .bounded_above = last && finish->high < INFINITY,
                .low = finish->low,
                .high = finish->high,
                .apply = last ? finish->apply : NULL,
                .silu = last && args->plan.silu,
                .n = (int)(panel_column(o, p + 1) - column)};
    t->vectors = (t->n + VF32 - 1) / VF32;
    t->next = (const char *)t->b;
    if (s->pixels > 1) {
        t->a_step = s->pixel[1] - s->pixel[0];
        t->c_step = s->row[1] - s->row[0];
        t->add_step = s->add[1] - s->add[0];
    }
    if (first && args->bias) memcpy(t->start, args->bias + channel, (size_t)t->n * sizeof(float));
    if (s->target == IN_Y) {
        t->c = args->y + channel;
    } else if (s->target == IN_SCRATCH) {
        t->c = s->acc + (column - panel_column(o, first_panel));
    } else {
        const TorEpilogue *e = args->epilogue;
        t->c = (float *)e->data[e->program->n_inputs] + channel;
        if (first && finish->add) t->add = (const float *)e->data[finish->add] + channel;
    }
}

/// Whether a panel's tiles can run as a strip.
static bool fits_strip(const State *s, const Block *block, const Tile *t, Cut cut) {
    return s->even && s->blocks == 1 && cut.rows >= most_rows(t) - 1 &&
           strip_takes(t, block->products);
}

/// The tiles of some pixels. fetch_a: fetches the next tile's pixels, which follow its own in
/// memory. last: of the panel.
static void run_pixels(const State *s, const Block *block, Tile *t, Cut cut, bool near,
                       bool fetch_a, bool last) {
    if (!near && fits_strip(s, block, t, cut)) {
        if (fetch_a) {
            t->next_step = SLOT * MR * (int64_t)sizeof(float);
            t->next = (const char *)(s->a + t->pixel[0] + MR * block->products);
        }
        run_strip(t, cut);
        return;
    }
    for (int i = 0; i < cut.tiles; i++) {
        const int rows = cut.rows + (i < cut.more);
        if (fetch_a) {
            t->next_step = SLOT * rows * (int64_t)sizeof(float);
            t->next = (const char *)(s->a + t->pixel[0] + rows * block->products);
        }
        t->ahead = last && i + 1 == cut.tiles ? 0 : rows;
        register_tiles[t->vectors - 1][near && i == 0][rows - 1](t);
        t->next += block->slots * t->next_step;
        t->pixel += rows;
        t->row += rows;
        t->add_row += rows;
    }
}

/// Panels outside, pixels inside: a panel's block stays in L1 while the pixels pass by.
static void run_by_panels(const State *s, const Block *block, int64_t first_panel,
                          int64_t last_panel, bool far_pixels) {
    for (int64_t p = first_panel; p < last_panel; p++) {
        Tile t;
        enter_panel(s, block, first_panel, p, &t);
        const Cut cut = cut_pixels(s->pixels, most_rows(&t));
        // What follows is fetched meanwhile, an equal share by each tile, since a burst of fetches
        // blocks the loads behind it: the next tile's pixels, unless they are in L2 already; then
        // this block of the next panel, or the next block of the first. Few tiles fetch for
        // themselves, just ahead.
        const bool near = cut.tiles < TOR_CONV_NEAR,
                   fetch_a = far_pixels && p == first_panel && !near;
        bool more = p + 1 < last_panel, other = block->index + 1 < s->blocks;
        if (!near && !fetch_a && block->slots && (more || other)) {
            int64_t o = s->args->out_channels / s->args->groups, q = more ? p + 1 : first_panel,
                    width = tor_round_up(panel_column(o, q + 1) - panel_column(o, q), VF32);
            t.next =
                (const char *)(packed_panel(s, q) + (more ? block->begin : block->end)->b * width);
            t.next_step = tor_ceil_div(block->products * width * (int64_t)sizeof(float),
                                       block->slots * cut.tiles);
        }
        run_pixels(s, block, &t, cut, near, fetch_a, true);
    }
}

/// A few pixels outside, panels inside, for weights that stay in L2 all together and one k block:
/// whole lines of the result are written one after the other, and stay in L1 until they are full.
static void run_by_pixels(const State *s, const Block *block, int64_t first_panel,
                          int64_t last_panel, bool far_pixels) {
    Tile t[TOR_CONV_PANELS];
    const int panels = (int)(last_panel - first_panel);
    for (int p = 0; p < panels; p++) enter_panel(s, block, first_panel, first_panel + p, &t[p]);
    int64_t few = TOR_MAX(TOR_CONV_FEW / s->args->out_channels, 2 * MR_TAIL),
            turns = tor_ceil_div(s->pixels, few);
    for (int64_t i = 0; i < turns; i++) {
        int64_t n = s->pixels / turns + (i < s->pixels % turns);
        for (int p = 0; p < panels; p++)
            run_pixels(s, block, &t[p], cut_pixels(n, most_rows(&t[p])), false,
                       far_pixels && p == 0, i + 1 == turns);
    }
}

void KERNEL(const void *arg, int64_t begin, int64_t end, void *scratch);

void KERNEL(const void *arg, int64_t begin, int64_t end, void *scratch) {
    const TorConvArgs *args = arg;
    uint8_t *base = scratch;
    int64_t *numbers = (int64_t *)(base + args->plan.seg_at);
    int64_t panels_most = args->plan.n_join * args->plan.n_block, each = args->plan.pixels + 1;
    State s = {
        .args = args,
        .tile_id = -1,
        .phase = -1,
        .place = -1,
        .target = args->plan.finishes                              ? IN_OUTPUT
                  : !args->epilogue && args->plan.y_stride[1] == 1 ? IN_Y
                                                                   : IN_SCRATCH,
        .pixel = numbers,
        .row = numbers + each,
        .add = numbers + 2 * each,
        .run = (TorConvRun *)(numbers + 3 * each),
        .patch = (float *)(base + args->plan.patch_at),
        .acc = (float *)(base + args->plan.acc_at),
        .acc_stride = panels_most * NR + 16,
    };
    int64_t o = args->out_channels / args->groups, panels = tor_ceil_div(o, NR);
    // Pixels read in place whose products follow each other in memory.
    bool far_pixels = !args->plan.copy && args->plan.patch_stride[2] == depth_of(args);
    for (int64_t item = begin, joined; item < end; item += joined) {
        int64_t id = item / args->plan.n_blocks, block_id = item % args->plan.n_blocks;
        if (id != s.tile_id) enter_tile(&s, id);
        // Blocks of one tile that fall to one thread go together, so that A is read from L2 once
        // for all.
        joined = TOR_MIN(args->plan.n_blocks - block_id, end - item);
        if (s.target == IN_SCRATCH) joined = TOR_MIN(joined, args->plan.n_join);
        if (s.pixels == 0) continue;
        int64_t first = block_id * args->plan.n_block,
                last = TOR_MIN(first + joined * args->plan.n_block, panels);
        const TorConvRun *run = s.run;
        for (int64_t k = 0; k < s.blocks; k++) {
            Block block = next_block(run, k);
            (args->plan.by_pixels ? run_by_pixels : run_by_panels)(&s, &block, first, last,
                                                                   far_pixels && s.blocks == 1);
            run = block.end;
        }
        int64_t column = panel_column(o, first), columns = panel_column(o, last) - column;
        if (s.target == IN_SCRATCH)
            leave_tile(&s, s.group * o + column, columns, base + args->plan.epilogue_at);
    }
}

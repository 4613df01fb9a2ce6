/// Conv family: rows, dispatch, tiling and weight packing. No arithmetic here.
#include "kernels/conv/contract.h"

#include <math.h>
#include <string.h>

#include "base/cpu.h"
#include "kernels/conv/geometry.h"
#include "kernels/conv/winograd.h"

#define TOR_CONV_KERNEL(symbol, features, direct, mr, nr, lanes) \
    void symbol(const void *args, int64_t begin, int64_t end, void *scratch);
#include "kernels/conv/kernels.inc"
#undef TOR_CONV_KERNEL

static const TorConvRow rows[] = {
#define TOR_CONV_KERNEL(symbol, features, direct, mr, nr, lanes) \
    {#symbol, features, direct, mr, nr, lanes, symbol},
#include "kernels/conv/kernels.inc"
#undef TOR_CONV_KERNEL
};

enum {
    PIXELS = 126,             ///< output pixels of a tile, about: A's share of L2 and C's
    N_BLOCK = 256,            ///< output channels of an item at most
    ITEMS_WANTED = 64,        ///< so that any usual number of threads is balanced
    PATCH_BYTES = 512 << 10,  ///< beyond L2's usual size reading A slows down
    // What a wish may ask for at most: bounds scratch.
    MOST_PIXELS = 1024,
    MOST_TILES = 256,
    MOST_N_BLOCK = 2048,
    MOST_K_BLOCK = 8192,
};

static int64_t wish_or(int64_t wish, int64_t own, int64_t most) {
    return wish ? TOR_MIN(wish, most) : own;
}

const TorConvRow *tor_conv_rows(int *count) {
    *count = (int)TOR_COUNT_OF(rows);
    return rows;
}

enum { IGEMM, DIRECT, DEPTHWISE, WINOGRAD };  ///< rows of a level, in order

static const TorConvRow *choose_row(int64_t out_channels, int64_t in_channels, int64_t groups,
                                    bool winograd) {
    int64_t c = in_channels / groups, o = out_channels / groups;
    uint32_t have = tor_cpu_features();
    size_t i = 0;
    while (rows[i].features & ~have) i++;
    if (winograd) return &rows[i + WINOGRAD];
    // The direct row takes groups that divide a vector.
    bool direct =
        groups > 1 &&
        (c == 1 || (c == o && c <= rows[i].lanes && (c == 2 || c == 4 || c == 8 || c == 16)));
    return &rows[i + (direct ? DIRECT : IGEMM)];
}

bool tor_conv_supported(const TorConvArgs *args, const char **reason) {
    *reason = NULL;
    if (args->groups < 1 || args->in_channels % args->groups || args->out_channels % args->groups)
        *reason = "groups must divide the channels";
    for (int i = 0; i < 3; i++) {
        if (args->kernel[i] < 1 || args->stride[i] < 1 || args->dilation[i] < 1)
            *reason = "kernel, stride and dilation must be at least 1";
        if (args->padding[i] < 0) *reason = "padding must not be negative";
    }
    return *reason == NULL;
}

/// Splits `size` into equal tiles of at most `most`.
static int64_t even_tile(int64_t size, int64_t most) {
    if (size <= 0) return 1;
    return tor_ceil_div(size, tor_ceil_div(size, TOR_MAX(most, 1)));
}

/// Turns axes that a unit kernel merely samples into plain batch-like axes of w, as far as strides
/// allow.
static void merge_unit_axes(TorConvArgs *args) {
    if (args->transposed) return;
    bool unit[3];
    for (int i = 0; i < 3; i++) {
        int64_t last = (args->out_size[i] - 1) * args->stride[i];
        unit[i] = args->kernel[i] == 1 && args->padding[i] == 0 && last < args->in_size[i];
        if (!unit[i]) continue;
        args->plan.x_stride[2 + i] *= args->stride[i];
        args->plan.in_size[i] = args->out_size[i];
        args->plan.stride[i] = 1;
    }
    if (!unit[2]) return;
    for (int i = 1; i >= -1; i--) {  // h, d, batch
        int64_t *size = i < 0 ? &args->plan.batch : &args->plan.out_size[i];
        int64_t stride = i < 0 ? 0 : 2 + i, width = args->plan.out_size[2];
        if (i >= 0 && !unit[i]) return;
        if (*size == 1) continue;
        if (width != 1 &&
            (args->plan.x_stride[stride] != width * args->plan.x_stride[4] ||
             (!args->epilogue && args->plan.y_stride[stride] != width * args->plan.y_stride[4])))
            return;
        if (width == 1) {
            args->plan.x_stride[4] = args->plan.x_stride[stride];
            args->plan.y_stride[4] = args->plan.y_stride[stride];
        }
        args->plan.out_size[2] = args->plan.in_size[2] = width * *size;
        *size = 1;
        if (i >= 0) args->plan.in_size[i] = 1;
    }
}

/// Largest tap span of an axis over all phases.
static int64_t widest_span(const TorConvArgs *args, int i, int64_t *stride, int64_t *out) {
    int64_t phases = args->transposed ? args->plan.stride[i] : 1, span = 0;
    for (int64_t p = 0; p < phases; p++) {
        TorConvAxis axis = tor_conv_axis(args, i, p);
        span = TOR_MAX(span, tor_conv_span(&axis));
        if (p == 0) *stride = axis.stride, *out = axis.out;
    }
    return span;
}

/// Whether register tiles can apply the epilogue: plan.finish is what it does.
static bool finishes(TorConvArgs *args) {
    const TorEpilogue *e = args->epilogue;
    TorRegisterEpilogue *finish = &args->plan.finish;
    bool takes = e && tor_epilogue_in_registers(e->program, finish) &&
                 e->col_stride[e->program->n_inputs] == 1 &&
                 (!finish->add || e->col_stride[finish->add] == 1);
    args->plan.silu =
        takes && finish->fn == TOR_FN_silu && finish->low == -INFINITY && finish->high == INFINITY;
    return takes;
}

static void bind_igemm(TorConvArgs *args) {
    int64_t c = args->in_channels / args->groups, o = args->out_channels / args->groups;
    int64_t nr = args->row->nr, stride[3], out[3], span[3];
    bool inside = !args->transposed;
    for (int i = 0; i < 3; i++) {
        span[i] = widest_span(args, i, &stride[i], &out[i]);
        if (args->padding[i] || (out[i] - 1) * stride[i] + span[i] >= args->plan.in_size[i])
            inside = false;
    }
    args->plan.copy = !inside || args->plan.x_stride[1] != 1;

    // Tiles: whole rows of pixels where they fit, smaller ones where the patch would leave L2.
    int64_t *tile = args->plan.tile, most = wish_or(args->wish.pixels, PIXELS, MOST_PIXELS);
    for (int i = 2; i >= 0; i--) {
        tile[i] = even_tile(out[i], most);
        most /= tile[i];
    }
    // Channels last without copies between taps: a pixel stride that is a multiple of the L1 way
    // size would put all rows of a microkernel tile into the same sets.
    int64_t pixel = c >= 128 && c % 128 == 0 ? c + 16 : c;
    if (args->plan.copy) {
        for (int i = 0; i < 3;) {
            int64_t bytes = pixel * (int64_t)sizeof(float);
            for (int j = 0; j < 3; j++)
                bytes *= args->plan.patch_size[j] = (tile[j] - 1) * stride[j] + span[j] + 1;
            if (bytes <= PATCH_BYTES || tile[0] * tile[1] * tile[2] <= 4 * args->row->mr) break;
            if (tile[i] == 1)
                i++;
            else
                tile[i] = even_tile(out[i], tile[i] / 2);
        }
        args->plan.patch_stride[2] = pixel;
        args->plan.patch_stride[1] = pixel * args->plan.patch_size[2];
        args->plan.patch_stride[0] = args->plan.patch_stride[1] * args->plan.patch_size[1];
    } else {
        for (int i = 0; i < 3; i++) args->plan.patch_stride[i] = args->plan.x_stride[2 + i];
    }
    args->plan.merged_taps =
        !args->transposed && args->dilation[2] == 1 && args->plan.patch_stride[2] == c;
    args->plan.pixels = tile[0] * tile[1] * tile[2];

    args->plan.phases = 1;
    int64_t items = args->plan.batch * args->groups, taps = 1;
    for (int i = 0; i < 3; i++) {
        items *= args->plan.tiles[i] = tor_ceil_div(out[i], tile[i]);
        taps *= args->kernel[i];
        if (args->transposed) args->plan.phases *= args->plan.stride[i];
    }
    items *= args->plan.phases;
    int64_t panels = tor_ceil_div(o, nr), most_panels = TOR_MIN(panels, N_BLOCK / nr);
    int64_t n_block = most_panels;
    while (n_block > 1 && items * tor_ceil_div(panels, n_block) < ITEMS_WANTED)
        n_block = tor_ceil_div(n_block, 2);
    n_block = wish_or(args->wish.n_block, n_block * nr, MOST_N_BLOCK);
    n_block = TOR_MIN(tor_ceil_div(n_block, nr), panels);
    args->plan.n_block = n_block;
    args->plan.n_blocks = tor_ceil_div(panels, n_block);
    args->plan.n_join = TOR_MAX(most_panels / n_block, 1);
    int64_t n_most = args->plan.n_join * n_block * nr;
    args->items = items * args->plan.n_blocks;

    const TorEpilogue *e = args->epilogue;
    args->plan.finishes = finishes(args);
    bool in_scratch = e ? !args->plan.finishes : args->plan.y_stride[1] != 1;

    // A block of a panel stays in a sixth of L2, from which it streams fast enough.
    int64_t l2 = (int64_t)tor_cpu_l2();
    int64_t k_most = TOR_MIN(l2 / 6 / (nr * (int64_t)sizeof(float)), 2 * TOR_CONV_CHAIN);
    k_most = TOR_MAX(wish_or(args->wish.k_block, k_most, MOST_K_BLOCK), 16);
    args->plan.k_block = k_most;
    args->plan.by_pixels = taps * c <= k_most && panels <= TOR_CONV_PANELS &&
                           taps * c * o * (int64_t)sizeof(float) <= l2 / 4 &&
                           args->plan.pixels >= TOR_CONV_NEAR * args->row->mr;

    size_t total = 0;
    args->plan.patch_at = tor_conv_book(
        &total, args->plan.copy ? (size_t)(args->plan.patch_size[0] * args->plan.patch_stride[0]) *
                                      sizeof(float)
                                : 0);
    args->plan.acc_at = tor_conv_book(
        &total, in_scratch ? (size_t)(args->plan.pixels * (n_most + 16)) * sizeof(float) : 0);
    args->plan.seg_at = tor_conv_book(
        &total, (size_t)(args->plan.pixels + 1) * 3 * sizeof(int64_t) +
                    (size_t)(taps + taps * c / (TOR_CONV_CHAIN / 2) + 2) * sizeof(TorConvRun));
    args->plan.epilogue_at =
        tor_conv_book(&total, e && in_scratch ? tor_epilogue_scratch(e, n_most) : 0);
    args->scratch_bytes = total;
}

static void bind_direct(TorConvArgs *args) {
    int64_t o = args->out_channels, stride[3], out[3];
    for (int i = 0; i < 3; i++) widest_span(args, i, &stride[i], &out[i]);
    args->plan.copy = args->plan.x_stride[1] != 1 || args->in_channels != o;
    args->plan.phases = 1;
    int64_t items = args->plan.batch;
    for (int i = 0; i < 3; i++) {
        args->plan.tile[i] = i == 2 ? out[i] : 1;
        items *= args->plan.tiles[i] = i == 2 ? 1 : out[i];
        if (args->transposed) args->plan.phases *= args->plan.stride[i];
    }
    items *= args->plan.phases;
    int64_t n_block = args->plan.copy ? 64 : 1024;
    while (n_block > 64 && items * tor_ceil_div(o, n_block) < ITEMS_WANTED) n_block /= 2;
    n_block = tor_round_up(wish_or(args->wish.n_block, n_block, MOST_N_BLOCK), 64);
    args->plan.n_block = TOR_MIN(n_block, o);
    args->plan.n_blocks = tor_ceil_div(o, args->plan.n_block);
    args->items = items * args->plan.n_blocks;
    // An epilogue's or a transposing store's chunk stays in L1.
    args->plan.pixels = TOR_MIN(TOR_MAX(4, 4096 / args->plan.n_block / 4 * 4), TOR_MAX(out[2], 1));

    size_t total = 0;
    args->plan.patch_at = tor_conv_book(
        &total, args->plan.copy ? (size_t)(args->kernel[0] * args->kernel[1] *
                                           args->plan.in_size[2] * args->plan.n_block) *
                                      sizeof(float)
                                : 0);
    args->plan.acc_at =
        tor_conv_book(&total, (size_t)(args->plan.pixels * args->plan.n_block) * sizeof(float));
    args->plan.epilogue_at = tor_conv_book(
        &total, args->epilogue ? tor_epilogue_scratch(args->epilogue, args->plan.n_block) : 0);
    args->scratch_bytes = total;
}

/// Whether the depthwise kernel takes a convolution of a direct row.
static bool fits_depthwise(const TorConvArgs *args) {
    const int64_t *kernel = args->kernel, *stride = args->stride;
    if (args->transposed || args->in_channels != args->groups || args->out_channels != args->groups)
        return false;
    if (kernel[0] != 1 || stride[0] != 1 || args->padding[0] ||
        args->out_size[0] > args->in_size[0])
        return false;
    if (args->dilation[1] != 1 || args->dilation[2] != 1 || kernel[1] + stride[1] > 32)
        return false;
    if ((kernel[2] != 3 && kernel[2] != 5 && kernel[2] != 7) || stride[2] > 2) return false;
    return args->x_stride[1] == 1 && (args->epilogue || args->y_stride[1] == 1);
}

static void bind_depthwise(TorConvArgs *args) {
    const int64_t *kernel = args->kernel, *stride = args->stride;
    int64_t o = args->out_channels, nr = args->row->nr;
    const TorEpilogue *e = args->epilogue;
    args->plan.finishes = finishes(args) && !args->plan.finish.add;
    bool in_scratch = e && !args->plan.finishes;

    // The inputs of a tile and the taps of a block of channels stay in L1.
    int64_t window = (kernel[1] + (TOR_CONV_TILE_LINES - 1) * stride[1]) *
                     (kernel[2] + (TOR_CONV_TILE_PIXELS - 1) * stride[2]),
            bytes = (window + kernel[1] * kernel[2]) * (int64_t)sizeof(float);
    int64_t n_block = tor_round_up(
        even_tile(o, TOR_MAX((int64_t)tor_cpu_l1d() * 3 / 4 / bytes / nr * nr, nr)), nr);
    int64_t items =
        args->plan.batch * args->plan.out_size[0] *
        (args->plan.tiles[1] = tor_ceil_div(args->plan.out_size[1], TOR_CONV_TILE_LINES));
    while (n_block > 2 * nr && items * tor_ceil_div(o, n_block) < ITEMS_WANTED)
        n_block = tor_round_up(n_block / 2, nr);
    args->plan.n_block = TOR_MIN(n_block, o);
    args->plan.n_blocks = tor_ceil_div(o, n_block);
    args->items = items * args->plan.n_blocks;
    // What an epilogue reads is in L1 still.
    args->plan.pixels = args->plan.out_size[2];
    if (in_scratch)
        args->plan.pixels =
            TOR_MIN(args->plan.pixels, TOR_MAX(TOR_CONV_TILE_PIXELS, 2048 / n_block / 4 * 4));

    size_t total = 0;
    args->plan.acc_at = tor_conv_book(
        &total,
        in_scratch
            ? (size_t)(TOR_CONV_TILE_LINES * args->plan.pixels * args->plan.n_block) * sizeof(float)
            : 0);
    args->plan.epilogue_at =
        tor_conv_book(&total, in_scratch ? tor_epilogue_scratch(e, args->plan.n_block) : 0);
    args->scratch_bytes = total;
}

bool tor_conv_winograd_takes(const TorConvArgs *args) {
    bool takes = args->groups == 1 && args->in_channels > 0 && !args->transposed &&
                 args->kernel[0] == 1 && args->stride[0] == 1 && args->padding[0] == 0;
    for (int i = 1; i < 3; i++)
        takes = takes && args->kernel[i] == 3 && args->stride[i] == 1 && args->dilation[i] == 1;
    return takes;
}

/// Tiles of all images.
static int64_t winograd_tiles(const TorConvArgs *args) {
    return args->batch * args->out_size[0] * tor_ceil_div(args->out_size[1], TOR_WINOGRAD_OUT) *
           tor_ceil_div(args->out_size[2], TOR_WINOGRAD_OUT);
}

static void bind_winograd(TorConvArgs *args) {
    const TorGemmKernel *product = args->plan.product = tor_gemm_packed_kernel();
    const int64_t c = args->in_channels, o = args->out_channels, nr = product->nr,
                  panels = tor_ceil_div(o, nr), all = winograd_tiles(args),
                  l2 = (int64_t)tor_cpu_l2(), point = TOR_WINOGRAD_POINTS * (int64_t)sizeof(float);
    const TorEpilogue *e = args->epilogue;
    args->plan.tiles[0] = args->out_size[0];
    for (int i = 1; i < 3; i++)
        args->plan.tiles[i] = tor_ceil_div(args->out_size[i], TOR_WINOGRAD_OUT);
    args->plan.finishes = finishes(args);
    args->plan.copy = args->plan.x_stride[1] != 1;

    // The transformed inputs of a block stay in half of L2, unless its rows would be too few for
    // the weights that they make pass by; the products of an item in a quarter.
    int64_t most = TOR_MIN(TOR_MAX(l2 / 2 / (point * c), 16), 96),
            tiles = even_tile(all, wish_or(args->wish.pixels, most, MOST_TILES)),
            n_block = TOR_MIN(TOR_MAX(l2 / 4 / (point * tiles * nr), 1), panels);
    n_block = tor_ceil_div(wish_or(args->wish.n_block, n_block * nr, MOST_N_BLOCK), nr);
    n_block = TOR_MIN(n_block, panels);
    const int64_t enough = 3 * tor_cpu_count();
    while (!args->wish.n_block && n_block > 1 &&
           tor_ceil_div(all, tiles) * tor_ceil_div(panels, n_block) < enough)
        n_block = tor_ceil_div(n_block, 2);
    while (!args->wish.pixels && tiles > 2 * product->mr &&
           tor_ceil_div(all, tiles) * tor_ceil_div(panels, n_block) < enough)
        tiles = tor_ceil_div(tiles, 2);
    args->plan.pixels = tiles;
    args->plan.n_block = n_block;
    args->plan.n_blocks = tor_ceil_div(panels, n_block);
    args->items = tor_ceil_div(all, tiles) * args->plan.n_blocks;

    // A line of the cache between points, which would meet in few sets of it otherwise.
    const int64_t columns = TOR_MIN(n_block * nr, o), line = TOR_CACHE_LINE / sizeof(float);
    args->plan.input_step = tor_round_up(tiles * c, line) + line;
    args->plan.product_step = tor_round_up(tiles * columns, line) + line;
    bool in_scratch = e ? !args->plan.finishes : args->plan.y_stride[1] != 1;
    size_t total = 0, of_float = sizeof(float);
    args->plan.patch_at =
        tor_conv_book(&total, (size_t)((args->plan.copy ? TOR_WINOGRAD_POINTS : 1) * c) * of_float);
    args->plan.seg_at =
        tor_conv_book(&total, (size_t)(TOR_WINOGRAD_POINTS * args->plan.input_step) * of_float);
    args->plan.product_at =
        tor_conv_book(&total, (size_t)(TOR_WINOGRAD_POINTS * args->plan.product_step) * of_float);
    int64_t pixels = TOR_MIN(tiles, args->plan.tiles[2]) * TOR_WINOGRAD_OUT * TOR_WINOGRAD_OUT;
    args->plan.acc_at =
        tor_conv_book(&total, in_scratch ? (size_t)(pixels * columns) * of_float : 0);
    args->plan.epilogue_at =
        tor_conv_book(&total, e && in_scratch ? tor_epilogue_scratch(e, columns) : 0);
    args->scratch_bytes = total;
}

void tor_conv_bind(TorConvArgs *args) {
    args->row = choose_row(args->out_channels, args->in_channels, args->groups, args->winograd);
    memset(&args->plan, 0, sizeof args->plan);
    args->plan.batch = args->batch;
    int64_t rows_of = 1;
    for (int i = 2; i >= 0; i--) {
        args->plan.in_size[i] = args->in_size[i];
        args->plan.out_size[i] = args->out_size[i];
        args->plan.stride[i] = args->stride[i];
        args->plan.row_stride[1 + i] = rows_of;
        rows_of *= args->out_size[i];
    }
    args->plan.row_stride[0] = rows_of;
    memcpy(args->plan.x_stride, args->x_stride, sizeof args->x_stride);
    memcpy(args->plan.y_stride, args->y_stride, sizeof args->y_stride);
    if (rows_of * args->batch * args->out_channels == 0) {
        args->items = 0;
        args->scratch_bytes = 0;
        return;
    }
    if (args->winograd) {
        bind_winograd(args);
    } else if (args->row->direct && fits_depthwise(args)) {
        args->row += DEPTHWISE - DIRECT;
        bind_depthwise(args);
    } else if (args->row->direct) {
        bind_direct(args);
    } else {
        merge_unit_axes(args);
        bind_igemm(args);
    }
}

void tor_conv_run(const void *args, int64_t begin, int64_t end, void *scratch) {
    ((const TorConvArgs *)args)->row->run(args, begin, end, scratch);
}

size_t tor_conv_packed_bytes(int64_t out_channels, int64_t in_channels, int64_t groups,
                             const int64_t kernel[3], bool winograd) {
    const TorConvRow *row = choose_row(out_channels, in_channels, groups, winograd);
    if (winograd) return tor_conv_winograd_bytes(out_channels, in_channels, row->nr);
    int64_t taps = kernel[0] * kernel[1] * kernel[2];
    int64_t columns = row->direct ? tor_round_up(out_channels, row->nr)
                                  : groups * tor_round_up(out_channels / groups, row->lanes);
    return (size_t)(columns * taps * (in_channels / groups)) * sizeof(float);
}

void tor_conv_pack_bind(TorConvPackArgs *args) {
    args->row = choose_row(args->out_channels, args->in_channels, args->groups, args->winograd);
    args->scratch_bytes = 0;
    int64_t nr = args->row->nr;
    args->items = args->row->direct
                      ? tor_ceil_div(args->out_channels, nr)
                      : args->groups * tor_ceil_div(args->out_channels / args->groups, nr);
}

/// Offset of tap `tap`, numbered as the packed weight has them.
static int64_t tap_offset(const TorConvPackArgs *args, int64_t tap) {
    int64_t w = tap % args->kernel[2], h = tap / args->kernel[2] % args->kernel[1],
            d = tap / args->kernel[2] / args->kernel[1];
    return d * args->kernel_stride[0] + h * args->kernel_stride[1] + w * args->kernel_stride[2];
}

void tor_conv_pack_run(const void *arg, int64_t begin, int64_t end, void *scratch) {
    (void)scratch;
    const TorConvPackArgs *args = arg;
    float *packed = args->packed;
    int64_t taps = args->kernel[0] * args->kernel[1] * args->kernel[2];
    int64_t c = args->in_channels / args->groups, o = args->out_channels / args->groups;
    int64_t nr = args->row->nr;
    if (args->winograd) {
        for (int64_t panel = begin; panel < end; panel++) tor_conv_winograd_pack(args, nr, panel);
        return;
    }
    if (args->row->direct) {
        for (int64_t panel = begin; panel < end; panel++)
            for (int64_t tap = 0; tap < taps; tap++)
                for (int64_t k = 0; k < c; k++)
                    for (int64_t i = panel * nr; i < (panel + 1) * nr; i++)
                        packed[((panel * taps + tap) * c + k) * nr + i % nr] =
                            i < args->out_channels
                                ? args->weight[i / o * args->group_stride +
                                               i % o * args->out_stride + k * args->in_stride +
                                               tap_offset(args, tap)]
                                : 0;
        return;
    }
    int64_t lanes = args->row->lanes, panels = tor_ceil_div(o, nr);
    for (int64_t item = begin; item < end; item++) {
        int64_t group = item / panels, first = tor_conv_panel(o, nr, lanes, item % panels),
                n = tor_conv_panel(o, nr, lanes, item % panels + 1) - first,
                width = tor_round_up(n, lanes);
        const float *src = args->weight + group * args->group_stride + first * args->out_stride;
        float *dst = packed + (group * tor_round_up(o, lanes) + first) * taps * c;
        for (int64_t tap = 0; tap < taps; tap++) {
            int64_t at = tap_offset(args, tap);
            for (int64_t k = 0; k < c; k++, dst += width) {
                for (int64_t j = 0; j < n; j++)
                    dst[j] = src[j * args->out_stride + k * args->in_stride + at];
                for (int64_t j = n; j < width; j++) dst[j] = 0;
            }
        }
    }
}

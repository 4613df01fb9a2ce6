/// Convolutions by bands: see TorConvBandsArgs. No arithmetic here: the parts of a band are
/// problems of igemm and of the depthwise kernel.
#include <string.h>

#include "base/cpu.h"
#include "kernels/conv/contract.h"
#include "kernels/conv/geometry.h"

/// Lines [begin, end) of an image.
typedef struct {
    int64_t begin, end;
} Lines;

/// One of the convolutions, as a thread computes it.
typedef struct {
    TorConvArgs conv;
    TorEpilogue epilogue;
    const TorConvArgs *whole;
    float *ring;  ///< of its result: line i is the i % room-th; NULL: the result has memory
    int64_t room;
    Lines held;
} Part;

static bool is_depthwise(const TorConvArgs *a) {
    return a->groups > 1 && a->in_channels == a->groups && a->out_channels == a->groups;
}

bool tor_conv_bands_supported(const TorConvBandsArgs *args) {
    int depthwise = 0;
    for (int i = 0; i < args->count; i++) {
        const TorConvArgs *a = &args->conv[i];
        if (a->transposed || a->kernel[0] != 1 || a->stride[0] != 1 || a->padding[0] != 0)
            return false;
        if (is_depthwise(a)) {
            depthwise++;
            for (int d = 1; d < 3; d++)
                if (a->dilation[d] != 1 || a->stride[d] > 2 ||
                    (a->kernel[d] != 3 && a->kernel[d] != 5 && a->kernel[d] != 7))
                    return false;
        } else {
            if (a->groups != 1) return false;
            for (int d = 1; d < 3; d++)
                if (a->kernel[d] != 1 || a->stride[d] != 1 || a->padding[d] != 0) return false;
        }
    }
    return depthwise == 1 && args->count >= 2 && args->count <= TOR_CONV_BANDS;
}

/// What a convolution reads for some lines of its result.
static Lines lines_read(const TorConvArgs *a, Lines out) {
    int64_t begin = out.begin * a->stride[1] - a->padding[1],
            end = (out.end - 1) * a->stride[1] - a->padding[1] + a->kernel[1];
    begin = TOR_MIN(TOR_MAX(begin, 0), a->in_size[1]);
    return (Lines){begin, TOR_MIN(TOR_MAX(end, begin), a->in_size[1])};
}

/// The most lines of each result that a band of `lines` needs, those outside of it included;
/// returns the bytes of what lies between.
static int64_t measure(const TorConvBandsArgs *args, int64_t lines, int64_t *most) {
    int64_t bytes = 0;
    for (int i = args->count - 1; i >= 0; i--) {
        const TorConvArgs *a = &args->conv[i];
        most[i] = lines;
        lines = (most[i] - 1) * a->stride[1] + a->kernel[1];
        if (i + 1 < args->count)
            bytes += most[i] * a->out_size[2] * a->out_channels * (int64_t)sizeof(float);
    }
    return bytes;
}

/// Lines of a band: what lies between takes half of L2, or the least that can be.
static int64_t choose_lines(const TorConvBandsArgs *args) {
    int64_t height = args->conv[args->count - 1].out_size[1], most[TOR_CONV_BANDS],
            lines = TOR_CONV_TILE_LINES;
    while (lines < height &&
           measure(args, lines + TOR_CONV_TILE_LINES, most) <= (int64_t)tor_cpu_l2() / 2)
        lines += TOR_CONV_TILE_LINES;
    int64_t bands = tor_ceil_div(height, lines);
    return tor_round_up(tor_ceil_div(height, bands), TOR_CONV_TILE_LINES);
}

/// Between the first and the last one.
static int64_t largest_between(const TorConvBandsArgs *args) {
    int64_t most = 0;
    for (int i = 0; i + 1 < args->count; i++) {
        const TorConvArgs *a = &args->conv[i];
        most = TOR_MAX(most, a->out_size[1] * a->out_size[2] * a->out_channels);
    }
    return most * (int64_t)sizeof(float);
}

bool tor_conv_bands_pay(const TorConvBandsArgs *args) {
    int64_t most[TOR_CONV_BANDS], l2 = (int64_t)tor_cpu_l2();
    const TorConvArgs *last = &args->conv[args->count - 1];
    return largest_between(args) > 2 * l2 &&
           measure(args, TOR_CONV_TILE_LINES, most) <= l2 * 3 / 4 &&
           last->batch * last->out_size[1] / TOR_CONV_TILE_LINES >= 2 * tor_cpu_count();
}

void tor_conv_bands_bind(TorConvBandsArgs *args) {
    int64_t most[TOR_CONV_BANDS];
    const TorConvArgs *last = &args->conv[args->count - 1];
    memset(&args->plan, 0, sizeof args->plan);
    args->items = 0;
    args->scratch_bytes = 0;
    for (int i = 0; i < args->count; i++)
        if (args->conv[i].batch * args->conv[i].out_size[1] * args->conv[i].out_size[2] == 0)
            return;
    args->plan.lines = choose_lines(args);
    args->plan.bands = tor_ceil_div(last->out_size[1], args->plan.lines);
    args->items = last->batch * args->plan.bands;
    measure(args, args->plan.lines, most);
    size_t total = 0, scratch = 0;
    tor_conv_book(&total, sizeof(Part) * (size_t)args->count);
    for (int i = 0; i < args->count; i++) {
        TorConvArgs *part = &args->plan.part[i];
        *part = args->conv[i];
        part->batch = 1;
        // A tile is a line, so that how its pixels are cut, and with it the order of sums, does not
        // depend on how many lines are computed at once: a thread's first band has more.
        if (!is_depthwise(part)) part->in_size[1] = part->out_size[1] = 1;
        tor_conv_bind(part);
        scratch = TOR_MAX(scratch, part->scratch_bytes);
        if (i > 0 && is_depthwise(part)) part->plan.ring = most[i - 1];
        args->plan.room[i] = most[i];
        if (i + 1 < args->count)
            args->plan.ring_at[i] =
                tor_conv_book(&total, (size_t)(most[i] * part->y_stride[3]) * sizeof(float));
    }
    args->plan.scratch_at = total;
    args->scratch_bytes = total + scratch;
}

/// Makes a part of unit kernels one of `lines` lines; returns its items.
static int64_t set_lines(TorConvArgs *part, int64_t lines) {
    part->plan.in_size[1] = part->plan.out_size[1] = part->plan.tiles[1] = lines;
    return lines * part->plan.tiles[2] * part->plan.n_blocks;
}

/// Points a part at lines `todo` of its result, and at what it reads: the lines that the part
/// before it holds, or the image. To igemm these lines are all there are; the depthwise kernel
/// knows the image, where they are.
static void place(Part *part, const Part *before, int64_t image, Lines todo) {
    const TorConvArgs *whole = part->whole;
    TorConvArgs *conv = &part->conv;
    const int64_t first = is_depthwise(conv) ? 0 : todo.begin;
    conv->packed = whole->packed;
    conv->bias = whole->bias;
    conv->x = before ? before->ring + first % before->room * whole->x_stride[3]
                     : whole->x + image * whole->x_stride[0] + first * whole->x_stride[3];
    if (part->ring)
        conv->y = part->ring + (todo.begin % part->room - todo.begin + first) * whole->y_stride[3];
    else if (whole->y)
        conv->y = whole->y + image * whole->y_stride[0] + first * whole->y_stride[3];
    if (!whole->epilogue) return;
    TorEpilogue *e = &part->epilogue;
    const TorProgram *program = e->program;
    const int64_t row = (image * whole->out_size[1] + first) * whole->out_size[2];
    for (int k = 1; k < program->n_inputs + program->n_outputs; k++) {
        int type = k < program->n_inputs ? program->input_type[k]
                                         : program->output_type[k - program->n_inputs];
        if (part->ring && k == program->n_inputs)
            e->data[k] = conv->y;
        else
            e->data[k] = (char *)whole->epilogue->data[k] +
                         row * e->row_stride[k] * (int64_t)tor_dtype_size((TorDtype)type);
    }
}

static void run_part(Part *part, const Part *before, int64_t image, Lines todo, void *scratch) {
    TorConvArgs *conv = &part->conv;
    // Lines that follow each other in memory.
    for (Lines now = todo; now.begin < todo.end; now.begin = now.end) {
        now.end = todo.end;
        if (part->ring)
            now.end = TOR_MIN(todo.end, now.begin + part->room - now.begin % part->room);
        place(part, before, image, now);
        int64_t begin = 0, end;
        if (is_depthwise(conv)) {
            begin = now.begin / TOR_CONV_TILE_LINES * conv->plan.n_blocks;
            end = tor_ceil_div(now.end, TOR_CONV_TILE_LINES) * conv->plan.n_blocks;
        } else {
            end = set_lines(conv, now.end - now.begin);
        }
        tor_conv_run(conv, begin, end, scratch);
    }
}

/// Makes a part hold `need`; returns what it does not have from the last band.
static Lines hold(Part *part, Lines need) {
    Lines held = part->held;
    part->held = need;
    if (held.begin <= need.begin && need.begin < held.end)
        return (Lines){TOR_MIN(held.end, need.end), need.end};
    return need;
}

void tor_conv_bands_run(const void *arg, int64_t begin, int64_t end, void *scratch) {
    const TorConvBandsArgs *args = arg;
    uint8_t *base = scratch;
    Part *parts = scratch;
    const int last = args->count - 1;
    for (int i = 0; i <= last; i++) {
        Part *part = &parts[i];
        part->whole = &args->conv[i];
        part->conv = args->plan.part[i];
        part->ring = i < last ? (float *)(base + args->plan.ring_at[i]) : NULL;
        part->room = args->plan.room[i];
        if (!part->whole->epilogue) continue;
        part->epilogue = *part->whole->epilogue;
        part->conv.epilogue = &part->epilogue;
    }
    int64_t image = -1;
    for (int64_t item = begin; item < end; item++) {
        int64_t band = item % args->plan.bands;
        if (item / args->plan.bands != image) {
            image = item / args->plan.bands;
            for (int i = 0; i < last; i++) parts[i].held = (Lines){0, 0};
        }
        Lines need[TOR_CONV_BANDS];
        need[last] = (Lines){band * args->plan.lines,
                             TOR_MIN((band + 1) * args->plan.lines, args->conv[last].out_size[1])};
        for (int i = last; i > 0; i--) need[i - 1] = lines_read(&args->conv[i], need[i]);
        for (int i = 0; i <= last; i++) {
            Lines todo = i < last ? hold(&parts[i], need[i]) : need[i];
            if (todo.begin < todo.end)
                run_part(&parts[i], i ? &parts[i - 1] : NULL, image, todo,
                         base + args->plan.scratch_at);
        }
    }
}

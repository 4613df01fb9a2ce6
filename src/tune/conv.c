// What may be chosen for a convolution in float32: the pixels of a tile or, for winograd, the tiles
// of a block, the output channels of an item and the products of a block. The kernel goes with the
// packed format of the weight, so it is never tuned.
#include <string.h>

#include "base/hash.h"
#include "tune/families.h"
#include "tune/program_text.h"

enum { PIXELS, N_BLOCK, K_BLOCK };  // knobs

/// The numbers that make a problem, with their names in params.
#define FIELDS(X)                 \
    X("b", &a->batch, 1)          \
    X("c", &a->in_channels, 1)    \
    X("o", &a->out_channels, 1)   \
    X("groups", &a->groups, 1)    \
    X("in", a->in_size, 3)        \
    X("out", a->out_size, 3)      \
    X("kernel", a->kernel, 3)     \
    X("stride", a->stride, 3)     \
    X("padding", a->padding, 3)   \
    X("dilation", a->dilation, 3) \
    X("x", a->x_stride, 5)        \
    X("y", a->y_stride, 5)

static uint64_t hash(const void *problem) {
    const TorConvProblem *p = problem;
    const TorConvArgs *a = &p->conv;
    uint64_t h = tor_hash_add(0, a->transposed | p->has_bias << 1 | a->winograd << 2);
#define X(name, values, count) h = tor_hash_list(h, values, count);
    FIELDS(X)
#undef X
    return tor_epilogue_hash(a->epilogue, h);
}

static void put(const void *problem, TorText *t) {
    const TorConvProblem *p = problem;
    const TorConvArgs *a = &p->conv;
#define X(name, values, count) tor_params_put_list(t, name, values, count);
    FIELDS(X)
#undef X
    tor_params_put(t, "transposed", a->transposed);
    tor_params_put(t, "bias", p->has_bias);
    if (a->winograd) tor_params_put(t, "winograd", 1);
    tor_params_put_epilogue(t, a->epilogue);
}

/// Elements of x and y; y's memory is that of the epilogue's outputs where there is one.
static bool extents(const TorConvArgs *a, int64_t out[2]) {
    int64_t x[] = {a->batch, a->in_channels, a->in_size[0], a->in_size[1], a->in_size[2]},
            y[] = {a->batch, a->out_channels, a->out_size[0], a->out_size[1], a->out_size[2]};
    return tor_params_extent(x, a->x_stride, 5, &out[0]) &&
           tor_params_extent(y, a->y_stride, 5, &out[1]);
}

/// The epilogue's operands, of [pixels, channels].
static bool epilogue(const TorConvArgs *a, TorTuneOperands *list) {
    int64_t pixels = a->batch * a->out_size[0] * a->out_size[1] * a->out_size[2];
    return tor_tune_epilogue(a->epilogue, 1, pixels, a->out_channels, list);
}

static bool is_sane(const TorConvArgs *a) {
    const char *reason;
    int64_t count[2];
    double work = (double)TOR_MAX(a->batch, 1) * (double)TOR_MAX(a->in_channels, 1) *
                  (double)TOR_MAX(a->out_channels, 1);
    for (int i = 0; i < 3; i++) {
        work *= (double)TOR_MAX(a->out_size[i], 1) * (double)TOR_MAX(a->kernel[i], 1);
        if (a->in_size[i] > 1 << 24 || a->padding[i] > 1 << 16 || a->stride[i] > 1 << 16 ||
            a->kernel[i] > 1 << 12 || a->dilation[i] > 1 << 16)
            return false;
    }
    if (work > 1e14 || !tor_conv_supported(a, &reason) || !extents(a, count)) return false;
    if (a->winograd && !tor_conv_winograd_takes(a)) return false;
    return !a->epilogue || epilogue(a, NULL);
}

static ToroidStatus parse(const char *params, TorArena *arena, void **problem) {
    TorConvProblem *to = tor_arena_alloc(arena, sizeof *to);
    if (!to) return tor_no_memory();
    TorConvArgs *a = &to->conv;
    TorParams p = tor_params_read(params);
#define X(name, values, count) tor_params_get_all(&p, name, values, count);
    FIELDS(X)
#undef X
    a->transposed = tor_params_get(&p, "transposed", 0, 1);
    to->has_bias = tor_params_get(&p, "bias", 0, 1);
    if (strncmp(p.at, "winograd=", 9) == 0) a->winograd = tor_params_get(&p, "winograd", 0, 1);
    to->dtype = TOR_float32;
    if (tor_params_get_epilogue(&p, arena, &to->epilogue)) a->epilogue = &to->epilogue;
    TOR_TRY(tor_params_end(&p));
    if (!is_sane(a)) return tor_invalid("params %s: no such convolution could have run", params);
    *problem = to;
    return TOROID_OK;
}

static void *copy(const void *problem, TorArena *arena) {
    TorConvProblem *to = tor_arena_alloc(arena, sizeof *to);
    if (!to) return NULL;
    memcpy(to, problem, sizeof *to);
    if (to->conv.epilogue) to->conv.epilogue = &to->epilogue;
    return to;
}

// ---------------------------------------------------------------- choices

static void candidates(const void *problem, int threads, TorTuneList *list) {
    const TorConvArgs *a = &((const TorConvProblem *)problem)->conv;
    (void)threads;
    if (!a->items) return;
    int64_t o = a->out_channels / a->groups, nr = a->row->nr;
    for (int64_t n = 64; n / 2 < o && n <= 1024; n *= 2) {
        int64_t block = tor_round_up(TOR_MIN(n, o), a->row->direct ? 64 : nr);
        if (block != a->plan.n_block) tor_tune_list_knob(list, N_BLOCK, block);
    }
    if (a->row->direct) return;
    if (a->winograd) {
        for (int64_t tiles = 8; tiles <= 96; tiles += tiles < 32 ? 8 : 16)
            if (tiles != a->plan.pixels) tor_tune_list_knob(list, PIXELS, tiles);
        return;
    }
    static const int64_t pixels[] = {24, 48, 72, 96, 126, 168, 252, 384};
    for (size_t i = 0; i < TOR_COUNT_OF(pixels); i++) {
        tor_tune_list_knob(list, PIXELS, pixels[i]);
        TorTuneChoice both = {0};
        both.knob[PIXELS] = pixels[i];
        both.knob[N_BLOCK] = tor_round_up(TOR_MIN(128, o), nr);
        if (i % 2 == 0) tor_tune_list_add(list, &both);
    }
    int64_t products = a->kernel[0] * a->kernel[1] * a->kernel[2] * a->in_channels / a->groups;
    for (int64_t k = 64; k <= 1024 && k / 2 < products; k *= 2)
        if (k != a->plan.k_block) tor_tune_list_knob(list, K_BLOCK, k);
}

static void set(void *problem, const TorTuneChoice *choice) {
    TorConvArgs *a = &((TorConvProblem *)problem)->conv;
    a->wish.pixels = choice->knob[PIXELS];
    a->wish.n_block = choice->knob[N_BLOCK];
    a->wish.k_block = choice->knob[K_BLOCK];
}

static bool operands(void *problem, TorTuneOperands *list) {
    TorConvProblem *p = problem;
    TorConvArgs *a = &p->conv;
    int64_t count[2];
    if (!extents(a, count)) return false;
    tor_tune_operand(list, &a->x, (size_t)count[0] * 4, TOR_float32, false, false);
    size_t packed =
        tor_conv_packed_bytes(a->out_channels, a->in_channels, a->groups, a->kernel, a->winograd);
    tor_tune_operand(list, &a->packed, packed, TOR_float32, false, true);
    if (p->has_bias)
        tor_tune_operand(list, &a->bias, (size_t)a->out_channels * 4, TOR_float32, false, true);
    if (a->epilogue) return epilogue(a, list);
    tor_tune_operand(list, &a->y, (size_t)count[1] * 4, TOR_float32, true, false);
    return true;
}

static void bind(void *problem, TorLaunch *launch) {
    TorConvArgs *a = &((TorConvProblem *)problem)->conv;
    tor_conv_bind(a);
    launch->scratch_bytes = a->scratch_bytes;
    tor_launch_region(launch, tor_conv_run, a, a->items);
}

const TorTunable tor_tunable_conv = {
    .op = "conv_f32",
    .knobs = {"pixels", "n_block", "k_block"},
    .hash = hash,
    .put = put,
    .parse = parse,
    .copy = copy,
    .candidates = candidates,
    .operands = operands,
    .set = set,
    .bind = bind,
};

// What may be chosen for a matrix product in float32: a row, blocks, how k is cut, whether a is
// copied, the order of the loops and the work of an item; or another library, and the blocks that
// it is called for. Never the packed format of b.
#include <string.h>

#include "base/cpu.h"
#include "base/hash.h"
#include "tune/families.h"
#include "tune/gemm_provided.h"
#include "tune/program_text.h"

enum { MC, NC, KC, K_PARTS, LEFT, ORDER, ITEM };  // knobs

static const char *row_name(int number) {
    int count;
    const TorGemmKernel *rows = tor_gemm_kernels(&count);
    if (number < count) return rows[number].name;
    const TorProvider *provider = tor_provider_at(number - count);
    return provider ? tor_provider_solution(provider) : NULL;
}

static uint64_t hash(const void *problem) {
    const TorGemmProblem *p = problem;
    const TorGemmArgs *g = &p->gemm;
    int rank = g->batch_rank;
    int64_t flags = g->b_packed | p->has_bias << 1 | rank << 2;
    int64_t numbers[] = {g->m, g->n, g->k, g->a_row, g->a_col, g->b_row, g->b_col, g->c_row, flags};
    uint64_t h = tor_hash_list(0, numbers, (int)TOR_COUNT_OF(numbers));
    h = tor_hash_list(h, g->batch_size, rank);
    h = tor_hash_list(h, g->a_batch, rank);
    h = tor_hash_list(h, g->b_batch, rank);
    h = tor_hash_list(h, g->c_batch, rank);
    return tor_epilogue_hash(g->epilogue, h);
}

static void put(const void *problem, TorText *t) {
    const TorGemmProblem *p = problem;
    const TorGemmArgs *g = &p->gemm;
    tor_params_put(t, "m", g->m);
    tor_params_put(t, "n", g->n);
    tor_params_put(t, "k", g->k);
    tor_params_put_list(t, "a", (int64_t[]){g->a_row, g->a_col}, 2);
    tor_params_put(t, "packed", g->b_packed);
    tor_params_put_list(t, "b", (int64_t[]){g->b_row, g->b_col}, 2);
    tor_params_put(t, "c", g->c_row);
    tor_params_put(t, "bias", p->has_bias);
    if (g->batch_rank) {
        tor_params_put_list(t, "batch", g->batch_size, g->batch_rank);
        tor_params_put_list(t, "ab", g->a_batch, g->batch_rank);
        tor_params_put_list(t, "bb", g->b_batch, g->batch_rank);
        tor_params_put_list(t, "cb", g->c_batch, g->batch_rank);
    }
    tor_params_put_epilogue(t, g->epilogue);
}

/// Batch sizes and strides, if the text has them.
static void parse_batch(TorParams *p, TorGemmArgs *g) {
    if (strncmp(p->at, "batch=", 6) != 0) return;
    g->batch_rank =
        tor_params_get_list(p, "batch", g->batch_size, TOR_GEMM_BATCH_RANK, 0, TOR_PARAMS_MOST);
    tor_params_get_all(p, "ab", g->a_batch, g->batch_rank);
    tor_params_get_all(p, "bb", g->b_batch, g->batch_rank);
    tor_params_get_all(p, "cb", g->c_batch, g->batch_rank);
}

/// Elements of one operand: a matrix of rows by cols for each batch item.
static bool extent(const TorGemmArgs *g, const int64_t *batch, int64_t rows, int64_t row,
                   int64_t cols, int64_t col, int64_t *elements) {
    int64_t size[TOR_GEMM_BATCH_RANK + 2], stride[TOR_GEMM_BATCH_RANK + 2];
    int rank = g->batch_rank;
    memcpy(size, g->batch_size, (size_t)rank * sizeof *size);
    memcpy(stride, batch, (size_t)rank * sizeof *stride);
    size[rank] = rows, stride[rank] = row;
    size[rank + 1] = cols, stride[rank + 1] = col;
    return tor_params_extent(size, stride, rank + 2, elements);
}

static int64_t batches(const TorGemmArgs *g) {
    int64_t count = 1;
    for (int d = 0; d < g->batch_rank; d++) count *= g->batch_size[d];
    return count;
}

/// The epilogue's operands, of [batch, m, n].
static bool epilogue(const TorGemmArgs *g, TorTuneOperands *list) {
    return tor_tune_epilogue(g->epilogue, batches(g), g->m, g->n, list);
}

/// Elements of a, b and c.
static bool extents(const TorGemmArgs *g, int64_t out[3]) {
    bool fits = extent(g, g->a_batch, g->m, g->a_row, g->k, g->a_col, &out[0]);
    if (g->b_packed)
        out[1] = (int64_t)(tor_gemm_packed_bytes(g->n, g->k) / sizeof(float));
    else
        fits &= extent(g, g->b_batch, g->k, g->b_row, g->n, g->b_col, &out[1]);
    return fits & extent(g, g->c_batch, g->m, g->c_row, g->n, 1, &out[2]);
}

/// Whether all of it can be had, so that what follows cannot overflow.
static bool is_sane(const TorGemmArgs *g) {
    double work = (double)TOR_MAX(g->m, 1) * (double)TOR_MAX(g->n, 1) * (double)TOR_MAX(g->k, 1);
    for (int d = 0; d < g->batch_rank; d++) work *= (double)TOR_MAX(g->batch_size[d], 1);
    int64_t count[3];
    if (work > 1e15 || (g->b_packed && g->batch_rank) || !extents(g, count)) return false;
    return !g->epilogue || epilogue(g, NULL);
}

static ToroidStatus parse(const char *params, TorArena *arena, void **problem) {
    TorGemmProblem *to = tor_arena_alloc(arena, sizeof *to);
    if (!to) return tor_no_memory();
    TorGemmArgs *g = &to->gemm;
    TorParams p = tor_params_read(params);
    int64_t pair[2] = {0};
    g->m = tor_params_get(&p, "m", 0, TOR_PARAMS_MOST);
    g->n = tor_params_get(&p, "n", 0, TOR_PARAMS_MOST);
    g->k = tor_params_get(&p, "k", 0, TOR_PARAMS_MOST);
    tor_params_get_all(&p, "a", pair, 2);
    g->a_row = pair[0], g->a_col = pair[1];
    g->b_packed = tor_params_get(&p, "packed", 0, 1);
    tor_params_get_all(&p, "b", pair, 2);
    g->b_row = pair[0], g->b_col = pair[1];
    g->c_row = tor_params_get(&p, "c", 0, TOR_PARAMS_MOST);
    to->has_bias = tor_params_get(&p, "bias", 0, 1);
    to->dtype = TOR_float32;
    parse_batch(&p, g);
    if (tor_params_get_epilogue(&p, arena, &to->epilogue)) g->epilogue = &to->epilogue;
    TOR_TRY(tor_params_end(&p));
    if (!is_sane(g)) return tor_invalid("params %s: no such product could have run", params);
    *problem = to;
    return TOROID_OK;
}

static void *copy(const void *problem, TorArena *arena) {
    TorGemmProblem *to = tor_arena_alloc(arena, sizeof *to);
    if (!to) return NULL;
    memcpy(to, problem, sizeof *to);
    if (to->gemm.epilogue) to->gemm.epilogue = &to->epilogue;
    return to;
}

// ---------------------------------------------------------------- choices

/// The rows that could do it: the one that bind took, and, where b is in strides, the other way to
/// read b with panels of the same width.
static void add_rows(const TorGemmArgs *g, TorTuneList *list) {
    if (g->b_packed || g->b_col != 1 || g->n < g->kernel->nr) return;
    int count;
    const TorGemmKernel *rows = tor_gemm_kernels(&count);
    for (int i = count - 1; i >= 0; i--)
        if ((rows[i].features & ~tor_cpu_features()) == 0 && rows[i].nr == g->kernel->nr &&
            rows[i].flags != g->kernel->flags) {
            tor_tune_list_add(list, &(TorTuneChoice){.row = i + 1});
            return;
        }
}

static void add_block(const TorGemmArgs *g, TorTuneList *list, int64_t mc, int64_t kc) {
    TorTuneChoice choice = {0};
    mc = TOR_MIN(mc, g->m), kc = TOR_MIN(kc, g->plan.k_part);
    if (mc != g->mc) choice.knob[MC] = mc;
    if (kc != g->kc) choice.knob[KC] = kc;
    if (mc > 0 && kc > 0) tor_tune_list_add(list, &choice);
}

static void add_provided(const TorGemmArgs *g, TorTuneList *list, int64_t row, int64_t rows,
                         int64_t cols) {
    TorTuneChoice choice = {.row = row};
    int64_t usual_rows, usual_cols;
    tor_gemm_provided_blocks(g, &usual_rows, &usual_cols);
    if (rows != usual_rows) choice.knob[MC] = rows;
    if (cols != usual_cols) choice.knob[NC] = cols;
    tor_tune_list_add(list, &choice);
}

/// What other libraries offer: in blocks that stay in cache, all at once, and shares for threads.
static void add_providers(const TorGemmArgs *g, int threads, TorTuneList *list) {
    const TorProvider *provider;
    int count;
    tor_gemm_kernels(&count);
    if (!tor_gemm_provided_takes(g)) return;
    for (int i = 0; (provider = tor_provider_at(i)); i++) {
        if (!tor_provider_is_usable(provider)) continue;
        int64_t row = 1 + count + i;
        tor_tune_list_add(list, &(TorTuneChoice){.row = row});
        add_provided(g, list, row, g->m, g->n);
        for (int64_t shares = threads; shares > 1 && shares <= 4 * threads; shares *= 4)
            if (g->m >= 32 * shares)
                add_provided(g, list, row, tor_round_up(tor_ceil_div(g->m, shares), 8), g->n);
            else
                add_provided(g, list, row, g->m, tor_round_up(tor_ceil_div(g->n, shares), 16));
    }
}

static void candidates(const void *problem, int threads, TorTuneList *list) {
    const TorGemmArgs *g = &((const TorGemmProblem *)problem)->gemm;
    if (g->plan.units == 0) return;
    int64_t mr = g->kernel->mr, nr = g->kernel->nr;
    add_rows(g, list);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            int64_t mc = i == 0 ? g->mc : i == 1 ? g->mc * 2 : tor_round_up(g->mc / 2, mr);
            int64_t kc = j == 0 ? g->kc : j == 1 ? g->kc * 2 : tor_round_up(g->kc / 2, 8);
            add_block(g, list, mc, kc);
        }
    for (int64_t mc = 48; mc <= 384; mc *= 2) add_block(g, list, tor_round_up(mc, mr), g->kc);
    for (int64_t kc = 192; kc <= 1536; kc *= 2) add_block(g, list, g->mc, kc);
    add_block(g, list, g->mc, g->plan.k_part);
    static const int64_t columns[] = {192, 384, 768, 1536, 3072};
    for (size_t i = 0; i < TOR_COUNT_OF(columns); i++) {
        int64_t nc = columns[i] / nr * nr;
        if (nc != g->nc && (nc < g->n || g->nc < g->n)) tor_tune_list_knob(list, NC, nc);
    }
    if (!g->pack_a && g->a_col == 1) tor_tune_list_knob(list, LEFT, g->plan.copy_a ? 1 : 2);
    if (g->kc < g->plan.k_part) tor_tune_list_knob(list, ORDER, g->plan.panel_first ? 1 : 2);
    if (g->k >= 1024 && g->plan.units < 16 * threads)
        for (int64_t parts = 1; parts <= 16; parts *= 2)
            if (parts != g->plan.k_parts && g->k / parts >= 256)
                tor_tune_list_knob(list, K_PARTS, parts);
    for (int64_t items = threads; items <= 64 * threads; items *= 4) {
        int64_t each = tor_ceil_div(g->plan.units, items);
        if (each != g->plan.units_per_item) tor_tune_list_knob(list, ITEM, each);
    }
    add_providers(g, threads, list);
}

/// The provider of a choice, if it can be had for this problem.
static const TorProvider *provider_of(const TorGemmArgs *g, int64_t row) {
    const TorProvider *p = row <= INT32_MAX ? tor_provider_at((int)row) : NULL;
    return p && tor_provider_is_usable(p) && tor_gemm_provided_takes(g) ? p : NULL;
}

static void set(void *problem, const TorTuneChoice *choice) {
    static const TorTuneChoice none;
    TorGemmProblem *p = problem;
    TorGemmArgs *g = &p->gemm;
    int count;
    const TorGemmKernel *rows = tor_gemm_kernels(&count);
    g->kernel = NULL;
    p->provider = choice->row > count ? provider_of(g, choice->row - 1 - count) : NULL;
    // Blocks of another library's are none for our kernels.
    if (choice->row > count && !p->provider) choice = &none;
    // The row must be this machine's, and read b as it lies.
    if (choice->row > 0 && choice->row <= count) {
        const TorGemmKernel *row = &rows[choice->row - 1];
        bool reads = row->flags & TOR_GEMM_PACKED || (!g->b_packed && g->b_col == 1);
        if ((row->features & ~tor_cpu_features()) == 0 && row->nr == tor_gemm_panel() && reads)
            g->kernel = row;
    }
    g->mc = choice->knob[MC];
    g->nc = choice->knob[NC];
    g->kc = choice->knob[KC];
    g->k_parts = choice->knob[K_PARTS];
    g->left = choice->knob[LEFT];
    g->order = choice->knob[ORDER];
    g->item_units = choice->knob[ITEM];
}

static bool operands(void *problem, TorTuneOperands *list) {
    TorGemmProblem *p = problem;
    TorGemmArgs *g = &p->gemm;
    int64_t count[3];
    if (!extents(g, count)) return false;
    tor_tune_operand(list, &g->a, (size_t)count[0] * 4, TOR_float32, false, false);
    tor_tune_operand(list, &g->b, (size_t)count[1] * 4, TOR_float32, false, g->b_packed);
    if (p->has_bias)
        tor_tune_operand(list, &g->bias, (size_t)g->n * 4, TOR_float32, false, g->b_packed);
    if (g->epilogue) return epilogue(g, list);
    tor_tune_operand(list, &g->c, (size_t)count[2] * 4, TOR_float32, true, false);
    return true;
}

static void bind(void *problem, TorLaunch *launch) {
    TorGemmProblem *p = problem;
    TorGemmArgs *g = &p->gemm;
    if (p->provider) {
        tor_gemm_provided_bind(p, launch);
        return;
    }
    tor_gemm_bind(g);
    launch->scratch_bytes = g->scratch_bytes;
    launch->shared_bytes = g->shared_bytes;
    launch->shared = (void **)&g->shared;
    tor_launch_region(launch, tor_gemm_run, g, g->items);
    if (g->join_items) tor_launch_region(launch, tor_gemm_join_run, g, g->join_items);
}

const TorTunable tor_tunable_gemm = {
    .op = "gemm_f32",
    .knobs = {"mc", "nc", "kc", "k_parts", "left", "order", "item"},
    .row = row_name,
    .hash = hash,
    .put = put,
    .parse = parse,
    .copy = copy,
    .candidates = candidates,
    .operands = operands,
    .set = set,
    .bind = bind,
};

// The driver of the gemm family: chooses a kernel row and blocks, and walks the blocks of an item.
//
// A unit of work is one panel of columns of one block of rows; units are numbered panels first, and
// a thread's range of them is walked in blocks of mc rows by nc columns, k in blocks of kc:
//
//     for each nc columns                    c's block stays in L2
//         for each kc of k                   a's block stays in L2
//             for each panel                 b's panel stays in L1; the kernel runs all mc rows
//             over it
//         epilogue over mc x nc
//
// With few rows a is small and b is all of the traffic: the two inner loops change places, so that
// packed b is read in the order in which it lies.
//
// How units fall into ranges changes nothing in an element's sum, so a lone thread may walk large
// blocks where many threads share the same units.
#include <string.h>

#include "base/cpu.h"
#include "kernels/gemm/split.h"

#define TOR_GEMM_KERNEL(symbol, level, needs, rows, cols, flags) \
    void symbol(const TorGemmTile *tile);
#include "kernels.inc"
#undef TOR_GEMM_KERNEL

static const TorGemmKernel kernels[] = {
#define TOR_GEMM_KERNEL(symbol, level, needs, rows, cols, flags) \
    {#symbol, needs, rows, cols, flags, symbol},
#include "kernels.inc"
#undef TOR_GEMM_KERNEL
};

const TorGemmKernel *tor_gemm_kernels(int *count) {
    *count = (int)TOR_COUNT_OF(kernels);
    return kernels;
}

// The highest row with exactly these flags and panels of nr columns (0: any).
static const TorGemmKernel *find(uint32_t flags, int nr) {
    uint32_t features = tor_cpu_features();
    for (size_t i = TOR_COUNT_OF(kernels); i-- > 0;)
        if (kernels[i].flags == flags && (kernels[i].features & ~features) == 0 &&
            (nr == 0 || kernels[i].nr == nr))
            return &kernels[i];
    return &kernels[0];
}

const TorGemmKernel *tor_gemm_packed_kernel(void) { return find(TOR_GEMM_PACKED, 0); }

int64_t tor_gemm_panel(void) { return tor_gemm_packed_kernel()->nr; }

// Smallest share of work that is worth a thread, in cycles: a few times what waking one costs.
#define ITEM_CYCLES 16384

// Multiply-adds of a core in a cycle, for panels of nr columns.
static double multiply_adds(int64_t nr) { return nr >= 32 ? 32 : nr >= 16 ? 16 : 8; }

static bool own_accumulator(const TorEpilogue *e) {
    const TorProgram *p = e->program;
    return !(p->n_outputs > 0 && p->output_type[0] == TOR_float32 &&
             e->col_stride[p->n_inputs] == 1);
}

// What a wish may ask for at most: bounds scratch and workspace.
enum { MOST_MC = 2048, MOST_NC = 16384, MOST_KC = 8192, MOST_PARTIAL_SUMS = 1 << 24 };

static void cut_wishes(TorGemmArgs *args, int64_t nr) {
    if (args->mc) args->mc = TOR_MIN(args->mc, TOR_MAX(TOR_MIN(args->m, MOST_MC), 1));
    if (args->nc) args->nc = TOR_MAX(TOR_MIN(args->nc, MOST_NC) / nr, 1) * nr;
    if (args->kc) args->kc = TOR_MIN(args->kc, TOR_MAX(TOR_MIN(args->k, MOST_KC), 1));
}

// Few units with a long k: k is cut so that about 32 units come of it.
static void cut_k(TorGemmArgs *args) {
    __typeof__(args->plan) *plan = &args->plan;
    int64_t k = args->k, parts = args->k_parts;
    int64_t whole = plan->batches * plan->panels * tor_ceil_div(args->m, 192);
    if (!parts)
        parts =
            whole > 0 && whole < 16 && k >= 4096 ? TOR_MIN(tor_ceil_div(32, whole), k / 2048) : 1;
    int64_t sums = TOR_MAX(plan->batches * args->m * args->n, 1);
    parts = TOR_MIN(parts, TOR_MIN(k / 64, MOST_PARTIAL_SUMS / sums));
    plan->k_part = parts > 1 ? tor_round_up(tor_ceil_div(k, parts), 8) : TOR_MAX(k, 1);
    plan->k_parts = tor_ceil_div(TOR_MAX(k, 1), plan->k_part);
}

// Units of an item: enough work to be worth a thread.
static int64_t item_units(const TorGemmArgs *args, int64_t nr) {
    const __typeof__(args->plan) *plan = &args->plan;
    if (!plan->units) return 1;
    if (args->item_units) return TOR_MIN(args->item_units, plan->units);
    double cycles = (double)plan->batches * (double)plan->panels * (double)nr *
                    (double)(args->k + 1) * TOR_MAX((double)args->m / multiply_adds(nr), 0.5);
    int64_t items = cycles >= (double)ITEM_CYCLES * (double)plan->units
                        ? plan->units
                        : TOR_MAX((int64_t)(cycles / ITEM_CYCLES), 1);
    return tor_ceil_div(plan->units, items);
}

// Rows of a block: a's block in half of L2, and low: what runs beside this on the core's other
// thread, or on the machine's other guests, takes its part of the cache. A copy of b's panel is
// made for each block, which is worth more than that.
static int64_t block_rows(const TorGemmArgs *args, int64_t l2) {
    const __typeof__(args->plan) *plan = &args->plan;
    int64_t mr = args->kernel->mr, high = TOR_MAX(8 * mr, 96),
            rows = plan->copy_b ? 512 : TOR_MAX(TOR_MIN(l2 / 2 / (args->kc * 4), high), 2 * mr),
            mc = tor_gemm_even_part(args->m, rows, mr);
    // Enough units for all CPUs, if the problem is large.
    int64_t enough = TOR_MIN(3 * tor_cpu_count(), 48);
    while (mc >= high / 2 && plan->batches * plan->panels * tor_ceil_div(args->m, mc) < enough)
        mc = tor_round_up(tor_ceil_div(mc, 2), mr);
    return mc;
}

// Bytes that each thread's block takes of scratch.
static void lay_out_scratch(TorGemmArgs *args, int64_t nr) {
    __typeof__(args->plan) *plan = &args->plan;
    bool split = plan->k_parts > 1;
    plan->own_c = args->epilogue && own_accumulator(args->epilogue);
    int64_t block_cols = TOR_MIN(args->nc, plan->panels * nr);
    plan->a_bytes = plan->copy_a ? (size_t)tor_round_up(args->mc * args->kc * 4, 64) : 0;
    plan->b_bytes = plan->copy_b ? (size_t)tor_round_up(args->kc * nr * 4, 64) : 0;
    int64_t own_elements = !plan->own_c ? 0 : split ? args->n : args->mc * block_cols;
    plan->c_bytes = (size_t)tor_round_up(own_elements * 4, 64);
    args->scratch_bytes = plan->a_bytes + plan->b_bytes + plan->c_bytes;
    if (args->epilogue)
        args->scratch_bytes += tor_epilogue_scratch(args->epilogue, split ? args->n : block_cols);
    args->scratch_bytes = (size_t)tor_round_up((int64_t)args->scratch_bytes, 64);
}

void tor_gemm_bind(TorGemmArgs *args) {
    __typeof__(args->plan) *plan = &args->plan;
    int64_t m = args->m, n = args->n;
    const TorGemmKernel *packed = tor_gemm_packed_kernel();

    plan->batches = tor_gemm_batches(args);

    // Strided b is read in place by few tiles of rows; more of them are worth a dense copy of it.
    bool in_place = !args->b_packed && args->b_col == 1 && m <= 5 * packed->mr && n >= packed->nr;
    if (!args->kernel) args->kernel = in_place ? find(0, packed->nr) : packed;
    plan->tail = args->kernel->flags & TOR_GEMM_PACKED ? args->kernel
                                                       : find(TOR_GEMM_PACKED, args->kernel->nr);
    plan->copy_b = !args->b_packed;  // of whole panels only if the row wants packed ones
    int64_t nr = args->kernel->nr, mr = args->kernel->mr;
    plan->panels = tor_ceil_div(n, nr);
    cut_wishes(args, nr);
    cut_k(args);

    // k: long, since the start and the end of a tile cost as much as 16 steps; but a panel of b
    // stays in a sixth of L2, from which it streams fast enough. Panels that are used once need no
    // blocks.
    int64_t l2 = (int64_t)tor_cpu_l2();
    bool once = m <= mr, few = m <= 4 * mr;
    // A copy that turns b is made faster in short pieces.
    int64_t long_enough = few ? 256 : plan->copy_b && args->b_col != 1 ? 384 : 768;
    if (!args->kc)
        args->kc =
            once && !args->pack_a && !plan->copy_b
                ? plan->k_part
                : tor_gemm_even_part(plan->k_part, TOR_MIN(long_enough, l2 / 6 / (nr * 4)), 8);
    // a is copied if the rows of a high tile meet in few sets of the cache. A low one's do no harm
    // there: to copy them costs 1 to 7 % instead.
    bool clash = mr > 8 && args->a_row % 512 == 0 && plan->panels >= 8 && !few;
    plan->copy_a = args->pack_a || args->a_col != 1 || (args->left ? args->left == 2 : clash);
    plan->panel_first = args->order ? args->order == 2 : few && !plan->copy_a;
    if (!args->mc) args->mc = block_rows(args, l2);
    plan->m_blocks = tor_ceil_div(m, args->mc);
    if (!args->nc) {
        int64_t cols = TOR_MAX(l2 / 4 / (args->mc * 4), 768);
        args->nc = TOR_MAX(cols / nr, 1) * nr;
    }

    plan->units = plan->k_parts * plan->batches * plan->m_blocks * plan->panels;
    plan->units_per_item = item_units(args, nr);
    args->items = tor_ceil_div(plan->units, plan->units_per_item);
    lay_out_scratch(args, nr);
    bool split = plan->k_parts > 1;
    args->join_items = split ? plan->batches * m : 0;
    args->shared_bytes =
        split ? (size_t)(plan->k_parts * plan->batches * m * n) * sizeof(float) : 0;
}

// One block of rows of one batch item: where its matrices are.
typedef struct {
    const TorGemmArgs *args;
    int64_t batch, row, rows;
    int64_t k_begin, k_end;
    bool split;  // a part of k only: its sum goes to args->shared, without bias and epilogue
    const float *a, *b, *bias;
    float *c;
    int64_t c_row;
    float *a_copy, *b_copy, *c_own;
    void *epilogue_scratch;
} Block;

// Where rows from `row` of batch item `batch` are.
static void locate(Block *block, int64_t batch, int64_t row) {
    const TorGemmArgs *args = block->args;
    const TorEpilogue *e = args->epilogue;
    TorGemmOffsets at = tor_gemm_offsets(args, batch);
    block->batch = batch, block->row = row;
    block->a = args->pack_a ? NULL : args->a + at.a + row * args->a_row;
    block->b = args->b + at.b;
    block->bias = args->bias ? args->bias + at.bias : NULL;
    if (!e) {
        block->c_row = args->c_row;
        block->c = args->c + at.c + row * args->c_row;
    } else if (!args->plan.own_c) {
        int out = e->program->n_inputs;
        block->c_row = e->row_stride[out];
        block->c = (float *)e->data[out] + batch * e->batch_stride[out] + row * e->row_stride[out];
    }
}

static float *partial_sums(const TorGemmArgs *args, int64_t part, int64_t batch, int64_t row) {
    return args->shared + ((part * args->plan.batches + batch) * args->m + row) * args->n;
}

static void zero_or_bias(const Block *block, float *c, int64_t c_row, int64_t col, int64_t cols) {
    for (int64_t i = 0; i < block->rows; i++) {
        if (block->bias)
            memcpy(c + i * c_row, block->bias + col, (size_t)cols * sizeof(float));
        else
            memset(c + i * c_row, 0, (size_t)cols * sizeof(float));
    }
}

static void copy_a(const Block *block, int64_t k0, int64_t kc) {
    const TorGemmArgs *args = block->args;
    if (args->pack_a)
        args->pack_a(args->pack_ctx, block->batch, block->row, block->rows, k0, kc, block->a_copy);
    else
        tor_gemm_copy(block->a_copy, kc, block->a + k0 * args->a_col, args->a_row, args->a_col,
                      block->rows, kc);
}

// The kernel over panel `panel` and k from k0; t holds a.
static void run_panel(const Block *block, TorGemmTile *t, int64_t panel, int64_t k0) {
    const TorGemmArgs *args = block->args;
    const TorGemmKernel *kernel = args->kernel;
    int64_t nr = kernel->nr, col = panel * nr;
    t->cols = TOR_MIN(nr, args->n - col);
    t->bias = block->bias && k0 + t->kc == args->k ? block->bias + col : NULL;
    t->ldb = nr;
    if (args->b_packed) {
        t->b = block->b + (panel * args->k + k0) * nr;
        t->next = t->b + (args->plan.panel_first ? t->kc : args->k) * nr;
    } else {
        const float *b = block->b + k0 * args->b_row + col * args->b_col;
        if (!(kernel->flags & TOR_GEMM_PACKED) && t->cols == nr) {
            t->b = b, t->ldb = args->b_row;
        } else {
            kernel = args->plan.tail;
            tor_gemm_copy(block->b_copy, nr, b, args->b_row, args->b_col, t->kc, t->cols);
            for (int64_t p = 0; t->cols < nr && p < t->kc; p++)
                memset(block->b_copy + p * nr + t->cols, 0, (size_t)(nr - t->cols) * sizeof(float));
            t->b = block->b_copy;
        }
        t->next = t->b;
    }
    kernel->run(t);
}

static void run_block(const Block *block, int64_t first_panel, int64_t end_panel) {
    const TorGemmArgs *args = block->args;
    int64_t nr = args->kernel->nr, panels = args->nc / nr, copied_k = -1;
    for (int64_t p0 = first_panel; p0 < end_panel; p0 += panels) {
        int64_t p1 = TOR_MIN(p0 + panels, end_panel), col = p0 * nr,
                cols = TOR_MIN(p1 * nr, args->n) - col;
        bool own_c = args->plan.own_c && !block->split;
        float *c = own_c ? block->c_own : block->c + col;
        int64_t c_row = own_c ? cols : block->c_row;
        if (args->k == 0) zero_or_bias(block, c, c_row, col, cols);
        int64_t k_blocks = tor_ceil_div(block->k_end - block->k_begin, args->kc);
        bool panel_first = args->plan.panel_first;
        for (int64_t i = 0; i < k_blocks * (p1 - p0); i++) {
            int64_t k_block = panel_first ? i % k_blocks : i / (p1 - p0);
            int64_t p = p0 + (panel_first ? i / k_blocks : i % (p1 - p0));
            int64_t k0 = block->k_begin + k_block * args->kc;
            TorGemmTile t = {.rows = block->rows,
                             .kc = TOR_MIN(args->kc, block->k_end - k0),
                             .c = c + (p - p0) * nr,
                             .ldc = c_row,
                             .accumulate = k_block > 0};
            if (args->plan.copy_a) {
                t.a = block->a_copy, t.lda = t.kc;
                if (copied_k != k0) copy_a(block, k0, t.kc);
                copied_k = k0;
            } else {
                t.a = block->a + k0, t.lda = args->a_row;
            }
            run_panel(block, &t, p, k0);
        }
        if (args->epilogue && !block->split)
            tor_epilogue_run(args->epilogue, block->batch, block->row, block->rows, col, cols, c,
                             c_row, block->epilogue_scratch);
    }
}

static Block start(const TorGemmArgs *args, void *scratch) {
    uint8_t *memory = scratch;
    Block block = {.args = args, .split = args->plan.k_parts > 1};
    block.a_copy = (float *)memory;
    block.b_copy = (float *)(memory + args->plan.a_bytes);
    block.c_own = (float *)(memory + args->plan.a_bytes + args->plan.b_bytes);
    block.epilogue_scratch = memory + args->plan.a_bytes + args->plan.b_bytes + args->plan.c_bytes;
    return block;
}

void tor_gemm_run(const void *void_args, int64_t begin, int64_t end, void *scratch) {
    const TorGemmArgs *args = void_args;
    __typeof__(args->plan) plan = args->plan;
    Block block = start(args, scratch);
    int64_t unit = begin * plan.units_per_item,
            end_unit = TOR_MIN(end * plan.units_per_item, plan.units);
    while (unit < end_unit) {
        int64_t panel = unit % plan.panels, rest = unit / plan.panels;
        int64_t row = rest % plan.m_blocks * args->mc, batch = rest / plan.m_blocks % plan.batches;
        int64_t part = rest / plan.m_blocks / plan.batches,
                count = TOR_MIN(plan.panels - panel, end_unit - unit);
        locate(&block, batch, row);
        block.rows = TOR_MIN(args->mc, args->m - row);
        block.k_begin = part * plan.k_part;
        block.k_end = TOR_MIN(block.k_begin + plan.k_part, args->k);
        if (block.split)
            block.c = partial_sums(args, part, batch, row), block.c_row = args->n,
            block.bias = NULL;
        run_block(&block, panel, panel + count);
        unit += count;
    }
}

void tor_gemm_join_run(const void *void_args, int64_t begin, int64_t end, void *scratch) {
    const TorGemmArgs *args = void_args;
    Block block = start(args, scratch);
    for (int64_t item = begin; item < end; item++) {
        locate(&block, item / args->m, item % args->m);
        float *c = args->plan.own_c ? block.c_own : block.c;
        for (int64_t j = 0; j < args->n; j++) {
            float sum = partial_sums(args, 0, block.batch, block.row)[j];
            for (int64_t part = 1; part < args->plan.k_parts; part++)
                sum += partial_sums(args, part, block.batch, block.row)[j];
            c[j] = block.bias ? sum + block.bias[j] : sum;
        }
        if (args->epilogue)
            tor_epilogue_run(args->epilogue, block.batch, block.row, 1, 0, args->n, c, args->n,
                             block.epilogue_scratch);
    }
}

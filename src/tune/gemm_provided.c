// A block is one call of the provider; then bias and epilogue run over it, a few rows at a time.
// Where a call fails in a run, the family's own kernels do the block instead.
#include "tune/gemm_provided.h"

#include <stdio.h>
#include <string.h>

#include "kernels/gemm/split.h"

enum {
    LEAST_ROWS = 8,  // of a block, whatever a file says: a call has its price
    LEAST_COLS = 16,
    MOST_OWN = 1 << 20,  // elements of a block in scratch
    STRIP = 16           // rows that the epilogue takes at once
};

// ---------------------------------------------------------------- what others can read

typedef struct {
    int64_t stride;
    bool transposed;
} Layout;

/// How a matrix of rows by cols lies in memory, as others call it.
static bool layout(int64_t rows, int64_t cols, int64_t row, int64_t col, Layout *out) {
    if ((col == 1 || cols == 1) && (rows == 1 || row >= cols))
        *out = (Layout){rows == 1 ? cols : row, false};
    else if ((row == 1 || rows == 1) && (cols == 1 || col >= rows))
        *out = (Layout){cols == 1 ? rows : col, true};
    else
        return false;
    return out->stride <= INT32_MAX;
}

static bool is_size(int64_t n) { return n >= 1 && n <= INT32_MAX; }

bool tor_gemm_provided_takes(const TorGemmArgs *g) {
    Layout a, b;
    return !g->b_packed && !g->pack_a && is_size(g->m) && is_size(g->n) && is_size(g->k) &&
           tor_gemm_batches(g) >= 1 && layout(g->m, g->k, g->a_row, g->a_col, &a) &&
           layout(g->k, g->n, g->b_row, g->b_col, &b) &&
           (g->epilogue || g->m == 1 || (g->c_row >= g->n && g->c_row <= INT32_MAX));
}

// ---------------------------------------------------------------- blocks

/// One block of one batch item, and where its sums go.
typedef struct {
    int64_t batch, row, rows, col, cols;
    TorGemmOffsets at;
    float *sums;
    int64_t sums_row;
    void *scratch;  ///< behind sums that lie there
} Block;

/// Whether the sums of all blocks can be where the results will be.
static bool in_place(const TorGemmArgs *g) {
    const TorEpilogue *e = g->epilogue;
    if (!e) return true;
    int out = e->program->n_inputs;
    return e->program->n_outputs > 0 && e->program->output_type[0] == TOR_float32 &&
           e->col_stride[out] == 1 &&
           (g->m == 1 || (e->row_stride[out] >= g->n && e->row_stride[out] <= INT32_MAX));
}

/// Bytes of scratch that a block's sums take.
static size_t own_bytes(const TorGemmProblem *p) {
    if (in_place(&p->gemm)) return 0;
    return (size_t)tor_round_up(p->block_rows * p->block_cols * 4, TOR_CACHE_LINE);
}

/// Points a block at its sums.
static void place(const TorGemmArgs *g, Block *b, size_t own, void *scratch) {
    const TorEpilogue *e = g->epilogue;
    b->scratch = (uint8_t *)scratch + own;
    if (own) {
        b->sums = scratch, b->sums_row = b->cols;
        return;
    }
    int out = e ? e->program->n_inputs : 0;
    b->sums_row = e ? e->row_stride[out] : g->c_row;
    b->sums = e ? (float *)e->data[out] + b->batch * e->batch_stride[out] : g->c + b->at.c;
    b->sums += b->row * b->sums_row + b->col;
    if (b->rows == 1) b->sums_row = b->cols;  // what it is then counts for nothing
}

static Block block_at(const TorGemmProblem *p, int64_t item, void *scratch) {
    const TorGemmArgs *g = &p->gemm;
    int64_t across = tor_ceil_div(g->n, p->block_cols), down = tor_ceil_div(g->m, p->block_rows);
    Block b = {.batch = item / across / down,
               .row = item / across % down * p->block_rows,
               .col = item % across * p->block_cols};
    b.rows = TOR_MIN(p->block_rows, g->m - b.row);
    b.cols = TOR_MIN(p->block_cols, g->n - b.col);
    b.at = tor_gemm_offsets(g, b.batch);
    place(g, &b, own_bytes(p), scratch);
    return b;
}

static ToroidProduct product(const TorGemmArgs *g, const Block *b) {
    Layout left, right;
    layout(g->m, g->k, g->a_row, g->a_col, &left);
    layout(g->k, g->n, g->b_row, g->b_col, &right);
    return (ToroidProduct){.struct_bytes = sizeof(ToroidProduct),
                           .m = b->rows,
                           .n = b->cols,
                           .k = g->k,
                           .a = g->a + b->at.a + b->row * g->a_row,
                           .b = g->b + b->at.b + b->col * g->b_col,
                           .c = b->sums,
                           .a_stride = left.stride,
                           .b_stride = right.stride,
                           .c_stride = b->sums_row,
                           .a_transposed = left.transposed,
                           .b_transposed = right.transposed};
}

/// The same block for the family's own kernels, without bias and epilogue.
static TorGemmArgs own_product(const TorGemmArgs *g, const Block *b) {
    TorGemmArgs own = {.m = b->rows,
                       .n = b->cols,
                       .k = g->k,
                       .a_row = g->a_row,
                       .a_col = g->a_col,
                       .b_row = g->b_row,
                       .b_col = g->b_col,
                       .c_row = b->sums_row,
                       .k_parts = 1};
    tor_gemm_bind(&own);
    return own;
}

static void run_own(const TorGemmArgs *g, const Block *b) {
    TorGemmArgs own = own_product(g, b);
    own.a = g->a + b->at.a + b->row * g->a_row;
    own.b = g->b + b->at.b + b->col * g->b_col;
    own.c = b->sums;
    tor_gemm_run(&own, 0, own.items, b->scratch);
}

static void note(TorTuneFailure *failure) {
    if (!atomic_exchange(&failure->noted, true))
        snprintf(failure->message, sizeof failure->message, "%s", toroid_last_error());
}

static void multiply(const TorGemmProblem *p, const Block *b) {
    if (p->failure || tor_provider_is_usable(p->provider)) {
        ToroidProduct call = product(&p->gemm, b);
        if (tor_provider_gemm(p->provider, &call) == TOROID_OK) return;
        if (p->failure)
            note(p->failure);
        else
            tor_provider_broke(p->provider);
    }
    run_own(&p->gemm, b);
}

static void finish(const TorGemmArgs *g, const Block *b) {
    for (int64_t i = 0; i < b->rows; i += STRIP) {
        int64_t rows = TOR_MIN(STRIP, b->rows - i);
        float *sums = b->sums + i * b->sums_row;
        const float *bias = g->bias ? g->bias + b->at.bias + b->col : NULL;
        for (int64_t r = 0; r < rows && bias; r++)
            for (int64_t j = 0; j < b->cols; j++) sums[r * b->sums_row + j] += bias[j];
        if (g->epilogue)
            tor_epilogue_run(g->epilogue, b->batch, b->row + i, rows, b->col, b->cols, sums,
                             b->sums_row, b->scratch);
    }
}

static void run(const void *problem, int64_t begin, int64_t end, void *scratch) {
    const TorGemmProblem *p = problem;
    for (int64_t item = begin; item < end; item++) {
        Block b = block_at(p, item, scratch);
        multiply(p, &b);
        finish(&p->gemm, &b);
    }
}

// ---------------------------------------------------------------- bind

/// What the family's own kernels take for any block: those at the edges are lower or narrower.
static size_t most_scratch(const TorGemmProblem *p) {
    const TorGemmArgs *g = &p->gemm;
    size_t most = 0;
    for (int edge = 0; edge < 4; edge++) {
        Block b = {.rows = edge & 1 ? g->m % p->block_rows : p->block_rows,
                   .cols = edge & 2 ? g->n % p->block_cols : p->block_cols};
        b.sums_row = b.cols;
        if (b.rows && b.cols) most = TOR_MAX(most, own_product(g, &b).scratch_bytes);
    }
    return most;
}

static int64_t cut(int64_t wish, int64_t least, int64_t most) {
    return TOR_MIN(TOR_MAX(wish, least), most);
}

// High enough for the library's own packing of b to be worth it.
void tor_gemm_provided_blocks(const TorGemmArgs *g, int64_t *rows, int64_t *cols) {
    *rows = tor_gemm_even_part(g->m, 256, 8);
    *cols = tor_gemm_even_part(g->n, 3072, 16);
}

void tor_gemm_provided_bind(TorGemmProblem *p, TorLaunch *launch) {
    TorGemmArgs *g = &p->gemm;
    tor_gemm_provided_blocks(g, &p->block_rows, &p->block_cols);
    p->block_rows = cut(g->mc ? g->mc : p->block_rows, LEAST_ROWS, g->m);
    p->block_cols = cut(g->nc ? g->nc : p->block_cols, LEAST_COLS, g->n);
    if (own_bytes(p)) {
        p->block_cols = TOR_MIN(p->block_cols, MOST_OWN / LEAST_ROWS);
        p->block_rows = TOR_MIN(p->block_rows, MOST_OWN / p->block_cols);
    }
    size_t epilogue = g->epilogue ? tor_epilogue_scratch(g->epilogue, p->block_cols) : 0;
    launch->scratch_bytes = own_bytes(p) + TOR_MAX(epilogue, most_scratch(p));
    launch->failure = &p->failure;
    int64_t across = tor_ceil_div(g->n, p->block_cols), down = tor_ceil_div(g->m, p->block_rows);
    tor_launch_region(launch, run, p, tor_gemm_batches(g) * across * down);
}

/// Gather's dispatch. Dims are ordered, merged, and cut into two-dimensional blocks.
///
/// A dim is *free* if its steps reach distinct elements of what is written: every dim of a gather,
/// and the dims with data_stride != 0 of a scatter. Free dims may change places and be shared out
/// over items; the others stay in order, inside an item, so that duplicates are written in order.
#include <string.h>

#include "base/cpu.h"
#include "kernels/gather/block.h"

#define TOR_INDEX_KERNEL(symbol, features, mode, elem_bytes, dtypes) TorIndexFn symbol;
#include "kernels/gather/kernels.inc"
#undef TOR_INDEX_KERNEL

static const TorIndexKernel kernels[] = {
#define TOR_INDEX_KERNEL(symbol, features, mode, elem_bytes, dtypes) \
    {#symbol, features, TOR_INDEX_##mode, elem_bytes, dtypes, symbol},
#include "kernels/gather/kernels.inc"
#undef TOR_INDEX_KERNEL
};

const TorIndexKernel *tor_index_kernel(int index) {
    return index >= 0 && index < (int)TOR_COUNT_OF(kernels) ? &kernels[index] : NULL;
}

const char *tor_index_kernel_name(const TorIndexKernel *kernel) { return kernel->name; }

static void move_dim(TorIndexArgs *args, int to, int from) {
    args->size[to] = args->size[from];
    args->data_stride[to] = args->data_stride[from];
    args->other_stride[to] = args->other_stride[from];
    for (int k = 0; k < args->n_index; k++) args->index_stride[k][to] = args->index_stride[k][from];
}

static void swap_dims(TorIndexArgs *args, int i, int j) {
    TorIndexArgs old = *args;
    move_dim(args, i, j);
    args->size[j] = old.size[i], args->data_stride[j] = old.data_stride[i],
    args->other_stride[j] = old.other_stride[i];
    for (int k = 0; k < args->n_index; k++) args->index_stride[k][j] = old.index_stride[k][i];
}

static bool indexed(const TorIndexArgs *args, int d) {
    for (int k = 0; k < args->n_index; k++)
        if (args->index_stride[k][d]) return true;
    return false;
}

static bool is_free(const TorIndexArgs *args, bool scatter, int d) {
    return !scatter || args->data_stride[d] != 0;
}

static bool is_run(const TorIndexArgs *args, int d) {
    return args->data_stride[d] == 1 && args->other_stride[d] == 1 && !indexed(args, d);
}

/// A free dim of a scatter that is worth having as the block's columns.
static bool stays_inside(const TorIndexArgs *args, int d) {
    return args->data_stride[d] == 1 && (args->other_stride[d] == 1 || args->other_stride[d] == 0);
}

static int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

/// Whether dim `b` should stand before dim `a`, which stands before it now.
static bool goes_before(const TorIndexArgs *args, bool scatter, int b, int a) {
    if (!scatter) return magnitude(args->other_stride[b]) > magnitude(args->other_stride[a]);
    bool free_a = is_free(args, true, a), free_b = is_free(args, true, b);
    if (free_a && free_b) return magnitude(args->data_stride[b]) > magnitude(args->data_stride[a]);
    return free_b && !free_a && !stays_inside(args, b);
}

static void merge(TorIndexArgs *args, bool scatter) {
    int rank = 0;
    for (int d = 0; d < args->rank; d++) {
        if (args->size[d] == 1) continue;
        move_dim(args, rank, d);
        rank++;
    }
    for (int d = 1; d < rank; d++)
        for (int i = d; i > 0 && goes_before(args, scatter, i, i - 1); i--)
            swap_dims(args, i, i - 1);
    for (int d = 0; scatter && d < rank - 1; d++) {
        if (!stays_inside(args, d)) continue;
        for (int i = d; i < rank - 1; i++) swap_dims(args, i, i + 1);
        break;
    }
    int kept = 0;
    for (int d = 1; d < rank; d++) {
        bool joins = args->data_stride[kept] == args->data_stride[d] * args->size[d] &&
                     args->other_stride[kept] == args->other_stride[d] * args->size[d];
        joins = joins && is_free(args, scatter, kept) == is_free(args, scatter, d);
        for (int k = 0; k < args->n_index; k++)
            joins =
                joins && args->index_stride[k][kept] == args->index_stride[k][d] * args->size[d];
        if (joins) {
            int64_t size = args->size[kept] * args->size[d];
            move_dim(args, kept, d);
            args->size[kept] = size;
        } else {
            move_dim(args, ++kept, d);
        }
    }
    args->rank = rank ? kept + 1 : 0;
    while (args->rank < 2) {
        for (int d = args->rank; d > 0; d--) move_dim(args, d, d - 1);
        args->size[0] = 1, args->data_stride[0] = args->other_stride[0] = 0;
        for (int k = 0; k < args->n_index; k++) args->index_stride[k][0] = 0;
        if (args->rank == 0) args->data_stride[0] = args->other_stride[0] = 1;
        args->rank++;
    }
}

static void bind_blocks(TorIndexArgs *args, bool scatter) {
    args->elem_bytes = (int)tor_dtype_size(args->dtype);
    args->scratch_bytes = 0;
    args->kernel = NULL;
    args->items = 0;
    for (int d = 0; d < args->rank; d++)
        if (args->size[d] == 0) return;
    merge(args, scatter);
    int col = args->rank - 1, row = args->rank - 2;
    bool run = is_run(args, col);
    if (scatter && args->reduce)
        args->mode = TOR_INDEX_reduce;
    else if (scatter)
        args->mode = run ? TOR_INDEX_scatter_rows : TOR_INDEX_scatter_elements;
    else
        args->mode = run ? TOR_INDEX_gather_rows : TOR_INDEX_gather_elements;

    // Items: all leading free dims, then parts of the block's dims where those are free.
    int64_t cols = args->size[col], rows = args->size[row], inside = 1;
    args->item_dims = 0;
    while (args->item_dims < row && is_free(args, scatter, args->item_dims)) args->item_dims++;
    for (int d = args->item_dims; d < row; d++) inside *= args->size[d];
    int64_t most = TOR_MAX(8192 / inside, 1);  // elements of a block
    bool free_row = is_free(args, scatter, row) || rows == 1,
         free_col = is_free(args, scatter, col) || cols == 1;
    args->run = cols, args->tile = rows;
    if (free_col) args->run = TOR_MIN(cols, TOR_MAX(free_row ? most : most / rows, 64));
    if (free_row) args->tile = TOR_MIN(rows, TOR_MAX(most / args->run, 1));
    args->items = tor_ceil_div(rows, args->tile) * tor_ceil_div(cols, args->run);
    for (int d = 0; d < args->item_dims; d++) args->items *= args->size[d];
}

static bool fits(const TorIndexArgs *args, const TorIndexKernel *kernel) {
    return !(kernel->features & ~tor_cpu_features()) && (int)kernel->mode == args->mode &&
           (kernel->elem_bytes == 0 || kernel->elem_bytes == args->elem_bytes) &&
           (kernel->dtypes == 0 || kernel->dtypes >> args->dtype & 1);
}

static bool bind_kernel(TorIndexArgs *args, bool scatter, const TorIndexKernel *kernel) {
    bind_blocks(args, scatter);
    if (args->items && !fits(args, kernel)) return false;
    args->kernel = kernel;
    return true;
}

static void bind_best(TorIndexArgs *args, bool scatter) {
    bind_blocks(args, scatter);
    for (int i = (int)TOR_COUNT_OF(kernels) - 1; args->items && i >= 0 && !args->kernel; i--)
        if (fits(args, &kernels[i])) args->kernel = &kernels[i];
}

void tor_gather_bind(TorIndexArgs *args) { bind_best(args, false); }
void tor_scatter_bind(TorIndexArgs *args) { bind_best(args, true); }
bool tor_gather_bind_kernel(TorIndexArgs *args, const TorIndexKernel *kernel) {
    return bind_kernel(args, false, kernel);
}
bool tor_scatter_bind_kernel(TorIndexArgs *args, const TorIndexKernel *kernel) {
    return bind_kernel(args, true, kernel);
}

static void advance(TorIndexBlock *block, int d, int64_t steps) {
    const TorIndexArgs *args = block->args;
    block->data += steps * args->data_stride[d] * args->elem_bytes;
    block->other += steps * args->other_stride[d] * args->elem_bytes;
    for (int k = 0; k < args->n_index; k++)
        block->index[k] =
            (const uint8_t *)block->index[k] +
            steps * args->index_stride[k][d] * (int64_t)tor_dtype_size(args->index_dtype[k]);
}

/// One item: its block at every position of the dims that are not free.
static void run_item(TorIndexBlock *block) {
    const TorIndexArgs *args = block->args;
    int first = args->item_dims, end = args->rank - 2;
    int64_t at[TOR_INDEX_RANK] = {0};
    for (;;) {
        args->kernel->fn(block);
        int d = end - 1;
        for (; d >= first; d--) {
            advance(block, d, 1);
            if (++at[d] < args->size[d]) break;
            advance(block, d, -args->size[d]);
            at[d] = 0;
        }
        if (d < first) return;
    }
}

static void run_items(const TorIndexArgs *args, int64_t begin, int64_t end) {
    int col = args->rank - 1, row = args->rank - 2;
    int64_t row_blocks = begin < end ? tor_ceil_div(args->size[row], args->tile) : 0;
    int64_t col_blocks = begin < end ? tor_ceil_div(args->size[col], args->run) : 0;
    for (int64_t item = begin; item < end; item++) {
        TorIndexBlock block = {.data = args->data, .other = args->other, .args = args};
        int64_t c = item % col_blocks * args->run, r = item / col_blocks % row_blocks * args->tile;
        int64_t rest = item / col_blocks / row_blocks;
        for (int k = 0; k < args->n_index; k++) {
            block.index[k] = args->index[k];
            block.index_row[k] = args->index_stride[k][row];
            block.index_col[k] = args->index_stride[k][col];
            block.axis_bytes[k] = args->axis_stride[k] * args->elem_bytes;
        }
        advance(&block, col, c);
        advance(&block, row, r);
        for (int d = args->item_dims - 1; d >= 0; d--) {
            advance(&block, d, rest % args->size[d]);
            rest /= args->size[d];
        }
        block.rows = TOR_MIN(args->tile, args->size[row] - r);
        block.cols = TOR_MIN(args->run, args->size[col] - c);
        block.data_row = args->data_stride[row] * args->elem_bytes;
        block.data_col = args->data_stride[col] * args->elem_bytes;
        block.other_row = args->other_stride[row] * args->elem_bytes;
        block.other_col = args->other_stride[col] * args->elem_bytes;
        run_item(&block);
    }
}

void tor_gather_run(const void *args, int64_t begin, int64_t end, void *scratch) {
    (void)scratch;
    run_items(args, begin, end);
}

void tor_scatter_run(const void *args, int64_t begin, int64_t end, void *scratch) {
    (void)scratch;
    run_items(args, begin, end);
}

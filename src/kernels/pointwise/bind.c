// From strides to a way of walking: drops and merges dims, orders them, chooses between the four
// drivers, sizes tiles and lays out scratch.
#include <stddef.h>
#include <string.h>

#include "base/cpu.h"
#include "kernels/pointwise/engine.h"

typedef struct {
    TorMapArgs *args;
    const TorReady *ready;
    TorBound *bound;
    int operands, n, outer;  ///< dims; those before `outer` are outside the row
    int64_t tile;            ///< elements that a tile may have
} Bind;

static bool is_row_output(const Bind *b, int k) {
    return k >= b->ready->n_inputs && b->args->program->output_row[k - b->ready->n_inputs];
}

static bool is_active(const Bind *b, int k) {
    return k >= b->ready->n_inputs || (b->ready->read_inputs >> k & 1);
}

static size_t operand_bytes(const Bind *b, int k) {
    const TorProgram *p = b->args->program;
    return tor_dtype_size(
        (TorDtype)(k < p->n_inputs ? p->input_type[k] : p->output_type[k - p->n_inputs]));
}

// Copies the dims that are longer than 1. A row output has no strides within the row.
static void take_dims(Bind *b, int rank, int row_rank, const int64_t *size,
                      const int64_t (*stride)[TOR_MAP_RANK]) {
    TorMapArgs *args = b->args;
    int outer_rank = rank - row_rank;
    for (int d = 0; d < rank; d++) {
        if (d == outer_rank) b->outer = b->n;
        if (size[d] == 1) continue;
        args->size[b->n] = size[d];
        for (int k = 0; k < b->operands; k++)
            args->stride[k][b->n] = d >= outer_rank && is_row_output(b, k) ? 0 : stride[k][d];
        b->n++;
    }
    if (row_rank == 0) b->outer = b->n;
}

static void insert_unit_dim(Bind *b) {
    b->args->size[b->n] = 1;
    for (int k = 0; k < b->operands; k++) b->args->stride[k][b->n] = 1;
    b->n++;
}

static void swap_dims(Bind *b, int x, int y) {
    TorMapArgs *args = b->args;
    int64_t t = args->size[x];
    args->size[x] = args->size[y];
    args->size[y] = t;
    for (int k = 0; k < b->operands; k++) {
        t = args->stride[k][x];
        args->stride[k][x] = args->stride[k][y];
        args->stride[k][y] = t;
    }
}

// Whether dim y should lie outside of dim x: each operand votes for its smaller stride inside.
static bool belongs_outside(const Bind *b, int x, int y) {
    int votes = 0;
    for (int k = 0; k < b->operands; k++) {
        int64_t sx = b->args->stride[k][x], sy = b->args->stride[k][y];
        if (sx == 0 || sy == 0 || !is_active(b, k)) continue;
        sx = sx < 0 ? -sx : sx;
        sy = sy < 0 ? -sy : sy;
        votes += ((sy > sx) - (sy < sx)) * (k >= b->ready->n_inputs ? 3 : 2);
    }
    return votes > 0;
}

static void sort_dims(Bind *b, int from, int to) {
    for (int i = from + 1; i < to; i++)
        for (int j = i; j > from && belongs_outside(b, j - 1, j); j--) swap_dims(b, j - 1, j);
}

// Joins dims d and d + 1 where every operand steps through them as through one. Returns the new
// end.
static int merge_dims(Bind *b, int from, int to) {
    TorMapArgs *args = b->args;
    for (int d = to - 2; d >= from; d--) {
        bool joins = true;
        for (int k = 0; k < b->operands && joins; k++)
            joins = args->stride[k][d] == args->stride[k][d + 1] * args->size[d + 1] ||
                    !is_active(b, k);
        if (!joins) continue;
        args->size[d] *= args->size[d + 1];
        for (int k = 0; k < b->operands; k++) args->stride[k][d] = args->stride[k][d + 1];
        for (int e = d + 1; e + 1 < b->n; e++) swap_dims(b, e, e + 1);
        b->n--;
        to--;
    }
    return to;
}

static int64_t product(const int64_t *size, int from, int to) {
    int64_t n = 1;
    for (int d = from; d < to; d++) n *= size[d];
    return n;
}

// Elements of a tile: what lets all buffers and the operands' tiles stay in a quarter of the
// second-level cache. A tile that has to come from there costs less than more tiles do.
static int64_t tile_for(const TorReady *ready, int64_t wish) {
    if (wish) return TOR_MIN(tor_round_up(wish, 16), TOR_TILE_MAX);
    int64_t live = ready->n_bufs + ready->n_inputs + ready->n_outputs, tile = TOR_TILE_MAX;
    while (tile > 128 && live * tile * ready->widest > (int64_t)tor_cpu_l2() / 4) tile /= 2;
    return tile;
}

// Whether the operands as a whole are larger than the caches. Several operations then take turns
// in short bursts, so that memory has something to do all the time (measured on Zen 3).
static bool exceeds_caches(const Bind *b) {
    double bytes = 0;
    for (int k = 0; k < b->operands; k++)
        if (is_active(b, k) && b->args->stride[k][b->n - 1]) bytes += (double)operand_bytes(b, k);
    return bytes * (double)product(b->args->size, 0, b->n) > 0.75 * (double)tor_cpu_l3();
}

static bool is_flat(const int64_t *stride, const int64_t *size, int from, int to) {
    int64_t expected = 1;
    for (int d = to - 1; d >= from; d--) {
        if (size[d] != 1 && stride[d] != expected) return false;
        expected *= size[d];
    }
    return true;
}

static bool is_zero(const int64_t *stride, int from, int to) {
    for (int d = from; d < to; d++)
        if (stride[d] != 0) return false;
    return true;
}

// How each operand is reached along the inner dim (`line`), or over whole tiles of inner rows.
static void choose_access(Bind *b) {
    TorMapArgs *args = b->args;
    TorBound *bound = b->bound;
    int inner = bound->mode == TOR_MODE_columns ? b->outer - 1 : b->n - 1;
    for (int k = 0; k < b->operands; k++) {
        const int64_t *stride = args->stride[k];
        bool may_be_scalar = k < b->ready->n_inputs && !(b->ready->reduced_inputs >> k & 1);
        uint8_t access = TOR_ACCESS_gather;
        if (is_row_output(b, k)) {
            bool flat =
                bound->mode == TOR_MODE_rows ||
                (bound->mode == TOR_MODE_columns ? stride[inner] == 1
                                                 : is_flat(stride, args->size, 0, b->outer));
            access = flat ? TOR_ACCESS_direct : TOR_ACCESS_gather;
        } else if (bound->block) {
            if (is_flat(stride, args->size, bound->space, b->n)) {
                access = TOR_ACCESS_direct;
            } else if (may_be_scalar && is_zero(stride, bound->space, b->n)) {
                access = TOR_ACCESS_scalar;
            } else if (k < b->ready->n_inputs && is_zero(stride, bound->space, b->n - 1)) {
                access = TOR_ACCESS_fixed;
            }
        } else if (stride[inner] == 1 || args->size[inner] == 1) {
            access = TOR_ACCESS_direct;
        } else if (stride[inner] == 0 && may_be_scalar) {
            access = TOR_ACCESS_scalar;
        }
        bound->access[k] = access;
    }
}

static unsigned scalars_of(const Bind *b, const TorOp *op, bool *by_row) {
    unsigned mask = 0;
    int mode = b->bound->mode;
    if (op->row && mode == TOR_MODE_rows) return 0;  // one element each
    for (int s = 0; s < op->arity; s++) {
        int slot = op->src[s];
        bool row_value = slot >= SLOT_ROW && slot < SLOT_BUF;
        bool one = slot < SLOT_OUTPUT ? b->bound->access[slot] == TOR_ACCESS_scalar
                                      : slot >= SLOT_IMM && slot < SLOT_ROW;
        if (row_value && !op->row && mode != TOR_MODE_columns) {
            one = true;
            *by_row |= mode == TOR_MODE_group;
        }
        mask |= (unsigned)one << s;
    }
    return mask;
}

static void choose_functions(Bind *b) {
    // A bind to other sizes mostly reaches the operands in the same way.
    TorBound *bound = b->bound;
    if (bound->n_ops && bound->chosen_mode == bound->mode &&
        memcmp(bound->chosen_access, bound->access, (size_t)b->operands) == 0)
        return;
    bound->chosen_mode = bound->mode;
    memcpy(bound->chosen_access, bound->access, (size_t)b->operands);
    TorBoundOp *bound_op = tor_bound_ops(b->args, bound);
    bound->n_ops = b->ready->n_ops;
    for (int i = 0; i < b->ready->n_ops; i++) {
        const TorOp *op = &b->ready->op[i];
        bool by_row = false;
        unsigned scalars = scalars_of(b, op, &by_row);
        tor_bound_op(&bound_op[i], b->ready, op, scalars);
        bound_op[i].by_row = by_row;
    }
}

static uint32_t book(size_t *total, size_t bytes) {
    uint32_t at = (uint32_t)*total;
    *total += (bytes + 63) / 64 * 64;
    return at;
}

static void lay_out(Bind *b, int64_t tile, int64_t lanes, int64_t keep) {
    const TorReady *ready = b->ready;
    TorBound *bound = b->bound;
    size_t total = 0;
    bound->row_lanes = lanes;
    bound->tile_bytes = (size_t)tor_round_up(tile * ready->widest, 64);
    bound->row_at = book(&total, 0);
    for (int r = 0; r < ready->n_rows; r++) book(&total, (size_t)lanes * 8);
    bound->buf_at = book(&total, bound->tile_bytes * ready->n_bufs);
    bound->splat_at = book(&total, bound->tile_bytes * 3);
    for (int k = 0; k < b->operands; k++) {
        bool gathers =
            bound->access[k] == TOR_ACCESS_gather || bound->access[k] == TOR_ACCESS_fixed;
        bound->gather_at[k] =
            book(&total, gathers ? (size_t)TOR_MAX(tile, lanes) * operand_bytes(b, k) : 0);
    }
    bound->keep = 1;
    size_t kept = 0;
    const int n_kept = ready->n_stages > 1 ? ready->n_bufs : 0;  // read in later stages
    for (int i = 0; i < n_kept; i++)
        kept += ready->buf_kept[i] ? (size_t)keep * ready->buf_bytes[i] : 0;
    if (kept > TOR_KEEP_BYTES) {
        bound->keep = 0;
    } else {
        for (int i = 0; i < n_kept; i++)
            bound->keep_at[i] =
                book(&total, ready->buf_kept[i] ? (size_t)keep * ready->buf_bytes[i] : 0);
    }
    bound->state_at = book(&total, bound->mode == TOR_MODE_columns
                                       ? (size_t)(ready->n_reductions * lanes) * TOR_COLUMN_BYTES
                                       : 0);
    b->args->scratch_bytes = TOR_MAX(total, (size_t)64);
}

// Tiles over the dims from `space` on.
static void cut_tiles(Bind *b, int space) {
    TorBound *bound = b->bound;
    const int64_t *size = b->args->size;
    bound->space = (uint8_t)space;
    bound->inner = size[b->n - 1];
    bound->inner_rows = product(size, space, b->n - 1);
    if (bound->block) {
        bound->rows =
            TOR_MIN(TOR_MAX(b->tile / TOR_MAX(bound->inner, 1), 1), TOR_MAX(bound->inner_rows, 1));
        bound->tiles = tor_ceil_div(bound->inner_rows, bound->rows);
        bound->chunk = bound->inner;
    } else {
        bound->chunks = TOR_MAX(tor_ceil_div(bound->inner, b->tile), 1);
        bound->chunk = tor_round_up(tor_ceil_div(bound->inner, bound->chunks), 16);
        bound->chunks = bound->inner ? tor_ceil_div(bound->inner, bound->chunk) : 0;
        bound->rows = 1;
        bound->tiles = bound->inner_rows * bound->chunks;
    }
}

// Whether more operands run along the last outer dim than along the last of the row.
static bool prefers_columns(const Bind *b) {
    if (b->outer == 0 || b->args->size[b->outer - 1] < 8) return false;
    int votes = 0;
    for (int k = 0; k < b->operands; k++) {
        if (!is_active(b, k) || is_row_output(b, k)) continue;
        votes += (b->args->stride[k][b->outer - 1] == 1) - (b->args->stride[k][b->n - 1] == 1);
    }
    return votes > 0;
}

static void bind_rows(Bind *b) {
    TorMapArgs *args = b->args;
    TorBound *bound = b->bound;
    int64_t outer = product(args->size, 0, b->outer);
    bound->length = product(args->size, b->outer, b->n);
    if (bound->length && prefers_columns(b)) {
        int64_t lanes = args->size[b->outer - 1];
        bound->mode = TOR_MODE_columns;
        bound->inner = lanes;
        int64_t most = args->wish ? TOR_MIN(args->wish, TOR_COLUMNS) : TOR_COLUMNS;
        bound->chunks = tor_ceil_div(lanes, most);
        bound->chunk = tor_round_up(tor_ceil_div(lanes, bound->chunks), 16);
        bound->chunks = tor_ceil_div(lanes, bound->chunk);
        args->items = outer / lanes * bound->chunks;
        choose_access(b);
        lay_out(b, bound->chunk, bound->chunk, bound->length * bound->chunk);
        return;
    }
    bound->mode = TOR_MODE_rows;
    if (b->n - b->outer == 1 && bound->length > 0 && bound->length * 2 <= b->tile &&
        bound->length <= 512 && outer > 1 && !b->ready->row_reads_input) {
        bound->mode = TOR_MODE_group;
        bound->block = 1;
        cut_tiles(b, 0);
        args->items = bound->tiles;
    } else {
        bound->block = b->n - b->outer > 1 && args->size[b->n - 1] < 64;
        cut_tiles(b, b->outer);
        args->items = outer;
    }
    choose_access(b);
    lay_out(b, bound->rows * bound->chunk, bound->mode == TOR_MODE_group ? bound->rows : 1,
            bound->mode == TOR_MODE_group ? 0 : bound->length);
}

size_t tor_map_args_bytes(const TorPrepared *prepared) {
    const TorReady *ready = (const TorReady *)prepared->opaque;
    return offsetof(TorMapArgs, stride) +
           (size_t)(ready->n_inputs + ready->n_outputs) * sizeof(((TorMapArgs *)0)->stride[0]) +
           ready->n_ops * sizeof(TorBoundOp);
}

void tor_map_bind(TorMapArgs *args, const TorPrepared *prepared, int rank, int row_rank,
                  const int64_t *size, const int64_t (*stride)[TOR_MAP_RANK]) {
    const TorReady *ready = (const TorReady *)prepared->opaque;
    TorBound *bound = (TorBound *)args->opaque;
    args->program = prepared->program;
    args->error = NULL;
    Bind b = {.args = args,
              .ready = ready,
              .bound = bound,
              .operands = ready->n_inputs + ready->n_outputs};
    bool reduces = ready->n_reductions > 0;
    bound->ready = ready;
    bound->mode = TOR_MODE_map;
    bound->block = 0;
    take_dims(&b, rank, reduces ? row_rank : 0, size, stride);
    sort_dims(&b, 0, b.outer);
    if (!ready->has_arg) sort_dims(&b, b.outer, b.n);
    merge_dims(&b, b.outer, b.n);
    b.outer = merge_dims(&b, 0, b.outer);
    if (b.n == (reduces ? b.outer : 0)) insert_unit_dim(&b);
    args->rank = b.n;
    args->row_rank = b.n - b.outer;
    b.tile = tile_for(ready, args->wish);
    if (reduces) {
        bind_rows(&b);
    } else {
        bound->block = b.n > 1 && args->size[b.n - 1] < 64;
        if (!args->wish && ready->n_ops > 1 && exceeds_caches(&b)) b.tile = TOR_MIN(b.tile, 256);
        cut_tiles(&b, 0);
        args->row_rank = 0;
        args->items = product(args->size, 0, b.n) ? bound->tiles : 0;
        choose_access(&b);
        lay_out(&b, bound->rows * bound->chunk, 1, 0);
    }
    choose_functions(&b);
}

void tor_map_run(const void *arguments, int64_t begin, int64_t end, void *scratch) {
    static void (*const drivers[])(const TorMapArgs *, const TorBound *, int64_t, int64_t,
                                   uint8_t *) = {tor_run_map, tor_run_rows, tor_run_group,
                                                 tor_run_columns};
    const TorMapArgs *args = arguments;
    const TorBound *bound = (const TorBound *)args->opaque;
    if (begin < end) drivers[bound->mode](args, bound, begin, end, scratch);
}

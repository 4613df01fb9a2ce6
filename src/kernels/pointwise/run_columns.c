// Columns: reductions whose operands run along the last outer dim. Tiles are pieces of that dim,
// one row position after the other; row values are vectors.
#include "kernels/pointwise/run.h"

// Points the slots at `n` lanes from `lane` on, at the walk's place in the row.
static void enter(TorRun *run, const TorWalk *walk, int64_t lane, int64_t n, int dim) {
    const TorBound *bound = run->bound;
    for (int i = 0; i < run->n_active; i++) {
        int k = run->active[i];
        int64_t stride = run->args->stride[k][dim];
        uint8_t *from = run->base[k] + walk->offset[k] + lane * stride * run->bytes[k];
        if (bound->access[k] == TOR_ACCESS_gather) {
            uint8_t *buffer = run->scratch + bound->gather_at[k];
            if (k < run->ready->n_inputs) tor_tile_gather(buffer, from, run->bytes[k], stride, n);
            from = buffer;
        }
        run->slot[run->slot_of[k]] = from;
    }
}

static void leave(TorRun *run, const TorWalk *walk, int64_t lane, int64_t n, int dim, int stage) {
    for (int i = 0; i < run->n_active; i++) {
        int k = run->active[i];
        if (k < run->ready->n_inputs || run->bound->access[k] != TOR_ACCESS_gather ||
            !tor_writes(run, k, stage))
            continue;
        int64_t stride = run->args->stride[k][dim];
        tor_tile_scatter(run->base[k] + walk->offset[k] + lane * stride * run->bytes[k],
                         run->slot[run->slot_of[k]], run->bytes[k], stride, n);
    }
}

static void row_outputs(TorRun *run, int64_t lane, int64_t n, int dim, bool scatter) {
    const TorMapArgs *args = run->args;
    const int inputs = run->ready->n_inputs;
    for (int k = inputs; k < inputs + run->ready->n_outputs; k++) {
        if (!args->program->output_row[k - inputs]) continue;
        uint8_t *to = run->base[k] + lane * args->stride[k][dim] * run->bytes[k],
                *buffer = run->scratch + run->bound->gather_at[k];
        bool direct = run->bound->access[k] == TOR_ACCESS_direct;
        run->slot[run->slot_of[k]] = direct ? to : buffer;
        if (scatter && !direct)
            tor_tile_scatter(to, buffer, run->bytes[k], args->stride[k][dim], n);
    }
}

static void *state_of(const TorRun *run, int reduction) {
    return run->scratch + run->bound->state_at +
           (size_t)(reduction * run->bound->row_lanes) * TOR_COLUMN_BYTES;
}

// The common sum of a tensor over its first dims: every reduction of the stage sums a float input
// that is read in place, nothing is computed, and the row is one dim.
static bool sums_in_place(TorRun *run, int stage, int64_t n, int dim) {
    const TorReady *ready = run->ready;
    if (run->args->rank != dim + 2) return false;
    for (int i = 0; i < ready->n_reductions; i++) {
        const TorRowOp *op = &ready->reduce[i];
        bool sum = op->kind == TOR_REDUCE_sum && op->type >= TOR_float32 && op->src < SLOT_OUTPUT &&
                   run->bound->access[op->src] == TOR_ACCESS_direct;
        if (op->stage == stage && !sum && op->kind != TOR_REDUCE_length) return false;
    }
    for (int i = 0; i < ready->n_reductions; i++) {
        const TorRowOp *op = &ready->reduce[i];
        if (op->stage != stage || op->kind == TOR_REDUCE_length) continue;
        tor_columns_add_rows(state_of(run, i), ready, op, run->slot[op->src],
                             run->args->stride[op->src][dim + 1], run->bound->length, n);
    }
    return true;
}

static void run_stage(TorRun *run, int stage, int64_t lane, int64_t n, int dim) {
    const TorBound *bound = run->bound;
    const TorReady *ready = run->ready;
    TorWalk walk;
    tor_walk_start(&walk, run, dim + 1, run->args->rank, 0);
    enter(run, &walk, lane, n, dim);
    row_outputs(run, lane, n, dim, false);
    tor_run_row_ops(run, stage, n);
    for (int i = 0; i < ready->n_reductions; i++) {
        if (ready->reduce[i].stage == stage)
            tor_columns_start(state_of(run, i), &ready->reduce[i], n);
    }
    bool works = false;
    for (int i = 0; i < bound->n_ops; i++) works |= !run->op[i].row && run->op[i].stage == stage;
    if (!works && stage == ready->n_stages - 1) return;
    const bool done = !works && sums_in_place(run, stage, n, dim);
    for (int64_t row = 0; row < bound->length && !done; row++) {
        if (row) enter(run, &walk, lane, n, dim);
        for (int i = 0; bound->keep && i < ready->n_bufs; i++) {
            if (ready->buf_kept[i])
                run->slot[SLOT_BUF + i] = run->scratch + bound->keep_at[i] +
                                          (size_t)(row * bound->chunk) * ready->buf_bytes[i];
        }
        tor_run_element_ops(run, stage, n);
        for (int i = 0; i < ready->n_reductions; i++) {
            if (ready->reduce[i].stage == stage && ready->reduce[i].kind != TOR_REDUCE_length)
                tor_columns_add(state_of(run, i), ready, &ready->reduce[i],
                                run->slot[ready->reduce[i].src], row, n);
        }
        leave(run, &walk, lane, n, dim, stage);
        tor_walk_next(&walk, run);
    }
    for (int i = 0; i < ready->n_reductions; i++) {
        const TorRowOp *op = &ready->reduce[i];
        if (op->stage == stage)
            tor_columns_finish(state_of(run, i), ready, op, bound->length, n, run->slot[op->row],
                               run->slot[op->row + 1]);
    }
}

void tor_run_columns(const TorMapArgs *args, const TorBound *bound, int64_t begin, int64_t end,
                     uint8_t *scratch) {
    TorRun run;
    TorWalk walk;
    tor_run_start(&run, args, bound, scratch);
    const int dim = args->rank - args->row_rank - 1,
              operands = run.ready->n_inputs + run.ready->n_outputs;
    for (int64_t item = begin; item < end; item++) {
        int64_t lane = item % bound->chunks * bound->chunk,
                n = TOR_MIN(bound->chunk, bound->inner - lane);
        tor_walk_start(&walk, &run, 0, dim, item / bound->chunks);
        for (int k = 0; k < operands; k++) run.base[k] = (uint8_t *)args->data[k] + walk.offset[k];
        for (int stage = 0; stage < run.ready->n_stages; stage++)
            run_stage(&run, stage, lane, n, dim);
        row_outputs(&run, lane, n, dim, true);
    }
}

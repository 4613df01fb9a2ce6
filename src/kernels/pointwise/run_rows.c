// Rows: one row at a time, in tiles; each stage is a pass over the row. Groups: as many whole short
// rows as a tile holds, with every stage run on the tile while it is there.
#include "kernels/pointwise/run.h"

static void start(const TorReady *ready, int stage, TorAcc *acc) {
    for (int i = 0; i < ready->n_reductions; i++) {
        if (ready->reduce[i].stage == stage)
            tor_acc_start(&acc[i], ready->reduce[i].kind, ready->reduce[i].type);
    }
}

static void finish(TorRun *run, int stage, const TorAcc *acc) {
    const TorReady *ready = run->ready;
    for (int i = 0; i < ready->n_reductions; i++) {
        const TorRowOp *op = &ready->reduce[i];
        if (op->stage == stage)
            tor_acc_finish(&acc[i], op, run->slot[op->row], run->slot[op->row + 1]);
    }
}

void tor_run_rows(const TorMapArgs *args, const TorBound *bound, int64_t begin, int64_t end,
                  uint8_t *scratch) {
    TorRun run;
    TorAcc acc[TOR_PROGRAM_REDUCTIONS];
    TorWalk walk;
    tor_run_start(&run, args, bound, scratch);
    const int operands = run.ready->n_inputs + run.ready->n_outputs, stages = run.ready->n_stages;
    // A last stage of row ops alone needs no pass over the row.
    int element_ops = 0;
    for (int i = 0; i < bound->n_ops; i++)
        element_ops += !run.op[i].row && run.op[i].stage == stages - 1;
    tor_walk_start(&walk, &run, 0, args->rank - args->row_rank, begin);
    for (int64_t item = begin; item < end; item++) {
        for (int k = 0; k < operands; k++) run.base[k] = (uint8_t *)args->data[k] + walk.offset[k];
        for (int stage = 0; stage < stages; stage++) {
            bool last = stage == stages - 1;
            for (int k = 0; k < operands; k++) run.slot[run.slot_of[k]] = run.base[k];
            tor_run_row_ops(&run, stage, 1);
            if (!last) start(run.ready, stage, acc);
            if (!last || element_ops)
                tor_run_tiles(&run, stage, 0, bound->length ? bound->tiles : 0, last ? NULL : acc);
            if (!last) finish(&run, stage, acc);
        }
        tor_walk_next(&walk, &run);
    }
}

// An op that reads row values: row by row, with them as scalars.
static void run_by_row(const TorRun *run, const TorBoundOp *op, int64_t rows, int64_t length) {
    uint8_t *slot[SLOT_COUNT];
    int64_t step[4];
    const uint8_t at[4] = {op->dst, op->src[0], op->src[1], op->src[2]};
    for (int i = 0; i < 3; i++) slot[SLOT_SPLAT + i] = run->slot[SLOT_SPLAT + i];
    for (int i = 0; i < 4; i++) {
        bool row_value =
            at[i] >= SLOT_ROW && at[i]<SLOT_BUF, scalar = i> 0 && (op->scalars >> (i - 1) & 1);
        step[i] = row_value ? op->bytes[i] : scalar ? 0 : op->bytes[i] * length;
        slot[at[i]] = run->slot[at[i]];
    }
    if (op->divides)
        tor_check_divisors((int *)run->slot[SLOT_ERROR], slot[at[2]], op->bytes[2],
                           step[2] == 0              ? TOR_MIN(rows * length, 1)
                           : step[2] == op->bytes[2] ? rows
                                                     : rows * length);
    if (!op->splat) {
        uint8_t *p[4] = {slot[at[0]], slot[at[1]], slot[at[2]], slot[at[3]]};
        for (int64_t r = 0; r < rows; r++) {
            op->fn(p[0], p[1], p[2], p[3], length);
            for (int i = 0; i < 4; i++) p[i] += step[i];
        }
    } else {
        for (int64_t r = 0; r < rows; r++) {
            for (int i = 0; i < 4; i++) {
                if (op->bytes[i]) slot[at[i]] = run->slot[at[i]] + r * step[i];
            }
            tor_run_splat(op, slot, length);
        }
    }
    if (op->round) op->round(run->slot[op->dst], run->slot[op->dst], NULL, NULL, rows * length);
}

static void reduce_group(TorRun *run, int stage, int64_t rows, int64_t length) {
    const TorReady *ready = run->ready;
    for (int i = 0; i < ready->n_reductions; i++) {
        const TorRowOp *op = &ready->reduce[i];
        if (op->stage != stage) continue;
        const TorPartialFn partial = ready->table->partial[op->kind][op->type];
        const uint8_t *x = run->slot[op->src];
        uint8_t *row = run->slot[op->row], *second = run->slot[op->row + 1];
        const int64_t step = length * (int64_t)tor_dtype_size((TorDtype)op->type);
        const uint8_t bytes = ready->row_bytes[op->row - SLOT_ROW];
        // What one tile gives is the row's: no accumulation for the common kinds.
        const bool plain = op->type == TOR_float32 && !op->half && op->kind <= TOR_REDUCE_min;
        for (int64_t r = 0; plain && r < rows; r++, x += step) {
            TorPartial part;
            partial(&part, x, length);
            ((float *)row)[r] = (float)part.f;
        }
        for (int64_t r = 0; !plain && r < rows;
             r++, x += step, row += bytes, second += second ? bytes : 0) {
            TorPartial part;
            TorAcc acc;
            if (partial) partial(&part, x, length);
            tor_acc_start(&acc, op->kind, op->type);
            tor_acc_add(&acc, op->kind, op->type, &part, length, 0);
            tor_acc_finish(&acc, op, row, second);
        }
    }
}

// Row outputs of rows [row, row + rows): where they lie, or a buffer that is scattered at the end.
static void row_outputs(TorRun *run, int64_t row, int64_t rows, bool scatter) {
    const TorMapArgs *args = run->args;
    const int outer = args->rank - args->row_rank, inputs = run->ready->n_inputs;
    for (int k = inputs; k < inputs + run->ready->n_outputs; k++) {
        if (!args->program->output_row[k - inputs]) continue;
        uint8_t *buffer = run->scratch + run->bound->gather_at[k];
        if (run->bound->access[k] == TOR_ACCESS_direct) {
            run->slot[run->slot_of[k]] = run->base[k] + row * run->bytes[k];
        } else if (!scatter) {
            run->slot[run->slot_of[k]] = buffer;
        } else {
            int64_t index[TOR_MAP_RANK], rest = row;
            for (int d = outer - 1; d >= 0; d--) {
                index[d] = rest % args->size[d];
                rest /= args->size[d];
            }
            tor_block_scatter(run->base[k], buffer, run->bytes[k], outer, args->size,
                              args->stride[k], index, rows, 1, 1);
        }
    }
}

void tor_run_group(const TorMapArgs *args, const TorBound *bound, int64_t begin, int64_t end,
                   uint8_t *scratch) {
    TorRun run;
    tor_run_start(&run, args, bound, scratch);
    const int stages = run.ready->n_stages;
    for (int64_t item = begin; item < end; item++) {
        int64_t row = item * bound->rows, rows = TOR_MIN(bound->rows, bound->inner_rows - row);
        tor_run_block_in(&run, row, rows, item == begin);
        row_outputs(&run, row, rows, false);
        for (int stage = 0; stage < stages; stage++) {
            for (int i = 0; i < bound->n_ops; i++) {
                const TorBoundOp *op = &run.op[i];
                if (op->stage != stage) continue;
                if (op->by_row) {
                    run_by_row(&run, op, rows, bound->inner);
                } else {
                    tor_run_op(op, run.slot, op->row ? rows : rows * bound->inner);
                }
            }
            reduce_group(&run, stage, rows, bound->inner);
        }
        for (int stage = 0; stage < stages; stage++) tor_run_block_out(&run, row, rows, stage);
        row_outputs(&run, row, rows, true);
    }
}

// Slots, walks and tiles: what the drivers share.
#include "kernels/pointwise/run.h"

#include <string.h>

void tor_run_start(TorRun *run, const TorMapArgs *args, const TorBound *bound, uint8_t *scratch) {
    const TorReady *ready = bound->ready;
    const TorProgram *program = args->program;
    run->args = args;
    run->bound = bound;
    run->op = tor_bound_ops(args, bound);
    run->ready = ready;
    run->scratch = scratch;
    run->n_active = 0;
    run->has_gathers = false;
    for (int i = 0; i < ready->n_ops; i++) {
        int out = ready->op[i].dst - SLOT_OUTPUT;
        if (out >= 0 && out < TOR_PROGRAM_OUTPUTS) run->written[out] = ready->op[i].stage;
    }
    run->slot[SLOT_ERROR] = (uint8_t *)args->error;
    run->slot[0] = NULL;  // what an operand that an op lacks names
    for (int k = 0; k < ready->n_inputs + ready->n_outputs; k++) {
        int out = k - ready->n_inputs;
        run->bytes[k] = (uint8_t)tor_dtype_size(
            (TorDtype)(out < 0 ? program->input_type[k] : program->output_type[out]));
        run->slot_of[k] = (uint8_t)(out < 0 ? SLOT_INPUT + k : SLOT_OUTPUT + out);
        run->base[k] = args->data[k];
        if (out < 0 ? ready->read_inputs >> k & 1 : !program->output_row[out])
            run->active[run->n_active++] = (uint8_t)k;
        run->slot[run->slot_of[k]] = run->base[k];
        run->has_gathers |= bound->access[k] == TOR_ACCESS_gather;
    }
    for (int i = 0; i < program->n_imms; i++)
        run->slot[SLOT_IMM + i] = (uint8_t *)(uintptr_t)&ready->imm[i];
    uint8_t *row = scratch + bound->row_at;
    for (int r = 0; ready->n_reductions && r < TOR_ROW_SLOTS; r++) {
        run->slot[SLOT_ROW + r] = ready->row_bytes[r] ? row : NULL;
        if (!ready->row_bytes[r]) continue;
        row += (bound->row_lanes * 8 + 63) / 64 * 64;
    }
    for (int i = 0; i < ready->n_bufs; i++)
        run->slot[SLOT_BUF + i] = scratch + bound->buf_at + (size_t)i * bound->tile_bytes;
    for (int i = 0; i < 3; i++)
        run->slot[SLOT_SPLAT + i] = scratch + bound->splat_at + (size_t)i * bound->tile_bytes;
}

void tor_run_row_ops(TorRun *run, int stage, int64_t n) {
    const TorBound *bound = run->bound;
    for (int i = 0; i < bound->n_ops; i++) {
        if (run->op[i].row && run->op[i].stage == stage) tor_run_op(&run->op[i], run->slot, n);
    }
}

void tor_walk_start(TorWalk *walk, const TorRun *run, int from, int to, int64_t position) {
    int operands = run->ready->n_inputs + run->ready->n_outputs;
    walk->from = from;
    walk->to = to;
    for (int k = 0; k < operands; k++) walk->offset[k] = 0;
    for (int d = to - 1; d >= from; d--) {
        int64_t size = run->args->size[d];
        walk->at[d] = position % size;
        position /= size;
        for (int k = 0; k < operands; k++)
            walk->offset[k] += walk->at[d] * run->args->stride[k][d] * run->bytes[k];
    }
}

void tor_walk_next(TorWalk *walk, const TorRun *run) {
    int operands = run->ready->n_inputs + run->ready->n_outputs;
    for (int d = walk->to - 1; d >= walk->from; d--) {
        int64_t size = run->args->size[d];
        bool carries = ++walk->at[d] == size;
        int64_t steps = carries ? 1 - size : 1;
        for (int k = 0; k < operands; k++)
            walk->offset[k] += steps * run->args->stride[k][d] * run->bytes[k];
        if (!carries) return;
        walk->at[d] = 0;
    }
}

static void accumulate(TorRun *run, int stage, int64_t n, int64_t position, TorAcc *acc) {
    const TorReady *ready = run->ready;
    for (int i = 0; i < ready->n_reductions; i++) {
        const TorRowOp *op = &ready->reduce[i];
        if (op->stage != stage) continue;
        TorPartial part;
        const TorPartialFn partial = ready->table->partial[op->kind][op->type];
        if (partial) partial(&part, run->slot[op->src], n);  // a length has none
        tor_acc_add(&acc[i], op->kind, op->type, &part, n, position);
    }
}

static void move_kept(TorRun *run, int64_t position) {
    const TorReady *ready = run->ready;
    for (int i = 0; i < ready->n_bufs; i++) {
        if (ready->buf_kept[i])
            run->slot[SLOT_BUF + i] =
                run->scratch + run->bound->keep_at[i] + (size_t)position * ready->buf_bytes[i];
    }
}

static void run_chunks(TorRun *run, int stage, int64_t begin, int64_t end, TorAcc *acc) {
    const TorBound *bound = run->bound;
    const TorMapArgs *args = run->args;
    const int inner = args->rank - 1;
    const bool kept = bound->keep && run->ready->n_stages > 1;
    TorWalk walk;
    int64_t row = begin / bound->chunks, chunk = begin % bound->chunks;
    tor_walk_start(&walk, run, bound->space, inner, row);
    for (int64_t tile = begin; tile < end; tile++) {
        int64_t at = chunk * bound->chunk, n = TOR_MIN(bound->chunk, bound->inner - at);
        for (int i = 0; i < run->n_active; i++) {
            int k = run->active[i];
            uint8_t *from = run->base[k] + walk.offset[k];
            if (bound->access[k] == TOR_ACCESS_direct) {
                from += at * run->bytes[k];
            } else if (bound->access[k] == TOR_ACCESS_gather) {
                uint8_t *buffer = run->scratch + bound->gather_at[k];
                int64_t stride = args->stride[k][inner];
                if (k < run->ready->n_inputs)
                    tor_tile_gather(buffer, from + at * stride * run->bytes[k], run->bytes[k],
                                    stride, n);
                from = buffer;
            }
            run->slot[run->slot_of[k]] = from;
        }
        int64_t position = row * bound->inner + at;
        if (kept) move_kept(run, position);
        tor_run_element_ops(run, stage, n);
        if (acc) accumulate(run, stage, n, position, acc);
        for (int i = 0; i < run->n_active; i++) {
            int k = run->active[i];
            if (k < run->ready->n_inputs || bound->access[k] != TOR_ACCESS_gather) continue;
            int64_t stride = args->stride[k][inner];
            uint8_t *to = run->base[k] + walk.offset[k] + at * stride * run->bytes[k];
            if (tor_writes(run, k, stage))
                tor_tile_scatter(to, run->slot[run->slot_of[k]], run->bytes[k], stride, n);
        }
        if (++chunk == bound->chunks) {
            chunk = 0;
            row++;
            tor_walk_next(&walk, run);
        }
    }
}

static void block_index(const TorRun *run, int64_t row, int64_t *index) {
    const TorMapArgs *args = run->args;
    for (int d = args->rank - 2; d >= run->bound->space; d--) {
        index[d] = row % args->size[d];
        row /= args->size[d];
    }
}

void tor_run_block_in(TorRun *run, int64_t row, int64_t rows, bool fixed) {
    const TorBound *bound = run->bound;
    const TorMapArgs *args = run->args;
    const int inner = args->rank - 1, space = bound->space;
    int64_t index[TOR_MAP_RANK];
    if (run->has_gathers) block_index(run, row, index);
    for (int i = 0; i < run->n_active; i++) {
        int k = run->active[i];
        uint8_t *from = run->base[k], *buffer = run->scratch + bound->gather_at[k];
        switch (bound->access[k]) {
            case TOR_ACCESS_direct: from += row * bound->inner * run->bytes[k]; break;
            case TOR_ACCESS_scalar: break;
            case TOR_ACCESS_fixed:
                if (fixed)
                    tor_block_gather(buffer, from, run->bytes[k], 0, NULL, NULL, NULL, 1,
                                     bound->inner, args->stride[k][inner]);
                // One row, then what is there doubled.
                for (int64_t have = 1; fixed && have < bound->rows; have *= 2) {
                    int64_t more = TOR_MIN(have, bound->rows - have);
                    memcpy(buffer + have * bound->inner * run->bytes[k], buffer,
                           (size_t)(more * bound->inner) * run->bytes[k]);
                }
                from = buffer;
                break;
            default:
                if (k < run->ready->n_inputs) {
                    tor_block_gather(buffer, from, run->bytes[k], inner - space, args->size + space,
                                     args->stride[k] + space, index + space, rows, bound->inner,
                                     args->stride[k][inner]);
                }
                from = buffer;
                break;
        }
        run->slot[run->slot_of[k]] = from;
    }
}

void tor_run_block_out(TorRun *run, int64_t row, int64_t rows, int stage) {
    const TorBound *bound = run->bound;
    const TorMapArgs *args = run->args;
    const int inner = args->rank - 1, space = bound->space;
    int64_t index[TOR_MAP_RANK];
    if (!run->has_gathers) return;
    block_index(run, row, index);
    for (int i = 0; i < run->n_active; i++) {
        int k = run->active[i];
        if (k < run->ready->n_inputs || bound->access[k] != TOR_ACCESS_gather ||
            !tor_writes(run, k, stage))
            continue;
        tor_block_scatter(run->base[k], run->slot[run->slot_of[k]], run->bytes[k], inner - space,
                          args->size + space, args->stride[k] + space, index + space, rows,
                          bound->inner, args->stride[k][inner]);
    }
}

static void run_blocks(TorRun *run, int stage, int64_t begin, int64_t end, TorAcc *acc) {
    const TorBound *bound = run->bound;
    const bool kept = bound->keep && run->ready->n_stages > 1;
    for (int64_t tile = begin; tile < end; tile++) {
        int64_t row = tile * bound->rows, rows = TOR_MIN(bound->rows, bound->inner_rows - row);
        tor_run_block_in(run, row, rows, tile == begin);
        if (kept) move_kept(run, row * bound->inner);
        tor_run_element_ops(run, stage, rows * bound->inner);
        if (acc) accumulate(run, stage, rows * bound->inner, row * bound->inner, acc);
        tor_run_block_out(run, row, rows, stage);
    }
}

// A space that is one tile, all of it read and written where it lies: nothing to walk, and the
// slots are at its base already. Short rows come here for each of their stages.
static void run_whole(TorRun *run, int stage, TorAcc *acc) {
    const int64_t n = run->bound->inner;
    if (run->bound->keep && run->ready->n_stages > 1) move_kept(run, 0);
    tor_run_element_ops(run, stage, n);
    if (acc) accumulate(run, stage, n, 0, acc);
}

void tor_run_tiles(TorRun *run, int stage, int64_t begin, int64_t end, TorAcc *acc) {
    if (begin >= end) return;
    if (run->bound->tiles == 1 && !run->bound->block && !run->has_gathers) {
        run_whole(run, stage, acc);
    } else if (run->bound->block) {
        run_blocks(run, stage, begin, end, acc);
    } else {
        run_chunks(run, stage, begin, end, acc);
    }
}

void tor_run_map(const TorMapArgs *args, const TorBound *bound, int64_t begin, int64_t end,
                 uint8_t *scratch) {
    TorRun run;
    tor_run_start(&run, args, bound, scratch);
    tor_run_tiles(&run, 0, begin, end, NULL);
}

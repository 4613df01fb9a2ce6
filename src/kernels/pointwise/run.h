/// What the four drivers share: slots over a thread's scratch, and walks over outer dims.
#ifndef TOR_KERNELS_POINTWISE_RUN_H
#define TOR_KERNELS_POINTWISE_RUN_H

#include "kernels/pointwise/engine.h"

typedef struct {
    const TorMapArgs *args;
    const TorBound *bound;
    const TorBoundOp *op;  ///< [bound->n_ops]
    const TorReady *ready;
    uint8_t *scratch;
    uint8_t written[TOR_PROGRAM_OUTPUTS];  ///< stage that writes it
    bool has_gathers;
    int n_active;                      ///< operands that are read or written, row outputs aside
    uint8_t active[TOR_MAP_OPERANDS];  ///< their numbers
    uint8_t slot_of[TOR_MAP_OPERANDS], bytes[TOR_MAP_OPERANDS];
    uint8_t *base[TOR_MAP_OPERANDS];  ///< where this outer position's elements begin
    uint8_t *slot[SLOT_COUNT];
} TorRun;

void tor_run_start(TorRun *run, const TorMapArgs *args, const TorBound *bound, uint8_t *scratch);

/// Ops of one stage over n elements: row ops, or element ops (with those that the stage repeats).
void tor_run_row_ops(TorRun *run, int stage, int64_t n);
static inline void tor_run_element_ops(TorRun *run, int stage, int64_t n) {
    const TorBound *bound = run->bound;
    for (const TorBoundOp *op = run->op, *end = op + bound->n_ops; op < end; op++) {
        bool here = op->stage == stage || (!bound->keep && (op->again >> stage & 1));
        if (here && !op->row) tor_run_op(op, run->slot, n);
    }
}

/// Position over dims [from, to), with every operand's offset in bytes.
typedef struct {
    int from, to;
    int64_t at[TOR_MAP_RANK];
    int64_t offset[TOR_MAP_OPERANDS];
} TorWalk;
void tor_walk_start(TorWalk *walk, const TorRun *run, int from, int to, int64_t position);
void tor_walk_next(TorWalk *walk, const TorRun *run);

/// Runs tiles [begin, end) of the space at run->base, where the slots are too. With `acc`, the
/// stage's reductions take them in.
void tor_run_tiles(TorRun *run, int stage, int64_t begin, int64_t end, TorAcc *acc);
/// Block tiles: points the slots at inner rows [row, row + rows), gathering what does not lie flat
/// (`fixed`: also what is the same for every tile); and scatters outputs that do not.
void tor_run_block_in(TorRun *run, int64_t row, int64_t rows, bool fixed);
void tor_run_block_out(TorRun *run, int64_t row, int64_t rows, int stage);

/// Whether `stage` writes output operand k.
static inline bool tor_writes(const TorRun *run, int k, int stage) {
    return run->written[k - run->ready->n_inputs] == stage;
}

#endif

// Programs as epilogues of other kernels' tiles: row after row, functions chosen once a call.
#include <string.h>

#include "kernels/pointwise/engine.h"

enum { MAX_COLS = TOR_TILE_MAX };

void tor_epilogue_bind(TorEpilogue *epilogue, const TorProgram *program) {
    epilogue->program = program;
    tor_program_prepare(&epilogue->prepared, program);
}

static size_t tile_bytes(const TorReady *ready, int64_t cols) {
    return (size_t)tor_round_up(TOR_MIN(cols, MAX_COLS) * ready->widest, 64);
}

size_t tor_epilogue_scratch(const TorEpilogue *epilogue, int64_t cols) {
    const TorReady *ready = (const TorReady *)epilogue->prepared.opaque;
    return tile_bytes(ready, cols) *
           (size_t)(ready->n_bufs + 3 + ready->n_inputs + ready->n_outputs);
}

typedef struct {
    const TorReady *ready;
    int operands;
    TorBoundOp op[TOR_OPS];
    uint8_t slot_of[TOR_MAP_OPERANDS], bytes[TOR_MAP_OPERANDS], access[TOR_MAP_OPERANDS];
    uint8_t *buffer[TOR_MAP_OPERANDS], *slot[SLOT_COUNT];
    int64_t row_bytes[TOR_MAP_OPERANDS], col_bytes[TOR_MAP_OPERANDS];
} Tile;

static void choose(Tile *tile, const TorEpilogue *epilogue, int64_t acc_stride, bool keeps_acc) {
    const TorReady *ready = tile->ready;
    const TorProgram *program = epilogue->program;
    for (int k = 0; k < tile->operands; k++) {
        int out = k - ready->n_inputs;
        int64_t col = k == 0 && out < 0 ? 1 : epilogue->col_stride[k],
                row = k == 0 && out < 0 ? acc_stride : epilogue->row_stride[k];
        tile->bytes[k] = (uint8_t)tor_dtype_size(
            (TorDtype)(out < 0 ? program->input_type[k] : program->output_type[out]));
        tile->slot_of[k] = (uint8_t)(out < 0 ? SLOT_INPUT + k : SLOT_OUTPUT + out);
        tile->access[k] = col == 1 && !(out == 0 && keeps_acc) ? TOR_ACCESS_direct
                          : col == 0 && out < 0                ? TOR_ACCESS_scalar
                                                               : TOR_ACCESS_gather;
        tile->row_bytes[k] = row * tile->bytes[k];
        tile->col_bytes[k] = col * tile->bytes[k];
    }
    for (int i = 0; i < ready->n_ops; i++) {
        const TorOp *op = &ready->op[i];
        unsigned scalars = 0;
        for (int s = 0; s < op->arity; s++) {
            int slot = op->src[s];
            bool one = slot < SLOT_OUTPUT ? tile->access[slot] == TOR_ACCESS_scalar
                                          : slot >= SLOT_IMM && slot < SLOT_ROW;
            scalars |= (unsigned)one << s;
        }
        tor_bound_op(&tile->op[i], ready, op, scalars);
    }
}

static void run_row(Tile *tile, uint8_t *const *at, int64_t n) {
    for (int k = 0; k < tile->operands; k++) {
        bool gathers = tile->access[k] == TOR_ACCESS_gather;
        tile->slot[tile->slot_of[k]] = gathers ? tile->buffer[k] : at[k];
        if (gathers && k < tile->ready->n_inputs) {
            tor_tile_gather(tile->buffer[k], at[k], tile->bytes[k],
                            tile->col_bytes[k] / tile->bytes[k], n);
        }
    }
    for (int i = 0; i < tile->ready->n_ops; i++) tor_run_op(&tile->op[i], tile->slot, n);
    for (int k = tile->ready->n_inputs; k < tile->operands; k++) {
        if (tile->access[k] == TOR_ACCESS_gather)
            tor_tile_scatter(at[k], tile->buffer[k], tile->bytes[k],
                             tile->col_bytes[k] / tile->bytes[k], n);
    }
}

void tor_epilogue_run(const TorEpilogue *epilogue, int64_t batch, int64_t row, int64_t rows,
                      int64_t col, int64_t cols, const float *acc, int64_t acc_stride,
                      void *scratch) {
    Tile tile;
    const TorReady *ready = (const TorReady *)epilogue->prepared.opaque;
    tile.ready = ready;
    tile.operands = ready->n_inputs + ready->n_outputs;
    const size_t bytes = tile_bytes(ready, cols);
    uint8_t *free_at = scratch;
    memset(tile.slot, 0, sizeof tile.slot);
    for (int i = 0; i < ready->n_bufs; i++, free_at += bytes) tile.slot[SLOT_BUF + i] = free_at;
    for (int i = 0; i < 3; i++, free_at += bytes) tile.slot[SLOT_SPLAT + i] = free_at;
    for (int k = 0; k < tile.operands; k++, free_at += bytes) tile.buffer[k] = free_at;
    for (int i = 0; i < epilogue->program->n_imms; i++)
        tile.slot[SLOT_IMM + i] = (uint8_t *)(uintptr_t)&ready->imm[i];

    // In place on output 0, but with the accumulator still to be read: the output waits in a
    // buffer.
    choose(&tile, epilogue, acc_stride, ready->output0_early);
    for (int64_t c = 0; c < cols; c += MAX_COLS) {
        int64_t n = TOR_MIN(MAX_COLS, cols - c);
        uint8_t *at[TOR_MAP_OPERANDS];
        for (int k = 0; k < tile.operands; k++) {
            at[k] = k == 0 && ready->n_inputs
                        ? (uint8_t *)(uintptr_t)acc + c * 4
                        : (uint8_t *)epilogue->data[k] +
                              epilogue->batch_stride[k] * batch * tile.bytes[k] +
                              row * tile.row_bytes[k] + (col + c) * tile.col_bytes[k];
        }
        for (int64_t r = 0; r < rows; r++) {
            run_row(&tile, at, n);
            for (int k = 0; k < tile.operands; k++) at[k] += tile.row_bytes[k];
        }
    }
}

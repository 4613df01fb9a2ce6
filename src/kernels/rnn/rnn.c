/// Recurrent family: rows, the split over the batch, and the walk over the steps.
#include <string.h>

#include "base/alloc.h"
#include "base/cpu.h"
#include "kernels/rnn/contract.h"

#define TOR_RNN_KERNEL(symbol, features, mode) TorRnnFn symbol;
#include "kernels/rnn/kernels.inc"
#undef TOR_RNN_KERNEL

static const TorRnnKernel kernels[] = {
#define TOR_RNN_KERNEL(symbol, features, mode) {#symbol, features, mode, symbol},
#include "kernels/rnn/kernels.inc"
#undef TOR_RNN_KERNEL
};

// Rows an item: enough to use what a step reads of the weight, and few enough that a usual batch
// keeps some threads busy.
enum { LEAST_ROWS = 4, MOST_ITEMS = 16 };

static int64_t bytes_of(int64_t floats) { return tor_round_up(floats * 4, TOR_CACHE_LINE); }

static size_t gemm_bytes(const TorGemmArgs *gemm) {
    return (size_t)tor_round_up((int64_t)(gemm->scratch_bytes + gemm->shared_bytes),
                                TOR_CACHE_LINE) +
           TOR_CACHE_LINE;
}

void tor_rnn_bind(TorRnnArgs *args) {
    uint32_t have = tor_cpu_features();
    for (size_t i = 0; i < TOR_COUNT_OF(kernels); i++)
        if (kernels[i].mode == args->mode && !(kernels[i].features & ~have))
            args->kernel = &kernels[i];
    int64_t batch = args->batch, width = args->width, gates = tor_rnn_gates(args->mode) * width;
    int64_t items = TOR_MIN(tor_ceil_div(batch, LEAST_ROWS), MOST_ITEMS);
    args->block = items ? tor_round_up(tor_ceil_div(batch, items), LEAST_ROWS) : LEAST_ROWS;
    args->block = TOR_MIN(args->block, TOR_MAX(batch, 1));
    args->items = width ? tor_ceil_div(batch, args->block) : 0;
    size_t most = 0;
    for (int i = 0; i < 2; i++) {
        TorGemmArgs *gemm = &args->gemm[i];
        int64_t rest = batch % args->block;
        memset(gemm, 0, sizeof *gemm);
        gemm->m = i == 0 || rest == 0 ? args->block : rest;
        gemm->n = gates;
        gemm->k = width;
        gemm->a_row = width, gemm->a_col = 1;
        gemm->b_packed = args->packed;
        gemm->b_row = args->w_col, gemm->b_col = args->w_row;
        gemm->c_row = gates;
        tor_gemm_bind(gemm);
        most = TOR_MAX(most, gemm_bytes(gemm));
    }
    args->scratch_bytes =
        (size_t)bytes_of(args->block * gates) + 2 * (size_t)bytes_of(args->block * width) + most;
}

static void copy_in(float *dst, const float *src, int64_t rows, int64_t cols, int64_t row,
                    int64_t col) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) dst[i * cols + j] = src[i * row + j * col];
}

static void run_block(const TorRnnArgs *args, int64_t first, void *scratch) {
    int64_t width = args->width, gates = tor_rnn_gates(args->mode) * width,
            rows = TOR_MIN(args->block, args->batch - first);
    uint8_t *memory = scratch;
    float *product = (float *)memory;
    memory += bytes_of(args->block * gates);
    float *h = (float *)memory;
    memory += bytes_of(args->block * width);
    float *c = (float *)memory;
    memory += bytes_of(args->block * width);
    TorGemmArgs gemm = args->gemm[rows != args->block];
    uint8_t *own = memory;
    gemm.shared = (float *)(memory + tor_round_up((int64_t)gemm.scratch_bytes, TOR_CACHE_LINE));
    gemm.a = h, gemm.b = args->w, gemm.c = product, gemm.bias = args->bias;
    copy_in(h, args->h0 + first * args->h0_row, rows, width, args->h0_row, args->h0_col);
    bool cell = args->mode == TOR_RNN_lstm;
    if (cell) copy_in(c, args->c0 + first * args->c0_row, rows, width, args->c0_row, args->c0_col);
    for (int64_t step = 0; step < args->steps; step++) {
        int64_t t = args->reverse ? args->steps - 1 - step : step;
        const float *x = args->x + t * args->x_step + first * args->x_row;
        float *y = args->y + t * args->y_step + first * args->y_row;
        tor_gemm_run(&gemm, 0, gemm.items, own);
        if (gemm.join_items) tor_gemm_join_run(&gemm, 0, gemm.join_items, own);
        for (int64_t i = 0; i < rows; i++)
            args->kernel->run(x + i * args->x_row, product + i * gates, h + i * width,
                              c + i * width, y + i * args->y_row, width);
    }
    for (int64_t i = 0; cell && args->cn && i < rows; i++)
        for (int64_t j = 0; j < width; j++)
            args->cn[(first + i) * args->cn_row + j * args->cn_col] = c[i * width + j];
}

void tor_rnn_run(const void *arg, int64_t begin, int64_t end, void *scratch) {
    const TorRnnArgs *args = arg;
    for (int64_t item = begin; item < end; item++) run_block(args, item * args->block, scratch);
}

/// Recurrent family: one direction of one layer, in float32.
///
/// With p = x[t] (the input product, its bias in it) and r = h[t-1] w^T + bias, a step is, by the
/// formulas of torch.nn, gates side by side in the rows of p and r:
///
///     lstm   i, f, o = sigmoid(p + r), g = tanh(p + r);  c = f c + i g;  h = o tanh(c)
///            (order i, f, g, o)
///     gru    r', z = sigmoid(p + r);  n = tanh(p_n + r' r_n);  h = n + z (h - n)
///     tanh, relu   h = f(p + r)
///
/// An item is a block of batch rows with all of its steps: no thread waits for another within a
/// sequence, and each step is a product of few rows by the gemm family, whose policy holds for
/// its sums. Hochreiter & Schmidhuber 1997; Cho et al. 2014, with cuDNN's order in the reset gate.
#ifndef TOR_KERNELS_RNN_CONTRACT_H
#define TOR_KERNELS_RNN_CONTRACT_H

#include "base/pool.h"
#include "kernels/gemm/contract.h"

typedef enum { TOR_RNN_lstm, TOR_RNN_gru, TOR_RNN_tanh, TOR_RNN_relu } TorRnnMode;

static inline int64_t tor_rnn_gates(TorRnnMode mode) {
    return mode == TOR_RNN_lstm ? 4 : mode == TOR_RNN_gru ? 3 : 1;
}

/// One row of one step. p and r have the gates' width, the others `width`. h and c are read and
/// written; y, the row of the output, is written too.
typedef void TorRnnFn(const float *p, const float *r, float *h, float *c, float *y, int64_t width);

typedef struct {
    const char *name;
    uint32_t features;
    TorRnnMode mode;
    TorRnnFn *run;
} TorRnnKernel;

/// Fill the first part, bind, set the data, run. Strides count elements; columns of x, bias and y
/// have stride 1.
typedef struct {
    TorRnnMode mode;
    bool reverse;  ///< from the last step to the first
    int64_t steps, batch, width;
    int64_t x_step, x_row, y_step, y_row;
    int64_t h0_row, h0_col, c0_row, c0_col, cn_row, cn_col;
    bool packed;  ///< w is gemm's packed weight; else [gates * width, width] with these strides
    int64_t w_row, w_col;

    // Set before each run.
    const float *x, *w, *bias, *h0, *c0;  ///< bias: NULL for none; c0 of lstm alone
    float *y, *cn;                        ///< cn: the last c, or NULL

    // Set by bind.
    int64_t items, block;  ///< rows an item
    size_t scratch_bytes;
    const TorRnnKernel *kernel;
    TorGemmArgs gemm[2];  ///< of a full block and of the last one
} TorRnnArgs;

/// No allocation.
void tor_rnn_bind(TorRnnArgs *args);
/// A TorRangeFn.
void tor_rnn_run(const void *args, int64_t begin, int64_t end, void *scratch);
/// The oracle, in double; w unpacked. Needs no bind; scratch has tor_rnn_ref_scratch() bytes.
void tor_rnn_run_ref(const TorRnnArgs *args, void *scratch);
size_t tor_rnn_ref_scratch(const TorRnnArgs *args);

#endif

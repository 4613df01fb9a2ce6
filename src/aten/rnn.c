/// Recurrent layers: for each layer and direction one product of all steps with the input weights,
/// and one node that walks the steps.
#include <string.h>

#include "aten/build.h"
#include "aten/tables.h"

enum { LSTM, GRU, TANH, RELU, MAX_WEIGHTS = 256 };

typedef struct {
    int mode;  ///< the row's number
    bool biases;
    TorValue *h, *c;       ///< [layers, b, h]; c of an LSTM alone
    TorValue *weights[4];  ///< w_ih, w_hh, b_ih, b_hh of the direction at hand
} Cell;

/// Slice `i` of axis 0, without that axis.
static TorValue *part(TorCall *c, TorValue *x, TorDim i) {
    return tor_im_squeeze(c, tor_im_slice(c, x, 0, i, 1, tor_im_const(c, 1)), 0);
}

/// One direction of one layer: x [t, b, in] to [t, b, h]; the last states into *h and *cell.
static TorValue *direction(TorCall *c, const Cell *cell, TorValue *x, int64_t number, bool reverse,
                           TorValue **h, TorValue **last_c) {
    static const char *const modes[] = {"lstm", "gru", "tanh", "relu"};
    TorValue *const *w = cell->weights, *bias = cell->biases ? w[2] : NULL;
    bool lstm = cell->mode == LSTM, keeps_bias = cell->biases && cell->mode == GRU;
    // The gates of a GRU need the recurrent bias apart.
    if (cell->biases && !keeps_bias) bias = F2(add, w[2], w[3]);
    TorValue *product[] = {x, w[0], bias};
    TorDim at = tor_im_const(c, number);
    TorValue *inputs[5] = {tor_im_add(c, TOR_OP_linear, product, bias ? 3 : 2, NULL, 0), w[1],
                           part(c, cell->h, at)};
    int n = 3;
    if (lstm) inputs[n++] = part(c, cell->c, at);
    if (keeps_bias) inputs[n++] = w[3];
    TorAttr a[] = {TOR_A_STR(mode, modes[cell->mode]), TOR_A_INT(reverse, reverse),
                   TOR_A_INT(has_bias, keeps_bias)};
    TorValue *y = tor_im_add(c, TOR_OP_rnn_layer, inputs, n, a, 3);
    if (!y) return NULL;
    TorDim end = reverse ? tor_im_const(c, 0) : tor_int_sub(c->g, y->dim[0], tor_im_const(c, 1));
    *h = tor_im_contiguous(c, part(c, y, end));  // memory of its own, as in eager
    *last_c = lstm ? y->node->outputs[1] : NULL;
    return y;
}

static TorValue *stack(TorCall *c, TorValue **states, int count) {
    for (int i = 0; i < count; i++) states[i] = tor_im_unsqueeze(c, states[i], 0);
    return tor_im_cat(c, states, count, 0);
}

static ToroidStatus check(TorCall *c, TorValue *x, const Cell *cell, TorValue *const *weights,
                          int count) {
    if (c->status) return c->status;
    if (x->rank != 3 || cell->h->rank != 3 || (cell->c && cell->c->rank != 3))
        return tor_im_refuse(c, "expected input and states of 3 dims");
    if (tor_int_is(c->g, x->dim[0], 0) || tor_int_is(c->g, x->dim[1], 0))
        return tor_im_refuse_arg(c, 0, "empty sequences are left to PyTorch");
    for (int i = 0; i < count; i++)
        if (!weights[i] || weights[i]->dtype != x->dtype)
            return tor_im_refuse_arg(c, 2, "expected weights of the input's type");
    return TOROID_OK;
}

/// The row's number is the mode. Results: the output, h of each layer and direction, c of an LSTM.
static ToroidStatus import_rnn(TorCall *c) {
    Cell cell = {.mode = c->row->op, .biases = tor_im_flag(c, 3)};
    TorValue *x = tor_im_tensor(c, 0), *weights[MAX_WEIGHTS], *states[2] = {NULL};
    if (cell.mode == LSTM) {
        if (tor_im_tensors(c, 1, states, 2, false) != 2) tor_im_refuse_arg(c, 1, "expected two");
        cell.h = states[0], cell.c = states[1];
    } else {
        cell.h = tor_im_tensor(c, 1);
    }
    int given = tor_im_tensors(c, 2, weights, MAX_WEIGHTS, false);
    int64_t layers = tor_im_int(c, 4);
    int directions = tor_im_flag(c, 7) ? 2 : 1, each = cell.biases ? 4 : 2;
    bool batch_first = tor_im_flag(c, 8);
    if (tor_im_float(c, 5) > 0 && tor_im_flag(c, 6) && layers > 1)
        tor_im_refuse_arg(c, 5, "random numbers are not supported");
    if (!c->status && (layers < 1 || given != layers * directions * each))
        tor_im_refuse_arg(c, 2, "projections are not supported");
    TOR_TRY(check(c, x, &cell, weights, given));
    if (batch_first) x = tor_im_transpose(c, x, 0, 1);
    TorValue *h[MAX_WEIGHTS], *last[MAX_WEIGHTS], *y[2] = {NULL};
    for (int layer = 0, n = 0; layer < layers && !c->status; layer++) {
        for (int d = 0; d < directions; d++, n++) {
            memcpy(cell.weights, weights + n * each, (size_t)each * sizeof *weights);
            y[d] = direction(c, &cell, x, n, d == 1, &h[n], &last[n]);
        }
        x = directions == 2 ? tor_im_cat(c, y, 2, 2) : y[0];
    }
    int n = (int)layers * directions;
    TorValue *results[] = {batch_first ? tor_im_transpose(c, x, 0, 1) : x, stack(c, h, n),
                           cell.mode == LSTM ? stack(c, last, n) : NULL};
    return tor_im_return_list(c, results, cell.mode == LSTM ? 3 : 2);
}

#define RNN "input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first"

static const TorAtenRow rows[] = {
    {"toroid.lstm.default", RNN, import_rnn, LSTM},
    {"toroid.gru.default", RNN, import_rnn, GRU},
    {"toroid.rnn_tanh.default", RNN, import_rnn, TANH},
    {"toroid.rnn_relu.default", RNN, import_rnn, RELU},
};
TOR_ATEN_TABLE(rnn, rows);

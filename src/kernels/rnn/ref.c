/// The oracle of the recurrent family: the formulas of torch.nn, one row and step at a time. h is
/// rounded to float32 after each step, as it is stored.
#include <math.h>

#include "kernels/rnn/contract.h"

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

size_t tor_rnn_ref_scratch(const TorRnnArgs *a) {
    return (size_t)((tor_rnn_gates(a->mode) + 2) * a->width) * sizeof(double);
}

void tor_rnn_run_ref(const TorRnnArgs *a, void *scratch) {
    int64_t width = a->width, gates = tor_rnn_gates(a->mode) * width;
    double *r = scratch, *h = r + gates, *c = h + width;
    for (int64_t b = 0; b < a->batch; b++) {
        for (int64_t j = 0; j < width; j++) {
            h[j] = (double)a->h0[b * a->h0_row + j * a->h0_col];
            c[j] = a->mode == TOR_RNN_lstm ? (double)a->c0[b * a->c0_row + j * a->c0_col] : 0;
        }
        for (int64_t step = 0; step < a->steps; step++) {
            int64_t t = a->reverse ? a->steps - 1 - step : step;
            const float *p = a->x + t * a->x_step + b * a->x_row;
            for (int64_t g = 0; g < gates; g++) {
                r[g] = a->bias ? (double)a->bias[g] : 0;
                for (int64_t k = 0; k < width; k++)
                    r[g] += h[k] * (double)a->w[g * a->w_row + k * a->w_col];
            }
            for (int64_t j = 0; j < width; j++) {
                const double *q = r + j;
                double s[4] = {0};
                for (int64_t g = 0; g * width < gates; g++)
                    s[g] = (double)p[g * width + j] + q[g * width];
                if (a->mode == TOR_RNN_lstm) {
                    c[j] = sigmoid(s[1]) * c[j] + sigmoid(s[0]) * tanh(s[2]);
                    h[j] = sigmoid(s[3]) * tanh(c[j]);
                } else if (a->mode == TOR_RNN_gru) {
                    double n = tanh((double)p[2 * width + j] + sigmoid(s[0]) * q[2 * width]);
                    h[j] = n + sigmoid(s[1]) * (h[j] - n);
                } else {
                    h[j] = a->mode == TOR_RNN_tanh ? tanh(s[0]) : s[0] < 0 ? 0 : s[0];
                }
                h[j] = (double)(float)h[j];
                a->y[t * a->y_step + b * a->y_row + j] = (float)h[j];
            }
        }
        for (int64_t j = 0; a->cn && j < width; j++)
            a->cn[b * a->cn_row + j * a->cn_col] = (float)c[j];
    }
}

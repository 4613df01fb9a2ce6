/// The oracle of the conv family: scatter and gather forms written from their definitions, in
/// double.
#include "kernels/conv/contract.h"

/// Sum of one output element; `o` is its channel, `at` its position.
static double one(const TorConvArgs *args, const TorConvPackArgs *weight, int64_t b, int64_t o,
                  const int64_t *at) {
    int64_t per_in = args->in_channels / args->groups, per_out = args->out_channels / args->groups,
            group = o / per_out;
    const int64_t *xs = args->x_stride;
    double sum = args->bias ? (double)args->bias[o] : 0;
    int64_t tap[3], in[3];
    for (tap[0] = 0; tap[0] < args->kernel[0]; tap[0]++)
        for (tap[1] = 0; tap[1] < args->kernel[1]; tap[1]++)
            for (tap[2] = 0; tap[2] < args->kernel[2]; tap[2]++) {
                bool inside = true;
                const float *x = args->x + b * xs[0] + group * per_in * xs[1];
                const float *w = weight->weight + group * weight->group_stride +
                                 o % per_out * weight->out_stride;
                for (int i = 0; i < 3; i++) {
                    if (args->transposed) {
                        int64_t distance = at[i] + args->padding[i] - tap[i] * args->dilation[i];
                        inside &= distance % args->stride[i] == 0;
                        in[i] = distance / args->stride[i];
                    } else {
                        in[i] =
                            at[i] * args->stride[i] - args->padding[i] + tap[i] * args->dilation[i];
                    }
                    inside &= in[i] >= 0 && in[i] < args->in_size[i];
                    x += in[i] * xs[2 + i];
                    w += tap[i] * weight->kernel_stride[i];
                }
                if (!inside) continue;
                for (int64_t c = 0; c < per_in; c++)
                    sum += (double)x[c * xs[1]] * (double)w[c * weight->in_stride];
            }
    return sum;
}

void tor_conv_run_ref(const TorConvArgs *args, const TorConvPackArgs *weight) {
    const int64_t *ys = args->y_stride;
    int64_t at[3], row = 0;
    // The epilogue's scratch is booked for bind's block of columns: at least 1.
    uint8_t scratch[1 << 16] __attribute__((aligned(64)));
    for (int64_t b = 0; b < args->batch; b++)
        for (at[0] = 0; at[0] < args->out_size[0]; at[0]++)
            for (at[1] = 0; at[1] < args->out_size[1]; at[1]++)
                for (at[2] = 0; at[2] < args->out_size[2]; at[2]++, row++)
                    for (int64_t o = 0; o < args->out_channels; o++) {
                        float sum = (float)one(args, weight, b, o, at);
                        if (args->epilogue)
                            tor_epilogue_run(args->epilogue, 0, row, 1, o, 1, &sum, 1, scratch);
                        else
                            args->y[b * ys[0] + o * ys[1] + at[0] * ys[2] + at[1] * ys[3] +
                                    at[2] * ys[4]] = sum;
                    }
}

/// The oracle of the conv family: scatter and gather forms written from their definitions, in
/// long double.
#include "kernels/conv/contract.h"

/// A sum of products in one type.
typedef struct {
    TorDtype dtype;
    long double real;
    uint64_t whole;
} Sum;

static TorScalar load(TorDtype dtype, const void *base, int64_t at) {
    return tor_scalar_load((const char *)base + at * (int64_t)tor_dtype_size(dtype), dtype);
}

static void add_product(Sum *sum, const void *x, int64_t x_at, const void *w, int64_t w_at) {
    if (sum->dtype == TOR_float32) {
        sum->real += (double)((const float *)x)[x_at] * ((const float *)w)[w_at];
        return;
    }
    TorScalar a = load(sum->dtype, x, x_at), b = load(sum->dtype, w, w_at);
    if (tor_dtype_is_float(sum->dtype))
        sum->real += (long double)a.f * b.f;
    else
        sum->whole += (uint64_t)a.i * (uint64_t)b.i;
}

/// Sum of one output element; `o` is its channel, `at` its position.
static TorScalar one(const TorConvArgs *args, const TorConvPackArgs *weight, TorDtype dtype,
                     int64_t b, int64_t o, const int64_t *at) {
    int64_t per_in = args->in_channels / args->groups, per_out = args->out_channels / args->groups,
            group = o / per_out;
    const int64_t *xs = args->x_stride;
    TorScalar bias = args->bias ? load(dtype, args->bias, o) : (TorScalar){.dtype = dtype};
    bool floats = tor_dtype_is_float(dtype);
    Sum sum = {.dtype = dtype, .real = floats ? bias.f : 0, .whole = floats ? 0 : (uint64_t)bias.i};
    int64_t tap[3], in[3];
    for (tap[0] = 0; tap[0] < args->kernel[0]; tap[0]++)
        for (tap[1] = 0; tap[1] < args->kernel[1]; tap[1]++)
            for (tap[2] = 0; tap[2] < args->kernel[2]; tap[2]++) {
                bool inside = true;
                int64_t x = b * xs[0] + group * per_in * xs[1],
                        w = group * weight->group_stride + o % per_out * weight->out_stride;
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
                    add_product(&sum, args->x, x + c * xs[1], weight->weight,
                                w + c * weight->in_stride);
            }
    return tor_scalar_cast(floats ? (TorScalar){.dtype = TOR_float64, .f = (double)sum.real}
                                  : (TorScalar){.dtype = TOR_int64, .i = (int64_t)sum.whole},
                           dtype);
}

void tor_conv_run_ref(const TorConvArgs *args, const TorConvPackArgs *weight, TorDtype dtype) {
    const int64_t *ys = args->y_stride;
    int64_t at[3], row = 0;
    // The epilogue's scratch is booked for bind's block of columns: at least 1.
    uint8_t scratch[1 << 16] __attribute__((aligned(64)));
    for (int64_t b = 0; b < args->batch; b++)
        for (at[0] = 0; at[0] < args->out_size[0]; at[0]++)
            for (at[1] = 0; at[1] < args->out_size[1]; at[1]++)
                for (at[2] = 0; at[2] < args->out_size[2]; at[2]++, row++)
                    for (int64_t o = 0; o < args->out_channels; o++) {
                        TorScalar sum = one(args, weight, dtype, b, o, at);
                        float single = (float)sum.f;
                        int64_t y =
                            b * ys[0] + o * ys[1] + at[0] * ys[2] + at[1] * ys[3] + at[2] * ys[4];
                        if (args->epilogue)
                            tor_epilogue_run(args->epilogue, 0, row, 1, o, 1, &single, 1, scratch);
                        else
                            tor_scalar_store((char *)args->y + y * (int64_t)tor_dtype_size(dtype),
                                             sum);
                    }
}

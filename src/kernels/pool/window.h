/// Windows along an axis, by ATen's rules, and an item's place.
#ifndef TOR_KERNELS_POOL_WINDOW_H
#define TOR_KERNELS_POOL_WINDOW_H

#include "kernels/pool/contract.h"

typedef struct {
    int64_t begin, end, step;  ///< positions begin, begin + step, ... < end, all inside the input
    int64_t padded;  ///< positions before clipping to the input, after clipping to the padded one
} TorPoolWindow;

static inline TorPoolWindow tor_pool_window(const TorPoolArgs *args, int i, int64_t o) {
    int64_t in = args->in_size[i], out = args->out_size[i];
    if (tor_pool_is_adaptive(args->kind)) {
        // o * in overflows only where the tensor could not exist.
        int64_t begin = o * in / out, end = ((o + 1) * in + out - 1) / out;
        return (TorPoolWindow){begin, end, 1, end - begin};
    }
    int64_t start = o * args->stride[i] - args->padding[i];
    if (args->kind == TOR_POOL_max) {
        int64_t step = args->dilation[i],
                end = TOR_MIN(start + (args->kernel[i] - 1) * step + 1, in);
        if (start < 0) start += tor_ceil_div(-start, step) * step;
        return (TorPoolWindow){start, end, step, 0};
    }
    int64_t end = TOR_MIN(start + args->kernel[i], in + args->padding[i]), padded = end - start;
    return (TorPoolWindow){TOR_MAX(start, 0), TOR_MIN(end, in), 1, padded};
}

/// What the sum over a window is divided by.
static inline int64_t tor_pool_divisor(const TorPoolArgs *args, const TorPoolWindow *w) {
    if (args->kind == TOR_POOL_avg && args->divisor) return args->divisor;
    int64_t count = 1;
    for (int i = 0; i < 3; i++)
        count *= args->kind == TOR_POOL_avg && args->count_include_pad ? w[i].padded
                                                                       : w[i].end - w[i].begin;
    return count;
}

static inline bool tor_pool_empty(const TorPoolWindow *w) {
    return w[0].begin >= w[0].end || w[1].begin >= w[1].end || w[2].begin >= w[2].end;
}

/// An item: a line of outputs and a block of channels.
typedef struct {
    int64_t batch, d, h, channel, channels;
} TorPoolItem;

static inline TorPoolItem tor_pool_item(const TorPoolArgs *args, int64_t item) {
    TorPoolItem at;
    at.channel = item % args->channel_blocks * args->channel_block;
    at.channels = TOR_MIN(args->channel_block, args->channels - at.channel);
    item /= args->channel_blocks;
    at.h = item % args->out_size[1];
    item /= args->out_size[1];
    at.d = item % args->out_size[0];
    at.batch = item / args->out_size[0];
    return at;
}

/// Floats of the line that a planes row keeps: all that the windows of a line of outputs reach.
static inline int64_t tor_pool_reach(const TorPoolArgs *args) {
    int64_t step = args->kind == TOR_POOL_max ? args->dilation[2] : 1;
    return (args->out_size[2] - 1) * args->stride[2] + (args->kernel[2] - 1) * step + 1;
}

/// Items of that line a phase has: every `stride`-th.
static inline int64_t tor_pool_phase(const TorPoolArgs *args) {
    return tor_ceil_div(tor_pool_reach(args), args->stride[2]);
}

/// The line, its phases, and a count a column of outputs.
static inline size_t tor_pool_planes_scratch(const TorPoolArgs *args) {
    int64_t reach = TOR_MAX(tor_pool_reach(args), 0), stride = args->stride[2];
    return (size_t)tor_round_up((2 * reach + 2 * stride + TOR_MAX(args->out_size[2], 0)) * 4 + 64,
                                64);
}

#endif

/// What an item of the resize family is, and the taps of w that a run makes once.
#ifndef TOR_KERNELS_RESIZE_LINE_H
#define TOR_KERNELS_RESIZE_LINE_H

#include "kernels/resize/contract.h"

/// A line of outputs: one channel, or all of them where they lie side by side.
typedef struct {
    int64_t batch, channel, d, h;
} TorResizeLine;

static inline TorResizeLine tor_resize_line(const TorResizeArgs *args, int64_t item) {
    TorResizeLine at = {0};
    at.h = item % args->out_size[1];
    item /= args->out_size[1];
    at.d = item % args->out_size[0];
    item /= args->out_size[0];
    if (!args->channels_inside) {
        at.channel = item % args->channels;
        item /= args->channels;
    }
    at.batch = item;
    return at;
}

/// Offset of a line of y.
static inline int64_t tor_resize_to(const TorResizeArgs *args, TorResizeLine at) {
    const int64_t *s = args->y_stride;
    return at.batch * s[0] + at.channel * s[1] + at.d * s[2] + at.h * s[3];
}

/// Bytes of `count` items of `size`, rounded so that the next table is aligned.
static inline size_t tor_resize_table(int64_t count, size_t size) {
    return (size_t)tor_round_up(count * (int64_t)size, 64);
}

#endif

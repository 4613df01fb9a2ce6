/// Where an output position reads, by ATen's UpSample.h: float32 arithmetic, in its order, since a
/// rounding more or less moves a nearest neighbour.
#include <math.h>

#include "kernels/resize/contract.h"

int tor_resize_taps_count(const TorResizeArgs *args, int i) {
    if (args->mode == TOR_RESIZE_linear) return args->in_size[i] == args->out_size[i] ? 1 : 2;
    // Only h and w are resized by cubic; d has size 1.
    return args->mode == TOR_RESIZE_cubic && i > 0 ? 4 : 1;
}

static double rounded(const TorResizeArgs *args, double x) {
    return args->dtype == TOR_float64 ? x : (double)(float)x;
}

/// Input positions an output position.
static double step_of(const TorResizeArgs *args, int i) {
    int64_t in = args->in_size[i], out = args->out_size[i];
    bool nearest = args->mode <= TOR_RESIZE_nearest_exact;
    if (args->align_corners && !nearest)
        return out > 1 ? rounded(args, rounded(args, (double)(in - 1)) / (double)(out - 1)) : 0;
    return rounded(args, args->scale[i] > 0 ? 1 / args->scale[i] : (double)in / (double)out);
}

static double source(const TorResizeArgs *args, double step, int64_t o, bool clamp) {
    if (args->align_corners) return rounded(args, step * (double)o);
    double at = rounded(args, rounded(args, step * ((double)o + 0.5)) - 0.5);
    return clamp && at < 0 ? 0 : at;
}

static double cubic_near(double x) { return ((-0.75 + 2) * x - (-0.75 + 3)) * x * x + 1; }
static double cubic_far(double x) { return ((-0.75 * x + 5 * 0.75) * x - 8 * 0.75) * x + 4 * 0.75; }

static int64_t inside(int64_t at, int64_t in) { return TOR_MAX(TOR_MIN(at, in - 1), 0); }

TorResizeTaps tor_resize_taps(const TorResizeArgs *args, int i, int64_t o) {
    TorResizeTaps taps = {{0}, {1}};
    int64_t in = args->in_size[i];
    double step = step_of(args, i);
    if (args->mode <= TOR_RESIZE_nearest_exact) {
        double shift = args->mode == TOR_RESIZE_nearest_exact ? 0.5 : 0;
        taps.at[0] = inside((int64_t)floor(rounded(args, ((double)o + shift) * step)), in);
        return taps;
    }
    if (tor_resize_taps_count(args, i) == 1) {
        taps.at[0] = o;
        return taps;
    }
    bool linear = args->mode == TOR_RESIZE_linear;
    double at = source(args, step, o, linear);
    int64_t first = TOR_MIN((int64_t)floor(at), in - 1);
    double t = TOR_MIN(TOR_MAX(at - (double)first, 0), 1);
    if (linear) {
        taps.at[0] = first, taps.at[1] = first + (first < in - 1);
        taps.weight[0] = 1 - t, taps.weight[1] = t;
        return taps;
    }
    double weight[] = {cubic_far(t + 1), cubic_near(t), cubic_near(1 - t), cubic_far(2 - t)};
    for (int k = 0; k < 4; k++) {
        taps.at[k] = inside(first - 1 + k, in);
        taps.weight[k] = weight[k];
    }
    return taps;
}

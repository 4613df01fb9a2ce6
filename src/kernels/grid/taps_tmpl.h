// Template: from places to taps, with WIDE (float or double) and NAME defined. Serves the kernels
// and, in double, the oracle.

#define GRID_FN_(name, type) name##_##type
#define GRID_FN__(name, type) GRID_FN_(name, type)
#define GRID_FN(name) GRID_FN__(name, NAME)

/// A place along an axis, reflected into [low / 2, high / 2].
static inline WIDE GRID_FN(reflected)(WIDE at, int64_t low, int64_t high) {
    if (low == high) return 0;
    WIDE least = (WIDE)low / 2, span = (WIDE)(high - low) / 2;
    at = (WIDE)fabs((double)(at - least));
    WIDE extra = (WIDE)fmod((double)at, (double)span);
    double flips = floor((double)(at / span));
    return fmod(flips, 2) == 0 ? extra + least : span - extra + least;
}

static inline WIDE GRID_FN(padded)(const TorGridArgs *args, WIDE at, int64_t size) {
    if (args->padding == TOR_GRID_zeros) return at;
    if (args->padding == TOR_GRID_reflection)
        at = args->align_corners ? GRID_FN(reflected)(at, 0, 2 * (size - 1))
                                 : GRID_FN(reflected)(at, -1, 2 * size - 1);
    WIDE most = (WIDE)(size - 1);
    at = at < most ? at : most;  // NaN becomes the border
    return at > 0 ? at : 0;
}

static inline WIDE GRID_FN(place)(const TorGridArgs *args, WIDE coordinate, int64_t size) {
    return args->align_corners ? ((coordinate + 1) / 2) * (WIDE)(size - 1)
                               : ((coordinate + 1) * (WIDE)size - 1) / 2;
}

/// Up to four positions along an axis, -1 where there is none, with their weights.
typedef struct {
    int64_t at[4];
    WIDE weight[4];
} GRID_FN(Axis);

static inline int64_t GRID_FN(position)(WIDE at, int64_t size) {
    return at >= 0 && at < (WIDE)size ? (int64_t)at : -1;
}

static inline WIDE GRID_FN(near)(WIDE x) { return ((WIDE)1.25 * x - (WIDE)2.25) * x * x + 1; }
static inline WIDE GRID_FN(far)(WIDE x) { return (((WIDE)-0.75 * x + (WIDE)3.75) * x - 6) * x + 3; }

static inline GRID_FN(Axis) GRID_FN(axis)(const TorGridArgs *args, WIDE coordinate, int64_t size) {
    GRID_FN(Axis) r;
    WIDE at = GRID_FN(place)(args, coordinate, size);
    if (args->mode == TOR_GRID_cubic) {
        WIDE first = (WIDE)floor((double)at), t = at - first;
        r.weight[0] = GRID_FN(far)(t + 1), r.weight[1] = GRID_FN(near)(t);
        r.weight[2] = GRID_FN(near)(1 - t), r.weight[3] = GRID_FN(far)(2 - t);
        for (int k = 0; k < 4; k++)
            r.at[k] = GRID_FN(position)(GRID_FN(padded)(args, first + (WIDE)(k - 1), size), size);
        return r;
    }
    at = GRID_FN(padded)(args, at, size);
    if (args->mode == TOR_GRID_nearest) {
        r.at[0] = GRID_FN(position)((WIDE)nearbyint((double)at), size);
        r.weight[0] = 1;
        return r;
    }
    WIDE first = (WIDE)floor((double)at);
    r.at[0] = GRID_FN(position)(first, size);
    r.at[1] = GRID_FN(position)(first + 1, size);
    r.weight[0] = first + 1 - at;
    r.weight[1] = at - first;
    return r;
}

/// The taps of one output from its coordinates c: offsets into x, -1 outside, and weights. Their
/// number is constant for a mode and dims.
static inline int GRID_FN(taps)(const TorGridArgs *args, const WIDE *c, int64_t *offset,
                                WIDE *weight) {
    const int64_t *in = args->in_size, *xs = args->x_stride;
    int each = args->mode == TOR_GRID_nearest ? 1 : args->mode == TOR_GRID_linear ? 2 : 4;
    int deep = args->dims == 3 ? each : 1, n = 0;
    GRID_FN(Axis)
    w = GRID_FN(axis)(args, c[0], in[2]), h = GRID_FN(axis)(args, c[1], in[1]), d = {{0}, {1}};
    if (args->dims == 3) d = GRID_FN(axis)(args, c[2], in[0]);
    for (int i = 0; i < deep; i++)
        for (int j = 0; j < each; j++)
            for (int k = 0; k < each; k++, n++) {
                bool in_x = d.at[i] >= 0 && h.at[j] >= 0 && w.at[k] >= 0;
                offset[n] = in_x ? d.at[i] * xs[2] + h.at[j] * xs[3] + w.at[k] * xs[4] : -1;
                weight[n] = d.weight[i] * h.weight[j] * w.weight[k];
            }
    return n;
}

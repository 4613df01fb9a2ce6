// Template of base/each_float.h.

#define RUN TOR_KERNEL(SYMBOL)

/// Tables of one run, in scratch.
typedef struct {
    int taps;
    int32_t *at;   // [out_w][taps], times x's stride where channels lie inside
    WIDE *weight;  // [out_w][taps]
    WIDE *line;    // a line of x after d and h, or the channels of a pixel
} FN(Tables);

static FN(Tables) FN(tables)(const TorResizeArgs *args, uint8_t *scratch) {
    FN(Tables) t = {.taps = tor_resize_taps_count(args, 2)};
    int64_t out = args->out_size[2];
    t.at = (int32_t *)scratch;
    scratch += tor_resize_table(out * TOR_RESIZE_TAPS, 4);
    t.weight = (WIDE *)scratch;
    scratch += tor_resize_table(out * TOR_RESIZE_TAPS, sizeof(WIDE));
    t.line = (WIDE *)scratch;
    for (int64_t w = 0; w < out; w++) {
        TorResizeTaps taps = tor_resize_taps(args, 2, w);
        for (int k = 0; k < t.taps; k++) {
            t.at[w * t.taps + k] = (int32_t)taps.at[k];
            t.weight[w * t.taps + k] = (WIDE)taps.weight[k];
        }
    }
    return t;
}

/// to[i] (+)= weight * x[i * stride]
static inline void FN(accumulate)(WIDE *restrict to, const T *restrict x, int64_t stride,
                                  int64_t count, WIDE weight, bool first) {
    if (first && stride == 1)
        for (int64_t i = 0; i < count; i++) to[i] = weight * LOAD(x[i]);
    else if (first)
        for (int64_t i = 0; i < count; i++) to[i] = weight * LOAD(x[i * stride]);
    else if (stride == 1)
        for (int64_t i = 0; i < count; i++) to[i] += weight * LOAD(x[i]);
    else
        for (int64_t i = 0; i < count; i++) to[i] += weight * LOAD(x[i * stride]);
}

static inline void FN(across)(const FN(Tables) * t, T *restrict y, int64_t stride, int64_t out,
                              const int taps) {
    const int32_t *restrict at = t->at;
    const WIDE *restrict weight = t->weight, *restrict line = t->line;
    for (int64_t w = 0; w < out; w++) {
        WIDE sum = 0;
        for (int k = 0; k < taps; k++) sum += weight[w * taps + k] * line[at[w * taps + k]];
        y[w * stride] = STORE(sum);
    }
}

/// One channel: h and d first, over the whole line of x, then w.
static void FN(one_channel)(const TorResizeArgs *args, const FN(Tables) * t, const TorResizeTaps *d,
                            const TorResizeTaps *h, const T *x, T *y) {
    const int64_t *xs = args->x_stride;
    bool first = true;
    for (int i = 0; i < tor_resize_taps_count(args, 0); i++)
        for (int j = 0; j < tor_resize_taps_count(args, 1); j++, first = false) FN(accumulate)
    (t->line, x + d->at[i] * xs[2] + h->at[j] * xs[3], xs[4], args->in_size[2],
     (WIDE)d->weight[i] * (WIDE)h->weight[j], first);
    int64_t out = args->out_size[2], stride = args->y_stride[4];
    if (t->taps == 1)
        FN(across)(t, y, stride, out, 1);
    else if (t->taps == 2)
        FN(across)(t, y, stride, out, 2);
    else
        FN(across)(t, y, stride, out, 4);
}

/// y[c] = the sum over taps of weight * x[c]; `taps` is a constant of each copy.
static inline void FN(blend)(T *restrict y, const T *const *from, const WIDE *weight,
                             int64_t channels, const int taps) {
    for (int64_t c = 0; c < channels; c++) {
        WIDE sum = 0;
        for (int k = 0; k < taps; k++) sum += weight[k] * LOAD(from[k][c]);
        y[c] = STORE(sum);
    }
}

/// Pixel by pixel, all channels of a pixel at once.
static void FN(all_channels)(const TorResizeArgs *args, const FN(Tables) * t,
                             const TorResizeTaps *d, const TorResizeTaps *h, const T *x, T *y) {
    const int64_t *xs = args->x_stride;
    int n_d = tor_resize_taps_count(args, 0), n_h = tor_resize_taps_count(args, 1);
    for (int64_t w = 0; w < args->out_size[2]; w++) {
        const T *from[16];
        WIDE weight[16];
        int n = 0;
        for (int i = 0; i < n_d; i++)
            for (int j = 0; j < n_h; j++)
                for (int k = 0; k < t->taps; k++, n++) {
                    from[n] =
                        x + d->at[i] * xs[2] + h->at[j] * xs[3] + t->at[w * t->taps + k] * xs[4];
                    weight[n] =
                        (WIDE)d->weight[i] * (WIDE)h->weight[j] * t->weight[w * t->taps + k];
                }
        T *to = y + w * args->y_stride[4];
        if (n == 4)
            FN(blend)(to, from, weight, args->channels, 4);
        else if (n == 2)
            FN(blend)(to, from, weight, args->channels, 2);
        else if (n == 16)
            FN(blend)(to, from, weight, args->channels, 16);
        else
            FN(blend)(to, from, weight, args->channels, n);
    }
}

void RUN(const void *arg, int64_t begin, int64_t end, void *scratch);
void RUN(const void *arg, int64_t begin, int64_t end, void *scratch) {
    const TorResizeArgs *args = arg;
    FN(Tables) t = FN(tables)(args, scratch);
    for (int64_t item = begin; item < end; item++) {
        TorResizeLine l = tor_resize_line(args, item);
        TorResizeTaps d = tor_resize_taps(args, 0, l.d), h = tor_resize_taps(args, 1, l.h);
        const T *x =
            (const T *)args->x + l.batch * args->x_stride[0] + l.channel * args->x_stride[1];
        T *y = (T *)args->y + tor_resize_to(args, l);
        (args->channels_inside ? FN(all_channels) : FN(one_channel))(args, &t, &d, &h, x, y);
    }
}

#undef RUN

// Template, included once for each dtype with T (in memory), ACC (computed in), LOAD, STORE,
// IS_NAN, NAN_VALUE, LOWEST and NAME defined.

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

/// One window whose corner (0, 0, 0) of the plane is x.
static inline void PASTE(NAME, _window)(const TorPoolArgs *args, const TorPoolWindow *win,
                                        const T *x, T *y, int64_t *index) {
    const int64_t *stride = args->x_stride, *in = args->in_size;
    if (tor_pool_is_max(args->kind) && !index) {
        // No branch on data: `most` is one max instruction, and NaN joins at the end.
        ACC most = LOWEST;
        bool any_nan = false;
        for (int64_t d = win[0].begin; d < win[0].end; d += win[0].step)
            for (int64_t h = win[1].begin; h < win[1].end; h += win[1].step)
                for (int64_t w = win[2].begin; w < win[2].end; w += win[2].step) {
                    ACC value = LOAD(x[d * stride[2] + h * stride[3] + w * stride[4]]);
                    most = value > most ? value : most;
                    any_nan |= IS_NAN(value);
                }
        *y = STORE(any_nan ? (ACC)NAN_VALUE : most);
        return;
    }
    if (tor_pool_is_max(args->kind)) {
        ACC most = LOWEST;
        int64_t at = (win[0].begin * in[1] + win[1].begin) * in[2] + win[2].begin;
        for (int64_t d = win[0].begin; d < win[0].end; d += win[0].step)
            for (int64_t h = win[1].begin; h < win[1].end; h += win[1].step)
                for (int64_t w = win[2].begin; w < win[2].end; w += win[2].step) {
                    ACC value = LOAD(x[d * stride[2] + h * stride[3] + w * stride[4]]);
                    if (value > most || IS_NAN(value)) {
                        most = value;
                        at = (d * in[1] + h) * in[2] + w;
                    }
                }
        if (y) *y = STORE(most);
        *index = at;
        return;
    }
    // Lines are summed for themselves, so that large planes lose less.
    ACC sum = 0;
    for (int64_t d = win[0].begin; d < win[0].end; d++)
        for (int64_t h = win[1].begin; h < win[1].end; h++) {
            ACC line = 0;
            for (int64_t w = win[2].begin; w < win[2].end; w++)
                line += LOAD(x[d * stride[2] + h * stride[3] + w * stride[4]]);
            sum += line;
        }
    *y = STORE(tor_pool_empty(win) ? 0 : (ACC)(sum / (ACC)tor_pool_divisor(args, win)));
}

static void NAME(const TorPoolArgs *args, int64_t begin, int64_t end) {
    const int64_t *xs = args->x_stride, *ys = args->y_stride, *is = args->index_stride;
    for (int64_t item = begin; item < end; item++) {
        TorPoolItem at = tor_pool_item(args, item);
        TorPoolWindow win[3] = {tor_pool_window(args, 0, at.d), tor_pool_window(args, 1, at.h)};
        const T *x = (const T *)args->x + at.batch * xs[0] + at.channel * xs[1];
        T *y = args->y ? (T *)args->y + at.batch * ys[0] + at.channel * ys[1] + at.d * ys[2] +
                             at.h * ys[3]
                       : NULL;
        int64_t *index = args->index ? args->index + at.batch * is[0] + at.channel * is[1] +
                                           at.d * is[2] + at.h * is[3]
                                     : NULL;
        // The smaller stride of x runs inside.
        bool channels_inside = xs[1] < xs[4];
        int64_t outer = channels_inside ? args->out_size[2] : at.channels,
                inner = channels_inside ? at.channels : args->out_size[2];
        for (int64_t i = 0; i < outer; i++)
            for (int64_t j = 0; j < inner; j++) {
                int64_t c = channels_inside ? j : i, w = channels_inside ? i : j;
                win[2] = tor_pool_window(args, 2, w);
                PASTE(NAME, _window)
                (args, win, x + c * xs[1], y ? y + c * ys[1] + w * ys[4] : NULL,
                 index ? index + c * is[1] + w * is[4] : NULL);
            }
    }
}

#undef PASTE_
#undef PASTE
#undef T
#undef ACC
#undef LOAD
#undef STORE
#undef IS_NAN
#undef NAN_VALUE
#undef LOWEST
#undef NAME

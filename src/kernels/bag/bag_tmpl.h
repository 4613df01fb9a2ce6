// Template of base/each_float.h.

static inline void FN(add)(WIDE *restrict sum, const T *restrict row, int64_t col, int64_t width,
                           WIDE factor) {
    if (col == 1)
        for (int64_t j = 0; j < width; j++) sum[j] += factor * LOAD(row[j]);
    else
        for (int64_t j = 0; j < width; j++) sum[j] += factor * LOAD(row[j * col]);
}

static inline void FN(most)(WIDE *restrict most, const T *restrict row, int64_t col, int64_t width,
                            bool first) {
    for (int64_t j = 0; j < width; j++) {
        WIDE value = LOAD(row[j * col]);
        most[j] = first || value > most[j] || value != value ? value : most[j];
    }
}

/// Asks for the row of an index that comes soon: rows lie anywhere.
static inline void FN(prefetch)(const TorBagArgs *args, int64_t i) {
    if (i >= args->count || args->w_col != 1) return;
    int64_t at = tor_bag_integer(args, args->index, i * args->index_stride);
    if (at < 0 || at >= args->rows) return;
    const T *row = (const T *)args->w + at * args->w_row;
    for (int64_t j = 0; j < TOR_MIN(args->width, 512); j += 64 / (int64_t)sizeof(T))
        __builtin_prefetch(row + j);
}

static void FN(one)(const TorBagArgs *args, int64_t bag, WIDE *restrict sum) {
    int64_t first, end, width = args->width, used = 0;
    tor_bag_range(args, bag, &first, &end);
    for (int64_t j = 0; j < width; j++) sum[j] = 0;
    for (int64_t i = first; i < end; i++) {
        int64_t at = tor_bag_integer(args, args->index, i * args->index_stride);
        if (at < 0 || at >= args->rows) {
            __atomic_store_n(args->error, 1, __ATOMIC_RELAXED);
            continue;
        }
        FN(prefetch)(args, i + 8);
        if (at == args->padding_idx) continue;
        const T *row = (const T *)args->w + at * args->w_row;
        WIDE factor = 1;
        if (args->factor) factor = LOAD(((const T *)args->factor)[i * args->factor_stride]);
        if (args->mode == TOR_BAG_max)
            FN(most)(sum, row, args->w_col, width, used == 0);
        else
            FN(add)(sum, row, args->w_col, width, factor);
        used++;
    }
    T *y = (T *)args->y + bag * args->y_row;
    WIDE divisor = args->mode == TOR_BAG_mean && used ? (WIDE)used : 1;
    for (int64_t j = 0; j < width; j++) y[j] = STORE(sum[j] / divisor);
}

void TOR_KERNEL(SYMBOL)(const void *arg, int64_t begin, int64_t end, void *scratch);
void TOR_KERNEL(SYMBOL)(const void *arg, int64_t begin, int64_t end, void *scratch) {
    for (int64_t bag = begin; bag < end; bag++) FN(one)(arg, bag, scratch);
}

// Tile reductions of one float type in vectors. Wants S, T, V (vector of T), VI (its mask type), LANES;
// undefines them.
#define NAME(name) TOR_PASTE(TOR_PASTE(name, _), S)
TOR_INLINE V NAME(at)(const T *p) {
    V v;
    memcpy(&v, p, sizeof v);
    return v;
}
/// Lanes [0, n) from memory, `fill` above.
TOR_INLINE V NAME(rest)(const T *p, int64_t n, T fill) {
    T lane[LANES];
    for (int i = 0; i < LANES; i++) lane[i] = fill;
    memcpy(lane, p, (size_t)n * sizeof(T));
    return NAME(at)(lane);
}
TOR_INLINE V NAME(pick)(VI mask, V a, V b) { return (V)((mask & (VI)a) | (~mask & (VI)b)); }
TOR_INLINE V NAME(plus)(V a, V b) { return a + b; }
TOR_INLINE V NAME(times)(V a, V b) { return a * b; }
// NaN wins, and the first one stays.
TOR_INLINE V NAME(more)(V a, V x) { return NAME(pick)((VI)(x > a) | (VI)(x != x), x, a); }
TOR_INLINE V NAME(less)(V a, V x) { return NAME(pick)((VI)(x < a) | (VI)(x != x), x, a); }

// Four accumulators, then their lanes, pairwise.
#define REDUCE(name, OP, fill, f)                                                              \
    TOR_INLINE T NAME(name##_of)(const T *x, int64_t n) {                                      \
        const T nothing = fill;                                                                \
        V a = (V){0} + nothing, b = a, c = a, d = a;                                           \
        int64_t i = 0;                                                                         \
        for (; i + 4 * LANES <= n; i += 4 * LANES) {                                           \
            a = OP(a, f(NAME(at)(x + i)));                                                     \
            b = OP(b, f(NAME(at)(x + i + LANES)));                                             \
            c = OP(c, f(NAME(at)(x + i + 2 * LANES)));                                         \
            d = OP(d, f(NAME(at)(x + i + 3 * LANES)));                                         \
        }                                                                                      \
        for (; i + LANES <= n; i += LANES) a = OP(a, f(NAME(at)(x + i)));                      \
        if (i < n) b = OP(b, NAME(pick)((VI)(NAME(first) < (VI){0} + (NAME(int))(n - i)),      \
                                        f(NAME(rest)(x + i, n - i, 0)), (V){0} + nothing));    \
        a = OP(OP(a, b), OP(c, d));                                                            \
        T lane[2 * LANES] = {0};                                                               \
        memcpy(lane, &a, sizeof a);                                                            \
        for (int w = LANES / 2; w; w /= 2) {                                                   \
            V low = NAME(at)(lane), high = NAME(at)(lane + w);                                 \
            low = OP(low, high);                                                               \
            memcpy(lane, &low, sizeof low);                                                    \
        }                                                                                      \
        return lane[0];                                                                        \
    }
#define PLAIN(v) (v)
REDUCE(sum, NAME(plus), 0, PLAIN)
REDUCE(prod, NAME(times), 1, PLAIN)
REDUCE(max, NAME(more), x[0], PLAIN)
REDUCE(min, NAME(less), x[0], PLAIN)

static void NAME(sum)(TorPartial *out, const void *x, int64_t n) { out->f = NAME(sum_of)(x, n); }
static void NAME(prod)(TorPartial *out, const void *x, int64_t n) { out->f = NAME(prod_of)(x, n); }
static void NAME(max)(TorPartial *out, const void *x, int64_t n) { out->f = NAME(max_of)(x, n); }
static void NAME(min)(TorPartial *out, const void *x, int64_t n) { out->f = NAME(min_of)(x, n); }

static int64_t NAME(find)(const T *x, T value) {
    int64_t i = 0;
    if (value != value) {
        while (x[i] == x[i]) i++;
    } else {
        while (x[i] != value) i++;
    }
    return i;
}
static void NAME(argmax)(TorPartial *out, const void *x, int64_t n) {
    T value = NAME(max_of)(x, n);
    out->f = value;
    out->at = NAME(find)(x, value);
}
static void NAME(argmin)(TorPartial *out, const void *x, int64_t n) {
    T value = NAME(min_of)(x, n);
    out->f = value;
    out->at = NAME(find)(x, value);
}
static void NAME(any)(TorPartial *out, const void *x_, int64_t n) {
    const T *x = x_;
    int any = 0;
    for (int64_t i = 0; i < n; i++) any |= x[i] != 0;
    out->i = any;
}
static void NAME(all)(TorPartial *out, const void *x_, int64_t n) {
    const T *x = x_;
    int zeros = 0;
    for (int64_t i = 0; i < n; i++) zeros |= x[i] == 0;
    out->i = !zeros;
}
// Two passes over the tile, which is in the first-level cache.
static void NAME(moments)(TorPartial *out, const void *x_, int64_t n) {
    const T *x = x_;
    const T mean = NAME(sum_of)(x, n) / (T)n;
    V a = {0}, b = {0}, m = (V){0} + mean;
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        V u = NAME(at)(x + i) - m, v = NAME(at)(x + i + LANES) - m;
        a += u * u;
        b += v * v;
    }
    for (; i < n; i += LANES) {
        V u = (n - i < LANES ? NAME(rest)(x + i, n - i, mean) : NAME(at)(x + i)) - m;
        a += u * u;
    }
    a += b;
    T lane[LANES];
    memcpy(lane, &a, sizeof a);
    for (int w = LANES / 2; w; w /= 2)
        for (int j = 0; j < w; j++) lane[j] += lane[j + w];
    out->f = mean;
    out->f2 = lane[0];
}

static void NAME(column_argmax)(void *state, const void *x_, int64_t row, int64_t n) {
    const T *x = x_;
    TorColumnBest *best = state;
    for (int64_t i = 0; i < n; i++) {
        if (row == 0 || x[i] > best[i].f || (x[i] != x[i] && best[i].f == best[i].f)) best[i].f = x[i], best[i].at = row;
    }
}
static void NAME(column_argmin)(void *state, const void *x_, int64_t row, int64_t n) {
    const T *x = x_;
    TorColumnBest *best = state;
    for (int64_t i = 0; i < n; i++) {
        if (row == 0 || x[i] < best[i].f || (x[i] != x[i] && best[i].f == best[i].f)) best[i].f = x[i], best[i].at = row;
    }
}
// A block's sums, added to the total and cleared.
static void NAME(column_sum)(void *state, const void *x_, int64_t row, int64_t n) {
    (void)x_, (void)row;
    T *block = state;
    double *total = (double *)state + n;
    for (int64_t i = 0; i < n; i++) {
        total[i] += (double)block[i];
        block[i] = 0;
    }
}
// Sums of x - first and its square in float64: exact enough that their cancellation does no harm.
static void NAME(column_moments)(void *state, const void *x_, int64_t row, int64_t n) {
    const T *x = x_;
    double *first = state, *sum = first + n, *square = first + 2 * n;
    if (row == 0) {
        for (int64_t i = 0; i < n; i++) first[i] = x[i] - x[i] == 0 ? (double)x[i] : 0;  // infinities stay in the sums
    }
    for (int64_t i = 0; i < n; i++) {
        double d = (double)x[i] - first[i];
        sum[i] += d;
        square[i] += d * d;
    }
}
#undef REDUCE
#undef PLAIN
#undef NAME
#undef S
#undef T
#undef V
#undef VI
#undef LANES

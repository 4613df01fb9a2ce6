// Tile reductions of one float type in vectors. Wants S, T, V (vector of T), VI (its mask type),
// LANES; undefines them.
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
#define REDUCE(name, OP, ONE, fill)                                                \
    TOR_INLINE T NAME(name##_of)(const T *x, int64_t n) {                          \
        const T nothing = fill;                                                    \
        V a = (V){0} + nothing, b = a, c = a, d = a;                               \
        int64_t i = 0;                                                             \
        for (; i + 4 * LANES <= n; i += 4 * LANES) {                               \
            a = OP(a, NAME(at)(x + i));                                            \
            b = OP(b, NAME(at)(x + i + LANES));                                    \
            c = OP(c, NAME(at)(x + i + 2 * LANES));                                \
            d = OP(d, NAME(at)(x + i + 3 * LANES));                                \
        }                                                                          \
        for (; i + LANES <= n; i += LANES) a = OP(a, NAME(at)(x + i));             \
        if (i < n)                                                                 \
            b = OP(b, NAME(pick)((VI)(NAME(first) < (VI){0} + (NAME(int))(n - i)), \
                                 NAME(rest)(x + i, n - i, 0), (V){0} + nothing));  \
        a = OP(OP(a, b), OP(c, d));                                                \
        T lane[LANES];                                                             \
        memcpy(lane, &a, sizeof a);                                                \
        for (int w = LANES / 2; w; w /= 2)                                         \
            for (int j = 0; j < w; j++) lane[j] = ONE(lane[j], lane[j + w]);       \
        return lane[0];                                                            \
    }
// The same of two lanes.
#define PLUS(u, v) ((u) + (v))
#define TIMES(u, v) ((u) * (v))
#define MORE(u, v) ((v) > (u) || (v) != (v) ? (v) : (u))
#define LESS(u, v) ((v) < (u) || (v) != (v) ? (v) : (u))
REDUCE(sum, NAME(plus), PLUS, 0)
REDUCE(prod, NAME(times), TIMES, 1)
REDUCE(max, NAME(more), MORE, x[0])
REDUCE(min, NAME(less), LESS, x[0])

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
// In float64, for a tile whose sums or squares leave T.
static __attribute__((noinline)) void NAME(wide_moments)(TorPartial *out, const T *x, int64_t n) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i];
    out->f = sum / (double)n;
    for (int64_t i = 0; i < n; i++) squares += ((double)x[i] - out->f) * ((double)x[i] - out->f);
    out->f2 = squares;
}
// Two passes over the tile, which is in the first-level cache. What rounding took from the mean is
// put back by the second: rows of equal elements have exactly that mean, and no variance.
static void NAME(moments)(TorPartial *out, const void *x_, int64_t n) {
    const T *x = x_;
    const T mean = NAME(sum_of)(x, n) / (T)n;
    V a = {0}, b = {0}, c = {0}, d = {0}, sum_a = {0}, sum_b = {0}, m = (V){0} + mean;
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        V u = NAME(at)(x + i) - m, v = NAME(at)(x + i + LANES) - m;
        V s = NAME(at)(x + i + 2 * LANES) - m, t = NAME(at)(x + i + 3 * LANES) - m;
        a += u * u;
        b += v * v;
        c += s * s;
        d += t * t;
        sum_a += u + v;
        sum_b += s + t;
    }
    for (; i < n; i += LANES) {
        V u = (n - i < LANES ? NAME(rest)(x + i, n - i, mean) : NAME(at)(x + i)) - m;
        a += u * u;
        sum_a += u;
    }
    a = (a + b) + (c + d);
    sum_a += sum_b;
    T lane[LANES], left[LANES];
    memcpy(lane, &a, sizeof a);
    memcpy(left, &sum_a, sizeof sum_a);
    for (int w = LANES / 2; w; w /= 2)
        for (int j = 0; j < w; j++) lane[j] += lane[j + w], left[j] += left[j + w];
    double shift = (double)left[0] / (double)n;
    out->f = mean - mean == 0 ? (double)mean + shift : (double)mean;
    out->f2 = (double)lane[0] - shift * (double)left[0];
    if (out->f2 < 0) out->f2 = 0;
    if (!(out->f2 <= DBL_MAX)) NAME(wide_moments)(out, x, n);
}

static void NAME(column_argmax)(void *state, const void *x_, int64_t row, int64_t n) {
    const T *x = x_;
    TorColumnBest *best = state;
    for (int64_t i = 0; i < n; i++) {
        if (row == 0 || x[i] > best[i].f || (x[i] != x[i] && best[i].f == best[i].f))
            best[i].f = x[i], best[i].at = row;
    }
}
static void NAME(column_argmin)(void *state, const void *x_, int64_t row, int64_t n) {
    const T *x = x_;
    TorColumnBest *best = state;
    for (int64_t i = 0; i < n; i++) {
        if (row == 0 || x[i] < best[i].f || (x[i] != x[i] && best[i].f == best[i].f))
            best[i].f = x[i], best[i].at = row;
    }
}
// `rows` rows onto the block, whose lanes stay in registers.
static void NAME(column_rows)(void *state, const void *x_, int64_t stride, int64_t rows,
                              int64_t n) {
    T *block = state;
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        const T *x = (const T *)x_ + i;
        V a = NAME(at)(block + i), b = NAME(at)(block + i + LANES),
          c = NAME(at)(block + i + 2 * LANES), d = NAME(at)(block + i + 3 * LANES);
        for (int64_t r = 0; r < rows; r++, x += stride) {
            a += NAME(at)(x);
            b += NAME(at)(x + LANES);
            c += NAME(at)(x + 2 * LANES);
            d += NAME(at)(x + 3 * LANES);
        }
        memcpy(block + i, &a, sizeof a);
        memcpy(block + i + LANES, &b, sizeof b);
        memcpy(block + i + 2 * LANES, &c, sizeof c);
        memcpy(block + i + 3 * LANES, &d, sizeof d);
    }
    for (; i < n; i++) {
        const T *x = (const T *)x_ + i;
        T sum = block[i];
        for (int64_t r = 0; r < rows; r++, x += stride) sum += *x;
        block[i] = sum;
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
        for (int64_t i = 0; i < n; i++)
            first[i] = x[i] - x[i] == 0 ? (double)x[i] : 0;  // infinities stay in the sums
    }
    for (int64_t i = 0; i < n; i++) {
        double d = (double)x[i] - first[i];
        sum[i] += d;
        square[i] += d * d;
    }
}
#undef REDUCE
#undef PLUS
#undef TIMES
#undef MORE
#undef LESS
#undef NAME
#undef S
#undef T
#undef V
#undef VI
#undef LANES

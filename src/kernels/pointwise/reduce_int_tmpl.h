// Tile reductions of one integer type (or bool). Wants S and T; undefines them.
#define NAME(name) TOR_PASTE(TOR_PASTE(name, _), S)
static void NAME(sum)(TorPartial *out, const void *x_, int64_t n) {
    const T *x = x_;
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (uint64_t)(int64_t)x[i];
    out->i = (int64_t)sum;
}
static void NAME(prod)(TorPartial *out, const void *x_, int64_t n) {
    const T *x = x_;
    uint64_t prod = 1;
    for (int64_t i = 0; i < n; i++) prod *= (uint64_t)(int64_t)x[i];
    out->i = (int64_t)prod;
}
static void NAME(max)(TorPartial *out, const void *x_, int64_t n) {
    const T *x = x_;
    T most = x[0];
    for (int64_t i = 1; i < n; i++) most = x[i] > most ? x[i] : most;
    out->i = most;
}
static void NAME(min)(TorPartial *out, const void *x_, int64_t n) {
    const T *x = x_;
    T least = x[0];
    for (int64_t i = 1; i < n; i++) least = x[i] < least ? x[i] : least;
    out->i = least;
}
static void NAME(argmax)(TorPartial *out, const void *x_, int64_t n) {
    const T *x = x_;
    int64_t i = 0;
    NAME(max)(out, x, n);
    while (x[i] != out->i) i++;
    out->at = i;
}
static void NAME(argmin)(TorPartial *out, const void *x_, int64_t n) {
    const T *x = x_;
    int64_t i = 0;
    NAME(min)(out, x, n);
    while (x[i] != out->i) i++;
    out->at = i;
}
static void NAME(any)(TorPartial *out, const void *x_, int64_t n) {
    const T *x = x_;
    T any = 0;
    for (int64_t i = 0; i < n; i++) any = (T)(any | (x[i] != 0));
    out->i = any;
}
static void NAME(all)(TorPartial *out, const void *x_, int64_t n) {
    const T *x = x_;
    T zeros = 0;
    for (int64_t i = 0; i < n; i++) zeros = (T)(zeros | (x[i] == 0));
    out->i = !zeros;
}
static void NAME(column_argmax)(void *state, const void *x_, int64_t row, int64_t n) {
    const T *x = x_;
    TorColumnBest *best = state;
    for (int64_t i = 0; i < n; i++) {
        if (row == 0 || x[i] > best[i].i) best[i].i = x[i], best[i].at = row;
    }
}
static void NAME(column_argmin)(void *state, const void *x_, int64_t row, int64_t n) {
    const T *x = x_;
    TorColumnBest *best = state;
    for (int64_t i = 0; i < n; i++) {
        if (row == 0 || x[i] < best[i].i) best[i].i = x[i], best[i].at = row;
    }
}
#undef NAME
#undef S
#undef T

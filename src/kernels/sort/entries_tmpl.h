// Sorting and selecting entries of one kind; included by lines.c for each kind of ENTRY.

/// Elements [first, first + count) of a line as entries.
#define LOAD(type, dtype)                                                              \
    case dtype: {                                                                      \
        const type *x = (const type *)args->src + src;                                 \
        for (int64_t i = 0; i < count; i++)                                            \
            to[i] = MAKE(key_of_bits(x[(first + i) * step], dtype) ^ flip, first + i); \
        break;                                                                         \
    }

static void NAME(load)(const TorSortArgs *args, int64_t src, int64_t first, int64_t count,
                       ENTRY *to) {
    int64_t step = args->src_stride[args->axis];
    uint64_t flip = args->descending ? key_mask(args->dtype) : 0;
    switch (args->dtype) {
        LOAD(uint8_t, TOR_bool)
        LOAD(uint8_t, TOR_uint8)
        LOAD(uint8_t, TOR_int8)
        LOAD(uint16_t, TOR_int16)
        LOAD(uint32_t, TOR_int32)
        LOAD(uint64_t, TOR_int64)
        LOAD(uint16_t, TOR_float16)
        LOAD(uint16_t, TOR_bfloat16)
        LOAD(uint32_t, TOR_float32)
        LOAD(uint64_t, TOR_float64)
        case TOR_DTYPE_COUNT: break;
    }
}

static void NAME(insertion)(ENTRY *e, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        ENTRY x = e[i];
        int64_t j = i;
        for (; j > 0 && LESS(x, e[j - 1]); j--) e[j] = e[j - 1];
        e[j] = x;
    }
}

/// Merges runs of 16, 32, ... between the buffers. @return the one that holds the result
static ENTRY *NAME(merge)(ENTRY *from, ENTRY *to, int64_t n) {
    for (int64_t i = 0; i < n; i += 16) NAME(insertion)(from + i, TOR_MIN(n - i, 16));
    for (int64_t run = 16; run < n; run *= 2) {
        for (int64_t low = 0; low < n; low += 2 * run) {
            int64_t a = low, middle = TOR_MIN(low + run, n), b = middle,
                    end = TOR_MIN(low + 2 * run, n), at = low;
            while (a < middle && b < end) {
                bool second = LESS(from[b], from[a]);
                to[at++] = second ? from[b] : from[a];
                a += !second, b += second;
            }
            while (a < middle) to[at++] = from[a++];
            while (b < end) to[at++] = from[b++];
        }
        ENTRY *swap = from;
        from = to, to = swap;
    }
    return from;
}

/// Of entries in the order of their positions, which sorting by keys alone then keeps: by bytes of
/// the key, the least significant first; bytes that are the same in all are skipped.
static ENTRY *NAME(radix)(ENTRY *from, ENTRY *to, int64_t n, int bytes) {
    size_t count[8][256];
    memset(count, 0, (size_t)bytes * sizeof *count);
    for (int64_t i = 0; i < n; i++)
        for (int p = 0; p < bytes; p++) count[p][KEY(from[i]) >> 8 * p & 255]++;
    for (int p = 0; p < bytes; p++) {
        if (count[p][KEY(from[0]) >> 8 * p & 255] == (size_t)n) continue;
        size_t at = 0;
        for (int b = 0; b < 256; b++) {
            size_t here = count[p][b];
            count[p][b] = at;
            at += here;
        }
        for (int64_t i = 0; i < n; i++) to[count[p][KEY(from[i]) >> 8 * p & 255]++] = from[i];
        ENTRY *swap = from;
        from = to, to = swap;
    }
    return from;
}

static ENTRY *NAME(order)(ENTRY *e, ENTRY *other, int64_t n, int bytes) {
    return n < RADIX_FROM ? NAME(merge)(e, other, n) : NAME(radix)(e, other, n, bytes);
}

/// Puts the k-th entry (from 0) into its place, lesser ones before it (Hoare, "Find", 1961). The
/// pivot is the median of three at pseudorandom places, so no input is slow by its pattern.
static void NAME(select)(ENTRY *e, int64_t n, int64_t k) {
    int64_t low = 0, high = n - 1;
    uint64_t random = 0x9e3779b97f4a7c15u;
    while (high - low > 16) {
        ENTRY three[3];
        for (int i = 0; i < 3; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            three[i] = e[low + (int64_t)((random >> 33) % (uint64_t)(high - low + 1))];
        }
        NAME(insertion)(three, 3);
        int64_t i = low, j = high;
        while (i <= j) {
            while (LESS(e[i], three[1])) i++;
            while (LESS(three[1], e[j])) j--;
            if (i > j) break;
            ENTRY swap = e[i];
            e[i++] = e[j], e[j--] = swap;
        }
        if (k <= j)
            high = j;
        else if (k >= i)
            low = i;
        else
            return;
    }
    NAME(insertion)(e + low, high - low + 1);
}

/// The first k of a line, in order. Entries that come after the k-th best so far are dropped as
/// they are read. @return where they are
static ENTRY *NAME(top)(const TorSortArgs *args, int64_t src, int64_t n, int64_t k, ENTRY *e) {
    int64_t room = tor_sort_held(n, k), held = 0, at = 0;
    if (room == n) {
        NAME(load)(args, src, 0, n, e);
        held = n;
    } else {
        ENTRY block[128], bound = MAKE(key_mask(args->dtype), (uint64_t)n);
        for (; at < n; at += 128) {
            int64_t count = TOR_MIN(n - at, 128);
            if (held + count > room) {
                NAME(select)(e, held, k - 1);
                held = k;
                bound = e[k - 1];
            }
            NAME(load)(args, src, at, count, block);
            for (int64_t i = 0; i < count; i++) {
                e[held] = block[i];
                held += LESS(block[i], bound);
            }
        }
    }
    if (held > k) NAME(select)(e, held, k - 1);
    return NAME(merge)(e, e + room, k);
}

/// The entry that a median or the k-th is.
static ENTRY NAME(middle)(const TorSortArgs *args, ENTRY *e, int64_t n) {
    int64_t k = TOR_MIN(args->k, n) - 1, nans = 0, first = -1;
    if (args->kind != TOR_SORT_kth) {
        uint64_t nan = key_mask(args->dtype);
        for (int64_t i = 0; i < n && tor_dtype_is_float(args->dtype); i++) {
            if (KEY(e[i]) != nan) continue;
            if (!nans) first = i;
            nans++;
        }
        if (nans && (args->kind == TOR_SORT_median || nans == n)) return e[first];
        k = (n - nans - 1) / 2;
    }
    NAME(select)(e, n, k);
    return e[k];
}

static ENTRY NAME(most_frequent)(const TorSortArgs *args, const ENTRY *e, int64_t n) {
    int64_t most = 0, run = 0, best = 0;
    for (int64_t i = 0; i < n; i++) {
        run++;
        bool is_nan = tor_dtype_is_float(args->dtype) && KEY(e[i]) == key_mask(args->dtype);
        if (i + 1 < n && KEY(e[i]) == KEY(e[i + 1]) && !is_nan) continue;
        if (run > most) most = run, best = i;
        run = 0;
    }
    return e[best];
}

#define STORE(bits)                                                                \
    case bits / 8:                                                                 \
        for (int64_t j = 0; j < args->results; j++)                                \
            ((uint##bits##_t *)args->values)[value + j * value_step] =             \
                ((const uint##bits##_t *)args->src)[src + INDEX(e[j]) * src_step]; \
        break;

TorSortFn SYMBOL;
void SYMBOL(const TorSortArgs *args, int64_t src, int64_t value, int64_t index, void *scratch) {
    int64_t n = tor_sort_length(args), src_step = args->src_stride[args->axis],
            value_step = args->value_stride[args->axis],
            index_step = args->index_stride[args->axis];
    int bytes = (int)tor_dtype_size(args->dtype);
    ENTRY *e = scratch;
    if (args->kind == TOR_SORT_top) {
        e = NAME(top)(args, src, n, args->results, e);
    } else {
        NAME(load)(args, src, 0, n, e);
        if (args->kind == TOR_SORT_all || args->kind == TOR_SORT_mode)
            e = NAME(order)(e, e + n, n, bytes);
        if (args->kind == TOR_SORT_mode)
            e[0] = NAME(most_frequent)(args, e, n);
        else if (args->kind != TOR_SORT_all)
            e[0] = NAME(middle)(args, e, n);
    }
    if (args->values) switch (bytes) {
            STORE(8) STORE(16) STORE(32) STORE(64)
        }
    if (args->indices)
        for (int64_t j = 0; j < args->results; j++)
            args->indices[index + j * index_step] = INDEX(e[j]);
}

#undef LOAD
#undef STORE
#undef ENTRY
#undef NAME
#undef MAKE
#undef KEY
#undef INDEX
#undef LESS
#undef RADIX_FROM
#undef SYMBOL

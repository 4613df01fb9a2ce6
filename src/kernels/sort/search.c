/// Binary search in sorted lines.
#include "kernels/sort/contract.h"

enum { CHUNK = 512 };

void tor_search_bind(TorSearchArgs *args) {
    int64_t count = 1;
    for (int d = 0; d < args->rank; d++) count *= args->size[d];
    args->items = tor_ceil_div(count, CHUNK);
    args->scratch_bytes = 0;
}

#define SEARCH(name, type, wide, load)                                                           \
    static int64_t search_##name(const void *line, int64_t n, int64_t stride, const void *value, \
                                 bool right) {                                                   \
        const type *x = line;                                                                    \
        wide v = load(*(const type *)value);                                                     \
        int64_t low = 0;                                                                         \
        while (n > 0) {                                                                          \
            int64_t half = n / 2;                                                                \
            wide at = load(x[(low + half) * stride]);                                            \
            bool go = right ? !(at > v) : !(at >= v);                                            \
            low = go ? low + half + 1 : low;                                                     \
            n = go ? n - half - 1 : half;                                                        \
        }                                                                                        \
        return low;                                                                              \
    }

SEARCH(bool, uint8_t, uint8_t, )
SEARCH(uint8, uint8_t, uint8_t, )
SEARCH(int8, int8_t, int8_t, )
SEARCH(int16, int16_t, int16_t, )
SEARCH(int32, int32_t, int32_t, )
SEARCH(int64, int64_t, int64_t, )
SEARCH(float16, uint16_t, float, tor_f16_to_f32)
SEARCH(bfloat16, uint16_t, float, tor_bf16_to_f32)
SEARCH(float32, float, float, )
SEARCH(float64, double, double, )

typedef int64_t SearchFn(const void *line, int64_t n, int64_t stride, const void *value,
                         bool right);
static SearchFn *const functions[TOR_DTYPE_COUNT] = {
#define X(name, bytes, kind) search_##name,
    TOR_DTYPES(X)
#undef X
};

void tor_search_run(const void *arg, int64_t begin, int64_t end, void *scratch) {
    (void)scratch;
    const TorSearchArgs *args = arg;
    int64_t count = 1, bytes = (int64_t)tor_dtype_size(args->dtype);
    for (int d = 0; d < args->rank; d++) count *= args->size[d];
    SearchFn *search = functions[args->dtype];
    for (int64_t i = begin * CHUNK; i < TOR_MIN(end * CHUNK, count); i++) {
        int64_t rest = i, value = 0, line = 0, dst = 0;
        for (int d = args->rank - 1; d >= 0; d--) {
            int64_t at = rest % args->size[d];
            rest /= args->size[d];
            value += at * args->value_stride[d];
            line += at * args->sorted_stride[d];
            dst += at * args->dst_stride[d];
        }
        int64_t found =
            search((const uint8_t *)args->sorted + line * bytes, args->n, args->line_stride,
                   (const uint8_t *)args->values + value * bytes, args->right);
        if (args->dst_dtype == TOR_int32)
            ((int32_t *)args->dst)[dst] = (int32_t)found;
        else
            ((int64_t *)args->dst)[dst] = found;
    }
}

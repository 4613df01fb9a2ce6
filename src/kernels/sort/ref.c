/// Sort's oracles: a line is ordered by insertion of positions, compared as scalars.
#include <string.h>

#include "kernels/sort/contract.h"

typedef struct {
    const TorSortArgs *args;
    const uint8_t *line;
} Line;

static TorScalar item(const Line *l, int64_t i) {
    int64_t bytes = (int64_t)tor_dtype_size(l->args->dtype);
    return tor_scalar_load(l->line + i * l->args->src_stride[l->args->axis] * bytes,
                           l->args->dtype);
}

static bool is_nan(TorScalar x) { return tor_dtype_is_float(x.dtype) && x.f != x.f; }

static bool less(TorScalar a, TorScalar b) {
    if (!tor_dtype_is_float(a.dtype)) return a.i < b.i;
    return is_nan(b) ? !is_nan(a) : a.f < b.f;
}

static bool comes_before(const Line *l, int64_t i, int64_t j) {
    return l->args->descending ? less(item(l, j), item(l, i)) : less(item(l, i), item(l, j));
}

static int64_t chosen(const Line *l, const int64_t *order, int64_t n) {
    int64_t nans = 0, first = -1;
    for (int64_t i = 0; i < n; i++) {
        if (!is_nan(item(l, i))) continue;
        if (first < 0) first = i;
        nans++;
    }
    switch (l->args->kind) {
        case TOR_SORT_kth: return order[TOR_MIN(l->args->k, n) - 1];
        case TOR_SORT_median: return nans ? first : order[(n - 1) / 2];
        case TOR_SORT_nanmedian: return nans == n ? first : order[(n - nans - 1) / 2];
        default: break;
    }
    int64_t most = 0, best = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t count = 0, last = i;
        for (int64_t j = 0; j < n; j++) {
            bool same = is_nan(item(l, order[i])) ? i == j
                                                  : !less(item(l, order[i]), item(l, order[j])) &&
                                                        !less(item(l, order[j]), item(l, order[i]));
            if (same) count++, last = j;
        }
        if (count > most) most = count, best = last;
    }
    return order[best];
}

void tor_sort_ref(const TorSortArgs *args, int64_t *order) {
    int64_t n = args->size[args->axis], lines = n != 0;
    int64_t bytes = (int64_t)tor_dtype_size(args->dtype), k = TOR_MIN(args->k, n);
    for (int d = 0; d < args->rank; d++)
        if (d != args->axis) lines *= args->size[d];
    for (int64_t number = 0; number < lines; number++) {
        int64_t rest = number, src = 0, value = 0, index = 0;
        for (int d = args->rank - 1; d >= 0; d--) {
            if (d == args->axis) continue;
            src += rest % args->size[d] * args->src_stride[d];
            value += rest % args->size[d] * args->value_stride[d];
            index += rest % args->size[d] * args->index_stride[d];
            rest /= args->size[d];
        }
        Line l = {args, (const uint8_t *)args->src + src * bytes};
        for (int64_t i = 0; i < n; i++) {
            int64_t j = i;
            for (; j > 0 && comes_before(&l, i, order[j - 1]); j--) order[j] = order[j - 1];
            order[j] = i;
        }
        bool many = args->kind == TOR_SORT_all || args->kind == TOR_SORT_top;
        if (!many) order[0] = chosen(&l, order, n);
        int64_t results = args->kind == TOR_SORT_all ? n : many ? k : 1;
        for (int64_t j = 0; j < results; j++) {
            const uint8_t *from = l.line + order[j] * args->src_stride[args->axis] * bytes;
            int64_t at = (value + j * args->value_stride[args->axis]) * bytes;
            if (args->values) memcpy((uint8_t *)args->values + at, from, (size_t)bytes);
            if (args->indices) args->indices[index + j * args->index_stride[args->axis]] = order[j];
        }
    }
}

void tor_search_ref(const TorSearchArgs *args) {
    int64_t count = 1, bytes = (int64_t)tor_dtype_size(args->dtype);
    for (int d = 0; d < args->rank; d++) count *= args->size[d];
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i, value = 0, line = 0, dst = 0, found = 0;
        for (int d = args->rank - 1; d >= 0; d--) {
            value += rest % args->size[d] * args->value_stride[d];
            line += rest % args->size[d] * args->sorted_stride[d];
            dst += rest % args->size[d] * args->dst_stride[d];
            rest /= args->size[d];
        }
        TorScalar v = tor_scalar_load((const uint8_t *)args->values + value * bytes, args->dtype);
        int64_t end = args->n;
        while (found < end) {
            int64_t middle = found + (end - found) / 2;
            TorScalar x = tor_scalar_load(
                (const uint8_t *)args->sorted + (line + middle * args->line_stride) * bytes,
                args->dtype);
            bool is_float = tor_dtype_is_float(args->dtype);
            bool above = is_float ? x.f > v.f : x.i > v.i,
                 equal = is_float ? x.f == v.f : x.i == v.i;
            if (above || (equal && !args->right))
                end = middle;
            else
                found = middle + 1;
        }
        if (args->dst_dtype == TOR_int32)
            ((int32_t *)args->dst)[dst] = (int32_t)found;
        else
            ((int64_t *)args->dst)[dst] = found;
    }
}

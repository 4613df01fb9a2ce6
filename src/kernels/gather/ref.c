/// Gather's oracle: one element at a time, in row-major order; and the search for a bad index.
#include <string.h>

#include "kernels/gather/block.h"

static int64_t count_of(const TorIndexArgs *args) {
    int64_t count = 1;
    for (int d = 0; d < args->rank; d++) count *= args->size[d];
    return count;
}

/// Element number i of the loops. @return -1 - k, or 0 where all indices are in range
static int locate(const TorIndexArgs *args, int64_t i, int64_t *data, int64_t *other,
                  int64_t *bad) {
    int64_t at[TOR_INDEX_RANK];
    int wrong = 0;
    *data = *other = 0;
    for (int d = args->rank - 1; d >= 0; d--) {
        at[d] = i % args->size[d];
        i /= args->size[d];
        *data += at[d] * args->data_stride[d];
        *other += at[d] * args->other_stride[d];
    }
    for (int k = 0; k < args->n_index; k++) {
        int64_t from = 0;
        for (int d = 0; d < args->rank; d++) from += at[d] * args->index_stride[k][d];
        int64_t index = tor_index_load(args->index[k], args->index_dtype[k], from),
                size = args->axis_size[k];
        if (!wrong) *bad = index;
        if (index < 0 && args->wrap) index += size;
        if (index < 0 || index >= size) {
            if (!wrong) wrong = -1 - k;
            index = index < 0 || size == 0 ? 0 : size - 1;
        }
        *data += index * args->axis_stride[k];
    }
    return wrong;
}

void tor_gather_ref(const TorIndexArgs *args) {
    size_t bytes = tor_dtype_size(args->dtype);
    for (int64_t i = 0; i < count_of(args); i++) {
        int64_t data, other, bad;
        int wrong = locate(args, i, &data, &other, &bad);
        if (wrong) *args->error = -wrong;
        bool empty = false;
        for (int k = 0; k < args->n_index; k++) empty |= args->axis_size[k] == 0;
        if (!empty)
            memcpy((uint8_t *)args->other + other * (int64_t)bytes,
                   (uint8_t *)args->data + data * (int64_t)bytes, bytes);
    }
}

/// In double, which is exact for sums and products of the narrower types, so rounded once.
static TorScalar reduced(const TorIndexArgs *args, TorScalar a, TorScalar b) {
    bool max = args->reduce == TOR_SCATTER_max;
    if (args->reduce == TOR_SCATTER_max || args->reduce == TOR_SCATTER_min) {
        if (!tor_dtype_is_float(args->dtype)) return (max ? b.i > a.i : b.i < a.i) ? b : a;
        if (b.f != b.f) return b;
        return (max ? a.f < b.f : b.f < a.f) ? b : a;
    }
    bool add = args->reduce == TOR_SCATTER_add;
    if (tor_dtype_is_float(args->dtype)) {
        b.f = add ? a.f + b.f : a.f * b.f;
        if (args->dtype != TOR_float64) b.f = (float)b.f;
        return b;
    }
    if (args->dtype == TOR_bool) {
        b.i = add ? a.i || b.i : a.i && b.i;
        return b;
    }
    uint64_t x = (uint64_t)a.i, y = (uint64_t)b.i;
    return tor_scalar_cast((TorScalar){.dtype = TOR_int64, .i = (int64_t)(add ? x + y : x * y)},
                           args->dtype);
}

void tor_scatter_ref(const TorIndexArgs *args) {
    size_t bytes = tor_dtype_size(args->dtype);
    for (int64_t i = 0; i < count_of(args); i++) {
        int64_t data, other, bad;
        int wrong = locate(args, i, &data, &other, &bad);
        if (wrong) {
            *args->error = -wrong;
            continue;
        }
        uint8_t *dst = (uint8_t *)args->data + data * (int64_t)bytes;
        const uint8_t *src = (const uint8_t *)args->other + other * (int64_t)bytes;
        if (args->reduce == TOR_SCATTER_assign) {
            memcpy(dst, src, bytes);
            continue;
        }
        TorScalar a = tor_scalar_load(dst, args->dtype), b = tor_scalar_load(src, args->dtype);
        b = reduced(args, a, b);
        tor_scalar_store(dst, b);
    }
}

bool tor_index_find_error(const TorIndexArgs *args, int *which, int64_t *value) {
    for (int64_t i = 0; i < count_of(args); i++) {
        int64_t data, other;
        int wrong = locate(args, i, &data, &other, value);
        if (!wrong) continue;
        *which = -1 - wrong;
        return true;
    }
    return false;
}

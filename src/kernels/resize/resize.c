/// Resize family: rows, dispatch and the split.
#include <string.h>

#include "base/cpu.h"
#include "kernels/resize/line.h"

#define TOR_RESIZE_KERNEL(symbol, features, dtypes, nearest) \
    void symbol(const void *args, int64_t begin, int64_t end, void *scratch);
#include "kernels/resize/kernels.inc"
#undef TOR_RESIZE_KERNEL

static const TorResizeRow rows[] = {
#define TOR_RESIZE_KERNEL(symbol, features, dtypes, nearest) \
    {#symbol, features, dtypes, nearest, symbol},
#include "kernels/resize/kernels.inc"
#undef TOR_RESIZE_KERNEL
};

const TorResizeRow *tor_resize_rows(int *count) {
    *count = (int)TOR_COUNT_OF(rows);
    return rows;
}

bool tor_resize_supported(const TorResizeArgs *args, const char **reason) {
    *reason = NULL;
    bool nearest = args->mode <= TOR_RESIZE_nearest_exact;
    if (!nearest && !tor_dtype_is_float(args->dtype))
        *reason = "interpolation takes floats";
    else if (nearest && !tor_dtype_is_float(args->dtype) && args->dtype != TOR_uint8)
        *reason = "nearest takes floats and uint8";
    return *reason == NULL;
}

void tor_resize_bind(TorResizeArgs *args) {
    uint32_t have = tor_cpu_features();
    bool nearest = args->mode <= TOR_RESIZE_nearest_exact;
    for (size_t i = 0; i < TOR_COUNT_OF(rows); i++)
        if (!(rows[i].features & ~have) && rows[i].nearest == nearest &&
            (rows[i].dtypes >> args->dtype & 1))
            args->row = &rows[i];
    args->channels_inside = args->x_stride[1] == 1 && args->y_stride[1] == 1 && args->channels > 1;
    int64_t lines = args->batch * args->out_size[0] * args->out_size[1];
    args->items = args->out_size[2] * args->channels == 0 ? 0
                  : args->channels_inside                 ? lines
                                                          : lines * args->channels;
    int64_t wide = args->dtype == TOR_float64 ? 8 : 4;
    args->scratch_bytes =
        tor_resize_table(args->out_size[2] * TOR_RESIZE_TAPS, 4) +
        tor_resize_table(args->out_size[2] * TOR_RESIZE_TAPS, (size_t)wide) +
        tor_resize_table(TOR_MAX(args->in_size[2], args->channels) + 16, (size_t)wide);
}

void tor_resize_run(const void *args, int64_t begin, int64_t end, void *scratch) {
    ((const TorResizeArgs *)args)->row->run(args, begin, end, scratch);
}

/// Pool family: rows, dispatch and the split.
#include "kernels/pool/contract.h"

#include "base/cpu.h"
#include "kernels/pool/window.h"

#define TOR_POOL_KERNEL(symbol, features, layout) \
    void symbol(const void *args, int64_t begin, int64_t end, void *scratch);
#include "kernels/pool/kernels.inc"
#undef TOR_POOL_KERNEL

static const TorPoolRow rows[] = {
#define TOR_POOL_KERNEL(symbol, features, layout) {#symbol, features, TOR_POOL_##layout, symbol},
#include "kernels/pool/kernels.inc"
#undef TOR_POOL_KERNEL
};

enum { ITEMS_WANTED = 64, CHANNELS_LEAST = 64 };

const TorPoolRow *tor_pool_rows(int *count) {
    *count = (int)TOR_COUNT_OF(rows);
    return rows;
}

bool tor_pool_supported(const TorPoolArgs *args, const char **reason) {
    *reason = NULL;
    bool floats = tor_dtype_is_float(args->dtype);
    if (args->kind == TOR_POOL_avg && !floats && args->dtype != TOR_int64)
        *reason = "avg_pool takes floats and int64";
    if (args->kind == TOR_POOL_adaptive_avg && !floats) *reason = "adaptive_avg_pool takes floats";
    for (int i = 0; !tor_pool_is_adaptive(args->kind) && i < 3; i++) {
        if (args->kernel[i] < 1 || args->stride[i] < 1)
            *reason = "kernel and stride must be at least 1";
        if (args->kind == TOR_POOL_max && args->dilation[i] < 1)
            *reason = "dilation must be at least 1";
        if (args->padding[i] < 0 || args->padding[i] > args->kernel[i] / 2)
            *reason = "padding must be from 0 to half the kernel";
    }
    return *reason == NULL;
}

void tor_pool_bind(TorPoolArgs *args) {
    const int64_t *in = args->in_size;
    // Vector lanes count positions in 32 bits.
    bool wide = args->dtype == TOR_float32 && in[0] * in[1] * in[2] <= INT32_MAX;
    bool fits[] = {
        [TOR_POOL_any] = true,
        [TOR_POOL_channels_last] = wide && args->x_stride[1] == 1 && args->y_stride[1] == 1,
        [TOR_POOL_planes] = wide && !tor_pool_is_adaptive(args->kind) && args->x_stride[4] == 1 &&
                            args->y_stride[4] == 1 && args->out_size[2] >= 4,
    };
    uint32_t have = tor_cpu_features();
    size_t i = 0;
    while ((rows[i].features & ~have) || !fits[rows[i].layout]) i++;
    args->row = &rows[i];
    args->scratch_bytes = rows[i].layout == TOR_POOL_planes ? tor_pool_planes_scratch(args) : 0;
    int64_t lines = args->batch * args->out_size[0] * args->out_size[1];
    int64_t block = TOR_MAX(args->channels, 1);
    while (block > CHANNELS_LEAST && lines * tor_ceil_div(args->channels, block) < ITEMS_WANTED)
        block = tor_round_up(tor_ceil_div(block, 2), CHANNELS_LEAST);
    args->channel_block = block;
    args->channel_blocks = tor_ceil_div(args->channels, block);
    args->items = args->out_size[2] ? lines * args->channel_blocks : 0;
}

void tor_pool_run(const void *args, int64_t begin, int64_t end, void *scratch) {
    ((const TorPoolArgs *)args)->row->run(args, begin, end, scratch);
}

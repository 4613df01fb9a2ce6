/// Grid family: rows and dispatch.
#include "base/cpu.h"
#include "kernels/grid/contract.h"

#define TOR_GRID_KERNEL(symbol, features, dtype) \
    void symbol(const void *args, int64_t begin, int64_t end, void *scratch);
#include "kernels/grid/kernels.inc"
#undef TOR_GRID_KERNEL

static const TorGridRow rows[] = {
#define TOR_GRID_KERNEL(symbol, features, dtype) {#symbol, features, dtype, symbol},
#include "kernels/grid/kernels.inc"
#undef TOR_GRID_KERNEL
};

void tor_grid_bind(TorGridArgs *args) {
    uint32_t have = tor_cpu_features();
    for (size_t i = 0; i < TOR_COUNT_OF(rows); i++)
        if (!(rows[i].features & ~have) && rows[i].dtype == args->dtype) args->row = &rows[i];
    bool empty = args->channels == 0 || args->out_size[2] == 0 ||
                 args->in_size[0] * args->in_size[1] * args->in_size[2] == 0;
    args->items = empty ? 0 : args->batch * args->out_size[0] * args->out_size[1];
    args->scratch_bytes = 0;
}

void tor_grid_run(const void *args, int64_t begin, int64_t end, void *scratch) {
    ((const TorGridArgs *)args)->row->run(args, begin, end, scratch);
}

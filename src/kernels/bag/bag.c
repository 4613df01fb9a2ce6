/// Bag family: rows and dispatch.
#include "kernels/bag/contract.h"

#include "base/cpu.h"

#define TOR_BAG_KERNEL(symbol, features, dtype) \
    void symbol(const void *args, int64_t begin, int64_t end, void *scratch);
#include "kernels/bag/kernels.inc"
#undef TOR_BAG_KERNEL

static const TorBagRow rows[] = {
#define TOR_BAG_KERNEL(symbol, features, dtype) {#symbol, features, dtype, symbol},
#include "kernels/bag/kernels.inc"
#undef TOR_BAG_KERNEL
};

void tor_bag_bind(TorBagArgs *args) {
    uint32_t have = tor_cpu_features();
    for (size_t i = 0; i < TOR_COUNT_OF(rows); i++)
        if (!(rows[i].features & ~have) && rows[i].dtype == args->dtype) args->row = &rows[i];
    args->items = args->bags;
    args->scratch_bytes = (size_t)tor_round_up(TOR_MAX(args->width, 1) * 8, 64);
}

void tor_bag_run(const void *args, int64_t begin, int64_t end, void *scratch) {
    ((const TorBagArgs *)args)->row->run(args, begin, end, scratch);
}

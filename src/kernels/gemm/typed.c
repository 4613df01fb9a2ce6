// The driver of the rows for types other than float32. An item is a block of rows by a block of
// columns of one matrix; b comes in strides and is copied, panel by panel, where more than a few
// rows use it.
#include "base/cpu.h"
#include "kernels/gemm/split.h"

#define TOR_GEMM_TYPED(symbol, is_float, bytes, needs, cols) TorGemmBlockFn symbol;
#include "typed.inc"
#undef TOR_GEMM_TYPED

static const TorGemmTypedKernel kernels[] = {
#define TOR_GEMM_TYPED(symbol, is_float, bytes, needs, cols) \
    {#symbol, is_float, bytes, needs, 4, cols, symbol},
#include "typed.inc"
#undef TOR_GEMM_TYPED
};

const TorGemmTypedKernel *tor_gemm_typed_kernels(int *count) {
    *count = (int)TOR_COUNT_OF(kernels);
    return kernels;
}

bool tor_gemm_typed_takes(const TorGemmTypedKernel *kernel, TorDtype dtype) {
    return kernel->is_float == tor_dtype_is_float(dtype) &&
           kernel->bytes == tor_dtype_size(dtype) && dtype != TOR_bool;
}

static const TorGemmTypedKernel *find(TorDtype dtype) {
    for (size_t i = TOR_COUNT_OF(kernels); i-- > 0;)
        if ((kernels[i].features & ~tor_cpu_features()) == 0 &&
            tor_gemm_typed_takes(&kernels[i], dtype))
            return &kernels[i];
    return NULL;
}

enum {
    KC = 256,          ///< a panel of b stays in L1
    MC = 96,           ///< a block of a in L2
    UNITS = 32,        ///< enough for many threads
    ITEM_WORK = 32768  ///< multiply-adds that are worth a thread
};

void tor_gemm_typed_bind(TorGemmArgs *args, TorDtype dtype) {
    __typeof__(args->plan) *plan = &args->plan;
    const TorGemmTypedKernel *kernel = args->typed ? args->typed : find(dtype);
    args->typed = kernel;
    plan->batches = tor_gemm_batches(args);
    plan->copy_a = args->pack_a || args->a_col != 1;
    plan->copy_b = args->b_col != 1 || args->m > 2 * kernel->mr;
    plan->dots = !plan->copy_a && args->b_row == 1 && args->m <= 2 && args->k > 0;
    args->kc = tor_gemm_even_part(args->k, KC, 8);
    args->mc = tor_gemm_even_part(args->m, MC, kernel->mr);
    plan->m_blocks = tor_ceil_div(args->m, args->mc);
    plan->panels = tor_ceil_div(args->n, kernel->nr);
    int64_t wide = TOR_MAX(plan->panels, 1), rest = plan->batches * plan->m_blocks;
    while (wide > 1 && rest * tor_ceil_div(plan->panels, wide) < UNITS) wide = (wide + 1) / 2;
    args->nc = wide * kernel->nr;
    plan->units = rest * tor_ceil_div(plan->panels, wide);
    double work = (double)args->mc * (double)args->nc * (double)(args->k + 1);
    plan->units_per_item = TOR_MAX((int64_t)(ITEM_WORK / work), 1);
    args->items = tor_ceil_div(plan->units, plan->units_per_item);
    int64_t a = plan->copy_a ? args->mc * args->kc : 0;
    args->scratch_bytes =
        (size_t)tor_round_up((args->kc * kernel->nr + a) * (int64_t)kernel->bytes, 64);
    args->shared_bytes = 0;
    args->join_items = 0;
}

void tor_gemm_typed_run(const void *void_args, int64_t begin, int64_t end, void *scratch) {
    const TorGemmArgs *args = void_args;
    int64_t n_blocks = tor_ceil_div(args->n, args->nc), each = args->plan.units_per_item;
    for (int64_t unit = begin * each; unit < TOR_MIN(end * each, args->plan.units); unit++) {
        int64_t block = unit / n_blocks, m_block = block % args->plan.m_blocks;
        TorGemmBlock at = {.batch = block / args->plan.m_blocks,
                           .row = m_block * args->mc,
                           .col = unit % n_blocks * args->nc};
        TorGemmOffsets matrix = tor_gemm_offsets(args, at.batch);
        at.rows = TOR_MIN(args->mc, args->m - at.row);
        at.cols = TOR_MIN(args->nc, args->n - at.col);
        at.a = matrix.a + at.row * args->a_row;
        at.c = matrix.c + at.row * args->c_row;
        at.b = matrix.b, at.bias = matrix.bias;
        args->typed->run(args, &at, scratch);
    }
}

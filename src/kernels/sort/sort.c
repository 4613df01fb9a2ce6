/// Sort's dispatch: lines are items, counted row-major over all dims but the axis.
#include "base/cpu.h"
#include "kernels/sort/lines.h"

#define TOR_SORT_KERNEL(symbol, features, key_bits) TorSortFn symbol;
#include "kernels/sort/kernels.inc"
#undef TOR_SORT_KERNEL

static const TorSortKernel kernels[] = {
#define TOR_SORT_KERNEL(symbol, features, key_bits) {#symbol, features, key_bits, symbol},
#include "kernels/sort/kernels.inc"
#undef TOR_SORT_KERNEL
};

const TorSortKernel *tor_sort_kernel(int index) {
    return index >= 0 && index < (int)TOR_COUNT_OF(kernels) ? &kernels[index] : NULL;
}

const char *tor_sort_kernel_name(const TorSortKernel *kernel) { return kernel->name; }

static bool fits(const TorSortArgs *args, const TorSortKernel *kernel) {
    bool narrow = tor_dtype_size(args->dtype) <= 4 && tor_sort_length(args) < UINT32_MAX;
    return !(kernel->features & ~tor_cpu_features()) && (kernel->key_bits == 64 || narrow);
}

static void measure(TorSortArgs *args) {
    int64_t n = tor_sort_length(args), k = TOR_MIN(args->k, n);
    bool many = args->kind == TOR_SORT_all || args->kind == TOR_SORT_top;
    args->results = args->kind == TOR_SORT_all ? n : many ? k : 1;
    args->items = n && args->results ? 1 : 0;
    for (int d = 0; d < args->rank; d++)
        if (d != args->axis) args->items *= args->size[d];
    int64_t entries = args->kind == TOR_SORT_top ? tor_sort_held(n, k) + k
                      : args->kind == TOR_SORT_all || args->kind == TOR_SORT_mode ? 2 * n
                                                                                  : n;
    args->scratch_bytes = args->items ? (size_t)entries * 16 : 0;
    args->kernel = NULL;
}

void tor_sort_bind(TorSortArgs *args) {
    measure(args);
    for (int i = (int)TOR_COUNT_OF(kernels) - 1; i >= 0 && !args->kernel; i--)
        if (fits(args, &kernels[i])) args->kernel = &kernels[i];
}

bool tor_sort_bind_kernel(TorSortArgs *args, const TorSortKernel *kernel) {
    measure(args);
    if (!fits(args, kernel)) return false;
    args->kernel = kernel;
    return true;
}

void tor_sort_run(const void *arg, int64_t begin, int64_t end, void *scratch) {
    const TorSortArgs *args = arg;
    for (int64_t line = begin; line < end; line++) {
        int64_t rest = line, src = 0, value = 0, index = 0;
        for (int d = args->rank - 1; d >= 0; d--) {
            if (d == args->axis) continue;
            int64_t at = rest % args->size[d];
            rest /= args->size[d];
            src += at * args->src_stride[d];
            value += at * args->value_stride[d];
            index += at * args->index_stride[d];
        }
        args->kernel->fn(args, src, value, index, scratch);
    }
}

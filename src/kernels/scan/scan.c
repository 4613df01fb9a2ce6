/// Scan's dispatch. An item is a block of lines that lie side by side, so that a scan along an
/// outer axis reads memory in order; one line, where the lines themselves lie in order.
#include "base/cpu.h"
#include "kernels/scan/lanes.h"

#define TOR_SCAN_KERNEL(symbol, features, kind, dtypes) TorScanFn symbol;
#include "kernels/scan/kernels.inc"
#undef TOR_SCAN_KERNEL

static const TorScanKernel kernels[] = {
#define TOR_SCAN_KERNEL(symbol, features, kind, dtypes) \
    {#symbol, features, TOR_SCAN_##kind, dtypes, symbol},
#include "kernels/scan/kernels.inc"
#undef TOR_SCAN_KERNEL
};

const TorScanKernel *tor_scan_kernel(int index) {
    return index >= 0 && index < (int)TOR_COUNT_OF(kernels) ? &kernels[index] : NULL;
}

const char *tor_scan_kernel_name(const TorScanKernel *kernel) { return kernel->name; }

static int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

/// Items that dim `d` counts for.
static int64_t parts(const TorScanArgs *args, int d) {
    if (d == args->axis) return 1;
    return d == args->lane_dim ? tor_ceil_div(args->size[d], TOR_SCAN_LANES) : args->size[d];
}

static void measure(TorScanArgs *args) {
    args->kernel = NULL;
    args->scratch_bytes = 0;
    args->lane_dim = -1;
    int64_t least = args->rank ? magnitude(args->src_stride[args->axis]) : 0;
    for (int d = 0; d < args->rank; d++) {
        if (d == args->axis || args->size[d] == 1) continue;
        if (args->src_stride[d] == 0 || magnitude(args->src_stride[d]) >= least) continue;
        args->lane_dim = d;
        least = magnitude(args->src_stride[d]);
    }
    args->items = args->rank == 0 || args->size[args->axis] != 0;
    for (int d = 0; d < args->rank; d++) args->items *= parts(args, d);
}

static bool fits(const TorScanArgs *args, const TorScanKernel *kernel) {
    return !(kernel->features & ~tor_cpu_features()) && kernel->kind == args->kind &&
           (kernel->dtypes >> args->dtype & 1);
}

void tor_scan_bind(TorScanArgs *args) {
    measure(args);
    for (int i = (int)TOR_COUNT_OF(kernels) - 1; i >= 0 && !args->kernel; i--)
        if (fits(args, &kernels[i])) args->kernel = &kernels[i];
}

bool tor_scan_bind_kernel(TorScanArgs *args, const TorScanKernel *kernel) {
    measure(args);
    if (!fits(args, kernel)) return false;
    args->kernel = kernel;
    return true;
}

bool tor_scan_takes(TorScanKind kind, TorDtype dtype) {
    for (size_t i = 0; i < TOR_COUNT_OF(kernels); i++)
        if (kernels[i].kind == kind && (kernels[i].dtypes >> dtype & 1)) return true;
    return false;
}

void tor_scan_run(const void *arg, int64_t begin, int64_t end, void *scratch) {
    (void)scratch;
    const TorScanArgs *args = arg;
    int64_t bytes = (int64_t)tor_dtype_size(args->dtype);
    TorScanBlock block = {.n = 1, .lanes = 1};
    if (args->rank) {
        block.n = args->size[args->axis];
        block.src_step = args->src_stride[args->axis];
        block.dst_step = args->dst_stride[args->axis];
        block.index_step = args->index_stride[args->axis];
    }
    if (args->lane_dim >= 0) {
        block.src_gap = args->src_stride[args->lane_dim];
        block.dst_gap = args->dst_stride[args->lane_dim];
        block.index_gap = args->index_stride[args->lane_dim];
    }
    for (int64_t item = begin; item < end; item++) {
        int64_t rest = item, src = 0, dst = 0, index = 0;
        for (int d = args->rank - 1; d >= 0; d--) {
            int64_t count = parts(args, d), at = rest % count;
            rest /= count;
            if (d == args->lane_dim) {
                at *= TOR_SCAN_LANES;
                block.lanes = TOR_MIN(args->size[d] - at, TOR_SCAN_LANES);
            }
            src += at * args->src_stride[d];
            dst += at * args->dst_stride[d];
            index += at * args->index_stride[d];
        }
        block.src = (const uint8_t *)args->src + src * bytes;
        block.dst = args->dst ? (uint8_t *)args->dst + dst * bytes : NULL;
        block.index = args->index ? args->index + index : NULL;
        args->kernel->fn(&block);
    }
}

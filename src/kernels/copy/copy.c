/// Strided copy: dims are merged and ordered as dst lies in memory, then cut into two-dimensional
/// blocks, one an item, each done by one kernel.
#include <string.h>

#include "base/cpu.h"
#include "kernels/copy/block.h"

#define TOR_COPY_KERNEL(symbol, features, mode, elem_bytes) TorCopyFn symbol;
#include "kernels/copy/kernels.inc"
#undef TOR_COPY_KERNEL

static const TorCopyKernel kernels[] = {
#define TOR_COPY_KERNEL(symbol, features, mode, elem_bytes) \
    {#symbol, features, TOR_COPY_##mode, elem_bytes, symbol},
#include "kernels/copy/kernels.inc"
#undef TOR_COPY_KERNEL
};

const TorCopyKernel *tor_copy_kernel(int index) {
    return index >= 0 && index < (int)TOR_COUNT_OF(kernels) ? &kernels[index] : NULL;
}

const char *tor_copy_kernel_name(const TorCopyKernel *kernel) { return kernel->name; }

static void move_dim(TorCopyArgs *args, int to, int from) {
    args->size[to] = args->size[from];
    args->src_stride[to] = args->src_stride[from];
    args->dst_stride[to] = args->dst_stride[from];
}

static void swap_dims(TorCopyArgs *args, int i, int j) {
    int64_t size = args->size[i], src = args->src_stride[i], dst = args->dst_stride[i];
    move_dim(args, i, j);
    args->size[j] = size, args->src_stride[j] = src, args->dst_stride[j] = dst;
}

/// Drops dims of size 1, makes dst's strides positive and descending, joins what can be one dim.
static void merge(TorCopyArgs *args) {
    int rank = 0;
    for (int d = 0; d < args->rank; d++) {
        if (args->size[d] == 1) continue;
        move_dim(args, rank, d);
        if (args->dst_stride[rank] < 0) {
            args->src_offset += (args->size[rank] - 1) * args->src_stride[rank] * args->elem_bytes;
            args->dst_offset += (args->size[rank] - 1) * args->dst_stride[rank] * args->elem_bytes;
            args->src_stride[rank] = -args->src_stride[rank];
            args->dst_stride[rank] = -args->dst_stride[rank];
        }
        for (int i = rank; i > 0 && args->dst_stride[i] > args->dst_stride[i - 1]; i--)
            swap_dims(args, i, i - 1);
        rank++;
    }
    int kept = 0;
    for (int d = 1; d < rank; d++) {
        if (args->src_stride[kept] == args->src_stride[d] * args->size[d] &&
            args->dst_stride[kept] == args->dst_stride[d] * args->size[d]) {
            args->size[kept] *= args->size[d];
            args->src_stride[kept] = args->src_stride[d];
            args->dst_stride[kept] = args->dst_stride[d];
        } else {
            move_dim(args, ++kept, d);
        }
    }
    args->rank = rank ? kept + 1 : 0;
}

/// Makes 2, 4 or 8 elements that lie together in src and dst one element.
static void widen(TorCopyArgs *args) {
    int last = args->rank - 1;
    if (last < 0 || args->src_stride[last] != 1 || args->dst_stride[last] != 1) return;
    int64_t size = args->size[last];
    if ((size & (size - 1)) || size * args->elem_bytes > 8) return;
    for (int d = 0; d < last; d++)
        if (args->src_stride[d] % size || args->dst_stride[d] % size) return;
    for (int d = 0; d < last; d++) args->src_stride[d] /= size, args->dst_stride[d] /= size;
    args->elem_bytes *= (int)size;
    args->rank--;
}

/// Chooses the block's two dims, which become the last two.
static TorCopyMode shape_block(TorCopyArgs *args) {
    while (args->rank < 2) {  // so that there are two
        for (int d = args->rank; d > 0; d--) move_dim(args, d, d - 1);
        args->size[0] = 1, args->src_stride[0] = 0, args->dst_stride[0] = 0;
        if (args->rank == 0) args->src_stride[0] = args->dst_stride[0] = 1;
        args->rank++;
    }
    int col = args->rank - 1, row = args->rank - 2;
    if (args->dst_stride[col] != 1) return TOR_COPY_strided;
    if (args->src_stride[col] == 1) return TOR_COPY_run;
    if (args->src_stride[col] == 0) return TOR_COPY_splat;
    for (int d = row; d >= 0; d--) {
        if (args->src_stride[d] != 1 || args->size[d] == 1) continue;
        swap_dims(args, d, row);
        return TOR_COPY_transpose;
    }
    return TOR_COPY_strided;
}

static void bind_blocks(TorCopyArgs *args) {
    args->src_offset = args->dst_offset = 0;
    args->scratch_bytes = 0;
    args->kernel = NULL;
    args->items = 0;
    for (int d = 0; d < args->rank; d++)
        if (args->size[d] == 0) return;
    merge(args);
    widen(args);
    args->mode = shape_block(args);
    int64_t cols = args->size[args->rank - 1], rows = args->size[args->rank - 2];
    int64_t most = 32768 / args->elem_bytes;  // elements an item
    if (args->mode == TOR_COPY_transpose) {
        args->run = TOR_MIN(cols, 256 / TOR_MIN(args->elem_bytes, 4));
        args->tile = TOR_MIN(rows, 256 / TOR_MIN(args->elem_bytes, 4));
    } else {
        args->run = TOR_MIN(cols, most);
        args->tile = TOR_MIN(rows, TOR_MAX(most / args->run, 1));
    }
    args->items = tor_ceil_div(rows, args->tile) * tor_ceil_div(cols, args->run);
    for (int d = 0; d < args->rank - 2; d++) args->items *= args->size[d];
}

static bool fits(const TorCopyArgs *args, const TorCopyKernel *kernel) {
    return !(kernel->features & ~tor_cpu_features()) && (int)kernel->mode == args->mode &&
           (kernel->elem_bytes == 0 || kernel->elem_bytes == args->elem_bytes);
}

bool tor_copy_bind_kernel(TorCopyArgs *args, const TorCopyKernel *kernel) {
    bind_blocks(args);
    if (args->items && !fits(args, kernel)) return false;
    args->kernel = kernel;
    return true;
}

void tor_copy_bind(TorCopyArgs *args) {
    bind_blocks(args);
    if (args->items)
        for (int i = (int)TOR_COUNT_OF(kernels) - 1; i >= 0 && !args->kernel; i--)
            if (fits(args, &kernels[i])) args->kernel = &kernels[i];
}

void tor_copy_run(const void *arg, int64_t begin, int64_t end, void *scratch) {
    (void)scratch;
    const TorCopyArgs *args = arg;
    if (begin >= end) return;
    int col = args->rank - 1, row = args->rank - 2;
    int64_t bytes = args->elem_bytes, at[TOR_COPY_RANK], count[TOR_COPY_RANK], step[TOR_COPY_RANK];
    uint8_t *dst = (uint8_t *)args->dst + args->dst_offset;
    const uint8_t *src = (const uint8_t *)args->src + args->src_offset;
    int64_t rest = begin;
    for (int d = col; d >= 0; d--) {
        step[d] = d == col ? args->run : d == row ? args->tile : 1;
        count[d] = tor_ceil_div(args->size[d], step[d]);
        at[d] = rest % count[d];
        rest /= count[d];
        dst += at[d] * step[d] * args->dst_stride[d] * bytes;
        src += at[d] * step[d] * args->src_stride[d] * bytes;
    }
    for (int64_t item = begin;;) {
        args->kernel->fn(dst, src, TOR_MIN(args->tile, args->size[row] - at[row] * args->tile),
                         TOR_MIN(args->run, args->size[col] - at[col] * args->run),
                         args->dst_stride[row] * bytes, args->dst_stride[col] * bytes,
                         args->src_stride[row] * bytes, args->src_stride[col] * bytes, bytes);
        if (++item == end) return;
        for (int d = col;; d--) {
            at[d]++;
            dst += step[d] * args->dst_stride[d] * bytes;
            src += step[d] * args->src_stride[d] * bytes;
            if (at[d] < count[d]) break;
            dst -= count[d] * step[d] * args->dst_stride[d] * bytes;
            src -= count[d] * step[d] * args->src_stride[d] * bytes;
            at[d] = 0;
        }
    }
}

void tor_fill_bind(TorFillArgs *args) {
    for (int d = 0; d < args->copy.rank; d++) args->copy.src_stride[d] = 0;
    tor_copy_bind(&args->copy);
}

void tor_fill_run(const void *arg, int64_t begin, int64_t end, void *scratch) {
    const TorFillArgs *args = arg;
    TorCopyArgs copy = args->copy;
    copy.src = args->value;
    tor_copy_run(&copy, begin, end, scratch);
}

/// Attention's dispatch: which kernel row, how rows and keys are cut into items. How keys are cut,
/// which answers depend on, follows from the shape, the strides and the CPU's features, never from
/// the number of threads; how rows are cut follows from the number of CPUs too.
#include <math.h>

#include "base/alloc.h"
#include "base/cpu.h"
#include "kernels/attention/tiles.h"

#define TOR_ATTENTION_KERNEL(symbol, features, stream, rows, cols) TorAttentionFn symbol;
#include "kernels/attention/kernels.inc"
#undef TOR_ATTENTION_KERNEL

static const TorAttentionKernel kernels[] = {
#define TOR_ATTENTION_KERNEL(symbol, features, stream, rows, cols) \
    {#symbol, features, stream, rows, cols, symbol},
#include "kernels/attention/kernels.inc"
#undef TOR_ATTENTION_KERNEL
};

const TorAttentionKernel *tor_attention_kernel(int index) {
    return index >= 0 && index < (int)TOR_COUNT_OF(kernels) ? &kernels[index] : NULL;
}

const char *tor_attention_kernel_name(const TorAttentionKernel *kernel) { return kernel->name; }

/// What a wish may ask for at most: bounds scratch and the splits' memory.
enum { MOST_ROWS = 512, MOST_KEYS = 1024, MOST_SPLITS = 64 };

bool tor_attention_bind_kernel(TorAttentionArgs *args, const TorAttentionKernel *kernel) {
    if (kernel->features & ~tor_cpu_features()) return false;
    // Query heads that share a key head share tiles while one head alone does not fill them.
    int64_t repeat = args->g ? args->h / args->g : 1;
    args->row_heads = args->m < 32 ? TOR_MAX(repeat, 1) : 1;
    int64_t rows = args->row_heads * args->m, units = args->b * args->h / args->row_heads;
    if (kernel->stream && rows > kernel->rows) return false;
    args->kernel = kernel;

    // A high block reads keys and values seldom; but each CPU shall have some blocks.
    int64_t most = 256;
    while (most > 32 && units * tor_ceil_div(rows, most) < 3 * tor_cpu_count()) most /= 2;
    if (args->wish.row_block) most = TOR_MIN(args->wish.row_block, MOST_ROWS);
    int64_t blocks = TOR_MAX(tor_ceil_div(rows, most), 1);
    args->row_block =
        tor_round_up(TOR_MAX(tor_ceil_div(rows, blocks), 1), kernel->stream ? 1 : kernel->rows);
    blocks = tor_ceil_div(rows, args->row_block);
    // Rows see no key behind them.
    int64_t n = args->causal ? TOR_MIN(args->n, args->m) : args->n;
    int64_t tile = kernel->stream ? 512 : 256;
    if (args->wish.key_tile) tile = TOR_MIN(args->wish.key_tile, MOST_KEYS);
    int64_t tiles = TOR_MAX(tor_ceil_div(n, tile), 1);
    args->key_tile = TOR_MAX(tor_round_up(tor_ceil_div(n, tiles), kernel->cols), kernel->cols);

    args->kv_splits = 1;
    args->items = units * blocks;
    if (rows == 0 || args->e == 0) args->items = 0;
    if (kernel->stream && args->items && args->items < 32 && n >= 1024)
        args->kv_splits = TOR_MIN(tor_ceil_div(32, args->items), n / 512);
    if (args->wish.kv_splits)
        args->kv_splits = TOR_MAX(
            TOR_MIN(args->wish.kv_splits, TOR_MIN(args->n / args->key_tile, MOST_SPLITS)), 1);
    args->combine_items = args->kv_splits > 1 ? args->items : 0;
    args->items *= args->kv_splits;
    args->partial_bytes =
        args->kv_splits > 1
            ? (size_t)(args->items * args->row_block * tor_attention_partial_row(args)) *
                  sizeof(float)
            : 0;
    args->scratch_bytes = (size_t)tor_round_up(
        tor_attention_scratch(args, kernel).total * (int64_t)sizeof(float), TOR_CACHE_LINE);
    return true;
}

void tor_attention_bind(TorAttentionArgs *args) {
    if (args->wish.kernel && tor_attention_bind_kernel(args, args->wish.kernel)) return;
    // A stream row stands before the flash row of its level, and must win where it fits.
    for (int stream = 1; stream >= 0; stream--)
        for (int i = (int)TOR_COUNT_OF(kernels) - 1; i >= 0; i--)
            if (kernels[i].stream == stream && tor_attention_bind_kernel(args, &kernels[i])) return;
}

void tor_attention_run(const void *args, int64_t begin, int64_t end, void *scratch) {
    const TorAttentionArgs *a = args;
    a->kernel->run(a, begin, end, scratch);
}

void tor_attention_combine(const void *args, int64_t begin, int64_t end, void *scratch) {
    const TorAttentionArgs *a = args;
    float *acc = scratch;  // the front of a thread's scratch holds more than one row of e
    int64_t rows = a->row_heads * a->m, blocks = tor_ceil_div(rows, a->row_block),
            units = a->h / a->row_heads;
    int64_t part = tor_attention_partial_row(a);
    for (int64_t item = begin; item < end; item++) {
        int64_t row = item % blocks * a->row_block, unit = item / blocks % units,
                batch = item / blocks / units;
        for (int64_t i = 0; i < TOR_MIN(a->row_block, rows - row); i++) {
            const float *first =
                (const float *)a->partial + (item * a->kv_splits * a->row_block + i) * part;
            float top = -INFINITY, sum = 0;
            for (int64_t s = 0; s < a->kv_splits; s++) {
                float most = first[s * a->row_block * part + a->e];
                top = most > top ? most : top;
            }
            if (top == -INFINITY) top = 0;
            for (int64_t c = 0; c < a->e; c++) acc[c] = 0;
            for (int64_t s = 0; s < a->kv_splits; s++) {
                const float *from = first + s * a->row_block * part;
                float factor = expf(from[a->e] - top);
                sum += from[a->e + 1] * factor;
                for (int64_t c = 0; c < a->e; c++) acc[c] += from[c] * factor;
            }
            float *out = a->out + batch * a->out_stride[0] +
                         (unit * a->row_heads + (row + i) % a->row_heads) * a->out_stride[1] +
                         (row + i) / a->row_heads * a->out_stride[2];
            const float dead = a->nan_rows && a->n > 0 ? NAN : 1.0f;
            for (int64_t c = 0; c < a->e; c++)
                out[c * a->out_stride[3]] = acc[c] * (sum == 0 ? dead : 1.0f / sum);
        }
    }
}

/// Copy's kernels for one instruction set: a template for each element size, and the run of bytes.
#include "base/simd.h"
#include "kernels/copy/block.h"
#include "kernels/copy/transpose.h"

TorCopyFn TOR_KERNEL_IMPL(tor_copy_any, run);
void TOR_KERNEL_IMPL(tor_copy_any, run)(uint8_t *dst, const uint8_t *src, int64_t rows,
                                        int64_t cols, int64_t dst_row, int64_t dst_col,
                                        int64_t src_row, int64_t src_col, int64_t bytes) {
    (void)dst_col, (void)src_col;
    for (; rows > 0; rows--, dst += dst_row, src += src_row)
        memcpy(dst, src, (size_t)(cols * bytes));
}

#define BITS 8
#include "kernels/copy/blocks_tmpl.h"
#undef BITS
#define BITS 16
#include "kernels/copy/blocks_tmpl.h"
#undef BITS
#define BITS 32
#include "kernels/copy/blocks_tmpl.h"
#undef BITS
#define BITS 64
#include "kernels/copy/blocks_tmpl.h"
#undef BITS

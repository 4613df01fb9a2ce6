/// What the dispatch and the SIMD sources of attention share: a kernel's row and the scratch it
/// needs.
#ifndef TOR_KERNELS_ATTENTION_TILES_H
#define TOR_KERNELS_ATTENTION_TILES_H

#include "kernels/attention/contract.h"

typedef void TorAttentionFn(const TorAttentionArgs *args, int64_t begin, int64_t end,
                            void *scratch);

struct TorAttentionKernel {
    const char *name;
    uint32_t features;
    bool stream;     ///< reads K in rows; else in transposed panels
    int rows, cols;  ///< of a register tile (rows of q, keys); a stream kernel's rows are its most
    TorAttentionFn *run;
};

enum {
    TOR_ATTENTION_PASS = 4
};  ///< register tiles of rows that work on one panel while it is in L1

/// Offsets into a thread's scratch, in floats; each a multiple of 16.
typedef struct {
    int64_t q;     ///< packed rows of q, if its last stride is not 1
    int64_t k, v;  ///< packed panels; with a stream kernel rows, if a last stride is not 1
    int64_t s;     ///< scores, then probabilities
    int64_t acc;   ///< rows of the output, not yet divided
    int64_t top, sum, scale;  ///< a row's maximum, sum of probabilities, factor for its older part
    int64_t bias;             ///< a row of the mask as floats
    int64_t total;
    int64_t rows;                                       ///< of acc
    int64_t acc_stride, s_stride, q_row, k_row, v_row;  ///< elements
} TorAttentionScratch;

static inline TorAttentionScratch tor_attention_scratch(const TorAttentionArgs *args,
                                                        const TorAttentionKernel *kernel) {
    TorAttentionScratch s = {0};
    int64_t at = 0, pad = kernel->cols;
#define PLACE(field, floats) (s.field = at, at += tor_round_up(floats, 16))
    s.rows = kernel->stream ? args->row_block : tor_round_up(args->row_block, kernel->rows);
    s.acc_stride = tor_round_up(args->e, pad);
    s.s_stride = tor_round_up(args->key_tile, pad);
    s.q_row = s.k_row = tor_round_up(args->d, pad);
    s.v_row = s.acc_stride;
    PLACE(q, kernel->stream || args->q_stride[3] != 1 ? s.rows * s.q_row : 0);
    PLACE(k, kernel->stream ? (args->k_stride[3] != 1 ? args->key_tile * s.k_row : 0)
                            : s.s_stride * args->d);
    PLACE(v, kernel->stream ? (args->v_stride[3] != 1 ? args->key_tile * s.v_row : 0)
                            : args->key_tile * s.v_row);
    PLACE(s, (kernel->stream ? s.rows : TOR_ATTENTION_PASS * kernel->rows) * s.s_stride);
    PLACE(acc, s.rows * s.acc_stride);
    PLACE(top, s.rows);
    PLACE(sum, s.rows);
    PLACE(scale, s.rows);
    PLACE(bias, s.s_stride);
#undef PLACE
    s.total = at;
    return s;
}

/// A row of `partial`: the undivided output, then maximum and sum.
static inline int64_t tor_attention_partial_row(const TorAttentionArgs *args) {
    return tor_round_up(args->e + 2, 16);
}

/// Keys of a split: a multiple of the tile, so that tiles are the same whichever split they fall
/// in.
static inline int64_t tor_attention_split_keys(const TorAttentionArgs *args) {
    return tor_ceil_div(tor_ceil_div(args->n, args->key_tile), args->kv_splits) * args->key_tile;
}

#endif

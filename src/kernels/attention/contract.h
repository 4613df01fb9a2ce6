/// Attention family: out = softmax((keep ? scale * q k^T : fill) + mask) v, all float32, by online
/// softmax: scores are never stored beyond a tile (Dao 2023, "FlashAttention-2").
///
///     q [b, h, m, d], k [b, g, n, d], v [b, g, n, e], out [b, h, m, e];
///     mask, keep [b, h, m, n] or none
///
/// h is a multiple of g: query heads [i * h/g, (i+1) * h/g) read key/value head i. Strides are in
/// elements and may be anything, 0 too (a broadcast mask); out must not overlap itself or an input.
/// Last-axis strides of 1 in k, v and out are fast; others are packed first.
///
/// Numeric policy: float32 sums in the order of d and n, blocked; a row's order depends on the
/// shape and the row of kernels.inc only, never on the number of threads. As eager's CPU flash
/// attention (PyTorch 2.13, tried through F.scaled_dot_product_attention):
/// - a bool mask is an added mask of 0 and -inf; a NaN score stays NaN where -inf is added;
/// - keep replaces the product where it is 0, whatever that was (masked_fill() and where());
/// - causal replaces the scores of keys > query by -inf, whatever they were (top-left aligned);
/// - a row without any key (all -inf, either kind of mask, or n = 0) is 0 (but see nan_rows);
/// - a mask of the lowest finite float is a number like others: such a row is an even mean;
/// - probabilities of 0 are multiplied with v, so NaN or infinity in a masked row of v spreads to
///   the rows of its tile; whether causally hidden rows of v do so depends on tiles here and there.
/// Two differences. Stretches of keys that mask and keep hide (-inf) from all rows of an item, as
/// the part of a cache that is not filled yet, are not read, and NaN or infinity in them stays
/// there. A NaN score always makes its row NaN; eager gives 0 where it sits past the last whole
/// vector of a row that has no other score.
#ifndef TOR_KERNELS_ATTENTION_CONTRACT_H
#define TOR_KERNELS_ATTENTION_CONTRACT_H

#include "base/pool.h"

typedef enum {
    TOR_ATTENTION_NO_MASK,
    TOR_ATTENTION_MASK_BOOL,  ///< one byte; not 0 keeps
    TOR_ATTENTION_MASK_F32,   ///< added
} TorAttentionMask;

/// A row of kernels.inc.
typedef struct TorAttentionKernel TorAttentionKernel;

typedef struct {
    // Set before bind.
    int64_t b, h, g, m, n, d, e;  ///< any may be 0
    int64_t q_stride[4], k_stride[4], v_stride[4], mask_stride[4], keep_stride[4], out_stride[4];
    TorAttentionMask mask_kind;
    bool has_keep;
    float fill;  ///< what keep puts in the place of a score
    bool causal;
    bool nan_rows;  ///< a row of n > 0 keys that are all hidden is NaN, as a plain softmax has it;
                    ///< else 0
    float scale;

    // Wishes, 0 or NULL for bind's own choice; cut down to what the shape allows.
    struct {
        const TorAttentionKernel *kernel;
        int64_t row_block, key_tile, kv_splits;
    } wish;

    // Set before each run.
    const float *q, *k, *v;
    const void *mask;
    const uint8_t *keep;  ///< one byte; not 0 keeps
    float *out;
    void *partial;  ///< partial_bytes of memory, aligned to TOR_CACHE_LINE; NULL if that is 0

    // Set by bind.
    int64_t items;          ///< for tor_attention_run()
    size_t scratch_bytes;   ///< a thread, for either function
    int64_t combine_items;  ///< for tor_attention_combine(): 0 where kv_splits is 1
    size_t partial_bytes;   ///< shared by all threads, live from the first region to the second
    int64_t kv_splits;      ///< parts of n that are worked on apart
    const TorAttentionKernel *kernel;
    int64_t row_heads;  ///< private: query heads whose rows share a tile
    int64_t row_block;  ///< private: rows an item
    int64_t key_tile;   ///< private: keys a tile
    int64_t opaque[8];  ///< private
} TorAttentionArgs;

/// Chooses the kernel row, blocks and splits; from shape, strides, CPU features and wishes alone.
void tor_attention_bind(TorAttentionArgs *args);
/// As bind, with the row given (tests, tuner). @return false if this CPU or shape rules it out
bool tor_attention_bind_kernel(TorAttentionArgs *args, const TorAttentionKernel *kernel);
/// A TorRangeFn over `items`.
void tor_attention_run(const void *args, int64_t begin, int64_t end, void *scratch);
/// A TorRangeFn over `combine_items`, in a second region after tor_attention_run(); only if that is
/// > 0.
void tor_attention_combine(const void *args, int64_t begin, int64_t end, void *scratch);

/// Row `index` of kernels.inc, NULL past the last.
const TorAttentionKernel *tor_attention_kernel(int index);
const char *tor_attention_kernel_name(const TorAttentionKernel *kernel);

/// The oracle: whole rows of scores, in double. Needs no bind. `scores` has room for n.
void tor_attention_ref(const TorAttentionArgs *args, double *scores);

#endif

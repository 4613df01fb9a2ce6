/// GEMM family: c[m, n] = epilogue(a[m, k] * b[k, n] + bias[n]) in float32, over broadcast batches;
/// and the same without epilogue and packed b in float64 and in integers (tor_gemm_typed_bind()).
///
/// Numeric policy: every element of c is the sum, in order, of chains of at most 384 fused
/// multiply-adds in float32 over k in ascending order (two or four interleaved chains, or both
/// halves of a chain in turns, where few rows would leave the multipliers or the memory idle), then
/// + bias, one rounding. Long k with few elements is cut into parts that are added in order. The
/// order depends on shape and instruction set only: not on the number of threads, nor on where an
/// element's item begins.
///
/// Other types: float64 in chains of at most 256, or, where one or two rows meet contiguous
/// columns, in four vectors of chains over all of k; integers wrap at their own width.
///
/// Strides count elements. Kernels allocate nothing, start no thread and return no status.
/// Goto & van de Geijn 2008, "Anatomy of high-performance matrix multiplication", is the plan.
#ifndef TOR_KERNELS_GEMM_CONTRACT_H
#define TOR_KERNELS_GEMM_CONTRACT_H

#include "base/pool.h"
#include "kernels/pointwise/contract.h"

enum { TOR_GEMM_BATCH_RANK = 6 };

// Packed b: panels of NR columns, [ceil(n / NR)][k][NR] float32, zeros beyond n. NR depends on the
// instruction set alone (tor_gemm_panel()), so every gemm row of a machine reads the same format.
// Several matrices (groups, batches) lie one after the other.

/// NR of the instruction set in use: 8 generic, 24 AVX2, 32 AVX-512.
int64_t tor_gemm_panel(void);
/// Bytes of one packed [n, k] weight, a multiple of TOR_CACHE_LINE unless 0. Its matrices are this
/// far from each other.
size_t tor_gemm_packed_bytes(int64_t n, int64_t k);

typedef struct {
    int64_t n, k, n_stride,
        k_stride;  ///< weight [n, k]: element (j, p) is w[j * n_stride + p * k_stride]
    int64_t batch, batch_stride;  ///< matrices (>= 0)
    const float *w;               ///< set before each run
    float *packed;  ///< batch * tor_gemm_packed_bytes(); aligned to TOR_CACHE_LINE. Set before each
                    ///< run
    int64_t items;  ///< set by bind
    int64_t panel;  ///< set by bind
} TorGemmPackArgs;

void tor_gemm_pack_bind(TorGemmPackArgs *args);
/// A TorRangeFn; needs no scratch.
void tor_gemm_pack_run(const void *args, int64_t begin, int64_t end, void *scratch);

/// Writes a[row .. row + rows, k0 .. k0 + kc] of batch item `batch` to dst[rows][kc], row-major and
/// dense, in a's type.
typedef void (*TorGemmPackA)(const void *ctx, int64_t batch, int64_t row, int64_t rows, int64_t k0,
                             int64_t kc, void *dst);

typedef struct TorGemmKernel TorGemmKernel;
typedef struct TorGemmTypedKernel TorGemmTypedKernel;

/// Clear it, fill the problem, bind, then set the data and run as often as wanted.
typedef struct {
    // The problem. Any size may be 0 (k = 0: c is the bias, or zeros).
    int64_t m, n, k;
    int batch_rank;  ///< 0: one matrix
    int64_t batch_size[TOR_GEMM_BATCH_RANK];
    int64_t a_batch[TOR_GEMM_BATCH_RANK];  ///< strides of the batch dims; 0: broadcast
    int64_t
        b_batch[TOR_GEMM_BATCH_RANK];  ///< of packed b: multiples of tor_gemm_packed_bytes() / 4
    int64_t c_batch[TOR_GEMM_BATCH_RANK];
    int64_t bias_batch[TOR_GEMM_BATCH_RANK];
    int64_t a_row, a_col;  ///< a_col 1 is read in place
    bool b_packed;
    int64_t b_row, b_col;  ///< over k and over n, unless packed
    int64_t c_row;         ///< columns of c have stride 1
    TorGemmPackA pack_a;   ///< or NULL; then a, a_row, a_col, a_batch are unused
    const void *pack_ctx;  ///< may be set before each run
    /// Or NULL. Input 0 is the accumulator with bias added; batch item i is the linear index over
    /// batch_size, last dim fastest. c, c_row and c_batch are then unused: if output 0 is float32
    /// with column stride 1 its memory holds the accumulator meanwhile, so no *other* input may
    /// overlap output 0; otherwise scratch does. Program, strides and output types are set before
    /// bind.
    const TorEpilogue *epilogue;

    // Data, set before each run. Nothing may overlap c.
    const float *a, *b;
    const float *bias;  ///< [n] or NULL
    float *c;

    // Choices: 0 or NULL lets bind choose; the tuner sets them. Rows that do not fit are not
    // checked.
    const TorGemmKernel *kernel;
    const TorGemmTypedKernel *typed;  ///< tor_gemm_typed_bind()'s; otherwise unused
    int64_t mc, nc, kc;               ///< block sizes
    // Wishes, cut down to what the problem allows; float32 rows only.
    int64_t k_parts;     ///< parts that k is cut into
    int64_t left;        ///< rows of a: 1 in place if they can be, 2 copied first
    int64_t order;       ///< outer loop within a block: 1 blocks of k, 2 panels
    int64_t item_units;  ///< panels of an m block that one item does

    // Set by bind.
    int64_t items;         ///< parallel units, for tor_team_run()
    size_t scratch_bytes;  ///< a thread
    /// Mostly 0. Otherwise k is cut into parts: `shared` (one for all threads, aligned to
    /// TOR_CACHE_LINE, set before each run) takes the partial sums, and after the region over
    /// `items` a second one runs tor_gemm_join_run() over `join_items`, with the same scratch.
    size_t shared_bytes;
    int64_t join_items;
    float *shared;
    struct {
        const TorGemmKernel *tail;  // packed row for panels that the chosen row cannot take
        int64_t batches, m_blocks, panels;
        int64_t units, units_per_item;  // a unit is one panel of one m block of one batch item, of
                                        // one part of k
        int64_t k_parts, k_part;        // k is cut into parts of k_part, the last may be shorter
        bool copy_a, copy_b, own_c;     // through scratch; own_c: the accumulator is scratch
        bool dots;                      // typed: dot products of rows of a and columns of b
        bool panel_first;               // all k of a panel before the next panel
        size_t a_bytes, b_bytes, c_bytes;  // of scratch, in this order; the epilogue's follows
    } plan;                                ///< private
} TorGemmArgs;

/// Types that have rows: all but bool and the half types, whose contractions passes widen.
static inline bool tor_gemm_takes(TorDtype dtype) {
    return dtype != TOR_bool && !tor_dtype_is_half(dtype);
}

/// Well under 1 us, no allocation.
void tor_gemm_bind(TorGemmArgs *args);
/// TorRangeFn's.
void tor_gemm_run(const void *args, int64_t begin, int64_t end, void *scratch);
void tor_gemm_join_run(const void *args, int64_t begin, int64_t end, void *scratch);

/// Binds a problem whose a, b, bias and c hold elements of `dtype`: float64 or integers, not bool.
/// It has neither an epilogue nor a packed b. No allocation.
void tor_gemm_typed_bind(TorGemmArgs *args, TorDtype dtype);
/// A TorRangeFn over `items`.
void tor_gemm_typed_run(const void *args, int64_t begin, int64_t end, void *scratch);

// The tables of rows, for the tuner and tests.

/// One column panel of one block: c[rows, cols] (+)= a[rows, kc] * b[kc, NR].
typedef struct {
    const float *a, *b, *next;  ///< next: b that will be wanted soon, to prefetch
    float *c;
    const float *bias;       ///< NULL: none; cols of it are read
    int64_t rows, cols, kc;  ///< cols in 1..NR
    int64_t lda, ldb, ldc;   ///< row strides; ldb is NR for packed rows
    bool accumulate;         ///< adds to c
} TorGemmTile;

enum {
    TOR_GEMM_PACKED = 1
};  ///< flag: b is a packed panel; otherwise b's row stride is ldb and cols is NR

struct TorGemmKernel {
    const char *name;
    uint32_t features;  ///< TOR_CPU_ bits it needs
    int mr, nr;
    uint32_t flags;
    void (*run)(const TorGemmTile *tile);
};

/// dst[i * ld + j] = src[i * rs + j * cs] for i < rows, j < cols; fast where cs or rs is 1.
void tor_gemm_copy(float *dst, int64_t ld, const float *src, int64_t rs, int64_t cs, int64_t rows,
                   int64_t cols);

/// All rows of this build, lowest instruction set first.
const TorGemmKernel *tor_gemm_kernels(int *count);
/// This CPU's row for packed panels.
const TorGemmKernel *tor_gemm_packed_kernel(void);

/// Rows and columns of one matrix, and where that lies: offsets of row `row` of a and c, and of the
/// matrix of b and bias, in elements.
typedef struct {
    int64_t batch, row, rows, col, cols;
    int64_t a, b, c, bias;
} TorGemmBlock;

typedef void TorGemmBlockFn(const TorGemmArgs *args, const TorGemmBlock *block, void *scratch);

struct TorGemmTypedKernel {
    const char *name;
    bool is_float;
    size_t bytes;  ///< of an element
    uint32_t features;
    int mr, nr;
    TorGemmBlockFn *run;
};

/// All rows of this build for other types than float32, lowest instruction set first.
const TorGemmTypedKernel *tor_gemm_typed_kernels(int *count);
bool tor_gemm_typed_takes(const TorGemmTypedKernel *kernel, TorDtype dtype);

/// The oracle: plain loops, sums in double. `args` as for run, bound or not; b may be packed. Runs
/// the epilogue too.
void tor_gemm_run_ref(const TorGemmArgs *args, void *epilogue_scratch);
/// The oracle for other types: long double for float64, int64 that wraps for integers.
void tor_gemm_typed_run_ref(const TorGemmArgs *args, TorDtype dtype);

#endif

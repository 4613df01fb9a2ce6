/// Inside the pointwise family: tile functions and their tables, the prepared program, the bound
/// map.
///
/// A tile is up to TOR_TILE_MAX consecutive elements of the index space. Everything an operation
/// can read or write has a slot: a pointer that the drivers move from tile to tile.
#ifndef TOR_KERNELS_POINTWISE_ENGINE_H
#define TOR_KERNELS_POINTWISE_ENGINE_H

#include "kernels/pointwise/contract.h"

/// Super-instructions, float32 only: what peephole.c makes of two instructions.
/// X(name, arity, expression of x, y, z)
#define TOR_FUSED(X)                            \
    X(add_gelu_erf, 2, vf32_gelu_erf(x + y))    \
    X(add_gelu_tanh, 2, vf32_gelu_tanh(x + y))  \
    X(add_relu, 2, relu(x + y))                 \
    X(mul_add_relu, 3, relu(vf32_fma(x, y, z))) \
    X(add_silu, 2, vf32_silu(x + y))            \
    X(silu_mul, 2, vf32_silu(x) * y)            \
    X(gelu_erf_mul, 2, vf32_gelu_erf(x) * y)    \
    X(gelu_tanh_mul, 2, vf32_gelu_tanh(x) * y)  \
    X(sub_exp, 2, vf32_exp(x - y))              \
    X(sub_mul, 3, (x - y) * z)                  \
    X(add_mul, 3, (x + y) * z)                  \
    X(mul_mul, 3, (x * y) * z)                  \
    X(add_add, 3, (x + y) + z)

enum {
    TOR_TILE_FIRST_FUSED_ = TOR_FN_COUNT - 1,
#define X(name, arity, expr) TOR_TILE_##name,
    TOR_FUSED(X)
#undef X
        TOR_TILE_load_half,  ///< half memory to float32
    TOR_TILE_store_half,     ///< float32 to half memory
    TOR_TILE_FN_COUNT,
};

/// What a reduction makes of one tile. `f` or `i` by type; moments: f the mean, f2 the sum of
/// squared differences from it; `at` is a position in the tile.
typedef struct {
    double f, f2;
    int64_t i, at;
} TorPartial;
typedef void (*TorPartialFn)(TorPartial *out, const void *x, int64_t n);

/// Column reductions that no TorTileFn does. `row` is the position in the row of these n columns.
typedef void (*TorColumnFn)(void *state, const void *x, int64_t row, int64_t n);

/// Adds `rows` rows, `stride` elements apart, to the block of sums of n columns.
typedef void (*TorColumnRowsFn)(void *state, const void *x, int64_t stride, int64_t rows,
                                int64_t n);

enum { TOR_REDUCE_KINDS = TOR_REDUCE_moments + 1 };

/// The functions of one instruction set.
typedef struct {
    const TorTileFn (*f32)[8];                  ///< [fn][mask of scalar operands]; NULL: splat them
    const TorTileFn (*plain)[TOR_DTYPE_COUNT];  ///< [fn][type], vectors only
    const TorTileFn (*cast)[TOR_DTYPE_COUNT];   ///< [from][to], compute types
    TorTileFn load_half[2], store_half[2],
        round_half[2];                               ///< float16, bfloat16; round works in place
    const TorPartialFn (*partial)[TOR_DTYPE_COUNT];  ///< [reduce kind][type]
    TorColumnRowsFn column_rows[2];                  ///< float32, float64
    const TorColumnFn (
        *column)[TOR_DTYPE_COUNT];  ///< argmax, argmin, moments; and sum: block to total
} TorPointwiseTable;

extern const TorPointwiseTable tor_pointwise_table_any__generic, tor_pointwise_table_any__avx2,
    tor_pointwise_table_any__avx512;
const TorPointwiseTable *tor_pointwise_table_any(void);  ///< best for the features now

// Slots. Row slots: the program's row values, then half-typed row outputs before their rounding,
// then half-typed inputs of row instructions.
enum {
    SLOT_INPUT = 0,
    SLOT_OUTPUT = SLOT_INPUT + TOR_PROGRAM_INPUTS,
    SLOT_IMM = SLOT_OUTPUT + TOR_PROGRAM_OUTPUTS,
    SLOT_ROW = SLOT_IMM + TOR_PROGRAM_IMMS,
    TOR_ROW_SLOTS = TOR_PROGRAM_ROWS + TOR_PROGRAM_OUTPUTS + TOR_PROGRAM_INPUTS,
    SLOT_BUF = SLOT_ROW + TOR_ROW_SLOTS,
    TOR_BUFS = TOR_PROGRAM_INSTRS + TOR_PROGRAM_INPUTS,
    SLOT_SPLAT = SLOT_BUF + TOR_BUFS,
    SLOT_ERROR = SLOT_SPLAT + 3,  ///< the caller's flag, or NULL
    SLOT_COUNT,
};

enum {
    TOR_OPS = TOR_PROGRAM_INSTRS + TOR_PROGRAM_INPUTS + TOR_PROGRAM_OUTPUTS,
    TOR_STAGES = TOR_PROGRAM_REDUCTIONS + 1
};

/// One operation of a prepared program. Types are compute types.
typedef struct {
    uint8_t fn, type, to;
    uint8_t half;  ///< TorDtype that the result is rounded to (or that memory holds), or 0
    uint8_t stage, arity;
    uint8_t row;          ///< runs once a row
    uint8_t again;        ///< stages in which it runs if no register is kept from stage to stage
    uint8_t dst, src[3];  ///< slots
} TorOp;

typedef struct {
    uint8_t kind, type, half, stage, row, src;
} TorRowOp;

typedef struct {
    const TorPointwiseTable *table;
    uint64_t imm[TOR_PROGRAM_IMMS];  ///< in their compute type
    TorOp op[TOR_OPS];
    TorRowOp reduce[TOR_PROGRAM_REDUCTIONS];
    uint8_t buf_bytes[TOR_BUFS];  ///< of an element
    uint8_t buf_kept[TOR_BUFS];   ///< read in a later stage than it is written
    uint8_t row_bytes[TOR_ROW_SLOTS];
    uint8_t n_ops, n_bufs, n_rows, n_reductions, n_stages, n_inputs,
        n_outputs;   ///< n_rows: row slots in use
    uint8_t widest;  ///< bytes of the widest element of any slot
    uint8_t row_reads_input, has_arg;
    uint8_t output0_early;    ///< input 0 is read after output 0 is written
    uint32_t read_inputs;     ///< inputs that any op or reduction reads
    uint32_t reduced_inputs;  ///< inputs that a reduction reads directly
} TorReady;
_Static_assert(sizeof(TorReady) <= sizeof(((TorPrepared *)0)->opaque), "TorPrepared is too small");

/// An operation with its function chosen for the operands' strides.
typedef struct {
    TorTileFn fn, round;
    uint8_t dst, src[3];
    uint8_t bytes[4];  ///< of an element of dst, src
    uint8_t stage, again;
    uint8_t row;
    uint8_t splat;    ///< operands to splat first
    uint8_t scalars;  ///< operands that are one value
    uint8_t by_row;   ///< groups: reads row values, so runs row by row
    uint8_t divides;  ///< integers: operand 1 must not be zero
} TorBoundOp;

enum { TOR_MODE_map, TOR_MODE_rows, TOR_MODE_group, TOR_MODE_columns };
enum {
    TOR_ACCESS_direct,
    TOR_ACCESS_scalar,
    TOR_ACCESS_gather,
    TOR_ACCESS_fixed /* gathered once */
};

typedef struct {
    const TorReady *ready;
    uint8_t n_ops, mode, block;  ///< block: a tile is `rows` whole inner rows; else a chunk of one
    uint8_t keep;                ///< kept registers live in whole-row buffers
    uint8_t space;               ///< first dim that tiles walk
    uint8_t access[TOR_MAP_OPERANDS];
    uint8_t chosen_mode, chosen_access[TOR_MAP_OPERANDS];  ///< for which functions were chosen
    int64_t inner;          ///< elements of the innermost dim (of columns: the lane dim)
    int64_t chunk, chunks;  ///< elements of a chunk, chunks in an inner row
    int64_t rows;           ///< block: inner rows in a tile
    int64_t inner_rows;     ///< inner rows in the space
    int64_t tiles;          ///< in the space
    int64_t length;         ///< elements in a reduction's row
    size_t tile_bytes;      ///< of a buffer
    int64_t row_lanes;      ///< rows whose row values are held at once
    // Bytes from the start of scratch.
    uint32_t buf_at, splat_at, row_at, state_at, gather_at[TOR_MAP_OPERANDS], keep_at[TOR_BUFS];
} TorBound;
_Static_assert(sizeof(TorBound) <= sizeof(((TorMapArgs *)0)->opaque), "TorMapArgs is too small");
_Static_assert(sizeof(TorBoundOp) * TOR_OPS <= sizeof(((TorMapArgs *)0)->opaque_ops),
               "TorMapArgs is too small");

/// The operations, which lie behind the strides of the program's operands.
static inline TorBoundOp *tor_bound_ops(const TorMapArgs *args, const TorBound *bound) {
    return (TorBoundOp *)(uintptr_t)args->stride[bound->ready->n_inputs + bound->ready->n_outputs];
}

enum { TOR_TILE_MAX = 1024, TOR_KEEP_BYTES = 256 << 10, TOR_COLUMNS = 256 };

/// Chooses `out->fn` for the scalar operands in `scalars`.
void tor_bound_op(TorBoundOp *out, const TorReady *ready, const TorOp *op, unsigned scalars);
/// The program's instructions with super-instructions formed; returns how many.
int tor_peephole(const TorProgram *program, TorInstr *instr);

/// Raises the flag if any of n integers of `bytes` bytes is zero.
void tor_check_divisors(int *error, const void *divisors, size_t bytes, int64_t n);

/// Runs one op over n elements.
void tor_run_splat(const TorBoundOp *op, uint8_t *const *slot, int64_t n);
static inline void tor_run_op(const TorBoundOp *op, uint8_t *const *slot, int64_t n) {
    if (__builtin_expect(op->divides, 0))
        tor_check_divisors((int *)slot[SLOT_ERROR], slot[op->src[1]], op->bytes[2],
                           op->scalars & 2 ? TOR_MIN(n, 1) : n);
    if (__builtin_expect(op->splat, 0)) {
        tor_run_splat(op, slot, n);
    } else {
        op->fn(slot[op->dst], slot[op->src[0]], slot[op->src[1]], slot[op->src[2]], n);
    }
    if (op->round) op->round(slot[op->dst], slot[op->dst], NULL, NULL, n);
}

// Strided copies (gather.c); strides in elements.
void tor_tile_gather(void *dst, const void *src, size_t bytes, int64_t stride, int64_t n);
void tor_tile_scatter(void *dst, const void *src, size_t bytes, int64_t stride, int64_t n);
/// `rows` inner rows from position `index` of dims [0, rank) on, each of `inner` elements.
void tor_block_gather(void *dst, const void *src, size_t bytes, int rank, const int64_t *size,
                      const int64_t *stride, const int64_t *index, int64_t rows, int64_t inner,
                      int64_t inner_stride);
void tor_block_scatter(void *dst, const void *src, size_t bytes, int rank, const int64_t *size,
                       const int64_t *stride, const int64_t *index, int64_t rows, int64_t inner,
                       int64_t inner_stride);

// A row's accumulation over its tiles (reduce.c).
typedef struct {
    double f, f2;
    int64_t i, at, n;
} TorAcc;
void tor_acc_start(TorAcc *acc, int kind, int type);
void tor_acc_add(TorAcc *acc, int kind, int type, const TorPartial *part, int64_t n,
                 int64_t position);
void tor_acc_finish(const TorAcc *acc, const TorRowOp *op, void *row, void *second);

/// Columns: bytes of state a column, and the same three steps over n columns.
enum { TOR_COLUMN_BYTES = 32, TOR_COLUMN_BLOCK = 64 };
void tor_columns_start(void *state, const TorRowOp *op, int64_t n);
void tor_columns_add(void *state, const TorReady *ready, const TorRowOp *op, const void *x,
                     int64_t row, int64_t n);
/// A sum whose operand is read in place: rows that lie `stride` elements apart, at once.
void tor_columns_add_rows(void *state, const TorReady *ready, const TorRowOp *op, const void *x,
                          int64_t stride, int64_t rows, int64_t n);
void tor_columns_finish(void *state, const TorReady *ready, const TorRowOp *op, int64_t length,
                        int64_t n, void *row, void *second);

// Drivers.
void tor_run_map(const TorMapArgs *args, const TorBound *bound, int64_t begin, int64_t end,
                 uint8_t *scratch);
void tor_run_rows(const TorMapArgs *args, const TorBound *bound, int64_t begin, int64_t end,
                  uint8_t *scratch);
void tor_run_group(const TorMapArgs *args, const TorBound *bound, int64_t begin, int64_t end,
                   uint8_t *scratch);
void tor_run_columns(const TorMapArgs *args, const TorBound *bound, int64_t begin, int64_t end,
                     uint8_t *scratch);

#endif

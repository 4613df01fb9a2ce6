/// Pointwise family: runs a TorProgram over strided, broadcast operands, as a loop of its own
/// (maps, reductions, softmax, norms) or as the epilogue of another family's kernel.
///
/// Numeric policy: float32 in float32, float64 in float64, integers at their own width (wrapping),
/// halves in float32 with one rounding an instruction. Sums of float32 accumulate in several
/// float32 lanes with pairwise combination (never one running sum), of halves in float32, integers
/// in int64. An integer divided by zero gives 0 and raises the caller's flag. The order depends on
/// shape and instruction set only, never on the number of threads.
#ifndef TOR_KERNELS_POINTWISE_CONTRACT_H
#define TOR_KERNELS_POINTWISE_CONTRACT_H

#include "base/pool.h"
#include "base/program.h"

enum { TOR_MAP_RANK = 12, TOR_MAP_OPERANDS = TOR_PROGRAM_INPUTS + TOR_PROGRAM_OUTPUTS };

/// A program made ready to run on this CPU: super-instructions formed, registers laid onto few
/// buffers, functions chosen. Plain memory of the caller, immutable afterwards and free to copy or
/// share between threads. Make it once a step (about 1 us), when the plan's skeleton is built.
typedef struct {
    const TorProgram *program;
    uint64_t hash;         ///< of what the program holds
    uint64_t opaque[256];  ///< private
} TorPrepared;

/// `program` has passed tor_program_verify() and is borrowed for the life of `out`.
void tor_program_prepare(TorPrepared *out, const TorProgram *program);

/// Clear it before the first bind. A context that holds many of them gives each only the
/// tor_map_args_bytes() that its program needs.
typedef struct {
    const TorProgram *program;
    int rank;              ///< after merging: outer dims, then the row's dims
    int row_rank;          ///< trailing dims that the reductions run over; 0 without reductions
    int64_t wish;          ///< elements of a tile, cut down to what fits; 0: bind's own choice
    int *error;            ///< NULL after bind; else becomes 1 where an integer is divided by zero
    int64_t items;         ///< parallel units, for tor_team_run()
    size_t scratch_bytes;  ///< a thread; a multiple of TOR_CACHE_LINE
    int64_t size[TOR_MAP_RANK];
    void *data[TOR_MAP_OPERANDS];  ///< set by the caller before each run
    uint64_t opaque[64];           ///< private
    int64_t stride[TOR_MAP_OPERANDS]
                  [TOR_MAP_RANK];  ///< elements; 0: broadcast. Inputs, then outputs
    uint64_t opaque_ops[240];      ///< private; begins where the program's last stride ends
} TorMapArgs;

/// Bytes from the start of a TorMapArgs that binding and running the program touch.
size_t tor_map_args_bytes(const TorPrepared *prepared);

/// Chooses tiles and merges dims. No allocation; a few hundred ns. Operand k's strides are
/// stride[k][0..rank), inputs first, outputs from k = n_inputs on (and so in args->data); for an
/// output with output_row the row dims' strides are ignored, and an input that a row instruction
/// reads has stride 0 there. `prepared` and its program are borrowed for the life of args. Any size
/// may be 0.
///
/// An output may be the memory of an input of the same type and strides if no instruction after the
/// one that writes the output reads that input. Any other overlap of outputs is the caller's
/// mistake.
void tor_map_bind(TorMapArgs *args, const TorPrepared *prepared, int rank, int row_rank,
                  const int64_t *size, const int64_t (*stride)[TOR_MAP_RANK]);
/// A TorRangeFn.
void tor_map_run(const void *args, int64_t begin, int64_t end, void *scratch);

/// A program as epilogue: input 0 is the accumulator tile in float32, the others are operands that
/// broadcast to [batch, rows, cols]. No reductions.
typedef struct {
    const TorProgram *program;
    void *data[TOR_MAP_OPERANDS];  ///< inputs from 1, then outputs from n_inputs; [0] is unused
    int64_t batch_stride[TOR_MAP_OPERANDS], row_stride[TOR_MAP_OPERANDS],
        col_stride[TOR_MAP_OPERANDS];
    TorPrepared prepared;  ///< private
} TorEpilogue;

/// Prepares the program (about 1 us). The caller sets data and strides, before or after.
void tor_epilogue_bind(TorEpilogue *epilogue, const TorProgram *program);
/// Bytes of scratch a thread for tiles of up to `cols` columns. The epilogue is bound.
size_t tor_epilogue_scratch(const TorEpilogue *epilogue, int64_t cols);
/// Runs over the tile [row, row + rows) x [col, col + cols) of batch item `batch`. acc[r *
/// acc_stride + c] may be the memory of output 0 itself.
void tor_epilogue_run(const TorEpilogue *epilogue, int64_t batch, int64_t row, int64_t rows,
                      int64_t col, int64_t cols, const float *acc, int64_t acc_stride,
                      void *scratch);

/// dst[i] = f(a[i], b[i], c[i]). dst may be one of the sources if their elements have one size.
typedef void (*TorTileFn)(void *dst, const void *a, const void *b, const void *c, int64_t n);

/// An epilogue that a kernel can apply to a tile of sums on their way from its registers:
/// out0 = fn(min(max(acc + in[add], low), high)).
typedef struct {
    int add;          ///< the input that is added; 0: none
    float low, high;  ///< low <= high; infinite: no bound
    int fn;           ///< TOR_FN_, of one operand; TOR_FN_copy: none
    TorTileFn apply;  ///< what fn does; NULL: nothing
} TorRegisterEpilogue;

/// Whether `program`, an epilogue's, is of that kind and all in float32. NaN comes through the
/// bounds, and so does a zero of either sign that equals one.
bool tor_epilogue_in_registers(const TorProgram *program, TorRegisterEpilogue *out);

/// The oracle: one element at a time, float operations in double (rounded to the instruction's type
/// after each), sums in double.
void tor_map_run_ref(const TorMapArgs *args);

#endif

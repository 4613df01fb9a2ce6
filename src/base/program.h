/// Pointwise programs: what a fused chain of elementwise nodes and row reductions becomes.
///
/// A program is data. Passes write it, the pointwise family runs it, other families run it as their
/// epilogue. It is a list of stages over an index space [outer..., row axis...]:
///
///     stage 0: instructions on elements, then reductions over the row that give row values
///     stage 1: instructions that may use those row values, then further reductions ...
///     last stage: instructions only
///
/// A program without reductions has one stage and no row axis. Softmax is: max; e = exp(x - max),
/// sum of e; e / sum. Layer norm is: moments; (x - mean) * rsqrt(var + eps) * gamma + beta.
///
/// An instruction applies a scalar function (base/scalar_fn.inc) or a cast in type `type` to
/// operands: registers, program inputs, immediates or row values. It writes a register, a program
/// output, or a row value or an output with output_row (then its operands are row values,
/// immediates or inputs that are constant over the row, and it runs once a row, before the elements
/// of its stage). Registers are single-assignment; so are row values. Half-typed instructions
/// compute in float32 and round the result to the half type.
#ifndef TOR_BASE_PROGRAM_H
#define TOR_BASE_PROGRAM_H

#include "base/dtype.h"

typedef enum {
#define TOR_FN(name, arity, result, doc) TOR_FN_##name,
#include "base/scalar_fn.inc"
#undef TOR_FN
    TOR_FN_cast,  ///< from `type` to `to`, eager's rules
    TOR_FN_COUNT
} TorScalarFn;

const char *tor_fn_name(TorScalarFn fn);
int tor_fn_arity(TorScalarFn fn);

typedef enum {
    TOR_OPERAND_NONE,
    TOR_OPERAND_REG,
    TOR_OPERAND_INPUT,
    TOR_OPERAND_IMM,
    TOR_OPERAND_ROW,
    TOR_OPERAND_OUTPUT
} TorOperandKind;

typedef struct {
    uint8_t kind;  ///< TorOperandKind
    uint8_t index;
} TorOperand;

typedef struct {
    uint8_t fn;    ///< TorScalarFn
    uint8_t type;  ///< TorDtype of the operands (of operands 1 and 2 for where)
    uint8_t to;    ///< TorDtype of the result
    uint8_t stage;
    TorOperand dst;
    TorOperand src[3];
} TorInstr;

typedef enum {
    TOR_REDUCE_sum,
    TOR_REDUCE_prod,
    TOR_REDUCE_max,
    TOR_REDUCE_min,
    TOR_REDUCE_argmax,
    TOR_REDUCE_argmin,  ///< position in the row, int64
    TOR_REDUCE_any,
    TOR_REDUCE_all,
    TOR_REDUCE_length,   ///< the number of elements of a row; needs no operand
    TOR_REDUCE_moments,  ///< two row values: mean, and sum of squared differences / row length
} TorReduceKind;

typedef struct {
    uint8_t kind;    ///< TorReduceKind
    uint8_t type;    ///< TorDtype of the operand and of the accumulation's result
    uint8_t stage;   ///< after the instructions of this stage
    uint8_t dst;     ///< first row value it makes
    TorOperand src;  ///< register or input
} TorReduction;

enum {
    TOR_PROGRAM_INPUTS = 16,
    TOR_PROGRAM_OUTPUTS = 4,
    TOR_PROGRAM_INSTRS = 40,
    TOR_PROGRAM_IMMS = 24,
    TOR_PROGRAM_REDUCTIONS = 6,
    TOR_PROGRAM_ROWS = 16
};

/// Cleared before it is filled, so that equal programs are equal bytes.
typedef struct {
    uint8_t n_inputs, n_outputs, n_instrs, n_imms, n_reductions, n_stages, n_regs, n_rows;
    uint8_t input_type[TOR_PROGRAM_INPUTS];  ///< TorDtype in memory
    uint8_t output_type[TOR_PROGRAM_OUTPUTS];
    uint8_t output_row[TOR_PROGRAM_OUTPUTS];  ///< 1: one element a row (no row axis)
    TorInstr instr[TOR_PROGRAM_INSTRS];       ///< in order; stages ascend
    TorReduction reduction[TOR_PROGRAM_REDUCTIONS];
    TorScalar imm[TOR_PROGRAM_IMMS];  ///< typed as the instruction reads them (float32 for halves)
} TorProgram;

/// Whether `fn` is defined for operands of `type`: no shifts of floats, no exp of integers.
/// Functions that are the identity there (ceil of an integer) are.
bool tor_fn_takes(TorScalarFn fn, TorDtype type);
/// Type of the result of `fn` on operands of `type`; for a cast, `to` itself.
TorDtype tor_fn_result(TorScalarFn fn, TorDtype type, TorDtype to);
const char *tor_reduce_name(TorReduceKind kind);
/// Type of the row values that a reduction of `type` makes.
TorDtype tor_reduce_result(TorReduceKind kind, TorDtype type);

/// @return TOROID_INVALID with the broken rule (undefined register, stage order, types, ...)
ToroidStatus tor_program_verify(const TorProgram *program);
/// "r0 = add.float32 in0, in1\nout0 = gelu_erf.float32 r0\n", one instruction a line, "--" between
/// stages. Cut off where `bytes` end. Returns text.
const char *tor_program_print(const TorProgram *program, char *text, size_t bytes);

#endif

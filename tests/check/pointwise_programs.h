/// Programs of the pointwise engine written by hand, for its checks and its benches.
#ifndef TOR_CHECK_POINTWISE_PROGRAMS_H
#define TOR_CHECK_POINTWISE_PROGRAMS_H

#include "kernels/pointwise/contract.h"

#define IN(i) ((TorOperand){TOR_OPERAND_INPUT, (uint8_t)(i)})
#define OUT(i) ((TorOperand){TOR_OPERAND_OUTPUT, (uint8_t)(i)})
#define REG(i) ((TorOperand){TOR_OPERAND_REG, (uint8_t)(i)})
#define ROW(i) ((TorOperand){TOR_OPERAND_ROW, (uint8_t)(i)})
#define NONE ((TorOperand){0})

/// Adds a constant.
TorOperand imm(TorProgram *p, TorScalar value);
TorOperand imm_f(TorProgram *p, TorDtype type, double f);
/// Adds an instruction; operands that it does not take are NONE.
void emit(TorProgram *p, TorScalarFn fn, TorDtype type, TorDtype to, int stage, TorOperand dst,
          TorOperand a, TorOperand b, TorOperand c);
/// Adds a reduction into row value `dst`, at the end of `stage`.
void reduce(TorProgram *p, TorReduceKind kind, TorDtype type, int stage, int dst, TorOperand src);
/// Adds an input; its number.
int input(TorProgram *p, TorDtype type);
/// Says what output `k` is.
void output(TorProgram *p, int k, TorDtype type, bool row);

/// Whole programs over rows, with all their inputs and outputs.
void softmax(TorProgram *p, TorDtype type);
void log_softmax(TorProgram *p, TorDtype type);
void layer_norm(TorProgram *p, TorDtype type);
void rms_norm(TorProgram *p, TorDtype type);
void plain_reduction(TorProgram *p, TorReduceKind kind, TorDtype type);

#endif

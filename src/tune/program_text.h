/// Pointwise programs as one word, for params: "ff.f.1.0|add.ffr0i0i1|relu.ffo0r0".
///
/// Types are single letters, operands a letter and a number: r register, i input, m immediate,
/// v row value, o output. The head has the types of the inputs and of the outputs ("*" after one
/// that has one element a row), and how many registers and row values there are. Then come
/// instructions "function.<type><result type><dst><sources>" and reductions
/// "+kind.<type><dst><src>";
/// "/" begins the next stage. "#<type><number>" are the immediates.
#ifndef TOR_TUNE_PROGRAM_TEXT_H
#define TOR_TUNE_PROGRAM_TEXT_H

#include "kernels/pointwise/contract.h"
#include "tune/params.h"
#include "tune/tunable.h"

void tor_program_put(TorText *t, const TorProgram *program);
/// @return whether `text`, `length` long, is a program that tor_program_verify() accepts
bool tor_program_read(const char *text, size_t length, TorProgram *out);

/// Fields "epilogue" and "strides"; nothing for NULL.
void tor_params_put_epilogue(TorText *t, const TorEpilogue *epilogue);
/// @return false without such fields; the program is from `arena`. NULL memory leaves p->wrong set
bool tor_params_get_epilogue(TorParams *p, TorArena *arena, TorEpilogue *epilogue);
/// The operands of an epilogue over [batches, rows, cols] but for the sums, into `list` unless that
/// is NULL.
/// @return false if an operand's elements are none that memory of its own could hold
bool tor_tune_epilogue(const TorEpilogue *epilogue, int64_t batches, int64_t rows, int64_t cols,
                       TorTuneOperands *list);
/// Type of a program's operand: inputs, then outputs.
TorDtype tor_program_operand_type(const TorProgram *program, int i);
/// Of the program and the strides.
uint64_t tor_epilogue_hash(const TorEpilogue *epilogue, uint64_t hash);

#endif

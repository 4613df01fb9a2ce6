#include "pointwise_programs.h"

TorOperand imm(TorProgram *p, TorScalar value) {
    p->imm[p->n_imms] = value;
    return (TorOperand){TOR_OPERAND_IMM, p->n_imms++};
}
TorOperand imm_f(TorProgram *p, TorDtype type, double f) {
    return imm(p,
               tor_scalar_cast((TorScalar){.dtype = TOR_float64, .f = f}, tor_dtype_compute(type)));
}

void emit(TorProgram *p, TorScalarFn fn, TorDtype type, TorDtype to, int stage, TorOperand dst,
          TorOperand a, TorOperand b, TorOperand c) {
    TorInstr *instr = &p->instr[p->n_instrs++];
    *instr = (TorInstr){.fn = (uint8_t)fn,
                        .type = (uint8_t)type,
                        .to = (uint8_t)to,
                        .stage = (uint8_t)stage,
                        .dst = dst,
                        .src = {a, b, c}};
    if (dst.kind == TOR_OPERAND_REG) p->n_regs = TOR_MAX(p->n_regs, (uint8_t)(dst.index + 1));
    if (dst.kind == TOR_OPERAND_ROW) p->n_rows = TOR_MAX(p->n_rows, (uint8_t)(dst.index + 1));
    if (dst.kind == TOR_OPERAND_OUTPUT)
        p->n_outputs = TOR_MAX(p->n_outputs, (uint8_t)(dst.index + 1));
}
void reduce(TorProgram *p, TorReduceKind kind, TorDtype type, int stage, int dst, TorOperand src) {
    p->reduction[p->n_reductions++] = (TorReduction){.kind = (uint8_t)kind,
                                                     .type = (uint8_t)type,
                                                     .stage = (uint8_t)stage,
                                                     .dst = (uint8_t)dst,
                                                     .src = src};
    p->n_rows = TOR_MAX(p->n_rows, (uint8_t)(dst + 1 + (kind == TOR_REDUCE_moments)));
    p->n_stages = (uint8_t)(stage + 2);
}
int input(TorProgram *p, TorDtype type) {
    p->input_type[p->n_inputs] = (uint8_t)type;
    return p->n_inputs++;
}
void output(TorProgram *p, int k, TorDtype type, bool row) {
    p->output_type[k] = (uint8_t)type;
    p->output_row[k] = row;
}

void softmax(TorProgram *p, TorDtype type) {
    int x = input(p, type);
    output(p, 0, type, false);
    reduce(p, TOR_REDUCE_max, type, 0, 0, IN(x));
    emit(p, TOR_FN_sub, type, type, 1, REG(0), IN(x), ROW(0), NONE);
    emit(p, TOR_FN_exp, type, type, 1, REG(1), REG(0), NONE, NONE);
    reduce(p, TOR_REDUCE_sum, type, 1, 1, REG(1));
    emit(p, TOR_FN_reciprocal, type, type, 2, ROW(2), ROW(1), NONE, NONE);
    emit(p, TOR_FN_mul, type, type, 2, OUT(0), REG(1), ROW(2), NONE);
}
void log_softmax(TorProgram *p, TorDtype type) {
    int x = input(p, type);
    output(p, 0, type, false);
    reduce(p, TOR_REDUCE_max, type, 0, 0, IN(x));
    emit(p, TOR_FN_sub, type, type, 1, REG(0), IN(x), ROW(0), NONE);
    emit(p, TOR_FN_exp, type, type, 1, REG(1), REG(0), NONE, NONE);
    reduce(p, TOR_REDUCE_sum, type, 1, 1, REG(1));
    emit(p, TOR_FN_log, type, type, 2, ROW(2), ROW(1), NONE, NONE);
    emit(p, TOR_FN_sub, type, type, 2, OUT(0), REG(0), ROW(2), NONE);
}
void layer_norm(TorProgram *p, TorDtype type) {
    int x = input(p, type), gamma = input(p, type), beta = input(p, type);
    output(p, 0, type, false);
    output(p, 1, type, true);
    reduce(p, TOR_REDUCE_moments, type, 0, 0, IN(x));
    emit(p, TOR_FN_add, type, type, 1, ROW(2), ROW(1), imm_f(p, type, 1e-5), NONE);
    emit(p, TOR_FN_rsqrt, type, type, 1, ROW(3), ROW(2), NONE, NONE);
    emit(p, TOR_FN_sub, type, type, 1, REG(0), IN(x), ROW(0), NONE);
    emit(p, TOR_FN_mul, type, type, 1, REG(1), REG(0), ROW(3), NONE);
    emit(p, TOR_FN_mul, type, type, 1, REG(2), REG(1), IN(gamma), NONE);
    emit(p, TOR_FN_add, type, type, 1, OUT(0), REG(2), IN(beta), NONE);
    emit(p, TOR_FN_copy, type, type, 1, OUT(1), ROW(0), NONE, NONE);
}
void rms_norm(TorProgram *p, TorDtype type) {
    int x = input(p, type), gamma = input(p, type), scale = input(p, TOR_float32);
    (void)scale;
    output(p, 0, type, false);
    emit(p, TOR_FN_mul, type, type, 0, REG(0), IN(x), IN(x), NONE);
    reduce(p, TOR_REDUCE_sum, type, 0, 0, REG(0));
    emit(p, TOR_FN_mul, type, type, 1, ROW(1), ROW(0), imm_f(p, type, 1.0 / 64), NONE);
    emit(p, TOR_FN_add, type, type, 1, ROW(2), ROW(1), imm_f(p, type, 1e-3), NONE);
    emit(p, TOR_FN_rsqrt, type, type, 1, ROW(3), ROW(2), NONE, NONE);
    emit(p, TOR_FN_mul, type, type, 1, REG(1), IN(x), ROW(3), NONE);
    emit(p, TOR_FN_mul, type, type, 1, OUT(0), REG(1), IN(gamma), NONE);
}
void plain_reduction(TorProgram *p, TorReduceKind kind, TorDtype type) {
    int x = input(p, type);
    TorDtype to = tor_reduce_result(kind, type);
    reduce(p, kind, type, 0, 0, kind == TOR_REDUCE_length ? NONE : IN(x));
    for (int k = 0; k <= (kind == TOR_REDUCE_moments); k++) {
        output(p, k, to, true);
        emit(p, TOR_FN_copy, to, to, 1, OUT(k), ROW(k), NONE, NONE);
    }
}

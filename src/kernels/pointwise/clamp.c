// Recognises epilogues that a kernel can apply to sums in its registers.
#include <math.h>

#include "kernels/pointwise/contract.h"

static bool same(TorOperand a, TorOperand b) { return a.kind == b.kind && a.index == b.index; }

/// The operand of a commutative instruction that is not `value`; of kind NONE if neither is
/// `value`, or both are.
static TorOperand other(const TorInstr *instr, TorOperand value) {
    bool first = same(instr->src[0], value), second = same(instr->src[1], value);
    return first == second ? (TorOperand){TOR_OPERAND_NONE, 0} : instr->src[first];
}

bool tor_epilogue_clamps(const TorProgram *program, TorClampEpilogue *out) {
    *out = (TorClampEpilogue){0, -INFINITY, INFINITY};
    if (program->n_outputs != 1 || program->output_type[0] != TOR_float32 ||
        program->n_reductions || program->n_instrs == 0)
        return false;
    TorOperand value = {TOR_OPERAND_INPUT, 0};
    bool bounded = false;
    for (int i = 0; i < program->n_instrs; i++) {
        const TorInstr *instr = &program->instr[i];
        if (instr->type != TOR_float32 || instr->to != TOR_float32) return false;
        TorOperand operand = other(instr, value);
        float bound = 0;
        if (operand.kind == TOR_OPERAND_IMM) bound = (float)program->imm[operand.index].f;
        switch (instr->fn) {
            case TOR_FN_add:
                if (bounded || out->add || operand.kind != TOR_OPERAND_INPUT ||
                    program->input_type[operand.index] != TOR_float32)
                    return false;
                out->add = operand.index;
                break;
            case TOR_FN_relu:
                if (!same(instr->src[0], value)) return false;
                out->low = fmaxf(out->low, 0);
                out->high = fmaxf(out->high, 0);
                bounded = true;
                break;
            case TOR_FN_maximum:
            case TOR_FN_minimum:
                if (operand.kind != TOR_OPERAND_IMM || isnan(bound)) return false;
                out->low =
                    instr->fn == TOR_FN_maximum ? fmaxf(out->low, bound) : fminf(out->low, bound);
                out->high =
                    instr->fn == TOR_FN_maximum ? fmaxf(out->high, bound) : fminf(out->high, bound);
                bounded = true;
                break;
            default: return false;
        }
        value = instr->dst;
    }
    return value.kind == TOR_OPERAND_OUTPUT;
}

// Recognises epilogues that a kernel can apply to sums in its registers.
#include <math.h>

#include "kernels/pointwise/engine.h"

static bool same(TorOperand a, TorOperand b) { return a.kind == b.kind && a.index == b.index; }

/// The operand of a commutative instruction that is not `value`; of kind NONE if neither is
/// `value`, or both are.
static TorOperand other(const TorInstr *instr, TorOperand value) {
    bool first = same(instr->src[0], value), second = same(instr->src[1], value);
    return first == second ? (TorOperand){TOR_OPERAND_NONE, 0} : instr->src[first];
}

/// What applies a function of one float32; NULL if `fn` is none.
static TorTileFn unary(int fn) {
    if (tor_fn_arity(fn) != 1) return NULL;
    const TorPointwiseTable *table = tor_pointwise_table_any();
    return table->f32[fn][0] ? table->f32[fn][0] : table->plain[fn][TOR_float32];
}

bool tor_epilogue_in_registers(const TorProgram *program, TorRegisterEpilogue *out) {
    *out = (TorRegisterEpilogue){0, -INFINITY, INFINITY, TOR_FN_copy, NULL};
    if (program->n_outputs != 1 || program->output_type[0] != TOR_float32 ||
        program->n_reductions || program->n_instrs == 0)
        return false;
    TorOperand value = {TOR_OPERAND_INPUT, 0};
    bool bounded = false;
    for (int i = 0; i < program->n_instrs; i++) {
        const TorInstr *instr = &program->instr[i];
        if (out->apply || instr->type != TOR_float32 || instr->to != TOR_float32) return false;
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
            default:
                out->fn = instr->fn;
                out->apply = unary(instr->fn);
                if (!out->apply || !same(instr->src[0], value)) return false;
        }
        value = instr->dst;
    }
    return value.kind == TOR_OPERAND_OUTPUT;
}

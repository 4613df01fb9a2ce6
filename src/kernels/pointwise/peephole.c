// Super-instructions: two float32 instructions whose intermediate nobody else reads become one, and
// that with a third perhaps.
#include "kernels/pointwise/engine.h"

// `second` reads the result of `first`. Operands of the new instruction are those of `first`, then
// the other operand of `second`.
typedef struct {
    uint8_t first, second, fused;
    uint8_t commutes;  ///< the result may be either operand of `second`; else it is operand 0
} Pattern;

static const Pattern patterns[] = {
    {TOR_FN_add, TOR_FN_gelu_erf, TOR_TILE_add_gelu_erf, 0},
    {TOR_FN_add, TOR_FN_gelu_tanh, TOR_TILE_add_gelu_tanh, 0},
    {TOR_FN_add, TOR_FN_relu, TOR_TILE_add_relu, 0},
    {TOR_FN_add, TOR_FN_silu, TOR_TILE_add_silu, 0},
    {TOR_FN_mul, TOR_TILE_add_relu, TOR_TILE_mul_add_relu, 1},
    {TOR_FN_silu, TOR_FN_mul, TOR_TILE_silu_mul, 1},
    {TOR_FN_gelu_erf, TOR_FN_mul, TOR_TILE_gelu_erf_mul, 1},
    {TOR_FN_gelu_tanh, TOR_FN_mul, TOR_TILE_gelu_tanh_mul, 1},
    {TOR_FN_sub, TOR_FN_exp, TOR_TILE_sub_exp, 0},
    {TOR_FN_sub, TOR_FN_mul, TOR_TILE_sub_mul, 1},
    {TOR_FN_mul, TOR_FN_add, TOR_FN_fma, 1},
    {TOR_FN_add, TOR_FN_mul, TOR_TILE_add_mul, 1},
    {TOR_FN_mul, TOR_FN_mul, TOR_TILE_mul_mul, 1},
    {TOR_FN_add, TOR_FN_add, TOR_TILE_add_add, 1},
};

static int arity_of(int fn) {
    switch (fn) {
#define X(name, arity, expr) \
    case TOR_TILE_##name: return arity;
        TOR_FUSED(X)
#undef X
        default: return tor_fn_arity((TorScalarFn)fn);
    }
}

static int uses_of(const TorProgram *program, const TorInstr *instr, int n, int reg) {
    int uses = 0;
    for (int i = 0; i < n; i++)
        for (int s = 0; s < 3; s++)
            uses += instr[i].src[s].kind == TOR_OPERAND_REG && instr[i].src[s].index == reg;
    for (int i = 0; i < program->n_reductions; i++) {
        uses += program->reduction[i].src.kind == TOR_OPERAND_REG &&
                program->reduction[i].src.index == reg;
    }
    return uses;
}

// The instruction that sets `reg` if `user` may take it in: same stage, and no output is written in
// between, since that output may be the memory of what `first` reads.
static int setter(const TorInstr *instr, int user, int reg) {
    for (int i = user - 1; i >= 0 && instr[i].stage == instr[user].stage; i--) {
        if (instr[i].dst.kind == TOR_OPERAND_OUTPUT) return -1;
        if (instr[i].dst.kind == TOR_OPERAND_REG && instr[i].dst.index == reg) return i;
    }
    return -1;
}

static bool fuse(const TorProgram *program, TorInstr *instr, int n, int user) {
    TorInstr *b = &instr[user];
    if (b->type != TOR_float32 || b->to != TOR_float32) return false;
    for (size_t k = 0; k < TOR_COUNT_OF(patterns); k++) {
        const Pattern *pattern = &patterns[k];
        if (b->fn != pattern->second) continue;
        for (int s = 0; s <= pattern->commutes; s++) {
            if (b->src[s].kind != TOR_OPERAND_REG ||
                uses_of(program, instr, n, b->src[s].index) != 1)
                continue;
            int i = setter(instr, user, b->src[s].index);
            if (i < 0 || instr[i].fn != pattern->first || instr[i].type != TOR_float32 ||
                instr[i].to != TOR_float32)
                continue;
            TorOperand other = b->src[1 - s];
            int at = arity_of(instr[i].fn);
            b->fn = pattern->fused;
            for (int j = 0; j < 3; j++)
                b->src[j] = j < at                                      ? instr[i].src[j]
                            : j == at && arity_of(pattern->second) == 2 ? other
                                                                        : (TorOperand){0};
            instr[i].fn = 0xff;
            return true;
        }
    }
    return false;
}

int tor_peephole(const TorProgram *program, TorInstr *instr) {
    int n = program->n_instrs;
    for (int i = 0; i < n; i++) instr[i] = program->instr[i];
    for (int i = n - 1; i >= 0; i--) {
        bool row =
            instr[i].dst.kind == TOR_OPERAND_ROW ||
            (instr[i].dst.kind == TOR_OPERAND_OUTPUT && program->output_row[instr[i].dst.index]);
        if (row || !fuse(program, instr, n, i)) continue;
        int kept = 0;
        for (int j = 0; j < n; j++) {
            if (instr[j].fn != 0xff) instr[kept++] = instr[j];
        }
        n = kept;
        i = n;  // positions moved: look again from the end
    }
    return n;
}

// Pointwise programs as data: the rules they obey, and their text.
#include "base/program.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    uint8_t arity;
    char result;
} fns[TOR_FN_COUNT] = {
#define TOR_FN(name, arity, result, doc) {#name, arity, #result[1]},
#include "base/scalar_fn.inc"
#undef TOR_FN
    {"cast", 1, 't'},
};

static const char *const reduce_names[] = {"sum",    "prod", "max", "min",    "argmax",
                                           "argmin", "any",  "all", "length", "moments"};

const char *tor_fn_name(TorScalarFn fn) { return fns[fn].name; }
int tor_fn_arity(TorScalarFn fn) { return fns[fn].arity; }
const char *tor_reduce_name(TorReduceKind kind) { return reduce_names[kind]; }

bool tor_fn_takes(TorScalarFn fn, TorDtype type) {
    if (tor_dtype_is_float(type)) {
        switch (fn) {
            case TOR_FN_bit_and:
            case TOR_FN_bit_or:
            case TOR_FN_bit_xor:
            case TOR_FN_bit_not:
            case TOR_FN_shift_left:
            case TOR_FN_shift_right: return false;
            default: return true;
        }
    }
    switch (fn) {
        case TOR_FN_add:
        case TOR_FN_mul:
        case TOR_FN_minimum:
        case TOR_FN_maximum:
        case TOR_FN_fmin:
        case TOR_FN_fmax:
        case TOR_FN_bit_and:
        case TOR_FN_bit_or:
        case TOR_FN_bit_xor:
        case TOR_FN_bit_not:
        case TOR_FN_eq:
        case TOR_FN_ne:
        case TOR_FN_lt:
        case TOR_FN_le:
        case TOR_FN_gt:
        case TOR_FN_ge:
        case TOR_FN_where:
        case TOR_FN_copy:
        case TOR_FN_cast: return true;
        case TOR_FN_sub:
        case TOR_FN_div_trunc:
        case TOR_FN_div_floor:
        case TOR_FN_remainder:
        case TOR_FN_fmod:
        case TOR_FN_pow:
        case TOR_FN_shift_left:
        case TOR_FN_shift_right:
        case TOR_FN_fma:
        case TOR_FN_neg:
        case TOR_FN_abs:
        case TOR_FN_sign:
        case TOR_FN_relu:
        case TOR_FN_ceil:
        case TOR_FN_floor:
        case TOR_FN_round:
        case TOR_FN_trunc: return type != TOR_bool;
        default: return false;
    }
}

TorDtype tor_fn_result(TorScalarFn fn, TorDtype type, TorDtype to) {
    return fns[fn].result == 'b' ? TOR_bool : fns[fn].result == 't' ? to : type;
}

TorDtype tor_reduce_result(TorReduceKind kind, TorDtype type) {
    if (kind == TOR_REDUCE_argmax || kind == TOR_REDUCE_argmin) return TOR_int64;
    return kind == TOR_REDUCE_any || kind == TOR_REDUCE_all ? TOR_bool : type;
}

// What verification knows while it walks the program. Types are dtype + 1; 0: not defined yet.
typedef struct {
    const TorProgram *program;
    uint8_t reg[256], row[TOR_PROGRAM_ROWS], output[TOR_PROGRAM_OUTPUTS];
} Walk;

static ToroidStatus check_operand(const Walk *walk, TorOperand operand, TorDtype type, int at) {
    const TorProgram *p = walk->program;
    switch (operand.kind) {
        case TOR_OPERAND_REG:
            if (operand.index >= p->n_regs || !walk->reg[operand.index])
                return tor_invalid("instruction %d reads r%d before it is set", at, operand.index);
            if (walk->reg[operand.index] - 1 != (int)type) {
                return tor_invalid("instruction %d reads r%d as %s, but it is %s", at,
                                   operand.index, tor_dtype_name(type),
                                   tor_dtype_name((TorDtype)(walk->reg[operand.index] - 1)));
            }
            return TOROID_OK;
        case TOR_OPERAND_INPUT:
            if (operand.index >= p->n_inputs)
                return tor_invalid("instruction %d reads in%d of %d", at, operand.index,
                                   p->n_inputs);
            if (p->input_type[operand.index] != type) {
                return tor_invalid("instruction %d reads in%d as %s, but it is %s", at,
                                   operand.index, tor_dtype_name(type),
                                   tor_dtype_name((TorDtype)p->input_type[operand.index]));
            }
            return TOROID_OK;
        case TOR_OPERAND_IMM:
            if (operand.index >= p->n_imms)
                return tor_invalid("instruction %d reads immediate %d of %d", at, operand.index,
                                   p->n_imms);
            if (p->imm[operand.index].dtype != tor_dtype_compute(type)) {
                return tor_invalid("instruction %d reads immediate %d as %s, but it is %s", at,
                                   operand.index, tor_dtype_name(tor_dtype_compute(type)),
                                   tor_dtype_name(p->imm[operand.index].dtype));
            }
            return TOROID_OK;
        case TOR_OPERAND_ROW:
            if (operand.index >= p->n_rows || !walk->row[operand.index])
                return tor_invalid("instruction %d reads row value %d before it is set", at,
                                   operand.index);
            if (walk->row[operand.index] - 1 != (int)type) {
                return tor_invalid("instruction %d reads row value %d as %s, but it is %s", at,
                                   operand.index, tor_dtype_name(type),
                                   tor_dtype_name((TorDtype)(walk->row[operand.index] - 1)));
            }
            return TOROID_OK;
        default: return tor_invalid("instruction %d has an operand of kind %d", at, operand.kind);
    }
}

static ToroidStatus check_dst(Walk *walk, const TorInstr *instr, int at) {
    const TorProgram *p = walk->program;
    TorOperand dst = instr->dst;
    uint8_t type = (uint8_t)(instr->to + 1);
    bool once_a_row = dst.kind == TOR_OPERAND_ROW;
    switch (dst.kind) {
        case TOR_OPERAND_REG:
            if (dst.index >= p->n_regs)
                return tor_invalid("instruction %d writes r%d of %d", at, dst.index, p->n_regs);
            if (walk->reg[dst.index])
                return tor_invalid("instruction %d writes r%d a second time", at, dst.index);
            walk->reg[dst.index] = type;
            break;
        case TOR_OPERAND_OUTPUT:
            if (dst.index >= p->n_outputs)
                return tor_invalid("instruction %d writes out%d of %d", at, dst.index,
                                   p->n_outputs);
            if (walk->output[dst.index])
                return tor_invalid("instruction %d writes out%d a second time", at, dst.index);
            if (p->output_type[dst.index] != instr->to) {
                return tor_invalid("instruction %d writes %s to out%d, which is %s", at,
                                   tor_dtype_name((TorDtype)instr->to), dst.index,
                                   tor_dtype_name((TorDtype)p->output_type[dst.index]));
            }
            walk->output[dst.index] = type;
            once_a_row = p->output_row[dst.index] != 0;
            break;
        case TOR_OPERAND_ROW:
            if (dst.index >= p->n_rows)
                return tor_invalid("instruction %d writes row value %d of %d", at, dst.index,
                                   p->n_rows);
            if (walk->row[dst.index])
                return tor_invalid("instruction %d writes row value %d a second time", at,
                                   dst.index);
            walk->row[dst.index] = type;
            break;
        default: return tor_invalid("instruction %d writes to operand kind %d", at, dst.kind);
    }
    for (int i = 0; once_a_row && i < fns[instr->fn].arity; i++) {
        if (instr->src[i].kind == TOR_OPERAND_REG)
            return tor_invalid("instruction %d runs once a row and cannot read r%d", at,
                               instr->src[i].index);
    }
    return TOROID_OK;
}

static ToroidStatus check_instr(Walk *walk, const TorInstr *instr, int at) {
    if (instr->fn >= TOR_FN_COUNT)
        return tor_invalid("instruction %d: function %d is unknown", at, instr->fn);
    if (instr->type >= TOR_DTYPE_COUNT || instr->to >= TOR_DTYPE_COUNT)
        return tor_invalid("instruction %d: unknown type", at);
    TorScalarFn fn = (TorScalarFn)instr->fn;
    TorDtype type = (TorDtype)instr->type, to = (TorDtype)instr->to;
    if (!tor_fn_takes(fn, type))
        return tor_invalid("instruction %d: %s takes no %s", at, fns[fn].name,
                           tor_dtype_name(type));
    if (to != tor_fn_result(fn, type, to)) {
        return tor_invalid("instruction %d: %s.%s gives %s, not %s", at, fns[fn].name,
                           tor_dtype_name(type), tor_dtype_name(tor_fn_result(fn, type, to)),
                           tor_dtype_name(to));
    }
    for (int i = 0; i < 3; i++) {
        if (i < fns[fn].arity) {
            TOR_TRY(check_operand(walk, instr->src[i],
                                  fn == TOR_FN_where && i == 0 ? TOR_bool : type, at));
        } else if (instr->src[i].kind != TOR_OPERAND_NONE) {
            return tor_invalid("instruction %d: %s takes %d operands", at, fns[fn].name,
                               fns[fn].arity);
        }
    }
    return check_dst(walk, instr, at);
}

static ToroidStatus check_reduction(Walk *walk, const TorReduction *r, int at) {
    if (r->kind > TOR_REDUCE_moments)
        return tor_invalid("reduction %d is of unknown kind %d", at, r->kind);
    if (r->type >= TOR_DTYPE_COUNT) return tor_invalid("reduction %d: unknown type", at);
    if (r->kind == TOR_REDUCE_length) {
        if (r->src.kind != TOR_OPERAND_NONE)
            return tor_invalid("reduction %d: a length has no operand", at);
    } else if (r->src.kind != TOR_OPERAND_REG && r->src.kind != TOR_OPERAND_INPUT)
        return tor_invalid("reduction %d must read a register or an input", at);
    if (r->kind == TOR_REDUCE_moments && !tor_dtype_is_float((TorDtype)r->type))
        return tor_invalid("reduction %d: moments of %s", at, tor_dtype_name((TorDtype)r->type));
    ToroidStatus status = r->kind == TOR_REDUCE_length
                              ? TOROID_OK
                              : check_operand(walk, r->src, (TorDtype)r->type, at);
    if (status) return tor_error_prefix(status, "reduction %d", at);
    for (int i = 0; i <= (r->kind == TOR_REDUCE_moments); i++) {
        if (r->dst + i >= walk->program->n_rows)
            return tor_invalid("reduction %d writes row value %d of %d", at, r->dst + i,
                               walk->program->n_rows);
        if (walk->row[r->dst + i])
            return tor_invalid("reduction %d writes row value %d a second time", at, r->dst + i);
        walk->row[r->dst + i] =
            (uint8_t)(tor_reduce_result((TorReduceKind)r->kind, (TorDtype)r->type) + 1);
    }
    return TOROID_OK;
}

ToroidStatus tor_program_verify(const TorProgram *p) {
    Walk walk = {.program = p};
    if (p->n_inputs > TOR_PROGRAM_INPUTS || p->n_outputs > TOR_PROGRAM_OUTPUTS ||
        p->n_instrs > TOR_PROGRAM_INSTRS || p->n_imms > TOR_PROGRAM_IMMS ||
        p->n_reductions > TOR_PROGRAM_REDUCTIONS || p->n_rows > TOR_PROGRAM_ROWS ||
        p->n_regs > TOR_PROGRAM_INSTRS) {
        return tor_invalid("a program's count exceeds its array");
    }
    if (p->n_stages < 1 || (p->n_reductions == 0 && p->n_stages != 1))
        return tor_invalid("%d stages with %d reductions", p->n_stages, p->n_reductions);
    for (int i = 0; i < p->n_inputs; i++) {
        if (p->input_type[i] >= TOR_DTYPE_COUNT) return tor_invalid("in%d has an unknown type", i);
    }
    for (int i = 0; i < p->n_outputs; i++) {
        if (p->output_type[i] >= TOR_DTYPE_COUNT)
            return tor_invalid("out%d has an unknown type", i);
        if (p->output_row[i] && !p->n_reductions)
            return tor_invalid("out%d is one element a row, but nothing is reduced", i);
    }
    for (int i = 0; i < p->n_imms; i++)
        if ((unsigned)p->imm[i].dtype >= TOR_DTYPE_COUNT)
            return tor_invalid("immediate %d has an unknown type", i);
    int instr = 0, reduction = 0;
    for (int stage = 0; stage < p->n_stages; stage++) {
        for (; instr < p->n_instrs && p->instr[instr].stage == stage; instr++)
            TOR_TRY(check_instr(&walk, &p->instr[instr], instr));
        int first = reduction;
        for (; reduction < p->n_reductions && p->reduction[reduction].stage == stage; reduction++)
            TOR_TRY(check_reduction(&walk, &p->reduction[reduction], reduction));
        if ((reduction == first) != (stage == p->n_stages - 1))
            return tor_invalid(
                "every stage but the last ends in reductions; stage %d of %d does not", stage,
                p->n_stages);
    }
    if (instr != p->n_instrs)
        return tor_invalid("instruction %d is of stage %d, out of order", instr,
                           p->instr[instr].stage);
    if (reduction != p->n_reductions)
        return tor_invalid("reduction %d is of stage %d, out of order", reduction,
                           p->reduction[reduction].stage);
    for (int i = 0; i < p->n_outputs; i++) {
        if (!walk.output[i]) return tor_invalid("out%d is never written", i);
    }
    return TOROID_OK;
}

// Appends as much as fits.
typedef struct {
    char *text;
    size_t bytes, used;
} Text;

TOR_PRINTF(2, 3) static void put(Text *out, const char *format, ...) {
    if (out->used >= out->bytes) return;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(out->text + out->used, out->bytes - out->used, format, args);
    va_end(args);
    if (n > 0) out->used += (size_t)n;
}

static void put_operand(Text *out, const TorProgram *p, TorOperand operand) {
    switch (operand.kind) {
        case TOR_OPERAND_REG: put(out, "r%d", operand.index); break;
        case TOR_OPERAND_INPUT: put(out, "in%d", operand.index); break;
        case TOR_OPERAND_OUTPUT: put(out, "out%d", operand.index); break;
        case TOR_OPERAND_ROW: put(out, "row%d", operand.index); break;
        case TOR_OPERAND_IMM: {
            const TorScalar *imm = &p->imm[operand.index % TOR_PROGRAM_IMMS];
            if (tor_dtype_is_float(imm->dtype)) {
                put(out, "%.9g", imm->f);
            } else {
                put(out, "%" PRId64, imm->i);
            }
            break;
        }
        default: put(out, "?"); break;
    }
}

static void put_instr(Text *out, const TorProgram *p, const TorInstr *instr) {
    put_operand(out, p, instr->dst);
    put(out, " = %s.%s", instr->fn < TOR_FN_COUNT ? fns[instr->fn].name : "?",
        tor_dtype_name((TorDtype)instr->type));
    if (instr->fn == TOR_FN_cast) put(out, ".%s", tor_dtype_name((TorDtype)instr->to));
    for (int i = 0; instr->fn < TOR_FN_COUNT && i < fns[instr->fn].arity; i++) {
        put(out, i ? ", " : " ");
        put_operand(out, p, instr->src[i]);
    }
    put(out, "\n");
}

const char *tor_program_print(const TorProgram *p, char *text, size_t bytes) {
    Text out = {text, bytes, 0};
    if (bytes) text[0] = 0;
    int instr = 0, reduction = 0;
    for (int stage = 0; stage < p->n_stages; stage++) {
        if (stage) put(&out, "--\n");
        for (; instr < p->n_instrs && p->instr[instr].stage <= stage; instr++)
            put_instr(&out, p, &p->instr[instr]);
        for (; reduction < p->n_reductions && p->reduction[reduction].stage <= stage; reduction++) {
            const TorReduction *r = &p->reduction[reduction];
            put(&out, "row%d", r->dst);
            if (r->kind == TOR_REDUCE_moments) put(&out, ", row%d", r->dst + 1);
            put(&out, " = %s.%s ", reduce_names[r->kind], tor_dtype_name((TorDtype)r->type));
            if (r->kind != TOR_REDUCE_length) put_operand(&out, p, r->src);
            put(&out, "\n");
        }
    }
    return text;
}

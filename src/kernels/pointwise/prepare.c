// From a program to operations on slots: super-instructions, buffers by liveness, half types'
// loads, roundings and stores, and what to run again where no register is kept from stage to stage.
#include <string.h>

#include "base/cpu.h"
#include "base/hash.h"
#include "kernels/pointwise/engine.h"

const TorPointwiseTable *tor_pointwise_table_any(void) {
#if defined(__x86_64__)
    uint32_t features = tor_cpu_features(), avx2 = TOR_CPU_avx2 | TOR_CPU_fma | TOR_CPU_f16c;
    if ((features & avx2) == avx2)
        return features & TOR_CPU_avx512 ? &tor_pointwise_table_any__avx512
                                         : &tor_pointwise_table_any__avx2;
#endif
    return &tor_pointwise_table_any__generic;
}

// What preparation knows of a register, a half-typed input's float32 copy included.
typedef struct {
    uint8_t slot, bytes, stage;
    int first, last;  ///< positions of the op that sets it and of the last that reads it
    bool kept;
} Value;

enum {
    VALUE_INPUT = TOR_PROGRAM_INSTRS,
    VALUES = VALUE_INPUT + TOR_PROGRAM_INPUTS,
    NOT_SET = 0xff
};

typedef struct {
    TorReady *ready;
    const TorProgram *program;
    Value value[VALUES];
    uint8_t source_value[TOR_OPS][3];  ///< value that an operand is, or NOT_SET
    uint8_t result_value[TOR_OPS];
    uint8_t reduce_value[TOR_PROGRAM_REDUCTIONS];
} Prepare;

// Results of these are exact, so a half operand gives a half result with no rounding.
static bool is_exact(int fn) {
    switch (fn) {
        case TOR_FN_copy:
        case TOR_FN_where:
        case TOR_FN_minimum:
        case TOR_FN_maximum:
        case TOR_FN_fmin:
        case TOR_FN_fmax:
        case TOR_FN_neg:
        case TOR_FN_abs:
        case TOR_FN_sign:
        case TOR_FN_relu:
        case TOR_FN_ceil:
        case TOR_FN_floor:
        case TOR_FN_round:
        case TOR_FN_trunc:
        case TOR_FN_copysign: return true;
        default: return false;
    }
}

static TorOp *push(Prepare *p) {
    TorOp *op = &p->ready->op[p->ready->n_ops];
    memset(op, 0, sizeof *op);
    memset(p->source_value[p->ready->n_ops], NOT_SET, 3);
    p->result_value[p->ready->n_ops] = NOT_SET;
    p->ready->n_ops++;
    return op;
}

static void uses_value(Prepare *p, int at, int s, int value) {
    p->source_value[at][s] = (uint8_t)value;
    Value *v = &p->value[value];
    v->last = at;
    if (p->ready->op[at].stage != v->stage) v->kept = true;
}

static void sets_value(Prepare *p, int value, int type, int stage) {
    int at = p->ready->n_ops - 1;
    p->result_value[at] = (uint8_t)value;
    p->value[value] = (Value){.bytes = (uint8_t)tor_dtype_size((TorDtype)type),
                              .stage = (uint8_t)stage,
                              .first = at,
                              .last = at};
}

// Makes sure that a half-typed input has a float32 copy: in a register, or in a row slot for row
// ops.
static int load_input(Prepare *p, int input, int stage, bool row) {
    TorReady *ready = p->ready;
    uint8_t half = p->program->input_type[input];
    if (row) {
        int slot = SLOT_ROW + TOR_PROGRAM_ROWS + TOR_PROGRAM_OUTPUTS + input;
        if (!ready->row_bytes[slot - SLOT_ROW]) {
            TorOp *op = push(p);
            *op = (TorOp){.fn = TOR_TILE_load_half,
                          .type = half,
                          .to = TOR_float32,
                          .stage = (uint8_t)stage,
                          .arity = 1,
                          .row = 1,
                          .dst = (uint8_t)slot,
                          .src = {(uint8_t)(SLOT_INPUT + input)}};
            ready->row_bytes[slot - SLOT_ROW] = 4;
        }
        return slot;
    }
    int value = VALUE_INPUT + input;
    if (p->value[value].first < 0) {
        TorOp *op = push(p);
        *op = (TorOp){.fn = TOR_TILE_load_half,
                      .type = half,
                      .to = TOR_float32,
                      .stage = (uint8_t)stage,
                      .arity = 1,
                      .src = {(uint8_t)(SLOT_INPUT + input)}};
        sets_value(p, value, TOR_float32, stage);
    }
    return value;
}

// Loads what the instruction needs, then adds it as an op.
static void add_instr(Prepare *p, const TorInstr *instr, int arity) {
    TorReady *ready = p->ready;
    const TorProgram *program = p->program;
    bool out = instr->dst.kind == TOR_OPERAND_OUTPUT;
    bool row = instr->dst.kind == TOR_OPERAND_ROW || (out && program->output_row[instr->dst.index]);
    uint8_t slot[3] = {0}, value[3] = {NOT_SET, NOT_SET, NOT_SET};
    for (int s = 0; s < arity; s++) {
        TorOperand src = instr->src[s];
        switch (src.kind) {
            case TOR_OPERAND_REG: value[s] = src.index; break;
            case TOR_OPERAND_INPUT:
                ready->read_inputs |= 1u << src.index;
                if (row) ready->row_reads_input = 1;
                if (!tor_dtype_is_half((TorDtype)program->input_type[src.index])) {
                    slot[s] = (uint8_t)(SLOT_INPUT + src.index);
                } else if (row) {
                    slot[s] = (uint8_t)load_input(p, src.index, instr->stage, true);
                } else {
                    value[s] = (uint8_t)load_input(p, src.index, instr->stage, false);
                }
                break;
            case TOR_OPERAND_IMM: slot[s] = (uint8_t)(SLOT_IMM + src.index); break;
            default: slot[s] = (uint8_t)(SLOT_ROW + src.index); break;
        }
    }
    TorOp *op = push(p);
    int at = ready->n_ops - 1;
    op->fn = instr->fn;
    op->type = (uint8_t)tor_dtype_compute((TorDtype)instr->type);
    op->to = (uint8_t)tor_dtype_compute((TorDtype)instr->to);
    op->stage = instr->stage;
    op->arity = (uint8_t)arity;
    op->row = row;
    memcpy(op->src, slot, 3);
    for (int s = 0; s < arity; s++) {
        if (value[s] != NOT_SET) uses_value(p, at, s, value[s]);
    }
    bool half = tor_dtype_is_half((TorDtype)instr->to);
    bool rounds =
        half && !is_exact(instr->fn) && !(instr->fn == TOR_FN_cast && instr->type == instr->to);
    if (rounds) op->half = instr->to;
    switch (instr->dst.kind) {
        case TOR_OPERAND_REG: sets_value(p, instr->dst.index, op->to, op->stage); break;
        case TOR_OPERAND_ROW:
            op->dst = (uint8_t)(SLOT_ROW + instr->dst.index);
            ready->row_bytes[instr->dst.index] = (uint8_t)tor_dtype_size((TorDtype)op->to);
            break;
        default:
            op->dst = (uint8_t)(SLOT_OUTPUT + instr->dst.index);
            if (half) {  // the store rounds
                op->half = 0;
                uint8_t from = 0, stage = op->stage;
                if (row) {
                    from = op->dst = (uint8_t)(SLOT_ROW + TOR_PROGRAM_ROWS + instr->dst.index);
                    ready->row_bytes[from - SLOT_ROW] = 4;
                }
                TorOp *store = push(p);
                *store = (TorOp){.fn = TOR_TILE_store_half,
                                 .type = TOR_float32,
                                 .to = instr->to,
                                 .stage = stage,
                                 .arity = 1,
                                 .row = row,
                                 .dst = (uint8_t)(SLOT_OUTPUT + instr->dst.index),
                                 .src = {from}};
                if (!row) {
                    // A value of no register: only the store reads it.
                    p->result_value[at] = p->source_value[at + 1][0] = NOT_SET - 1;
                }
            }
            break;
    }
}

// Buffers for values in order of ops; a dying operand's buffer is reused, by its own reader if the
// elements have one size. Kept values have buffers of their own.
static void assign_buffers(Prepare *p) {
    TorReady *ready = p->ready;
    uint8_t free_list[TOR_BUFS], n_free = 0;
    uint8_t store_slot = 0;
    for (int at = 0; at < ready->n_ops; at++) {
        TorOp *op = &ready->op[at];
        uint8_t dying[3], n_dying = 0;
        for (int s = 0; s < op->arity; s++) {
            int v = p->source_value[at][s];
            if (v == NOT_SET) continue;
            if (v == NOT_SET - 1) {
                op->src[s] = store_slot;
                dying[n_dying++] = store_slot;
                continue;
            }
            Value *value = &p->value[v];
            op->src[s] = value->slot;
            bool seen = false;
            for (int i = 0; i < n_dying; i++) seen |= dying[i] == value->slot;
            if (value->last == at && !value->kept && !seen) dying[n_dying++] = value->slot;
        }
        int r = p->result_value[at];
        if (r != NOT_SET) {
            bool kept = r < VALUES && p->value[r].kept;
            uint8_t bytes = r < VALUES ? p->value[r].bytes : 4, slot = 0;
            for (int i = 0; !kept && i < n_dying; i++) {
                if (!slot && ready->buf_bytes[dying[i] - SLOT_BUF] == bytes) {
                    slot = dying[i];
                    dying[i] = dying[--n_dying];
                }
            }
            for (int i = 0; !kept && !slot && i < n_free; i++) {
                slot = free_list[i];
                free_list[i] = free_list[--n_free];
            }
            if (!slot) slot = (uint8_t)(SLOT_BUF + ready->n_bufs++);
            ready->buf_bytes[slot - SLOT_BUF] = bytes;
            ready->buf_kept[slot - SLOT_BUF] = kept;
            op->dst = slot;
            if (r < VALUES) {
                p->value[r].slot = slot;
                if (p->value[r].last == at && !kept) dying[n_dying++] = slot;  // nobody reads it
            } else {
                store_slot = slot;
            }
        }
        for (int i = 0; i < n_dying; i++) free_list[n_free++] = dying[i];
    }
    for (int i = 0; i < ready->n_reductions; i++) {
        if (p->reduce_value[i] != NOT_SET) ready->reduce[i].src = p->value[p->reduce_value[i]].slot;
    }
}

// Ops of earlier stages that stage t needs again: walk back from what t reads.
static void mark_again(Prepare *p) {
    TorReady *ready = p->ready;
    for (int t = 1; t < ready->n_stages; t++) {
        bool needed[VALUES] = {false};
        for (int i = 0; i < ready->n_reductions; i++) {
            if (ready->reduce[i].stage == t && p->reduce_value[i] != NOT_SET)
                needed[p->reduce_value[i]] = true;
        }
        for (int at = ready->n_ops - 1; at >= 0; at--) {
            TorOp *op = &ready->op[at];
            int r = p->result_value[at];
            bool run = op->stage == t || (op->stage < t && r < VALUES && needed[r]);
            if (!run) continue;
            if (op->stage < t) op->again |= (uint8_t)(1u << t);
            for (int s = 0; s < op->arity; s++) {
                if (p->source_value[at][s] < VALUES) needed[p->source_value[at][s]] = true;
            }
        }
    }
}

static void add_reduction(Prepare *p, int i) {
    TorReady *ready = p->ready;
    const TorReduction *r = &p->program->reduction[i];
    TorRowOp *op = &ready->reduce[i];
    bool half = tor_dtype_is_half((TorDtype)r->type);
    *op = (TorRowOp){.kind = r->kind,
                     .type = (uint8_t)tor_dtype_compute((TorDtype)r->type),
                     .half = half ? r->type : 0,
                     .stage = r->stage,
                     .row = (uint8_t)(SLOT_ROW + r->dst)};
    p->reduce_value[i] = NOT_SET;
    int value = -1;
    if (r->kind == TOR_REDUCE_length) {
        value = -1;
    } else if (r->src.kind == TOR_OPERAND_REG) {
        value = r->src.index;
    } else {
        ready->read_inputs |= 1u << r->src.index;
        if (half) {
            value = load_input(p, r->src.index, r->stage, false);
        } else {
            op->src = (uint8_t)(SLOT_INPUT + r->src.index);
            ready->reduced_inputs |= 1u << r->src.index;
        }
    }
    if (value >= 0) {
        p->reduce_value[i] = (uint8_t)value;
        // Alive to the end of the stage: reductions run after all of its ops.
        p->value[value].last = TOR_OPS;
        if (p->value[value].stage != r->stage) p->value[value].kept = true;
    }
    ready->has_arg |= r->kind == TOR_REDUCE_argmax || r->kind == TOR_REDUCE_argmin;
    uint8_t bytes = (uint8_t)tor_dtype_size(
        tor_dtype_compute(tor_reduce_result((TorReduceKind)r->kind, (TorDtype)r->type)));
    ready->row_bytes[r->dst] = bytes;
    if (r->kind == TOR_REDUCE_moments) ready->row_bytes[r->dst + 1] = bytes;
}

static int arity_of(int fn) {
    static const uint8_t fused[] = {
#define X(name, arity, expr) arity,
        TOR_FUSED(X)
#undef X
    };
    return fn < TOR_FN_COUNT ? tor_fn_arity((TorScalarFn)fn) : fused[fn - TOR_FN_COUNT];
}

void tor_program_prepare(TorPrepared *out, const TorProgram *program) {
    TorReady *ready = (TorReady *)out->opaque;
    TorInstr instr[TOR_PROGRAM_INSTRS];
    Prepare p = {.ready = ready, .program = program};
    memset(ready, 0, sizeof *ready);
    out->program = program;
    out->hash = tor_hash_memory(0, program, sizeof *program);
    ready->table = tor_pointwise_table_any();
    ready->n_stages = program->n_stages;
    ready->n_inputs = program->n_inputs;
    ready->n_outputs = program->n_outputs;
    ready->n_reductions = program->n_reductions;
    for (int i = 0; i < VALUES; i++) p.value[i].first = -1;
    for (int i = 0; i < program->n_imms; i++) tor_scalar_store(&ready->imm[i], program->imm[i]);

    int n = tor_peephole(program, instr), at = 0, reduction = 0;
    for (int stage = 0; stage < program->n_stages; stage++) {
        int first = at;
        // Row instructions read row values only, so they may come first.
        for (int i = first; i < n && instr[i].stage == stage; i++) {
            bool row =
                instr[i].dst.kind == TOR_OPERAND_ROW || (instr[i].dst.kind == TOR_OPERAND_OUTPUT &&
                                                         program->output_row[instr[i].dst.index]);
            if (row) add_instr(&p, &instr[i], arity_of(instr[i].fn));
        }
        for (; at < n && instr[at].stage == stage; at++) {
            bool row = instr[at].dst.kind == TOR_OPERAND_ROW ||
                       (instr[at].dst.kind == TOR_OPERAND_OUTPUT &&
                        program->output_row[instr[at].dst.index]);
            if (!row) add_instr(&p, &instr[at], arity_of(instr[at].fn));
        }
        for (; reduction < program->n_reductions && program->reduction[reduction].stage == stage;
             reduction++)
            add_reduction(&p, reduction);
    }
    assign_buffers(&p);
    mark_again(&p);
    for (int r = 0; r < TOR_ROW_SLOTS; r++) ready->n_rows += ready->row_bytes[r] != 0;

    uint8_t widest = 1;
    for (int i = 0; i < program->n_inputs; i++)
        widest = TOR_MAX(widest, (uint8_t)tor_dtype_size((TorDtype)program->input_type[i]));
    for (int i = 0; i < program->n_outputs; i++)
        widest = TOR_MAX(widest, (uint8_t)tor_dtype_size((TorDtype)program->output_type[i]));
    for (int i = 0; i < ready->n_ops; i++) {
        if (ready->op[i].type != 0)
            widest = TOR_MAX(widest, (uint8_t)tor_dtype_size((TorDtype)ready->op[i].type));
        widest = TOR_MAX(widest, (uint8_t)tor_dtype_size((TorDtype)ready->op[i].to));
    }
    ready->widest = widest;
    bool written = false;
    for (int i = 0; i < ready->n_ops; i++) {
        for (int s = 0; s < ready->op[i].arity; s++)
            ready->output0_early |= written && ready->op[i].src[s] == SLOT_INPUT;
        written |= ready->op[i].dst == SLOT_OUTPUT;
    }
}

// Element bytes of operand s. A condition is bool; loads and stores of halves name the half in type
// or to.
static uint8_t operand_bytes(const TorOp *op, int s) {
    return op->fn == TOR_FN_where && s == 0 ? 1 : (uint8_t)tor_dtype_size((TorDtype)op->type);
}

static bool divides(const TorOp *op) {
    return (op->fn == TOR_FN_div_trunc || op->fn == TOR_FN_div_floor ||
            op->fn == TOR_FN_remainder || op->fn == TOR_FN_fmod) &&
           !tor_dtype_is_float((TorDtype)op->type);
}

void tor_check_divisors(int *error, const void *divisors, size_t bytes, int64_t n) {
    bool zero = false;
    switch (bytes) {
#define CASE(T)                                                                \
    case sizeof(T):                                                            \
        for (int64_t i = 0; i < n; i++) zero |= ((const T *)divisors)[i] == 0; \
        break;
        CASE(uint8_t)
        CASE(uint16_t)
        CASE(uint32_t)
        CASE(uint64_t)
#undef CASE
        default: break;
    }
    if (zero && error) __atomic_store_n(error, 1, __ATOMIC_RELAXED);
}

void tor_bound_op(TorBoundOp *out, const TorReady *ready, const TorOp *op, unsigned scalars) {
    const TorPointwiseTable *table = ready->table;
    *out = (TorBoundOp){.dst = op->dst,
                        .src = {op->src[0], op->src[1], op->src[2]},
                        .stage = op->stage,
                        .again = op->again,
                        .row = op->row,
                        .divides = divides(op),
                        .scalars = (uint8_t)scalars};
    out->bytes[0] = (uint8_t)tor_dtype_size((TorDtype)op->to);
    for (int s = 0; s < 3; s++) out->bytes[s + 1] = s < op->arity ? operand_bytes(op, s) : 0;
    if (op->half) out->round = table->round_half[op->half - TOR_float16];
    if (op->fn == TOR_TILE_load_half) {
        out->fn = table->load_half[op->type - TOR_float16];
    } else if (op->fn == TOR_TILE_store_half) {
        out->fn = table->store_half[op->to - TOR_float16];
    } else if (op->fn == TOR_FN_cast) {
        out->fn = table->cast[op->type][op->to];
    } else if (op->type == TOR_float32) {
        out->fn = table->f32[op->fn][scalars];
        if (out->fn) return;
        out->fn = table->f32[op->fn][0];
        if (!out->fn) out->fn = table->plain[op->fn][TOR_float32];
    } else {
        out->fn = table->plain[op->fn][op->type];
    }
    out->splat = (uint8_t)scalars;
}

void tor_run_splat(const TorBoundOp *op, uint8_t *const *slot, int64_t n) {
    const void *src[3];
    for (int s = 0; s < 3; s++) {
        src[s] = slot[op->src[s]];
        if (op->splat >> s & 1) {
            tor_tile_gather(slot[SLOT_SPLAT + s], src[s], op->bytes[s + 1], 0, n);
            src[s] = slot[SLOT_SPLAT + s];
        }
    }
    op->fn(slot[op->dst], src[0], src[1], src[2], n);
}

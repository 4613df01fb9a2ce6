// From nodes to instructions. Row ops (softmax, norms, reductions) are spelled out here, once, in
// the program's own terms.
#include "passes/program_builder.h"

#include <string.h>

static const TorOperand none = {TOR_OPERAND_NONE, 0};

typedef struct {
    TorOperand operand;
    int stage;
} Ref;  // an operand and the first stage that can read it

void tor_builder_begin(TorProgramBuilder *b, TorGraph *g) {
    memset(b, 0, sizeof *b);
    b->g = g;
    b->program.n_stages = 1;
}

static ToroidStatus full(const char *what) {
    return tor_refuse("the program is full: too many %s", what);
}

static ToroidStatus remember(TorProgramBuilder *b, const TorValue *value, Ref ref) {
    if (b->n_values == TOR_BUILDER_VALUES) return full("values");
    b->values[b->n_values].value = value;
    b->values[b->n_values].operand = ref.operand;
    b->values[b->n_values++].stage = ref.stage;
    return TOROID_OK;
}

void tor_builder_accumulator(TorProgramBuilder *b, TorValue *value) {
    b->program.n_inputs = 1;
    b->program.input_type[0] = TOR_float32;
    b->input[0] = value;
    b->values[0].value = value;
    b->values[0].operand = (TorOperand){TOR_OPERAND_INPUT, 0};
    b->n_values = 1;
}

static ToroidStatus imm(TorProgramBuilder *b, TorScalar number, TorDtype type, Ref *out) {
    TorProgram *p = &b->program;
    TorScalar typed = tor_scalar_cast(number, tor_dtype_compute(type));
    int i = 0;
    while (i < p->n_imms && memcmp(&p->imm[i], &typed, sizeof typed) != 0) i++;
    if (i == p->n_imms) {
        if (i == TOR_PROGRAM_IMMS) return full("numbers");
        memset(&p->imm[i], 0, sizeof typed);
        p->imm[i].dtype = typed.dtype;
        p->imm[i].i = typed.i;
        p->n_imms++;
    }
    *out = (Ref){{TOR_OPERAND_IMM, (uint8_t)i}, 0};
    return TOROID_OK;
}

/// The operand for a value read in type `type`.
static ToroidStatus read_value(TorProgramBuilder *b, TorValue *value, TorDtype type, Ref *out) {
    for (int i = 0; i < b->n_values; i++)
        if (b->values[i].value == value) {
            *out = (Ref){b->values[i].operand, b->values[i].stage};
            return TOROID_OK;
        }
    TorScalar number;
    if (tor_value_number(value, &number)) return imm(b, number, type, out);
    TorProgram *p = &b->program;
    if (p->n_inputs == TOR_PROGRAM_INPUTS) return full("inputs");
    *out = (Ref){{TOR_OPERAND_INPUT, p->n_inputs}, 0};
    p->input_type[p->n_inputs] = (uint8_t)value->dtype;
    b->input[p->n_inputs++] = value;
    return remember(b, value, *out);
}

static bool is_row(Ref r) { return r.operand.kind == TOR_OPERAND_ROW; }

static ToroidStatus emit(TorProgramBuilder *b, TorScalarFn fn, TorDtype type, TorDtype to,
                         const Ref *src, int n, Ref *out) {
    TorProgram *p = &b->program;
    if (p->n_instrs == TOR_PROGRAM_INSTRS) return full("instructions");
    int stage = 0;
    bool rows = false, elements = false;
    for (int i = 0; i < n; i++) {
        stage = TOR_MAX(stage, src[i].stage);
        rows |= is_row(src[i]);
        elements |= !is_row(src[i]) && src[i].operand.kind != TOR_OPERAND_IMM;
    }
    TorOperand dst;
    if (rows && !elements) {
        if (p->n_rows == TOR_PROGRAM_ROWS) return full("row values");
        dst = (TorOperand){TOR_OPERAND_ROW, p->n_rows++};
    } else {
        dst = (TorOperand){TOR_OPERAND_REG, p->n_regs++};
    }
    // Instructions are kept in stage order; later stages are only ever appended to here since a
    // node comes after its operands, but an independent operand of an earlier stage may come late.
    int at = p->n_instrs;
    while (at > 0 && p->instr[at - 1].stage > stage) at--;
    memmove(&p->instr[at + 1], &p->instr[at], (size_t)(p->n_instrs - at) * sizeof(TorInstr));
    TorInstr *instr = &p->instr[at];
    memset(instr, 0, sizeof *instr);
    instr->fn = (uint8_t)fn;
    instr->type = (uint8_t)type;
    instr->to = (uint8_t)to;
    instr->stage = (uint8_t)stage;
    instr->dst = dst;
    for (int i = 0; i < 3; i++) instr->src[i] = i < n ? src[i].operand : none;
    p->n_instrs++;
    p->n_stages = (uint8_t)TOR_MAX(p->n_stages, stage + 1);
    *out = (Ref){dst, stage};
    return TOROID_OK;
}

static ToroidStatus emit1(TorProgramBuilder *b, TorScalarFn fn, TorDtype type, Ref a, Ref *out) {
    return emit(b, fn, type, type, &a, 1, out);
}

static ToroidStatus emit2(TorProgramBuilder *b, TorScalarFn fn, TorDtype type, Ref x, Ref y,
                          Ref *out) {
    Ref src[2] = {x, y};
    return emit(b, fn, type, type, src, 2, out);
}

static ToroidStatus convert(TorProgramBuilder *b, Ref from, TorDtype type, TorDtype to, Ref *out) {
    *out = from;
    return type == to ? TOROID_OK : emit(b, TOR_FN_cast, type, to, &from, 1, out);
}

static ToroidStatus reduce(TorProgramBuilder *b, TorReduceKind kind, TorDtype type, Ref src,
                           Ref *out) {
    TorProgram *p = &b->program;
    if (p->n_reductions == TOR_PROGRAM_REDUCTIONS) return full("reductions");
    if (p->n_rows + 2 > TOR_PROGRAM_ROWS) return full("row values");
    if (src.operand.kind == TOR_OPERAND_ROW || src.operand.kind == TOR_OPERAND_IMM)
        return tor_refuse("a reduction over a value that is constant in its row");
    int at = p->n_reductions;
    while (at > 0 && p->reduction[at - 1].stage > src.stage) at--;
    memmove(&p->reduction[at + 1], &p->reduction[at],
            (size_t)(p->n_reductions - at) * sizeof(TorReduction));
    TorReduction *r = &p->reduction[at];
    memset(r, 0, sizeof *r);
    r->kind = (uint8_t)kind;
    r->type = (uint8_t)type;
    r->stage = (uint8_t)src.stage;
    r->dst = p->n_rows;
    r->src = kind == TOR_REDUCE_length ? none : src.operand;
    *out = (Ref){{TOR_OPERAND_ROW, p->n_rows}, src.stage + 1};
    p->n_rows += kind == TOR_REDUCE_moments ? 2 : 1;
    p->n_reductions++;
    p->n_stages = (uint8_t)TOR_MAX(p->n_stages, src.stage + 2);
    return TOROID_OK;
}

static ToroidStatus number(TorProgramBuilder *b, double value, TorDtype type, Ref *out) {
    return imm(b, (TorScalar){.dtype = TOR_float64, .f = value}, type, out);
}

/// Reads a value and brings it to `type`.
static ToroidStatus read_as(TorProgramBuilder *b, TorValue *value, TorDtype type, Ref *out) {
    TorScalar scalar;
    TOR_TRY(read_value(b, value, type, out));
    if (tor_value_number(value, &scalar) && out->operand.kind == TOR_OPERAND_IMM) return TOROID_OK;
    return convert(b, *out, value->dtype, type, out);
}

static ToroidStatus map_node(TorProgramBuilder *b, const TorNode *node, Ref *out) {
    TorDtype to = node->outputs[0]->dtype;
    if (node->op == TOR_OP_cast) {
        Ref x;
        TOR_TRY(read_value(b, tor_in(node, 0), tor_in(node, 0)->dtype, &x));
        return convert(b, x, tor_in(node, 0)->dtype, to, out);
    }
    // The type of the operation is that of its operands; Python numbers take it on.
    TorDtype type = to;
    bool known = false;
    for (int i = node->op == TOR_OP_where; i < node->n_inputs; i++) {
        TorScalar scalar;
        const TorValue *v = tor_in(node, i);
        if (tor_value_number(v, &scalar) && tor_attr_int(v->node, TOR_ATTR_weak, 0)) continue;
        type = v->dtype;
        known = true;
    }
    if (!known && to == TOR_bool && node->n_inputs) type = tor_in(node, node->n_inputs - 1)->dtype;
    Ref src[3];
    for (int i = 0; i < node->n_inputs; i++)
        TOR_TRY(read_value(b, tor_in(node, i), node->op == TOR_OP_where && i == 0 ? TOR_bool : type,
                           &src[i]));
    return emit(b, (TorScalarFn)node->op, type, to, src, node->n_inputs, out);
}

static ToroidStatus reduce_node(TorProgramBuilder *b, const TorNode *node, Ref *out) {
    TorDtype to = node->outputs[0]->dtype, in = tor_in(node, 0)->dtype;
    TorDtype type = tor_dtype_compute(to);  // of the accumulation
    Ref x, n, r;
    switch (node->op) {
        case TOR_OP_sum:
        case TOR_OP_mean:
        case TOR_OP_prod:
            TOR_TRY(read_as(b, tor_in(node, 0), type, &x));
            TOR_TRY(
                reduce(b, node->op == TOR_OP_prod ? TOR_REDUCE_prod : TOR_REDUCE_sum, type, x, &r));
            if (node->op == TOR_OP_mean) {
                TOR_TRY(reduce(b, TOR_REDUCE_length, type, x, &n));
                TOR_TRY(emit2(b, TOR_FN_div, type, r, n, &r));
            }
            return convert(b, r, type, to, out);
        case TOR_OP_var: {
            Ref zero, correction, mean;
            TOR_TRY(read_as(b, tor_in(node, 0), type, &x));
            TOR_TRY(reduce(b, TOR_REDUCE_moments, type, x, &mean));
            Ref biased = {{TOR_OPERAND_ROW, (uint8_t)(mean.operand.index + 1)}, mean.stage};
            TOR_TRY(reduce(b, TOR_REDUCE_length, type, x, &n));
            TOR_TRY(number(b, tor_attr_float(node, TOR_ATTR_correction, 1), type, &correction));
            TOR_TRY(number(b, 0, type, &zero));
            TOR_TRY(emit2(b, TOR_FN_sub, type, n, correction, &r));
            TOR_TRY(emit2(b, TOR_FN_maximum, type, r, zero, &r));
            TOR_TRY(emit2(b, TOR_FN_div, type, n, r, &r));
            TOR_TRY(emit2(b, TOR_FN_mul, type, biased, r, &r));
            return convert(b, r, type, to, out);
        }
        case TOR_OP_any:
        case TOR_OP_all:
            TOR_TRY(read_as(b, tor_in(node, 0), TOR_bool, &x));
            return reduce(b, node->op == TOR_OP_any ? TOR_REDUCE_any : TOR_REDUCE_all, TOR_bool, x,
                          out);
        case TOR_OP_amax:
        case TOR_OP_amin:
            TOR_TRY(read_value(b, tor_in(node, 0), in, &x));
            return reduce(b, node->op == TOR_OP_amax ? TOR_REDUCE_max : TOR_REDUCE_min, in, x, out);
        case TOR_OP_argmax:
        case TOR_OP_argmin:
            TOR_TRY(read_value(b, tor_in(node, 0), in, &x));
            return reduce(b, node->op == TOR_OP_argmax ? TOR_REDUCE_argmax : TOR_REDUCE_argmin, in,
                          x, out);
        default: return tor_invalid("program builder: %s is no reduction", tor_op_name(node->op));
    }
}

static ToroidStatus softmax(TorProgramBuilder *b, const TorNode *node, Ref *out) {
    TorDtype to = node->outputs[0]->dtype, type = tor_dtype_compute(to);
    Ref x, most, shifted, e, sum;
    TOR_TRY(read_as(b, tor_in(node, 0), type, &x));
    TOR_TRY(reduce(b, TOR_REDUCE_max, type, x, &most));
    TOR_TRY(emit2(b, TOR_FN_sub, type, x, most, &shifted));
    TOR_TRY(emit1(b, TOR_FN_exp, type, shifted, &e));
    TOR_TRY(reduce(b, TOR_REDUCE_sum, type, e, &sum));
    if (node->op == TOR_OP_softmax) {
        TOR_TRY(emit2(b, TOR_FN_div, type, e, sum, out));
    } else {
        TOR_TRY(emit1(b, TOR_FN_log, type, sum, &sum));
        TOR_TRY(emit2(b, TOR_FN_sub, type, shifted, sum, out));
    }
    return convert(b, *out, type, to, out);
}

static ToroidStatus norm(TorProgramBuilder *b, const TorNode *node, Ref *out) {
    TorDtype to = node->outputs[0]->dtype, type = tor_dtype_compute(to);
    bool layer = node->op == TOR_OP_layer_norm;
    Ref x, centred, spread, eps, affine;
    TOR_TRY(read_as(b, tor_in(node, 0), type, &x));
    centred = x;
    if (layer) {
        Ref mean;
        TOR_TRY(reduce(b, TOR_REDUCE_moments, type, x, &mean));
        spread = (Ref){{TOR_OPERAND_ROW, (uint8_t)(mean.operand.index + 1)}, mean.stage};
        TOR_TRY(emit2(b, TOR_FN_sub, type, x, mean, &centred));
    } else {
        Ref square, length;
        TOR_TRY(emit2(b, TOR_FN_mul, type, x, x, &square));
        TOR_TRY(reduce(b, TOR_REDUCE_sum, type, square, &spread));
        TOR_TRY(reduce(b, TOR_REDUCE_length, type, x, &length));
        TOR_TRY(emit2(b, TOR_FN_div, type, spread, length, &spread));
    }
    TOR_TRY(number(b, tor_attr_float(node, TOR_ATTR_eps, 1e-5), type, &eps));
    TOR_TRY(emit2(b, TOR_FN_add, type, spread, eps, &spread));
    TOR_TRY(emit1(b, TOR_FN_rsqrt, type, spread, &spread));
    TOR_TRY(emit2(b, TOR_FN_mul, type, centred, spread, out));
    int next = 1;
    if (tor_attr_int(node, TOR_ATTR_has_gamma, node->n_inputs > 1)) {
        TOR_TRY(read_as(b, tor_in(node, next++), type, &affine));
        TOR_TRY(emit2(b, TOR_FN_mul, type, *out, affine, out));
    }
    if (layer && tor_attr_int(node, TOR_ATTR_has_beta, node->n_inputs > 2)) {
        TOR_TRY(read_as(b, tor_in(node, next), type, &affine));
        TOR_TRY(emit2(b, TOR_FN_add, type, *out, affine, out));
    }
    return convert(b, *out, type, to, out);
}

int tor_builder_cost(const TorNode *node) {
    switch (tor_op_kind(node->op)) {
        case TOR_KIND_MAP: return 1;
        case TOR_KIND_REDUCE: return 6;
        default: return node->op == TOR_OP_layer_norm || node->op == TOR_OP_rms_norm ? 11 : 6;
    }
}

ToroidStatus tor_builder_node(TorProgramBuilder *b, const TorNode *node) {
    Ref out;
    switch (tor_op_kind(node->op)) {
        case TOR_KIND_MAP: TOR_TRY(map_node(b, node, &out)); break;
        case TOR_KIND_REDUCE: TOR_TRY(reduce_node(b, node, &out)); break;
        case TOR_KIND_ROW:
            if (node->op == TOR_OP_softmax || node->op == TOR_OP_log_softmax)
                TOR_TRY(softmax(b, node, &out));
            else
                TOR_TRY(norm(b, node, &out));
            break;
        default: return tor_invalid("program builder: %s is not pointwise", tor_op_name(node->op));
    }
    return remember(b, node->outputs[0], out);
}

ToroidStatus tor_builder_output(TorProgramBuilder *b, const TorValue *value, bool row) {
    TorProgram *p = &b->program;
    if (p->n_outputs == TOR_PROGRAM_OUTPUTS) return full("outputs");
    Ref ref = {none, 0};
    for (int i = 0; i < b->n_values; i++)
        if (b->values[i].value == value) ref = (Ref){b->values[i].operand, b->values[i].stage};
    if (ref.operand.kind == TOR_OPERAND_NONE)
        return tor_invalid("program builder: the output was not computed");
    TorOperand output = {TOR_OPERAND_OUTPUT, p->n_outputs};
    p->output_type[p->n_outputs] = (uint8_t)value->dtype;
    p->output_row[p->n_outputs++] = row;
    // The instruction that makes the value writes the output itself if nobody reads the register.
    int maker = -1;
    bool read = false;
    for (int i = 0; i < p->n_instrs; i++) {
        const TorInstr *instr = &p->instr[i];
        if (instr->dst.kind == ref.operand.kind && instr->dst.index == ref.operand.index) maker = i;
        for (int s = 0; s < 3; s++)
            read |=
                instr->src[s].kind == ref.operand.kind && instr->src[s].index == ref.operand.index;
    }
    for (int i = 0; i < p->n_reductions; i++)
        read |= p->reduction[i].src.kind == ref.operand.kind &&
                p->reduction[i].src.index == ref.operand.index;
    if (maker >= 0 && !read && ref.operand.kind == TOR_OPERAND_REG) {
        p->instr[maker].dst = output;
        return TOROID_OK;
    }
    Ref copy;
    TOR_TRY(emit(b, TOR_FN_copy, value->dtype, value->dtype, &ref, 1, &copy));
    for (int i = 0; i < p->n_instrs; i++)
        if (p->instr[i].dst.kind == copy.operand.kind &&
            p->instr[i].dst.index == copy.operand.index)
            p->instr[i].dst = output;
    return TOROID_OK;
}

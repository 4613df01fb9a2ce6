#include "tune/program_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

static const char type_letters[] = "bucsilhefd";  // in the order of TorDtype
_Static_assert(sizeof type_letters == TOR_DTYPE_COUNT + 1, "a letter for each type");
static const char operand_letters[] = "-rimvo";  // in the order of TorOperandKind

static void put_operand(TorText *t, TorOperand operand) {
    tor_text_put(t, "%c%d", operand_letters[operand.kind], operand.index);
}

static void put_stage(TorText *t, const TorProgram *p, int stage) {
    for (int i = 0; i < p->n_instrs; i++) {
        const TorInstr *in = &p->instr[i];
        if (in->stage != stage) continue;
        tor_text_put(t, "|%s.%c%c", tor_fn_name((TorScalarFn)in->fn), type_letters[in->type],
                     type_letters[in->to]);
        put_operand(t, in->dst);
        for (int s = 0; s < tor_fn_arity((TorScalarFn)in->fn); s++) put_operand(t, in->src[s]);
    }
    for (int i = 0; i < p->n_reductions; i++) {
        const TorReduction *r = &p->reduction[i];
        if (r->stage != stage) continue;
        tor_text_put(t, "|+%s.%cv%d", tor_reduce_name((TorReduceKind)r->kind),
                     type_letters[r->type], r->dst);
        put_operand(t, r->src);
    }
}

void tor_program_put(TorText *t, const TorProgram *p) {
    for (int i = 0; i < p->n_inputs; i++) tor_text_put(t, "%c", type_letters[p->input_type[i]]);
    tor_text_put(t, ".");
    for (int i = 0; i < p->n_outputs; i++)
        tor_text_put(t, "%c%s", type_letters[p->output_type[i]], p->output_row[i] ? "*" : "");
    tor_text_put(t, ".%d.%d", p->n_regs, p->n_rows);
    for (int stage = 0; stage < p->n_stages; stage++) {
        if (stage) tor_text_put(t, "|/");
        put_stage(t, p, stage);
    }
    for (int i = 0; i < p->n_imms; i++) {
        const TorScalar *imm = &p->imm[i];
        tor_text_put(t, "|#%c", type_letters[imm->dtype]);
        if (tor_dtype_is_float(imm->dtype))
            tor_text_put(t, "%.17g", imm->f);
        else
            tor_text_put(t, "%" PRId64, imm->i);
    }
}

// ---------------------------------------------------------------- reading

typedef struct {
    const char *at, *end;
    bool wrong;
} Reader;

static bool take(Reader *r, char c) {
    bool is = r->at < r->end && *r->at == c;
    r->at += is;
    return is;
}

static int letter(Reader *r, const char *letters) {
    const char *found = r->at < r->end && *r->at ? strchr(letters, *r->at) : NULL;
    r->wrong |= !found;
    if (!found) return 0;
    r->at++;
    return (int)(found - letters);
}

static int small_number(Reader *r, int most) {
    int value = 0, digits = 0;
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9' && value <= most; digits++)
        value = value * 10 + (*r->at++ - '0');
    r->wrong |= !digits || value > most;
    return r->wrong ? 0 : value;
}

static TorOperand read_operand(Reader *r) {
    int kind = letter(r, operand_letters);
    return (TorOperand){(uint8_t)kind, (uint8_t)small_number(r, UINT8_MAX)};
}

/// The number of the name up to the next ".", among `count` names.
static int read_name(Reader *r, const char *(*name)(int), int count) {
    const char *dot = memchr(r->at, '.', (size_t)(r->end - r->at));
    size_t length = dot ? (size_t)(dot - r->at) : 0;
    for (int i = 0; dot && i < count; i++)
        if (strlen(name(i)) == length && memcmp(name(i), r->at, length) == 0) {
            r->at = dot + 1;
            return i;
        }
    r->wrong = true;
    return 0;
}

static const char *fn_name(int i) { return tor_fn_name((TorScalarFn)i); }
static const char *reduce_name(int i) { return tor_reduce_name((TorReduceKind)i); }

static void read_instr(Reader *r, TorProgram *p, int stage) {
    if (p->n_instrs == TOR_PROGRAM_INSTRS) r->wrong = true;
    if (r->wrong) return;
    TorInstr *in = &p->instr[p->n_instrs++];
    in->fn = (uint8_t)read_name(r, fn_name, TOR_FN_COUNT);
    in->type = (uint8_t)letter(r, type_letters);
    in->to = (uint8_t)letter(r, type_letters);
    in->stage = (uint8_t)stage;
    in->dst = read_operand(r);
    for (int s = 0; s < tor_fn_arity((TorScalarFn)in->fn) && !r->wrong; s++)
        in->src[s] = read_operand(r);
}

static void read_reduction(Reader *r, TorProgram *p, int stage) {
    if (p->n_reductions == TOR_PROGRAM_REDUCTIONS) r->wrong = true;
    if (r->wrong) return;
    TorReduction *to = &p->reduction[p->n_reductions++];
    to->kind = (uint8_t)read_name(r, reduce_name, TOR_REDUCE_moments + 1);
    to->type = (uint8_t)letter(r, type_letters);
    to->stage = (uint8_t)stage;
    TorOperand dst = read_operand(r);
    r->wrong |= dst.kind != TOR_OPERAND_ROW;
    to->dst = dst.index;
    to->src = read_operand(r);
}

static void read_imm(Reader *r, TorProgram *p) {
    if (p->n_imms == TOR_PROGRAM_IMMS) r->wrong = true;
    if (r->wrong) return;
    TorScalar *imm = &p->imm[p->n_imms++];
    imm->dtype = (TorDtype)letter(r, type_letters);
    char number[64] = "", *stop;
    size_t length = strcspn(r->at, "|;");
    if (length == 0 || length >= sizeof number || r->at + length > r->end) r->wrong = true;
    if (r->wrong) return;
    memcpy(number, r->at, length);
    if (tor_dtype_is_float(imm->dtype))
        imm->f = strtod(number, &stop);
    else
        imm->i = strtoll(number, &stop, 10);
    r->wrong |= *stop != 0;
    r->at += length;
}

static void read_head(Reader *r, TorProgram *p) {
    while (!r->wrong && !take(r, '.')) {
        int type = letter(r, type_letters);
        r->wrong |= p->n_inputs == TOR_PROGRAM_INPUTS;
        if (!r->wrong) p->input_type[p->n_inputs++] = (uint8_t)type;
    }
    while (!r->wrong && !take(r, '.')) {
        int type = letter(r, type_letters);
        r->wrong |= p->n_outputs == TOR_PROGRAM_OUTPUTS;
        if (r->wrong) return;
        p->output_row[p->n_outputs] = take(r, '*');
        p->output_type[p->n_outputs++] = (uint8_t)type;
    }
    p->n_regs = (uint8_t)small_number(r, UINT8_MAX);
    r->wrong |= !take(r, '.');
    p->n_rows = (uint8_t)small_number(r, TOR_PROGRAM_ROWS);
}

bool tor_program_read(const char *text, size_t length, TorProgram *p) {
    Reader r = {.at = text, .end = text + length};
    memset(p, 0, sizeof *p);
    read_head(&r, p);
    int stage = 0;
    while (!r.wrong && take(&r, '|')) {
        if (take(&r, '/'))
            r.wrong |= ++stage > TOR_PROGRAM_REDUCTIONS;
        else if (take(&r, '#'))
            read_imm(&r, p);
        else if (take(&r, '+'))
            read_reduction(&r, p, stage);
        else
            read_instr(&r, p, stage);
    }
    p->n_stages = (uint8_t)(stage + 1);
    return !r.wrong && r.at == r.end && tor_program_verify(p) == TOROID_OK;
}

// ---------------------------------------------------------------- epilogues

void tor_params_put_epilogue(TorText *t, const TorEpilogue *e) {
    if (!e) return;
    int64_t strides[3 * TOR_MAP_OPERANDS];
    int operands = e->program->n_inputs + e->program->n_outputs, n = 0;
    for (int i = 1; i < operands; i++) {
        strides[n++] = e->batch_stride[i];
        strides[n++] = e->row_stride[i];
        strides[n++] = e->col_stride[i];
    }
    tor_text_add(t, ";epilogue=");
    tor_program_put(t, e->program);
    tor_params_put_list(t, "strides", strides, n);
}

bool tor_params_get_epilogue(TorParams *p, TorArena *arena, TorEpilogue *e) {
    size_t length;
    const char *text = tor_params_text(p, "epilogue", &length);
    if (!text) return false;
    TorProgram *program = tor_arena_alloc(arena, sizeof *program);
    if (!program || !tor_program_read(text, length, program) || program->n_reductions ||
        program->n_inputs < 1 || program->input_type[0] != TOR_float32) {
        p->wrong = "epilogue";
        return false;
    }
    int64_t strides[3 * TOR_MAP_OPERANDS];
    int operands = program->n_inputs + program->n_outputs;
    tor_params_get_all(p, "strides", strides, 3 * (operands - 1));
    for (int i = 1; i < operands && !p->wrong; i++) {
        e->batch_stride[i] = strides[3 * i - 3];
        e->row_stride[i] = strides[3 * i - 2];
        e->col_stride[i] = strides[3 * i - 1];
    }
    tor_epilogue_bind(e, program);
    return true;
}

TorDtype tor_program_operand_type(const TorProgram *p, int i) {
    return (TorDtype)(i < p->n_inputs ? p->input_type[i] : p->output_type[i - p->n_inputs]);
}

bool tor_tune_epilogue(const TorEpilogue *e, int64_t batches, int64_t rows, int64_t cols,
                       TorTuneOperands *list) {
    const TorProgram *program = e->program;
    int64_t size[] = {batches, rows, cols}, elements;
    for (int i = 1; i < program->n_inputs + program->n_outputs; i++) {
        int64_t stride[] = {e->batch_stride[i], e->row_stride[i], e->col_stride[i]};
        TorDtype dtype = tor_program_operand_type(program, i);
        if (!tor_params_extent(size, stride, 3, &elements)) return false;
        if (list)
            tor_tune_operand(list, &e->data[i], (size_t)elements * tor_dtype_size(dtype), dtype,
                             i >= program->n_inputs, false);
    }
    return true;
}

uint64_t tor_epilogue_hash(const TorEpilogue *e, uint64_t hash) {
    if (!e) return hash;
    int operands = e->program->n_inputs + e->program->n_outputs;
    hash = tor_hash_add(hash, (int64_t)e->prepared.hash);
    for (int i = 1; i < operands; i++) {
        hash = tor_hash_add(hash, e->batch_stride[i]);
        hash = tor_hash_add(hash, e->row_stride[i]);
        hash = tor_hash_add(hash, e->col_stride[i]);
    }
    return hash;
}

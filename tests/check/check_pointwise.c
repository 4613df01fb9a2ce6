// The pointwise engine against tor_map_run_ref(): every (function, type) row, random programs, row
// programs over every kind of axis, epilogues.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "bench_pointwise.h"
#include "harness.h"
#include "kernels/pointwise/contract.h"
#include "pointwise_programs.h"

// One case
// -----------------------------------------------------------------------------------------

typedef struct {
    TorProgram program;
    int rank, row_rank;
    int64_t size[TOR_MAP_RANK], stride[TOR_MAP_OPERANDS][TOR_MAP_RANK];
    TorFill fill;
    double rtol, atol;
} Case;

// Strides over a random order of dims with gaps now and then; inputs may broadcast, and any may run
// backwards. Returns the elements of memory, and where element 0 is.
static int64_t make_strides(Case *c, int k, int plain, int64_t *origin) {
    const TorProgram *p = &c->program;
    bool is_input = k < p->n_inputs, row_output = !is_input && p->output_row[k - p->n_inputs];
    int order[TOR_MAP_RANK], outer = c->rank - c->row_rank;
    for (int d = 0; d < c->rank; d++) order[d] = d;
    for (int d = c->rank - 1; d > 0 && !plain; d--) {
        int e = tor_check_coin() ? d : (int)tor_check_range(0, d), t = order[d];
        order[d] = order[e];
        order[e] = t;
    }
    int64_t step = 1;
    *origin = 0;
    if (!plain && tor_check_range(0, 9) == 0) step = tor_check_range(1, 3);
    for (int i = c->rank - 1; i >= 0; i--) {
        int d = order[i];
        if (row_output && d >= outer) {
            c->stride[k][d] = 77;  // is not to be used
            continue;
        }
        if (is_input && !plain && tor_check_range(0, 4) == 0) {
            c->stride[k][d] = 0;
            continue;
        }
        c->stride[k][d] = step;
        step *= TOR_MAX(c->size[d], 1);
        if (!plain && tor_check_range(0, 9) == 0) step += tor_check_range(1, 5);
        if (!plain && tor_check_range(0, 9) == 0 && c->size[d] > 0) {
            c->stride[k][d] = -c->stride[k][d];
            *origin += (c->size[d] - 1) * -c->stride[k][d];
        }
    }
    return TOR_MAX(step, 1);
}

static TorDtype operand_type(const TorProgram *p, int k) {
    return (TorDtype)(k < p->n_inputs ? p->input_type[k] : p->output_type[k - p->n_inputs]);
}

// Some rows (x * 0, comparisons, division of small integers) are rightly zero nearly everywhere,
// which the harness does not trust; other rounds of the same row are not.
static void compare(TorDtype type, const void *got, const void *want, int64_t count, double rtol,
                    double atol) {
    int64_t zeros = 0;
    for (int64_t i = 0; i < count; i++) zeros += tor_check_value(type, want, i) == 0;
    if (zeros * 16 < count) {
        tor_check_compare(type, got, want, count, rtol, atol);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        double g = tor_check_value(type, got, i), w = tor_check_value(type, want, i);
        if (!(fabs(g - w) <= atol + rtol * fabs(w)) && g != w && !(isnan(g) && isnan(w))) {
            tor_check_fail("element %d: got %.9g, expected %.9g", (int)i, g, w);
            return;
        }
    }
}

static void run_case(Case *c, int plain) {
    TorProgram *p = &c->program;
    TorPrepared prepared;
    TorMapArgs args = {0}, ref = {0};
    int64_t count[TOR_MAP_OPERANDS], origin[TOR_MAP_OPERANDS];
    int operands = p->n_inputs + p->n_outputs;
    uint8_t *got[TOR_MAP_OPERANDS], *again[TOR_MAP_OPERANDS], *want[TOR_MAP_OPERANDS];
    if (tor_program_verify(p) != TOROID_OK) {
        char text[4096];
        tor_check_fail("verify: %s\n%s", toroid_last_error(),
                       tor_program_print(p, text, sizeof text));
        return;
    }
    for (int k = 0; k < operands; k++) {
        count[k] = make_strides(c, k, plain, &origin[k]);
        TorDtype type = operand_type(p, k);
        size_t bytes = (size_t)count[k] * tor_dtype_size(type);
        got[k] = tor_check_buffer(bytes, tor_dtype_size(type));
        if (k < p->n_inputs) {
            tor_check_fill(type, got[k], count[k], c->fill);
            again[k] = want[k] = got[k];
        } else {
            again[k] = tor_check_buffer(bytes, tor_dtype_size(type));
            want[k] = tor_check_buffer(bytes, tor_dtype_size(type));
        }
    }
    ref.program = p;
    ref.rank = c->rank;
    ref.row_rank = c->row_rank;
    memcpy(ref.size, c->size, sizeof ref.size);
    memcpy(ref.stride, c->stride, sizeof ref.stride);
    tor_program_prepare(&prepared, p);
    tor_map_bind(&args, &prepared, c->rank, c->row_rank, c->size, c->stride);
    for (int k = 0; k < operands; k++) {
        int64_t at = origin[k] * (int64_t)tor_dtype_size(operand_type(p, k));
        ref.data[k] = want[k] + at;
        args.data[k] = got[k] + at;
    }
    int raised = 0, rightly = 0;
    args.error = &raised;
    ref.error = &rightly;
    tor_map_run_ref(&ref);
    void *scratch = tor_check_buffer(args.scratch_bytes, 64);
    tor_map_run(&args, 0, args.items, scratch);
    TOR_CHECK(raised == rightly);  // integers divided by zero
    for (int k = p->n_inputs; k < operands; k++)
        args.data[k] = again[k] + origin[k] * (int64_t)tor_dtype_size(operand_type(p, k));
    for (int64_t i = 0; i < args.items;) {
        int64_t end = TOR_MIN(args.items, i + tor_check_range(1, TOR_MAX(args.items / 3, 1)));
        tor_map_run(&args, i, end, scratch);
        i = end;
    }
    for (int k = p->n_inputs; k < operands; k++) {
        tor_check_same(got[k], again[k], (size_t)count[k] * tor_dtype_size(operand_type(p, k)));
        compare(operand_type(p, k), got[k], want[k], count[k], c->rtol, c->atol);
    }
}

static int64_t some_size(void) {
    static const int64_t sizes[] = {1,  2,  3,   7,   8,   9,   15,  16,  17,  31,  33,   63,
                                    64, 65, 100, 127, 128, 129, 255, 257, 511, 513, 1025, 2050};
    return sizes[tor_check_range(0, TOR_COUNT_OF(sizes) - 1)];
}

static void some_shape(Case *c, int64_t most) {
    c->rank = (int)tor_check_range(0, 4);
    int64_t total = 1;
    for (int d = 0; d < c->rank; d++) {
        c->size[d] = TOR_MIN(some_size(), TOR_MAX(most / total, 1));
        total *= c->size[d];
    }
    if (c->rank && tor_check_range(0, 40) == 0) c->size[tor_check_range(0, c->rank - 1)] = 0;
}

// Every row
// ----------------------------------------------------------------------------------------

// How far a result may be from the oracle's, in units of the type's epsilon.
static double tolerance(TorScalarFn fn, TorDtype type) {
    bool approximate = (fn >= TOR_FN_exp && fn <= TOR_FN_silu && fn != TOR_FN_relu) ||
                       fn == TOR_FN_pow || fn == TOR_FN_atan2 || fn == TOR_FN_fma ||
                       fn == TOR_FN_rsqrt || fn == TOR_FN_hardswish || fn == TOR_FN_hardsigmoid;
    if (type == TOR_float64) return approximate ? 1e-15 * 4 : 0;
    if (!tor_dtype_is_float(type) || !approximate) return 0;
    return type == TOR_float32 ? 4e-7 : type == TOR_float16 ? 1e-3 : 8e-3;
}

static void one_row(TorScalarFn fn, TorDtype type, TorDtype to) {
    for (int round = 0; round < 14; round++) {
        Case c = {.fill = round % 3 == 0   ? TOR_FILL_EXACT
                          : round % 3 == 1 ? TOR_FILL_SPECIAL
                                           : TOR_FILL_UNIFORM};
        // A product that overflows alone makes a NaN in two roundings and none in one.
        if (fn == TOR_FN_fma && c.fill == TOR_FILL_SPECIAL) c.fill = TOR_FILL_UNIFORM;
        TorProgram *p = &c.program;
        TorOperand src[3] = {NONE, NONE, NONE};
        int vectors = 0;
        p->n_stages = 1;
        for (int s = 0; s < tor_fn_arity(fn); s++) {
            TorDtype t = fn == TOR_FN_where && s == 0 ? TOR_bool : type;
            bool last = s == tor_fn_arity(fn) - 1;
            if ((last && !vectors) || tor_check_range(0, 2)) {
                src[s] = IN(input(p, t));
                vectors++;
            } else if (t == TOR_bool) {
                src[s] = imm(p, (TorScalar){.dtype = TOR_bool, .i = tor_check_coin()});
            } else if (tor_dtype_is_float(t)) {
                src[s] = imm_f(p, t, (double)tor_check_range(-8, 8) / 4);
            } else {
                src[s] =
                    imm(p, tor_scalar_cast(
                               (TorScalar){.dtype = TOR_int64, .i = tor_check_range(-9, 9)}, t));
            }
        }
        output(p, 0, to, false);
        emit(p, fn, type, to, 0, OUT(0), src[0], src[1], src[2]);
        some_shape(&c, 3000);
        c.rtol = tolerance(fn, type);
        // gelu_erf loses what 1 + erf loses in the negative tail; simd_math.h says how much.
        double absolute = fn == TOR_FN_gelu_erf ? 9e-7 : 2e-7;
        c.atol = c.rtol ? (type == TOR_float64 ? 1e-15 : absolute) : 0;
        tor_check_case("%s.%s.%s rank %d, %d inputs, round %d", tor_fn_name(fn),
                       tor_dtype_name(type), tor_dtype_name(to), c.rank, p->n_inputs, round);
        run_case(&c, round == 0);
        tor_check_done();
    }
}

static void rows(void) {
    for (int fn = 0; fn < TOR_FN_COUNT; fn++) {
        for (int type = 0; type < TOR_DTYPE_COUNT; type++) {
            if (!tor_fn_takes((TorScalarFn)fn, (TorDtype)type)) continue;
            if (fn != TOR_FN_cast) {
                one_row((TorScalarFn)fn, (TorDtype)type,
                        tor_fn_result((TorScalarFn)fn, (TorDtype)type, TOR_bool));
            } else {
                for (int to = 0; to < TOR_DTYPE_COUNT; to++)
                    one_row(TOR_FN_cast, (TorDtype)type, (TorDtype)to);
            }
        }
    }
}

// Zeros' signs, which the comparison above does not see. Right values are eager's.
static void signed_zeros(void) {
    static const struct {
        TorScalarFn fn;
        float a, b, want;
    } rows_[] = {
        {TOR_FN_relu, -0.0f, 0, -0.0f},         {TOR_FN_maximum, -0.0f, 0.0f, -0.0f},
        {TOR_FN_maximum, 0.0f, -0.0f, 0.0f},    {TOR_FN_minimum, -0.0f, 0.0f, -0.0f},
        {TOR_FN_minimum, 0.0f, -0.0f, 0.0f},    {TOR_FN_ceil, -0.5f, 0, -0.0f},
        {TOR_FN_floor, -0.0f, 0, -0.0f},        {TOR_FN_round, -0.4f, 0, -0.0f},
        {TOR_FN_trunc, -0.9f, 0, -0.0f},        {TOR_FN_neg, 0.0f, 0, -0.0f},
        {TOR_FN_sin, -0.0f, 0, -0.0f},          {TOR_FN_tanh, -0.0f, 0, -0.0f},
        {TOR_FN_erf, -0.0f, 0, -0.0f},          {TOR_FN_expm1, -0.0f, 0, -0.0f},
        {TOR_FN_log1p, -0.0f, 0, -0.0f},        {TOR_FN_sqrt, -0.0f, 0, -0.0f},
        {TOR_FN_sign, -0.0f, 0, 0.0f},          {TOR_FN_mul, -0.0f, 1.0f, -0.0f},
        {TOR_FN_remainder, -0.0f, 3.0f, -0.0f}, {TOR_FN_div_floor, 0.0f, -3.0f, -0.0f},
        {TOR_FN_fmod, -3.0f, 3.0f, -0.0f},      {TOR_FN_abs, -0.0f, 0, 0.0f},
        {TOR_FN_hardswish, -0.0f, 0, -0.0f},    {TOR_FN_silu, -0.0f, 0, -0.0f},
    };
    for (size_t i = 0; i < TOR_COUNT_OF(rows_); i++) {
        TorProgram p = {.n_stages = 1};
        TorPrepared prepared;
        TorMapArgs args = {0};
        bool two = tor_fn_arity(rows_[i].fn) == 2;
        int a = input(&p, TOR_float32), b = two ? input(&p, TOR_float32) : 0;
        output(&p, 0, TOR_float32, false);
        emit(&p, rows_[i].fn, TOR_float32, TOR_float32, 0, OUT(0), IN(a), two ? IN(b) : NONE, NONE);
        tor_check_case("%s(%g, %g)", tor_fn_name(rows_[i].fn), (double)rows_[i].a,
                       (double)rows_[i].b);
        tor_program_prepare(&prepared, &p);
        int64_t size[1] = {19}, stride[3][TOR_MAP_RANK] = {{1}, {1}, {1}};
        tor_map_bind(&args, &prepared, 1, 0, size, stride);
        float x[19], y[19], z[19];
        for (int j = 0; j < 19; j++) x[j] = rows_[i].a, y[j] = rows_[i].b;
        args.data[0] = x;
        args.data[1] = two ? y : z;
        args.data[2] = z;
        tor_map_run(&args, 0, args.items, tor_check_buffer(args.scratch_bytes, 64));
        for (int j = 0; j < 19; j++)
            TOR_CHECK(z[j] == rows_[i].want && signbit(z[j]) == signbit(rows_[i].want));
        tor_check_done();
    }
}

// Random programs
// ----------------------------------------------------------------------------------

typedef struct {
    TorOperand operand;
    TorDtype type;
    bool row;
} Value;

typedef struct {
    Case c;
    Value value[80];
    int n;
    bool multiplies;  ///< else it adds: both could be fused into one rounding
} Fuzz;

static TorDtype some_type(void) {
    static const TorDtype types[] = {TOR_float32, TOR_float32, TOR_float32, TOR_float64,
                                     TOR_int64,   TOR_int32,   TOR_int16,   TOR_int8,
                                     TOR_uint8,   TOR_bool,    TOR_float16, TOR_bfloat16};
    return types[tor_check_range(0, TOR_COUNT_OF(types) - 1)];
}

static TorOperand some_value(Fuzz *f, TorDtype type, bool row_only) {
    int found[80], n = 0;
    for (int i = 0; i < f->n; i++)
        if (f->value[i].type == type && (!row_only || f->value[i].row)) found[n++] = i;
    if (n && tor_check_range(0, 5))
        return f->value[found[tor_check_coin() ? n - 1 : tor_check_range(0, n - 1)]].operand;
    TorProgram *p = &f->c.program;
    if (!row_only && p->n_inputs < 6 && tor_check_coin()) {
        Value v = {IN(input(p, type)), type, false};
        f->value[f->n++] = v;
        return v.operand;
    }
    if (p->n_imms >= TOR_PROGRAM_IMMS)
        return n ? f->value[found[0]].operand : (TorOperand){TOR_OPERAND_IMM, 0};
    TorScalar one = {.dtype = TOR_int64, .i = tor_check_range(-3, 3)};
    return imm(p, tor_scalar_cast(one, tor_dtype_compute(type)));
}

static TorScalarFn some_fn(const Fuzz *f, TorDtype type) {
    static const TorScalarFn fns[] = {
        TOR_FN_add,     TOR_FN_sub,     TOR_FN_mul,        TOR_FN_minimum,  TOR_FN_maximum,
        TOR_FN_bit_and, TOR_FN_bit_xor, TOR_FN_shift_left, TOR_FN_lt,       TOR_FN_ge,
        TOR_FN_eq,      TOR_FN_where,   TOR_FN_neg,        TOR_FN_abs,      TOR_FN_relu,
        TOR_FN_sign,    TOR_FN_bit_not, TOR_FN_floor,      TOR_FN_copy,     TOR_FN_cast,
        TOR_FN_cast,    TOR_FN_fmax,    TOR_FN_div_floor,  TOR_FN_remainder};
    for (;;) {
        TorScalarFn fn = fns[tor_check_range(0, TOR_COUNT_OF(fns) - 1)];
        bool adds = fn == TOR_FN_add || fn == TOR_FN_sub,
             muls = fn == TOR_FN_mul || fn == TOR_FN_div_floor;
        if (!tor_fn_takes(fn, type) || (tor_dtype_is_float(type) && (f->multiplies ? adds : muls)))
            continue;
        return fn;
    }
}

static void some_instr(Fuzz *f, int stage, TorOperand dst, TorDtype to, bool row) {
    TorProgram *p = &f->c.program;
    TorDtype type = to == TOR_DTYPE_COUNT ? some_type() : to;
    TorScalarFn fn = to == TOR_DTYPE_COUNT ? some_fn(f, type) : TOR_FN_copy;
    TorOperand src[3] = {NONE, NONE, NONE};
    for (int s = 0; s < tor_fn_arity(fn); s++)
        src[s] = some_value(f, fn == TOR_FN_where && s == 0 ? TOR_bool : type, row);
    to = tor_fn_result(fn, type, fn == TOR_FN_cast ? some_type() : type);
    emit(p, fn, type, to, stage, dst, src[0], src[1], src[2]);
    if (dst.kind == TOR_OPERAND_REG || dst.kind == TOR_OPERAND_ROW)
        f->value[f->n++] = (Value){dst, to, row};
}

static void some_reduction(Fuzz *f, int stage, int dst) {
    TorProgram *p = &f->c.program;
    for (;;) {
        TorReduceKind kind = (TorReduceKind)tor_check_range(TOR_REDUCE_sum, TOR_REDUCE_all);
        int k = (int)tor_check_range(0, f->n);
        if (k == f->n) continue;
        Value v = f->value[k];
        if (v.operand.kind != TOR_OPERAND_REG && v.operand.kind != TOR_OPERAND_INPUT) continue;
        // Float sums and products of large numbers depend on the order.
        if (tor_dtype_is_float(v.type) && (kind == TOR_REDUCE_sum || kind == TOR_REDUCE_prod))
            continue;
        reduce(p, kind, v.type, stage, dst, v.operand);
        f->value[f->n++] = (Value){ROW(dst), tor_reduce_result(kind, v.type), true};
        return;
    }
}

static void random_programs(void) {
    for (int round = 0; round < 700; round++) {
        Fuzz fuzz = {0}, *f = &fuzz;
        TorProgram *p = &f->c.program;
        int stages = tor_check_coin() ? 1 : (int)tor_check_range(2, 3), row = 0, reg = 0;
        f->multiplies = tor_check_coin();
        f->c.fill = TOR_FILL_EXACT;
        p->n_stages = (uint8_t)stages;
        for (int i = 0; i < 2; i++) {
            TorDtype type = some_type();
            f->value[f->n++] = (Value){IN(input(p, type)), type, false};
        }
        for (int stage = 0; stage < stages; stage++) {
            bool last = stage == stages - 1;
            int instrs = (int)tor_check_range(1, stages == 1 ? 12 : 5);
            for (int i = 0; i < instrs; i++) {
                if (stage && tor_check_range(0, 3) == 0) {
                    some_instr(f, stage, ROW(row), TOR_DTYPE_COUNT, true);
                    row++;
                } else {
                    some_instr(f, stage, REG(reg), TOR_DTYPE_COUNT, false);
                    reg++;
                }
            }
            for (int i = (int)tor_check_range(1, 2); !last && i > 0; i--)
                some_reduction(f, stage, row++);
        }
        p->n_stages = (uint8_t)stages;
        for (int k = 0; k < (stages == 1 ? 2 : 3); k++) {
            bool by_row = k == 2;
            Value v;
            do v = f->value[tor_check_range(0, f->n - 1)];
            while (by_row ? !v.row : false);
            output(p, k, v.type, by_row);
            emit(p, TOR_FN_copy, v.type, v.type, stages - 1, OUT(k), v.operand, NONE, NONE);
        }
        some_shape(&f->c, 1500);
        f->c.row_rank = stages > 1 ? (int)tor_check_range(0, f->c.rank) : 0;
        // Maxima of nothing are refused before they come here.
        for (int d = 0; stages > 1 && d < f->c.rank; d++) f->c.size[d] = TOR_MAX(f->c.size[d], 1);
        char text[4096];
        tor_check_case("round %d rank %d row %d [%d %d %d %d]\n%s", round, f->c.rank, f->c.row_rank,
                       (int)f->c.size[0], (int)f->c.size[1], (int)f->c.size[2], (int)f->c.size[3],
                       tor_program_print(p, text, sizeof text));
        run_case(&f->c, round % 4 == 0);
        tor_check_done();
    }
}

// Row programs
// -------------------------------------------------------------------------------------

static void row_shape(Case *c) {
    static const int64_t lengths[] = {1, 2, 5, 16, 31, 64, 77, 128, 200, 257, 512, 768, 1024, 1500};
    c->rank = (int)tor_check_range(1, 4);
    c->row_rank = (int)tor_check_range(1, TOR_MIN(c->rank, 2));
    int64_t total = 1;
    for (int d = c->rank - 1; d >= 0; d--) {
        c->size[d] = TOR_MIN(lengths[tor_check_range(0, TOR_COUNT_OF(lengths) - 1)],
                             TOR_MAX(6000 / total, 1));
        total *= c->size[d];
    }
}

static void norms(void) {
    static const struct {
        const char *name;
        void (*make)(TorProgram *, TorDtype);
    } kinds[] = {{"softmax", softmax},
                 {"log_softmax", log_softmax},
                 {"layer_norm", layer_norm},
                 {"rms_norm", rms_norm}};
    static const TorDtype types[] = {TOR_float32, TOR_float32, TOR_float64, TOR_float16,
                                     TOR_bfloat16};
    for (int round = 0; round < 240; round++) {
        int k = round % 4;
        TorDtype type = types[round / 4 % 5];
        Case c = {.fill = TOR_FILL_UNIFORM};
        kinds[k].make(&c.program, type);
        row_shape(&c);
        c.rtol = type == TOR_float64   ? 1e-12
                 : type == TOR_float32 ? 3e-6
                 : type == TOR_float16 ? 4e-3
                                       : 3e-2;
        c.atol = c.rtol * (k == 2 ? 8 : 1);
        tor_check_case("%s.%s round %d rank %d row %d [%d %d %d %d]", kinds[k].name,
                       tor_dtype_name(type), round, c.rank, c.row_rank, (int)c.size[0],
                       (int)c.size[1], (int)c.size[2], (int)c.size[3]);
        run_case(&c, round % 3 != 0);
        tor_check_done();
    }
    // Rows that are too long to keep.
    for (int k = 0; k < 4; k++) {
        Case c = {.fill = TOR_FILL_UNIFORM,
                  .rank = 2,
                  .row_rank = 1,
                  .size = {2, 100003},
                  .rtol = 2e-5,
                  .atol = 2e-5};
        kinds[k].make(&c.program, TOR_float32);
        tor_check_case("%s, row of 100003", kinds[k].name);
        run_case(&c, 1);
        tor_check_done();
    }
}

static void reductions(void) {
    for (int round = 0; round < 900; round++) {
        TorReduceKind kind = (TorReduceKind)(round % (TOR_REDUCE_moments + 1));
        TorDtype type = (TorDtype)(round / (TOR_REDUCE_moments + 1) % TOR_DTYPE_COUNT);
        if (kind == TOR_REDUCE_moments && !tor_dtype_is_float(type)) continue;
        bool order =
            tor_dtype_is_float(type) && (kind == TOR_REDUCE_moments || kind == TOR_REDUCE_prod);
        Case c = {.fill = kind == TOR_REDUCE_sum ? TOR_FILL_EXACT
                          : order                ? TOR_FILL_UNIFORM
                                                 : TOR_FILL_SPECIAL};
        plain_reduction(&c.program, kind, type);
        row_shape(&c);
        // Maxima of nothing are refused before they come here.
        if (kind < TOR_REDUCE_max && tor_check_range(0, 20) == 0) c.size[c.rank - 1] = 0;
        c.rtol = !order                ? 0
                 : type == TOR_float64 ? 1e-11
                 : type == TOR_float32 ? 1e-5
                 : type == TOR_float16 ? 2e-3
                                       : 1e-2;
        c.atol = order ? c.rtol * 0.1 : 0;
        if (kind == TOR_REDUCE_prod && order) c.atol = 1e-30;
        tor_check_case("%s.%s round %d rank %d row %d [%d %d %d %d]", tor_reduce_name(kind),
                       tor_dtype_name(type), round, c.rank, c.row_rank, (int)c.size[0],
                       (int)c.size[1], (int)c.size[2], (int)c.size[3]);
        run_case(&c, round % 3 == 0);
        tor_check_done();
    }
}

// Epilogues
// ----------------------------------------------------------------------------------------

static void epilogues(void) {
    for (int round = 0; round < 200; round++) {
        TorProgram p = {.n_stages = 1};
        TorDtype out = round % 4 == 3 ? TOR_bfloat16 : TOR_float32;
        int acc = input(&p, TOR_float32), bias = input(&p, TOR_float32), residual = input(&p, out);
        output(&p, 0, out, false);
        emit(&p, TOR_FN_add, TOR_float32, TOR_float32, 0, REG(0), IN(acc), IN(bias), NONE);
        emit(&p, round % 2 ? TOR_FN_gelu_erf : TOR_FN_relu, TOR_float32, TOR_float32, 0, REG(1),
             REG(0), NONE, NONE);
        if (out != TOR_float32) {
            emit(&p, TOR_FN_cast, TOR_float32, out, 0, REG(2), REG(1), NONE, NONE);
            emit(&p, TOR_FN_add, out, out, 0, OUT(0), REG(2), IN(residual), NONE);
        } else {
            emit(&p, TOR_FN_add, TOR_float32, TOR_float32, 0, OUT(0), REG(1), IN(residual), NONE);
        }
        int64_t batch = 2, m = tor_check_range(1, 40), n = tor_check_range(1, 300),
                row = tor_check_range(0, m - 1), col = tor_check_range(0, n - 1);
        int64_t rows_ = tor_check_range(1, m - row), cols = tor_check_range(1, n - col),
                gap = tor_check_range(0, 3);
        bool by_row = tor_check_coin(), transposed = tor_check_range(0, 3) == 0,
             in_place = out == TOR_float32 && tor_check_coin();
        size_t bytes = tor_dtype_size(out);
        tor_check_case("epilogue %d: %dx%d at %d,%d of %dx%d", round, (int)rows_, (int)cols,
                       (int)row, (int)col, (int)m, (int)n);
        float *tile = tor_check_buffer((size_t)(rows_ * (cols + gap)) * 4, 4),
              *b = tor_check_buffer((size_t)TOR_MAX(m, n) * 4, 4);
        void *r = tor_check_buffer((size_t)(batch * m * n) * bytes, bytes),
             *got = tor_check_buffer((size_t)(batch * m * n) * bytes, bytes);
        void *want = tor_check_buffer((size_t)(batch * m * n) * bytes, bytes);
        tor_check_fill(TOR_float32, tile, rows_ * (cols + gap), TOR_FILL_UNIFORM);
        tor_check_fill(TOR_float32, b, TOR_MAX(m, n), TOR_FILL_UNIFORM);
        tor_check_fill(out, r, batch * m * n, TOR_FILL_UNIFORM);
        TorEpilogue e;
        tor_epilogue_bind(&e, &p);
        int64_t rs = transposed ? 1 : n, cs = transposed ? m : 1;
        const int64_t strides[4][3] = {
            {0, 0, 0}, {0, by_row, !by_row}, {m * n, rs, cs}, {m * n, n, 1}};
        for (int k = 0; k < 4; k++)
            e.batch_stride[k] = strides[k][0], e.row_stride[k] = strides[k][1],
            e.col_stride[k] = strides[k][2];
        e.data[0] = NULL;
        e.data[1] = b;
        e.data[2] = r;
        e.data[3] = got;
        TorMapArgs ref = {.program = &p, .rank = 2, .size = {rows_, cols}};
        const int64_t ref_strides[4][2] = {{cols + gap, 1}, {by_row, !by_row}, {rs, cs}, {n, 1}};
        for (int k = 0; k < 4; k++)
            ref.stride[k][0] = ref_strides[k][0], ref.stride[k][1] = ref_strides[k][1];
        ref.data[0] = tile;
        ref.data[1] = b + (by_row ? row : col);
        ref.data[2] = (uint8_t *)r + (m * n + row * rs + col * cs) * (int64_t)bytes;
        ref.data[3] = (uint8_t *)want + (m * n + row * n + col) * (int64_t)bytes;
        tor_map_run_ref(&ref);
        const float *from = tile;
        int64_t acc_stride = cols + gap;
        if (in_place) {
            for (int64_t i = 0; i < rows_; i++)
                memcpy((float *)got + m * n + (row + i) * n + col, tile + i * (cols + gap),
                       (size_t)cols * 4);
            from = (float *)got + m * n + row * n + col;
            acc_stride = n;
        }
        void *scratch = tor_check_buffer(tor_epilogue_scratch(&e, cols), 64);
        tor_epilogue_run(&e, 1, row, rows_, col, cols, from, acc_stride, scratch);
        double tol = out == TOR_float32 ? 1e-6 : 1.6e-2;
        compare(out, got, want, batch * m * n, tol, tol);
        tor_check_done();
    }
}
int main(int argc, char **argv) {
    static const TorCheckTest tests[] = {
        {"rows", rows},   {"signed_zeros", signed_zeros}, {"random_programs", random_programs},
        {"norms", norms}, {"reductions", reductions},     {"epilogues", epilogues}};
    return tor_check_main(argc, argv, tests, TOR_COUNT_OF(tests), pointwise_benches,
                          pointwise_bench_count);
}

// The oracle: one element at a time, straight from the program. Float functions in double, rounded
// to the instruction's type; sums in double; integers in 64 bits, wrapped to the type.
#include <math.h>
#include <string.h>

#include "kernels/pointwise/contract.h"

typedef struct {
    const TorMapArgs *args;
    int64_t at[TOR_MAP_RANK];
    TorScalar reg[TOR_PROGRAM_INSTRS], row[TOR_PROGRAM_ROWS];
} Ref;

static double float_of(TorScalarFn fn, double x, double y, double z) {
    switch (fn) {
        case TOR_FN_add: return x + y;
        case TOR_FN_sub: return x - y;
        case TOR_FN_mul: return x * y;
        case TOR_FN_div: return x / y;
        case TOR_FN_div_trunc: return trunc(x / y);
        case TOR_FN_fmod: return fmod(x, y);
        case TOR_FN_pow: return pow(x, y);
        case TOR_FN_atan2: return atan2(x, y);
        case TOR_FN_minimum: return isnan(y) || y < x ? y : x;
        case TOR_FN_maximum: return isnan(y) || y > x ? y : x;
        case TOR_FN_fmin: return isnan(x) || y < x ? y : x;
        case TOR_FN_fmax: return isnan(x) || y > x ? y : x;
        case TOR_FN_copysign: return copysign(x, y);
        case TOR_FN_fma: return x * y + z;
        case TOR_FN_neg: return -x;
        case TOR_FN_abs: return fabs(x);
        case TOR_FN_sign: return (x > 0) - (x < 0);
        case TOR_FN_ceil: return ceil(x);
        case TOR_FN_floor: return floor(x);
        case TOR_FN_round: return rint(x);
        case TOR_FN_trunc: return trunc(x);
        case TOR_FN_sqrt: return sqrt(x);
        case TOR_FN_rsqrt: return 1 / sqrt(x);
        case TOR_FN_reciprocal: return 1 / x;
        case TOR_FN_exp: return exp(x);
        case TOR_FN_exp2: return exp2(x);
        case TOR_FN_expm1: return expm1(x);
        case TOR_FN_log: return log(x);
        case TOR_FN_log2: return log2(x);
        case TOR_FN_log10: return log10(x);
        case TOR_FN_log1p: return log1p(x);
        case TOR_FN_sin: return sin(x);
        case TOR_FN_cos: return cos(x);
        case TOR_FN_tan: return tan(x);
        case TOR_FN_asin: return asin(x);
        case TOR_FN_acos: return acos(x);
        case TOR_FN_atan: return atan(x);
        case TOR_FN_sinh: return sinh(x);
        case TOR_FN_cosh: return cosh(x);
        case TOR_FN_tanh: return tanh(x);
        case TOR_FN_asinh: return asinh(x);
        case TOR_FN_acosh: return acosh(x);
        case TOR_FN_atanh: return atanh(x);
        case TOR_FN_erf: return erf(x);
        case TOR_FN_erfc: return erfc(x);
        case TOR_FN_sigmoid: return 1 / (1 + exp(-x));
        case TOR_FN_relu: return x < 0 ? 0 : x;
        case TOR_FN_gelu_erf: return x * 0.5 * erfc(-x * 0.70710678118654752440);
        case TOR_FN_gelu_tanh:
            return x / (1 + exp(-1.5957691216057307117 * (x + 0.044715 * x * x * x)));
        case TOR_FN_silu: return x / (1 + exp(-x));
        case TOR_FN_hardsigmoid: return (x + 3 < 0 ? 0 : x + 3 > 6 ? 6 : x + 3) / 6;
        default: return x;
    }
}

// ATen's hardswish, remainder and floor division, whose intermediate roundings are part of the
// answer.
static double float_rounded(TorScalarFn fn, double x, double y, bool single) {
    if (fn == TOR_FN_hardswish) {
        double product = x * (x + 3 < 0 ? 0 : x + 3 > 6 ? 6 : x + 3);
        return (single ? (double)(float)product : product) / 6;
    }
    if (fn == TOR_FN_div_floor && y == 0) return x / y;
    double rest = fmod(x, y);
    bool differs = rest != 0 && (y < 0) != (rest < 0);
    if (fn == TOR_FN_remainder) return differs ? rest + y : rest;
    double quotient = single ? (double)((float)(x - rest) / (float)y) : (x - rest) / y;
    if (differs) quotient = single ? (double)(float)(quotient - 1) : quotient - 1;
    if (quotient == 0) return copysign(0, x / y);
    double whole = floor(quotient);
    return quotient - whole > 0.5 ? whole + 1 : whole;
}

static int64_t int_pow(int64_t x, int64_t y) {
    if (y < 0) return x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0;
    uint64_t power = 1;
    for (uint64_t base = (uint64_t)x, e = (uint64_t)y; e; e >>= 1, base *= base)
        power *= e & 1 ? base : 1;
    return (int64_t)power;
}

static int64_t int_of(TorScalarFn fn, int64_t x, int64_t y, int64_t z, TorDtype type) {
    int width = 8 * (int)tor_dtype_size(type);
    bool safe = y != 0 && !(y == -1 && x == INT64_MIN);
    int64_t quotient = safe ? x / y : y ? x : 0, rest = safe ? x % y : 0;
    bool differs = rest != 0 && (rest < 0) != (y < 0);
    switch (fn) {
        case TOR_FN_add: return (int64_t)((uint64_t)x + (uint64_t)y);
        case TOR_FN_sub: return (int64_t)((uint64_t)x - (uint64_t)y);
        case TOR_FN_mul: return (int64_t)((uint64_t)x * (uint64_t)y);
        case TOR_FN_fma: return (int64_t)((uint64_t)x * (uint64_t)y + (uint64_t)z);
        case TOR_FN_div_trunc: return quotient;
        case TOR_FN_div_floor: return quotient - differs;
        case TOR_FN_remainder: return differs ? rest + y : rest;
        case TOR_FN_fmod: return rest;
        case TOR_FN_pow: return int_pow(x, y);
        case TOR_FN_minimum:
        case TOR_FN_fmin: return x < y ? x : y;
        case TOR_FN_maximum:
        case TOR_FN_fmax: return x > y ? x : y;
        case TOR_FN_bit_and: return x & y;
        case TOR_FN_bit_or: return x | y;
        case TOR_FN_bit_xor: return x ^ y;
        case TOR_FN_bit_not: return type == TOR_bool ? !x : ~x;
        case TOR_FN_shift_left: return y < 0 || y >= width ? 0 : (int64_t)((uint64_t)x << y);
        case TOR_FN_shift_right: return y < 0 || y >= width ? (x < 0 ? -1 : 0) : x >> y;
        case TOR_FN_neg: return (int64_t)(0 - (uint64_t)x);
        case TOR_FN_abs: return x < 0 ? (int64_t)(0 - (uint64_t)x) : x;
        case TOR_FN_sign: return (x > 0) - (x < 0);
        case TOR_FN_relu: return x > 0 ? x : 0;
        default: return x;
    }
}

static bool bool_of(TorScalarFn fn, TorScalar a, TorScalar b) {
    bool floats = tor_dtype_is_float(a.dtype);
    bool less = floats ? a.f < b.f : a.i < b.i, equal = floats ? a.f == b.f : a.i == b.i,
         more = floats ? a.f > b.f : a.i > b.i;
    switch (fn) {
        case TOR_FN_eq: return equal;
        case TOR_FN_ne: return !equal;
        case TOR_FN_lt: return less;
        case TOR_FN_le: return less || equal;
        case TOR_FN_gt: return more;
        case TOR_FN_ge: return more || equal;
        case TOR_FN_isnan: return isnan(a.f);
        default: return isinf(a.f);
    }
}

static TorScalar apply(const TorInstr *instr, const TorScalar *v) {
    TorScalarFn fn = (TorScalarFn)instr->fn;
    TorDtype type = (TorDtype)instr->type, to = (TorDtype)instr->to;
    if (fn == TOR_FN_cast) return tor_scalar_cast(v[0], to);
    if (fn == TOR_FN_where) return tor_scalar_cast(v[0].i ? v[1] : v[2], to);
    if ((fn >= TOR_FN_eq && fn <= TOR_FN_ge) || fn == TOR_FN_isnan || fn == TOR_FN_isinf) {
        return (TorScalar){.dtype = TOR_bool, .i = bool_of(fn, v[0], v[1])};
    }
    if (!tor_dtype_is_float(type)) {
        return tor_scalar_cast(
            (TorScalar){.dtype = TOR_int64, .i = int_of(fn, v[0].i, v[1].i, v[2].i, type)}, type);
    }
    double f = fn == TOR_FN_remainder || fn == TOR_FN_div_floor || fn == TOR_FN_hardswish
                   ? float_rounded(fn, v[0].f, v[1].f, type != TOR_float64)
                   : float_of(fn, v[0].f, v[1].f, v[2].f);
    return tor_scalar_cast((TorScalar){.dtype = TOR_float64, .f = f}, type);
}

static void *address(const Ref *ref, int operand, TorDtype type, bool row_only) {
    const TorMapArgs *args = ref->args;
    int64_t offset = 0;
    int rank = row_only ? args->rank - args->row_rank : args->rank;
    for (int d = 0; d < rank; d++) offset += ref->at[d] * args->stride[operand][d];
    return (uint8_t *)args->data[operand] + offset * (int64_t)tor_dtype_size(type);
}

static TorScalar value(const Ref *ref, TorOperand operand) {
    const TorProgram *p = ref->args->program;
    switch (operand.kind) {
        case TOR_OPERAND_REG: return ref->reg[operand.index];
        case TOR_OPERAND_ROW: return ref->row[operand.index];
        case TOR_OPERAND_IMM: return p->imm[operand.index];
        case TOR_OPERAND_INPUT: {
            TorDtype type = (TorDtype)p->input_type[operand.index];
            return tor_scalar_load(address(ref, operand.index, type, false), type);
        }
        default: return (TorScalar){.dtype = TOR_bool};
    }
}

static bool is_row(const TorProgram *p, const TorInstr *instr) {
    return instr->dst.kind == TOR_OPERAND_ROW ||
           (instr->dst.kind == TOR_OPERAND_OUTPUT && p->output_row[instr->dst.index]);
}

// Runs row instructions of one stage, or the element instructions of all stages up to it; outputs
// are written in their own stage.
static void run_instrs(Ref *ref, int stage, bool row) {
    const TorProgram *p = ref->args->program;
    for (int i = 0; i < p->n_instrs; i++) {
        const TorInstr *instr = &p->instr[i];
        if (is_row(p, instr) != row || (row ? instr->stage != stage : instr->stage > stage))
            continue;
        TorScalar v[3];
        for (int s = 0; s < 3; s++) v[s] = value(ref, instr->src[s]);
        bool divides = instr->fn == TOR_FN_div_trunc || instr->fn == TOR_FN_div_floor ||
                       instr->fn == TOR_FN_remainder || instr->fn == TOR_FN_fmod;
        if (divides && !tor_dtype_is_float((TorDtype)instr->type) && v[1].i == 0 &&
            ref->args->error)
            *ref->args->error = 1;
        TorScalar result = apply(instr, v);
        if (instr->dst.kind == TOR_OPERAND_REG) ref->reg[instr->dst.index] = result;
        if (instr->dst.kind == TOR_OPERAND_ROW) ref->row[instr->dst.index] = result;
        if (instr->dst.kind == TOR_OPERAND_OUTPUT && instr->stage == stage) {
            TorDtype type = (TorDtype)p->output_type[instr->dst.index];
            tor_scalar_store(address(ref, p->n_inputs + instr->dst.index, type, row), result);
        }
    }
}

typedef struct {
    double mean, squares, f;
    int64_t i, at, n;
} Acc;

static void accumulate(Acc *acc, const TorReduction *r, TorScalar x, int64_t position) {
    bool floats = tor_dtype_is_float((TorDtype)r->type),
         max = r->kind == TOR_REDUCE_max || r->kind == TOR_REDUCE_argmax;
    double delta = x.f - acc->mean;
    bool first = acc->n++ == 0, truth = floats ? x.f != 0 : x.i != 0;
    switch (r->kind) {
        case TOR_REDUCE_sum:
            floats ? (acc->f += x.f) : (acc->i = (int64_t)((uint64_t)acc->i + (uint64_t)x.i));
            break;
        case TOR_REDUCE_prod:
            floats ? (acc->f = (first ? 1 : acc->f) * x.f)
                   : (acc->i = (int64_t)((uint64_t)(first ? 1 : acc->i) * (uint64_t)x.i));
            break;
        case TOR_REDUCE_length: acc->f = (double)(acc->i = acc->n); break;
        case TOR_REDUCE_any: acc->i |= truth; break;
        case TOR_REDUCE_all: acc->i = (first || acc->i) && truth; break;
        case TOR_REDUCE_moments:
            acc->mean += delta / (double)acc->n;
            acc->squares += delta * (x.f - acc->mean);
            break;
        default: {
            bool better =
                floats ? (max ? x.f > acc->f : x.f < acc->f) || (isnan(x.f) && !isnan(acc->f))
                : max  ? x.i > acc->i
                       : x.i < acc->i;
            if (!first && !better) break;
            if (floats) acc->f = x.f;
            if (!floats) acc->i = x.i;
            acc->at = position;
        }
    }
}

static void finish(Ref *ref, const Acc *acc, const TorReduction *r) {
    TorDtype type = (TorDtype)r->type;
    bool floats = tor_dtype_is_float(type);
    TorScalar *row = &ref->row[r->dst];
    if (r->kind == TOR_REDUCE_argmax || r->kind == TOR_REDUCE_argmin) {
        *row = (TorScalar){.dtype = TOR_int64, .i = acc->at};
    } else if (r->kind == TOR_REDUCE_any || r->kind == TOR_REDUCE_all) {
        *row = (TorScalar){.dtype = TOR_bool, .i = acc->n ? acc->i : r->kind == TOR_REDUCE_all};
    } else if (r->kind == TOR_REDUCE_moments) {
        row[0] =
            tor_scalar_cast((TorScalar){.dtype = TOR_float64, .f = acc->n ? acc->mean : NAN}, type);
        row[1] = tor_scalar_cast(
            (TorScalar){.dtype = TOR_float64, .f = acc->n ? acc->squares / (double)acc->n : NAN},
            type);
    } else {
        int empty = r->kind == TOR_REDUCE_prod && acc->n == 0;
        *row =
            floats
                ? tor_scalar_cast((TorScalar){.dtype = TOR_float64, .f = empty ? 1 : acc->f}, type)
                : tor_scalar_cast((TorScalar){.dtype = TOR_int64, .i = empty ? 1 : acc->i}, type);
    }
}

static bool next(int64_t *at, const int64_t *size, int from, int to) {
    for (int d = to - 1; d >= from; d--) {
        if (++at[d] < size[d]) return true;
        at[d] = 0;
    }
    return false;
}

static int64_t product(const int64_t *size, int from, int to) {
    int64_t n = 1;
    for (int d = from; d < to; d++) n *= size[d];
    return n;
}

void tor_map_run_ref(const TorMapArgs *args) {
    const TorProgram *p = args->program;
    Ref ref = {.args = args};
    int outer = args->rank - args->row_rank;
    if (product(args->size, 0, outer) == 0) return;
    int64_t length = product(args->size, outer, args->rank);
    do {
        for (int stage = 0; stage < p->n_stages; stage++) {
            Acc acc[TOR_PROGRAM_REDUCTIONS] = {0};
            memset(ref.at + outer, 0, sizeof(int64_t) * (size_t)(TOR_MAP_RANK - outer));
            run_instrs(&ref, stage, true);
            for (int64_t position = 0; position < length; position++) {
                run_instrs(&ref, stage, false);
                for (int i = 0; i < p->n_reductions; i++) {
                    if (p->reduction[i].stage == stage)
                        accumulate(&acc[i], &p->reduction[i], value(&ref, p->reduction[i].src),
                                   position);
                }
                next(ref.at, args->size, outer, args->rank);
            }
            for (int i = 0; i < p->n_reductions; i++) {
                if (p->reduction[i].stage == stage) finish(&ref, &acc[i], &p->reduction[i]);
            }
        }
        memset(ref.at + outer, 0, sizeof(int64_t) * (size_t)(TOR_MAP_RANK - outer));
    } while (next(ref.at, args->size, 0, outer));
}

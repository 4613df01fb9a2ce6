// A row's reduction over its tiles, and the columns' state.
//
// Policy: what tiles give is combined in double (float types) or modulo 2^64; one rounding at the
// end. Columns of floats sum blocks of TOR_COLUMN_BLOCK rows in their type and add these up in
// double.
#include <math.h>
#include <string.h>

#include "kernels/pointwise/engine.h"

static bool is_float(int type) { return type >= TOR_float16; }

void tor_acc_start(TorAcc *acc, int kind, int type) {
    *acc = (TorAcc){0};
    if (kind == TOR_REDUCE_prod) {
        if (is_float(type)) {
            acc->f = 1;
        } else {
            acc->i = 1;
        }
    }
    if (kind == TOR_REDUCE_all) acc->i = 1;
}

void tor_acc_add(TorAcc *acc, int kind, int type, const TorPartial *part, int64_t n,
                 int64_t position) {
    bool first = acc->n == 0, floats = is_float(type), take;
    switch (kind) {
        case TOR_REDUCE_sum:
            if (floats) {
                acc->f += part->f;
            } else {
                acc->i = (int64_t)((uint64_t)acc->i + (uint64_t)part->i);
            }
            break;
        case TOR_REDUCE_prod:
            if (floats) {
                acc->f *= part->f;
            } else {
                acc->i = (int64_t)((uint64_t)acc->i * (uint64_t)part->i);
            }
            break;
        case TOR_REDUCE_length: break;
        case TOR_REDUCE_any: acc->i |= part->i; break;
        case TOR_REDUCE_all: acc->i &= part->i; break;
        case TOR_REDUCE_moments: {  // Chan, Golub & LeVeque 1979
            double delta = part->f - acc->f, total = (double)(acc->n + n);
            acc->f2 =
                first ? part->f2
                      : acc->f2 + part->f2 + delta * delta * ((double)acc->n * (double)n / total);
            acc->f = (acc->f * (double)acc->n + part->f * (double)n) / total;
            break;
        }
        default:
            if (kind == TOR_REDUCE_max || kind == TOR_REDUCE_argmax) {
                take = floats ? part->f > acc->f || (isnan(part->f) && !isnan(acc->f))
                              : part->i > acc->i;
            } else {
                take = floats ? part->f < acc->f || (isnan(part->f) && !isnan(acc->f))
                              : part->i < acc->i;
            }
            if (first || take) {
                acc->f = part->f;
                acc->i = part->i;
                acc->at = position + part->at;
            }
            break;
    }
    acc->n += n;
}

static void store(void *out, const TorRowOp *op, double f, int64_t i) {
    float single = (float)f;
    if (op->half == TOR_float16) single = tor_f16_to_f32(tor_f32_to_f16(single));
    if (op->half == TOR_bfloat16) single = tor_bf16_to_f32(tor_f32_to_bf16(single));
    switch (op->type) {
        case TOR_float32: memcpy(out, &single, sizeof single); break;
        case TOR_float64: memcpy(out, &f, sizeof f); break;
        default: tor_scalar_store(out, (TorScalar){.dtype = (TorDtype)op->type, .i = i}); break;
    }
}

void tor_acc_finish(const TorAcc *acc, const TorRowOp *op, void *row, void *second) {
    switch (op->kind) {
        case TOR_REDUCE_argmax:
        case TOR_REDUCE_argmin: memcpy(row, &acc->at, sizeof acc->at); break;
        case TOR_REDUCE_any:
        case TOR_REDUCE_all: *(uint8_t *)row = (uint8_t)acc->i; break;
        case TOR_REDUCE_length: store(row, op, (double)acc->n, acc->n); break;
        case TOR_REDUCE_moments:
            store(row, op, acc->n ? acc->f : NAN, 0);
            store(second, op, acc->n ? acc->f2 / (double)acc->n : NAN, 0);
            break;
        default: store(row, op, acc->f, acc->i); break;
    }
}

static bool has_blocks(const TorRowOp *op) {
    return op->kind == TOR_REDUCE_sum && is_float(op->type);
}

// State: for sums of floats n elements of the block, then (from byte 8n) n doubles; for moments
// three runs of n doubles; for argmax n pairs; else n elements.
void tor_columns_start(void *state, const TorRowOp *op, int64_t n) {
    if (op->kind == TOR_REDUCE_prod || op->kind == TOR_REDUCE_all) {
        uint8_t one[8] = {1};  // in bytes true, in little-endian integers 1
        if (op->kind == TOR_REDUCE_prod && op->type == TOR_float32) memcpy(one, &(float){1}, 4);
        if (op->kind == TOR_REDUCE_prod && op->type == TOR_float64) memcpy(one, &(double){1}, 8);
        tor_tile_gather(state, one,
                        op->kind == TOR_REDUCE_all ? 1 : tor_dtype_size((TorDtype)op->type), 0, n);
    } else {
        memset(state, 0, (size_t)n * TOR_COLUMN_BYTES);
    }
}

static TorTileFn elementwise(const TorReady *ready, int fn, int type) {
    return type == TOR_float32 ? ready->table->f32[fn][0] : ready->table->plain[fn][type];
}

void tor_columns_add(void *state, const TorReady *ready, const TorRowOp *op, const void *x,
                     int64_t row, int64_t n) {
    switch (op->kind) {
        case TOR_REDUCE_sum:
            elementwise(ready, TOR_FN_add, op->type)(state, state, x, NULL, n);
            if (has_blocks(op) && row % TOR_COLUMN_BLOCK == TOR_COLUMN_BLOCK - 1)
                ready->table->column[TOR_REDUCE_sum][op->type](state, NULL, 0, n);
            break;
        case TOR_REDUCE_prod:
            elementwise(ready, TOR_FN_mul, op->type)(state, state, x, NULL, n);
            break;
        case TOR_REDUCE_max:
        case TOR_REDUCE_min: {
            int fn = op->kind == TOR_REDUCE_max ? TOR_FN_maximum : TOR_FN_minimum;
            if (row == 0) {
                memcpy(state, x, (size_t)n * tor_dtype_size((TorDtype)op->type));
            } else {
                elementwise(ready, fn, op->type)(state, state, x, NULL, n);
            }
            break;
        }
        case TOR_REDUCE_any:
        case TOR_REDUCE_all: {
            int fn = op->kind == TOR_REDUCE_any ? TOR_FN_bit_or : TOR_FN_bit_and;
            uint8_t *bytes = (uint8_t *)state + 8 * n;  // the operand as bool
            ready->table->cast[op->type][TOR_bool](bytes, x, NULL, NULL, n);
            ready->table->plain[fn][TOR_bool](state, state, bytes, NULL, n);
            break;
        }
        default: ready->table->column[op->kind][op->type](state, x, row, n); break;
    }
}

void tor_columns_add_rows(void *state, const TorReady *ready, const TorRowOp *op, const void *x,
                          int64_t stride, int64_t rows, int64_t n) {
    const TorColumnRowsFn add = ready->table->column_rows[op->type == TOR_float64];
    const size_t bytes = tor_dtype_size((TorDtype)op->type);
    for (int64_t row = 0; row < rows; row += TOR_COLUMN_BLOCK) {
        add(state, (const uint8_t *)x + row * stride * (int64_t)bytes, stride,
            TOR_MIN(TOR_COLUMN_BLOCK, rows - row), n);
        ready->table->column[TOR_REDUCE_sum][op->type](state, NULL, 0, n);
    }
}

void tor_columns_finish(void *state, const TorReady *ready, const TorRowOp *op, int64_t length,
                        int64_t n, void *row, void *second) {
    size_t bytes = tor_dtype_size((TorDtype)op->type);
    const double *doubles = state;
    switch (op->kind) {
        case TOR_REDUCE_argmax:
        case TOR_REDUCE_argmin:
            for (int64_t i = 0; i < n; i++)
                memcpy((int64_t *)row + i, (const uint8_t *)state + 16 * i + 8, 8);
            break;
        case TOR_REDUCE_any:
        case TOR_REDUCE_all: memcpy(row, state, (size_t)n); break;
        case TOR_REDUCE_length:
            for (int64_t i = 0; i < n; i++)
                store((uint8_t *)row + (size_t)i * bytes, op, (double)length, length);
            break;
        case TOR_REDUCE_moments:
            for (int64_t i = 0; i < n; i++) {
                double inverse = 1.0 / (double)length, shift = doubles[n + i] * inverse;
                double variance = doubles[2 * n + i] * inverse - shift * shift;
                store((uint8_t *)row + (size_t)i * bytes, op, length ? doubles[i] + shift : NAN, 0);
                store((uint8_t *)second + (size_t)i * bytes, op, variance < 0 ? 0 : variance, 0);
            }
            break;
        case TOR_REDUCE_sum:
            if (has_blocks(op)) {
                ready->table->column[TOR_REDUCE_sum][op->type](state, NULL, 0, n);
                for (int64_t i = 0; i < n; i++)
                    store((uint8_t *)row + (size_t)i * bytes, op, doubles[n + i], 0);
                break;
            }
            __attribute__((fallthrough));
        default:
            memcpy(row, state, (size_t)n * bytes);
            if (op->half) ready->table->round_half[op->half - TOR_float16](row, row, NULL, NULL, n);
            break;
    }
}

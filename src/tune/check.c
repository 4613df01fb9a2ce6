// Sums may be taken in another order by a candidate, so floats are compared with a tolerance:
// relative to the number itself, and to the largest one, since a sum may cancel.
#include "tune/check.h"

#include <math.h>
#include <string.h>

ToroidStatus tor_tune_answer_keep(TorTuneAnswer *answer, const TorTuneMemory *m) {
    *answer = (TorTuneAnswer){0};
    for (int i = 0; i < m->operands.count; i++) {
        if (!m->operands.list[i].written) continue;
        answer->memory[i] = tor_alloc(m->stride[i]);
        if (!answer->memory[i]) {
            tor_tune_answer_free(answer);
            return tor_no_memory();
        }
        memcpy(answer->memory[i], m->memory[i], m->stride[i]);
    }
    return TOROID_OK;
}

void tor_tune_answer_free(TorTuneAnswer *answer) {
    for (int i = 0; i < TOR_TUNE_OPERANDS; i++) tor_free(answer->memory[i]);
    *answer = (TorTuneAnswer){0};
}

static double number(const uint8_t *memory, TorDtype dtype, size_t i) {
    if (dtype == TOR_float32) return (double)((const float *)(const void *)memory)[i];
    TorScalar value = tor_scalar_load(memory + i * tor_dtype_size(dtype), dtype);
    return tor_dtype_is_float(dtype) ? value.f : (double)value.i;
}

static double type_tolerance(TorDtype dtype) {
    switch (dtype) {
        case TOR_bfloat16: return 2e-2;
        case TOR_float16: return 2e-3;
        case TOR_float32: return 1e-4;
        case TOR_float64: return 1e-10;
        default: return 0;
    }
}

static ToroidStatus compare(int operand, TorDtype dtype, const uint8_t *got, const uint8_t *want,
                            size_t bytes, const TorTuneSettings *settings) {
    if (memcmp(got, want, bytes) == 0) return TOROID_OK;
    size_t count = bytes / tor_dtype_size(dtype);
    double atol = settings->atol, rtol = settings->rtol;
    if (!settings->check) {
        double most = 0;
        for (size_t i = 0; i < count; i++) {
            double w = fabs(number(want, dtype, i));
            if (isfinite(w)) most = TOR_MAX(most, w);
        }
        rtol = type_tolerance(dtype), atol = rtol * most;
    }
    for (size_t i = 0; i < count; i++) {
        double g = number(got, dtype, i), w = number(want, dtype, i);
        if (g == w || (isnan(g) && isnan(w)) || fabs(g - w) <= atol + rtol * fabs(w)) continue;
        return tor_invalid("operand %d, element %zu is %.9g, not %.9g", operand, i, g, w);
    }
    return TOROID_OK;
}

ToroidStatus tor_tune_answer_compare(const TorTuneAnswer *answer, const TorTuneMemory *m,
                                     const TorTuneSettings *settings) {
    for (int i = 0; i < m->operands.count; i++)
        if (answer->memory[i])
            TOR_TRY(compare(i, m->operands.list[i].dtype, m->memory[i], answer->memory[i],
                            m->stride[i], settings));
    return TOROID_OK;
}

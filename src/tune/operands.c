#include "tune/operands.h"

#include <string.h>

enum { GUARD = TOR_CACHE_LINE };  // behind each operand, so that a kernel that runs on is seen

static uint64_t next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

void tor_tune_fill(void *memory, TorDtype dtype, size_t bytes, uint64_t seed) {
    uint64_t state = (seed + 1) * 0x9e3779b97f4a7c15u;
    size_t element = tor_dtype_size(dtype), count = bytes / element;
    if (dtype == TOR_float32) {
        float *to = memory;
        for (size_t i = 0; i < count; i++) to[i] = (float)(int32_t)(next(&state) >> 32) * 0x1p-31f;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = next(&state) >> 32;
        TorScalar value = {.dtype = dtype};
        if (tor_dtype_is_float(dtype))
            value.f = (double)(int32_t)bits * 0x1p-31;
        else
            value.i = dtype == TOR_bool ? (int64_t)(bits >> 31) : (int64_t)(1 + (bits >> 29));
        tor_scalar_store((uint8_t *)memory + i * element, value);
    }
}

static size_t room(size_t bytes) {
    return (bytes + GUARD + TOR_CACHE_LINE - 1) / TOR_CACHE_LINE * TOR_CACHE_LINE;
}

/// Copies of the cold operands, so that one comes again only after `rotating` bytes.
static int copies_for(const TorTuneOperands *operands, int64_t rotating) {
    size_t cold = 0;
    for (int i = 0; i < operands->count; i++)
        if (operands->list[i].cold) cold += room(operands->list[i].bytes);
    return cold && rotating > 0 ? (int)((size_t)rotating / cold + 2) : 1;
}

ToroidStatus tor_tune_memory_create(TorTuneMemory *m, const TorTunable *t, void *problem,
                                    int64_t rotating) {
    *m = (TorTuneMemory){0};
    if (!t->operands(problem, &m->operands)) return tor_refuse("operands that have no own memory");
    m->copies = copies_for(&m->operands, rotating);
    for (int i = 0; i < m->operands.count; i++) {
        const TorTuneOperand *o = &m->operands.list[i];
        m->stride[i] = room(o->bytes);
        size_t copies = o->cold ? (size_t)m->copies : 1;
        m->memory[i] = tor_alloc_large(m->stride[i] * copies);
        if (!m->memory[i]) {
            tor_tune_memory_free(m);
            return tor_no_memory();
        }
        tor_tune_fill(m->memory[i], o->dtype, m->stride[i], (uint64_t)i);
        for (size_t c = 1; c < copies; c++)
            memcpy(m->memory[i] + c * m->stride[i], m->memory[i], m->stride[i]);
    }
    tor_tune_memory_point(m, 0);
    return TOROID_OK;
}

void tor_tune_memory_free(TorTuneMemory *m) {
    for (int i = 0; i < m->operands.count; i++) tor_free(m->memory[i]);
    *m = (TorTuneMemory){0};
}

void tor_tune_memory_point(const TorTuneMemory *m, uint64_t run) {
    for (int i = 0; i < m->operands.count; i++) {
        const TorTuneOperand *o = &m->operands.list[i];
        size_t copy = o->cold ? (size_t)(run % (uint64_t)m->copies) : 0;
        *o->field = m->memory[i] + copy * m->stride[i];
    }
}

void tor_tune_memory_reset(const TorTuneMemory *m) {
    for (int i = 0; i < m->operands.count; i++) {
        const TorTuneOperand *o = &m->operands.list[i];
        if (o->written) tor_tune_fill(m->memory[i], o->dtype, m->stride[i], (uint64_t)i);
    }
}

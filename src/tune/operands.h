/// Memory for the operands of a problem: filled, and several copies of what a real run finds in no
/// cache.
#ifndef TOR_TUNE_OPERANDS_H
#define TOR_TUNE_OPERANDS_H

#include "tune/tunable.h"

typedef struct {
    TorTuneOperands operands;
    uint8_t *memory[TOR_TUNE_OPERANDS];
    size_t stride[TOR_TUNE_OPERANDS];  ///< from copy to copy: the bytes, rounded up
    int copies;                        ///< of the cold operands
} TorTuneMemory;

/// @param rotating  bytes that all copies together reach at least; 0: one copy
ToroidStatus tor_tune_memory_create(TorTuneMemory *m, const TorTunable *t, void *problem,
                                    int64_t rotating);
void tor_tune_memory_free(TorTuneMemory *m);
/// Points the problem at the copies of run number `run`.
void tor_tune_memory_point(const TorTuneMemory *m, uint64_t run);
/// What is written gets its first content again.
void tor_tune_memory_reset(const TorTuneMemory *m);

/// Numbers that no kernel has trouble with: floats in [-1, 1), integers from 1 to 8, truth as it
/// comes.
void tor_tune_fill(void *memory, TorDtype dtype, size_t bytes, uint64_t seed);

#endif

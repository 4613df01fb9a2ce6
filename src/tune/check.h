/// The numeric check: what a candidate writes against what Default wrote.
#ifndef TOR_TUNE_CHECK_H
#define TOR_TUNE_CHECK_H

#include "tune/operands.h"
#include "tune/settings.h"

/// What Default wrote, gaps between strides and guards included.
typedef struct {
    uint8_t *memory[TOR_TUNE_OPERANDS];  ///< NULL for what is only read
} TorTuneAnswer;

ToroidStatus tor_tune_answer_keep(TorTuneAnswer *answer, const TorTuneMemory *m);
void tor_tune_answer_free(TorTuneAnswer *answer);
/// @return TOROID_INVALID, with the operand, the element and both numbers, where they differ by
/// more than the tolerances: the user's, or those of the type
ToroidStatus tor_tune_answer_compare(const TorTuneAnswer *answer, const TorTuneMemory *m,
                                     const TorTuneSettings *settings);

#endif

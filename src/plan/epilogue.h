/// The epilogue program of a contraction, as the planner prepares it.
#ifndef TOR_PLAN_EPILOGUE_H
#define TOR_PLAN_EPILOGUE_H

#include "kernels/pointwise/contract.h"
#include "plan/step.h"

typedef struct {
    const TorProgram *program;  ///< NULL: none
    bool inside;  ///< the result has no memory of its own: the kernel points at where it goes
    struct {
        TorDim batch, row, col;
    } stride[TOR_MAP_OPERANDS];
} TorEpilogueData;

/// Fills `data` for the last step, whose arguments hold a TorEpilogue at offset `at`. `column` is
/// the dim of the result that columns run over; rows are the others, merged in their order, except
/// that the first `batch_dims` merge to the batch. `first` is the first operand among the node's
/// inputs.
ToroidStatus tor_lower_epilogue(TorPlan *plan, const TorNode *node, int first, int column,
                                int batch_dims, size_t at, TorEpilogueData *data);
/// @return the epilogue, or NULL if there is none
const TorEpilogue *tor_bind_epilogue(const TorEpilogueData *data, const int64_t *ints,
                                     TorEpilogue *epilogue);

#endif

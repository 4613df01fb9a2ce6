/// What steps of convolutions share: one convolution as the planner knows it.
#ifndef TOR_PLAN_LOWER_CONV_H
#define TOR_PLAN_LOWER_CONV_H

#include "kernels/conv/contract.h"
#include "plan/epilogue.h"

/// A weight as it is, not packed.
typedef struct {
    TorConvPackArgs fixed;
    TorDtype dtype;
    TorDim stride[5];
    bool transposed;
} TorConvWeightData;

typedef struct {
    TorDtype dtype;
    TorConvArgs fixed;         ///< what is known at compile time
    TorConvWeightData weight;  ///< unless packed
    bool has_bias;
    TorDim batch, in[3], out[3], x_stride[5], y_stride[5];
    TorEpilogueData epilogue;
} TorConvData;

/// Notes what a step needs to know of `node`, but for its epilogue, in cleared memory.
ToroidStatus tor_conv_note(TorPlan *plan, const TorNode *node, TorConvData *d);
/// Fills what tor_conv_bind() asks for. `epilogue` is kept between binds.
void tor_conv_fill(const TorConvData *d, const int64_t *ints, TorConvArgs *args,
                   TorEpilogue *epilogue);

/// The convs that `node` is computed with, by bands of lines, and itself: *count in their order.
/// 0: it is computed by itself.
ToroidStatus tor_bands_find(TorPlan *plan, const TorNode *node, const TorNode **chain, int *count);
/// The step of the last of them.
ToroidStatus tor_lower_bands(TorPlan *plan, const TorNode *const *chain, int count);

#endif

/// Type promotion: torch.result_type.
#ifndef TOR_ATEN_PROMOTE_H
#define TOR_ATEN_PROMOTE_H

#include "base/dtype.h"

/// What torch.promote_types gives for two types.
TorDtype tor_promote_types(TorDtype a, TorDtype b);

/// The operands seen so far, by priority: tensors with dims, 0-d tensors, Python numbers. A lower
/// priority changes the result only if its category (bool, integer, float) is higher.
typedef struct {
    int dim, zero, number;  ///< a TorDtype, or -1: none seen
} TorPromotion;
#define TOR_PROMOTION_NONE ((TorPromotion){-1, -1, -1})

void tor_promote_tensor(TorPromotion *p, TorDtype dtype, int rank);
/// `dtype` is bool, int64 or float64; a float number counts as the default dtype, float32.
void tor_promote_number(TorPromotion *p, TorDtype dtype);
TorDtype tor_promote_result(const TorPromotion *p);

#endif

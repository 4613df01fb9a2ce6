/// What a step of a plan is and has to do, as a record of texts and numbers.
#ifndef TOR_PLAN_DESCRIBE_H
#define TOR_PLAN_DESCRIBE_H

#include "plan/plan.h"

/// A step at one binding of sizes.
typedef struct {
    uint64_t plan;       ///< number of its plan, unique in the process
    uint32_t number;     ///< of the step in the plan
    uint32_t node;       ///< id of the node that it was made from
    const char *work;    ///< what it does: "linear {gelu_erf}"
    const char *shape;   ///< of its first result: "float32[8, 128, 384]"; of a packed weight
    const char *kernel;  ///< the row chosen, or the step's kind where it has none to tell
    const char *origin;  ///< the frontend's name for the node; ""
    double flops;        ///< of products; 0: memory is what limits it
    double bytes;        ///< that it reads and writes at least
    bool external;       ///< run by the host
} TorStepRecord;

/// Texts go to `arena`. Without a bound context (NULL) the shape is symbolic, and the kernel, flops
/// and bytes are not known: "", 0 and 0.
/// @return false without memory
bool tor_step_describe(TorStepRecord *out, TorArena *arena, const TorPlan *plan,
                       const TorContext *c, uint32_t number);

#endif

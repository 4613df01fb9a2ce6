/// What a step has to do at least, whatever kernel does it: the measure of how well one does.
#ifndef TOR_PLAN_WORK_H
#define TOR_PLAN_WORK_H

#include "plan/step.h"

typedef struct {
    double flops;  ///< of products: a multiply-add counts two. 0: memory is what limits the step
    double bytes;  ///< read and written, each element of each operand once
} TorWork;

/// The work of a step at the sizes in `ints`. What the step's nodes hand each other is no memory.
TorWork tor_step_work(const TorStep *step, const int64_t *ints);

#endif

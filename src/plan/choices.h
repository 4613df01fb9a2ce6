/// The tuner's choices for the steps of a plan, by bucket of the dynamic sizes.
///
/// All sizes of a bucket are one problem for the tuner, that of the bucket's upper end, so a length
/// that grows by one at each call asks something new only now and then. A context remembers the
/// choices of the buckets that it was bound to last: a bind to one of them asks nothing.
#ifndef TOR_PLAN_CHOICES_H
#define TOR_PLAN_CHOICES_H

#include "plan/plan.h"
#include "tune/choose.h"

typedef struct TorChoices TorChoices;

/// What an integer asks of an input; see tor_int_asks().
typedef struct {
    uint32_t input;
    int what;
} TorLeaf;

/// For a plan of `n_steps` steps whose integers ask for `n_leaves` leaves; both are borrowed.
ToroidStatus tor_choices_create(TorChoices **out, const TorGraph *g, size_t n_steps,
                                const TorLeaf *leaves, size_t n_leaves);
void tor_choices_destroy(TorChoices **choices);

/// The choices of the bucket of these inputs, one for each step. `*known`: as they were left;
/// otherwise all Default, to be filled, and tor_choices_asked() says when they are.
TorTuneChoice *tor_choices_take(TorChoices *c, const TorPlanInput *inputs, const TorTuneAsk *ask,
                                bool *known);
void tor_choices_asked(TorChoices *c, const TorTuneAsk *ask);

/// The graph's integers at the upper end of the bucket that was taken last; `ints` themselves where
/// no size is smaller than that, or where such sizes do not fit the graph. Allocates nothing.
const int64_t *tor_choices_ints(TorChoices *c, const int64_t *ints);

#endif

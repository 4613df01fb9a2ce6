/// The planner's question at each bind: which choice for this problem? Known results first, then
/// tuning if that is on, else Default.
///
/// The answers are remembered by a hash of the problem's numbers, so that a bind to sizes that were
/// seen before prints no text, reads no table and allocates nothing.
#ifndef TOR_TUNE_CHOOSE_H
#define TOR_TUNE_CHOOSE_H

#include "tune/settings.h"
#include "tune/tunable.h"

/// What the switches say for one call.
typedef struct {
    bool use, tune, note;
    int threads;
    uint64_t generation;  ///< of the results and of the list
} TorTuneAsk;

/// @param wanted  the option `tune` of this executable
TorTuneAsk tor_tune_ask(bool wanted, int threads);
/// What ask.generation would be now: what was tuned since is known to whoever asked.
uint64_t tor_tune_generation(const TorTuneAsk *ask);
/// Whether anything is to be asked at all, and whether what was chosen for `then` holds for `now`.
static inline bool tor_tune_asks(const TorTuneAsk *ask) { return ask->use || ask->note; }
bool tor_tune_holds(const TorTuneAsk *then, const TorTuneAsk *now);

/// Never fails: what cannot be found out is Default.
void tor_tune_choose(const TorTunable *t, const void *problem, const TorTuneAsk *ask,
                     TorTuneChoice *out);

/// The upper end of a dynamic size's bucket: 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, ...
int64_t tor_tune_bucket(int64_t size);

#endif

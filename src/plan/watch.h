/// Who watches the steps of a run: log lines (TOROID_VERBOSE=3), a recording, the host's ranges.
#ifndef TOR_PLAN_WATCH_H
#define TOR_PLAN_WATCH_H

#include "plan/step.h"
#include "plan/trace.h"

typedef struct {
    const TorPlan *plan;
    const TorTraceMark *mark;  ///< NULL: no recording
    void *token;
    int threads;
    bool log, ranges;
    double start;  ///< of the present step
} TorWatch;

/// Does anybody watch? Called once a run.
bool tor_watch_begin(TorWatch *w, const TorContext *c, TorTraceMark *mark, int threads, void *token,
                     bool ranges);
void tor_watch_step(TorWatch *w, uint32_t step);
void tor_watch_ended(const TorWatch *w, uint32_t step);

#endif

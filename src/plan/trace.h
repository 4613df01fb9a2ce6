/// What steps take: a recording of the runs of all plans in this process.
///
/// Off, a run pays one load. On, each step costs two readings of the clock and an entry under a
/// lock. Nothing here makes a run fail: what finds no room is counted as lost.
#ifndef TOR_PLAN_TRACE_H
#define TOR_PLAN_TRACE_H

#include "plan/describe.h"

typedef struct {
    uint32_t step;          ///< index into `steps`
    uint32_t thread;        ///< the caller's, numbered from 1
    uint32_t n_threads;     ///< that the run may use
    double start, seconds;  ///< from the start of the recording
} TorTraceEvent;

typedef struct {
    TorStepRecord *steps;
    size_t n_steps;
    TorTraceEvent *events;  ///< in the order in which they ended
    size_t n_events, lost;
    double seconds;  ///< of the whole recording
    // Private.
    TorArena *arena;  ///< of the texts
    struct TorTraceBinding *bindings;
    size_t n_bindings, step_capacity, event_capacity, binding_capacity;
} TorTrace;

/// @return TOROID_INVALID if a recording is on already
ToroidStatus tor_trace_start(void);
/// Ends the recording and hands it over. @return TOROID_INVALID if none is on
ToroidStatus tor_trace_stop(TorTrace **out);
void tor_trace_destroy(TorTrace **trace);

// For the runs.

/// Where a context's steps are in the present recording.
typedef struct {
    uint64_t trace, binds;
    uint32_t first;
} TorTraceMark;

/// Is a recording on? Then `mark` tells where the context's steps are, described if they were not.
bool tor_trace_begin(TorTraceMark *mark, const TorContext *c);
void tor_trace_add(const TorTraceMark *mark, uint32_t step, int n_threads, double start,
                   double end);

#endif

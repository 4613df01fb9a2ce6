/// The progress of `toroid tune` on standard error: a bar on a terminal, else a line now and then.
#ifndef TOROID_CLI_TUNE_PROGRESS_H
#define TOROID_CLI_TUNE_PROGRESS_H

#include <stdbool.h>

typedef struct {
    bool quiet, terminal;
    double started, shown;  ///< seconds
} TuneProgress;

TuneProgress tune_progress_start(bool quiet);
/// @param best_gain  of all that is done; 0: nothing was tuned
void tune_progress_show(TuneProgress *progress, int done, int total, double best_gain);
/// Takes the bar away.
void tune_progress_end(const TuneProgress *progress);

#endif

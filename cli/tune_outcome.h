/// What `toroid tune` found, kept until it is printed.
#ifndef TOROID_CLI_TUNE_OUTCOME_H
#define TOROID_CLI_TUNE_OUTCOME_H

#include "toroid/tune.h"

typedef struct {
    char *op, *params, *solution;
    char *message;  ///< "": it was tuned
    double default_ms, best_ms;
} TuneRow;

/// {0} is empty.
typedef struct {
    TuneRow *rows;
    size_t count, capacity;
    double best_gain;  ///< Default's time in times of the solution; 0: none was tuned
    ToroidTuneSummary summary;
    const char *file;  ///< where the results are
} TuneOutcome;

/// Ends the program where there is no memory.
void tune_outcome_add(TuneOutcome *outcome, const ToroidTuneReport *report);
double tune_outcome_gain(const TuneRow *row);
void tune_outcome_print(const TuneOutcome *outcome);
void tune_outcome_print_json(const TuneOutcome *outcome);
void tune_outcome_free(TuneOutcome *outcome);

#endif

/// The loop: times what a family offers for a problem and keeps what is faster than Default.
///
/// Default first, as the answer to compare with and the time to beat. Then each candidate: two runs
/// to warm up and three timed, dropped if over 1.5 times the best; ten more, dropped if over 1.15
/// times; the numeric check; then as many runs as the settings' limits allow. The best two are
/// timed again in turns with Default, which is replaced only for a gain beyond the noise of those
/// turns.
#ifndef TOR_TUNE_TUNER_H
#define TOR_TUNE_TUNER_H

#include "tune/results.h"
#include "tune/settings.h"
#include "tune/tunable.h"

typedef struct {
    TorTuneChoice choice;
    double ms, default_ms;
    int tried, rejected;  ///< candidates; those that the numeric check or an error threw out
} TorTuned;

/// `problem` is not changed. One thread tunes at a time; others wait.
/// @return TOROID_UNSUPPORTED if the pool serves another run meanwhile: nothing was found out
ToroidStatus tor_tune_problem(const TorTunable *t, const void *problem, int threads,
                              const TorTuneSettings *settings, TorTuned *out);

/// What a row says of it.
TorTuneResult tor_tuned_result(const TorTunable *t, const char *params, const TorTuned *tuned);

/// Times choices in turns, each as long as the settings say: ms[i] is what choice i takes.
ToroidStatus tor_tune_times(const TorTunable *t, const void *problem, int threads,
                            const TorTuneSettings *settings, const TorTuneChoice *choices,
                            int count, double *ms);

/// Tunes the operator of a recorded row: parses params, makes operands, times the candidates.
/// @return TOROID_INVALID for a row that no run recorded; TOROID_UNSUPPORTED for more threads than
///         this process has CPUs
ToroidStatus tor_tune_row(const char *op, const char *params, TorTuneResult *best,
                          double *default_ms);

/// The params of a problem that `threads` run: what put() writes and the number of threads.
/// @return false if they are longer than a row takes
bool tor_tune_params(const TorTunable *t, const void *problem, int threads,
                     char params[TOR_TUNE_PARAMS]);

#endif

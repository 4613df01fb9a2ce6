/// Tuning the operators of recorded lists, in this process or in several.
#ifndef TOR_TUNE_OFFLINE_H
#define TOR_TUNE_OFFLINE_H

#include "tune/table.h"

/// What became of one operator.
typedef struct {
    TorTuneResult result;  ///< op and params; the rest if it was tuned
    ToroidStatus status;   ///< TOROID_OK: tuned, and in the file of the settings
    char message[256];     ///< why not
    double default_ms;
    int done, total;  ///< operators of this call, this one included
} TorTuneReport;

/// Called by the thread that called tor_tune_offline(), also without news (NULL) when a signal
/// came. Failures come last.
/// @return false to end: what was reported is kept, what is under way is lost
typedef bool (*TorTuneReportFn)(void *user, const TorTuneReport *report);

/// See tor_tune_row().
typedef ToroidStatus (*TorTuneRowFn)(const char *op, const char *params, TorTuneResult *best,
                                     double *default_ms);

typedef struct {
    const char *const *files;  ///< lists; each operator counts once
    int n_files;
    int workers;      ///< processes with cores of their own; 0: this one, with all
    int rank, ranks;  ///< this is one of several calls that share the lists, on any machines
    int local_rank, local_ranks;  ///< those on this machine, which share the cores
    TorTuneRowFn tune;
    TorTuneReportFn report;
    void *user;
} TorTuneOffline;

typedef struct {
    int listed;  ///< operators of all lists
    int known;   ///< of this call's share: had a result before, or got one from another process
    int tuned, failed;
} TorTuneSummary;

/// Takes ranks from what torchrun sets: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE.
/// @return TOROID_INVALID, with the variable, for what torchrun would not set
ToroidStatus tor_tune_offline_ranks(TorTuneOffline *offline);

/// Operators that have a result are passed over. One that is for more threads than a worker has
/// CPUs is tuned by this process when the workers are done.
/// @return TOROID_INVALID for lists that are none, for more workers than cores, and where TUNING is
///         off; not for operators that cannot be tuned, which are reported
ToroidStatus tor_tune_offline(const TorTuneOffline *offline, TorTuneSummary *summary);

#endif

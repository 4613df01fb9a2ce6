/// Processes that take operators from one list and report to their parent.
#ifndef TOR_TUNE_WORKERS_H
#define TOR_TUNE_WORKERS_H

#include "tune/offline.h"

typedef struct {
    const TorTuneTable *rows;
    int count;          ///< of processes
    int first, shares;  ///< they have the shares first, first + 1, ... of all cores
    /// In a worker: tunes the operator of `report`.
    void (*work)(void *user, TorTuneReport *report);
    /// In this process: takes what a worker reports, or NULL when a signal came. @return false to
    /// end them all
    bool (*report)(void *user, TorTuneReport *report);
    void *user;
} TorWorkers;

/// Forks workers, which tune those rows that are for at most as many threads as they have CPUs.
/// They die with this thread. Where one dies at an operator, that is reported as failed.
/// @param finished  for each row; set to true once it was reported
ToroidStatus tor_workers_run(const TorWorkers *workers, bool *finished);

#endif

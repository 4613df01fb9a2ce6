/// What tuning found: a table of the process, and the file that outlives it.
#ifndef TOR_TUNE_RESULTS_H
#define TOR_TUNE_RESULTS_H

#include "tune/table.h"

/// Whether (op, params) has a result. Reads the file of the settings at the process's first use.
bool tor_results_find(const char *op, const char *params, TorTuneResult *out);
/// Into the table, and appended to the file of the settings, whole and at once. The first result of
/// an operator stays.
/// @return TOROID_INVALID for texts that no file can hold
ToroidStatus tor_results_add(const TorTuneResult *result);
/// Changes with every add, read and edit: what was chosen by an older one may be out of date.
uint64_t tor_results_generation(void);

#endif

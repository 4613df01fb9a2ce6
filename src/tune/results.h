/// What tuning found: a table of the process, and the file that outlives it.
#ifndef TOR_TUNE_RESULTS_H
#define TOR_TUNE_RESULTS_H

#include "tune/table.h"

/// Whether (op, params) has a result. Reads the file of the settings at the process's first use of
/// that name.
bool tor_results_find(const char *op, const char *params, TorTuneResult *out);
/// Into the table and, with TUNING on, appended to the file of the settings, whole and at once. The
/// first result of an operator stays.
/// @return TOROID_INVALID for texts that no file can hold; TOROID_FAILED with a warning where the
///         file cannot be written: the result is in the table, and is written with the next one
ToroidStatus tor_results_add(const TorTuneResult *result);
/// Changes with every add, read and edit, and with the providers in use: what was chosen by an
/// older one may be out of date.
uint64_t tor_results_generation(void);

/// Adds the rows of a file; what is in the table wins.
/// @param path   NULL: the file of the settings. It is set aside if its validators differ
/// @param valid  false with TOROID_OK: there is none, or its validators differ, with a warning
ToroidStatus tor_results_read(const char *path, bool *valid);
/// Appends the whole table to a file, less what it has.
ToroidStatus tor_results_write(const char *path);
/// A copy of the table; free with tor_tune_table_free().
ToroidStatus tor_results_copy(TorTuneTable *out);

#endif

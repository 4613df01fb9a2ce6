/// Results in a file: validators first, then rows "op,params,solution[,mean_ms]".
#ifndef TOR_TUNE_RESULTS_FILE_H
#define TOR_TUNE_RESULTS_FILE_H

#include "tune/table.h"

enum { TOR_DIFFERS_BYTES = 512 };

/// Reads the rows of a file into a table, whose own rows win; of the file's, the first of each
/// operator.
/// @param valid    false with TOROID_OK: nothing was read
/// @param differs  of TOR_DIFFERS_BYTES: why its validators are not those of this process; "" where
///                 there is no file
ToroidStatus tor_results_file_read(const char *path, TorTuneTable *into, bool *valid,
                                   char *differs);

/// Appends those of `count` rows whose operators the file has not, all at once or none, and reads
/// into `others` what the file has. A file with other validators is set aside, with a warning.
/// @return TOROID_FAILED, also for a path that this process set aside before: then another process
///         writes there with other validators, and setting aside would go on for ever
ToroidStatus tor_results_file_append(const char *path, const TorTuneResult *rows, size_t count,
                                     TorTuneTable *others);
/// Sets a file with other validators aside now, so that the first result finds its place.
ToroidStatus tor_results_file_set_aside(const char *path);

#endif

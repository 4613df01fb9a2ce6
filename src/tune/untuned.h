/// The list of operators that ran without a result, for tuning later: rows "op,params".
#ifndef TOR_TUNE_UNTUNED_H
#define TOR_TUNE_UNTUNED_H

#include "tune/table.h"

/// Changes when the file that this process wrote to is gone, so that what runs is noted anew. A
/// call of the system; for who asks while RECORD_UNTUNED is on.
uint64_t tor_untuned_generation(void);
/// Appends to the file UNTUNED_FILENAME if RECORD_UNTUNED is on; once for each (op, params), also
/// of several processes.
/// @return false if it could not be written: worth another try
bool tor_untuned_note(const char *op, const char *params);
/// Adds the operators of a file to a list, each once. Rows of results are taken too: their
/// operators can be tuned anew.
/// @return TOROID_FAILED where there is no such file; TOROID_INVALID with the line for what is no
/// row
ToroidStatus tor_untuned_read(const char *path, TorTuneTable *into);

#endif

/// The list of operators that ran without a result, for tuning later.
#ifndef TOR_TUNE_UNTUNED_H
#define TOR_TUNE_UNTUNED_H

/// Appends to the file UNTUNED_FILENAME if RECORD_UNTUNED is on; once for each (op, params).
void tor_untuned_note(const char *op, const char *params);

#endif

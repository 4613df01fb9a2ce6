/// Numbers as text by the rules of C, whatever the process's locale writes for a decimal point.
#ifndef TOR_BASE_NUMBER_H
#define TOR_BASE_NUMBER_H

#include "base/text.h"

/// The whole of text[0, length) as a finite number; false, with *out untouched, if it is none.
bool tor_number_read(const char *text, size_t length, double *out);
/// As "%.<digits>g" does.
void tor_number_put(TorText *text, double value, int digits);

#endif

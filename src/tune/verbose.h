/// What the tuner tells who asked for it by VERBOSE, in VERBOSE_FILENAME. Warnings go to tor_log().
#ifndef TOR_TUNE_VERBOSE_H
#define TOR_TUNE_VERBOSE_H

#include "base/status.h"

/// A line, if VERBOSE is at least `level`: 1 for files and lists, 2 for each result, 3 for each
/// question.
void tor_tune_say(int level, const char *format, ...) TOR_PRINTF(2, 3);
/// A warning, unless the same text was told before.
void tor_tune_warn_once(const char *format, ...) TOR_PRINTF(1, 2);

#endif

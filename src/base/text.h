/// Text that is put together piece by piece: on the heap, or in the caller's buffer, which cuts it.
#ifndef TOR_BASE_TEXT_H
#define TOR_BASE_TEXT_H

#include "base/status.h"

/// {0} is an empty text that grows.
typedef struct {
    char *text;  ///< NULL until something is put; always ends in 0
    size_t length, capacity;
    bool fixed;  ///< the caller's buffer: what does not fit is cut
    bool full;   ///< cut, or out of memory: nothing more is added
} TorText;

TorText tor_text_fixed(char *buffer, size_t bytes);
void tor_text_append(TorText *t, const char *text, size_t length);
void tor_text_add(TorText *t, const char *text);
/// At most 511 characters at once.
void tor_text_put(TorText *t, const char *format, ...) TOR_PRINTF(2, 3);
/// Gives a text that grew to the caller, "" rather than NULL; free with tor_free().
/// @return TOROID_NO_MEMORY with *text NULL if it is not whole
ToroidStatus tor_text_finish(TorText *t, char **text);

#endif

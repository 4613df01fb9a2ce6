/// Names of plugins: which are names at all, sets of them, and the nearest to a wrong one.
#ifndef TOR_BASE_NAMES_H
#define TOR_BASE_NAMES_H

#include "base/text.h"

enum { TOR_NAME_BYTES = 64 };  ///< with the 0

bool tor_name_is_valid(const char *name);

/// Sorted, each once. {0} is empty. `items` ends in NULL once something was added.
typedef struct {
    char **items;
    size_t count, capacity;
} TorNames;

ToroidStatus tor_names_add(TorNames *names, const char *name);
/// Accepts NULL.
void tor_names_free(char **items);

/// What to say of a name that is not among `names`: the closest, or all where none is close.
void tor_names_suggest(const TorNames *names, const char *wrong, TorText *text);

#endif

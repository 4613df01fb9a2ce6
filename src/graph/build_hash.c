#include <tor_sources.h>

#include "graph/save.h"

_Static_assert(sizeof TOR_SOURCES == TOR_BUILD_HASH + 1, "the length that save.h says");

const char *tor_build_hash(void) { return TOR_SOURCES; }

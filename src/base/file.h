/// What reading and writing files takes beyond the system's calls.
#ifndef TOR_BASE_FILE_H
#define TOR_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>

/// Writes all of it, however many calls that takes. On failure errno says why.
bool tor_write_all(int file, const void *data, size_t bytes);

#endif

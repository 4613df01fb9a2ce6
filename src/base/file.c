#include "base/file.h"

#include <errno.h>
#include <unistd.h>

bool tor_write_all(int file, const void *data, size_t bytes) {
    const char *p = data;
    while (bytes) {
        ssize_t n = write(file, p, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = ENOSPC;
        if (n <= 0) return false;
        p += n, bytes -= (size_t)n;
    }
    return true;
}

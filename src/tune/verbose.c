#include "tune/verbose.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "tune/settings.h"

/// Opened for each line: the name may change, and another process may write there too.
static int open_for_a_line(const char *path, bool *opened) {
    *opened = false;
    if (strcmp(path, "err") == 0) return STDERR_FILENO;
    if (strcmp(path, "out") == 0) return STDOUT_FILENO;
    *opened = true;
    // A pipe that nobody reads must not stop the caller.
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
}

void tor_tune_say(int level, const char *format, ...) {
    char line[2048], path[TOR_TUNE_PATH];
    if (tor_tune_settings().verbose < level) return;
    if (tor_tune_file(TOR_TUNE_VERBOSE_FILENAME, path) != TOROID_OK || !path[0]) return;
    static const char head[] = "toroid tune: ";
    memcpy(line, head, sizeof head);
    va_list args;
    va_start(args, format);
    vsnprintf(line + sizeof head - 1, sizeof line - sizeof head, format, args);
    va_end(args);
    strcat(line, "\n");
    bool opened;
    int file = open_for_a_line(path, &opened);
    static _Atomic bool told;
    if (file < 0 && !atomic_exchange(&told, true))
        tor_log(0, "cannot write to TOROID_TUNABLEOP_VERBOSE_FILENAME %s: %s", path,
                strerror(errno));
    if (file >= 0) tor_write_all(file, line, strlen(line));
    if (file >= 0 && opened) close(file);
}

/// True the first time that it is asked for this text; what comes after very many is not told.
static bool is_new(const char *text) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t seen[256];
    static size_t count;
    uint64_t hash = tor_hash_memory(1, text, strlen(text));
    pthread_mutex_lock(&lock);
    bool first = count < TOR_COUNT_OF(seen);
    for (size_t i = 0; i < count; i++) first &= seen[i] != hash;
    if (first) seen[count++] = hash;
    pthread_mutex_unlock(&lock);
    return first;
}

void tor_tune_warn_once(const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (is_new(text)) tor_log(0, "%s", text);
}

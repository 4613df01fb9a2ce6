#include "tune/locked_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"

/// More is no file of ours.
#define MOST_BYTES ((int64_t)64 << 20)
#define PAGE 4096
#define ROW_BYTES 1024  // no row is longer

static ToroidStatus failed(const TorLockedFile *f, const char *what) {
    return tor_failed("cannot %s %s: %s", what, f->path, strerror(errno));
}

/// Does the path still lead to the file that was opened? Who had the lock may have set it aside.
static bool is_current(const TorLockedFile *f, const struct stat *open) {
    struct stat now;
    return stat(f->path, &now) == 0 && now.st_dev == open->st_dev && now.st_ino == open->st_ino;
}

static bool lock(int file, TorLockedUse use) {
    int how = use == TOR_LOCKED_READ ? LOCK_SH : LOCK_EX;
    while (flock(file, how) != 0)
        if (errno != EINTR) return false;
    return true;
}

/// One try: *again says that the file was set aside meanwhile.
static ToroidStatus open_once(TorLockedFile *f, TorLockedUse use, struct stat *info, bool *again) {
    int flags = use == TOR_LOCKED_READ ? O_RDONLY : O_RDWR | O_CREAT | O_APPEND;
    *again = false;
    f->file = open(f->path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
    if (f->file < 0 && use == TOR_LOCKED_READ && errno == ENOENT) return TOROID_OK;
    if (f->file < 0) return failed(f, "open");
    if (fstat(f->file, info) != 0) return failed(f, "look at");
    if (!S_ISREG(info->st_mode)) return tor_failed("%s is no regular file", f->path);
    if (!lock(f->file, use)) return failed(f, "lock");
    *again = !is_current(f, info);
    return TOROID_OK;
}

/// A result with its time, or an operator with its threads: an editor may have left the newline
/// out.
static bool is_whole(const char *row, size_t bytes) {
    static const char threads[] = ";threads=";
    int commas = 0;
    for (size_t i = 0; i < bytes; i++) commas += row[i] == ',';
    const char *at = memmem(row, bytes, threads, sizeof threads - 1);
    bool counted = at && at + sizeof threads - 1 < row + bytes;
    return commas >= 3 || (commas == 1 && counted);
}

/// Bytes at the end that a kill left of a row; the system writes whole pages.
static size_t part_of_a_row(const char *text, size_t bytes) {
    const char *newline = memrchr(text, '\n', bytes);
    size_t part = newline ? (size_t)(text + bytes - newline - 1) : bytes;
    return bytes % PAGE == 0 && part <= ROW_BYTES && !is_whole(text + bytes - part, part) ? part
                                                                                          : 0;
}

static ToroidStatus read_text(TorLockedFile *f) {
    struct stat info;
    if (fstat(f->file, &info) != 0) return failed(f, "look at");
    if (info.st_size > MOST_BYTES)
        return tor_failed("%s has %" PRId64 " bytes, expected at most %" PRId64, f->path,
                          (int64_t)info.st_size, MOST_BYTES);
    size_t size = (size_t)info.st_size;
    f->text = tor_alloc(size + 1);
    if (!f->text) return tor_no_memory();
    while (f->bytes < size) {
        ssize_t n = pread(f->file, f->text + f->bytes, size - f->bytes, (off_t)f->bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return failed(f, "read");
        if (n == 0) break;
        f->bytes += (size_t)n;
    }
    f->bytes -= part_of_a_row(f->text, f->bytes);
    f->text[f->bytes] = 0;
    return TOROID_OK;
}

ToroidStatus tor_locked_open(TorLockedFile *f, const char *path, TorLockedUse use) {
    *f = (TorLockedFile){.file = -1};
    if (strlen(path) >= sizeof f->path) return tor_invalid("a path of %zu bytes", strlen(path));
    memcpy(f->path, path, strlen(path) + 1);
    struct stat info;
    bool again;
    ToroidStatus status;
    do {
        if (f->file >= 0) close(f->file);
        status = open_once(f, use, &info, &again);
    } while (status == TOROID_OK && again);
    f->exists = f->file >= 0;
    if (status == TOROID_OK && f->exists) status = read_text(f);
    if (status != TOROID_OK) tor_locked_close(f);
    return status;
}

static ToroidStatus append(TorLockedFile *f, const char *text, size_t bytes) {
    off_t end = lseek(f->file, 0, SEEK_END);
    if (end < 0) return failed(f, "look at");
    if ((size_t)end > f->bytes) end = (off_t)f->bytes;  // what a kill left goes
    if (ftruncate(f->file, end) != 0) return failed(f, "write");
    if (tor_write_all(f->file, text, bytes)) return TOROID_OK;
    ToroidStatus status = failed(f, "write");
    if (ftruncate(f->file, end) != 0) tor_error_prefix(status, "and a part is left");
    return status;
}

ToroidStatus tor_locked_append(TorLockedFile *f, const char *text, size_t bytes) {
    if (f->bytes == 0 || f->text[f->bytes - 1] == '\n') return append(f, text, bytes);
    char *all = tor_alloc(bytes + 1);
    if (!all) return tor_no_memory();
    all[0] = '\n';
    memcpy(all + 1, text, bytes);
    ToroidStatus status = append(f, all, bytes + 1);
    tor_free(all);
    return status;
}

ToroidStatus tor_locked_set_aside(TorLockedFile *f, char name[TOR_TUNE_PATH]) {
    const char *base = strrchr(f->path, '/');
    base = base ? base + 1 : f->path;
    const char *dot = strrchr(base, '.');
    if (!dot || dot == base) dot = base + strlen(base);
    for (int n = 1;; n++) {
        int length =
            snprintf(name, TOR_TUNE_PATH, "%.*s.stale-%d%s", (int)(dot - f->path), f->path, n, dot);
        if (length >= TOR_TUNE_PATH) return tor_failed("%s: the name is too long", f->path);
        struct stat taken;  // who else would take a name waits for the lock
        if (lstat(name, &taken) == 0) continue;
        return rename(f->path, name) == 0 ? TOROID_OK : failed(f, "set aside");
    }
}

void tor_locked_close(TorLockedFile *f) {
    if (f->file >= 0) {
        flock(f->file, LOCK_UN);  // a child that was forked meanwhile would keep it
        close(f->file);
    }
    tor_free(f->text);
    f->file = -1, f->text = NULL, f->bytes = 0;
}

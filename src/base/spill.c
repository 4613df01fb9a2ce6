#include "base/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

typedef struct {
    uintptr_t begin, end;  ///< whole pages
} Range;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Range *ranges;
static size_t n_ranges, capacity;

static uintptr_t page_size(void) { return (uintptr_t)sysconf(_SC_PAGESIZE); }

static Range whole_pages(const void *data, size_t bytes) {
    uintptr_t page = page_size(), begin = (uintptr_t)data, end = begin + bytes;
    return (Range){(begin + page - 1) / page * page, end / page * page};
}

static bool is_spilled(Range range) {
    for (size_t i = 0; i < n_ranges; i++)
        if (ranges[i].begin == range.begin && ranges[i].end == range.end) return true;
    return false;
}

/// Told once: a full disk would otherwise fill the log too.
static bool refuse(const char *what, int error) {
    static _Atomic bool told;
    if (!told) tor_log(0, "release_weights: %s: %s; weights stay in memory", what, strerror(error));
    told = true;
    return false;
}

// ---------------------------------------------------------------- what may be spilled

/// Is all of the range private memory that no file stands behind?
static bool is_private_memory(Range range) {
    FILE *maps = fopen("/proc/self/maps", "re");
    if (!maps) return refuse("/proc/self/maps", errno);
    char line[512];
    uintptr_t at = range.begin;
    while (at < range.end && fgets(line, sizeof line, maps)) {
        unsigned long long begin, end, inode;
        char access[5];
        bool whole_line = strchr(line, '\n') != NULL;
        if (sscanf(line, "%llx-%llx %4s %*s %*s %llu", &begin, &end, access, &inode) == 4) {
            if (begin > at) break;  // in increasing order
            if (end > at && (strcmp(access, "rw-p") != 0 || inode != 0)) break;
            if (end > at) at = (uintptr_t)end;
        }
        while (!whole_line && fgets(line, sizeof line, maps))
            whole_line = strchr(line, '\n') != NULL;
    }
    fclose(maps);
    return at >= range.end;
}

// ---------------------------------------------------------------- the file

static bool is_on_disk(int file) {
    enum { TMPFS = 0x01021994, RAMFS = 0x858458f6 };
    struct statfs info;
    return fstatfs(file, &info) == 0 && (uint32_t)info.f_type != (uint32_t)TMPFS &&
           (uint32_t)info.f_type != (uint32_t)RAMFS;
}

static int open_in(const char *folder) {
    int file = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file < 0) {
        // File systems without O_TMPFILE.
        char path[4096];
        int n = snprintf(path, sizeof path, "%s/toroid-XXXXXX", folder);
        if (n < 0 || (size_t)n >= sizeof path) return -1;
        file = mkostemp(path, O_CLOEXEC);
        if (file >= 0) unlink(path);
    }
    if (file >= 0 && !is_on_disk(file)) {
        close(file);
        return -1;
    }
    return file;
}

/// A file that holds the range, in the first folder that takes it; -1, with errno, if none does.
static int write_file(Range range) {
    const char *const folders[] = {getenv("TOROID_CACHE_DIR"), getenv("TMPDIR"), "/var/tmp",
                                   "/tmp"};
    int error = EROFS;  // no folder is on a disk
    for (size_t i = 0; i < TOR_COUNT_OF(folders); i++) {
        int file = folders[i] && *folders[i] ? open_in(folders[i]) : -1;
        if (file < 0) continue;
        if (tor_write_all(file, (const void *)range.begin, range.end - range.begin)) return file;
        error = errno;
        close(file);
    }
    errno = error;
    return -1;
}

// ---------------------------------------------------------------- ranges

static bool put(Range range, bool again) {
    if (!again && tor_grow((void **)&ranges, &capacity, n_ranges + 1, sizeof *ranges) != TOROID_OK)
        return false;
    int file = write_file(range);
    if (file < 0) return refuse("no folder on a disk takes the originals (TMPDIR)", errno);
    bool ok = mmap((void *)range.begin, range.end - range.begin, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_FIXED, file, 0) != MAP_FAILED;
    if (!ok) refuse("cannot map the originals' file", errno);
    close(file);
    if (ok && !again) ranges[n_ranges++] = range;
    return ok;
}

bool tor_spill(const void *data, size_t bytes) {
    Range range = whole_pages(data, bytes);
    if (range.end < range.begin + TOR_SPILL_LEAST) return false;
    pthread_mutex_lock(&lock);
    bool again = is_spilled(range);
    bool ok = (again || is_private_memory(range)) && put(range, again);
    pthread_mutex_unlock(&lock);
    return ok;
}

void tor_spill_keep(const void *const *addresses, int count) {
    uintptr_t page = page_size();
    for (int i = 0; i < count; i++)
        (void)madvise((void *)((uintptr_t)addresses[i] / page * page), page, MADV_POPULATE_WRITE);
}

void tor_spill_end(const void *data, size_t bytes) {
    uintptr_t begin = (uintptr_t)data, end = begin + bytes;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < n_ranges;) {
        Range range = ranges[i];
        if (range.begin < begin || range.end > end) {
            i++;
            continue;
        }
        // If this fails, the file's pages stay until the memory is unmapped.
        (void)!mmap((void *)range.begin, range.end - range.begin, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0);
        ranges[i] = ranges[--n_ranges];
    }
    pthread_mutex_unlock(&lock);
}

uint64_t tor_spill_bytes(void) {
    uint64_t bytes = 0;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < n_ranges; i++) bytes += ranges[i].end - ranges[i].begin;
    pthread_mutex_unlock(&lock);
    return bytes;
}

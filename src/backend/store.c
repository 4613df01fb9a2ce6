#include "backend/store.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"

#define PATH_BYTES 4096
#define PART ".part"
#define DEFAULT_LIMIT ((uint64_t)8 << 30)

/// The first page of a file; the content starts at the second.
typedef struct {
    char magic[8];
    uint64_t bytes;
    TorContentKey key, content;
    TorContentKey header;  ///< of what stands above
} Header;

enum { HEADER_BYTES = 4096 };
static const char *const suffixes[] = {
    [TOR_STORE_WEIGHTS] = ".weights", [TOR_STORE_GRAPH] = ".graph"};
static const char magic[8] = "TOROID1";

// ---------------------------------------------------------------- content

static TorContentKey of_xxh(XXH128_hash_t h) { return (TorContentKey){{h.low64, h.high64}}; }

TorContentKey tor_content_hash(const void *data, size_t bytes) {
    return of_xxh(XXH3_128bits(data, bytes));
}

TorContentKey tor_content_join(TorContentKey a, TorContentKey b) {
    TorContentKey both[2] = {a, b};
    return tor_content_hash(both, sizeof both);
}

static Header header_of(TorContentKey key, const void *data, size_t bytes) {
    Header h = {.bytes = bytes, .key = key, .content = tor_content_hash(data, bytes)};
    memcpy(h.magic, magic, sizeof h.magic);
    h.header = tor_content_hash(&h, offsetof(Header, header));
    return h;
}

// ---------------------------------------------------------------- the folder

static const char *folder(void) {
    const char *name = getenv("TOROID_CACHE_DIR");
    return name && *name ? name : NULL;
}

bool tor_store_enabled(void) { return folder() != NULL; }

/// Tells the first failure; a full disk would otherwise fill the log too.
static void tell(const char *what, const char *path, int error) {
    static _Atomic bool told;
    if (!atomic_exchange(&told, true))
        tor_log(0, "TOROID_CACHE_DIR: cannot %s %s: %s; going on without it", what, path,
                strerror(error));
}

static bool file_path(char *path, TorStoreKind kind, TorContentKey key) {
    const char *dir = folder();
    int n = dir ? snprintf(path, PATH_BYTES, "%s/%016" PRIx64 "%016" PRIx64 "%s", dir, key.half[1],
                           key.half[0], suffixes[kind])
                : -1;
    return n > 0 && n < PATH_BYTES;
}

/// Makes the folder and those above it.
static bool make_folder(void) {
    char path[PATH_BYTES];
    int n = snprintf(path, sizeof path, "%s", folder());
    if (n < 0 || (size_t)n >= sizeof path) return false;
    for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
    if (mkdir(path, 0700) == 0 || errno == EEXIST) return true;
    tell("make", path, errno);
    return false;
}

// ---------------------------------------------------------------- reading

static TorStored map_file(int file, size_t bytes) {
    TorStored s = {.mapped = HEADER_BYTES + bytes, .bytes = bytes};
    s.base = mmap(NULL, s.mapped, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    if (s.base == MAP_FAILED) return (TorStored){0};
    s.data = (uint8_t *)s.base + HEADER_BYTES;
    return s;
}

void tor_store_unmap(TorStored *stored) {
    if (stored->base) munmap(stored->base, stored->mapped);
    *stored = (TorStored){0};
}

/// Could nobody but this user and root have written it?
static bool is_ours(const struct stat *info) {
    return (info->st_uid == geteuid() || info->st_uid == 0) && !(info->st_mode & 0022);
}

TorStored tor_store_find(TorStoreKind kind, TorContentKey key, size_t bytes) {
    char path[PATH_BYTES];
    if (!file_path(path, kind, key)) return (TorStored){0};
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);  // a pipe would wait
    if (file < 0) {
        if (errno != ENOENT) tell("open", path, errno);
        return (TorStored){0};
    }
    struct stat info;
    bool whole =
        fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_size >= (off_t)HEADER_BYTES;
    if (whole && kind == TOR_STORE_GRAPH && !is_ours(&info)) {
        tor_log(0, "%s is not read: another user can write it", path);
        close(file);
        return (TorStored){0};
    }
    if (whole && bytes == TOR_STORE_ANY) bytes = (size_t)info.st_size - HEADER_BYTES;
    whole = whole && (uint64_t)info.st_size == HEADER_BYTES + (uint64_t)bytes;
    TorStored s = whole ? map_file(file, bytes) : (TorStored){0};
    close(file);
    if (s.data) {
        Header expected = header_of(key, s.data, bytes);
        if (memcmp(s.base, &expected, sizeof expected) == 0) {
            utimensat(AT_FDCWD, path, NULL, 0);  // used now
            return s;
        }
        whole = false;
        tor_store_unmap(&s);
    }
    if (!whole) {
        tor_log(0, "%s is damaged and is made again", path);
        unlink(path);
    }
    return (TorStored){0};
}

// ---------------------------------------------------------------- writing

static bool write_file(int file, TorContentKey key, const void *data, size_t bytes) {
    char page[HEADER_BYTES] = {0};
    Header h = header_of(key, data, bytes);
    memcpy(page, &h, sizeof h);
    return tor_write_all(file, page, sizeof page) && tor_write_all(file, data, bytes);
}

TorStored tor_store_put(TorStoreKind kind, TorContentKey key, const void *data, size_t bytes) {
    char path[PATH_BYTES], part[PATH_BYTES + 32];
    TorStored s = {0};
    if (!file_path(path, kind, key) || !make_folder()) return s;
    static _Atomic uint32_t parts;
    snprintf(part, sizeof part, "%s.%ld.%u" PART, path, (long)getpid(),
             atomic_fetch_add(&parts, 1));
    int file = open(part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0400);
    if (file < 0) {
        tell("write", part, errno);
        return s;
    }
    if (!write_file(file, key, data, bytes) || rename(part, path) != 0) {
        tell("write", path, errno);
        unlink(part);
    } else {
        s = map_file(file, bytes);
    }
    close(file);
    return s;
}

// ---------------------------------------------------------------- the limit

static uint64_t limit(void) {
    const char *text = getenv("TOROID_CACHE_SIZE");
    if (!text || !*text) return DEFAULT_LIMIT;
    char *end;
    errno = 0;
    double number = strtod(text, &end);
    static const char units[] = "KMG";
    const int letter = toupper((unsigned char)*end);
    const char *unit = letter ? strchr(units, letter) : NULL;
    if (unit) {
        number *= (double)((uint64_t)1 << (10 * (unit - units + 1)));
        end++;
    }
    if (end == text || *end || errno || !(number >= 0 && number < 1e18)) {
        static _Atomic bool told;
        if (!atomic_exchange(&told, true))
            tor_log(0, "TOROID_CACHE_SIZE: expected bytes as 500M or 8G, got %s; 8G is used", text);
        return DEFAULT_LIMIT;
    }
    return (uint64_t)number;
}

typedef struct {
    char name[64];
    uint64_t bytes;
    struct timespec used;
} Entry;

static int by_use(const void *a, const void *b) {
    const struct timespec *x = &((const Entry *)a)->used, *y = &((const Entry *)b)->used;
    if (x->tv_sec != y->tv_sec) return x->tv_sec < y->tv_sec ? -1 : 1;
    return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

static bool ends_in(const char *name, const char *suffix) {
    size_t n = strlen(name), m = strlen(suffix);
    return n > m && strcmp(name + n - m, suffix) == 0;
}

static bool is_kept(const char *name) {
    for (size_t i = 0; i < TOR_COUNT_OF(suffixes); i++)
        if (ends_in(name, suffixes[i])) return true;
    return false;
}

/// Our files; parts that a dead writer left an hour ago are removed on the way.
static Entry *list_files(DIR *dir, size_t *count) {
    Entry *entries = NULL;
    size_t capacity = 0;
    *count = 0;
    const struct dirent *item;
    while ((item = readdir(dir))) {
        struct stat info;
        bool part = ends_in(item->d_name, PART);
        if ((!part && !is_kept(item->d_name)) ||
            fstatat(dirfd(dir), item->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(info.st_mode))
            continue;
        if (part) {
            if (time(NULL) - info.st_mtime > 3600) unlinkat(dirfd(dir), item->d_name, 0);
            continue;
        }
        if (strlen(item->d_name) >= sizeof entries->name ||
            tor_grow((void **)&entries, &capacity, *count + 1, sizeof *entries) != TOROID_OK)
            continue;
        Entry *e = &entries[(*count)++];
        *e = (Entry){.bytes = (uint64_t)info.st_size, .used = info.st_mtim};
        strcpy(e->name, item->d_name);
    }
    return entries;
}

void tor_store_trim(void) {
    DIR *dir = folder() ? opendir(folder()) : NULL;
    if (!dir) return;
    size_t count;
    Entry *entries = list_files(dir, &count);
    uint64_t total = 0, most = limit();
    for (size_t i = 0; i < count; i++) total += entries[i].bytes;
    if (total > most && count) qsort(entries, count, sizeof *entries, by_use);
    for (size_t i = 0; i < count && total > most; i++) {
        unlinkat(dirfd(dir), entries[i].name, 0);
        total -= entries[i].bytes;
    }
    tor_free(entries);
    closedir(dir);
}

// Checks of a plugin's file: owner and rights, the extent that its headers promise (the loader maps
// a file that was cut and dies by SIGBUS), then the one symbol.
#include "base/plugin_file.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/// Neither group nor others may write, and only root or the user may change that.
static ToroidStatus check_rights(const struct stat *s) {
    if (s->st_uid != 0 && s->st_uid != geteuid())
        return tor_invalid("it belongs to user %u, expected root or user %u", (unsigned)s->st_uid,
                           (unsigned)geteuid());
    if (s->st_mode & (S_IWGRP | S_IWOTH))
        return tor_invalid("others can write it (mode %03o)", (unsigned)s->st_mode & 07777);
    return TOROID_OK;
}

ToroidStatus tor_plugin_check_folder(const char *folder) {
    struct stat s;
    if (folder[0] != '/') return tor_invalid("it is no absolute path");
    if (stat(folder, &s) != 0) return tor_invalid("%s", strerror(errno));
    if (!S_ISDIR(s.st_mode)) return tor_invalid("it is no folder");
    return check_rights(&s);
}

bool tor_plugin_file_exists(const char *file) {
    struct stat s;
    return lstat(file, &s) == 0;
}

// ---------------------------------------------------------------- the shared object

static ToroidStatus cut(uint64_t bytes, uint64_t needed) {
    return tor_invalid("it is cut: %" PRIu64 " of at least %" PRIu64 " bytes", bytes, needed);
}

/// Does the file reach as far as its ELF headers say?
static ToroidStatus check_extent(int fd, uint64_t bytes) {
    ElfW(Ehdr) head;
    if (bytes < sizeof head) return cut(bytes, sizeof head);
    if (pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head)
        return tor_failed("%s", strerror(errno));
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_type != ET_DYN ||
        head.e_phentsize != sizeof(ElfW(Phdr)))
        return tor_invalid("it is no shared object of this machine");
    uint64_t needed = head.e_phoff + (uint64_t)head.e_phnum * sizeof(ElfW(Phdr));
    if (needed < head.e_phoff || needed > bytes) return cut(bytes, needed);
    for (unsigned i = 0; i < head.e_phnum; i++) {
        ElfW(Phdr) segment;
        off_t at = (off_t)(head.e_phoff + i * sizeof segment);
        if (pread(fd, &segment, sizeof segment, at) != (ssize_t)sizeof segment)
            return tor_failed("%s", strerror(errno));
        uint64_t end = (uint64_t)segment.p_offset + segment.p_filesz;
        if (end < segment.p_offset || end > bytes) return cut(bytes, end);
    }
    uint64_t sections = head.e_shoff + (uint64_t)head.e_shnum * head.e_shentsize;
    return head.e_shoff && sections > bytes ? cut(bytes, sections) : TOROID_OK;
}

static ToroidStatus check_file(const char *file) {
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return errno == ELOOP ? tor_invalid("it is a link") : tor_invalid("%s", strerror(errno));
    struct stat s;
    ToroidStatus status = fstat(fd, &s) == 0 ? TOROID_OK : tor_failed("%s", strerror(errno));
    if (status == TOROID_OK && !S_ISREG(s.st_mode)) status = tor_invalid("it is no regular file");
    if (status == TOROID_OK) status = check_rights(&s);
    if (status == TOROID_OK) status = check_extent(fd, (uint64_t)s.st_size);
    close(fd);
    return status;
}

// ---------------------------------------------------------------- the symbol

/// @param plugin  the symbol of a kind's plugins, which has as many bytes as it says
static ToroidStatus find_symbol(void *object, const TorPluginKind *kind, const void **plugin) {
    *plugin = dlsym(object, kind->symbol);
    if (!*plugin) return tor_invalid("it has no symbol %s", kind->symbol);
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    if (!dladdr1(*plugin, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol ||
        (symbol->st_info & 0xf) != STT_OBJECT)
        return tor_invalid("its symbol %s is no %s", kind->symbol, kind->type);
    size_t bytes = 0;
    if (symbol->st_size >= sizeof bytes) memcpy(&bytes, *plugin, sizeof bytes);
    if (symbol->st_size < sizeof bytes || symbol->st_size < bytes)
        return tor_invalid("%s.struct_bytes is %zu, the symbol has %zu bytes", kind->type, bytes,
                           (size_t)symbol->st_size);
    return TOROID_OK;
}

ToroidStatus tor_plugin_open(const TorPluginKind *kind, const char *file, const char *name) {
    TOR_TRY(check_file(file));
    void *object = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!object) return tor_invalid("%s", dlerror());
    const void *plugin;
    ToroidStatus status = find_symbol(object, kind, &plugin);
    if (status == TOROID_OK) status = kind->take(plugin, name);
    if (status != TOROID_OK) dlclose(object);
    return status;
}

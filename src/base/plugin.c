// Finds and loads plugins. A shared object runs with all rights of the process from the moment it
// is opened, so everything that can be known about the file is looked at before.
#include "base/plugin.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/plugin_file.h"

#define SUFFIX ".so"

/// The name in "<prefix><name>.so".
static bool name_of(const TorPluginKind *kind, const char *file, char name[TOR_NAME_BYTES]) {
    const size_t prefix = strlen(kind->prefix), suffix = strlen(SUFFIX);
    size_t length = strlen(file);
    if (length <= prefix + suffix || length - prefix - suffix >= TOR_NAME_BYTES) return false;
    if (strncmp(file, kind->prefix, prefix) != 0 || strcmp(file + length - suffix, SUFFIX) != 0)
        return false;
    memcpy(name, file + prefix, length - prefix - suffix);
    name[length - prefix - suffix] = 0;
    return tor_name_is_valid(name);
}

// ---------------------------------------------------------------- folders

typedef struct {
    const TorPluginKind *kind;
    TorNames *names;   ///< where plugins are listed
    const char *name;  ///< where one is loaded
    bool *found;
    TorText *refused;
} Search;

/// What to do with a folder that may be used; `*ended` ends the search.
typedef ToroidStatus (*FolderFn)(const Search *search, const char *folder, bool *ended);

static ToroidStatus in_folder(const Search *search, const char *folder, FolderFn fn, bool *ended) {
    if (tor_plugin_check_folder(folder) == TOROID_OK) return fn(search, folder, ended);
    tor_log(1, "TOROID_BACKEND_PATH: %s: %s", folder, toroid_last_error());
    if (search->refused) tor_text_put(search->refused, "; %s: %s", folder, toroid_last_error());
    return TOROID_OK;
}

static ToroidStatus in_folders(const Search *search, FolderFn fn) {
    const char *path = secure_getenv("TOROID_BACKEND_PATH");
    if (!path || !*path) return TOROID_OK;
    char *copy = tor_strdup(path), *rest = NULL;
    if (!copy) return tor_no_memory();
    ToroidStatus status = TOROID_OK;
    bool ended = false;
    for (char *folder = strtok_r(copy, ":", &rest); folder && !ended && status == TOROID_OK;
         folder = strtok_r(NULL, ":", &rest))
        status = in_folder(search, folder, fn, &ended);
    tor_free(copy);
    return status;
}

// ---------------------------------------------------------------- listing

static ToroidStatus list_folder(const Search *search, const char *folder, bool *ended) {
    (void)ended;
    DIR *open = opendir(folder);
    if (!open) {
        tor_log(1, "TOROID_BACKEND_PATH: %s: %s", folder, strerror(errno));
        return TOROID_OK;
    }
    ToroidStatus status = TOROID_OK;
    char name[TOR_NAME_BYTES];
    for (const struct dirent *entry = readdir(open); entry && status == TOROID_OK;
         entry = readdir(open))
        if (name_of(search->kind, entry->d_name, name)) status = tor_names_add(search->names, name);
    closedir(open);
    return status;
}

ToroidStatus tor_plugin_list(const TorPluginKind *kind, TorNames *names) {
    return in_folders(&(Search){.kind = kind, .names = names}, list_folder);
}

// ---------------------------------------------------------------- loading

static ToroidStatus load_from(const Search *search, const char *folder, bool *ended) {
    TorText path = {0};
    char *file = NULL;
    tor_text_append(&path, folder, strlen(folder));
    tor_text_put(&path, "/%s%s" SUFFIX, search->kind->prefix, search->name);
    TOR_TRY(tor_text_finish(&path, &file));
    ToroidStatus status = TOROID_OK;
    if (tor_plugin_file_exists(file)) {
        *search->found = *ended = true;
        status = tor_plugin_open(search->kind, file, search->name);
        if (status != TOROID_OK) tor_error_prefix(status, "plugin %s", file);
    }
    tor_free(file);
    return status;
}

ToroidStatus tor_plugin_load(const TorPluginKind *kind, const char *name, bool *found,
                             TorText *refused) {
    *found = false;
    if (!tor_name_is_valid(name)) return TOROID_OK;
    return in_folders(&(Search){.kind = kind, .name = name, .found = found, .refused = refused},
                      load_from);
}

// The table of backends: entries are added and never change, so that whoever found one may use it
// without the lock.
#include "backend/registry.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ToroidBackend **entries;
static size_t n_entries, capacity;

ToroidStatus tor_backend_read(ToroidBackend *out, const ToroidBackend *backend) {
    size_t least = offsetof(ToroidBackend, compile) + sizeof backend->compile;
    if (backend->struct_bytes < least)
        return tor_invalid("ToroidBackend.struct_bytes is %zu, expected sizeof(ToroidBackend)",
                           backend->struct_bytes);
    if (backend->abi != TOROID_BACKEND_ABI)
        return tor_invalid("ToroidBackend.abi is %d; this Toroid has backends of ABI %d",
                           backend->abi, TOROID_BACKEND_ABI);
    *out = (ToroidBackend){0};
    memcpy(out, backend, TOR_MIN(backend->struct_bytes, sizeof *out));
    out->struct_bytes = sizeof *out;
    if (!out->name || !tor_name_is_valid(out->name))
        return tor_invalid(
            "\"%.80s\" is no name of a backend: expected 1 to %d letters, digits, "
            "'_', '-' or '.'",
            out->name ? out->name : "", TOR_NAME_BYTES - 1);
    if (!out->compile) return tor_invalid("backend \"%s\": compile is NULL", out->name);
    return TOROID_OK;
}

static void free_entry(ToroidBackend *entry) {
    if (!entry) return;
    tor_names_free((char **)(uintptr_t)entry->tags);
    tor_free((void *)(uintptr_t)entry->name);
    tor_free(entry);
}

/// An entry with texts of its own.
static ToroidStatus copy(ToroidBackend **out, const ToroidBackend *from) {
    ToroidBackend *entry = tor_alloc(sizeof *entry);
    if (!entry) return tor_no_memory();
    *entry = *from;
    entry->tags = NULL;
    entry->name = tor_strdup(from->name);
    ToroidStatus status = entry->name ? TOROID_OK : tor_no_memory();
    TorNames tags = {0};
    for (const char *const *tag = from->tags; status == TOROID_OK && tag && *tag; tag++)
        status = tor_names_add(&tags, *tag);
    entry->tags = (const char *const *)tags.items;
    if (status != TOROID_OK) {
        free_entry(entry);
        return status;
    }
    *out = entry;
    return TOROID_OK;
}

// ---------------------------------------------------------------- under the lock

static const ToroidBackend *find(const char *name) {
    for (size_t i = 0; i < n_entries; i++)
        if (!strcmp(entries[i]->name, name)) return entries[i];
    return NULL;
}

static ToroidStatus insert(ToroidBackend *entry) {
    if (find(entry->name)) return tor_invalid("backend \"%s\" is registered already", entry->name);
    TOR_TRY(tor_grow((void **)&entries, &capacity, n_entries + 1, sizeof *entries));
    entries[n_entries++] = entry;
    return TOROID_OK;
}

static bool has_tag(const ToroidBackend *entry, const char *const *tags) {
    for (const char *const *own = entry->tags; own && *own; own++)
        for (const char *const *tag = tags; *tag; tag++)
            if (!strcmp(*own, *tag)) return true;
    return false;
}

static ToroidStatus list(TorNames *names, const char *const *exclude_tags) {
    for (size_t i = 0; i < n_entries; i++)
        if (!has_tag(entries[i], exclude_tags)) TOR_TRY(tor_names_add(names, entries[i]->name));
    return TOROID_OK;
}

// ---------------------------------------------------------------- with it

ToroidStatus tor_registry_add(const ToroidBackend *backend) {
    ToroidBackend read, *entry = NULL;
    TOR_TRY(tor_backend_read(&read, backend));
    TOR_TRY(copy(&entry, &read));
    pthread_mutex_lock(&lock);
    ToroidStatus status = insert(entry);
    pthread_mutex_unlock(&lock);
    if (status != TOROID_OK) free_entry(entry);
    return status;
}

const ToroidBackend *tor_registry_find(const char *name) {
    pthread_mutex_lock(&lock);
    const ToroidBackend *found = find(name);
    pthread_mutex_unlock(&lock);
    return found;
}

ToroidStatus tor_registry_list(TorNames *names, const char *const *exclude_tags) {
    pthread_mutex_lock(&lock);
    ToroidStatus status = list(names, exclude_tags);
    pthread_mutex_unlock(&lock);
    return status;
}

// ---------------------------------------------------------------- plugins

static ToroidStatus take(const void *plugin, const char *name) {
    ToroidBackend read;
    TOR_TRY(tor_backend_read(&read, plugin));
    if (strcmp(read.name, name) != 0)
        return tor_invalid("its backend is \"%s\", expected \"%s\"", read.name, name);
    return tor_registry_add(&read);
}

const TorPluginKind tor_backend_plugins = {"toroid_backend_", TOROID_BACKEND_SYMBOL,
                                           "ToroidBackend", take};

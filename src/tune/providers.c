#include "tune/providers.h"

#include <ctype.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/plugin.h"
#include "tune/verbose.h"

#define SOLUTION "provider:"

struct TorProvider {
    ToroidProvider api;
    char name[TOR_NAME_BYTES], solution[sizeof SOLUTION + TOR_NAME_BYTES];
    _Atomic bool ready;   ///< its init was called, without a failure
    _Atomic bool wanted;  ///< PROVIDERS names it
    _Atomic bool broken;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static TorProvider entries[TOR_PROVIDERS];
static _Atomic int n_entries;
static _Atomic uint64_t generation;

uint64_t tor_providers_generation(void) { return atomic_load(&generation); }

static const ToroidProviderHost host = {
    .struct_bytes = sizeof host, .abi = TOROID_PROVIDER_ABI, .set_error = tor_set_error};

/// What a provider's function returned, with a message in any case.
static ToroidStatus judged(ToroidStatus status) {
    if (status != TOROID_OK && !*toroid_last_error())
        tor_failed("it gave no reason (%s)", toroid_status_name(status));
    return status;
}

// ---------------------------------------------------------------- the table

const TorProvider *tor_provider_at(int number) {
    return number >= 0 && number < atomic_load(&n_entries) ? &entries[number] : NULL;
}

static bool is_loaded(const TorProvider *p) { return p->wanted && p->ready; }

bool tor_provider_is_usable(const TorProvider *p) { return is_loaded(p) && !p->broken; }

static TorProvider *find(const char *name) {
    for (int i = 0; i < n_entries; i++)
        if (strcmp(entries[i].name, name) == 0) return &entries[i];
    return NULL;
}

/// The struct as this version has it: checked, and cleared where it is shorter than ours.
static ToroidStatus read_struct(ToroidProvider *out, const ToroidProvider *provider) {
    size_t least = offsetof(ToroidProvider, gemm_f32) + sizeof provider->gemm_f32;
    if (provider->struct_bytes < least)
        return tor_invalid("ToroidProvider.struct_bytes is %zu, expected sizeof(ToroidProvider)",
                           provider->struct_bytes);
    if (provider->abi != TOROID_PROVIDER_ABI)
        return tor_invalid("ToroidProvider.abi is %d; this Toroid has providers of ABI %d",
                           provider->abi, TOROID_PROVIDER_ABI);
    *out = (ToroidProvider){0};
    memcpy(out, provider, TOR_MIN(provider->struct_bytes, sizeof *out));
    if (!out->name || !tor_name_is_valid(out->name))
        return tor_invalid("\"%.80s\" is no name of a provider", out->name ? out->name : "");
    if (!out->gemm_f32) return tor_invalid("provider \"%s\": gemm_f32 is NULL", out->name);
    return TOROID_OK;
}

static ToroidStatus add_locked(const ToroidProvider *api) {
    if (find(api->name)) return tor_invalid("provider \"%s\" is registered already", api->name);
    if (n_entries == TOR_PROVIDERS) return tor_refuse("more than %d providers", TOR_PROVIDERS);
    TorProvider *entry = &entries[n_entries];
    entry->api = *api;
    snprintf(entry->name, sizeof entry->name, "%s", api->name);
    snprintf(entry->solution, sizeof entry->solution, SOLUTION "%s", api->name);
    entry->api.name = entry->name;
    atomic_fetch_add(&n_entries, 1);
    return TOROID_OK;
}

ToroidStatus tor_provider_add(const ToroidProvider *provider) {
    ToroidProvider api;
    TOR_TRY(read_struct(&api, provider));
    pthread_mutex_lock(&lock);
    ToroidStatus status = add_locked(&api);
    pthread_mutex_unlock(&lock);
    return status;
}

// ---------------------------------------------------------------- loading, under the lock

static ToroidStatus take(const void *plugin, const char *name) {
    ToroidProvider api;
    TOR_TRY(read_struct(&api, plugin));
    if (strcmp(api.name, name) != 0)
        return tor_invalid("its provider is \"%s\", expected \"%s\"", api.name, name);
    return add_locked(&api);
}

static const TorPluginKind plugins = {"toroid_provider_", TOROID_PROVIDER_SYMBOL, "ToroidProvider",
                                      take};

static ToroidStatus unknown(const char *name, const char *refused) {
    char buffer[400];
    TorText text = tor_text_fixed(buffer, sizeof buffer);
    TorNames names = {0};
    ToroidStatus status = tor_plugin_list(&plugins, &names);
    for (int i = 0; i < n_entries && status == TOROID_OK; i++)
        status = tor_names_add(&names, entries[i].name);
    if (status == TOROID_OK) {
        if (names.count) tor_names_suggest(&names, name, &text);
        status = tor_invalid("no folder of TOROID_BACKEND_PATH has %s%s.so%s%s%s", plugins.prefix,
                             name, names.count ? "; " : "", names.count ? buffer : "", refused);
    }
    tor_names_free(names.items);
    return status;
}

static ToroidStatus make_ready(const char *name) {
    if (!find(name)) {
        char refused[400] = "";
        TorText text = tor_text_fixed(refused, sizeof refused);
        bool found;
        TOR_TRY(tor_plugin_load(&plugins, name, &found, &text));
        if (!found) return unknown(name, refused);
    }
    TorProvider *entry = find(name);
    if (!entry->ready && entry->api.init) {
        tor_set_error(TOROID_OK, NULL);
        TOR_TRY(judged(entry->api.init(&host, entry->api.user)));
    }
    entry->ready = true;
    return TOROID_OK;
}

/// Names that are asked for, one after the other.
static bool next_name(const char **at, char name[TOR_NAME_BYTES]) {
    *at += strspn(*at, ",");
    size_t length = strcspn(*at, ",");
    if (!length || length >= TOR_NAME_BYTES) return false;
    memcpy(name, *at, length);
    name[length] = 0;
    *at += length;
    return true;
}

static bool is_named(const char *names, const char *wanted) {
    char name[TOR_NAME_BYTES];
    while (next_name(&names, name))
        if (strcmp(name, wanted) == 0) return true;
    return false;
}

static void update_locked(const char *names) {
    char name[TOR_NAME_BYTES];
    for (const char *at = names; next_name(&at, name);)
        if (make_ready(name) != TOROID_OK)
            tor_tune_warn_once("provider %s is left out: %s", name, toroid_last_error());
    for (int i = 0; i < n_entries; i++) {
        TorProvider *entry = &entries[i];
        bool before = tor_provider_is_usable(entry);
        entry->wanted = is_named(names, entry->name);
        entry->broken = false;
        if (tor_provider_is_usable(entry) != before) atomic_fetch_add(&generation, 1);
    }
}

void tor_providers_update(const TorTuneSettings *settings) {
    static char last[sizeof settings->providers];
    static uint64_t last_given;
    pthread_mutex_lock(&lock);
    if (strcmp(last, settings->providers) != 0 || last_given != settings->providers_given) {
        memcpy(last, settings->providers, sizeof last);
        last_given = settings->providers_given;
        update_locked(last);
    }
    pthread_mutex_unlock(&lock);
}

// ---------------------------------------------------------------- in use

const char *tor_provider_solution(const TorProvider *p) { return p->solution; }

bool tor_provider_validator(const TorProvider *p, char *key, size_t key_bytes,
                            const char **version) {
    if (!is_loaded(p)) return false;
    snprintf(key, key_bytes, "PROVIDER_%s", p->name);
    for (char *c = key; *c; c++) *c = (char)toupper((unsigned char)*c);
    *version = p->api.version ? p->api.version(p->api.user) : NULL;
    if (!*version) *version = "";
    return true;
}

ToroidStatus tor_provider_gemm(const TorProvider *p, const ToroidProduct *product) {
    tor_set_error(TOROID_OK, NULL);
    return judged(p->api.gemm_f32(&host, p->api.user, product));
}

void tor_provider_broke(const TorProvider *provider) {
    TorProvider *p = &entries[provider - entries];
    if (atomic_exchange(&p->broken, true)) return;
    atomic_fetch_add(&generation, 1);
    tor_log(0, "provider %s failed: %s; Toroid's own kernels take over", p->name,
            toroid_last_error());
}

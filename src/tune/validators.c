#include "tune/validators.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <tor_kernel_sources.h>
#include <xxhash.h>

#include "base/cpu.h"
#include "tune/providers.h"
#include "tune/rows.h"
#include "tune/settings.h"

/// Kernels are the same if their sources, the compiler and its options are.
static uint64_t kernel_build(void) {
    static const char build[] = TOR_KERNEL_SOURCES " " TOR_KERNEL_OPTIONS " " __VERSION__;
    return XXH3_64bits(build, sizeof build);
}

/// A worker that was forked and pinned has fewer CPUs than the results are for.
static int threads(void) {
    static _Atomic int known;
    int count = atomic_load(&known);
    if (!count) atomic_store(&known, count = tor_cpu_count());
    return count;
}

/// A line of the file can hold any text without line ends.
static void set(TorValidator *v, const char *key, const char *value) {
    snprintf(v->key, sizeof v->key, "%s", key);
    snprintf(v->value, sizeof v->value, "%s", value);
    for (char *c = v->key; *c; c++)
        if (*c <= ' ' || *c == ',') *c = '_';
    for (char *c = v->value; *c; c++)
        if ((unsigned char)*c < ' ') *c = ' ';
    for (size_t n = strlen(v->value); n && v->value[n - 1] == ' ';) v->value[--n] = 0;
}

static void put(TorValidator *out, int *n, const char *key, const char *value) {
    if (*n < TOR_VALIDATORS) set(&out[(*n)++], key, value);
}

static void put_number(TorValidator *out, int *n, const char *key, uint64_t value, bool hex) {
    char text[32];
    snprintf(text, sizeof text, hex ? "%016" PRIx64 : "%" PRIu64, value);
    put(out, n, key, text);
}

/// Versions of the libraries whose kernels are candidates.
static void put_providers(TorValidator *out, int *n) {
    const TorProvider *provider;
    const char *version;
    char key[sizeof out->key];
    TorTuneSettings settings = tor_tune_settings();
    tor_providers_update(&settings);
    for (int i = 0; (provider = tor_provider_at(i)); i++)
        if (tor_provider_validator(provider, key, sizeof key, &version)) put(out, n, key, version);
}

int tor_validators(TorValidator out[TOR_VALIDATORS]) {
    int n = 0;
    char features[sizeof out->value];
    tor_cpu_feature_names(tor_cpu_features(), features, sizeof features);
    put(out, &n, "TOROID_VERSION", TOR_VERSION);
    put_number(out, &n, "KERNEL_BUILD", kernel_build(), true);
    put(out, &n, "CPU_MODEL", tor_cpu_model());
    put(out, &n, "CPU_FEATURES", *features ? features : "baseline");
    put_number(out, &n, "CACHE_L1D", tor_cpu_l1d(), false);
    put_number(out, &n, "CACHE_L2", tor_cpu_l2(), false);
    put_number(out, &n, "CACHE_L3", tor_cpu_l3(), false);
    put_number(out, &n, "THREADS", (uint64_t)threads(), false);
    put_providers(out, &n);
    return n;
}

// ---------------------------------------------------------------- as rows

void tor_validators_print(TorText *text) {
    TorValidator all[TOR_VALIDATORS];
    int n = tor_validators(all);
    for (int i = 0; i < n; i++) tor_text_put(text, "Validator,%s,%s\n", all[i].key, all[i].value);
}

static bool same(const char *text, const char *field, size_t length) {
    return strlen(text) == length && memcmp(text, field, length) == 0;
}

bool tor_validators_match(const char *text, size_t bytes, char *differs, size_t differs_bytes) {
    TorValidator all[TOR_VALIDATORS];
    int n = tor_validators(all);
    bool seen[TOR_VALIDATORS] = {false};
    TorRows rows = {.at = text, .end = text + bytes};
    TorRow row;
    while (tor_rows_next(&rows, &row)) {
        if (!tor_row_is_validator(&row)) continue;
        int length = row.count > 1 ? (int)row.length[1] : 0, i = 0;
        while (i < n && !(row.count > 1 && same(all[i].key, row.field[1], row.length[1]))) i++;
        if (i == n) {
            snprintf(differs, differs_bytes, "its validator %.*s is not known here", length,
                     length ? row.field[1] : "");
            return false;
        }
        int value = row.count > 2 ? (int)row.tail_length : 0;
        if (!same(all[i].value, row.tail, (size_t)value)) {
            snprintf(differs, differs_bytes, "%s is \"%.*s\" there and \"%s\" here", all[i].key,
                     value, value ? row.tail : "", all[i].value);
            return false;
        }
        seen[i] = true;
    }
    for (int i = 0; i < n; i++)
        if (!seen[i]) {
            snprintf(differs, differs_bytes, "it has no validator %s (\"%s\" here)", all[i].key,
                     all[i].value);
            return false;
        }
    return true;
}

// A table of the settings: name, how its text is read, where its value is kept.
#include "tune/settings.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/names.h"
#include "base/number.h"

#define PREFIX "TOROID_TUNABLEOP_"

typedef struct {
    TorTuneSettings values;
    char file[3][TOR_TUNE_PATH];  ///< by TorTuneFile
    bool insert_ordinal;
    int worker;
} State;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static State given = {
    .values = {.tuning = true,
               .max_ms = 30,
               .max_iterations = 100,
               .icache_flush = true,
               .rotating_bytes = -1,
               .atol = 1e-5,
               .rtol = 1e-5},
    .file = {"tunableop_results.csv", "tunableop_untuned.csv", "err"},
    .worker = -1,
};
static _Atomic uint64_t version;  // counts what the program set

// ---------------------------------------------------------------- kinds of values

static bool number(const char *text, size_t length, double least, double most, double *out) {
    double value;
    if (!tor_number_read(text, length, &value) || value < least || value > most) return false;
    *out = value;
    return true;
}

static bool integer(const char *text, double least, double most, double *out) {
    return number(text, strlen(text), least, most, out) && *out == floor(*out);
}

static bool read_switch(const char *text, void *out) {
    if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0) return false;
    *(bool *)out = text[0] == '1';
    return true;
}
static void print_switch(const void *value, TorText *text) {
    tor_text_put(text, "%d", *(const bool *)value);
}

static bool read_int(const char *text, double most, void *out) {
    double value;
    if (!integer(text, 0, most, &value)) return false;
    *(int *)out = (int)value;
    return true;
}
static bool read_level(const char *text, void *out) { return read_int(text, 3, out); }
static bool read_count(const char *text, void *out) { return read_int(text, INT32_MAX, out); }
static void print_int(const void *value, TorText *text) {
    tor_text_put(text, "%d", *(const int *)value);
}

static bool read_ms(const char *text, void *out) { return number(text, strlen(text), 0, 1e9, out); }
static void print_ms(const void *value, TorText *text) {
    tor_number_put(text, *(const double *)value, 17);
}

static bool read_mib(const char *text, void *out) {
    double value;
    if (!integer(text, -1, 1 << 20, &value)) return false;
    *(int64_t *)out = value < 0 ? -1 : (int64_t)value << 20;
    return true;
}
static void print_mib(const void *value, TorText *text) {
    int64_t bytes = *(const int64_t *)value;
    tor_text_put(text, "%" PRId64, bytes < 0 ? -1 : bytes >> 20);
}

/// `out` is all settings: this one has three fields.
static bool read_check(const char *text, void *out) {
    TorTuneSettings *s = out;
    if (strcmp(text, "off") == 0) text = "0";
    if (read_switch(text, &s->check)) return true;
    const char *between = strchr(text, '_');
    double a, r;
    if (!between || !number(text, (size_t)(between - text), 0, HUGE_VAL, &a) ||
        !number(between + 1, strlen(between + 1), 0, HUGE_VAL, &r))
        return false;
    s->check = true, s->atol = a, s->rtol = r;
    return true;
}
static void print_check(const void *value, TorText *text) {
    const TorTuneSettings *s = value;
    if (!s->check) {
        tor_text_add(text, "off");
        return;
    }
    tor_number_put(text, s->atol, 9);
    tor_text_add(text, "_");
    tor_number_put(text, s->rtol, 9);
}

static bool read_file(const char *text, void *out) {
    size_t length = strlen(text);
    if (length >= TOR_TUNE_PATH) return false;
    memcpy(out, text, length + 1);
    return true;
}

/// Names between commas; none at all are right too.
static bool read_names(const char *text, void *out) {
    size_t length = strlen(text);
    if (length >= sizeof((TorTuneSettings *)0)->providers) return false;
    for (const char *at = text; *at;) {
        char name[TOR_NAME_BYTES] = "";
        size_t bytes = strcspn(at, ",");
        if (bytes < sizeof name) memcpy(name, at, bytes);
        if (!tor_name_is_valid(name) || (at[bytes] == ',' && !at[bytes + 1])) return false;
        at += bytes + (at[bytes] == ',');
    }
    memcpy(out, text, length + 1);
    return true;
}
static void print_text(const void *value, TorText *text) { tor_text_add(text, value); }

typedef struct {
    const char *expected;
    bool (*read)(const char *text, void *out);  ///< false: `*out` is untouched
    void (*print)(const void *value, TorText *text);
} Kind;

static const Kind on_off = {"0 or 1", read_switch, print_switch},
                  level = {"0 to 3", read_level, print_int},
                  count = {"a number of times", read_count, print_int},
                  ms = {"milliseconds", read_ms, print_ms},
                  mib = {"a number of MiB, or -1", read_mib, print_mib},
                  check = {"off or atol_rtol as 1e-5_1e-3", read_check, print_check},
                  file = {"the name of a file", read_file, print_text},
                  names = {"names of providers between commas", read_names, print_text};

typedef struct {
    const char *variable;
    const Kind *kind;
    size_t offset;  ///< into State
} Setting;

#define SETTING(name, kind, field) \
    { PREFIX #name, &kind, offsetof(State, field) }
static const Setting table[] = {
    SETTING(FILENAME, file, file[TOR_TUNE_FILENAME]),
    SETTING(UNTUNED_FILENAME, file, file[TOR_TUNE_UNTUNED_FILENAME]),
    SETTING(VERBOSE_FILENAME, file, file[TOR_TUNE_VERBOSE_FILENAME]),
    SETTING(ENABLED, on_off, values.enabled),
    SETTING(TUNING, on_off, values.tuning),
    SETTING(RECORD_UNTUNED, on_off, values.record_untuned),
    SETTING(VERBOSE, level, values.verbose),
    SETTING(MAX_TUNING_DURATION_MS, ms, values.max_ms),
    SETTING(MAX_TUNING_ITERATIONS, count, values.max_iterations),
    SETTING(MAX_WARMUP_DURATION_MS, ms, values.max_warmup_ms),
    SETTING(MAX_WARMUP_ITERATIONS, count, values.max_warmup_iterations),
    SETTING(ICACHE_FLUSH_ENABLED, on_off, values.icache_flush),
    SETTING(ROTATING_BUFFER_SIZE, mib, values.rotating_bytes),
    SETTING(NUMERICAL_CHECK, check, values),
    SETTING(PROVIDERS, names, values.providers),
};
enum { FILES = 3 };  // the first rows, in the order of TorTuneFile

// ---------------------------------------------------------------- environment over program

static void complain(const Setting *s, const char *text) {
    static _Atomic bool told[TOR_COUNT_OF(table)];
    if (!atomic_exchange(&told[s - table], true))
        tor_log(0, "%s: expected %s, got \"%.100s\"; it is ignored", s->variable, s->kind->expected,
                text);
}

static const char *environment(const Setting *s) {
    const char *text = getenv(s->variable);
    return text && *text ? text : NULL;
}

TorTuneSettings tor_tune_settings(void) {
    pthread_mutex_lock(&lock);
    TorTuneSettings now = given.values;
    pthread_mutex_unlock(&lock);
    for (const Setting *s = table + FILES; s < table + TOR_COUNT_OF(table); s++) {
        const char *text = environment(s);
        void *field = (char *)&now + s->offset - offsetof(State, values);
        if (text && !s->kind->read(text, field)) complain(s, text);
    }
    return now;
}

bool tor_tune_is_forbidden(void) {
    const char *text = getenv(PREFIX "ENABLED");
    return text && strcmp(text, "0") == 0;
}

uint64_t tor_tune_settings_version(void) {
    return atomic_load_explicit(&version, memory_order_relaxed);
}

void tor_tune_settings_set(const TorTuneSettings *settings) {
    pthread_mutex_lock(&lock);
    given.values = *settings;
    pthread_mutex_unlock(&lock);
    atomic_fetch_add(&version, 1);
}

/// The name of a file as it was given, without its ordinal.
static void file_name(TorTuneFile which, char name[TOR_TUNE_PATH]) {
    const Setting *s = &table[which];
    const char *text = environment(s);
    if (text && s->kind->read(text, name)) return;
    if (text) complain(s, text);
    pthread_mutex_lock(&lock);
    memcpy(name, given.file[which], TOR_TUNE_PATH);
    pthread_mutex_unlock(&lock);
}

// ---------------------------------------------------------------- by name

static ToroidStatus find(const char *name, const Setting **out) {
    if (strncmp(name, PREFIX, strlen(PREFIX)) == 0) name += strlen(PREFIX);
    for (*out = table; *out < table + TOR_COUNT_OF(table); ++*out)
        if (strcmp((*out)->variable + strlen(PREFIX), name) == 0) return TOROID_OK;
    return tor_invalid("there is no setting \"%.100s\" of the tuner", name);
}

ToroidStatus tor_tune_set(const char *name, const char *value) {
    const Setting *s;
    TOR_TRY(find(name, &s));
    pthread_mutex_lock(&lock);
    bool set = s->kind->read(value, (char *)&given + s->offset);
    if (set && s->kind == &names) given.values.providers_given++;
    pthread_mutex_unlock(&lock);
    if (set) {
        atomic_fetch_add(&version, 1);
        return TOROID_OK;
    }
    return tor_invalid("%s: expected %s, got \"%.100s\"", s->variable + strlen(PREFIX),
                       s->kind->expected, value);
}

ToroidStatus tor_tune_get(const char *name, char *text, size_t bytes) {
    const Setting *s;
    TOR_TRY(find(name, &s));
    TorText out = tor_text_fixed(text, bytes);
    if (s < table + FILES) {
        char path[TOR_TUNE_PATH];
        TOR_TRY(tor_tune_file((TorTuneFile)(s - table), path));
        tor_text_add(&out, path);
    } else {
        TorTuneSettings now = tor_tune_settings();
        s->kind->print((const char *)&now + s->offset - offsetof(State, values), &out);
    }
    return out.full ? tor_invalid("%s takes more than %zu bytes", name, bytes) : TOROID_OK;
}

// ---------------------------------------------------------------- ordinals

void tor_tune_insert_ordinal(bool insert) {
    pthread_mutex_lock(&lock);
    given.insert_ordinal = insert;
    pthread_mutex_unlock(&lock);
}

void tor_tune_set_worker(int worker) {
    pthread_mutex_lock(&lock);
    given.worker = worker;
    pthread_mutex_unlock(&lock);
}

static int ordinal(int worker) {
    const char *rank = getenv("LOCAL_RANK");
    double value;
    if (worker >= 0) return worker;
    if (rank && integer(rank, 0, INT32_MAX, &value)) return (int)value;
    unsigned cpu, node = 0;
    return getcpu(&cpu, &node) == 0 ? (int)node : 0;
}

ToroidStatus tor_tune_file(TorTuneFile which, char path[TOR_TUNE_PATH]) {
    char name[TOR_TUNE_PATH];
    file_name(which, name);
    pthread_mutex_lock(&lock);
    bool insert = given.insert_ordinal && which != TOR_TUNE_VERBOSE_FILENAME;
    int worker = given.worker;
    pthread_mutex_unlock(&lock);
    char *at = strstr(name, "%d"), *rest = at ? at + 2 : NULL;
    if (!at && insert) {
        char *base = strrchr(name, '/');
        base = base ? base + 1 : name;
        rest = strrchr(base, '.');
        if (!rest || rest == base) rest = base + strlen(base);
        at = rest;
    }
    TorText out = tor_text_fixed(path, TOR_TUNE_PATH);
    tor_text_append(&out, name, at ? (size_t)(at - name) : strlen(name));
    if (at) {
        tor_text_put(&out, "%d", ordinal(worker));
        tor_text_add(&out, rest);
    }
    return out.full ? tor_invalid("%s: the name is too long", table[which].variable) : TOROID_OK;
}

/// The tuner's switches and limits. TOROID_TUNABLEOP_<NAME> in the environment wins over what the
/// program set, and is read whenever a setting is needed.
#ifndef TOR_TUNE_SETTINGS_H
#define TOR_TUNE_SETTINGS_H

#include "base/status.h"

typedef struct {
    bool enabled;               ///< ENABLED: known results are used
    bool tuning;                ///< TUNING; with `enabled`: what has no result is tuned
    bool record_untuned;        ///< RECORD_UNTUNED: operators without a result are noted
    int verbose;                ///< VERBOSE, 0 to 3
    double max_ms;              ///< MAX_TUNING_DURATION_MS, of timing a candidate
    int max_iterations;         ///< MAX_TUNING_ITERATIONS
    double max_warmup_ms;       ///< MAX_WARMUP_DURATION_MS
    int max_warmup_iterations;  ///< MAX_WARMUP_ITERATIONS
    bool icache_flush;          ///< ICACHE_FLUSH_ENABLED
    int64_t rotating_bytes;     ///< ROTATING_BUFFER_SIZE (MiB there); 0: one copy, -1: by the cache
    bool check;                 ///< NUMERICAL_CHECK: the tolerances are the user's
    double atol, rtol;
    char providers[256];       ///< PROVIDERS: names of those that are asked for, between commas
    uint64_t providers_given;  ///< times that the program set them
} TorTuneSettings;

/// What holds now. Cheap, any thread.
TorTuneSettings tor_tune_settings(void);
/// The environment says ENABLED=0: no option of a program switches the tuner on.
bool tor_tune_is_forbidden(void);
/// Changes whenever the program sets something: one load, for who asks at each call.
uint64_t tor_tune_settings_version(void);
/// Replaces what the program set, all of it.
void tor_tune_settings_set(const TorTuneSettings *settings);

/// Sets one by its name, "ENABLED" or "TOROID_TUNABLEOP_ENABLED", as the environment would.
/// @return TOROID_INVALID for an unknown name, or a value that is not what is expected
ToroidStatus tor_tune_set(const char *name, const char *value);
/// What holds now, as text that tor_tune_set() takes.
ToroidStatus tor_tune_get(const char *name, char *text, size_t bytes);

typedef enum {
    TOR_TUNE_FILENAME,
    TOR_TUNE_UNTUNED_FILENAME,
    TOR_TUNE_VERBOSE_FILENAME
} TorTuneFile;
enum { TOR_TUNE_PATH = 4096 };
/// The name of a file, "" where the program wants none, with its ordinal filled in: that of the
/// worker, else LOCAL_RANK of torchrun, else the NUMA node that this thread runs on. It replaces
/// "%d" and, after tor_tune_insert_ordinal(), goes before the last dot of a name without.
/// @return TOROID_INVALID where the name is too long
ToroidStatus tor_tune_file(TorTuneFile which, char path[TOR_TUNE_PATH]);
void tor_tune_insert_ordinal(bool insert);
/// This process is a worker of that number; -1: it is none.
void tor_tune_set_worker(int number);

#endif

/// Measured choice of kernels: switches, results, and tuning of recorded operators.
///
/// A result says which solution is the fastest for an operator, which is a name ("gemm_f32") and
/// params. Results are in a table of the process and in the file FILENAME.
#ifndef TOROID_TUNE_H
#define TOROID_TUNE_H

#include <stdbool.h>
#include <stddef.h>

#include "toroid/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Sets a switch or a limit. TOROID_TUNABLEOP_<name> in the environment wins over it.
/// @param name   "ENABLED", "TUNING", "RECORD_UNTUNED", "VERBOSE", "VERBOSE_FILENAME", "FILENAME",
///               "UNTUNED_FILENAME", "NUMERICAL_CHECK", "MAX_TUNING_DURATION_MS",
///               "MAX_TUNING_ITERATIONS", "MAX_WARMUP_DURATION_MS", "MAX_WARMUP_ITERATIONS",
///               "ICACHE_FLUSH_ENABLED", "ROTATING_BUFFER_SIZE" or "PROVIDERS": names between
///               commas of other libraries whose products are candidates (toroid/provider.h)
/// @param value  as in the environment; "" for FILENAME keeps results in memory
/// @return TOROID_INVALID for an unknown name, or a value that is not what is expected
TOROID_API ToroidStatus toroid_tune_set(const char *name, const char *value);

/// Gives what holds now, as text that toroid_tune_set() takes.
/// @param name   as for toroid_tune_set()
/// @param text   filled in
/// @param bytes  of `text`; 4096 are enough for any setting
TOROID_API ToroidStatus toroid_tune_get(const char *name, char *text, size_t bytes);

/// Whether names of files get an ordinal before their last dot, as "results0.csv": the number of
/// the tuning worker, LOCAL_RANK of torchrun, or the NUMA node. "%d" in a name is replaced by it
/// anyway.
TOROID_API void toroid_tune_insert_ordinal(bool insert);

// ---------------------------------------------------------------- results

/// What was found for one operator.
typedef struct {
    const char *op;        ///< family and types
    const char *params;    ///< sizes, strides, threads, ...
    const char *solution;  ///< "Default" is what runs without tuning
    double mean_ms;        ///< of the solution; < 0: not known
} ToroidTuneResult;

/// Gives the results of this process, those of the file FILENAME among them.
/// @param out    the caller's; free with toroid_tune_free()
/// @param count  how many
TOROID_API ToroidStatus toroid_tune_results(ToroidTuneResult **out, size_t *count);

/// What has to be as it was for results of a file to be used.
typedef struct {
    const char *key;    ///< "CPU_MODEL"
    const char *value;  ///< of this process
} ToroidTuneValidator;

/// Gives the validators of this process.
/// @param out    the caller's; free with toroid_tune_free()
/// @param count  how many
TOROID_API ToroidStatus toroid_tune_validators(ToroidTuneValidator **out, size_t *count);

/// Frees what toroid_tune_results() or toroid_tune_validators() gave; accepts NULL.
TOROID_API void toroid_tune_free(void *list);

/// Adds the results of a file to those of the process, which win. Of the file's rows for one
/// operator the first counts.
/// @param path   NULL: the file FILENAME
/// @param valid  false with TOROID_OK where there is no file, or its validators are others
TOROID_API ToroidStatus toroid_tune_read(const char *path, bool *valid);

/// Appends all results of the process to a file, less those that it has. Needed for other files
/// than FILENAME only, to which each result is appended at once.
/// @param path  NULL: the file FILENAME
TOROID_API ToroidStatus toroid_tune_write(const char *path);

// ---------------------------------------------------------------- recorded operators

/// What became of one recorded operator. Texts live until the callback returns.
typedef struct {
    const char *op;        ///< as recorded
    const char *params;    ///< as recorded
    const char *solution;  ///< "" if it was not tuned
    double default_ms;     ///< of the cost model's choice
    double best_ms;        ///< of the solution
    ToroidStatus status;   ///< TOROID_OK: tuned, and in the file
    const char *message;   ///< "", or why it was not tuned
    int done;              ///< operators of this call so far
    int total;             ///< operators of this call
} ToroidTuneReport;

/// What to tune, and how.
typedef struct {
    /// sizeof(ToroidTuneJob): lets later versions add fields at the end.
    size_t struct_bytes;
    /// Files that RECORD_UNTUNED wrote, or files of results, whose operators are then tuned anew
    /// where this process has no result for them.
    const char *const *files;
    /// Number of files.
    int n_files;
    /// Processes to fork, each with cores of its own; 0 tunes in this process.
    int workers;
    /// Called by the calling thread for each operator, those that failed last, and with NULL when a
    /// signal came. Not for what failed here and was done by another process meanwhile. May be
    /// NULL.
    /// @return false to end; what was reported is kept
    bool (*report)(void *user, const ToroidTuneReport *report);
    /// Passed on to `report`.
    void *user;
} ToroidTuneJob;

/// What a job did.
typedef struct {
    int listed;  ///< different operators in the files
    int known;   ///< of this process's share: had a result before, or got one from another process
    int tuned;   ///< have one now
    int failed;  ///< were reported with a status that is not TOROID_OK
} ToroidTuneSummary;

/// Tunes recorded operators; each result is in the file FILENAME before it is reported. Under
/// torchrun (RANK, WORLD_SIZE) each process takes its share of the list.
/// @param job      what to tune
/// @param summary  filled in, also where the job ended early
/// @return TOROID_INVALID for a line that is no operator, for more workers than cores, where TUNING
///         is 0, and where RANK and the like are no numbers that torchrun would set; TOROID_FAILED
///         for a file that cannot be read. Not for operators that cannot be tuned, which are
///         reported
TOROID_API ToroidStatus toroid_tune_files(const ToroidTuneJob *job, ToroidTuneSummary *summary);

#ifdef __cplusplus
}
#endif
#endif

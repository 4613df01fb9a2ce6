/// What the tuner asks of a kernel family whose kernels have choices.
///
/// A *problem* is the family's own struct: sizes, strides, programs, and the arguments that its
/// kernels run with. A *choice* is a set of numbers that override what bind would choose by its
/// cost model; all 0 is "Default". Any choice is safe for any problem: a family cuts numbers down
/// to what the problem allows, so that a file that was edited can cost speed, never an answer.
#ifndef TOR_TUNE_TUNABLE_H
#define TOR_TUNE_TUNABLE_H

#include <stdatomic.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/pool.h"
#include "base/text.h"

enum { TOR_TUNE_KNOBS = 7, TOR_TUNE_CANDIDATES = 48, TOR_TUNE_OPERANDS = 28 };

typedef struct {
    int64_t row;                   ///< 0: bind's; else 1 + the number of a row of kernels.inc
    int64_t knob[TOR_TUNE_KNOBS];  ///< 0: bind's
} TorTuneChoice;

typedef struct {
    TorTuneChoice choice[TOR_TUNE_CANDIDATES];
    int count;
} TorTuneList;

/// A pointer field of a problem and the memory that it needs.
typedef struct {
    void **field;
    size_t bytes;
    TorDtype dtype;
    bool written;
    bool cold;  ///< a real run finds it in no cache: weights, a long past
} TorTuneOperand;

typedef struct {
    TorTuneOperand list[TOR_TUNE_OPERANDS];
    int count;
} TorTuneOperands;

/// What went wrong in runs, for whoever times them; the first counts.
typedef struct {
    _Atomic bool noted;
    char message[256];
} TorTuneFailure;

/// How a bound problem runs.
typedef struct {
    TorRegionCall calls[TOR_REGION_CALLS];
    int n_calls;
    size_t scratch_bytes;  ///< a thread
    size_t shared_bytes;   ///< for all threads
    void **shared;         ///< the field that takes it; NULL: none
    /// The field for where a run notes a failure, set while timing only; NULL: runs cannot fail.
    TorTuneFailure **failure;
} TorLaunch;

typedef struct {
    const char *op;                     ///< "gemm_f32"
    const char *knobs[TOR_TUNE_KNOBS];  ///< names; NULL past the last
    const char *(*row)(
        int number);  ///< names of rows; NULL past the last. NULL: rows have no choice

    /// Of all that params say, and equal for equal problems.
    uint64_t (*hash)(const void *problem);
    /// Without comma, quote or white space; see params.h.
    void (*put)(const void *problem, TorText *params);
    /// The inverse of put. @return TOROID_INVALID for what no put could have written
    ToroidStatus (*parse)(const char *params, TorArena *arena, void **problem);
    /// A copy to set pointers in; NULL without memory. Programs are borrowed.
    void *(*copy)(const void *problem, TorArena *arena);

    /// Adds what may be faster than Default to `list`. `problem` is bound by Default.
    void (*candidates)(const void *problem, int threads, TorTuneList *list);
    /// @return false if an operand's elements are none that memory of its own could hold
    bool (*operands)(void *problem, TorTuneOperands *list);
    void (*set)(void *problem, const TorTuneChoice *choice);
    void (*bind)(void *problem, TorLaunch *launch);
} TorTunable;

/// Adds a choice, unless it is Default, there already, or one too many.
void tor_tune_list_add(TorTuneList *list, const TorTuneChoice *choice);
/// Adds choices that differ from Default in one knob.
void tor_tune_list_knob(TorTuneList *list, int knob, int64_t value);
void tor_tune_operand(TorTuneOperands *operands, const void *field, size_t bytes, TorDtype dtype,
                      bool written, bool cold);

static inline void tor_launch_region(TorLaunch *launch, TorRangeFn run, const void *args,
                                     int64_t items) {
    launch->calls[launch->n_calls++] = (TorRegionCall){run, args, items};
}

/// The family of an op signature; NULL: no family of this build has it.
const TorTunable *tor_tunable_find(const char *op);

/// "row;mc=96;kc=384", or "Default".
void tor_choice_print(const TorTunable *t, const TorTuneChoice *choice, char *text, size_t bytes);
/// @return false, with *out Default, for what this build has no such row or knob for
bool tor_choice_parse(const TorTunable *t, const char *text, TorTuneChoice *out);

#endif

/// Inside the planner: what a step is, and how a node is turned into steps.
#ifndef TOR_PLAN_STEP_H
#define TOR_PLAN_STEP_H

#include "base/pool.h"
#include "base/text.h"
#include "plan/plan.h"
#include "tune/choose.h"

/// A strided part of a storage.
typedef struct {
    int storage;
    TorDtype dtype;
    int rank;
    TorDim dim[TOR_MAX_RANK], stride[TOR_MAX_RANK], offset;  ///< elements
} TorView;

typedef enum {
    TOR_STORAGE_ARENA,
    TOR_STORAGE_INPUT,
    TOR_STORAGE_OUTPUT,
    TOR_STORAGE_CONSTANT
} TorStorageKind;

typedef struct {
    TorStorageKind kind;
    int number;  ///< input or output
    const void *constant;
    const TorValue *root;
    TorDim elements;  ///< of an arena storage: those are dense
    size_t element;   ///< bytes
    size_t bytes;     ///< not 0: the size, known at compile time
    int first, last;  ///< steps that touch it; first > last: none
} TorStorage;

/// A pointer field of a step's arguments.
typedef struct {
    size_t at;  ///< offset of the field in the context's argument block
    int storage;
    TorDim offset;   ///< elements
    size_t element;  ///< bytes
} TorPointer;

/// What a bind function sees and fills.
typedef struct {
    const int64_t *ints;    ///< the graph's integers
    void *args;             ///< of the step; cleared when the context was made, kept between binds
    int *error;             ///< a kernel may raise it: see TorStepKind.raised
    bool reference;         ///< the family's oracle is wanted, not a kernel
    TorTuneChoice *choice;  ///< of the step; NULL: Default
    // Not NULL: the choice is still to be found out, for the problem that stands for its bucket.
    const TorTuneAsk *ask;
    const int64_t *bucket_ints;
    void *bucket_args;                      ///< NULL: that problem is the step's own
    TorRegionCall calls[TOR_REGION_CALLS];  ///< a NULL `run` is an external node
    int n_calls;
    size_t scratch_bytes;  ///< a thread
    size_t shared_bytes;   ///< workspace for all threads of the step
} TorBinder;

typedef struct TorStep TorStep;

typedef struct {
    const char *name;
    /// Fills the arguments for the integers; pointers are set by the context.
    void (*bind)(const void *data, TorBinder *binder);
    /// The kernel row chosen, for tables; NULL: none to tell.
    const char *(*kernel)(const void *args);
    const char *reference;  ///< the family's oracle; NULL: it has none
    /// The message for what the step's kernel left in the error flag; NULL where none raises it.
    ToroidStatus (*raised)(const TorStep *step, const void *args, int error);
} TorStepKind;

struct TorStep {
    const TorStepKind *kind;
    const TorNode *node;
    const void *data;  ///< what lowering knew
    size_t args_at, args_bytes;
    size_t shared_at;  ///< field that takes the workspace, from args_at; SIZE_MAX: none
    int joined;  ///< nodes that it does besides: the one that makes its node's input 0, and so on
};

struct TorPlan {
    uint64_t number;  ///< unique in the process
    bool tune;        ///< known results are used, whatever the switches of the process say
    TorGraph *g;
    bool reference;  ///< every step by its family's oracle
    TorArena *arena;
    TorStep *steps;
    size_t n_steps, step_capacity;
    TorStorage *storages;
    size_t n_storages, storage_capacity;
    TorPointer *pointers;
    size_t n_pointers, pointer_capacity;
    size_t args_bytes;
    int *storage_of;  ///< by value id; -1: none yet
    uint32_t n_values;
    int *output_of;  ///< graph output -> position among the returned ones; -1
    int n_returned;
    TorDim input_bytes;  ///< that a run writes into graph inputs
    TorExternalFn external;
    void *external_user;
    TorRangeHook ranges;
    void *ranges_user;
    struct TorLifetimes *lifetimes;
};

/// The storage view of a value with a layout.
ToroidStatus tor_plan_view(TorPlan *plan, const TorValue *value, TorView *view);
/// The part [start, start + size) of an axis.
TorView tor_view_slice(TorPlan *plan, TorView view, int axis, TorDim start, TorDim size,
                       TorDim step);
/// As numpy broadcasts: `view` read with the rank of `dims`; strides 0 where it has size 1.
TorView tor_view_broadcast(TorPlan *plan, const TorView *view, int rank, const TorDim *dims);

/// Appends a step; *data is cleared memory of data_bytes that lives as long as the plan.
ToroidStatus tor_step_add(TorPlan *plan, const TorStepKind *kind, const TorNode *node,
                          size_t data_bytes, size_t args_bytes, void *data);
/// Points a field of the last step's arguments at a view; extends the storage's life to this step.
ToroidStatus tor_step_pointer(TorPlan *plan, const TorView *view, size_t field);
/// The last step writes `size` elements of `to`: counted if that is memory of a graph input.
void tor_step_writes(TorPlan *plan, const TorView *to, int rank, const TorDim *size);
/// The last step needs a workspace; `field` of its arguments takes it.
void tor_step_shared(TorPlan *plan, size_t field);

/// The last step does `count` nodes besides its own.
void tor_step_joins(TorPlan *plan, int count);

/// Binds `problem` (tune/families.h) with the choice that the tuner knows for `asked`, or finds out
/// now: the same problem, or the one that stands for its bucket.
void tor_bind_tunable(TorBinder *b, const TorTunable *t, void *problem, const void *asked);
/// The same for a problem that is the step's arguments, which `fill` fills for any integers.
void tor_bind_tunable_args(TorBinder *b, const TorTunable *t,
                           void (*fill)(const void *data, const int64_t *ints, void *args),
                           const void *data);

/// Adds region `run` to a binder.
static inline void tor_bind_region(TorBinder *b, TorRangeFn run, const void *args, int64_t items) {
    b->calls[b->n_calls++] = (TorRegionCall){run, args, items};
}

/// Makes the oracle the step's one item, if that is what is wanted: then the family's own bind,
/// which may be what is wrong, is left out.
static inline bool tor_bind_reference(TorBinder *b, TorRangeFn run, size_t scratch_bytes) {
    if (!b->reference) return false;
    b->scratch_bytes = scratch_bytes;
    tor_bind_region(b, run, b->args, 1);
    return true;
}

/// An oracle that takes the arguments alone, as a TorRangeFn.
#define TOR_REFERENCE_RUN(oracle)                                                             \
    static void oracle##_range(const void *args, int64_t begin, int64_t end, void *scratch) { \
        (void)begin, (void)end, (void)scratch;                                                \
        oracle(args);                                                                         \
    }

/// size[i] = ints[dims[i]]
static inline void tor_bind_dims(const int64_t *ints, const TorDim *dims, int count, int64_t *out) {
    for (int i = 0; i < count; i++) out[i] = ints[dims[i]];
}

// One function a group of ops, each in its own file.
ToroidStatus tor_lower_fused(TorPlan *plan, const TorNode *node);
ToroidStatus tor_lower_linear(TorPlan *plan, const TorNode *node);
ToroidStatus tor_lower_matmul(TorPlan *plan, const TorNode *node);
ToroidStatus tor_lower_pack_linear(TorPlan *plan, const TorNode *node);
ToroidStatus tor_lower_conv(TorPlan *plan, const TorNode *node);
ToroidStatus tor_lower_pack_conv(TorPlan *plan, const TorNode *node);
ToroidStatus tor_lower_pool(TorPlan *plan, const TorNode *node);
ToroidStatus tor_lower_resize(TorPlan *plan, const TorNode *node);
ToroidStatus tor_lower_grid(TorPlan *plan, const TorNode *node);
ToroidStatus tor_lower_bag(TorPlan *plan, const TorNode *node);
ToroidStatus tor_lower_rnn(TorPlan *plan, const TorNode *node);
ToroidStatus tor_lower_attention(TorPlan *plan, const TorNode *node);
ToroidStatus tor_lower_contiguous(TorPlan *plan, const TorNode *node);
ToroidStatus tor_lower_cat(TorPlan *plan, const TorNode *node);
ToroidStatus tor_lower_pad(TorPlan *plan, const TorNode *node);
ToroidStatus tor_lower_flip(TorPlan *plan, const TorNode *node);
ToroidStatus tor_lower_full(TorPlan *plan, const TorNode *node);
ToroidStatus tor_lower_arange(TorPlan *plan, const TorNode *node);
ToroidStatus tor_lower_scan(TorPlan *plan, const TorNode *node);
ToroidStatus tor_lower_sort(TorPlan *plan, const TorNode *node);
ToroidStatus tor_lower_searchsorted(TorPlan *plan, const TorNode *node);
ToroidStatus tor_lower_slice_scatter(TorPlan *plan, const TorNode *node);
ToroidStatus tor_lower_gather(TorPlan *plan, const TorNode *node);
ToroidStatus tor_lower_scatter(TorPlan *plan, const TorNode *node);
ToroidStatus tor_lower_external(TorPlan *plan, const TorNode *node);
/// A copy from one view to another of the same dims and dtype.
ToroidStatus tor_lower_copy(TorPlan *plan, const TorNode *node, const TorView *from,
                            const TorView *to);

/// What a bound context holds for a step, for tables.
const TorRegionCall *tor_context_calls(const TorContext *c, size_t step, int *count);
const void *tor_context_args(const TorContext *c, size_t step);
const TorPlan *tor_context_plan(const TorContext *c);
const int64_t *tor_context_ints(const TorContext *c);
/// What the last bind depended on: sizes, strides and integers of the inputs.
const int64_t *tor_context_sizes(const TorContext *c, size_t *count);

/// The kernel row that a bound step runs, or the oracle; NULL: none to tell.
const char *tor_step_kernel(const TorPlan *plan, const TorStep *step, const void *args);
/// What a step does, in the words of the IR: "linear {add gelu_erf}".
void tor_step_put_work(TorText *t, const TorStep *step);

/// Runs an external step; `args` are its bound arguments.
ToroidStatus tor_external_run(const TorPlan *plan, const void *args, void *token);

#endif

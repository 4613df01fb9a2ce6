/// Plans: a graph after its passes becomes a skeleton of steps, once; a context binds the skeleton
/// to sizes and runs it.
///
/// The skeleton (TorPlan) is constant after tor_plan_create() and shared by all contexts. A context
/// has memory for everything a run needs; one thread uses it at a time. Binding evaluates the
/// graph's integers, lays out the arena and fills each step's arguments; it allocates nothing once
/// the context exists, and is skipped when no size changed.
#ifndef TOR_PLAN_PLAN_H
#define TOR_PLAN_PLAN_H

#include "graph/graph.h"

typedef struct TorPlan TorPlan;
typedef struct TorContext TorContext;

/// A tensor that the host lends, one for each graph input.
typedef struct {
    void *data;
    const int64_t *size;    ///< read for inputs whose sizes the graph asks for
    const int64_t *stride;  ///< elements; NULL: row-major
    int64_t value;          ///< of an integer input
    int64_t start, memory;  ///< read for inputs whose memory the graph looks at
} TorPlanInput;

typedef struct {
    TorDtype dtype;
    int rank;
    int from_input;   ///< >= 0: this output lives in that input: itself, or a view of it
    int from_output;  ///< >= 0: this output is a view of that one
    bool whole;       ///< with from_input: the input itself
    int64_t offset;   ///< of a view, in elements; from the first element of the input or output
    int64_t size[TOR_MAX_RANK], stride[TOR_MAX_RANK];
    void *data;  ///< set before run
} TorPlanOutput;

/// See TorHostTensor in backend/executable.h.
typedef struct {
    TorDtype dtype;
    int rank;
    int graph_input;
    const int64_t *size, *stride;
    void *data;
} TorExternalTensor;

typedef ToroidStatus (*TorExternalFn)(void *user, void *token, int64_t callable,
                                      const TorExternalTensor *inputs, int n_inputs,
                                      const int64_t *ints, int n_ints,
                                      const TorExternalTensor *outputs, int n_outputs);

/// Builds the skeleton. The graph has been through the passes, layout last; it is borrowed for the
/// plan's life (integers may be added to it meanwhile).
/// @param reference  every step runs its family's oracle, if it has one
/// @return TOROID_UNSUPPORTED, with the node, where no kernel takes it
ToroidStatus tor_plan_create(TorPlan **out, TorGraph *g, bool reference);
void tor_plan_destroy(TorPlan **plan);
void tor_plan_set_external(TorPlan *plan, TorExternalFn fn, void *user);
/// Hears of each step of the runs that ask for it: its name when it begins, NULL when it ended.
typedef void (*TorRangeHook)(void *user, void *token, const char *name);
void tor_plan_set_ranges(TorPlan *plan, TorRangeHook hook, void *user);
/// Known results of tuning are used, whatever the switches of the process say.
void tor_plan_set_tune(TorPlan *plan, bool tune);
int tor_plan_output_count(const TorPlan *plan);  ///< outputs that are returned, in order
size_t tor_plan_step_count(const TorPlan *plan);
/// Bytes of the only output of a plan without dynamic sizes (a prologue result).
ToroidStatus tor_plan_result_bytes(TorPlan *plan, size_t *bytes);

ToroidStatus tor_context_create(TorContext **out, TorPlan *plan);
void tor_context_destroy(TorContext **context);
/// Reads sizes, binds if any changed, and describes the outputs. `inputs` is borrowed until the run
/// ends. Where the tuner is on, the kernels are those for `threads`; 0: it is left out.
ToroidStatus tor_context_begin(TorContext *c, const TorPlanInput *inputs, int threads);
TorPlanOutput *tor_context_outputs(TorContext *c);
/// An integer of the graph, by the sizes of the last begin.
int64_t tor_context_int(const TorContext *c, TorDim dim);
/// @param threads at least 1
/// @param ranges  the plan's range hook hears of each step
/// @return TOROID_INVALID_INDEX or TOROID_INVALID_DATA for values that eager refuses, or the status
/// of an external node
ToroidStatus tor_context_run(TorContext *c, int threads, void *token, bool ranges);
size_t tor_context_arena_bytes(const TorContext *c);
/// Bytes that a run with the sizes of the last bind writes into graph inputs (cache updates).
uint64_t tor_context_input_bytes(const TorContext *c);
uint64_t tor_context_binds(const TorContext *c);
/// Gives the arena's and the scratch's pages back to the system.
void tor_context_trim(TorContext *c);

/// A table of steps: number, node, kernel, items, sizes. Bound sizes are those of the last bind of
/// `c`; NULL: none yet. Free with tor_free().
ToroidStatus tor_plan_print(const TorPlan *plan, const TorContext *c, char **text);

#endif

/// A compiled graph as the doors (Python, later the command line) see it.
///
/// A call has three steps, so that the host can make the output tensors with its own allocator:
///     tor_exe_begin   inputs in, sizes bound, outputs described
///     tor_exe_run     kernels run (no host lock needed); outputs filled
///     tor_exe_end     the context goes back
/// Many threads may be between begin and end of one executable at once.
#ifndef TOR_BACKEND_EXECUTABLE_H
#define TOR_BACKEND_EXECUTABLE_H

#include "graph/table.h"
#include "plan/describe.h"

typedef struct TorExecutable TorExecutable;
typedef struct TorCall TorCall;

/// What the host gives for each graph input, in the graph's order.
typedef struct {
    void *data;             ///< of a tensor; may be NULL where it has no elements
    const int64_t *size;    ///< borrowed until tor_exe_end
    const int64_t *stride;  ///< elements; NULL: row-major
    int64_t value;          ///< of an integer input
    // Where the graph asks for them (TOR_INT_start): elements of the tensor's memory before its
    // first element, and of that memory as a whole.
    int64_t start, memory;
    // Tracked inputs only (see tor_exe_tracks): the identity of the tensor. `uid` is never used
    // twice in a process.
    uint64_t uid;
    int64_t version;  ///< the host's change counter; 0 where it has none
    void *owner;      ///< the host's own, for `releases`; read within tor_exe_begin
} TorCallInput;

/// A graph output, as tor_exe_begin describes it.
typedef struct {
    TorDtype dtype;
    int rank;
    int from_input;   ///< >= 0: this output lives in that input: itself, or a view of it
    int from_output;  ///< >= 0: this output is a view of that one
    bool whole;       ///< with from_input: the input itself
    int64_t offset;   ///< of a view, in elements; from the first element of the input or output
    int64_t size[TOR_MAX_RANK], stride[TOR_MAX_RANK];  ///< elements
    void *data;                                        ///< set by the host between begin and run
} TorCallOutput;

/// A tensor handed to the host for an external node. Its memory belongs to the call: the host must
/// copy what it keeps.
typedef struct {
    TorDtype dtype;
    int rank;
    int graph_input;  ///< >= 0: this is graph input number ..: the host may use its own tensor
    const int64_t *size, *stride;
    void *data;
} TorHostTensor;

typedef struct {
    void *user;
    /// Runs external node `callable` (the number given to the graph). `ints` are the node's integer
    /// operands. The host fills the memory of `outputs`, whose sizes and strides are fixed.
    /// `token` is what the host gave to tor_exe_run.
    ToroidStatus (*external)(void *user, void *token, int64_t callable, const TorHostTensor *inputs,
                             int n_inputs, const int64_t *ints, int n_ints,
                             const TorHostTensor *outputs, int n_outputs);
    /// Hears of each step of the runs that ask for it: its name when it begins, NULL when it ended.
    /// May be NULL.
    void (*range)(void *user, void *token, const char *name);
    /// Within tor_exe_begin: may the memory of this tracked input be spilled (base/spill.h)? The
    /// host then calls tor_spill_end() before it frees it. May be NULL: no.
    bool (*releases)(void *user, void *owner);
} TorHost;

typedef struct {
    TorHost host;
    int threads;            ///< 0: as tor_exe_begin is told
    bool freeze;            ///< use frozen inputs (true by default)
    bool release;           ///< spill weights once they are packed, if nothing else reads them
    bool reference;         ///< every step by its reference kernel
    bool tune;              ///< the tuner is on, unless the environment says no
    const char *precision;  ///< "f32"; "bf16" is TOROID_UNSUPPORTED where no kernel has it
} TorOptions;

/// Takes the graph over (also on failure: *graph is then destroyed and NULL).
ToroidStatus tor_exe_compile(TorExecutable **out, TorGraph **graph, const TorOptions *options);
void tor_exe_destroy(TorExecutable **exe);

/// `threads` >= 1, for packing and for the run; the option of that name wins.
ToroidStatus tor_exe_begin(TorExecutable *exe, const TorCallInput *inputs, int threads,
                           TorCall **call);
/// Does something that was made ahead depend on this input? Only then are its uid and version read.
bool tor_exe_tracks(const TorExecutable *exe, uint32_t input);
int tor_exe_output_count(const TorExecutable *exe);
TorCallOutput *tor_exe_outputs(TorCall *call);
/// Returns TOROID_INVALID_INDEX or TOROID_INVALID_DATA for values that eager refuses. With `ranges`
/// the host hears of each step.
ToroidStatus tor_exe_run(TorCall *call, void *token, bool ranges);
void tor_exe_end(TorCall **call);

/// Tells the frozen table that tensor `uid` is gone; what was made from it is freed. Any thread.
void tor_frozen_forget(uint64_t uid);
/// Makes everything that was made from frozen tensors stale: it is made again at its next use.
void tor_frozen_refresh(void);

/// Gives back the memory of every call that is not under way; the next one takes new pages. Memory
/// of calls that were idle for TOR_IDLE_SECONDS goes back when any other call ends.
void tor_exe_trim(void);

typedef struct {
    uint64_t frozen_entries, frozen_bytes,
        frozen_packs;         ///< process-wide; packs = prologue results made so far
    uint64_t released_bytes;  ///< of weights that were spilled; process-wide
    uint64_t mapped_bytes;    ///< of frozen_bytes: files of TOROID_CACHE_DIR; process-wide
    uint64_t steps, native_nodes, external_nodes;  ///< of this executable
    uint64_t arena_bytes;                          ///< largest arena bound so far
    uint64_t binds, contexts;
    uint64_t input_bytes;   ///< written into graph inputs by the last call
    uint64_t weight_bytes;  ///< packed bytes this executable uses (last set)
} TorExeStats;
void tor_exe_stats(const TorExecutable *exe,
                   TorExeStats *stats);  ///< exe may be NULL: process-wide fields only
/// Tables for people: the graph as it came, the graph after the passes, the steps with their
/// kernels. Free each with tor_free().
ToroidStatus tor_exe_describe(const TorExecutable *exe, char **before, char **after, char **steps);

/// Where the work of a node went: numbers of nodes after the passes.
typedef struct {
    uint32_t *nodes, count;  ///< none: nothing needs it
} TorPlaces;

/// The same tables as records, for programs.
typedef struct {
    const TorTable *before, *after;  ///< the executable's, which must outlive this
    TorPlaces *places;               ///< for each node of `before`
    TorStepRecord *steps;            ///< at the sizes of a late call
    uint32_t *step_nodes;            ///< for each step its node in `after`
    size_t n_steps;
    bool bound;       ///< a call has run: kernels, flops and bytes are known
    TorArena *arena;  ///< private
} TorExeRecord;
ToroidStatus tor_exe_record(const TorExecutable *exe, TorExeRecord **out);
void tor_exe_record_destroy(TorExeRecord **record);

#endif

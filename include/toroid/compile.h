/// Compiled graphs: compile once, run as often as wanted, from any thread.
#ifndef TOROID_COMPILE_H
#define TOROID_COMPILE_H

#include <stddef.h>

#include "toroid/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A compiled graph. Any number of threads may run it at a time.
typedef struct ToroidExecutable ToroidExecutable;

/// How to compile.
typedef struct {
    /// sizeof(ToroidOptions): lets later versions add fields at the end.
    size_t struct_bytes;
    /// Threads of each run; 0: as many as this process may use CPUs.
    int threads;
    /// Not 0: every node by itself and by its plain reference kernel, in one thread. Slow: the
    /// answers are for comparing with.
    int reference;
    /// Not 0: kernels are chosen by results of tuning, and what has no result is tuned at the first
    /// run, which then takes seconds to minutes. TOROID_TUNABLEOP_ENABLED=0 in the environment
    /// forbids it.
    int tune;
} ToroidOptions;

/// Compiles a graph whose outputs are set.
/// @param out      the caller's; free with toroid_executable_destroy(). NULL on failure
/// @param graph    taken over and set to NULL, also on failure
/// @param options  NULL: defaults
/// @return TOROID_UNSUPPORTED with the reason where a node has no kernel; TOROID_INVALID for wrong
///         options or a graph without outputs; TOROID_NO_MEMORY
TOROID_API ToroidStatus toroid_compile(ToroidExecutable **out, ToroidGraph **graph,
                                       const ToroidOptions *options);
/// Frees a compiled graph. No run may be under way.
/// @param executable  may be NULL, and point to NULL; `*executable` is set to NULL
TOROID_API void toroid_executable_destroy(ToroidExecutable **executable);

/// Number of inputs, weights among them; 0 where `executable` is NULL.
TOROID_API int toroid_input_count(const ToroidExecutable *executable);
/// Number of outputs; 0 where `executable` is NULL.
TOROID_API int toroid_output_count(const ToroidExecutable *executable);

/// A tensor in the caller's memory, row-major: the last dim's elements lie side by side.
typedef struct {
    /// The first element; may be NULL where there are none.
    void *data;
    /// Type of the elements.
    ToroidDtype dtype;
    /// Number of dims, 0 to TOROID_MAX_RANK.
    int rank;
    /// Elements of each dim; those from `rank` on are not looked at.
    int64_t size[TOROID_MAX_RANK];
    /// Weights only: a number from toroid_weight_id() that stands for this tensor. 0: what depends
    /// on it is computed anew at each run.
    uint64_t id;
    /// Weights only: a counter that the caller raises when the content changes.
    uint64_t version;
} ToroidTensor;

/// Gives a number that no other weight of this process has, for ToroidTensor.id. Never 0.
TOROID_API uint64_t toroid_weight_id(void);
/// Frees what was made from a weight. The number may not be used again.
/// @param id  from toroid_weight_id(); 0 is ignored
TOROID_API void toroid_weight_forget(uint64_t id);

/// Describes the outputs for inputs of these sizes: type, rank, sizes; `data` of the outputs is not
/// touched, and of the inputs that of weights only.
/// @param executable  compiled
/// @param inputs      row-major tensors in the order of toroid_graph_input(); not written
/// @param n_inputs    toroid_input_count()
/// @param outputs     filled in, but for `data`
/// @param n_outputs   toroid_output_count()
/// @return TOROID_INVALID with the input's name where a type or size does not fit; TOROID_INVALID
///         or TOROID_INVALID_DATA where open sizes do not fit together, as for 3 columns times 2
///         rows; TOROID_NO_MEMORY
TOROID_API ToroidStatus toroid_describe_outputs(ToroidExecutable *executable,
                                                const ToroidTensor *inputs, int n_inputs,
                                                ToroidTensor *outputs, int n_outputs);

/// Runs a compiled graph. May be called from several threads at a time.
/// @param executable  compiled
/// @param inputs      row-major tensors in the order of toroid_graph_input(); not written
/// @param n_inputs    toroid_input_count()
/// @param outputs     of the types and sizes that toroid_describe_outputs() tells, with memory of
///                    the caller's, row-major, that overlaps no input and no other output
/// @param n_outputs   toroid_output_count()
/// @return what toroid_describe_outputs() does; TOROID_INVALID for an output of another type or
///         size; TOROID_INVALID_INDEX or TOROID_INVALID_DATA for values that an operator refuses
TOROID_API ToroidStatus toroid_run(ToroidExecutable *executable, const ToroidTensor *inputs,
                                   int n_inputs, ToroidTensor *outputs, int n_outputs);

#ifdef __cplusplus
}
#endif
#endif

/// Compiled graphs: compile once, run as often as wanted, from any thread.
#ifndef TOROID_COMPILE_H
#define TOROID_COMPILE_H

#include <stddef.h>

#include "toroid/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ToroidExecutable ToroidExecutable;

typedef struct {
    size_t struct_bytes;  ///< sizeof(ToroidOptions): lets later versions add fields at the end
    int threads;          ///< of each run; 0: as many as this process may use CPUs
} ToroidOptions;

/// Compiles a graph whose outputs are set.
/// @param out      the caller's; free with toroid_executable_destroy(). NULL on failure
/// @param graph    taken over and set to NULL, also on failure
/// @param options  NULL: defaults
/// @return TOROID_UNSUPPORTED with the reason where a node has no kernel
TOROID_API ToroidStatus toroid_compile(ToroidExecutable **out, ToroidGraph **graph,
                                       const ToroidOptions *options);
/// No run may be under way. Accepts NULL and *executable == NULL; sets *executable to NULL.
TOROID_API void toroid_executable_destroy(ToroidExecutable **executable);

TOROID_API int toroid_input_count(const ToroidExecutable *executable);
TOROID_API int toroid_output_count(const ToroidExecutable *executable);

/// A tensor in the caller's memory.
typedef struct {
    void *data;
    ToroidDtype dtype;
    int rank;
    int64_t size[TOROID_MAX_RANK];
    /// Inputs of weights only: a number from toroid_weight_id() that stands for this tensor, and a
    /// counter that the caller raises when its content changes. id 0: computed anew at each run.
    uint64_t id;
    uint64_t version;
} ToroidTensor;

/// A number that no other weight of this process has.
TOROID_API uint64_t toroid_weight_id(void);
/// Frees what was made from a weight. Its number is not used again.
TOROID_API void toroid_weight_forget(uint64_t id);

/// Describes the outputs for inputs of these sizes: type, rank, sizes; `data` of the outputs is not
/// touched, and of the inputs that of weights only.
/// @param inputs   `n_inputs` row-major tensors, in the order of toroid_graph_input(); not written
/// @return TOROID_INVALID with the input's name where a type or size does not fit; TOROID_INVALID
/// or
///         TOROID_INVALID_DATA where open sizes do not fit together, as for 3 columns times 2 rows
TOROID_API ToroidStatus toroid_describe_outputs(ToroidExecutable *executable,
                                                const ToroidTensor *inputs, int n_inputs,
                                                ToroidTensor *outputs, int n_outputs);

/// Runs. `outputs` have the types and sizes that toroid_describe_outputs() tells and memory of the
/// caller's, row-major, that overlaps no input and no other output.
/// @return TOROID_INVALID_INDEX or TOROID_INVALID_DATA for values that an operator refuses
TOROID_API ToroidStatus toroid_run(ToroidExecutable *executable, const ToroidTensor *inputs,
                                   int n_inputs, ToroidTensor *outputs, int n_outputs);

#ifdef __cplusplus
}
#endif
#endif

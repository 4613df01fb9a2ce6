/// Graphs, built call by call with PyTorch's names for operators.
///
/// A graph is functional: a call takes values and gives new ones. Sizes may be left open; they are
/// then read from the inputs at each run. A graph is used by one thread at a time.
#ifndef TOROID_GRAPH_H
#define TOROID_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "toroid/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A graph under construction.
typedef struct ToroidGraph ToroidGraph;
/// A tensor of a graph; lives as long as the graph.
typedef struct ToroidValue ToroidValue;

/// Element types. Numbers are part of the interface.
typedef enum {
    /// torch.bool: a byte that is 0 or 1.
    TOROID_BOOL = 0,
    /// torch.uint8.
    TOROID_UINT8,
    /// torch.int8.
    TOROID_INT8,
    /// torch.int16.
    TOROID_INT16,
    /// torch.int32.
    TOROID_INT32,
    /// torch.int64.
    TOROID_INT64,
    /// torch.float16: IEEE 754 binary16.
    TOROID_FLOAT16,
    /// torch.bfloat16: the upper half of a float32.
    TOROID_BFLOAT16,
    /// torch.float32.
    TOROID_FLOAT32,
    /// torch.float64.
    TOROID_FLOAT64,
} ToroidDtype;

/// Limits.
enum {
    /// The most dims that a tensor has.
    TOROID_MAX_RANK = 12,
};

/// PyTorch's name of a type, without "torch.".
/// @return "float32", "bool", ...; NULL for a wrong number. Never freed
TOROID_API const char *toroid_dtype_name(ToroidDtype dtype);
/// Size of an element.
/// @return bytes: 4 for TOROID_FLOAT32, 1 for TOROID_BOOL; 0 for a wrong number
TOROID_API int toroid_dtype_bytes(ToroidDtype dtype);

/// A size of a tensor: its number where that is known (>= 0), else a handle that
/// toroid_value_size() gave, which may be used for other inputs of the same graph and as an
/// argument of calls.
typedef int64_t ToroidSize;
/// For toroid_graph_input(): any size, read at each run. What operators ask of such sizes is
/// checked then. One that is 1 is not expanded where an operator makes a view (expand, matmul's
/// batches).
#define TOROID_ANY_SIZE ((ToroidSize)-1)

/// Makes an empty graph.
/// @param out  the caller's; free with toroid_graph_destroy() or give to toroid_compile(). NULL on
///             failure
/// @return TOROID_INVALID where `out` is NULL; TOROID_NO_MEMORY
TOROID_API ToroidStatus toroid_graph_create(ToroidGraph **out);
/// Frees a graph and its values.
/// @param graph  may be NULL, and point to NULL; `*graph` is set to NULL
TOROID_API void toroid_graph_destroy(ToroidGraph **graph);

/// Adds an input; runs take inputs in the order in which they were added.
/// @param graph   one whose outputs are not set yet
/// @param name    for messages; copied; may be NULL
/// @param dtype   type of its elements
/// @param rank    dims, 0 to TOROID_MAX_RANK
/// @param sizes   `rank` of them, in elements: known, TOROID_ANY_SIZE, or the size of an earlier
///                input
/// @param weight  its content seldom changes: what depends on weights alone is computed once, and
///                again when ToroidTensor.id or .version changes
/// @param out     the graph's. NULL on failure
/// @return TOROID_INVALID for a wrong type, rank or size, with the input's name; TOROID_NO_MEMORY
TOROID_API ToroidStatus toroid_graph_input(ToroidGraph *graph, const char *name, ToroidDtype dtype,
                                           int rank, const ToroidSize *sizes, bool weight,
                                           ToroidValue **out);

// ---------------------------------------------------------------- calls

/// What an argument of a call is.
typedef enum {
    /// See toroid_none().
    TOROID_ARG_NONE = 0,
    /// See toroid_tensor().
    TOROID_ARG_TENSOR,
    /// See toroid_int().
    TOROID_ARG_INT,
    /// See toroid_size().
    TOROID_ARG_SIZE,
    /// See toroid_float().
    TOROID_ARG_FLOAT,
    /// See toroid_bool().
    TOROID_ARG_BOOL,
    /// See toroid_dtype().
    TOROID_ARG_DTYPE,
    /// See toroid_string().
    TOROID_ARG_STRING,
    /// See toroid_list().
    TOROID_ARG_LIST,
} ToroidArgKind;

/// An argument of a call. The functions below make one of each kind.
typedef struct ToroidArg {
    /// Which member of `value` counts.
    ToroidArgKind kind;
    /// Items of a list.
    int count;
    /// Name of a keyword argument; NULL: positional. Keyword arguments come last.
    const char *name;
    /// The argument itself.
    union {
        /// For TOROID_ARG_TENSOR.
        ToroidValue *tensor;
        /// For TOROID_ARG_INT.
        int64_t integer;
        /// For TOROID_ARG_SIZE.
        ToroidSize size;
        /// For TOROID_ARG_FLOAT.
        double number;
        /// For TOROID_ARG_BOOL.
        bool boolean;
        /// For TOROID_ARG_DTYPE.
        ToroidDtype dtype;
        /// For TOROID_ARG_STRING.
        const char *string;
        /// For TOROID_ARG_LIST: `count` of them.
        const struct ToroidArg *list;
    } value;
} ToroidArg;

/// An argument of a kind, with nothing in it yet; what the functions below begin with.
static inline ToroidArg toroid_arg(ToroidArgKind kind) {
    ToroidArg arg;
    arg.kind = kind, arg.count = 0, arg.name = 0, arg.value.integer = 0;
    return arg;
}
/// Python's None, for an optional argument that is left out.
static inline ToroidArg toroid_none(void) { return toroid_arg(TOROID_ARG_NONE); }
/// A tensor of the graph that the call is made in.
static inline ToroidArg toroid_tensor(ToroidValue *tensor) {
    ToroidArg arg = toroid_arg(TOROID_ARG_TENSOR);
    arg.value.tensor = tensor;
    return arg;
}
/// An integer, for instance a dim; negative dims count from the end as in PyTorch.
static inline ToroidArg toroid_int(int64_t integer) {
    ToroidArg arg = toroid_arg(TOROID_ARG_INT);
    arg.value.integer = integer;
    return arg;
}
/// A size, known or not; see ToroidSize.
static inline ToroidArg toroid_size(ToroidSize size) {
    ToroidArg arg = toroid_arg(TOROID_ARG_SIZE);
    arg.value.size = size;
    return arg;
}
/// A number that PyTorch's schema calls float or Scalar.
static inline ToroidArg toroid_float(double number) {
    ToroidArg arg = toroid_arg(TOROID_ARG_FLOAT);
    arg.value.number = number;
    return arg;
}
/// True or false.
static inline ToroidArg toroid_bool(bool boolean) {
    ToroidArg arg = toroid_arg(TOROID_ARG_BOOL);
    arg.value.boolean = boolean;
    return arg;
}
/// A type, for instance that of a cast.
static inline ToroidArg toroid_dtype(ToroidDtype dtype) {
    ToroidArg arg = toroid_arg(TOROID_ARG_DTYPE);
    arg.value.dtype = dtype;
    return arg;
}
/// A word of PyTorch's, such as the "tanh" of gelu's `approximate`.
/// @param string  borrowed for the call
static inline ToroidArg toroid_string(const char *string) {
    ToroidArg arg = toroid_arg(TOROID_ARG_STRING);
    arg.value.string = string;
    return arg;
}
/// A list, for instance of sizes or of the tensors to join.
/// @param items  `count` of them; borrowed for the call
/// @param count  at least 0
static inline ToroidArg toroid_list(const ToroidArg *items, int count) {
    ToroidArg arg = toroid_arg(TOROID_ARG_LIST);
    arg.value.list = items, arg.count = count;
    return arg;
}
/// The same argument by keyword.
/// @param name  the parameter's in PyTorch's schema; borrowed for the call
/// @param arg   made by another of these functions
static inline ToroidArg toroid_named(const char *name, ToroidArg arg) {
    arg.name = name;
    return arg;
}

/// Calls an operator: "aten.linear.default", "aten.softmax.int", "aten.add.Tensor". Defaults,
/// promotion of types and rules for shapes are PyTorch's.
/// @param graph      one whose outputs are not set yet
/// @param op         name and overload
/// @param args       positional, then keyword arguments; borrowed for the call
/// @param n_args     number of arguments
/// @param results    room for `n_results` tensors, which are the graph's; items that the operator
///                   does not compute are NULL, and all are on failure
/// @param n_results  as many as the operator gives
/// @return TOROID_UNSUPPORTED where no kernel or importer serves the call, which may be because its
///         arguments are wrong; TOROID_INVALID where shapes do not fit or it gives another number
///         of tensors. The graph then means what it did; nodes that nothing uses may be left in it
TOROID_API ToroidStatus toroid_graph_call(ToroidGraph *graph, const char *op, const ToroidArg *args,
                                          int n_args, ToroidValue **results, int n_results);

/// Says what a run returns, in order. Once for a graph; nothing can be added after it.
/// @param graph   one whose outputs are not set yet
/// @param values  `count` of the graph's values; a value may come twice
/// @param count   at least 0
/// @return TOROID_INVALID for a value of another graph or a second time; TOROID_NO_MEMORY
TOROID_API ToroidStatus toroid_graph_outputs(ToroidGraph *graph, ToroidValue *const *values,
                                             int count);

/// Writes the graph as a table for people: a line for each node, with type and sizes.
/// @param graph  with or without outputs
/// @param text   the caller's; free with toroid_text_free()
/// @return TOROID_INVALID where an argument is NULL; TOROID_NO_MEMORY
TOROID_API ToroidStatus toroid_graph_print(const ToroidGraph *graph, char **text);
/// Frees a text that this library gave. Accepts NULL.
TOROID_API void toroid_text_free(char *text);

/// Type of a value's elements.
/// @return TOROID_BOOL where `value` is NULL
TOROID_API ToroidDtype toroid_value_dtype(const ToroidValue *value);
/// Number of a value's dims.
/// @return 0 where `value` is NULL
TOROID_API int toroid_value_rank(const ToroidValue *value);
/// Size of one dim, for use in other inputs and in calls.
/// @param graph  the value's
/// @param value  what toroid_graph_input() or toroid_graph_call() gave
/// @param dim    0 <= dim < rank
/// @param out    elements where they are known, else a handle; see ToroidSize
/// @return TOROID_INVALID for a wrong dim or a value of another graph
TOROID_API ToroidStatus toroid_value_size(const ToroidGraph *graph, const ToroidValue *value,
                                          int dim, ToroidSize *out);

#ifdef __cplusplus
}
#endif
#endif

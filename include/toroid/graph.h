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

typedef struct ToroidGraph ToroidGraph;
/// A tensor of a graph; lives as long as the graph.
typedef struct ToroidValue ToroidValue;

/// Element types. Numbers are part of the interface.
typedef enum {
    TOROID_BOOL = 0,
    TOROID_UINT8,
    TOROID_INT8,
    TOROID_INT16,
    TOROID_INT32,
    TOROID_INT64,
    TOROID_FLOAT16,
    TOROID_BFLOAT16,
    TOROID_FLOAT32,
    TOROID_FLOAT64,
} ToroidDtype;

enum { TOROID_MAX_RANK = 12 };

/// "float32"; NULL for a wrong number.
TOROID_API const char *toroid_dtype_name(ToroidDtype dtype);
/// Bytes of an element; 0 for a wrong number.
TOROID_API int toroid_dtype_bytes(ToroidDtype dtype);

/// A size of a tensor: its number where that is known (>= 0), else a handle that
/// toroid_value_size() gave, which may be used for other inputs of the same graph and as an
/// argument of calls.
typedef int64_t ToroidSize;
/// For toroid_graph_input(): any size, read at each run. What operators ask of such sizes is
/// checked then. One that is 1 is not expanded where an operator makes a view (expand, matmul's
/// batches).
#define TOROID_ANY_SIZE ((ToroidSize)-1)

/// @param out  the caller's; free with toroid_graph_destroy(). NULL on failure
TOROID_API ToroidStatus toroid_graph_create(ToroidGraph **out);
/// Accepts NULL and *graph == NULL; sets *graph to NULL.
TOROID_API void toroid_graph_destroy(ToroidGraph **graph);

/// Adds an input; runs take inputs in the order in which they were added.
/// @param name    for messages; copied; may be NULL
/// @param sizes   `rank` of them: known, TOROID_ANY_SIZE, or the size of an earlier input
/// @param weight  its content seldom changes: what depends on weights alone is computed once, and
///                again when ToroidTensor.id or .version changes
TOROID_API ToroidStatus toroid_graph_input(ToroidGraph *graph, const char *name, ToroidDtype dtype,
                                           int rank, const ToroidSize *sizes, bool weight,
                                           ToroidValue **out);

// ---------------------------------------------------------------- calls

typedef enum {
    TOROID_ARG_NONE = 0,
    TOROID_ARG_TENSOR,
    TOROID_ARG_INT,
    TOROID_ARG_SIZE,
    TOROID_ARG_FLOAT,
    TOROID_ARG_BOOL,
    TOROID_ARG_DTYPE,
    TOROID_ARG_STRING,
    TOROID_ARG_LIST,
} ToroidArgKind;

/// An argument of a call; see the functions below.
typedef struct ToroidArg {
    ToroidArgKind kind;
    int count;         ///< items of a list
    const char *name;  ///< of a keyword argument; NULL: positional. Keyword arguments come last
    union {
        ToroidValue *tensor;
        int64_t integer;
        ToroidSize size;
        double number;
        bool boolean;
        ToroidDtype dtype;
        const char *string;
        const struct ToroidArg *list;
    } value;
} ToroidArg;

static inline ToroidArg toroid_arg(ToroidArgKind kind) {
    ToroidArg arg;
    arg.kind = kind, arg.count = 0, arg.name = 0, arg.value.integer = 0;
    return arg;
}
static inline ToroidArg toroid_none(void) { return toroid_arg(TOROID_ARG_NONE); }
static inline ToroidArg toroid_tensor(ToroidValue *tensor) {
    ToroidArg arg = toroid_arg(TOROID_ARG_TENSOR);
    arg.value.tensor = tensor;
    return arg;
}
static inline ToroidArg toroid_int(int64_t integer) {
    ToroidArg arg = toroid_arg(TOROID_ARG_INT);
    arg.value.integer = integer;
    return arg;
}
static inline ToroidArg toroid_size(ToroidSize size) {
    ToroidArg arg = toroid_arg(TOROID_ARG_SIZE);
    arg.value.size = size;
    return arg;
}
static inline ToroidArg toroid_float(double number) {
    ToroidArg arg = toroid_arg(TOROID_ARG_FLOAT);
    arg.value.number = number;
    return arg;
}
static inline ToroidArg toroid_bool(bool boolean) {
    ToroidArg arg = toroid_arg(TOROID_ARG_BOOL);
    arg.value.boolean = boolean;
    return arg;
}
static inline ToroidArg toroid_dtype(ToroidDtype dtype) {
    ToroidArg arg = toroid_arg(TOROID_ARG_DTYPE);
    arg.value.dtype = dtype;
    return arg;
}
static inline ToroidArg toroid_string(const char *string) {
    ToroidArg arg = toroid_arg(TOROID_ARG_STRING);
    arg.value.string = string;
    return arg;
}
static inline ToroidArg toroid_list(const ToroidArg *items, int count) {
    ToroidArg arg = toroid_arg(TOROID_ARG_LIST);
    arg.value.list = items, arg.count = count;
    return arg;
}
/// `arg` by keyword.
static inline ToroidArg toroid_named(const char *name, ToroidArg arg) {
    arg.name = name;
    return arg;
}

/// Calls an operator: "aten.linear.default", "aten.softmax.int", "aten.add.Tensor". Defaults,
/// promotion of types and rules for shapes are PyTorch's.
/// @param args     positional, then keyword arguments; borrowed for the call
/// @param results  room for `n_results` tensors; items that the operator does not compute are NULL
/// @return TOROID_UNSUPPORTED where no kernel or importer serves the call, which may be because its
///         arguments are wrong; TOROID_INVALID where shapes do not fit or it gives another number
///         of tensors. The graph then means what it did; nodes that nothing uses may be left in it
TOROID_API ToroidStatus toroid_graph_call(ToroidGraph *graph, const char *op, const ToroidArg *args,
                                          int n_args, ToroidValue **results, int n_results);

/// Says what a run returns, in order. Once for a graph.
TOROID_API ToroidStatus toroid_graph_outputs(ToroidGraph *graph, ToroidValue *const *values,
                                             int count);

/// A table for people.
/// @param text  free with toroid_text_free()
TOROID_API ToroidStatus toroid_graph_print(const ToroidGraph *graph, char **text);
TOROID_API void toroid_text_free(char *text);

/// Of a value that a function of this header gave; NULL gives TOROID_BOOL and 0.
TOROID_API ToroidDtype toroid_value_dtype(const ToroidValue *value);
TOROID_API int toroid_value_rank(const ToroidValue *value);
/// @param dim  0 <= dim < rank
TOROID_API ToroidStatus toroid_value_size(const ToroidGraph *graph, const ToroidValue *value,
                                          int dim, ToroidSize *out);

#ifdef __cplusplus
}
#endif
#endif

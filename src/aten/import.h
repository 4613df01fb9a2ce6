/// The importer: one ATen call (name and arguments) to nodes of the IR.
///
/// FX lowering and the .pt2 reader both call tor_aten_call() once for each node of theirs. The
/// meaning is eager's to the letter: defaults, dtype promotion, shape rules. Names are PyTorch's
/// ("aten.addmm.default"), and those of FX's integer arithmetic ("_operator.mul", "math.floor",
/// "torch.sym_max", "aten.sym_size.int"). `_operator.getitem` is the caller's: it picks an item of
/// a LIST result.
///
/// Three kinds of result need the caller's care:
/// - A LIST item of kind NONE is an output that Toroid does not compute (the logsumexp of
/// attention,
///   the saved statistics of batch norm in evaluation): refuse the graph, or run the call outside,
///   if that item is used. A result of kind NONE alone belongs to a call without one (assertions).
/// - An op that writes its first argument (`aten.copy_.default`, `aten.index_put_.default`) gives
/// the
///   value that the argument has afterwards, in the argument's type and shape. If that argument is
///   a graph input, record that this value goes into it (tor_graph_set_outputs), and use this value
///   for all later reads.
/// - An alias (`aten.alias`, `aten.view` to the same shape, …) may give the very value it was
/// given.
#ifndef TOR_ATEN_IMPORT_H
#define TOR_ATEN_IMPORT_H

#include "graph/graph.h"

typedef enum {
    TOR_ARG_NONE,
    TOR_ARG_INT,
    TOR_ARG_DIM,  ///< an integer that may be symbolic
    TOR_ARG_FLOAT,
    TOR_ARG_BOOL,
    TOR_ARG_DTYPE,
    TOR_ARG_STR,  ///< also layouts, devices and memory formats, as PyTorch prints them
    TOR_ARG_VALUE,
    TOR_ARG_LIST,
} TorArgKind;

typedef struct TorArg {
    TorArgKind kind;
    int count;  ///< items of a LIST
    union {
        int64_t i;
        TorDim dim;
        double f;
        bool b;
        TorDtype dtype;
        const char *str;
        TorValue *value;
        const struct TorArg *list;
    };
} TorArg;

#define TOR_ARG_OF_NONE ((TorArg){.kind = TOR_ARG_NONE})
#define TOR_ARG_OF_INT(v) ((TorArg){.kind = TOR_ARG_INT, .i = (v)})
#define TOR_ARG_OF_DIM(v) ((TorArg){.kind = TOR_ARG_DIM, .dim = (v)})
#define TOR_ARG_OF_FLOAT(v) ((TorArg){.kind = TOR_ARG_FLOAT, .f = (v)})
#define TOR_ARG_OF_BOOL(v) ((TorArg){.kind = TOR_ARG_BOOL, .b = (v)})
#define TOR_ARG_OF_DTYPE(v) ((TorArg){.kind = TOR_ARG_DTYPE, .dtype = (v)})
#define TOR_ARG_OF_STR(v) ((TorArg){.kind = TOR_ARG_STR, .str = (v)})
#define TOR_ARG_OF_VALUE(v) ((TorArg){.kind = TOR_ARG_VALUE, .value = (v)})
#define TOR_ARG_OF_LIST(v, n) ((TorArg){.kind = TOR_ARG_LIST, .list = (v), .count = (n)})

/// Adds the nodes of one call at the end of the graph.
/// @param args      positional arguments; kw_names and kw_args the keyword ones. Missing ones take
///                  their defaults. Borrowed for the call.
/// @param origin    the frontend's name for its node, for messages; may be NULL; copied
/// @param result    one argument: VALUE, INT, DIM, FLOAT or BOOL, LIST for tuples and lists of
/// tensors
///                  (in the graph's arena), NONE. A known integer comes as INT, never as DIM.
/// @return TOROID_UNSUPPORTED for a name that tor_aten_knows() denies and for arguments that the
///         importer cannot serve; the message names op, argument and what was expected. The graph
///         may then hold dead nodes more, and nothing else.
ToroidStatus tor_aten_call(TorGraph *g, const char *name, const TorArg *args, int n_args,
                           const char *const *kw_names, const TorArg *kw_args, int n_kw,
                           const char *origin, TorArg *result);

/// True if the importer has a row for `name`; used to choose decompositions.
bool tor_aten_knows(const char *name);

/// For tests and docs: names and schema texts in alphabetical order, NULL from tor_aten_count() on.
int tor_aten_count(void);
const char *tor_aten_name(int index, const char **schema);

#endif

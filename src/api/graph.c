// Graphs by call, for C: a thin layer over the IR and the importer that trusts nothing it is given.
#include <stdatomic.h>
#include <string.h>

#include "api/internal.h"
#include "backend/import.h"

// The numbers of types are part of the interface, so they are written out.
static const TorDtype dtypes[] = {
    [TOROID_BOOL] = TOR_bool,       [TOROID_UINT8] = TOR_uint8,
    [TOROID_INT8] = TOR_int8,       [TOROID_INT16] = TOR_int16,
    [TOROID_INT32] = TOR_int32,     [TOROID_INT64] = TOR_int64,
    [TOROID_FLOAT16] = TOR_float16, [TOROID_BFLOAT16] = TOR_bfloat16,
    [TOROID_FLOAT32] = TOR_float32, [TOROID_FLOAT64] = TOR_float64,
};
_Static_assert(TOROID_MAX_RANK == TOR_MAX_RANK, "the public limit is the IR's");

static bool is_dtype(ToroidDtype dtype) { return (size_t)dtype < TOR_COUNT_OF(dtypes); }

ToroidStatus tor_api_dtype(TorDtype *out, ToroidDtype dtype) {
    if (!is_dtype(dtype)) return tor_invalid("%d is no ToroidDtype", (int)dtype);
    *out = dtypes[dtype];
    return TOROID_OK;
}

ToroidDtype tor_api_public_dtype(TorDtype dtype) {
    for (size_t i = 0; i < TOR_COUNT_OF(dtypes); i++)
        if (dtypes[i] == dtype) return (ToroidDtype)i;
    return TOROID_BOOL;  // not reached: every type has a number
}

const char *toroid_dtype_name(ToroidDtype dtype) {
    return is_dtype(dtype) ? tor_dtype_name(dtypes[dtype]) : NULL;
}
int toroid_dtype_bytes(ToroidDtype dtype) {
    return is_dtype(dtype) ? (int)tor_dtype_size(dtypes[dtype]) : 0;
}

// ---------------------------------------------------------------- graphs

uint64_t tor_api_new_number(void) {
    static atomic_uint_fast64_t numbers;
    return atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed) + 1;
}

ToroidStatus toroid_graph_create(ToroidGraph **out) {
    if (!out) return tor_invalid("toroid_graph_create: out is NULL");
    *out = NULL;
    ToroidGraph *graph = tor_alloc_zero(sizeof *graph);
    if (!graph) return tor_no_memory();
    ToroidStatus status = tor_graph_create(&graph->g);
    graph->number = tor_api_new_number();
    graph->options = (TorOptions){.freeze = true, .precision = "f32"};
    if (status == TOROID_OK)
        graph->g->unguarded = true;
    else
        toroid_graph_destroy(&graph);
    *out = graph;
    return status;
}

ToroidStatus tor_api_clone(ToroidGraph **out, const ToroidGraph *from) {
    ToroidGraph *graph = tor_alloc_zero(sizeof *graph);
    if (!graph) return tor_no_memory();
    graph->finished = from->finished;
    graph->number = from->number;
    graph->options = from->options;
    ToroidStatus status = tor_graph_clone(&graph->g, from->g);
    if (status != TOROID_OK) toroid_graph_destroy(&graph);
    *out = graph;
    return status;
}

void toroid_graph_destroy(ToroidGraph **graph) {
    if (!graph || !*graph) return;
    tor_graph_destroy(&(*graph)->g);
    tor_free((*graph)->known);
    tor_free((*graph)->nodes);
    tor_free(*graph);
    *graph = NULL;
}

static ToroidStatus open_graph(const ToroidGraph *graph, const char *function) {
    if (!graph) return tor_invalid("%s: the graph is NULL", function);
    if (graph->finished) return tor_invalid("%s: the outputs of the graph are set", function);
    return TOROID_OK;
}

static ToroidStatus give(ToroidGraph *graph, TorValue *value, ToroidValue **out) {
    size_t before = graph->known_capacity;
    TOR_TRY(tor_grow((void **)&graph->known, &graph->known_capacity, value->id + 1,
                     sizeof *graph->known));
    memset(graph->known + before, 0, (graph->known_capacity - before) * sizeof *graph->known);
    graph->known[value->id] = value;
    *out = (ToroidValue *)value;
    return TOROID_OK;
}

ToroidStatus tor_api_give_all(ToroidGraph *graph, const TorNode *node) {
    ToroidValue *given;
    for (int i = 0; i < node->n_outputs; i++) TOR_TRY(give(graph, node->outputs[i], &given));
    return TOROID_OK;
}

ToroidStatus tor_api_take(const ToroidGraph *graph, const ToroidValue *given, TorValue **out) {
    TorValue *value = (TorValue *)(uintptr_t)given;
    if (!value) return tor_invalid("expected a value, got NULL");
    if (value->id >= graph->known_capacity || graph->known[value->id] != value)
        return tor_invalid(graph->visited ? "a value of another graph or of a later node"
                                          : "a value of another graph");
    *out = value;
    return TOROID_OK;
}

// ---------------------------------------------------------------- sizes

// Handles of sizes that are not known are -2 - number.
ToroidSize tor_api_size(const TorGraph *g, TorDim dim) {
    int64_t known;
    return tor_int_known(g, dim, &known) ? known : -2 - (ToroidSize)dim;
}

static ToroidStatus take_size(TorGraph *g, ToroidSize size, TorDim *out) {
    if (size >= 0) {
        *out = tor_int_const(g, size);
        return g->failed;
    }
    if (size > -2 || (uint64_t)(-2 - size) >= tor_int_count(g))
        return tor_invalid("%" PRId64 " is no size", size);
    *out = (TorDim)(-2 - size);
    return TOROID_OK;
}

ToroidDtype toroid_value_dtype(const ToroidValue *value) {
    return value ? tor_api_public_dtype(((const TorValue *)value)->dtype) : TOROID_BOOL;
}
int toroid_value_rank(const ToroidValue *value) {
    return value ? ((const TorValue *)value)->rank : 0;
}

ToroidStatus toroid_value_size(const ToroidGraph *graph, const ToroidValue *value, int dim,
                               ToroidSize *out) {
    if (!graph || !out) return tor_invalid("toroid_value_size: an argument is NULL");
    TorValue *v = NULL;
    TOR_TRY(tor_api_take(graph, value, &v));
    if (dim < 0 || dim >= v->rank)
        return tor_invalid("dim %d of a tensor of rank %d", dim, v->rank);
    *out = tor_api_size(graph->g, v->dim[dim]);
    return TOROID_OK;
}

// ---------------------------------------------------------------- inputs and outputs

static ToroidStatus add_input(ToroidGraph *graph, const char *name, ToroidDtype dtype, int rank,
                              const ToroidSize *sizes, bool weight, ToroidValue **out) {
    TorGraph *g = graph->g;
    TorDtype type = TOR_bool;
    TOR_TRY(tor_api_dtype(&type, dtype));
    if (rank < 0 || rank > TOR_MAX_RANK)
        return tor_invalid("rank %d: at most %d dims", rank, TOR_MAX_RANK);
    if (rank && !sizes) return tor_invalid("sizes is NULL");
    TorDim dims[TOR_MAX_RANK];
    int64_t bytes = (int64_t)tor_dtype_size(type);
    for (int d = 0; d < rank; d++) {
        if (sizes[d] == TOROID_ANY_SIZE)
            dims[d] = tor_int_size(g, g->n_inputs, (uint32_t)d);
        else
            TOR_TRY(take_size(g, sizes[d], &dims[d]));
        if (sizes[d] > 0 && __builtin_mul_overflow(bytes, sizes[d], &bytes))
            return tor_invalid("the tensor is larger than memory can be");
    }
    TOR_TRY(g->failed);
    TorValue *value = NULL;
    TOR_TRY(tor_graph_add_input(g, name, type, rank, dims, weight, &value));
    g->inputs[g->n_inputs - 1].contiguous = true;
    return give(graph, value, out);
}

ToroidStatus toroid_graph_input(ToroidGraph *graph, const char *name, ToroidDtype dtype, int rank,
                                const ToroidSize *sizes, bool weight, ToroidValue **out) {
    if (!out) return tor_invalid("toroid_graph_input: out is NULL");
    *out = NULL;
    TOR_TRY(open_graph(graph, "toroid_graph_input"));
    ToroidStatus status = add_input(graph, name, dtype, rank, sizes, weight, out);
    return status == TOROID_OK ? status
                               : tor_error_prefix(status, "input %s", name ? name : "(no name)");
}

static ToroidStatus set_outputs(ToroidGraph *graph, ToroidValue *const *values, int count) {
    TorValue **kept = tor_arena_alloc(graph->g->arena, (size_t)count * sizeof *kept + 1);
    int64_t *into = tor_arena_alloc(graph->g->arena, (size_t)count * sizeof *into + 1);
    if (!kept || !into) return tor_no_memory();
    for (int i = 0; i < count; i++) {
        ToroidStatus status = tor_api_take(graph, values[i], &kept[i]);
        if (status != TOROID_OK) return tor_error_prefix(status, "output %d", i);
    }
    for (int i = 0; i < count; i++) {
        // The caller's memory is its own: never an input's, nor another output's.
        TorNode *copy;
        TOR_TRY(tor_graph_add(graph->g, NULL, TOR_OP_contiguous, &kept[i], 1, NULL, 0, 1, &copy));
        kept[i] = copy->outputs[0];
        into[i] = -1;
    }
    return tor_graph_set_outputs(graph->g, kept, into, count);
}

ToroidStatus toroid_graph_outputs(ToroidGraph *graph, ToroidValue *const *values, int count) {
    TOR_TRY(open_graph(graph, "toroid_graph_outputs"));
    if (count < 0 || (count && !values))
        return tor_invalid("toroid_graph_outputs: expected a list of values");
    TOR_TRY(set_outputs(graph, values, count));
    graph->finished = true;
    return TOROID_OK;
}

// ---------------------------------------------------------------- calls

enum { MAX_DEPTH = 8 };  // lists in lists

static ToroidStatus take_arg(ToroidGraph *graph, const ToroidArg *arg, int depth, TorArg *out);

static ToroidStatus take_list(ToroidGraph *graph, const ToroidArg *arg, int depth, TorArg *out) {
    if (depth == MAX_DEPTH) return tor_invalid("lists in lists, too deep");
    if (arg->count < 0 || (arg->count && !arg->value.list))
        return tor_invalid("a list without items");
    TorArg *items = tor_arena_alloc(graph->g->arena, (size_t)arg->count * sizeof *items + 1);
    if (!items) return tor_no_memory();
    for (int i = 0; i < arg->count; i++)
        TOR_TRY(take_arg(graph, &arg->value.list[i], depth + 1, &items[i]));
    *out = TOR_ARG_OF_LIST(items, arg->count);
    return TOROID_OK;
}

static ToroidStatus take_arg(ToroidGraph *graph, const ToroidArg *arg, int depth, TorArg *out) {
    switch (arg->kind) {
        case TOROID_ARG_NONE: *out = TOR_ARG_OF_NONE; return TOROID_OK;
        case TOROID_ARG_TENSOR:
            *out = (TorArg){.kind = TOR_ARG_VALUE};
            return tor_api_take(graph, arg->value.tensor, &out->value);
        case TOROID_ARG_INT: *out = TOR_ARG_OF_INT(arg->value.integer); return TOROID_OK;
        case TOROID_ARG_SIZE:
            if (arg->value.size >= 0) {
                *out = TOR_ARG_OF_INT(arg->value.size);
                return TOROID_OK;
            }
            *out = (TorArg){.kind = TOR_ARG_DIM};
            return take_size(graph->g, arg->value.size, &out->dim);
        case TOROID_ARG_FLOAT: *out = TOR_ARG_OF_FLOAT(arg->value.number); return TOROID_OK;
        case TOROID_ARG_BOOL: *out = TOR_ARG_OF_BOOL(arg->value.boolean); return TOROID_OK;
        case TOROID_ARG_DTYPE:
            *out = (TorArg){.kind = TOR_ARG_DTYPE};
            return tor_api_dtype(&out->dtype, arg->value.dtype);
        case TOROID_ARG_STRING:
            if (!arg->value.string) return tor_invalid("a string that is NULL");
            *out = TOR_ARG_OF_STR(arg->value.string);
            return TOROID_OK;
        case TOROID_ARG_LIST: return take_list(graph, arg, depth, out);
        default: return tor_invalid("%d is no ToroidArgKind", (int)arg->kind);
    }
}

static ToroidStatus give_results(ToroidGraph *graph, const TorArg *result, ToroidValue **results,
                                 int n_results) {
    const TorArg *items = result->kind == TOR_ARG_LIST ? result->list : result;
    int count = result->kind == TOR_ARG_LIST ? result->count : result->kind == TOR_ARG_NONE ? 0 : 1;
    if (count != n_results)
        return tor_invalid("gives %d results, room for %d was passed", count, n_results);
    for (int i = 0; i < count; i++) {
        if (items[i].kind == TOR_ARG_NONE) continue;
        if (items[i].kind != TOR_ARG_VALUE)
            return tor_refuse("result %d is a number and no tensor", i);
        TOR_TRY(give(graph, items[i].value, &results[i]));
    }
    return TOROID_OK;
}

static ToroidStatus call(ToroidGraph *graph, const char *op, const ToroidArg *args, int n_args,
                         ToroidValue **results, int n_results) {
    TorArena *arena = graph->g->arena;
    TorArg *taken = tor_arena_alloc(arena, (size_t)n_args * sizeof *taken + 1);
    const char **names = tor_arena_alloc(arena, (size_t)n_args * sizeof *names + 1);
    if (!taken || !names) return tor_no_memory();
    int positional = 0;
    for (int i = 0; i < n_args; i++) {
        ToroidStatus status = take_arg(graph, &args[i], 0, &taken[i]);
        if (status != TOROID_OK) return tor_error_prefix(status, "argument %d", i);
        if (args[i].name)
            names[i - positional] = args[i].name;
        else if (i != positional++)
            return tor_invalid("argument %d is positional and follows one by keyword", i);
    }
    TorArg result;
    TOR_TRY(tor_backend_import(graph->g, op, taken, positional, names, taken + positional,
                               n_args - positional, op, &result));
    return give_results(graph, &result, results, n_results);
}

ToroidStatus toroid_graph_call(ToroidGraph *graph, const char *op, const ToroidArg *args,
                               int n_args, ToroidValue **results, int n_results) {
    if (n_results < 0 || (n_results && !results))
        return tor_invalid("toroid_graph_call: expected room for results");
    for (int i = 0; i < n_results; i++) results[i] = NULL;
    if (!graph || !graph->visited) TOR_TRY(open_graph(graph, "toroid_graph_call"));
    if (!op) return tor_invalid("toroid_graph_call: op is NULL");
    if (n_args < 0 || (n_args && !args)) return tor_invalid("%s: expected arguments", op);
    if (!tor_aten_knows(op)) return tor_refuse("%s: no operator of this name is known", op);
    ToroidStatus status = call(graph, op, args, n_args, results, n_results);
    if (status == TOROID_OK) return status;
    for (int i = 0; i < n_results; i++) results[i] = NULL;
    return strncmp(toroid_last_error(), op, strlen(op)) == 0 ? status
                                                             : tor_error_prefix(status, "%s", op);
}

// ---------------------------------------------------------------- text

ToroidStatus toroid_graph_print(const ToroidGraph *graph, char **text) {
    if (!graph || !text) return tor_invalid("toroid_graph_print: an argument is NULL");
    return tor_graph_print(graph->g, text);
}
void toroid_text_free(char *text) { tor_free(text); }

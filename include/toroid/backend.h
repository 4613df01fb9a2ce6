/// Backends: compilers of graphs that are found by their names, in this process or in plugins.
///
/// All functions here may be called by any thread at any time.
#ifndef TOROID_BACKEND_H
#define TOROID_BACKEND_H

#include "toroid/compile.h"
#include "toroid/rewrite.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Raised when something here changes its meaning; new fields at the end of a struct do not.
#define TOROID_BACKEND_ABI 1

struct ToroidHost;

/// A way to compile graphs.
typedef struct ToroidBackend {
    size_t struct_bytes;  ///< sizeof(ToroidBackend): fields beyond it are taken for 0
    int abi;              ///< TOROID_BACKEND_ABI
    const char *name;     ///< letters, digits, '_', '-' and '.'; at most 63
    /// Compiles a graph whose outputs are set, as toroid_compile() does; it may end there after
    /// looking at the graph and changing options. Any thread, several at once.
    /// @param out      an executable of this graph, or of one with inputs and outputs of the same
    ///                 types
    /// @param graph    taken over, also on failure
    /// @param options  the caller's; may be NULL
    /// @return TOROID_UNSUPPORTED for a refusal, after which the caller tries the next way. Set the
    ///         reason with host->set_error()
    ToroidStatus (*compile)(const struct ToroidHost *host, void *user, ToroidExecutable **out,
                            ToroidGraph **graph, const ToroidOptions *options);
    // What follows may be 0.
    const char *const *tags;  ///< ends in NULL; "debug" and "experimental" are not listed
    /// Called each time the backend is resolved, so that a wrong set-up is noticed before anything
    /// is compiled. Calling it again must do no harm.
    ToroidStatus (*init)(const struct ToroidHost *host, void *user);
    void *user;  ///< passed on to the functions
} ToroidBackend;

/// Adds a backend until the process ends. Name and tags are copied.
/// @return TOROID_INVALID for a name that is taken, or a struct that is not what was expected
TOROID_API ToroidStatus toroid_backend_register(const ToroidBackend *backend);

/// Finds a backend, loads it where it is a plugin not used so far, and calls its init hook.
/// @param out  the library's, until the process ends. NULL on failure
/// @return TOROID_INVALID for a name that is not known, with the closest ones, and for a plugin
///         that is refused, with the reason; what the hook returned where that fails
TOROID_API ToroidStatus toroid_backend_resolve(const ToroidBackend **out, const char *name);

/// Several backends as one: each graph goes to the first, and to the next where that refuses it or
/// fails. Resolves them all; its init hook calls theirs.
/// @param out  the library's, until the process ends; the same names give the same. NULL on failure
/// @return what toroid_backend_resolve() says of the first name that is not to be had
TOROID_API ToroidStatus toroid_backend_compose(const ToroidBackend **out, const char *const *names,
                                               int count);

/// Calls the init hook of a backend that toroid_backend_resolve() or toroid_backend_compose() gave.
TOROID_API ToroidStatus toroid_backend_init(const ToroidBackend *backend);

/// Compiles by a backend that toroid_backend_resolve() or toroid_backend_compose() gave, and checks
/// what it made. Otherwise like toroid_compile().
TOROID_API ToroidStatus toroid_backend_compile(const ToroidBackend *backend, ToroidExecutable **out,
                                               ToroidGraph **graph, const ToroidOptions *options);

/// Name of the backend that compiled; "toroid" where none was asked for. Of a composition, the
/// member that took the graph.
TOROID_API const char *toroid_executable_backend(const ToroidExecutable *executable);

/// Names in order, those of plugins included; loads nothing. Tags of a plugin are not known before
/// it is loaded.
/// @param exclude_tags  ends in NULL; NULL: {"debug", "experimental", NULL}
/// @param names         ends in NULL; free with toroid_names_free()
TOROID_API ToroidStatus toroid_backend_list(const char *const *exclude_tags, char ***names);
/// Accepts NULL.
TOROID_API void toroid_names_free(char **names);

/// Sets the message of toroid_last_error() and returns `status`.
TOROID_API ToroidStatus toroid_set_error(ToroidStatus status, const char *message);

// ---------------------------------------------------------------- plugins

/// A plugin is a shared object toroid_backend_<name>.so in one of the folders of
/// TOROID_BACKEND_PATH, which are absolute paths with ':' between them. It has one symbol,
/// `TOROID_API const ToroidBackend toroid_backend = {sizeof(ToroidBackend), ...};`
/// It need not link the library: what it may call comes as ToroidHost. (In a Python process the
/// library is inside the extension module, and a second one would have tables of its own.)
/// Folder and file must belong to root or the user, and nobody else may write them.
#define TOROID_BACKEND_SYMBOL "toroid_backend"

/// The library, for backends. The functions are those of the headers.
typedef struct ToroidHost {
    size_t struct_bytes;  ///< how much of this the library has
    int abi;
    ToroidStatus (*set_error)(ToroidStatus status, const char *message);
    const char *(*last_error)(void);
    const char *(*status_name)(ToroidStatus status);

    ToroidStatus (*compile)(ToroidExecutable **out, ToroidGraph **graph,
                            const ToroidOptions *options);
    void (*executable_destroy)(ToroidExecutable **executable);
    int (*input_count)(const ToroidExecutable *executable);
    int (*output_count)(const ToroidExecutable *executable);

    ToroidStatus (*backend_resolve)(const ToroidBackend **out, const char *name);
    ToroidStatus (*backend_compile)(const ToroidBackend *backend, ToroidExecutable **out,
                                    ToroidGraph **graph, const ToroidOptions *options);

    ToroidStatus (*graph_create)(ToroidGraph **out);
    void (*graph_destroy)(ToroidGraph **graph);
    ToroidStatus (*graph_input)(ToroidGraph *graph, const char *name, ToroidDtype dtype, int rank,
                                const ToroidSize *sizes, bool weight, ToroidValue **out);
    ToroidStatus (*graph_call)(ToroidGraph *graph, const char *op, const ToroidArg *args,
                               int n_args, ToroidValue **results, int n_results);
    ToroidStatus (*graph_outputs)(ToroidGraph *graph, ToroidValue *const *values, int count);
    ToroidStatus (*graph_print)(const ToroidGraph *graph, char **text);
    void (*text_free)(char *text);
    ToroidDtype (*value_dtype)(const ToroidValue *value);
    int (*value_rank)(const ToroidValue *value);
    ToroidStatus (*value_size)(const ToroidGraph *graph, const ToroidValue *value, int dim,
                               ToroidSize *out);

    // See toroid/rewrite.h. A backend that uses these asks for
    // struct_bytes >= sizeof(ToroidHost).
    ToroidStatus (*graph_nodes)(ToroidGraph *graph, ToroidNode *const **nodes, int *count);
    const char *(*node_op)(const ToroidNode *node);
    int (*node_input_count)(const ToroidNode *node);
    ToroidValue *(*node_input)(const ToroidNode *node, int number);
    int (*node_output_count)(const ToroidNode *node);
    ToroidValue *(*node_output)(const ToroidNode *node, int number);
    ToroidStatus (*node_attributes)(ToroidGraph *graph, const ToroidNode *node,
                                    const ToroidArg **attributes, int *count);
    ToroidNode *(*value_node)(const ToroidValue *value);
    int (*value_use_count)(const ToroidValue *value);
    ToroidStatus (*graph_rewrite)(ToroidGraph *graph, ToroidRewriteFn rewrite, void *user);
    ToroidStatus (*graph_replace)(ToroidGraph *graph, ToroidValue *old, ToroidValue *with);
} ToroidHost;

#ifdef __cplusplus
}
#endif
#endif

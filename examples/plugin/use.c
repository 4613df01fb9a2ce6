/* Lists the backends and compiles relu by one of them: ./use [name] */
#include <stdio.h>

#include "toroid/backend.h"

#define TRY(call)                                         \
    do {                                                  \
        if ((call) != TOROID_OK) {                        \
            fprintf(stderr, "%s\n", toroid_last_error()); \
            return 1;                                     \
        }                                                 \
    } while (0)

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "printing";
    const ToroidSize size = 4;
    const ToroidBackend *backend;
    ToroidExecutable *executable;
    ToroidGraph *graph;
    ToroidValue *x, *y;
    ToroidArg arg;
    ToroidTensor in = {0}, out;
    float data[] = {-1, 2, -3, 4}, result[4];
    char **names;
    int i;

    TRY(toroid_backend_list(NULL, &names));
    for (i = 0; names[i]; i++) printf("%s%s", names[i], names[i + 1] ? " " : "\n");
    toroid_names_free(names);

    TRY(toroid_backend_resolve(&backend, name));
    TRY(toroid_graph_create(&graph));
    TRY(toroid_graph_input(graph, "x", TOROID_FLOAT32, 1, &size, false, &x));
    arg = toroid_tensor(x);
    TRY(toroid_graph_call(graph, "aten.relu.default", &arg, 1, &y, 1));
    TRY(toroid_graph_outputs(graph, &y, 1));
    TRY(toroid_backend_compile(backend, &executable, &graph, NULL));

    in.data = data, in.dtype = TOROID_FLOAT32, in.rank = 1, in.size[0] = size;
    out = in;
    out.data = result;
    TRY(toroid_run(executable, &in, 1, &out, 1));
    printf("%s: %g %g %g %g\n", toroid_executable_backend(executable), result[0], result[1],
           result[2], result[3]);
    toroid_executable_destroy(&executable);
    return 0;
}

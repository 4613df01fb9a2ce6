/* A classifier of two layers, built by calls and run for batches of any size.
 *
 *     cc mlp.c $(pkg-config --cflags --libs toroid) -o mlp && ./mlp
 */
#include <stdio.h>
#include <stdlib.h>

#include "toroid/compile.h"

enum { FEATURES = 64, HIDDEN = 256, CLASSES = 10 };

static void check(ToroidStatus status) {
    if (status == TOROID_OK) return;
    fprintf(stderr, "%s: %s\n", toroid_status_name(status), toroid_last_error());
    exit(1);
}

static float *numbers(size_t count, float scale) {
    float *data = malloc(count * sizeof *data);
    if (!data) exit(1);
    for (size_t i = 0; i < count; i++) data[i] = scale * ((float)(i * 37 % 101) / 50.0f - 1.0f);
    return data;
}

static ToroidValue *weight(ToroidGraph *graph, const char *name, int rows, int columns) {
    ToroidSize sizes[2];
    ToroidValue *value;
    sizes[0] = rows, sizes[1] = columns;
    check(toroid_graph_input(graph, name, TOROID_FLOAT32, 2, sizes, true, &value));
    return value;
}

/* softmax(relu(x w1^T) w2^T): inputs x, w1, w2. */
static ToroidGraph *build(void) {
    ToroidGraph *graph;
    ToroidValue *x, *w1, *w2, *y;
    const ToroidSize any_batch[2] = {TOROID_ANY_SIZE, FEATURES};
    check(toroid_graph_create(&graph));
    check(toroid_graph_input(graph, "x", TOROID_FLOAT32, 2, any_batch, false, &x));
    w1 = weight(graph, "w1", HIDDEN, FEATURES);
    w2 = weight(graph, "w2", CLASSES, HIDDEN);
    {
        ToroidArg args[2] = {toroid_tensor(x), toroid_tensor(w1)};
        check(toroid_graph_call(graph, "aten.linear.default", args, 2, &y, 1));
    }
    {
        ToroidArg args[1] = {toroid_tensor(y)};
        check(toroid_graph_call(graph, "aten.relu.default", args, 1, &y, 1));
    }
    {
        ToroidArg args[2] = {toroid_tensor(y), toroid_tensor(w2)};
        check(toroid_graph_call(graph, "aten.linear.default", args, 2, &y, 1));
    }
    {
        ToroidArg args[3] = {toroid_tensor(y), toroid_int(-1), toroid_bool(false)};
        check(toroid_graph_call(graph, "aten._softmax.default", args, 3, &y, 1));
    }
    check(toroid_graph_outputs(graph, &y, 1));
    return graph;
}

static ToroidTensor matrix(float *data, int rows, int columns, uint64_t id) {
    ToroidTensor t = {0};
    t.data = data, t.dtype = TOROID_FLOAT32, t.rank = 2;
    t.size[0] = rows, t.size[1] = columns, t.id = id;
    return t;
}

int main(void) {
    ToroidGraph *graph = build();
    ToroidExecutable *executable;
    char *table;
    float *w1 = numbers(HIDDEN * FEATURES, 0.1f), *w2 = numbers(CLASSES * HIDDEN, 0.1f);
    uint64_t id1 = toroid_weight_id(), id2 = toroid_weight_id();
    int batch;

    check(toroid_graph_print(graph, &table));
    printf("%s\n", table);
    toroid_text_free(table);
    check(toroid_compile(&executable, &graph, NULL));

    for (batch = 1; batch <= 100; batch *= 10) {
        float *x = numbers((size_t)batch * FEATURES, 1), *y, sum = 0;
        ToroidTensor inputs[3], output;
        int i;
        inputs[0] = matrix(x, batch, FEATURES, 0);
        inputs[1] = matrix(w1, HIDDEN, FEATURES, id1);
        inputs[2] = matrix(w2, CLASSES, HIDDEN, id2);
        check(toroid_describe_outputs(executable, inputs, 3, &output, 1));
        y = malloc((size_t)(output.size[0] * output.size[1]) * sizeof *y);
        if (!y) return 1;
        output.data = y;
        check(toroid_run(executable, inputs, 3, &output, 1));
        for (i = 0; i < CLASSES; i++) sum += y[i];
        printf("batch %3d: [%d, %d], the first row adds up to %.3f\n", batch, (int)output.size[0],
               (int)output.size[1], sum);
        free(x), free(y);
    }

    toroid_weight_forget(id1), toroid_weight_forget(id2);
    toroid_executable_destroy(&executable);
    free(w1), free(w2);
    return 0;
}

// Nodes of a graph through the public interface: looking at them, and putting others in their
// place.
#include "support.h"

#include "base/alloc.h"
#include "toroid/backend.h"

enum { ROWS = 2, COLUMNS = 3 };

static ToroidValue *call(ToroidGraph *g, const char *op, const ToroidArg *args, int n) {
    ToroidValue *y;
    OK(toroid_graph_call(g, op, args, n, &y, 1));
    return y;
}
static ToroidValue *unary(ToroidGraph *g, const char *op, ToroidValue *x) {
    ToroidArg arg = toroid_tensor(x);
    return call(g, op, &arg, 1);
}

/// log(softmax(x, 1)), whose rows may be open.
static ToroidGraph *log_of_softmax(ToroidSize rows) {
    ToroidGraph *g;
    ToroidValue *x, *y;
    OK(toroid_graph_create(&g));
    OK(toroid_graph_input(g, "x", TOROID_FLOAT32, 2, (ToroidSize[]){rows, COLUMNS}, false, &x));
    ToroidArg args[] = {toroid_tensor(x), toroid_int(1)};
    y = unary(g, "aten.log.default", call(g, "aten.softmax.int", args, 2));
    OK(toroid_graph_outputs(g, &y, 1));
    return g;
}

static ToroidNode *find(ToroidGraph *g, const char *op) {
    ToroidNode *const *nodes, *found = NULL;
    int count;
    OK(toroid_graph_nodes(g, &nodes, &count));
    for (int i = 0; i < count; i++)
        if (!strcmp(toroid_node_op(nodes[i]), op)) found = nodes[i];
    return found;
}

/// An attribute of a node, of kind TOROID_ARG_NONE if it has none of that name.
static ToroidArg attribute(ToroidGraph *g, const ToroidNode *node, const char *name) {
    const ToroidArg *attributes;
    int count;
    OK(toroid_node_attributes(g, node, &attributes, &count));
    for (int i = 0; i < count; i++)
        if (!strcmp(attributes[i].name, name)) return attributes[i];
    return toroid_none();
}

static void run(ToroidGraph **g, const float *x, float *y) {
    ToroidExecutable *e;
    OK(toroid_compile(&e, g, NULL));
    ToroidTensor in = {.data = (void *)(uintptr_t)x,
                       .dtype = TOROID_FLOAT32,
                       .rank = 2,
                       .size = {ROWS, COLUMNS}},
                 out = in;
    out.data = y;
    OK(toroid_run(e, &in, 1, &out, 1));
    toroid_executable_destroy(&e);
}

// ---------------------------------------------------------------- looking

static void test_nodes(void **state) {
    (void)state;
    ToroidGraph *g = log_of_softmax(ROWS);
    ToroidNode *const *nodes;
    int count;
    OK(toroid_graph_nodes(g, &nodes, &count));
    assert_string_equal(toroid_node_op(nodes[0]), "input");
    assert_string_equal(toroid_node_op(nodes[count - 1]), "output");
    assert_int_equal(toroid_node_output_count(nodes[count - 1]), 0);
    ToroidNode *softmax = find(g, "softmax"), *log = find(g, "log");
    assert_true(softmax && log);
    ToroidValue *p = toroid_node_output(softmax, 0);
    assert_ptr_equal(toroid_node_input(log, 0), p);
    assert_ptr_equal(toroid_value_node(p), softmax);
    assert_int_equal(toroid_value_use_count(p), 1);
    assert_int_equal(toroid_value_dtype(p), TOROID_FLOAT32);
    assert_int_equal(toroid_node_input_count(log), 1);
    assert_null(toroid_node_input(log, 1));
    assert_null(toroid_node_input(log, -1));
    assert_null(toroid_node_output(log, 1));
    ToroidSize size;
    OK(toroid_value_size(g, p, 1, &size));
    assert_int_equal(size, COLUMNS);
    ToroidArg axis = attribute(g, softmax, "axis");
    assert_int_equal(axis.kind, TOROID_ARG_INT);
    assert_int_equal(axis.value.integer, 1);
    toroid_graph_destroy(&g);
}

static void test_attributes(void **state) {
    (void)state;
    ToroidGraph *g;
    ToroidValue *x, *y;
    const ToroidSize sizes[] = {TOROID_ANY_SIZE, 4};
    OK(toroid_graph_create(&g));
    OK(toroid_graph_input(g, "x", TOROID_FLOAT32, 2, sizes, false, &x));
    ToroidSize rows;
    OK(toroid_value_size(g, x, 0, &rows));
    ToroidArg product[] = {toroid_tensor(x), toroid_float(2.5)};
    y = call(g, "aten.mul.Tensor", product, 2);
    ToroidArg cast[] = {toroid_tensor(y), toroid_named("dtype", toroid_dtype(TOROID_FLOAT64))};
    y = call(g, "aten._to_copy.default", cast, 2);
    ToroidArg dims[] = {toroid_size(rows), toroid_int(2), toroid_int(2)};
    ToroidArg view[] = {toroid_tensor(y), toroid_list(dims, 3)};
    y = call(g, "aten.view.default", view, 2);
    ToroidArg axis = toroid_int(2);
    ToroidArg sum[] = {toroid_tensor(y), toroid_list(&axis, 1), toroid_bool(true)};
    y = call(g, "aten.sum.dim_IntList", sum, 3);
    OK(toroid_graph_outputs(g, &y, 1));

    ToroidArg a = attribute(g, find(g, "constant"), "value");
    assert_true(a.kind == TOROID_ARG_FLOAT && a.value.number == 2.5);
    a = attribute(g, find(g, "cast"), "dtype");
    assert_true(a.kind == TOROID_ARG_DTYPE && a.value.dtype == TOROID_FLOAT64);
    a = attribute(g, find(g, "view"), "dims");
    assert_true(a.kind == TOROID_ARG_LIST && a.count == 3);
    assert_true(a.value.list[0].value.size == rows && a.value.list[1].value.size == 2);
    a = attribute(g, find(g, "sum"), "axes");
    assert_true(a.kind == TOROID_ARG_LIST && a.count == 1 && a.value.list[0].value.integer == 2);
    assert_int_equal(attribute(g, find(g, "sum"), "nothing").kind, TOROID_ARG_NONE);
    toroid_graph_destroy(&g);
}

static void test_wrong_arguments(void **state) {
    (void)state;
    ToroidGraph *g = log_of_softmax(ROWS);
    ToroidNode *const *nodes;
    const ToroidArg *attributes;
    int count;
    FAILS(TOROID_INVALID, "an argument is NULL", toroid_graph_nodes(NULL, &nodes, &count));
    FAILS(TOROID_INVALID, "an argument is NULL", toroid_graph_nodes(g, NULL, &count));
    FAILS(TOROID_INVALID, "an argument is NULL",
          toroid_node_attributes(g, NULL, &attributes, &count));
    FAILS(TOROID_INVALID, "an argument is NULL", toroid_graph_rewrite(g, NULL, NULL));
    ToroidValue *x = toroid_node_output(find(g, "input"), 0);
    FAILS(TOROID_INVALID, "no node is being visited", toroid_graph_replace(g, x, x));
    assert_string_equal(toroid_node_op(NULL), "");
    assert_null(toroid_value_node(NULL));
    assert_true(!toroid_node_input_count(NULL) && !toroid_node_output_count(NULL) &&
                !toroid_value_use_count(NULL));
    toroid_graph_destroy(&g);
}

// ---------------------------------------------------------------- rewriting

/// log(softmax(x)) becomes log_softmax(x).
static ToroidStatus to_log_softmax(ToroidGraph *g, ToroidNode *node, void *user) {
    ToroidNode *softmax = toroid_value_node(toroid_node_input(node, 0));
    if (strcmp(toroid_node_op(node), "log") || strcmp(toroid_node_op(softmax), "softmax"))
        return TOROID_OK;
    ToroidValue *y;
    ToroidArg args[] = {toroid_tensor(toroid_node_input(softmax, 0)),
                        attribute(g, softmax, "axis")};
    args[1].name = NULL;
    ToroidStatus status = toroid_graph_call(g, "aten.log_softmax.int", args, 2, &y, 1);
    if (status != TOROID_OK) return status;
    ++*(int *)user;
    return toroid_graph_replace(g, toroid_node_output(node, 0), y);
}

static void test_a_pattern_of_two_nodes(void **state) {
    (void)state;
    const ToroidSize rows[] = {ROWS, TOROID_ANY_SIZE};
    for (int i = 0; i < 2; i++) {
        ToroidGraph *g = log_of_softmax(rows[i]);
        int found = 0;
        OK(toroid_graph_rewrite(g, to_log_softmax, &found));
        assert_int_equal(found, 1);
        char *text;
        OK(toroid_graph_print(g, &text));
        assert_non_null(strstr(text, "log_softmax"));
        toroid_text_free(text);
        // Where softmax is 0, its logarithm is not finite.
        const float x[] = {0, 200, 0, 1, 1, 1};
        float y[ROWS * COLUMNS];
        run(&g, x, y);
        const float expected[] = {-200, 0, -200, -1.0986123f, -1.0986123f, -1.0986123f};
        for (int k = 0; k < ROWS * COLUMNS; k++)
            assert_true(y[k] - expected[k] < 1e-5f && expected[k] - y[k] < 1e-5f);
    }
}

/// y becomes y + 1: the new node reads the result that it takes the place of.
static ToroidStatus add_one(ToroidGraph *g, ToroidNode *node, void *user) {
    (void)user;
    if (strcmp(toroid_node_op(node), "relu")) return TOROID_OK;
    ToroidArg args[] = {toroid_tensor(toroid_node_output(node, 0)), toroid_float(1)};
    ToroidValue *y = call(g, "aten.add.Tensor", args, 2);
    FAILS(TOROID_INVALID, "toroid_graph_input: the outputs of the graph are set",
          toroid_graph_input(g, "z", TOROID_FLOAT32, 0, NULL, false, &y));
    y = call(g, "aten.add.Tensor", args, 2);
    return toroid_graph_replace(g, toroid_node_output(node, 0), y);
}

static ToroidGraph *two_relus(void) {
    ToroidGraph *g;
    ToroidValue *x, *y;
    OK(toroid_graph_create(&g));
    OK(toroid_graph_input(g, "x", TOROID_FLOAT32, 2, (ToroidSize[]){ROWS, COLUMNS}, false, &x));
    y = unary(g, "aten.relu.default", unary(g, "aten.relu.default", x));
    OK(toroid_graph_outputs(g, &y, 1));
    return g;
}

static void test_a_node_that_reads_what_it_replaces(void **state) {
    (void)state;
    ToroidGraph *g = two_relus();
    OK(toroid_graph_rewrite(g, add_one, NULL));
    const float x[] = {-1, 2, -3, 4, 0, 5};
    float y[ROWS * COLUMNS];
    run(&g, x, y);
    assert_memory_equal(y, ((float[]){2, 4, 2, 6, 2, 7}), sizeof y);
}

/// A second relu is the first one.
static ToroidStatus once(ToroidGraph *g, ToroidNode *node, void *user) {
    (void)user;
    ToroidValue *x = toroid_node_input(node, 0);
    const char *relu = "relu";
    if (strcmp(toroid_node_op(node), relu) || strcmp(toroid_node_op(toroid_value_node(x)), relu))
        return TOROID_OK;
    return toroid_graph_replace(g, toroid_node_output(node, 0), x);
}

static void test_a_value_of_before(void **state) {
    (void)state;
    ToroidGraph *g = two_relus();
    OK(toroid_graph_rewrite(g, once, NULL));
    ToroidNode *relu = find(g, "relu");  // the last one
    assert_int_equal(toroid_value_use_count(toroid_node_output(relu, 0)), 0);
    const float x[] = {-1, 2, -3, 4, 0, 5};
    float y[ROWS * COLUMNS];
    run(&g, x, y);
    assert_memory_equal(y, ((float[]){0, 2, 0, 4, 0, 5}), sizeof y);
}

static ToroidStatus wrong(ToroidGraph *g, ToroidNode *node, void *user) {
    if (strcmp(toroid_node_op(node), "softmax")) return TOROID_OK;
    ToroidValue *const *later = user;
    ToroidValue *p = toroid_node_output(node, 0), *x = toroid_node_input(node, 0), *y;
    ToroidArg arg = toroid_tensor(*later);
    FAILS(TOROID_UNSUPPORTED, "nonsense",
          toroid_graph_call(g, "aten.nonsense.default", &arg, 1, &y, 1));
    FAILS(TOROID_INVALID, "a value of another graph or of a later node",
          toroid_graph_call(g, "aten.relu.default", &arg, 1, &y, 1));
    FAILS(TOROID_INVALID, "or of a later node", toroid_graph_replace(g, p, *later));
    FAILS(TOROID_INVALID, "no result of the node that is visited", toroid_graph_replace(g, x, p));
    ToroidArg sum = toroid_tensor(x);
    y = call(g, "aten.sum.default", &sum, 1);
    FAILS(TOROID_INVALID, "float32[] in the place of float32[2, 3]", toroid_graph_replace(g, p, y));
    FAILS(TOROID_INVALID, "is being rewritten already", toroid_graph_rewrite(g, wrong, user));
    FAILS(TOROID_INVALID, "the outputs of the graph are set", toroid_graph_outputs(g, &y, 1));
    return TOROID_INVALID_DATA;
}

static void test_wrong_steps(void **state) {
    (void)state;
    ToroidGraph *g = log_of_softmax(ROWS);
    ToroidValue *later = toroid_node_output(find(g, "log"), 0);
    assert_int_equal(toroid_graph_rewrite(g, wrong, &later), TOROID_INVALID_DATA);
    // It still computes what it did.
    const float x[] = {1, 1, 1, 2, 2, 2};
    float y[ROWS * COLUMNS];
    run(&g, x, y);
    for (int k = 0; k < ROWS * COLUMNS; k++) assert_true(y[k] < -1.09f && y[k] > -1.1f);

    OK(toroid_graph_create(&g));
    FAILS(TOROID_INVALID, "the outputs of the graph are not set",
          toroid_graph_rewrite(g, once, NULL));
    toroid_graph_destroy(&g);
}

static void test_no_memory(void **state) {
    (void)state;
    ToroidStatus status = TOROID_NO_MEMORY;
    for (uint64_t n = 1; status != TOROID_OK; n++) {
        ToroidGraph *g = log_of_softmax(ROWS);
        ToroidNode *const *nodes;
        int count, found = 0;
        tor_alloc_fail_at(n);
        status = toroid_graph_nodes(g, &nodes, &count);
        if (status == TOROID_OK) status = toroid_graph_rewrite(g, to_log_softmax, &found);
        tor_alloc_fail_at(0);
        assert_true(status == TOROID_OK || status == TOROID_NO_MEMORY);
        toroid_graph_destroy(&g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_wrong_arguments),
        cmocka_unit_test(test_a_pattern_of_two_nodes),
        cmocka_unit_test(test_a_node_that_reads_what_it_replaces),
        cmocka_unit_test(test_a_value_of_before),
        cmocka_unit_test(test_wrong_steps),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

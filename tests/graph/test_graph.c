// Building, editing, verifying and printing graphs; failing allocations.
#include "support.h"

static void test_print(void **state) {
    (void)state;
    TorGraph *g = new_graph();
    TorValue *x = INPUT(g, "x", "s 768"), *w = WEIGHT(g, "w", "3072 768"),
             *cache = INPUT(g, "cache", "16 768");
    TorDim n;
    assert_int_equal(tor_graph_add_int_input(g, "n", &n), TOROID_OK);
    TorValue *h = OP(g, linear, INS(x, w), NONE);
    TorValue *m = OP(g, mul, INS(h, number(g, 0.1)), NONE);
    m->node->origin = "mul_1";
    TorValue *s = OP(g, sum, INS(m),
                     ATTRS(INTS(axes, 1), TOR_A_INT(keepdim, 1), TOR_A_DTYPE(dtype, TOR_float64)));
    TorValue *c =
        OP(g, slice, INS(cache),
           ATTRS(TOR_A_INT(axis, 0), TOR_A_DIM(start, n), TOR_A_INT(step, 1), DIMS(g, "1")));
    int64_t rows[] = {3, 5, -1};
    TorValue *k = OP(
        g, constant, NULL, 0,
        ATTRS(TOR_A_BLOB(blob, rows, sizeof(rows)), TOR_A_DTYPE(dtype, TOR_int64), DIMS(g, "3")));
    TorValue *e = OP(g, embedding, INS(w, k), NONE);
    TorValue *f = OP(g, relu, INS(cache), NONE);
    TorValue *values[] = {s, c, e, f};
    int64_t into[] = {-1, -1, -1, 2};
    assert_int_equal(tor_graph_set_outputs(g, values, into, 4), TOROID_OK);
    expect_text(g,
                "s0 = x.size(0)\n"
                "s1 = n\n"
                "\n"
                "%0   input      float32[s0, 768]            x\n"
                "%1   input      float32[3072, 768]          w (frozen)\n"
                "%2   input      float32[16, 768]            cache\n"
                "%3   linear     float32[s0, 3072]   %0 %1\n"
                "%5   mul        float32[s0, 3072]   %3 0.1  ; mul_1\n"
                "%6   sum        float64[s0, 1]      %5      axes=[1]  keepdim=1\n"
                "%7   slice      float32[1, 768]     %2      dims=[1]  start=s1  step=1  axis=0\n"
                "%8   constant   int64[3]                    blob={3, 5, -1}\n"
                "%9   embedding  float32[3, 768]     %1 %8\n"
                "%10  relu       float32[16, 768]    %2\n"
                "     output                         %6 %7 %9 %10>cache\n");
    tor_graph_destroy(&g);
    assert_null(g);
    tor_graph_destroy(&g);
}

// A clone prints and runs through passes like its source, and outlives it.
static void test_clone(void **state) {
    (void)state;
    const char *passed[2];
    for (int cloned = 0; cloned < 2; cloned++) {
        TorGraph *g = new_graph(), *source;
        TorValue *x = INPUT(g, "x", "s 768"), *w = WEIGHT(g, "w", "3072 768"), *twice, *k;
        TorDim n;
        assert_int_equal(tor_graph_add_int_input(g, "n", &n), TOROID_OK);
        twice = OP(g, linear, INS(x, w), NONE);
        twice->node->origin = "addmm";
        twice = OP(g, add, INS(twice, twice), NONE);
        k = OP(g, slice, INS(x),
               ATTRS(TOR_A_INT(axis, 0), TOR_A_DIM(start, n), TOR_A_INT(step, 1), DIMS(g, "1")));
        TorValue *values[] = {twice, k, x};
        int64_t into[] = {-1, 0, -1};
        assert_int_equal(tor_graph_set_outputs(g, values, into, 3), TOROID_OK);
        assert_int_equal(tor_graph_set_output_layout(g, 0, NULL, (int[]){1, 0}), TOROID_OK);
        if (cloned) {
            char *before;
            assert_int_equal(tor_graph_print(g, &before), TOROID_OK);
            source = g;
            assert_int_equal(tor_graph_clone(&g, source), TOROID_OK);
            // New integers are found among the old ones, and added to one graph only.
            assert_int_equal(tor_int_scalar(g, 2), n);
            tor_int_const(g, 123456);
            assert_true(tor_int_count(g) == tor_int_count(source) + 1);
            assert_true(g->output_layouts != source->output_layouts);
            assert_memory_equal(g->output_layouts, source->output_layouts,
                                3 * sizeof *g->output_layouts);
            tor_graph_destroy(&source);
            expect_text(g, before);
            tor_free(before);
        }
        run_passes(g, "canonicalise cse dce layout");
        char *text;
        assert_int_equal(tor_graph_verify(g), TOROID_OK);
        assert_int_equal(tor_graph_print(g, &text), TOROID_OK);
        passed[cloned] = text;
        tor_graph_destroy(&g);
    }
    assert_string_equal(passed[0], passed[1]);
    tor_free((void *)(uintptr_t)passed[0]);
    tor_free((void *)(uintptr_t)passed[1]);
}

static void test_empty(void **state) {
    (void)state;
    TorGraph *g = new_graph();
    expect_text(g, "");
    set_outputs(g, NULL, 0);
    expect_text(g, "output\n");
    tor_graph_destroy(&g);
}

static void test_numbers_are_shared(void **state) {
    (void)state;
    TorGraph *g = new_graph();
    TorValue *x = INPUT(g, "x", "4");
    TorValue *two = number(g, 2);
    OP(g, mul, INS(x, two), NONE);
    assert_ptr_equal(number(g, 2), two);
    assert_ptr_not_equal(number(g, 0.0), number(g, -0.0));
    assert_ptr_equal(number(g, -0.0), number(g, -0.0));
    TorValue *i;
    assert_int_equal(tor_graph_number(g, (TorScalar){.dtype = TOR_int64, .i = 2}, &i), TOROID_OK);
    assert_ptr_not_equal(i, two);
    TorScalar back;
    assert_true(tor_value_number(i, &back));
    assert_int_equal(back.dtype, TOR_int64);
    assert_int_equal(back.i, 2);
    assert_false(tor_value_number(x, &back));
    assert_int_equal(tor_graph_verify(g), TOROID_OK);
    tor_graph_destroy(&g);
}

static void test_editing(void **state) {
    (void)state;
    TorGraph *g = new_graph();
    TorValue *x = INPUT(g, "x", "4"), *y = INPUT(g, "y", "4");
    TorValue *a = OP(g, relu, INS(x), NONE), *b = OP(g, add, INS(a, a), NONE);
    set_outputs(g, INS(b, a));
    assert_int_equal(tor_value_use_count(a), 3);
    tor_graph_remove(g, a->node);  // used: stays
    assert_int_equal(tor_graph_verify(g), TOROID_OK);
    tor_node_set_input(b->node, 1, y);
    assert_int_equal(tor_value_use_count(a), 2);
    tor_value_replace(a, x);
    assert_null(a->uses);
    assert_int_equal(tor_value_use_count(x), 3);
    tor_graph_remove(g, a->node);
    TorNode *late;
    assert_int_equal(tor_graph_add(g, b->node, TOR_OP_neg, INS(y), NONE, 1, &late), TOROID_OK);
    tor_graph_move_before(g, late, NULL);
    assert_ptr_equal(late->next, g->output);
    assert_int_equal(tor_attr_set(g, late, TOR_A_INT(inplace, 1)), TOROID_OK);
    assert_int_equal(tor_attr_set(g, late, TOR_A_INT(index, 7)), TOROID_OK);
    assert_int_equal(tor_attr_set(g, late, TOR_A_INT(inplace, 2)), TOROID_OK);
    assert_int_equal(late->n_attrs, 2);
    assert_int_equal(tor_attr_int(late, TOR_ATTR_inplace, 0), 2);
    assert_int_equal(tor_attr_int(late, TOR_ATTR_index, 0), 7);
    assert_int_equal(tor_attr_int(late, TOR_ATTR_axis, -5), -5);
    expect_text(g,
                "%0  input   float32[4]         x\n"
                "%1  input   float32[4]         y\n"
                "%3  add     float32[4]  %0 %1\n"
                "%4  neg     float32[4]  %1     index=7  inplace=2\n"
                "    output              %3 %0\n");
    tor_graph_destroy(&g);
}

static void test_attributes(void **state) {
    (void)state;
    TorAttr a = TOR_A_INTS(axes, ((const int64_t[]){1, 2}), 2),
            b = TOR_A_INTS(axes, ((const int64_t[]){1, 2}), 2),
            c = TOR_A_INTS(axes, ((const int64_t[]){1, 3}), 2);
    assert_true(tor_attr_equal(&a, &b));
    assert_int_equal(tor_attr_hash(&a), tor_attr_hash(&b));
    assert_false(tor_attr_equal(&a, &c));
    TorAttr p = TOR_A_FLOAT(eps, 0.0), q = TOR_A_FLOAT(eps, -0.0);
    assert_false(tor_attr_equal(&p, &q));
    TorGraph *g = new_graph();
    TorValue *x = INPUT(g, "x", "4");
    TorNode *node;
    assert_int_equal(tor_graph_add(g, NULL, TOR_OP_flip, INS(x), ATTRS(a, b), 1, &node),
                     TOROID_INVALID);
    assert_non_null(strstr(toroid_last_error(), "flip: attribute axes is given twice"));
    tor_graph_destroy(&g);
}

// ---------------------------------------------------------------- verify finds each broken rule

typedef struct {
    TorGraph *g;
    TorValue *x, *a, *b, *c;
} Small;

static Small small_graph(void) {
    Small s = {.g = new_graph()};
    s.x = INPUT(s.g, "x", "4 8");
    s.a = OP(s.g, relu, INS(s.x), NONE);
    s.b = OP(s.g, neg, INS(s.a), NONE);
    s.c = OP(s.g, add, INS(s.a, s.b), NONE);
    set_outputs(s.g, INS(s.c));
    assert_int_equal(tor_graph_verify(s.g), TOROID_OK);
    return s;
}

static void finds(Small *s, const char *rule) {
    ToroidStatus status = tor_graph_verify(s->g);
    if (status != TOROID_INVALID || !strstr(toroid_last_error(), rule))
        print_error("expected \"%s\", got \"%s\"\n", rule, toroid_last_error());
    assert_int_equal(status, TOROID_INVALID);
    assert_non_null(strstr(toroid_last_error(), rule));
    tor_graph_destroy(&s->g);
}

static void test_verify(void **state) {
    (void)state;
    Small s = small_graph();
    tor_graph_move_before(s.g, s.b->node, s.a->node);
    finds(&s, "verify: %2 = neg: an input is made later or not in the graph");
    s = small_graph();
    s.b->node->inputs[0].value = s.x;  // behind the use list's back
    finds(&s, "its uses list another value's use");
    s = small_graph();
    s.a->uses = s.a->uses->next;
    finds(&s, "a use is not linked");
    s = small_graph();
    s.b->node->inputs[0].user = s.c->node;
    finds(&s, "a use does not name its node");
    s = small_graph();
    s.b->node = s.a->node;
    finds(&s, "an output does not name its node and index");
    s = small_graph();
    s.b->id = s.a->id;
    finds(&s, "an output's id is not its own");
    s = small_graph();
    s.b->node->id = s.a->node->id;
    finds(&s, "the node's id is not its own");
    s = small_graph();
    s.c->dtype = TOR_float64;
    finds(&s, "verify: %3 = add: an output's type is not what the op's rule gives");
    s = small_graph();
    s.c->dim[0] = tor_int_const(s.g, 5);
    finds(&s, "an output's type is not what the op's rule gives");
    s = small_graph();
    s.c->rank = 1;
    finds(&s, "an output's type is not what the op's rule gives");
    s = small_graph();
    s.c->dim[0] = 12345;
    finds(&s, "a dim is no integer of this graph");
    s = small_graph();
    s.a->dtype = TOR_float16;
    finds(&s, "verify: %1 = relu");
    s = small_graph();
    s.c->node->prev = s.a->node;
    finds(&s, "the list of nodes is broken before it");
    s = small_graph();
    s.g->last = s.c->node;
    finds(&s, "the graph's last node is not the end of its list");
    s = small_graph();
    s.g->output = s.c->node;
    finds(&s, "the output node is not the last");
    s = small_graph();
    s.g->inputs[0].value = s.a;
    finds(&s, "input 0 has no node of its own");
    s = small_graph();
    s.c->node->n_inputs = 1;
    finds(&s, "the number of inputs or outputs is wrong");
    s = small_graph();
    s.a->frozen = true;
    finds(&s, "an output is marked frozen but depends on what is not");
    s = small_graph();
    TorNode *node = s.c->node;  // unlinked by hand, its uses stay
    node->prev->next = node->next;
    node->next->prev = node->prev;
    finds(&s, "an input is made later or not in the graph");
}

static void test_verify_layouts(void **state) {
    (void)state;
    Small s = small_graph();
    TorDim one = tor_int_const(s.g, 1), eight = tor_int_const(s.g, 8), zero = tor_int_const(s.g, 0);
    TorValue *all[] = {s.a, s.b};
    for (int i = 0; i < 2; ++i) {
        all[i]->has_layout = true;
        all[i]->storage = s.a;
        all[i]->stride[0] = eight;
        all[i]->stride[1] = one;
        all[i]->offset = zero;
    }
    assert_int_equal(tor_graph_verify(s.g), TOROID_OK);
    s.b->offset = one;
    assert_int_equal(tor_graph_verify(s.g), TOROID_INVALID);
    assert_non_null(strstr(toroid_last_error(), "%2 = neg: a layout leaves its storage"));
    s.b->offset = zero;
    s.b->storage = NULL;
    assert_int_equal(tor_graph_verify(s.g), TOROID_INVALID);
    assert_non_null(strstr(toroid_last_error(), "a layout has no storage"));
    s.b->storage = s.c;
    finds(&s, "a layout's storage is made later");
}

static void test_outputs(void **state) {
    (void)state;
    Small s = small_graph();
    int64_t into[] = {0}, wrong[] = {3};
    assert_int_equal(tor_graph_set_outputs(s.g, &s.a, wrong, 1), TOROID_INVALID);
    assert_non_null(strstr(toroid_last_error(),
                           "output: attribute into: item 0 must be -1 or a tensor input, got 3"));
    assert_int_equal(tor_graph_set_outputs(s.g, &s.a, into, 1), TOROID_OK);
    assert_int_equal(tor_graph_verify(s.g), TOROID_OK);
    assert_int_equal(tor_value_use_count(s.c), 0);
    TorValue *half = OP(s.g, cast, INS(s.x), ATTRS(TOR_A_DTYPE(dtype, TOR_float16)));
    assert_int_equal(tor_graph_set_outputs(s.g, &half, into, 1), TOROID_INVALID);
    assert_non_null(
        strstr(toroid_last_error(),
               "output 0, float16[4, 8], cannot be written into input 0, float32[4, 8]"));
    tor_graph_destroy(&s.g);
}

// ---------------------------------------------------------------- memory

// Builds a graph with a bit of everything; the first failure comes back.
static ToroidStatus build(TorGraph **out, char **text) {
    TOR_TRY(tor_graph_create(out));
    TorGraph *g = *out;
    TorValue *x, *w, *two;
    TorNode *node;
    TorDim n, dims[] = {tor_int_size(g, 0, 0), tor_int_const(g, 8)};
    TOR_TRY(g->failed);
    TOR_TRY(tor_graph_add_input(g, "x", TOR_float32, 2, dims, false, &x));
    TOR_TRY(tor_graph_add_int_input(g, "n", &n));
    dims[0] = tor_int_const(g, 16);
    TOR_TRY(tor_graph_add_input(g, "w", TOR_float32, 2, dims, true, &w));
    TOR_TRY(tor_graph_number(g, (TorScalar){.dtype = TOR_float64, .f = 2}, &two));
    for (int i = 0; i < 200; ++i) {
        TorValue *in[] = {x, w};
        TOR_TRY(tor_graph_add(g, NULL, TOR_OP_linear, in, 2, NULL, 0, 1, &node));
        in[0] = node->outputs[0];
        in[1] = two;
        TOR_TRY(tor_graph_add(g, NULL, TOR_OP_mul, in, 2, NULL, 0, 1, &node));
        TorDim odd[] = {tor_int_mul(g, tor_int_add(g, n, tor_int_const(g, i)),
                                    tor_int_floordiv(g, x->dim[0], tor_int_const(g, i + 2)))};
        TorAttr attrs[] = {TOR_A_DIMS(dims, odd, 1)};
        TOR_TRY(tor_graph_add(g, NULL, TOR_OP_view, node->outputs, 1, attrs, 1, 1, &node));
    }
    int64_t into = -1;
    TOR_TRY(tor_graph_set_outputs(g, node->outputs, &into, 1));
    TOR_TRY(tor_graph_verify(g));
    return tor_graph_print(g, text);
}

static void test_failing_allocations(void **state) {
    (void)state;
    bool done = false;
    int n = 1;
    for (; !done; ++n) {
        TorGraph *g = NULL;
        char *text = NULL;
        tor_alloc_fail_at((uint64_t)n);
        ToroidStatus status = build(&g, &text);
        tor_alloc_fail_at(0);
        done = status == TOROID_OK;
        if (!done) assert_int_equal(status, TOROID_NO_MEMORY);
        if (!done) assert_null(text);
        tor_free(text);
        tor_graph_destroy(&g);
        assert_true(n < 1000);
    }
    assert_true(n > 10);
}

static void test_clone_without_memory(void **state) {
    (void)state;
    TorGraph *g = NULL, *copy = NULL;
    char *text = NULL;
    assert_int_equal(build(&g, &text), TOROID_OK);
    int n = 0;
    while (!copy) {
        tor_alloc_fail_at((uint64_t)++n);
        ToroidStatus status = tor_graph_clone(&copy, g);
        tor_alloc_fail_at(0);
        assert_int_equal(status, copy ? TOROID_OK : TOROID_NO_MEMORY);
    }
    assert_true(n > 5);
    expect_text(copy, text);
    tor_free(text);
    tor_graph_destroy(&copy);
    tor_graph_destroy(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_print),
                                       cmocka_unit_test(test_clone),
                                       cmocka_unit_test(test_empty),
                                       cmocka_unit_test(test_numbers_are_shared),
                                       cmocka_unit_test(test_editing),
                                       cmocka_unit_test(test_attributes),
                                       cmocka_unit_test(test_verify),
                                       cmocka_unit_test(test_verify_layouts),
                                       cmocka_unit_test(test_outputs),
                                       cmocka_unit_test(test_failing_allocations),
                                       cmocka_unit_test(test_clone_without_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

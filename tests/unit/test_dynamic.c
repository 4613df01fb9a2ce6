// One executable, many sizes: right at each, nothing allocated after the first bind, inputs that do
// not fit are refused by name.
#include <pthread.h>
#include <time.h>

#include "../support/exe.h"
#include "tune/settings.h"

/// A decoder's step over a sequence of any length, with a cache of any length.
static void build(int64_t length, int64_t cache) {
    int64_t x[3] = {1, length, 32}, c[4] = {1, 2, cache, 8};
    TorValue *in = input(randomise(new_tensor(TOR_float32, 3, x, NULL)), false, 2);
    TorValue *k = input(randomise(new_tensor(TOR_float32, 4, c, NULL)), false, 4);
    TorDim t = in->dim[1], one = tor_int_const(g, 1), two = tor_int_const(g, 2),
           eight = tor_int_const(g, 8), sixteen = tor_int_const(g, 16);
    TorValue *h = OP(g, layer_norm, INS(in, FROZEN(FLOATS("32"))),
                     ATTRS(TOR_A_INT(count, 1), TOR_A_FLOAT(eps, 1e-5), TOR_A_INT(has_gamma, 1)));
    TorValue *q = OP(g, linear, INS(h, FROZEN(FLOATS("16 32")), FROZEN(FLOATS("16"))), NONE);
    q = permuted(OP(g, view, INS(q), ATTRS(TOR_A_DIMS(dims, ((TorDim[]){one, t, two, eight}), 4))),
                 "0 2 1 3");
    TorValue *all = OP(g, cat, INS(k, q), ATTRS(TOR_A_INT(axis, 2)));
    TorValue *s =
        BINARY(mul, OP(g, matmul, INS(q, permuted(all, "0 1 3 2")), NONE), number(g, 0.35));
    TorValue *y = OP(g, matmul, INS(softmaxed(s, 3), all), NONE);
    y = OP(g, view, INS(permuted(y, "0 2 1 3")),
           ATTRS(TOR_A_DIMS(dims, ((TorDim[]){one, t, sixteen}), 3)));
    y = BINARY(add, UNARY(gelu_erf, OP(g, linear, INS(y, FROZEN(FLOATS("32 16"))), NONE)), in);
    OUTPUTS(y, reduced(TOR_OP_sum, y, 2, false), all, sliced(y, 2, 0, 4, 1));
}

static void resize(Tensor *t, int dim, int64_t size) {
    int64_t step = 1;
    t->size[dim] = size;
    for (int d = t->rank - 1; d >= 0; d--) {
        t->stride[d] = step;
        step *= t->size[d];
    }
    free(t->memory);
    tensor_allocate(t);
    randomise(t);
}

static void test_lengths(void **state) {
    (void)state;
    build(1, 3);
    int n = g->output->n_inputs;
    uint32_t ids[16];
    for (int k = 0; k < n; k++) ids[k] = tor_in(g->output, k)->id;
    // The graph goes with the compilation: a second one of the same text is interpreted.
    TorGraph *plain = g;
    Tensor *kept[64];
    memcpy(kept, given, sizeof kept);
    g = new_graph();
    memset(given, 0, sizeof given);
    random_state = 1;
    build(1, 3);
    TorExecutable *exe = compile();
    memcpy(given, kept, sizeof kept);
    for (int step = 0; step < 130; step++) {
        int64_t length = step < 65 ? 1 + step * 2 : 130 - (step - 65) * 2,
                cache = 1 + step * 7 % 90;
        resize(given[0], 1, length);
        resize(given[1], 2, cache);
        Interpreter *it = interpret(plain, given);
        Tensor *out[4];
        for (int threads = 1; threads <= 4; threads *= 4) {
            MUST(call_exe(exe, threads, out));
            for (int k = 0; k < n; k++)
                expect_array(exe, "decoder", k, out[k], &it->values[ids[k]]);
        }
        interpreter_drop(it);
    }
    uint64_t before = tor_alloc_count();
    for (int64_t length = 1; length <= 130; length++) {
        given[0]->size[1] = length, given[0]->stride[0] = 32 * length;
        TorCall *call;
        MUST(begin(exe, &call));
        assert_int_equal(tor_exe_outputs(call)[0].size[1], length);
        assert_int_equal(tor_exe_outputs(call)[1].size[1], 32);
        assert_int_equal(tor_exe_outputs(call)[0].stride[0], 32 * length);
        tor_exe_end(&call);
    }
    assert_int_equal(tor_alloc_count(), before);
    TorExeStats stats;
    tor_exe_stats(exe, &stats);
    assert_int_equal(stats.contexts, 1);
    assert_int_equal(stats.binds, 260);
    tor_exe_destroy(&exe);
    tor_graph_destroy(&plain);
}

// A run allocates nothing either: outputs are the host's.
static void test_run_allocates_nothing(void **state) {
    (void)state;
    build(130, 90);
    TorExecutable *exe = compile();
    static float memory[4][100000];
    for (int round = 0; round < 20; round++) {
        uint64_t before = tor_alloc_count();
        TorCall *call;
        given[0]->size[1] = 1 + round * 37 % 130, given[0]->stride[0] = 32 * given[0]->size[1];
        MUST(begin(exe, &call));
        for (int k = 0; k < 4; k++) tor_exe_outputs(call)[k].data = memory[k];
        MUST(tor_exe_run(call, NULL, false));
        tor_exe_end(&call);
        if (round > 1) assert_int_equal(tor_alloc_count(), before);
    }
    tor_exe_destroy(&exe);
}

// Strides that only the call knows.
static void test_strides(void **state) {
    (void)state;
    Tensor *t = FLOATS("6 7");
    TorValue *x = input(t, false, 3 | DYNAMIC_STRIDES), *y = UNARY(neg, x);
    OUTPUTS(y, reduced(TOR_OP_sum, x, 1, false),
            OP(g, linear, INS(x, FROZEN(FLOATS("3 7"))), NONE));
    TorExecutable *exe = compile();
    for (int order = 0; order < 3; order++) {
        Tensor *s = order == 0 ? t : strided(TOR_float32, "6 7", order == 1 ? "1 6" : "30 3");
        Tensor *out[3];
        given[0] = s;
        MUST(call_exe(exe, 2, out));
        for (int64_t i = 0; i < 42; i++) assert_true(tensor_at(out[0], i) == -tensor_at(s, i));
        for (int64_t j = 0; j < 7; j++) {
            double sum = 0;
            for (int64_t i = 0; i < 6; i++) sum += tensor_at(s, i * 7 + j);
            assert_true(fabs(sum - tensor_at(out[1], j)) < 1e-5);
        }
        for (int64_t i = 0; i < 18; i++) {
            double sum = 0;
            for (int64_t k = 0; k < 7; k++)
                sum += tensor_at(s, i / 3 * 7 + k) * tensor_at(given[1], i % 3 * 7 + k);
            assert_true(fabs(sum - tensor_at(out[2], i)) < 1e-5);
        }
    }
    tor_exe_destroy(&exe);
}

// A symbolic size that turns out to be 1 still broadcasts as the graph says.
static void test_size_one(void **state) {
    (void)state;
    Tensor *a = FLOATS("3 5"), *b = FLOATS("5");
    TorValue *x = input(a, false, 1), *y = IN(b);
    OUTPUTS(BINARY(add, x, y), softmaxed(x, 0));
    TorExecutable *exe = compile();
    for (int64_t n = 3; n >= 0; n--) {
        Tensor *out[2];
        a->size[0] = n;
        MUST(call_exe(exe, 1, out));
        assert_int_equal(out[0]->size[0], n);
        for (int64_t i = 0; i < n * 5; i++)
            assert_true(fabs(tensor_at(out[0], i) - tensor_at(a, i) - tensor_at(b, i % 5)) < 1e-6);
    }
    tor_exe_destroy(&exe);
}

static void expect_refusal(TorExecutable *exe, const char *text) {
    TorCall *call;
    assert_int_equal(begin(exe, &call), TOROID_INVALID);
    assert_null(call);
    if (!strstr(toroid_last_error(), text))
        fail_msg("\"%s\" does not say \"%s\"", toroid_last_error(), text);
}

static void test_wrong_inputs(void **state) {
    (void)state;
    Tensor *a = FLOATS("3 5"), *b = FLOATS("3 5"), *c = strided(TOR_float32, "4 5", "1 4"),
           *d = FLOATS("3 5");
    TorValue *x = input(a, false, 1), *y = IN(b), *z = IN(c), *w;
    // The fourth input has as many rows as the first.
    MUST(tor_graph_add_input(g, "x3", TOR_float32, 2, x->dim, false, &w));
    g->inputs[3].contiguous = true;
    given[3] = d;
    OUTPUTS(BINARY(mul, x, w), UNARY(neg, y), UNARY(neg, z));
    TorExecutable *exe = compile();
    Tensor *out[3];
    MUST(call_exe(exe, 1, out));
    b->size[0] = 2;
    expect_refusal(exe, "input x1: dim 0 has size 2, compiled for 3");
    b->size[0] = 3, b->stride[0] = 7;
    expect_refusal(exe, "input x1: not row-major");
    b->stride[0] = 5, c->stride[0] = 5, c->stride[1] = 1;
    expect_refusal(exe, "input x2: dim 0 has stride 5, compiled for 1");
    c->stride[0] = 1, c->stride[1] = 4, d->size[0] = 2;
    expect_refusal(exe, "input x3: dim 0 has size 2, by the other inputs it must be 3");
    d->size[0] = 3;
    MUST(call_exe(exe, 1, out));
    tor_exe_destroy(&exe);
}

// Many threads in one executable, each at a length of its own.
static TorExecutable *shared_exe;
static float *shared_x;

static void *worker(void *which) {
    int64_t n = 1 + (int64_t)(intptr_t)which * 3;
    float *y = malloc((size_t)n * 64 * sizeof *y);
    intptr_t wrong = 0;
    for (int i = 0; i < 200; i++) {
        TorCall *call;
        int64_t x_size[2] = {n, 64}, w_size[2] = {64, 64};
        TorCallInput in[] = {{.data = shared_x, .size = x_size},
                             {.data = given[1]->memory, .size = w_size, .uid = given[1]->uid}};
        if (tor_exe_begin(shared_exe, in, 2, &call) != TOROID_OK) return (void *)-1;
        tor_exe_outputs(call)[0].data = y;
        wrong += tor_exe_run(call, NULL, false) != TOROID_OK;
        tor_exe_end(&call);
        for (int64_t k = 0; k < n * 64; k++)
            wrong += fabsf(y[k] - 2 * fmaxf(shared_x[k], 0)) > 1e-6f;
        if (i % 50 == 49) tor_frozen_forget(given[1]->uid);
        memset(y, 0, (size_t)n * 64 * sizeof *y);
    }
    free(y);
    return (void *)wrong;
}

static void test_many_callers(void **state) {
    (void)state;
    Tensor *x = FLOATS("64 64"), *w = FLOATS("64 64");
    TorExeStats before, after;
    tor_exe_stats(NULL, &before);
    for (int64_t i = 0; i < 64 * 64; i++) tensor_set(w, i, i / 64 == i % 64);
    OUTPUTS(BINARY(mul, UNARY(relu, OP(g, linear, INS(input(x, false, 1), FROZEN(w)), NONE)),
                   number(g, 2)));
    shared_exe = compile();
    shared_x = x->memory;
    pthread_t threads[8];
    for (intptr_t i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, worker, (void *)i), 0);
    for (int i = 0; i < 8; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_int_equal((intptr_t)wrong, 0);
    }
    tor_exe_destroy(&shared_exe);
    tor_frozen_forget(w->uid);
    tor_exe_stats(NULL, &after);
    assert_int_equal(after.frozen_bytes, before.frozen_bytes);
}

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Prints what a bind of some 500 steps (504 of them) takes; says nothing about right or wrong.
static void time_binds(TorExecutable *exe, Tensor *t, const char *tuner) {
    static double us[4000];
    for (int i = 0; i < 4000; i++) {
        TorCall *call;
        t->size[1] = 1 + i * 13 % 200, t->stride[0] = 32 * t->size[1];
        double start_us = now_us();
        MUST(begin(exe, &call));
        us[i] = now_us() - start_us;
        tor_exe_end(&call);
    }
    qsort(us, 4000, sizeof us[0], by_size);
    TorExeStats stats;
    tor_exe_stats(exe, &stats);
    print_message("bind of %d steps, tuner %s: median %.1f us, fastest %.1f us\n", (int)stats.steps,
                  tuner, us[2000], us[0]);
}

static void test_bind_time(void **state) {
    (void)state;
    Tensor *t = FLOATS("1 8 32");
    TorValue *x = input(t, false, 2);
    TorDim one = tor_int_const(g, 1), two = tor_int_const(g, 2), sixteen = tor_int_const(g, 16),
           wide = tor_int_const(g, 32), s = x->dim[1];
    TorValue *w = FROZEN(FLOATS("32 32")), *w2 = FROZEN(FLOATS("64 32")),
             *w3 = FROZEN(FLOATS("32 64")), *gamma = FROZEN(FLOATS("32"));
    for (int layer = 0; layer < 42; layer++) {
        TorValue *h = OP(g, layer_norm, INS(x, gamma),
                         ATTRS(TOR_A_INT(count, 1), TOR_A_FLOAT(eps, 1e-5 * (layer + 1)),
                               TOR_A_INT(has_gamma, 1))),
                 *part[3];
        for (int i = 0; i < 3; i++) {
            TorValue *p = BINARY(mul, OP(g, linear, INS(h, w), NONE), number(g, i + 1));
            part[i] = permuted(
                OP(g, view, INS(p), ATTRS(TOR_A_DIMS(dims, ((TorDim[]){one, s, two, sixteen}), 4))),
                "0 2 1 3");
        }
        TorValue *a = OP(g, attention, INS(part[0], part[1], part[2]),
                         ATTRS(TOR_A_FLOAT(scale, 0.25), TOR_A_INT(causal, 1)));
        a = OP(g, view, INS(permuted(a, "0 2 1 3")),
               ATTRS(TOR_A_DIMS(dims, ((TorDim[]){one, s, wide}), 3)));
        x = BINARY(add, OP(g, linear, INS(a, w), NONE), x);
        h = OP(g, layer_norm, INS(x, gamma),
               ATTRS(TOR_A_INT(count, 1), TOR_A_FLOAT(eps, 1e-5), TOR_A_INT(has_gamma, 1)));
        x = BINARY(
            add, OP(g, linear, INS(UNARY(gelu_erf, OP(g, linear, INS(h, w2), NONE)), w3), NONE), x);
        x = OP(g, cat, INS(sliced(x, 2, 0, 16, 1), sliced(x, 2, 16, 16, 1)),
               ATTRS(TOR_A_INT(axis, 2)));
    }
    OUTPUTS(x);
    TorExecutable *exe = compile();
    TorTuneSettings settings = tor_tune_settings();
    time_binds(exe, t, "off");
    settings.enabled = true, settings.tuning = false;
    tor_tune_settings_set(&settings);
    time_binds(exe, t, "on");
    settings.enabled = false, settings.tuning = true;
    tor_tune_settings_set(&settings);
    tor_exe_destroy(&exe);
}

int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {TEST(test_lengths),      TEST(test_run_allocates_nothing),
                                       TEST(test_strides),      TEST(test_size_one),
                                       TEST(test_wrong_inputs), TEST(test_many_callers),
                                       TEST(test_bind_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

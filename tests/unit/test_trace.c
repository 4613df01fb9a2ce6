// Recordings of steps: what they hold, and that none makes a run fail.
#include "../support/exe.h"
#include "plan/trace.h"

static TorExecutable *small_net(void) {
    TorValue *x = IN(FLOATS("6 16")), *w = FROZEN(FLOATS("8 16"));
    TorValue *y = OP(g, linear, INS(x, w), NONE);
    OUTPUTS(softmaxed(y, 1));
    return compile();
}

static void run_once(TorExecutable *exe, Tensor *out) {
    TorCall *call;
    MUST(begin(exe, &call));
    tor_exe_outputs(call)[0].data = out->memory;
    MUST(tor_exe_run(call, NULL, false));
    tor_exe_end(&call);
}

static Tensor *result(void) {
    return new_tensor(TOR_float32, 2, (const int64_t[]){6, 8}, (const int64_t[]){8, 1});
}

static void test_what_it_holds(void **state) {
    (void)state;
    TorExecutable *exe = small_net();
    Tensor *out = result();
    run_once(exe, out);
    MUST(tor_trace_start());
    run_once(exe, out), run_once(exe, out);
    TorTrace *t;
    MUST(tor_trace_stop(&t));
    assert_int_equal(t->n_steps, 2);
    assert_int_equal(t->n_events, 4);
    assert_int_equal(t->lost, 0);
    assert_string_equal(t->steps[0].work, "linear");
    assert_string_equal(t->steps[0].shape, "float32[6, 8]");
    assert_true(t->steps[0].flops == 2 * 6 * 8 * 16);
    assert_true(t->steps[1].flops == 0 && t->steps[1].bytes == 2 * 6 * 8 * 4);
    for (size_t i = 0; i < 4; i++) {
        const TorTraceEvent *e = &t->events[i];
        assert_int_equal(e->step, i % 2);
        assert_int_equal(e->n_threads, 2);
        assert_true(e->seconds >= 0 && e->start >= 0 && e->start + e->seconds <= t->seconds);
        assert_true(i == 0 || e->start >= e[-1].start + e[-1].seconds);
    }
    tor_trace_destroy(&t);
    tor_exe_destroy(&exe);
}

// The trace outlives the plans that it tells of.
static void test_outlives_its_graph(void **state) {
    (void)state;
    TorExecutable *exe = small_net();
    MUST(tor_trace_start());
    run_once(exe, result());
    tor_exe_destroy(&exe);
    TorTrace *t;
    MUST(tor_trace_stop(&t));
    // The pack of the weight, then the two steps.
    assert_int_equal(t->n_events, 3);
    assert_string_equal(t->steps[0].work, "pack_linear");
    assert_string_equal(t->steps[0].shape, "float32[8, 16]");
    assert_true(t->steps[0].bytes == 2 * 8 * 16 * 4);
    assert_true(t->steps[0].plan != t->steps[1].plan);
    tor_trace_destroy(&t);
}

static void test_one_at_a_time(void **state) {
    (void)state;
    TorTrace *t;
    assert_int_equal(tor_trace_stop(&t), TOROID_INVALID);
    assert_null(t);
    MUST(tor_trace_start());
    assert_int_equal(tor_trace_start(), TOROID_INVALID);
    MUST(tor_trace_stop(&t));
    assert_int_equal(t->n_events, 0);
    tor_trace_destroy(&t);
}

// Whichever allocation fails, runs are right and what was not recorded is counted.
static void test_no_memory(void **state) {
    (void)state;
    TorExecutable *exe = small_net();
    Tensor *expected = result(), *out = result();
    run_once(exe, expected);
    int failures = 0;
    for (uint64_t n = 1;; n++) {
        tor_alloc_fail_at(n);
        ToroidStatus status = tor_trace_start();
        if (status != TOROID_OK) {
            assert_int_equal(status, TOROID_NO_MEMORY);
            failures++;
            continue;
        }
        memset(out->memory, 0, out->bytes);
        run_once(exe, out);
        tor_alloc_fail_at(0);
        assert_memory_equal(out->memory, expected->memory, out->bytes);
        TorTrace *t;
        MUST(tor_trace_stop(&t));
        bool whole = t->n_events == 2 && !t->lost;
        assert_true(whole || t->lost > 0);
        tor_trace_destroy(&t);
        if (whole) break;
        failures++;
    }
    assert_true(failures > 4);
    tor_exe_destroy(&exe);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_what_it_holds),
        TEST(test_outlives_its_graph),
        TEST(test_one_at_a_time),
        TEST(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

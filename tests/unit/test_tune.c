// The tuner: choices as text, problems as text, the loop with candidates that are slow, wrong or
// failing, and what the planner does with all of it.
#include <math.h>
#include <unistd.h>

#include "../support/exe.h"
#include "base/cpu.h"
#include "base/log.h"
#include "tune/families.h"
#include "tune/check.h"
#include "tune/choose.h"
#include "tune/results.h"
#include "tune/tuner.h"
#include "warnings.h"

static void switch_on(bool tuning) {
    TorTuneSettings s = tor_tune_settings();
    s.enabled = true, s.tuning = tuning;
    s.max_ms = 1, s.max_iterations = 5, s.rotating_bytes = 0;
    tor_tune_settings_set(&s);
    n_warnings = 0;
    tor_log_set_hook(hear, NULL);
}

static int switch_off(void **state) {
    TorTuneSettings s = tor_tune_settings();
    s.enabled = false, s.tuning = true;
    tor_tune_settings_set(&s);
    tor_log_set_hook(NULL, NULL);
    return finish(state);
}
#define TUNE_TEST(name) cmocka_unit_test_setup_teardown(name, begin_test, switch_off)

// ---------------------------------------------------------------- text

static void test_choices_as_text(void **state) {
    (void)state;
    const TorTunable *t = &tor_tunable_gemm;
    char text[TOR_TUNE_SOLUTION];
    TorTuneChoice choice = {0}, back;
    tor_choice_print(t, &choice, text, sizeof text);
    assert_string_equal(text, "Default");
    choice.knob[0] = 96, choice.knob[2] = 384;
    tor_choice_print(t, &choice, text, sizeof text);
    assert_string_equal(text, "mc=96;kc=384");
    choice.row = 1;
    tor_choice_print(t, &choice, text, sizeof text);
    assert_true(tor_choice_parse(t, text, &back));
    assert_memory_equal(&choice, &back, sizeof choice);
    static const char *const wrong[] = {"",
                                        "mc",
                                        "mc=",
                                        "mc=0",
                                        "mc=-3",
                                        "mc=1x",
                                        "mc=96;",
                                        ";mc=96",
                                        "qc=96",
                                        "default",
                                        "mc=9e9",
                                        "mc=96,k=1",
                                        "no_such_row",
                                        "mc=99999999999",
                                        "provider:",
                                        "provider:nobody"};
    for (size_t i = 0; i < TOR_COUNT_OF(wrong); i++)
        assert_false(tor_choice_parse(t, wrong[i], &back));
}

static const struct {
    const char *op, *params;
} rows[] = {
    {"gemm_f32", "m=33;n=50;k=70;a=70:1;packed=1;b=0:0;c=50;bias=1"},
    {"gemm_f32", "m=1;n=64;k=4096;a=4096:1;packed=1;b=0:0;c=64;bias=0"},
    {"gemm_f32", "m=9;n=50;k=30;a=1:9;packed=0;b=50:1;c=50;bias=0"},
    {"gemm_f32",
     "m=9;n=50;k=30;a=30:1;packed=0;b=1:30;c=50;bias=0;batch=2:3;ab=810:270;bb=1500:0;cb=1350:450"},
    {"gemm_f32",
     "m=20;n=40;k=30;a=30:1;packed=1;b=0:0;c=40;bias=1;epilogue=ff.f.1.0|gelu_erf.ffr0i0|"
     "add.ffo0r0i1;strides=0:40:1:0:40:1"},
    {"gemm_f32",
     "m=20;n=40;k=30;a=30:1;packed=1;b=0:0;c=40;bias=0;epilogue=f.f.1.0|mul.ffr0i0m0|relu.ffo0r0|"
     "#f0.35355338454246521;strides=0:40:1"},
    {"conv_f32",
     "b=2;c=10;o=40;groups=1;in=1:13:17;out=1:13:17;kernel=1:3:3;stride=1:1:1;padding=0:1:1;"
     "dilation=1:1:1;x=2210:1:2210:170:10;y=8840:1:8840:680:40;transposed=0;bias=1"},
    {"conv_f32",
     "b=1;c=70;o=70;groups=70;in=1:15:15;out=1:8:8;kernel=1:3:3;stride=1:2:2;padding=0:1:1;"
     "dilation=1:1:1;x=15750:1:15750:1050:70;y=4480:1:4480:560:70;transposed=0;bias=0;"
     "epilogue=ff.f.1.0|add.ffr0i0i1|relu.ffo0r0;strides=0:70:1:0:70:1"},
    {"conv_f32",
     "b=1;c=12;o=20;groups=2;in=1:5:6;out=1:10:12;kernel=1:2:2;stride=1:2:2;padding=0:0:0;"
     "dilation=1:1:1;x=360:30:360:6:1;y=2400:120:2400:12:1;transposed=1;bias=1"},
    {"conv_f32",
     "b=2;c=10;o=40;groups=1;in=1:13:17;out=1:13:17;kernel=1:3:3;stride=1:1:1;padding=0:1:1;"
     "dilation=1:1:1;x=2210:1:2210:170:10;y=8840:1:8840:680:40;transposed=0;bias=1;winograd=1"},
    {"attention_f32",
     "b=2;h=4:2;m=40;n=70;d=16:24;q=2560:640:16:1;k=2240:1120:16:1;v=3360:1680:24:1;"
     "out=3840:24:96:1;causal=0;nan_rows=0;scale_bits=1048576000"},
    {"attention_f32",
     "b=1;h=4:2;m=3;n=700;d=16:16;q=192:48:16:1;k=22400:11200:16:1;v=22400:11200:16:1;"
     "out=192:48:16:1;mask_f32=0:0:700:1;causal=0;nan_rows=0;scale_bits=1048576000"},
    {"attention_f32",
     "b=1;h=4:2;m=3;n=700;d=16:16;q=192:48:16:1;k=22400:11200:16:1;v=22400:11200:16:1;"
     "out=192:48:16:1;mask_f32=0:0:0:1;keep=0:0:700:1;fill_bits=-8388608;causal=0;nan_rows=1;"
     "scale_bits=1048576000"},
    {"map",
     "size=37:200;row=1;program=f.f.2.2|+max.fv0i0|/|sub.ffr0i0v0|exp.ffr1r0|+sum.fv1r1|/|"
     "div.ffo0r1v1;s=200:1;s=200:1"},
    {"map",
     "size=5:30:20;row=1;program=fl.f*.1.1|cast.lfr0i1|+sum.fv0r0|/|add.ffo0v0v0;s=600:1:30;"
     "s=0:20:1;s=30:1:0"},
    {"map",
     "size=7:30:40;row=0;program=ff.fb.1.0|mul.ffr0i0i1|copy.ffo0r0|gt.fbo1r0m0|#f0.25;s=1200:40:1;"
     "s=0:0:1;s=1200:1:30;s=1200:40:1"},
};

static void test_problems_as_text(void **state) {
    (void)state;
    TorArena *arena;
    MUST(tor_arena_create(&arena));
    for (size_t i = 0; i < TOR_COUNT_OF(rows); i++) {
        const TorTunable *t = tor_tunable_find(rows[i].op);
        void *problem;
        char text[TOR_TUNE_PARAMS];
        assert_non_null(t);
        MUST(t->parse(rows[i].params, arena, &problem));
        TorText again = tor_text_fixed(text, sizeof text);
        t->put(problem, &again);
        assert_string_equal(text, rows[i].params);
    }
    tor_arena_destroy(&arena);
}

// Whatever a file holds: refused, or a problem that runs.
static void test_rows_that_nobody_wrote(void **state) {
    (void)state;
    TorArena *arena;
    MUST(tor_arena_create(&arena));
    uint64_t random = 1;
    int refused = 0;
    for (int round = 0; round < 20000; round++) {
        size_t i = (size_t)round % TOR_COUNT_OF(rows);
        char text[TOR_TUNE_PARAMS];
        strcpy(text, rows[i].params);
        for (int edits = 0; edits < 1 + round % 3; edits++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            static const char letters[] = "0123456789=;:|.fiormv#+/-a";
            text[(random >> 33) % strlen(text)] = letters[(random >> 20) % (sizeof letters - 1)];
        }
        void *problem;
        refused += tor_tunable_find(rows[i].op)->parse(text, arena, &problem) != TOROID_OK;
    }
    assert_true(refused > 5000);
    tor_arena_destroy(&arena);
    TorTuneResult best;
    double ms;
    assert_int_equal(tor_tune_row("no_such_op", "m=1;threads=1", &best, &ms), TOROID_INVALID);
    assert_int_equal(tor_tune_row("gemm_f32", "m=1", &best, &ms), TOROID_INVALID);
    assert_int_equal(
        tor_tune_row("gemm_f32", "m=8;n=8;k=8;a=8:1;packed=0;b=8:1;c=8;bias=0;threads=4096", &best,
                     &ms),
        TOROID_UNSUPPORTED);
    assert_non_null(strstr(toroid_last_error(), "it is for 4096 threads; this process has "));
    assert_int_equal(tor_tune_row("gemm_f32",
                                  "m=999999999;n=999999999;k=999999999;a=1:1;packed=1;b=0:0;c=1;"
                                  "bias=0;threads=1",
                                  &best, &ms),
                     TOROID_INVALID);
}

// ---------------------------------------------------------------- choices

static void run_choice(const TorTunable *t, void *problem, const TorTuneMemory *m,
                       const TorTuneChoice *choice) {
    TorLaunch launch = {0};
    t->set(problem, choice);
    t->bind(problem, &launch);
    void *scratch = tor_alloc_zero(launch.scratch_bytes), *shared = tor_alloc(launch.shared_bytes);
    if (launch.shared) *launch.shared = shared;
    tor_tune_memory_reset(m);
    for (int i = 0; i < launch.n_calls; i++)
        launch.calls[i].run(launch.calls[i].args, 0, launch.calls[i].items, scratch);
    tor_free(scratch), tor_free(shared);
}

// Numbers from a file that was edited by hand may be slow, never wrong.
static void test_any_choice_is_right(void **state) {
    (void)state;
    TorTuneSettings settings = tor_tune_settings();
    uint64_t random = 7;
    for (size_t i = 0; i < TOR_COUNT_OF(rows); i++) {
        const TorTunable *t = tor_tunable_find(rows[i].op);
        TorArena *arena;
        void *problem;
        TorTuneMemory memory;
        TorTuneAnswer answer;
        MUST(tor_arena_create(&arena));
        MUST(t->parse(rows[i].params, arena, &problem));
        MUST(tor_tune_memory_create(&memory, t, problem, 0));
        run_choice(t, problem, &memory, &(TorTuneChoice){0});
        MUST(tor_tune_answer_keep(&answer, &memory));
        for (int round = 0; round < 300; round++) {
            TorTuneChoice choice = {0};
            for (int k = 0; k < TOR_TUNE_KNOBS; k++) {
                random = random * 6364136223846793005u + 1442695040888963407u;
                static const int64_t values[] = {0, 1, 2, 3, 7, 24, 33, 100, 4096, INT32_MAX};
                choice.knob[k] = values[(random >> 33) % TOR_COUNT_OF(values)];
            }
            choice.row = (int64_t)(random >> 40) % 9;
            run_choice(t, problem, &memory, &choice);
            MUST(tor_tune_answer_compare(&answer, &memory, &settings));
        }
        tor_tune_answer_free(&answer);
        tor_tune_memory_free(&memory);
        tor_arena_destroy(&arena);
    }
}

// ---------------------------------------------------------------- a family of the test's own

enum { COUNT = 4096 };

typedef struct {
    float *x, *y;
    int64_t way;
} Double;

static void run_double(const void *args, int64_t begin, int64_t end, void *scratch) {
    (void)scratch;
    const Double *d = args;
    int repeats = d->way == 0 ? 40 : d->way == 3 ? 400 : 1;
    for (volatile int r = 0; r < repeats; r++)
        for (int64_t i = begin; i < end; i++) d->y[i] = 2 * d->x[i];
    if (d->way == 2) d->y[begin + 5] += 1;  // fast and wrong
    if (d->way == 4) d->y[COUNT] = 1;       // fast, and beyond its operand
}

static uint64_t hash_double(const void *problem) {
    (void)problem;
    return 1;
}
static void put_double(const void *problem, TorText *t) {
    (void)problem;
    tor_text_add(t, "n=4096");
}
static void *copy_double(const void *problem, TorArena *arena) {
    Double *d = tor_arena_alloc(arena, sizeof *d);
    *d = *(const Double *)problem;
    return d;
}
static const int64_t *ways;
static int n_ways;
static void candidates_double(const void *problem, int threads, TorTuneList *list) {
    (void)problem, (void)threads;
    for (int i = 0; i < n_ways; i++) tor_tune_list_knob(list, 0, ways[i]);
}
static bool operands_double(void *problem, TorTuneOperands *list) {
    Double *d = problem;
    tor_tune_operand(list, &d->x, COUNT * sizeof(float), TOR_float32, false, true);
    tor_tune_operand(list, &d->y, COUNT * sizeof(float), TOR_float32, true, false);
    return true;
}
static void set_double(void *problem, const TorTuneChoice *choice) {
    ((Double *)problem)->way = choice->knob[0];
}
static void bind_double(void *problem, TorLaunch *launch) {
    tor_launch_region(launch, run_double, problem, COUNT);
}

static const TorTunable family = {
    .op = "double_f32",
    .knobs = {"way"},
    .hash = hash_double,
    .put = put_double,
    .copy = copy_double,
    .candidates = candidates_double,
    .operands = operands_double,
    .set = set_double,
    .bind = bind_double,
};

static TorTuned tuned_by(const int64_t *list, int count) {
    TorTuned tuned;
    TorTuneSettings s = tor_tune_settings();
    Double problem = {0};
    ways = list, n_ways = count;
    MUST(tor_tune_problem(&family, &problem, 1, &s, &tuned));
    assert_int_equal(tuned.tried, count);
    return tuned;
}

static void test_faster_candidate_wins(void **state) {
    (void)state;
    switch_on(true);
    TorTuned tuned = tuned_by((const int64_t[]){3, 1}, 2);
    assert_int_equal(tuned.choice.knob[0], 1);
    assert_true(tuned.ms < tuned.default_ms);
    assert_int_equal(n_warnings, 0);
    tuned = tuned_by((const int64_t[]){3}, 1);
    assert_int_equal(tuned.choice.knob[0], 0);
    assert_true(tuned.ms == tuned.default_ms);
}

static void test_wrong_candidate_is_rejected(void **state) {
    (void)state;
    switch_on(true);
    for (int64_t wrong = 2; wrong <= 4; wrong += 2) {
        n_warnings = 0;
        TorTuned tuned = tuned_by(&wrong, 1);
        assert_int_equal(tuned.choice.knob[0], 0);
        assert_int_equal(tuned.rejected, 1);
        assert_int_equal(n_warnings, 1);
        assert_non_null(strstr(warnings, "is rejected: operand 1, element"));
    }
    TorTuned tuned = tuned_by((const int64_t[]){2, 1}, 2);
    assert_int_equal(tuned.choice.knob[0], 1);
    assert_int_equal(tuned.rejected, 1);
}

static void test_operands(void **state) {
    (void)state;
    Double problem = {0};
    TorTuneMemory m;
    MUST(tor_tune_memory_create(&m, &family, &problem, 1 << 20));
    // Only what is read from memory rotates; all copies are filled and used.
    assert_true((size_t)m.copies * COUNT * sizeof(float) >= 1 << 20);
    const float *first = problem.x, *y = problem.y;
    for (int run = 1; run < m.copies; run++) {
        tor_tune_memory_point(&m, (uint64_t)run);
        assert_true(problem.x >= first + (int64_t)run * COUNT);
        assert_memory_equal(problem.x, first, COUNT * sizeof(float));
        assert_ptr_equal(problem.y, y);
    }
    tor_tune_memory_point(&m, (uint64_t)m.copies);
    assert_ptr_equal(problem.x, first);
    tor_tune_memory_free(&m);
}

// An allocation that fails is told, leaks nothing (the sanitizer's build tells) and the next try
// works.
static void test_memory_runs_out(void **state) {
    (void)state;
    TorTuneSettings s = tor_tune_settings();
    s.max_ms = 0, s.max_iterations = 1, s.rotating_bytes = 0;
    for (size_t i = 0; i < TOR_COUNT_OF(rows); i++) {
        ToroidStatus status = TOROID_NO_MEMORY;
        for (uint64_t n = 1; status != TOROID_OK; n++) {
            TorArena *arena;
            void *problem;
            TorTuned tuned;
            const TorTunable *t = tor_tunable_find(rows[i].op);
            MUST(tor_arena_create(&arena));
            MUST(t->parse(rows[i].params, arena, &problem));
            tor_alloc_fail_at(n);
            status = tor_tune_problem(t, problem, 1, &s, &tuned);
            tor_alloc_fail_at(0);
            assert_true(status == TOROID_OK || status == TOROID_NO_MEMORY);
            assert_true(n < 100);
            tor_arena_destroy(&arena);
        }
    }
}

// ---------------------------------------------------------------- the planner's side

static TorExecutable *linear_net(int64_t rows_of_x, uint32_t dynamic) {
    int64_t size[2] = {rows_of_x, 64};
    TorValue *x = input(randomise(new_tensor(TOR_float32, 2, size, NULL)), false, dynamic);
    TorValue *y = OP(g, linear, INS(x, FROZEN(FLOATS("96 64")), FROZEN(FLOATS("96"))), NONE);
    OUTPUTS(BINARY(add, UNARY(gelu_erf, y), number(g, 0.5)));
    return compile();
}

/// What the nets run with: rows for more threads than CPUs are refused.
static int threads(void) { return TOR_MIN(2, tor_cpu_count()); }

static void run_net(TorExecutable *exe) {
    Tensor *out[16];
    MUST(call_exe(exe, threads(), out));
}

static void test_results_of_a_run(void **state) {
    (void)state;
    switch_on(true);
    uint64_t before = tor_results_generation();
    TorExecutable *exe = linear_net(37, 0);
    run_net(exe);
    assert_int_equal(tor_results_generation(), before + 1);
    run_net(exe);
    assert_int_equal(tor_results_generation(), before + 1);
    tor_exe_destroy(&exe);
    start();
    exe = linear_net(37, 0);  // another graph, the same problem
    run_net(exe);
    assert_int_equal(tor_results_generation(), before + 1);
    tor_exe_destroy(&exe);
    // What was recorded can be tuned from its text alone.
    TorTuneResult best;
    double ms;
    char params[TOR_TUNE_PARAMS];
    snprintf(params, sizeof params,
             "m=37;n=96;k=64;a=64:1;packed=1;b=0:0;c=96;bias=1;epilogue=f.f.2.0|"
             "gelu_erf.ffr0i0|add.ffo0r0m0|#f0.5;strides=0:96:1;threads=%d",
             threads());
    MUST(tor_tune_row("gemm_f32", params, &best, &ms));
    TorTuneResult found;
    assert_true(tor_results_find("gemm_f32", best.params, &found));
    assert_true(best.mean_ms > 0 && ms >= best.mean_ms);
}

static void test_lengths_share_a_bucket(void **state) {
    (void)state;
    static const int64_t of[][2] = {{0, 0},   {1, 1},   {2, 2},   {3, 3},     {4, 4},
                                    {5, 6},   {7, 8},   {9, 12},  {13, 16},   {17, 24},
                                    {25, 32}, {33, 48}, {49, 64}, {768, 768}, {769, 1024}};
    for (size_t i = 0; i < TOR_COUNT_OF(of); i++)
        assert_int_equal(tor_tune_bucket(of[i][0]), of[i][1]);
    switch_on(true);
    uint64_t before = tor_results_generation();
    TorExecutable *exe = linear_net(100, 1);
    int64_t *rows_of_x = &given[0]->size[0];
    for (*rows_of_x = 97; *rows_of_x <= 100; ++*rows_of_x) run_net(exe);
    assert_int_equal(tor_results_generation(), before + 1);
    *rows_of_x = 96;
    run_net(exe);
    assert_int_equal(tor_results_generation(), before + 2);
    tor_exe_destroy(&exe);
}

static void test_unknown_solution(void **state) {
    (void)state;
    switch_on(false);
    TorTuneResult row = {.op = "gemm_f32", .solution = "tor_gemm_of_yesterday", .mean_ms = 1};
    snprintf(row.params, sizeof row.params,
             "m=21;n=96;k=64;a=64:1;packed=1;b=0:0;c=96;bias=1;epilogue=f.f.2.0|"
             "gelu_erf.ffr0i0|add.ffo0r0m0|#f0.5;strides=0:96:1;threads=%d",
             threads());
    MUST(tor_results_add(&row));
    for (int i = 0; i < 2; i++) {
        start();
        TorExecutable *exe = linear_net(21, 0);
        run_net(exe);
        tor_exe_destroy(&exe);
        assert_int_equal(n_warnings, 1);
        assert_non_null(strstr(warnings, "no solution tor_gemm_of_yesterday"));
        // A new result makes the planner ask again; it warns no second time.
        row.params[2] = (char)('5' + i);
        MUST(tor_results_add(&row));
    }
}

static int lines_of_list(void) {
    FILE *file = fopen("list.csv", "r");
    int lines = 0;
    for (int c; file && (c = fgetc(file)) != EOF;) lines += c == '\n';
    if (file) fclose(file);
    return lines;
}

static void test_a_list_that_was_removed_is_filled_again(void **state) {
    (void)state;
    MUST(tor_tune_set("UNTUNED_FILENAME", "list.csv"));
    switch_on(false);
    TorExecutable *exe = linear_net(31, 0);
    run_net(exe);
    // Known to have no result, and not noted yet.
    MUST(tor_tune_set("RECORD_UNTUNED", "1"));
    for (int round = 0; round < 3; round++) {
        assert_int_equal(lines_of_list(), 0);
        for (int i = 0; i < 2; i++) {
            run_net(exe);
            assert_int_equal(lines_of_list(), 1);
        }
        // Removed, or moved away and begun by another process.
        assert_int_equal(rename("list.csv", "done.csv"), 0);
        if (round == 1) fclose(fopen("list.csv", "w"));
    }
    MUST(tor_tune_set("RECORD_UNTUNED", "0"));
    tor_exe_destroy(&exe);
}

// A bind to sizes that were seen before allocates nothing.
static void test_binds_allocate_nothing(void **state) {
    (void)state;
    switch_on(false);
    TorExecutable *exe = linear_net(40, 1);
    Tensor *out = new_tensor(TOR_float32, 2, (const int64_t[]){40, 96}, NULL);
    uint64_t allocations = 0;
    for (int round = 0; round < 20; round++) {
        given[0]->size[0] = 20 + round;
        TorCall *call;
        if (round == 4) allocations = tor_alloc_count();
        MUST(begin(exe, &call));
        tor_exe_outputs(call)[0].data = out->memory;
        MUST(tor_exe_run(call, NULL, false));
        tor_exe_end(&call);
    }
    assert_int_equal(tor_alloc_count(), allocations);
    tor_exe_destroy(&exe);
}

int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    char folder[] = "/tmp/toroid_tune_XXXXXX";
    if (!mkdtemp(folder) || chdir(folder) != 0) return 1;
    const struct CMUnitTest tests[] = {TUNE_TEST(test_choices_as_text),
                                       TUNE_TEST(test_problems_as_text),
                                       TUNE_TEST(test_rows_that_nobody_wrote),
                                       TUNE_TEST(test_any_choice_is_right),
                                       TUNE_TEST(test_operands),
                                       TUNE_TEST(test_faster_candidate_wins),
                                       TUNE_TEST(test_wrong_candidate_is_rejected),
                                       TUNE_TEST(test_results_of_a_run),
                                       TUNE_TEST(test_lengths_share_a_bucket),
                                       TUNE_TEST(test_memory_runs_out),
                                       TUNE_TEST(test_unknown_solution),
                                       TUNE_TEST(test_a_list_that_was_removed_is_filled_again),
                                       TUNE_TEST(test_binds_allocate_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Products of another library as candidates: a provider of the test's own, which may be right,
// wrong, failing or slow, in the tuner's loop and in runs of whole graphs.
#include <math.h>
#include <unistd.h>

#include "../support/exe.h"
#include "base/log.h"
#include "tune/check.h"
#include "tune/families.h"
#include "tune/gemm_provided.h"
#include "tune/results.h"
#include "tune/tuner.h"
#include "tune/validators.h"
#include "warnings.h"

// ---------------------------------------------------------------- the provider

typedef enum { RIGHT, WRONG, FAILING, SILENT } Manner;

static struct {
    _Atomic int manner, calls;
    int inits, init_fails;
    _Atomic int strange;  // products that the header does not promise
} library;

static float element(const float *x, int64_t stride, bool transposed, int64_t i, int64_t j) {
    return transposed ? x[j * stride + i] : x[i * stride + j];
}

static ToroidStatus multiply(const ToroidProviderHost *host, void *user, const ToroidProduct *p) {
    library.calls++;
    if (library.manner == FAILING) return host->set_error(TOROID_FAILED, "the library is tired");
    if (library.manner == SILENT) return TOROID_UNSUPPORTED;
    if (library.manner == WRONG) {
        for (int64_t i = 0; i < p->m; i++)
            memset(p->c + i * p->c_stride, 0, (size_t)p->n * sizeof(float));
        return TOROID_OK;
    }
    int64_t a_least = p->a_transposed ? p->m : p->k, b_least = p->b_transposed ? p->k : p->n;
    if (p->m < 1 || p->n < 1 || p->k < 1 || p->a_stride < a_least || p->b_stride < b_least ||
        p->c_stride < p->n || user != &library || p->struct_bytes < sizeof *p)
        library.strange++;
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            float sum = 0;
            for (int64_t k = 0; k < p->k; k++)
                sum += element(p->a, p->a_stride, p->a_transposed, i, k) *
                       element(p->b, p->b_stride, p->b_transposed, k, j);
            p->c[i * p->c_stride + j] = sum;
        }
    return TOROID_OK;
}

static ToroidStatus init(const ToroidProviderHost *host, void *user) {
    (void)user;
    library.inits++;
    return library.init_fails ? host->set_error(TOROID_FAILED, "no library here") : TOROID_OK;
}

static const char *version(void *user) {
    (void)user;
    return "Test 1.2, any";
}

static const ToroidProvider provider = {
    sizeof provider, TOROID_PROVIDER_ABI, "test", multiply, init, version, &library};

// ---------------------------------------------------------------- the tests' frame

static void set_up(const char *name, const char *value) { MUST(tor_tune_set(name, value)); }

static int begin_provider(void **state) {
    set_up("PROVIDERS", "test");
    set_up("MAX_TUNING_DURATION_MS", "1");
    set_up("MAX_TUNING_ITERATIONS", "3");
    set_up("ROTATING_BUFFER_SIZE", "0");
    set_up("FILENAME", "");
    library.manner = RIGHT;
    library.calls = 0;
    library.strange = 0;
    n_warnings = 0, warnings[0] = 0;
    tor_log_set_hook(hear, NULL);
    TorValidator all[TOR_VALIDATORS];
    tor_validators(all);
    return begin_test(state);
}

static int end_provider(void **state) {
    assert_int_equal(library.strange, 0);
    set_up("ENABLED", "0");
    tor_log_set_hook(NULL, NULL);
    return finish(state);
}
#define PROVIDER_TEST(name) cmocka_unit_test_setup_teardown(name, begin_provider, end_provider)

/// The choice that says provider, with knobs.
static TorTuneChoice choice_of(const char *solution) {
    TorTuneChoice choice;
    assert_true(tor_choice_parse(&tor_tunable_gemm, solution, &choice));
    return choice;
}

// ---------------------------------------------------------------- problems

// a and b by rows and by columns, single rows and columns, batches that broadcast, epilogues with
// sums in place and in scratch.
static const char *const taken[] = {
    "m=33;n=50;k=70;a=70:1;packed=0;b=50:1;c=50;bias=0",
    "m=33;n=50;k=70;a=75:1;packed=0;b=1:71;c=60;bias=1",
    "m=9;n=50;k=30;a=1:9;packed=0;b=50:1;c=50;bias=0",
    "m=1;n=50;k=30;a=0:1;packed=0;b=1:30;c=50;bias=0",
    "m=40;n=1;k=30;a=30:1;packed=0;b=1:0;c=1;bias=0",
    "m=17;n=20;k=1;a=1:1;packed=0;b=20:1;c=20;bias=0",
    "m=9;n=50;k=30;a=30:1;packed=0;b=1:30;c=50;bias=0;batch=2:3;ab=810:270;bb=1500:0;cb=1350:450",
    "m=40;n=70;k=30;a=30:1;packed=0;b=70:1;c=70;bias=1;epilogue=ff.f.1.0|gelu_erf.ffr0i0|"
    "add.ffo0r0i1;strides=0:70:1:0:70:1",
    "m=70;n=40;k=30;a=30:1;packed=0;b=40:1;c=40;bias=0;epilogue=f.f.1.0|mul.ffr0i0m0|relu.ffo0r0|"
    "#f0.35355338454246521;strides=0:1:70",
    "m=20;n=30;k=40;a=40:1;packed=0;b=1:40;c=30;bias=0;batch=3;ab=800;bb=1200;cb=600;"
    "epilogue=f.f.1.0|relu.ffo0i0;strides=600:30:1",
};

static const char *const not_taken[] = {
    "m=33;n=50;k=70;a=70:1;packed=1;b=0:0;c=50;bias=1",    // in Toroid's own format
    "m=33;n=50;k=70;a=140:2;packed=0;b=50:1;c=50;bias=0",  // neither rows nor columns
    "m=33;n=50;k=70;a=0:1;packed=0;b=50:1;c=50;bias=0",    // one row for all
    "m=33;n=50;k=70;a=70:1;packed=0;b=3:1;c=50;bias=0",    // rows that overlap
    "m=0;n=50;k=70;a=70:1;packed=0;b=50:1;c=50;bias=0",
    "m=33;n=50;k=0;a=1:1;packed=0;b=50:1;c=50;bias=0",
};

typedef struct {
    TorArena *arena;
    void *problem;
    TorTuneMemory memory;
} Problem;

static void open_problem(Problem *p, const char *params) {
    MUST(tor_arena_create(&p->arena));
    MUST(tor_tunable_gemm.parse(params, p->arena, &p->problem));
    MUST(tor_tune_memory_create(&p->memory, &tor_tunable_gemm, p->problem, 0));
}

static void close_problem(Problem *p) {
    tor_tune_memory_free(&p->memory);
    tor_arena_destroy(&p->arena);
}

/// Runs in `ranges` ranges, each with scratch of its own and a guard behind that.
static void run_choice(Problem *p, const TorTuneChoice *choice, int ranges) {
    TorLaunch launch = {0};
    tor_tunable_gemm.set(p->problem, choice);
    tor_tunable_gemm.bind(p->problem, &launch);
    size_t bytes = launch.scratch_bytes;
    uint8_t *scratch = tor_alloc(bytes + 64), *shared = tor_alloc(launch.shared_bytes);
    if (launch.shared) *launch.shared = shared;
    tor_tune_memory_reset(&p->memory);
    for (int i = 0; i < launch.n_calls; i++)
        for (int r = 0; r < ranges; r++) {
            const TorRegionCall *call = &launch.calls[i];
            memset(scratch, 0xff, bytes + 64);
            call->run(call->args, call->items * r / ranges, call->items * (r + 1) / ranges,
                      scratch);
            for (int k = 0; k < 64; k++) assert_int_equal(scratch[bytes + (size_t)k], 0xff);
        }
    tor_free(scratch), tor_free(shared);
}

static void ask_anew(void) {
    set_up("PROVIDERS", "test");
    TorTuneSettings settings = tor_tune_settings();
    tor_providers_update(&settings);
    assert_true(tor_provider_is_usable(tor_provider_at(0)));
}

static void test_what_a_provider_is_asked(void **state) {
    (void)state;
    TorTuneSettings settings = tor_tune_settings();
    const char *const solutions[] = {
        "provider:test",           "provider:test;mc=8;nc=16",
        "provider:test;mc=24",     "provider:test;nc=32;kc=5",
        "provider:test;mc=1;nc=1", "provider:test;mc=2147483647;nc=2147483647"};
    for (size_t i = 0; i < TOR_COUNT_OF(taken) * TOR_COUNT_OF(solutions); i++) {
        Problem p;
        TorTuneAnswer answer, whole;
        TorTuneChoice choice = choice_of(solutions[i % TOR_COUNT_OF(solutions)]);
        open_problem(&p, taken[i / TOR_COUNT_OF(solutions)]);
        run_choice(&p, &(TorTuneChoice){0}, 1);
        assert_int_equal(library.calls, 0);
        MUST(tor_tune_answer_keep(&answer, &p.memory));
        run_choice(&p, &choice, 1);
        assert_true(library.calls > 0);
        MUST(tor_tune_answer_compare(&answer, &p.memory, &settings));
        // The same bits, however many threads share the blocks.
        MUST(tor_tune_answer_keep(&whole, &p.memory));
        run_choice(&p, &choice, 3);
        for (int k = 0; k < p.memory.operands.count; k++)
            if (whole.memory[k])
                assert_memory_equal(whole.memory[k], p.memory.memory[k], p.memory.stride[k]);
        // It fails in a run: the answer is right all the same, and it is not asked again.
        library.manner = FAILING;
        library.calls = 0;
        run_choice(&p, &choice, 1);
        MUST(tor_tune_answer_compare(&answer, &p.memory, &settings));
        assert_int_equal(library.calls, 1);
        run_choice(&p, &choice, 1);
        MUST(tor_tune_answer_compare(&answer, &p.memory, &settings));
        assert_int_equal(library.calls, 1);
        library.manner = RIGHT;
        library.calls = 0;
        ask_anew();
        tor_tune_answer_free(&answer);
        tor_tune_answer_free(&whole);
        close_problem(&p);
    }
}

static void test_what_a_provider_is_not_asked(void **state) {
    (void)state;
    for (size_t i = 0; i < TOR_COUNT_OF(not_taken); i++) {
        Problem p;
        TorTuneChoice choice = choice_of("provider:test;mc=8");
        TorTuneList list = {.count = 0};
        open_problem(&p, not_taken[i]);
        run_choice(&p, &choice, 1);
        tor_tunable_gemm.candidates(p.problem, 1, &list);
        for (int k = 0; k < list.count; k++) assert_true(list.choice[k].row < choice.row);
        assert_int_equal(library.calls, 0);
        close_problem(&p);
    }
}

// ---------------------------------------------------------------- tuning

/// Tunes a product; how many of the candidates were rejected.
static int rejected(const char *params) {
    Problem p;
    TorTuned tuned;
    TorTuneSettings s = tor_tune_settings();
    open_problem(&p, params);
    MUST(tor_tune_problem(&tor_tunable_gemm, p.problem, 2, &s, &tuned));
    close_problem(&p);
    return tuned.rejected;
}

static void test_candidates(void **state) {
    (void)state;
    assert_int_equal(rejected(taken[1]), 0);
    assert_int_equal(n_warnings, 0);
    assert_true(library.calls > 0);
    set_up("PROVIDERS", "");
    library.calls = 0;
    assert_int_equal(rejected(taken[1]), 0);
    assert_int_equal(library.calls, 0);  // off unless asked for
}

static void test_a_wrong_product_is_rejected(void **state) {
    (void)state;
    // What is slow is dropped before it is checked, so this one writes nothing but zeros, fast.
    library.manner = WRONG;
    assert_true(rejected("m=64;n=64;k=512;a=512:1;packed=0;b=64:1;c=64;bias=0") > 0);
    assert_non_null(strstr(warnings, "provider:test"));
    assert_non_null(strstr(warnings, "is rejected: operand 2, element 0 is 0, not "));
}

static void test_a_failing_call_is_reported_and_skipped(void **state) {
    (void)state;
    library.manner = FAILING;
    int count = rejected(taken[1]);
    assert_true(count > 0 && n_warnings == count && library.calls >= count);
    assert_non_null(strstr(warnings, "tuning gemm_f32: provider:test"));
    assert_non_null(strstr(warnings, "is rejected: the library is tired"));
    // It may do another product: only a run gives it up.
    assert_true(tor_provider_is_usable(tor_provider_at(0)));
    library.manner = SILENT;
    assert_int_equal(rejected(taken[1]), count);
    assert_non_null(strstr(warnings, "is rejected: it gave no reason (unsupported)"));
}

// ---------------------------------------------------------------- runs

/// A result for the product of product_net().
static void add_result(const char *solution, int m) {
    TorTuneResult row = {.op = "gemm_f32", .mean_ms = 1};
    snprintf(row.params, sizeof row.params,
             "m=%d;n=48;k=64;a=64:1;packed=0;b=48:1;c=48;bias=0;epilogue=f.f.1.0|relu.ffo0i0;"
             "strides=0:48:1;threads=2",
             m);
    strcpy(row.solution, solution);
    MUST(tor_results_add(&row));
}

static TorExecutable *product_net(int64_t m) {
    int64_t left[] = {m, 64}, right[] = {64, 48};
    TorValue *a = input(randomise(new_tensor(TOR_float32, 2, left, NULL)), false, 0);
    TorValue *b = input(randomise(new_tensor(TOR_float32, 2, right, NULL)), false, 0);
    OUTPUTS(UNARY(relu, OP(g, matmul, INS(a, b), NONE)));
    return compile();
}

static void run_net(TorExecutable *exe) {
    Tensor *out[16];
    MUST(call_exe(exe, 2, out));
    const float *a = given[0]->memory, *b = given[1]->memory, *c = out[0]->memory;
    for (int64_t i = 0; i < out[0]->size[0]; i++)
        for (int64_t j = 0; j < 48; j++) {
            double sum = 0;
            for (int64_t k = 0; k < 64; k++) sum += (double)a[i * 64 + k] * (double)b[k * 48 + j];
            assert_true(fabs((double)c[i * 48 + j] - TOR_MAX(sum, 0)) < 1e-4);
        }
}

static void test_a_run_with_a_provider(void **state) {
    (void)state;
    set_up("ENABLED", "1"), set_up("TUNING", "0");
    add_result("provider:test", 40);
    TorExecutable *exe = product_net(40);
    run_net(exe);
    assert_int_equal(library.calls, 1);
    run_net(exe);
    assert_int_equal(library.calls, 2);
    // Switched off, it is left alone at the next call.
    set_up("PROVIDERS", "");
    run_net(exe);
    assert_int_equal(library.calls, 2);
    ask_anew();
    run_net(exe);
    assert_int_equal(library.calls, 3);
    assert_int_equal(n_warnings, 0);
    tor_exe_destroy(&exe);
}

static void test_a_provider_that_fails_in_a_run(void **state) {
    (void)state;
    set_up("ENABLED", "1"), set_up("TUNING", "0");
    add_result("provider:test;mc=8", 44);
    TorExecutable *exe = product_net(44);
    run_net(exe);
    assert_int_equal(library.calls, 6);
    library.manner = FAILING;
    for (int i = 0; i < 3; i++) run_net(exe);
    assert_true(library.calls == 7 || library.calls == 8);  // both threads may have been at it
    assert_int_equal(n_warnings, 1);
    assert_string_equal(
        warnings, "provider test failed: the library is tired; Toroid's own kernels take over");
    library.manner = RIGHT;
    ask_anew();
    tor_exe_destroy(&exe);
}

static void test_unknown_providers(void **state) {
    (void)state;
    set_up("ENABLED", "1"), set_up("TUNING", "0");
    add_result("provider:nobody", 36);
    TorExecutable *exe = product_net(36);
    run_net(exe);
    run_net(exe);
    assert_int_equal(n_warnings, 1);
    assert_non_null(strstr(warnings, "gemm_f32 has no solution provider:nobody; Default is used"));
    assert_int_equal(library.calls, 0);
    tor_exe_destroy(&exe);
}

// ---------------------------------------------------------------- joining

static const char *validator(const char *key) {
    static TorValidator all[TOR_VALIDATORS];
    int n = tor_validators(all);
    for (int i = 0; i < n; i++)
        if (strcmp(all[i].key, key) == 0) return all[i].value;
    return NULL;
}

static void test_validators(void **state) {
    (void)state;
    assert_string_equal(validator("PROVIDER_TEST"), "Test 1.2, any");
    set_up("PROVIDERS", "");
    assert_null(validator("PROVIDER_TEST"));
}

static void test_providers_that_cannot_be_had(void **state) {
    (void)state;
    ToroidProvider late = provider;
    late.name = "late";
    library.init_fails = 1;
    MUST(tor_provider_add(&late));
    set_up("PROVIDERS", "late,test");
    int inits = library.inits;
    for (int i = 0; i < 3; i++) assert_null(validator("PROVIDER_LATE"));
    assert_int_equal(library.inits, inits + 1);
    assert_int_equal(n_warnings, 1);
    assert_string_equal(warnings, "provider late is left out: no library here");
    assert_non_null(validator("PROVIDER_TEST"));
    library.init_fails = 0;
    set_up("PROVIDERS", "late");
    assert_non_null(validator("PROVIDER_LATE"));
    assert_null(validator("PROVIDER_TEST"));
    set_up("PROVIDERS", "tst");
    assert_null(validator("PROVIDER_TST"));
    assert_string_equal(warnings,
                        "provider tst is left out: no folder of TOROID_BACKEND_PATH has "
                        "toroid_provider_tst.so; did you mean \"test\"?");
}

static void test_wrong_structs(void **state) {
    (void)state;
    static const struct {
        ToroidProvider provider;
        const char *complaint;
    } wrong[] = {
        {{sizeof provider, TOROID_PROVIDER_ABI, "test", multiply, NULL, NULL, NULL},
         "provider \"test\" is registered already"},
        {{sizeof provider, 7, "other", multiply, NULL, NULL, NULL},
         "ToroidProvider.abi is 7; this Toroid has providers of ABI 1"},
        {{16, TOROID_PROVIDER_ABI, "other", multiply, NULL, NULL, NULL},
         "ToroidProvider.struct_bytes is 16, expected sizeof(ToroidProvider)"},
        {{sizeof provider, TOROID_PROVIDER_ABI, "an other", multiply, NULL, NULL, NULL},
         "\"an other\" is no name of a provider"},
        {{sizeof provider, TOROID_PROVIDER_ABI, NULL, multiply, NULL, NULL, NULL},
         "\"\" is no name of a provider"},
        {{sizeof provider, TOROID_PROVIDER_ABI, "other", NULL, NULL, NULL, NULL},
         "provider \"other\": gemm_f32 is NULL"},
    };
    for (size_t i = 0; i < TOR_COUNT_OF(wrong); i++) {
        assert_int_equal(tor_provider_add(&wrong[i].provider), TOROID_INVALID);
        assert_string_equal(toroid_last_error(), wrong[i].complaint);
    }
    // Fields beyond what a shorter struct has are 0.
    ToroidProvider shorter = {offsetof(ToroidProvider, init),
                              TOROID_PROVIDER_ABI,
                              "shorter",
                              multiply,
                              init,
                              version,
                              NULL};
    MUST(tor_provider_add(&shorter));
    set_up("PROVIDERS", "shorter");
    int inits = library.inits;
    assert_string_equal(validator("PROVIDER_SHORTER"), "");
    assert_int_equal(library.inits, inits);
}

int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    char folder[] = "/tmp/toroid_providers_XXXXXX";
    if (!mkdtemp(folder) || chdir(folder) != 0) return 1;
    if (tor_provider_add(&provider) != TOROID_OK) return 1;
    const struct CMUnitTest tests[] = {PROVIDER_TEST(test_what_a_provider_is_asked),
                                       PROVIDER_TEST(test_what_a_provider_is_not_asked),
                                       PROVIDER_TEST(test_candidates),
                                       PROVIDER_TEST(test_a_wrong_product_is_rejected),
                                       PROVIDER_TEST(test_a_failing_call_is_reported_and_skipped),
                                       PROVIDER_TEST(test_a_run_with_a_provider),
                                       PROVIDER_TEST(test_a_provider_that_fails_in_a_run),
                                       PROVIDER_TEST(test_unknown_providers),
                                       PROVIDER_TEST(test_validators),
                                       PROVIDER_TEST(test_providers_that_cannot_be_had),
                                       PROVIDER_TEST(test_wrong_structs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

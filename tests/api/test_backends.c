// Backends by name: registering, resolving, listing, and what a backend may hand back.
#include "support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "toroid/backend.h"

/// The folder of plugins, for this user alone whatever the build folder's rights are.
static char folder[] = "/tmp/toroid_plugins_XXXXXX", plugin[80], loads[80];

static int make_folder(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return 1;
    snprintf(plugin, sizeof plugin, "%s/toroid_backend_loaded_once.so", folder);
    snprintf(loads, sizeof loads, "%s/loads", folder);
    FILE *from = fopen(PLUGIN, "rb"), *to = fopen(plugin, "wb");
    if (!from || !to) return 1;
    for (int c = fgetc(from); c != EOF; c = fgetc(from)) fputc(c, to);
    fclose(from);
    fclose(to);
    return chmod(plugin, 0755) || setenv("TOROID_BACKEND_PATH", folder, 1) ||
           setenv("TOROID_TEST_LOADS", loads, 1);
}

static int remove_folder(void **state) {
    (void)state;
    return unlink(plugin) || unlink(loads) || rmdir(folder);
}

/// relu of a row of 4.
static ToroidGraph *small_graph(int n_outputs) {
    ToroidGraph *g;
    ToroidValue *x, *y[2];
    OK(toroid_graph_create(&g));
    OK(toroid_graph_input(g, "x", TOROID_FLOAT32, 1, (ToroidSize[]){4}, false, &x));
    ToroidArg arg = toroid_tensor(x);
    OK(toroid_graph_call(g, "aten.relu.default", &arg, 1, &y[0], 1));
    y[1] = y[0];
    OK(toroid_graph_outputs(g, y, n_outputs));
    return g;
}

static void assert_relu(ToroidExecutable *e) {
    float x[] = {-1, 2, -3, 4}, y[4];
    ToroidTensor in = {.data = x, .dtype = TOROID_FLOAT32, .rank = 1, .size = {4}}, out = in;
    out.data = y;
    OK(toroid_run(e, &in, 1, &out, 1));
    assert_memory_equal(y, ((float[]){0, 2, 0, 4}), sizeof y);
}

static ToroidStatus delegate(const ToroidHost *host, void *user, ToroidExecutable **out,
                             ToroidGraph **graph, const ToroidOptions *options) {
    if (user) ++*(atomic_int *)user;
    return host->compile(out, graph, options);
}

#define BACKEND(...) \
    { sizeof(ToroidBackend), TOROID_BACKEND_ABI, __VA_ARGS__ }

static ToroidStatus compile_by(const char *name, ToroidExecutable **e) {
    const ToroidBackend *backend;
    ToroidStatus status = toroid_backend_resolve(&backend, name);
    if (status != TOROID_OK) return status;
    ToroidGraph *g = small_graph(1);
    status = toroid_backend_compile(backend, e, &g, NULL);
    assert_null(g);
    assert_true((status == TOROID_OK) == (*e != NULL));
    return status;
}

static void test_built_in(void **state) {
    (void)state;
    ToroidExecutable *e;
    OK(compile_by("toroid", &e));
    assert_string_equal(toroid_executable_backend(e), "toroid");
    assert_relu(e);
    toroid_executable_destroy(&e);
    ToroidGraph *g = small_graph(1);
    OK(toroid_compile(&e, &g, NULL));
    assert_string_equal(toroid_executable_backend(e), "toroid");
    toroid_executable_destroy(&e);
    assert_string_equal(toroid_executable_backend(NULL), "toroid");
}

static void test_registered(void **state) {
    (void)state;
    atomic_int calls = 0;
    char name[] = "of-a.Test_1";
    ToroidBackend backend = BACKEND(name, delegate, NULL, NULL, &calls);
    OK(toroid_backend_register(&backend));
    FAILS(TOROID_INVALID, "backend \"of-a.Test_1\" is registered already",
          toroid_backend_register(&backend));
    // The library has copies.
    memset(name, 'x', 3);
    ToroidExecutable *e;
    OK(compile_by("of-a.Test_1", &e));
    assert_int_equal(calls, 1);
    assert_string_equal(toroid_executable_backend(e), "of-a.Test_1");
    assert_relu(e);
    toroid_executable_destroy(&e);
    ToroidBackend again = BACKEND("toroid", delegate, NULL, NULL, NULL);
    FAILS(TOROID_INVALID, "\"toroid\" is registered already", toroid_backend_register(&again));
}

static void test_wrong_structs(void **state) {
    (void)state;
    ToroidBackend b = BACKEND("wrong", delegate, NULL, NULL, NULL);
    FAILS(TOROID_INVALID, "backend is NULL", toroid_backend_register(NULL));
    b.abi = TOROID_BACKEND_ABI + 1;
    FAILS(TOROID_INVALID, "ToroidBackend.abi is 2; this Toroid has backends of ABI 1",
          toroid_backend_register(&b));
    b.abi = TOROID_BACKEND_ABI;
    b.struct_bytes = offsetof(ToroidBackend, compile);
    FAILS(TOROID_INVALID, "struct_bytes", toroid_backend_register(&b));
    b.struct_bytes = sizeof b;
    b.compile = NULL;
    FAILS(TOROID_INVALID, "compile is NULL", toroid_backend_register(&b));
    b.compile = delegate;
    char long_name[65] = {0};
    memset(long_name, 'n', 64);
    const char *const names[] = {NULL, "", "a/b", "a b", ".hidden", "a(b)", "\xc3\xa4", long_name};
    for (int i = 0; i < COUNT(names); i++) {
        b.name = names[i];
        FAILS(TOROID_INVALID, "is no name of a backend", toroid_backend_register(&b));
    }
    long_name[63] = 0;
    b.name = long_name;
    OK(toroid_backend_register(&b));
}

static ToroidStatus failing_hook(const ToroidHost *host, void *user) {
    return host->set_error(TOROID_FAILED, user);
}

// A struct of an older header has no fields beyond `compile`; one of a newer has more.
static void test_shorter_and_longer_structs(void **state) {
    (void)state;
    ToroidBackend old = BACKEND("older", delegate, (const char *const *)1, failing_hook, (void *)1);
    old.struct_bytes = offsetof(ToroidBackend, compile) + sizeof old.compile;
    OK(toroid_backend_register(&old));
    struct {
        ToroidBackend known;
        char unknown[200];
    } newer = {.known = BACKEND("newer", delegate, NULL, NULL, NULL)};
    newer.known.struct_bytes = sizeof newer;
    memset(newer.unknown, 0xff, sizeof newer.unknown);
    OK(toroid_backend_register(&newer.known));
    for (int i = 0; i < 2; i++) {
        ToroidExecutable *e;
        // The older one's count of calls is not read: it would be an address of 1.
        OK(compile_by(i ? "older" : "newer", &e));
        assert_relu(e);
        toroid_executable_destroy(&e);
    }
}

static void test_unknown_names(void **state) {
    (void)state;
    const ToroidBackend *b = (const ToroidBackend *)1;
    FAILS(TOROID_INVALID, "there is no backend \"toriod\"; did you mean \"toroid\"?",
          toroid_backend_resolve(&b, "toriod"));
    assert_null(b);
    FAILS(TOROID_INVALID, "did you mean \"toroid_debug\"",
          toroid_backend_resolve(&b, "Toroid_debg"));
    FAILS(TOROID_INVALID, "known are ",
          toroid_backend_resolve(&b, "qqqqqqqqqqqqqqqqqqqqqqqqqqqqqq"));
    FAILS(TOROID_INVALID, "\"toroid\", \"toroid_debug\", \"toroid_reference\"",
          toroid_backend_resolve(&b, "?"));
    char endless[2000];
    memset(endless, 'x', sizeof endless - 1);
    endless[sizeof endless - 1] = 0;
    FAILS(TOROID_INVALID, "there is no backend \"xxx", toroid_backend_resolve(&b, endless));
    FAILS(TOROID_INVALID, "there is no backend \"\"", toroid_backend_resolve(&b, ""));
    FAILS(TOROID_INVALID, "an argument is NULL", toroid_backend_resolve(&b, NULL));
    FAILS(TOROID_INVALID, "an argument is NULL", toroid_backend_resolve(NULL, "toroid"));
}

static bool listed(const char *name, const char *const *exclude_tags) {
    char **names;
    bool found = false;
    OK(toroid_backend_list(exclude_tags, &names));
    for (int i = 0; names[i]; i++) {
        found |= !strcmp(names[i], name);
        assert_true(i == 0 || strcmp(names[i - 1], names[i]) < 0);
    }
    toroid_names_free(names);
    return found;
}

static void test_list_before_loading(void **state) {
    (void)state;
    assert_true(listed("loaded_once", NULL));
    assert_int_equal(access(loads, F_OK), -1);
}

static void test_list(void **state) {
    (void)state;
    const char *const tags[][3] = {{"fast"}, {"fast", "experimental"}, {"debug"}};
    const ToroidBackend b[] = {
        BACKEND("z_fast", delegate, tags[0], NULL, NULL),
        BACKEND("a_experiment", delegate, tags[1], NULL, NULL),
        BACKEND("m_debug", delegate, tags[2], NULL, NULL),
    };
    for (int i = 0; i < 3; i++) OK(toroid_backend_register(&b[i]));
    const char *const none[] = {NULL}, *const fast[] = {"slow", "fast", NULL};
    const bool expected[3][3] = {{true, false, false}, {true, true, true}, {false, false, true}};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(listed(b[i].name, NULL), expected[0][i]);
        assert_int_equal(listed(b[i].name, none), expected[1][i]);
        assert_int_equal(listed(b[i].name, fast), expected[2][i]);
    }
    assert_true(listed("toroid", NULL));
    assert_true(!listed("toroid_debug", NULL) && listed("toroid_debug", none));
    assert_true(!listed("toroid_reference", NULL) && listed("toroid_reference", none));
    FAILS(TOROID_INVALID, "names is NULL", toroid_backend_list(NULL, NULL));
    toroid_names_free(NULL);
}

// ---------------------------------------------------------------- hooks

static ToroidStatus counting_hook(const ToroidHost *host, void *user) {
    assert_true(host->abi == TOROID_BACKEND_ABI && host->struct_bytes == sizeof *host);
    ++*(int *)user;
    return TOROID_OK;
}
static ToroidStatus silent_hook(const ToroidHost *host, void *user) {
    (void)host, (void)user;
    return TOROID_FAILED;
}

static void test_hooks(void **state) {
    (void)state;
    static int count;
    const ToroidBackend counted = BACKEND("counted", delegate, NULL, counting_hook, &count);
    const ToroidBackend failing = BACKEND("failing", delegate, NULL, failing_hook, "no device");
    const ToroidBackend silent = BACKEND("silent", delegate, NULL, silent_hook, NULL);
    OK(toroid_backend_register(&counted));
    OK(toroid_backend_register(&failing));
    OK(toroid_backend_register(&silent));
    assert_int_equal(count, 0);
    const ToroidBackend *b;
    for (int i = 1; i <= 3; i++) {
        OK(toroid_backend_resolve(&b, "counted"));
        assert_int_equal(count, i);
    }
    OK(toroid_backend_init(b));
    assert_int_equal(count, 4);
    ToroidGraph *g = small_graph(1);
    ToroidExecutable *e;
    OK(toroid_backend_compile(b, &e, &g, NULL));
    assert_int_equal(count, 5);  // by delegate(), not by the hook
    toroid_executable_destroy(&e);
    FAILS(TOROID_FAILED, "backend \"failing\": no device", toroid_backend_resolve(&b, "failing"));
    assert_null(b);
    FAILS(TOROID_FAILED, "backend \"silent\": its init hook gave no reason",
          toroid_backend_resolve(&b, "silent"));
    FAILS(TOROID_INVALID, "backend is NULL", toroid_backend_init(NULL));
}

// ---------------------------------------------------------------- what a backend hands back

static ToroidStatus refuse(const ToroidHost *host, void *user, ToroidExecutable **out,
                           ToroidGraph **graph, const ToroidOptions *options) {
    (void)user, (void)out, (void)graph, (void)options;
    return host->set_error(TOROID_UNSUPPORTED, "no relu here");
}
static ToroidStatus make_nothing(const ToroidHost *host, void *user, ToroidExecutable **out,
                                 ToroidGraph **graph, const ToroidOptions *options) {
    (void)host, (void)user, (void)out, (void)graph, (void)options;
    return TOROID_OK;
}
static ToroidStatus no_status(const ToroidHost *host, void *user, ToroidExecutable **out,
                              ToroidGraph **graph, const ToroidOptions *options) {
    (void)host, (void)user, (void)out, (void)graph, (void)options;
    return (ToroidStatus)77;
}
/// An executable, and an error all the same.
static ToroidStatus half_done(const ToroidHost *host, void *user, ToroidExecutable **out,
                              ToroidGraph **graph, const ToroidOptions *options) {
    (void)user;
    OK(host->compile(out, graph, options));
    return TOROID_FAILED;
}

/// Of a graph of its own, with tensors like `user` says.
typedef struct {
    int n_inputs, n_outputs, rank;
    ToroidDtype dtype;
} Shape;
static ToroidStatus another(const ToroidHost *host, void *user, ToroidExecutable **out,
                            ToroidGraph **graph, const ToroidOptions *options) {
    const Shape *shape = user;
    ToroidGraph *g;
    ToroidValue *x[2], *y;
    OK(host->graph_create(&g));
    for (int i = 0; i < shape->n_inputs; i++)
        OK(host->graph_input(g, "x", shape->dtype, shape->rank, (ToroidSize[]){4, 4}, false,
                             &x[i]));
    ToroidArg arg = toroid_tensor(x[0]);
    OK(host->graph_call(g, "aten.relu.default", &arg, 1, &y, 1));
    OK(host->graph_outputs(g, (ToroidValue *[]){y, y}, shape->n_outputs));
    host->graph_destroy(graph);
    return host->compile(out, &g, options);
}

static void test_wrong_results(void **state) {
    (void)state;
    static Shape right = {1, 1, 1, TOROID_FLOAT32}, outputs = {1, 2, 1, TOROID_FLOAT32},
                 inputs = {2, 1, 1, TOROID_FLOAT32}, rank = {1, 1, 2, TOROID_FLOAT32},
                 dtype = {1, 1, 1, TOROID_FLOAT64};
    const struct {
        ToroidBackend backend;
        ToroidStatus status;
        const char *message;
    } rows[] = {
        {BACKEND("refuses", refuse, NULL, NULL, NULL), TOROID_UNSUPPORTED,
         "backend \"refuses\": no relu here"},
        {BACKEND("nothing", make_nothing, NULL, NULL, NULL), TOROID_FAILED,
         "its compile function made no executable"},
        {BACKEND("no_status", no_status, NULL, NULL, NULL), TOROID_FAILED,
         "its compile function returned 77, which is no status"},
        {BACKEND("half_done", half_done, NULL, NULL, NULL), TOROID_FAILED,
         "its compile function gave no reason"},
        {BACKEND("outputs", another, NULL, NULL, &outputs), TOROID_INVALID,
         "backend \"outputs\": it made an executable with 2 outputs, expected 1"},
        {BACKEND("inputs", another, NULL, NULL, &inputs), TOROID_INVALID, "2 inputs, expected 1"},
        {BACKEND("rank", another, NULL, NULL, &rank), TOROID_INVALID,
         "input 0 is float32 of rank 2, expected float32 of rank 1"},
        {BACKEND("dtype", another, NULL, NULL, &dtype), TOROID_INVALID,
         "input 0 is float64 of rank 1"},
        {BACKEND("right", another, NULL, NULL, &right), TOROID_OK, ""},
    };
    for (int i = 0; i < COUNT(rows); i++) {
        OK(toroid_backend_register(&rows[i].backend));
        ToroidExecutable *e = NULL;
        if (rows[i].status != TOROID_OK) {
            FAILS(rows[i].status, rows[i].message, compile_by(rows[i].backend.name, &e));
            continue;
        }
        OK(compile_by(rows[i].backend.name, &e));
        assert_relu(e);
        toroid_executable_destroy(&e);
    }
}

// ---------------------------------------------------------------- compositions

/// Notes in `user` that it was asked, and how many threads it was told to use.
typedef struct {
    int asked, threads, hooks;
    ToroidStatus status;
} Member;
static ToroidStatus member(const ToroidHost *host, void *user, ToroidExecutable **out,
                           ToroidGraph **graph, const ToroidOptions *options) {
    Member *m = user;
    m->asked++;
    m->threads = options ? options->threads : -1;
    if (m->status != TOROID_OK) return host->set_error(m->status, "not this one");
    return host->compile(out, graph, options);
}
static ToroidStatus member_hook(const ToroidHost *host, void *user) {
    Member *m = user;
    m->hooks++;
    if (m->status == TOROID_NO_MEMORY) return host->set_error(TOROID_FAILED, "no device");
    return TOROID_OK;
}

static void test_compositions(void **state) {
    (void)state;
    static Member m[] = {{.status = TOROID_UNSUPPORTED},
                         {.status = TOROID_FAILED},
                         {.status = TOROID_OK},
                         {.status = TOROID_NO_MEMORY}};
    const char *const names[] = {"refusing", "erring", "taking", "no_device"};
    for (int i = 0; i < COUNT(names); i++) {
        ToroidBackend backend = BACKEND(names[i], member, NULL, member_hook, &m[i]);
        OK(toroid_backend_register(&backend));
    }
    const ToroidBackend *all, *same, *two, *refusing, *failing;
    OK(toroid_backend_compose(&all, (const char *const[]){"refusing", "erring", "taking", "toroid"},
                              4));
    assert_string_equal(all->name, "compose(refusing, erring, taking, toroid)");
    assert_true(m[0].hooks == 1 && m[1].hooks == 1 && m[2].hooks == 1 && m[0].asked == 0);
    OK(toroid_backend_init(all));
    assert_true(m[0].hooks == 2 && m[1].hooks == 2 && m[2].hooks == 2);

    for (int i = 0; i < 3; i++) {
        // Per graph; each member's graph is whole.
        ToroidGraph *g = small_graph(1);
        ToroidExecutable *e;
        ToroidOptions options = {.struct_bytes = sizeof options, .threads = 3};
        OK(toroid_backend_compile(all, &e, &g, &options));
        assert_string_equal(toroid_executable_backend(e), "taking");
        assert_relu(e);
        toroid_executable_destroy(&e);
        for (int k = 0; k < 3; k++) assert_true(m[k].asked == i + 1 && m[k].threads == 3);
    }

    OK(toroid_backend_compose(&same,
                              (const char *const[]){"refusing", "erring", "taking", "toroid"}, 4));
    assert_ptr_equal(all, same);
    OK(toroid_backend_compose(&two, (const char *const[]){"refusing", "erring"}, 2));
    OK(toroid_backend_compose(&refusing, (const char *const[]){"refusing", "refusing"}, 2));
    ToroidGraph *g = small_graph(1);
    ToroidExecutable *e;
    FAILS(TOROID_FAILED,
          "backend \"compose(refusing, erring)\": backend \"refusing\": not this one; "
          "backend \"erring\": not this one",
          toroid_backend_compile(two, &e, &g, NULL));
    assert_true(!g && !e);
    g = small_graph(1);
    FAILS(TOROID_UNSUPPORTED, "not this one", toroid_backend_compile(refusing, &e, &g, NULL));

    FAILS(TOROID_FAILED, "backend \"no_device\": no device",
          toroid_backend_compose(&failing, (const char *const[]){"toroid", "no_device"}, 2));
    assert_null(failing);
    FAILS(TOROID_INVALID, "did you mean \"taking\"",
          toroid_backend_compose(&failing, (const char *const[]){"toroid", "takng"}, 2));
    FAILS(TOROID_INVALID, "name 1 is NULL",
          toroid_backend_compose(&failing, (const char *const[]){"toroid", NULL}, 2));
    FAILS(TOROID_INVALID, "expected at least one name", toroid_backend_compose(&failing, names, 0));

    // A hook that fails later fails the whole.
    m[2].status = TOROID_NO_MEMORY;
    FAILS(TOROID_FAILED, "backend \"taking\": no device", toroid_backend_init(all));

    // What remains when memory runs out anywhere is an error, or another member's answer.
    m[2].status = TOROID_OK;
    ToroidStatus status = TOROID_NO_MEMORY;
    int failures = 0;
    for (uint64_t n = 1; n < 200; n++) {
        g = small_graph(1);
        tor_alloc_fail_at(n);
        status = toroid_backend_compile(all, &e, &g, NULL);
        tor_alloc_fail_at(0);
        assert_true(!g && (status == TOROID_OK) == (e != NULL));
        if (e) assert_relu(e);
        failures += status != TOROID_OK;
        toroid_executable_destroy(&e);
    }
    assert_true(failures > 5);
    status = TOROID_NO_MEMORY;
    for (uint64_t n = 1; status != TOROID_OK; n++) {
        tor_alloc_fail_at(n);
        status = toroid_backend_compose(&same, (const char *const[]){"taking", "erring"}, 2);
        tor_alloc_fail_at(0);
        assert_true(status == TOROID_OK || status == TOROID_NO_MEMORY);
    }
}

static void test_wrong_arguments(void **state) {
    (void)state;
    const ToroidBackend *b;
    ToroidExecutable *e;
    OK(toroid_backend_resolve(&b, "toroid"));
    ToroidGraph *g = small_graph(1);
    FAILS(TOROID_INVALID, "an argument is NULL", toroid_backend_compile(NULL, &e, &g, NULL));
    assert_true(!g && !e);
    FAILS(TOROID_INVALID, "an argument is NULL", toroid_backend_compile(b, &e, &g, NULL));
    FAILS(TOROID_INVALID, "an argument is NULL", toroid_backend_compile(b, &e, NULL, NULL));
    OK(toroid_graph_create(&g));
    FAILS(TOROID_INVALID, "no outputs set", toroid_backend_compile(b, &e, &g, NULL));
    assert_true(!g && !e);
    g = small_graph(1);
    ToroidOptions options = {.struct_bytes = sizeof options, .threads = -1};
    FAILS(TOROID_INVALID, "ToroidOptions.threads is -1",
          toroid_backend_compile(b, &e, &g, &options));
}

static void test_no_memory(void **state) {
    (void)state;
    const ToroidBackend b =
        BACKEND("scarce", delegate, (const char *const[]){"t", NULL}, NULL, NULL);
    ToroidStatus status = TOROID_NO_MEMORY;
    for (uint64_t n = 1; status != TOROID_OK; n++) {
        tor_alloc_fail_at(n);
        status = toroid_backend_register(&b);
        tor_alloc_fail_at(0);
        if (status != TOROID_OK) assert_int_equal(status, TOROID_NO_MEMORY);
    }
    status = TOROID_NO_MEMORY;
    for (uint64_t n = 1; status != TOROID_OK; n++) {
        char **names;
        tor_alloc_fail_at(n);
        status = toroid_backend_list(NULL, &names);
        tor_alloc_fail_at(0);
        assert_true((status == TOROID_OK) == (names != NULL));
        toroid_names_free(names);
    }
    status = TOROID_NO_MEMORY;
    const ToroidBackend *found;
    OK(toroid_backend_resolve(&found, "scarce"));
    for (uint64_t n = 1; status != TOROID_OK; n++) {
        ToroidGraph *g = small_graph(1);
        ToroidExecutable *e;
        tor_alloc_fail_at(n);
        status = toroid_backend_compile(found, &e, &g, NULL);
        tor_alloc_fail_at(0);
        if (status != TOROID_OK) assert_true(status == TOROID_NO_MEMORY && !e && !g);
        toroid_executable_destroy(&e);
    }
}

// ---------------------------------------------------------------- threads

enum { THREADS = 16 };

static ToroidStatus threaded_hook(const ToroidHost *host, void *user) {
    (void)host;
    ++*(atomic_int *)user;
    return TOROID_OK;
}

static void *worker(void *argument) {
    static atomic_int hooks;
    int number = (int)(intptr_t)argument;
    intptr_t failures = 0;
    for (int i = 0; i < 20; i++) {
        char own[32], shared[32];
        snprintf(own, sizeof own, "zz_own_%d_%d", number, i);
        snprintf(shared, sizeof shared, "zz_shared_%d", i);
        const ToroidBackend *b, mine = BACKEND(own, delegate, NULL, threaded_hook, &hooks),
                                ours = BACKEND(shared, delegate, NULL, threaded_hook, &hooks);
        failures += toroid_backend_register(&mine) != TOROID_OK;
        // One of the threads is first.
        (void)toroid_backend_register(&ours);
        failures += toroid_backend_resolve(&b, own) != TOROID_OK || strcmp(b->name, own) != 0;
        failures += toroid_backend_resolve(&b, shared) != TOROID_OK || strcmp(b->name, shared) != 0;
        failures += toroid_backend_resolve(&b, "loaded_once") != TOROID_OK;
        failures += toroid_backend_resolve(&b, "no_such_backend") != TOROID_INVALID;
        const char *const two[] = {shared, "toroid"};
        failures += toroid_backend_compose(&b, two, 2) != TOROID_OK;
        char **names;
        failures += toroid_backend_list(NULL, &names) != TOROID_OK;
        toroid_names_free(names);
    }
    return (void *)failures;
}

static void test_threads(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, worker, (void *)i), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failures;
        pthread_join(threads[i], &failures);
        assert_int_equal((intptr_t)failures, 0);
    }
    struct stat s;
    assert_int_equal(stat(loads, &s), 0);
    assert_int_equal(s.st_size, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list_before_loading),
        cmocka_unit_test(test_threads),  // what is built in and the plugin are new to it
        cmocka_unit_test(test_built_in),
        cmocka_unit_test(test_registered),
        cmocka_unit_test(test_wrong_structs),
        cmocka_unit_test(test_shorter_and_longer_structs),
        cmocka_unit_test(test_unknown_names),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_hooks),
        cmocka_unit_test(test_wrong_results),
        cmocka_unit_test(test_compositions),
        cmocka_unit_test(test_wrong_arguments),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

// The tuner's switches by name and by environment, names of files, and the untuned list.
#include "tune_process.h"

#include "tune/results.h"
#include "tune/untuned.h"

enum { PROCESSES = 4, OPERATORS = 60 };

static void set(const char *name, const char *value) {
    CHECK(tor_tune_set(name, value) == TOROID_OK);
}

static void expect(const char *name, const char *want) {
    char text[TOR_TUNE_PATH];
    CHECK(tor_tune_get(name, text, sizeof text) == TOROID_OK);
    if (strcmp(text, want) != 0) fprintf(stderr, "%s is %s, expected %s\n", name, text, want);
    CHECK(strcmp(text, want) == 0);
}

/// PyTorch's, but for the rotating buffer (-1: by the cache) and the name's ordinal.
static const char *const defaults[][2] = {
    {"ENABLED", "0"},
    {"TUNING", "1"},
    {"RECORD_UNTUNED", "0"},
    {"VERBOSE", "0"},
    {"VERBOSE_FILENAME", "err"},
    {"FILENAME", FILE_NAME},
    {"UNTUNED_FILENAME", "tunableop_untuned.csv"},
    {"NUMERICAL_CHECK", "off"},
    {"MAX_TUNING_DURATION_MS", "30"},
    {"MAX_TUNING_ITERATIONS", "100"},
    {"MAX_WARMUP_DURATION_MS", "0"},
    {"MAX_WARMUP_ITERATIONS", "0"},
    {"ICACHE_FLUSH_ENABLED", "1"},
    {"ROTATING_BUFFER_SIZE", "-1"},
    {"PROVIDERS", ""},
};

static void by_name(int number) {
    (void)number;
    for (size_t i = 0; i < TOR_COUNT_OF(defaults); i++) expect(defaults[i][0], defaults[i][1]);
    set("ENABLED", "1");
    set("TOROID_TUNABLEOP_MAX_TUNING_DURATION_MS", "12.5");
    set("ROTATING_BUFFER_SIZE", "3");
    set("NUMERICAL_CHECK", "1e-4_0.5");
    TorTuneSettings s = tor_tune_settings();
    CHECK(s.enabled && s.max_ms == 12.5 && s.rotating_bytes == 3 << 20);
    CHECK(s.check && s.atol == 1e-4 && s.rtol == 0.5);
    expect("NUMERICAL_CHECK", "0.0001_0.5");
    set("NUMERICAL_CHECK", "off");
    CHECK(!tor_tune_settings().check);
    set("PROVIDERS", "cblas,my-own.2");
    expect("PROVIDERS", "cblas,my-own.2");
    set("PROVIDERS", "");
    static const char *const wrong[][2] = {
        {"ENABLED", "yes"},
        {"VERBOSE", "4"},
        {"VERBOSE", "1.5"},
        {"MAX_TUNING_DURATION_MS", "-1"},
        {"MAX_TUNING_DURATION_MS", "nan"},
        {"MAX_TUNING_ITERATIONS", "1e12"},
        {"NUMERICAL_CHECK", "1e-5"},
        {"NUMERICAL_CHECK", "1_x"},
        {"ROTATING_BUFFER_SIZE", ""},
        {"PROVIDERS", ","},
        {"PROVIDERS", "cblas,"},
        {"PROVIDERS", "cblas onednn"},
        {"PROVIDERS", "./cblas"},
        {"NOTHING", "1"},
    };
    for (size_t i = 0; i < TOR_COUNT_OF(wrong); i++)
        CHECK(tor_tune_set(wrong[i][0], wrong[i][1]) == TOROID_INVALID);
    CHECK(strcmp(toroid_last_error(), "there is no setting \"NOTHING\" of the tuner") == 0);
    CHECK(tor_tune_settings().verbose == 0);
}
static void test_defaults_and_names(void **state) {
    (void)state;
    in_process(by_name, 0);
}

static void environment_wins(int number) {
    (void)number;
    set("ENABLED", "1");
    setenv("TOROID_TUNABLEOP_ENABLED", "0", 1);
    CHECK(!tor_tune_settings().enabled);
    setenv("TOROID_TUNABLEOP_ENABLED", "", 1);  // as if it was not there
    CHECK(tor_tune_settings().enabled);
    setenv("TOROID_TUNABLEOP_MAX_WARMUP_ITERATIONS", "7", 1);  // alone: needs no second variable
    CHECK(tor_tune_settings().max_warmup_iterations == 7);
    setenv("TOROID_TUNABLEOP_FILENAME", "theirs.csv", 1);
    expect("FILENAME", "theirs.csv");
    CHECK(!messages[0]);
    setenv("TOROID_TUNABLEOP_VERBOSE", "loud", 1);
    for (int i = 0; i < 3; i++) CHECK(tor_tune_settings().verbose == 0);
    CHECK(strcmp(messages,
                 "TOROID_TUNABLEOP_VERBOSE: expected 0 to 3, got \"loud\"; it is "
                 "ignored\n") == 0);
}
static void test_environment_wins_and_is_read_when_needed(void **state) {
    (void)state;
    in_process(environment_wins, 0);
}

static void ordinals(int number) {
    (void)number;
    unsetenv("LOCAL_RANK");
    set("FILENAME", "a/b.c/results");
    expect("FILENAME", "a/b.c/results");
    tor_tune_set_worker(12);
    tor_tune_insert_ordinal(true);
    expect("FILENAME", "a/b.c/results12");
    expect("UNTUNED_FILENAME", "tunableop_untuned12.csv");
    set("FILENAME", "run%d/of.many.csv");
    expect("FILENAME", "run12/of.many.csv");
    tor_tune_insert_ordinal(false);
    expect("FILENAME", "run12/of.many.csv");
    tor_tune_set_worker(-1);
    setenv("LOCAL_RANK", "5", 1);
    expect("FILENAME", "run5/of.many.csv");
    char path[TOR_TUNE_PATH], name[TOR_TUNE_PATH];
    memset(name, 'x', sizeof name);
    memcpy(name, "%d", 2);
    name[sizeof name - 1] = 0;
    set("FILENAME", name);
    setenv("LOCAL_RANK", "12345", 1);
    CHECK(tor_tune_file(TOR_TUNE_FILENAME, path) == TOROID_INVALID);
}
static void test_ordinals_in_names(void **state) {
    (void)state;
    in_process(ordinals, 0);
}

static void note_all(int number) {
    for (int i = 0; i < OPERATORS; i++) {
        TorTuneResult r = result(i);
        tor_untuned_note(r.op, r.params);  // off: nothing
    }
    CHECK(access("untuned-0.csv", F_OK) != 0 || number > 0);
    CHECK(tor_tune_set("RECORD_UNTUNED", "1") == TOROID_OK);
    CHECK(tor_tune_set("UNTUNED_FILENAME", "untuned-%d.csv") == TOROID_OK);
    tor_tune_set_worker(0);
    for (int i = 0; i < 2 * OPERATORS; i++) {
        TorTuneResult r = result(i % OPERATORS);
        tor_untuned_note(r.op, r.params);
    }
}
static void test_untuned_operators_are_noted_once(void **state) {
    (void)state;
    in_process(note_all, 0);
    pid_t child[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) child[i] = start(note_all, i + 1);
    for (int i = 0; i < PROCESSES; i++) finish(child[i]);
    char *text = read_text("untuned-0.csv");
    assert_int_equal(count_of(text, "\n"), OPERATORS);
    assert_int_equal(strncmp(text, "gemm_f32,m=0;n=64\ngemm_f32,m=1;n=64\n", 36), 0);
    free(text);
    TorTuneTable list = {0};
    assert_int_equal(tor_untuned_read("untuned-0.csv", &list), TOROID_OK);
    assert_int_equal(tor_untuned_read("untuned-0.csv", &list), TOROID_OK);
    assert_int_equal(list.count, OPERATORS);
    write_text(FILE_NAME, "Validator,ANY,1\ngemm_f32,again,Default,0.5\n");
    assert_int_equal(tor_untuned_read(FILE_NAME, &list), TOROID_OK);
    assert_int_equal(list.count, OPERATORS + 1);
    assert_string_equal(list.rows[OPERATORS].params, "again");
    write_text("wrong.csv", "gemm_f32,m=1\n\nnothing\n");
    assert_int_equal(tor_untuned_read("wrong.csv", &list), TOROID_INVALID);
    assert_string_equal(toroid_last_error(), "wrong.csv: line 3 is no row op,params");
    assert_int_equal(tor_untuned_read("nowhere.csv", &list), TOROID_FAILED);
    tor_tune_table_free(&list);
}

static void talk(int number) {
    TorTuneResult r = result(number), found;
    set("VERBOSE_FILENAME", "log.txt");
    tor_results_find(r.op, r.params, &found);
    CHECK(access("log.txt", F_OK) != 0);
    set("VERBOSE", "2");
    CHECK(tor_results_add(&r) == TOROID_OK);
    tor_results_find(r.op, r.params, &found);
    set("VERBOSE", "3");
    tor_results_find(r.op, r.params, &found);
    char *text = read_text("log.txt");
    CHECK(strcmp(text,
                 "toroid tune: gemm_f32,m=1;n=64: row;mc=96 is the fastest\n"
                 "toroid tune: gemm_f32,m=1;n=64: row;mc=96\n") == 0);
    free(text);
}
static void test_verbose_lines_go_where_they_were_asked_for(void **state) {
    (void)state;
    in_process(talk, 1);
}

int main(void) {
    clearenv();
    const struct CMUnitTest tests[] = {
        TEST(test_defaults_and_names),
        TEST(test_environment_wins_and_is_read_when_needed),
        TEST(test_ordinals_in_names),
        TEST(test_verbose_lines_go_where_they_were_asked_for),
        TEST(test_untuned_operators_are_noted_once),
    };
    return cmocka_run_group_tests_name("tune_settings", tests, NULL, NULL);
}

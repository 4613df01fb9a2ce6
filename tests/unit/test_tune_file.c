// The tuner's file: what its rows mean, and what is in it after anything that may happen to it.
// Each test runs in processes of its own, since the table of results is the process's.
#include "tune_process.h"

#include "base/alloc.h"
#include "tune/providers.h"
#include "tune/results.h"
#include "tune/rows.h"
#include "tune/validators.h"

/// A file with the validators of this machine and these rows.
static void write_results(const char *rows) {
    TorText text = {0};
    tor_validators_print(&text);
    tor_text_add(&text, rows);
    char *whole;
    assert_int_equal(tor_text_finish(&text, &whole), TOROID_OK);
    write_text(FILE_NAME, whole);
    tor_free(whole);
}

static void add(int number) {
    TorTuneResult r = result(number);
    CHECK(tor_results_add(&r) == TOROID_OK);
}

static bool has(int number) {
    TorTuneResult r = result(number), found;
    return tor_results_find(r.op, r.params, &found);
}

static void expect(const char *params, const char *solution, double ms) {
    TorTuneResult found;
    CHECK(tor_results_find("gemm_f32", params, &found));
    CHECK(strcmp(found.solution, solution) == 0 && found.mean_ms == ms);
}

/// All that is not a validator is a whole row, each operator once; returns how many.
static int assert_valid(void) {
    char *text = read_text(FILE_NAME);
    assert_non_null(text);
    TorRows rows = {.at = text, .end = text + strlen(text)};
    TorRow row;
    TorTuneTable seen = {0};
    int validators = 0;
    char differs[512];
    assert_true(tor_validators_match(text, strlen(text), differs, sizeof differs));
    while (tor_rows_next(&rows, &row)) {
        TorTuneResult r;
        bool added;
        if (tor_row_is_validator(&row)) {
            validators++;
            assert_true(seen.count == 0);
            continue;
        }
        assert_true(tor_row_result(&row, &r));
        assert_int_equal(tor_tune_table_add(&seen, &r, &added), TOROID_OK);
        assert_true(added);
    }
    TorValidator all[TOR_VALIDATORS];
    assert_int_equal(validators, tor_validators(all));
    int count = (int)seen.count;
    tor_tune_table_free(&seen);
    free(text);
    return count;
}

// ---------------------------------------------------------------- the faults of others

static void add_one(int number) { add(number); }
static void expect_one(int number) { CHECK(has(number)); }

/// "Result file empty though tuning succeeded": the row is there before add returns.
static void write_at_once(int number) {
    add(number);
    char *text = read_text(FILE_NAME);
    CHECK(text && strstr(text, "\ngemm_f32,m=3;n=64,row;mc=96,0.75\n"));
    kill(getpid(), SIGKILL);
}
static void test_result_file_empty_though_tuning_succeeded(void **state) {
    (void)state;
    int status;
    assert_true(waitpid(start(write_at_once, 3), &status, 0) > 0);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(assert_valid(), 1);
    in_process(expect_one, 3);
}

static void test_file_clobbered_instead_of_merged(void **state) {
    (void)state;
    in_process(add_one, 1);
    in_process(add_one, 2);
    in_process(expect_one, 1);
    in_process(expect_one, 2);
    assert_int_equal(assert_valid(), 2);
}

static void write_everything(int number) {
    CHECK(tor_tune_set("TUNING", "0") == TOROID_OK);  // nothing is written by itself
    add(number);
    CHECK(access(FILE_NAME, F_OK) != 0);
    CHECK(tor_results_write("other.csv") == TOROID_OK);
    CHECK(tor_results_write("other.csv") == TOROID_OK);
}
static void read_other(int number) {
    bool valid;
    CHECK(!has(number));
    CHECK(tor_results_read("other.csv", &valid) == TOROID_OK && valid);
    CHECK(has(1) && has(2));
}
static void test_write_file_merges(void **state) {
    (void)state;
    in_process(write_everything, 1);
    in_process(write_everything, 2);
    in_process(read_other, 1);
}

enum { PROCESSES = 4, OPERATORS = 60 };
static void add_all(int number) {
    for (int i = 0; i < OPERATORS; i++) {
        TorTuneResult r = result(i);
        snprintf(r.solution, sizeof r.solution, "process-%d", number);
        if (!has(i)) CHECK(tor_results_add(&r) == TOROID_OK);
    }
    for (int i = 0; i < OPERATORS; i++) CHECK(has(i));
}
static void test_several_processes_writing_one_file(void **state) {
    (void)state;
    pid_t child[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) child[i] = start(add_all, i);
    for (int i = 0; i < PROCESSES; i++) finish(child[i]);
    assert_int_equal(assert_valid(), OPERATORS);
}

static void differ(int number) {
    CHECK(!has(number));
    CHECK(strstr(messages, "CPU_MODEL is \"another\" there and \""));
    CHECK(strstr(messages, "it is set aside as results.stale-1.csv\n"));
    CHECK(count_of(messages, "\n") == 1);
    add(2);
    add(3);
    char *stale = read_text("results.stale-1.csv");
    CHECK(stale && count_of(stale, "gemm_f32") == 1 &&
          strstr(stale, "Validator,CPU_MODEL,another"));
}
/// "A file whose validators mismatch kept growing under the stale header."
static void test_validator_mismatch_sets_the_file_aside(void **state) {
    (void)state;
    in_process(add_one, 1);
    char *text = read_text(FILE_NAME), changed[8192];
    char *model = strstr(text, "CPU_MODEL,"), *rest = strchr(model, '\n');
    snprintf(changed, sizeof changed, "%.*sCPU_MODEL,another%s", (int)(model - text), text, rest);
    free(text);
    write_text(FILE_NAME, changed);
    in_process(differ, 1);
    assert_int_equal(assert_valid(), 2);
}

static void only_read(int number) {
    CHECK(tor_tune_set("TUNING", "0") == TOROID_OK);
    CHECK(!has(number));
    CHECK(strstr(messages, "it is not used"));
}
static void test_who_only_reads_moves_nothing(void **state) {
    (void)state;
    write_text(FILE_NAME, "Validator,TOROID_VERSION,0.0.0\ngemm_f32,m=1;n=64,x\n");
    in_process(only_read, 1);
    assert_int_equal(access("results.stale-1.csv", F_OK), -1);
    char *text = read_text(FILE_NAME);
    assert_string_equal(text, "Validator,TOROID_VERSION,0.0.0\ngemm_f32,m=1;n=64,x\n");
    free(text);
}

/// Two machines and one file: each sets the other's aside once, not for ever.
static void against_another(int number) {
    static const char foreign[] = "Validator,TOROID_VERSION,0.0.0\n";
    write_text(FILE_NAME, foreign);
    add(number);
    write_text(FILE_NAME, foreign);
    for (int i = 2; i < 6; i++) {
        TorTuneResult r = result(i);
        CHECK(tor_results_add(&r) == TOROID_FAILED && has(i));
    }
    CHECK(count_of(messages, "kept in memory only") == 1);
    CHECK(access("results.stale-2.csv", F_OK) != 0);
    CHECK(unlink(FILE_NAME) == 0);
    add(6);  // and all that waited
}
static void test_two_machines_and_one_file(void **state) {
    (void)state;
    in_process(against_another, 1);
    assert_int_equal(assert_valid(), 5);
}

static void missing_and_more(int number) {
    CHECK(!has(1));
    CHECK(strstr(messages, number ? "its validator MORE is not known here"
                                  : "it has no validator TOROID_VERSION"));
}
static void test_the_set_of_validators(void **state) {
    (void)state;
    write_text(FILE_NAME, "gemm_f32,m=1;n=64,x\n");
    in_process(missing_and_more, 0);
    write_results("Validator,MORE,1\ngemm_f32,m=1;n=64,x\n");
    in_process(missing_and_more, 1);
}

static ToroidStatus multiply(const ToroidProviderHost *host, void *user,
                             const ToroidProduct *product) {
    (void)user, (void)product;
    return host->set_error(TOROID_UNSUPPORTED, "nothing at all");
}
static const char *version(void *user) { return user; }
static void ask_for(char *of) {
    ToroidProvider blas = {sizeof blas, TOROID_PROVIDER_ABI, "blas", multiply, NULL, version, of};
    CHECK(tor_provider_add(&blas) == TOROID_OK);
    CHECK(tor_tune_set("PROVIDERS", "blas") == TOROID_OK);
}
static void read_with_provider(int number) {
    ask_for(number ? "OpenBLAS\n0.4" : "OpenBLAS\n0.3, with threads ");
    CHECK(has(1) == (number == 0));
    if (number == 0) CHECK(!messages[0]);
}
static void write_with_provider(int number) {
    ask_for("OpenBLAS 0.3, with threads");
    add(number);
}
static void test_versions_of_providers_are_validators(void **state) {
    (void)state;
    in_process(write_with_provider, 1);
    in_process(read_with_provider, 0);
    in_process(read_with_provider, 1);
}

// ---------------------------------------------------------------- rows

static void edited(int number) {
    (void)number;
    expect("m=1", "Default", -1);
    expect("m=2", "row;kc=8", 1.5);
    expect("m=3", "first", 2);
    expect("m=4", "x", -1);
    expect("m=5", "last", -1);
    CHECK(strstr(messages, "3 lines are left out; line "));
    add(1);
}
static void test_hand_edited_rows(void **state) {
    (void)state;
    write_results(
        "# by hand\n\n"
        "gemm_f32,m=1,Default\r\n"
        "  gemm_f32 , m=2 ,\trow;kc=8, 1.5 \n"
        "gemm_f32,m=3,first,2\ngemm_f32,m=3,second,1\n"
        "gemm_f32,m=4,x,fast\n"
        "gemm_f32,m=6\ngemm_f32,m=7,a,1,2\ngemm_f32,\"m=8\",a\n"
        "gemm_f32,m=5,last");
    in_process(edited, 0);
    char *text = read_text(FILE_NAME);
    assert_non_null(strstr(text, "\ngemm_f32,m=5,last\ngemm_f32,m=1;n=64,row;mc=96,0.25\n"));
    free(text);
}

static void memory_first(int number) {
    (void)number;
    bool valid;
    CHECK(tor_tune_set("TUNING", "0") == TOROID_OK && tor_tune_set("FILENAME", "") == TOROID_OK);
    add(1);
    uint64_t before = tor_results_generation();
    CHECK(tor_results_read(FILE_NAME, &valid) == TOROID_OK && valid);
    CHECK(tor_results_generation() != before);
    expect("m=1;n=64", "row;mc=96", 0.25);
    expect("m=2", "there", -1);
    before = tor_results_generation();
    CHECK(tor_results_read(FILE_NAME, &valid) == TOROID_OK && valid);
    CHECK(tor_results_generation() == before);
    CHECK(tor_results_read("nowhere.csv", &valid) == TOROID_OK && !valid);
    CHECK(tor_results_read(".", &valid) == TOROID_FAILED);
}
static void test_memory_wins(void **state) {
    (void)state;
    write_results("gemm_f32,m=1;n=64,there\ngemm_f32,m=2,there\n");
    in_process(memory_first, 0);
}

static void refuse_texts(int number) {
    (void)number;
    static const char *const wrong[] = {"", "a,b", "a b", "a\"", "a\nb", "#a", "Validator"};
    for (size_t i = 0; i < TOR_COUNT_OF(wrong); i++) {
        TorTuneResult r = result(1);
        strcpy(r.op, wrong[i]);
        CHECK(tor_results_add(&r) == TOROID_INVALID);
    }
    TorTuneResult r = result(1);
    memset(r.params, 'x', sizeof r.params);  // no end
    CHECK(tor_results_add(&r) == TOROID_INVALID);
    CHECK(access(FILE_NAME, F_OK) != 0);
}
static void test_texts_that_no_row_can_hold(void **state) {
    (void)state;
    in_process(refuse_texts, 0);
}

// ---------------------------------------------------------------- what may happen to the file

static void find_and_add(int number) {
    (void)number;
    CHECK(has(1));
    add(5);
    CHECK(has(1) && has(5));
}
/// Of a killed process's write the first page may be there and the second not.
static void test_a_row_cut_by_a_kill(void **state) {
    (void)state;
    in_process(add_one, 1);
    FILE *file = fopen(FILE_NAME, "ab");
    fseek(file, 0, SEEK_END);
    long size = ftell(file), cut = 20;
    for (; size < 4096 - cut - 1; size++) fputc('#', file);
    fputc('\n', file);
    fputs("gemm_f32,m=9;n=64,ro", file);
    fclose(file);
    in_process(find_and_add, 0);
    assert_int_equal(assert_valid(), 2);
    char *text = read_text(FILE_NAME);
    assert_null(strstr(text, "m=9"));
    free(text);
}

static int acks;  // the writing end
static void add_until_killed(int first) {
    for (int i = first;; i++) {
        add(i);
        if (write(acks, &i, sizeof i) != (ssize_t)sizeof i) _exit(0);
    }
}
static void expect_all_below(int number) {
    for (int i = 0; i < number; i++) CHECK(has(i));
}
static void test_kill_9_at_random_moments(void **state) {
    (void)state;
    int next = 0;
    srand(7);
    for (int round = 0; round < 50; round++) {
        int ends[2], finished = 0;
        assert_int_equal(pipe(ends), 0);
        acks = ends[1];
        pid_t child = start(add_until_killed, next);
        close(ends[1]);
        for (int want = 1 + rand() % 8; want > 0; want--) {
            assert_int_equal(read(ends[0], &finished, sizeof finished), sizeof finished);
            next = finished + 1;
        }
        for (volatile int spin = rand() % 200000; spin > 0; spin--) {
        }
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        while (read(ends[0], &finished, sizeof finished) == sizeof finished) next = finished + 1;
        close(ends[0]);
        int rows = assert_valid();
        assert_true(rows >= next);  // the last may be there without its ack
    }
    in_process(expect_all_below, next);
}

static void no_folder(int number) {
    (void)number;
    CHECK(tor_tune_set("FILENAME", "nowhere/results.csv") == TOROID_OK);
    TorTuneResult r = result(7);
    CHECK(tor_results_add(&r) == TOROID_FAILED && has(7));
    CHECK(strstr(messages, "cannot open nowhere/results.csv: No such file or directory"));
    CHECK(mkdir("nowhere", 0700) == 0);
    add(8);
    CHECK(rename("nowhere/results.csv", FILE_NAME) == 0);
}
static void test_what_could_not_be_written_comes_with_the_next(void **state) {
    (void)state;
    in_process(no_folder, 0);
    assert_int_equal(assert_valid(), 2);
}

static void no_file(int number) {
    (void)number;
    CHECK(!has(1));
    TorTuneResult r = result(1);
    CHECK(tor_results_add(&r) == TOROID_FAILED && has(1));
    CHECK(strstr(messages, "is no regular file"));
}
static void test_a_pipe_is_no_file(void **state) {
    (void)state;
    assert_int_equal(mkfifo(FILE_NAME, 0600), 0);
    in_process(no_file, 0);  // and waits for nobody
}

/// Random edits of a good file: bytes, lines, pieces cut out and put in.
static size_t mutate(char *text, size_t bytes, size_t room) {
    static const char likely[] =
        ",\n\r\0\"#=;-.9eE \xff"
        "Validator";
    for (int edits = 1 + rand() % 8; edits > 0 && bytes > 2; edits--) {
        size_t at = (size_t)rand() % bytes, n = 1 + (size_t)rand() % 40;
        n = TOR_MIN(n, bytes - at);
        switch (rand() % 5) {
            case 0: text[at] = (char)rand(); break;
            case 1: text[at] = likely[(size_t)rand() % sizeof likely]; break;
            case 2: bytes = at; break;
            case 3:
                memmove(text + at, text + at + n, bytes - at - n);
                bytes -= n;
                break;
            default:
                if (bytes + n > room) break;
                memmove(text + at + n, text + at, bytes - at);
                bytes += n;
        }
    }
    return bytes;
}
static void read_mutated(int number) {
    (void)number;
    enum { ROOM = 1 << 14 };
    char *good = read_text(FILE_NAME), *text = malloc(ROOM), params[32];
    size_t length = strlen(good);
    CHECK(length < ROOM);
    srand(11);
    for (int i = 0; i < 10000; i++) {
        messages[0] = 0;
        memcpy(text, good, length);
        size_t bytes = mutate(text, length, ROOM);
        char name[32];
        snprintf(name, sizeof name, "mutated-%d.csv", i / 50);
        remove(name);  // truncating a file may write it to the disk
        FILE *file = fopen(name, "wb");
        CHECK(file && fwrite(text, 1, bytes, file) == bytes);
        fclose(file);
        bool valid;
        CHECK(tor_results_read(name, &valid) == TOROID_OK);
        if (i % 50 == 49) {  // whatever is there, a result finds its place
            snprintf(params, sizeof params, "added=%d", i);
            TorTuneResult r = {.op = "gemm_f32", .solution = "x", .mean_ms = -1}, found;
            strcpy(r.params, params);
            CHECK(tor_tune_set("FILENAME", name) == TOROID_OK);
            CHECK(tor_results_add(&r) == TOROID_OK);
            CHECK(tor_results_find("gemm_f32", params, &found));
            char *now = read_text(name);
            CHECK(strstr(now, params));
            free(now);
        }
        TorTuneTable all;
        CHECK(tor_results_copy(&all) == TOROID_OK);
        for (size_t k = 0; k < all.count; k++) CHECK(tor_row_fits(&all.rows[k], true));
        tor_tune_table_free(&all);
    }
}
static void test_10000_mutated_files(void **state) {
    (void)state;
    write_results(
        "gemm_f32,m=1;n=64,row;mc=96,0.25\nconv_f32,n=1;c=3,Default\n"
        "map_f32,n=4096,tile=512,0.01\nattention_f32,b=2;h=8,x,1e-3\n");
    in_process(read_mutated, 0);
}

// ---------------------------------------------------------------- main

int main(void) {
    clearenv();
    const struct CMUnitTest tests[] = {
        TEST(test_result_file_empty_though_tuning_succeeded),
        TEST(test_file_clobbered_instead_of_merged),
        TEST(test_write_file_merges),
        TEST(test_several_processes_writing_one_file),
        TEST(test_validator_mismatch_sets_the_file_aside),
        TEST(test_who_only_reads_moves_nothing),
        TEST(test_two_machines_and_one_file),
        TEST(test_the_set_of_validators),
        TEST(test_versions_of_providers_are_validators),
        TEST(test_hand_edited_rows),
        TEST(test_memory_wins),
        TEST(test_texts_that_no_row_can_hold),
        TEST(test_a_row_cut_by_a_kill),
        TEST(test_kill_9_at_random_moments),
        TEST(test_what_could_not_be_written_comes_with_the_next),
        TEST(test_a_pipe_is_no_file),
        TEST(test_10000_mutated_files),
    };
    return cmocka_run_group_tests_name("tune_file", tests, NULL, NULL);
}

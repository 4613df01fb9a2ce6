// Tuning recorded lists: each operator once by whoever comes first, whatever happens to workers.
#include "tune_process.h"

#include <sched.h>

#include "base/alloc.h"
#include "tune/cores.h"
#include "tune/offline.h"
#include "tune/results.h"
#include "tune/untuned.h"

/// As another process would.
static void append_text(const char *name, const char *text) {
    FILE *file = fopen(name, "a");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/// In place of the tuner: the time is told by params, some operators fail, some kill the process.
static ToroidStatus stand_in(const char *op, const char *params, TorTuneResult *best,
                             double *default_ms) {
    if (strcmp(op, "fails_f32") == 0) return tor_refuse("no kernel takes it");
    if (strcmp(op, "kills_f32") == 0) raise(SIGKILL);
    if (strcmp(op, "late_f32") == 0 || strcmp(op, "later_f32") == 0) return tor_refuse("not now");
    if (strcmp(op, "waits_f32") == 0) append_text(FILE_NAME, "late_f32,m=2,other,1\n");
    *best = (TorTuneResult){.mean_ms = atoi(strchr(params, '=') + 1)};
    strcpy(best->op, op);
    strcpy(best->params, params);
    cpu_set_t set;
    CHECK(sched_getaffinity(0, sizeof set, &set) == 0);
    snprintf(best->solution, sizeof best->solution, "cpus=%d", CPU_COUNT(&set));
    *default_ms = 2 * best->mean_ms;
    return TOROID_OK;
}

enum { MOST = 64 };
static TorTuneReport reports[MOST];
static int n_reports, stop_after = MOST;

static bool collect(void *user, const TorTuneReport *report) {
    (void)user;
    if (!report) return true;
    CHECK(n_reports < MOST);
    reports[n_reports++] = *report;
    CHECK(report->done == n_reports);
    return n_reports < stop_after;
}

static TorTuneSummary tune(const char *file, int workers, int rank, int ranks) {
    TorTuneSummary summary;
    n_reports = 0;
    CHECK(tor_tune_offline(&(TorTuneOffline){.files = &file,
                                             .n_files = 1,
                                             .workers = workers,
                                             .rank = rank,
                                             .ranks = ranks,
                                             .tune = stand_in,
                                             .report = collect},
                           &summary) == TOROID_OK);
    return summary;
}

static int rows_in_file(void) {
    char *text = read_text(FILE_NAME);
    int n = text ? count_of(text, "\ngemm_f32,") : 0;
    free(text);
    return n;
}

static void write_list(int count) {
    char text[4096] = "";
    for (int i = 0; i < count; i++) {
        TorTuneResult r = result(i);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s,%s\n", r.op, r.params);
    }
    write_text("list.csv", text);
}

static void in_this_process(int number) {
    (void)number;
    TorTuneSummary s = tune("list.csv", 0, 0, 1);
    CHECK(s.listed == 10 && s.known == 0 && s.tuned == 10 && s.failed == 0);
    for (int i = 0; i < 10; i++) {
        // The shape that was recorded is the shape that was tuned.
        TorTuneResult r = result(i), found;
        CHECK(tor_results_find(r.op, r.params, &found) && found.mean_ms == i);
        CHECK(strcmp(reports[i].result.params, r.params) == 0 && reports[i].total == 10);
        CHECK(reports[i].default_ms == 2 * i);
    }
    s = tune("list.csv", 0, 0, 1);
    CHECK(s.listed == 10 && s.known == 10 && s.tuned == 0 && n_reports == 0);
}
static void test_offline_tunes_what_was_recorded(void **state) {
    (void)state;
    write_list(10);
    in_process(in_this_process, 0);
    assert_int_equal(rows_in_file(), 10);
}

static void done_elsewhere(int number) {
    TorTuneSummary s = tune("list.csv", number, 0, 1);
    CHECK(s.listed == 4 && s.known == 1 && s.tuned == 2 && s.failed == 1);
    CHECK(n_reports == 3 && strcmp(reports[2].result.op, "later_f32") == 0);
    CHECK(reports[2].done == 3 && reports[2].total == 3);
    TorTuneResult found;
    CHECK(tor_results_find("late_f32", "m=2", &found) && strcmp(found.solution, "other") == 0);
}
/// It failed here, and then another process wrote its row.
static void test_what_another_process_did_is_no_failure(void **state) {
    (void)state;
    write_text("list.csv", "gemm_f32,m=1\nlate_f32,m=2\nlater_f32,m=3\nwaits_f32,m=4\n");
    for (int workers = 0; workers <= 1; workers++) {
        unlink(FILE_NAME);
        in_process(done_elsewhere, workers);
    }
}

static void with_failures(int number) {
    TorTuneSummary s = tune("list.csv", number, 0, 1);
    CHECK(s.listed == 4 && s.tuned == 2 && s.failed == 2 - (number == 0));
    int refused = 0, killed = 0;
    for (int i = 0; i < n_reports; i++) {
        refused += strcmp(reports[i].message, "no kernel takes it") == 0;
        killed += strcmp(reports[i].message, "its process ended by signal 9") == 0;
    }
    CHECK(refused == 1 && killed == 1);
}
/// "Small shapes skipped without a word", and a worker that dies: each is reported, the rest goes
/// on.
static void test_no_operator_is_left_out_without_a_word(void **state) {
    (void)state;
    write_text("list.csv", "gemm_f32,m=1\nfails_f32,m=2\nkills_f32,m=3\ngemm_f32,m=4\n");
    in_process(with_failures, 1);
    assert_int_equal(rows_in_file(), 2);
}

static void pinned(int number) {
    int all = tor_cores_count(), cpus;
    TorTuneSummary s = tune("list.csv", all, 0, 1);
    CHECK(s.tuned == 21 && s.failed == 0);
    TorTuneResult found;
    cpu_set_t set;
    CHECK(sched_getaffinity(0, sizeof set, &set) == 0);
    char share[32], whole[32];
    snprintf(share, sizeof share, "cpus=%d", CPU_COUNT(&set) / all);
    snprintf(whole, sizeof whole, "cpus=%d", CPU_COUNT(&set));
    CHECK(tor_results_find("gemm_f32", "m=3;n=64", &found) && strcmp(found.solution, share) == 0);
    // What is for more threads than a worker has CPUs waits for all of them.
    CHECK(tor_results_find("gemm_f32", "m=9;threads=1024", &found));
    CHECK(strcmp(found.solution, whole) == 0);
    CHECK(tor_cores_pin(0, all + 1, &cpus) == TOROID_INVALID);
    const char *file = "list.csv";
    TorTuneOffline wrong = {.files = &file, .n_files = 1, .workers = all + 1, .tune = stand_in};
    CHECK(unlink(FILE_NAME) == 0 && number == 0);
    write_text("list.csv", "gemm_f32,new=1\n");
    CHECK(tor_tune_offline(&wrong, &s) == TOROID_INVALID);
    wrong.workers = 0, wrong.rank = 2, wrong.ranks = 2;
    CHECK(tor_tune_offline(&wrong, &s) == TOROID_INVALID);
    CHECK(tor_tune_set("TUNING", "0") == TOROID_OK);
    wrong.rank = 0;
    CHECK(tor_tune_offline(&wrong, &s) == TOROID_INVALID);
    CHECK(strcmp(toroid_last_error(), "tuning is switched off: TUNING is 0, expected 1") == 0);
}
static void test_workers_have_cores_of_their_own(void **state) {
    (void)state;
    write_list(20);
    FILE *file = fopen("list.csv", "a");
    fputs("gemm_f32,m=9;threads=1024\n", file);
    fclose(file);
    in_process(pinned, 0);
}

static void one_rank(int number) {
    TorTuneSummary s = tune("list.csv", 0, number, 3);
    CHECK(s.listed == 20 && s.tuned == (number < 2 ? 7 : 6) && s.known == 0);
}
static void test_ranks_share_one_list_and_one_file(void **state) {
    (void)state;
    write_list(20);
    pid_t child[3];
    for (int i = 0; i < 3; i++) child[i] = start(one_rank, i);
    for (int i = 0; i < 3; i++) finish(child[i]);
    assert_int_equal(rows_in_file(), 20);
}

static void ranks_of_torchrun(int number) {
    (void)number;
    static const struct {
        const char *variable, *value, *complaint;
    } wrong[] = {
        {"RANK", "first", "RANK: expected a whole number from 0 on, got \"first\""},
        {"RANK", "-1", "RANK: expected a whole number from 0 on, got \"-1\""},
        {"RANK", "0.5", "RANK: expected a whole number from 0 on, got \"0.5\""},
        {"RANK", "3", "RANK is 3, expected less than WORLD_SIZE, which is 3"},
        {"WORLD_SIZE", "0", "WORLD_SIZE: expected a whole number from 1 on, got \"0\""},
        {"LOCAL_RANK", "2", "LOCAL_RANK is 2, expected less than LOCAL_WORLD_SIZE, which is 1"},
    };
    TorTuneOffline o = {0};
    CHECK(tor_tune_offline_ranks(&o) == TOROID_OK);
    CHECK(o.rank == 0 && o.ranks == 1 && o.local_rank == 0 && o.local_ranks == 1);
    for (size_t i = 0; i < TOR_COUNT_OF(wrong); i++) {
        setenv("RANK", "2", 1), setenv("WORLD_SIZE", "3", 1), setenv("LOCAL_RANK", "", 1);
        CHECK(tor_tune_offline_ranks(&o) == TOROID_OK && o.rank == 2 && o.ranks == 3);
        setenv(wrong[i].variable, wrong[i].value, 1);
        CHECK(tor_tune_offline_ranks(&o) == TOROID_INVALID);
        CHECK(strcmp(toroid_last_error(), wrong[i].complaint) == 0);
    }
}
static void test_ranks_that_are_none(void **state) {
    (void)state;
    in_process(ranks_of_torchrun, 0);
}

static void all_of_it(int number) {
    (void)number;
    TorTuneSummary s = tune("list.csv", 0, 0, 1);
    CHECK(s.known + s.tuned == 20);
}
static void test_four_processes_on_one_list_and_one_file(void **state) {
    (void)state;
    write_list(20);
    pid_t child[4];
    for (int i = 0; i < 4; i++) child[i] = start(all_of_it, i);
    for (int i = 0; i < 4; i++) finish(child[i]);
    assert_int_equal(rows_in_file(), 20);
}

static void end_early(int number) {
    stop_after = 3;
    TorTuneSummary s = tune("list.csv", number, 0, 1);
    CHECK(n_reports == 3 && s.tuned == 3);
    stop_after = MOST;
}
static void test_interrupting_loses_nothing_that_was_finished(void **state) {
    (void)state;
    write_list(20);
    in_process(end_early, 0);
    assert_int_equal(rows_in_file(), 3);
    in_process(end_early, 1);
    assert_true(rows_in_file() >= 6);  // the worker may have been ahead of its reports
    in_process(all_of_it, 0);
    assert_int_equal(rows_in_file(), 20);
}

int main(void) {
    clearenv();
    const struct CMUnitTest tests[] = {
        TEST(test_offline_tunes_what_was_recorded),
        TEST(test_no_operator_is_left_out_without_a_word),
        TEST(test_what_another_process_did_is_no_failure),
        TEST(test_workers_have_cores_of_their_own),
        TEST(test_ranks_share_one_list_and_one_file),
        TEST(test_ranks_that_are_none),
        TEST(test_four_processes_on_one_list_and_one_file),
        TEST(test_interrupting_loses_nothing_that_was_finished),
    };
    return cmocka_run_group_tests_name("tune_offline", tests, NULL, NULL);
}

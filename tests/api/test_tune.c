// The tuner's public header: texts in, texts out, and a status for every wrong argument.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "toroid/provider.h"
#include "toroid/tune.h"

static void test_settings(void **state) {
    (void)state;
    char text[4096];
    assert_int_equal(toroid_tune_get("MAX_TUNING_ITERATIONS", text, sizeof text), TOROID_OK);
    assert_string_equal(text, "100");
    assert_int_equal(toroid_tune_set("MAX_TUNING_ITERATIONS", "7"), TOROID_OK);
    assert_int_equal(toroid_tune_get("MAX_TUNING_ITERATIONS", text, sizeof text), TOROID_OK);
    assert_string_equal(text, "7");
    assert_int_equal(toroid_tune_get("FILENAME", text, 5), TOROID_INVALID);
    assert_int_equal(toroid_tune_get("FILENAME", text, 0), TOROID_INVALID);
    assert_int_equal(toroid_tune_get("FILENAME", NULL, 5), TOROID_INVALID);
    assert_int_equal(toroid_tune_get(NULL, text, 5), TOROID_INVALID);
    assert_int_equal(toroid_tune_set(NULL, "1"), TOROID_INVALID);
    assert_int_equal(toroid_tune_set("TUNING", NULL), TOROID_INVALID);
    assert_int_equal(toroid_tune_set("TUNE", "1"), TOROID_INVALID);
    toroid_tune_insert_ordinal(true);
    assert_int_equal(toroid_tune_set("FILENAME", "a.csv"), TOROID_OK);
    setenv("LOCAL_RANK", "3", 1);
    assert_int_equal(toroid_tune_get("FILENAME", text, sizeof text), TOROID_OK);
    assert_string_equal(text, "a3.csv");
    unsetenv("LOCAL_RANK");
    toroid_tune_insert_ordinal(false);
}

static void test_validators(void **state) {
    (void)state;
    ToroidTuneValidator *list;
    size_t count, with_value = 0;
    assert_int_equal(toroid_tune_validators(&list, &count), TOROID_OK);
    assert_true(count >= 8);
    assert_string_equal(list[0].key, "TOROID_VERSION");
    for (size_t i = 0; i < count; i++) with_value += list[i].value[0] != 0;
    assert_int_equal(with_value, count);
    toroid_tune_free(list);
    toroid_tune_free(NULL);
    assert_int_equal(toroid_tune_validators(NULL, &count), TOROID_INVALID);
    assert_int_equal(toroid_tune_validators(&list, NULL), TOROID_INVALID);
}

static ToroidStatus multiply(const ToroidProviderHost *host, void *user,
                             const ToroidProduct *product) {
    (void)user, (void)product;
    return host->set_error(TOROID_UNSUPPORTED, "nothing at all");
}

/// Asked for by name, its version is the last validator.
static void test_a_provider(void **state) {
    (void)state;
    ToroidTuneValidator *list;
    size_t before, count;
    const ToroidProvider provider = {
        sizeof provider, TOROID_PROVIDER_ABI, "mine", multiply, NULL, NULL, NULL};
    assert_int_equal(toroid_provider_register(NULL), TOROID_INVALID);
    assert_int_equal(toroid_provider_register(&provider), TOROID_OK);
    assert_int_equal(toroid_provider_register(&provider), TOROID_INVALID);
    assert_string_equal(toroid_last_error(), "provider \"mine\" is registered already");
    assert_int_equal(toroid_tune_validators(&list, &before), TOROID_OK);
    toroid_tune_free(list);
    assert_int_equal(toroid_tune_set("PROVIDERS", "mine"), TOROID_OK);
    assert_int_equal(toroid_tune_validators(&list, &count), TOROID_OK);
    assert_int_equal(count, before + 1);
    assert_string_equal(list[count - 1].key, "PROVIDER_MINE");
    toroid_tune_free(list);
    assert_int_equal(toroid_tune_set("PROVIDERS", "mine,"), TOROID_INVALID);
    assert_int_equal(toroid_tune_set("PROVIDERS", ""), TOROID_OK);
}

static void write_file(const char *name, const char *rows) {
    ToroidTuneValidator *list;
    size_t count;
    FILE *file = fopen(name, "w");
    assert_int_equal(toroid_tune_validators(&list, &count), TOROID_OK);
    for (size_t i = 0; i < count; i++)
        fprintf(file, "Validator,%s,%s\n", list[i].key, list[i].value);
    toroid_tune_free(list);
    fputs(rows, file);
    fclose(file);
}

static void test_results(void **state) {
    (void)state;
    ToroidTuneResult *list;
    size_t count;
    bool valid;
    assert_int_equal(toroid_tune_set("FILENAME", "nowhere.csv"), TOROID_OK);
    assert_int_equal(toroid_tune_results(&list, &count), TOROID_OK);
    assert_int_equal(count, 0);
    toroid_tune_free(list);
    write_file("some.csv", "gemm_f32,a=1,Default,0.25\nconv_f32,b=2,row\n");
    assert_int_equal(toroid_tune_read("some.csv", &valid), TOROID_OK);
    assert_true(valid);
    assert_int_equal(toroid_tune_results(&list, &count), TOROID_OK);
    assert_int_equal(count, 2);
    assert_string_equal(list[0].op, "gemm_f32");
    assert_string_equal(list[0].params, "a=1");
    assert_string_equal(list[0].solution, "Default");
    assert_true(list[0].mean_ms == 0.25);
    assert_string_equal(list[1].solution, "row");
    assert_true(list[1].mean_ms < 0);
    toroid_tune_free(list);
    assert_int_equal(toroid_tune_read(NULL, &valid), TOROID_OK);  // there is no nowhere.csv
    assert_false(valid);
    assert_int_equal(toroid_tune_write("copy.csv"), TOROID_OK);
    assert_int_equal(toroid_tune_read("copy.csv", &valid), TOROID_OK);
    assert_true(valid);
    assert_int_equal(toroid_tune_write("no/folder.csv"), TOROID_FAILED);
    assert_int_equal(toroid_tune_read("some.csv", NULL), TOROID_INVALID);
    assert_int_equal(toroid_tune_results(NULL, &count), TOROID_INVALID);
    assert_int_equal(toroid_tune_results(&list, NULL), TOROID_INVALID);
}

static int seen;
static bool hear(void *user, const ToroidTuneReport *report) {
    assert_ptr_equal(user, &seen);
    if (!report) return true;
    assert_int_equal(report->status, TOROID_INVALID);
    assert_string_equal(report->op, "nothing_f32");
    assert_true(strlen(report->message) > 0);
    assert_string_equal(report->solution, "");
    assert_int_equal(report->done, 1);
    assert_int_equal(report->total, 1);
    seen++;
    return true;
}

static void test_jobs(void **state) {
    (void)state;
    FILE *file = fopen("list.csv", "w");
    fputs("nothing_f32,a=1;threads=1\n", file);
    fclose(file);
    const char *files[] = {"list.csv"};
    ToroidTuneJob job = {
        .struct_bytes = sizeof job, .files = files, .n_files = 1, .report = hear, .user = &seen};
    ToroidTuneSummary s;
    assert_int_equal(toroid_tune_files(&job, &s), TOROID_OK);
    assert_true(seen == 1 && s.listed == 1 && s.known == 0 && s.tuned == 0 && s.failed == 1);
    job.report = NULL;
    assert_int_equal(toroid_tune_files(&job, &s), TOROID_OK);
    assert_int_equal(s.failed, 1);
    assert_int_equal(toroid_tune_files(&job, NULL), TOROID_INVALID);
    assert_int_equal(toroid_tune_files(NULL, &s), TOROID_INVALID);
    job.workers = -1;
    assert_int_equal(toroid_tune_files(&job, &s), TOROID_INVALID);
    job.workers = 0;
    job.struct_bytes = 8;
    assert_int_equal(toroid_tune_files(&job, &s), TOROID_INVALID);
    job.struct_bytes = sizeof job;
    job.files = NULL;
    assert_int_equal(toroid_tune_files(&job, &s), TOROID_INVALID);
    files[0] = "nowhere.csv";
    job.files = files;
    assert_int_equal(toroid_tune_files(&job, &s), TOROID_FAILED);
    assert_string_equal(toroid_last_error(), "there is no file nowhere.csv");
}

int main(void) {
    char folder[] = "/tmp/toroid-tune-XXXXXX";
    if (!mkdtemp(folder) || chdir(folder) != 0) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settings),   cmocka_unit_test(test_validators),
        cmocka_unit_test(test_a_provider), cmocka_unit_test(test_results),
        cmocka_unit_test(test_jobs),
    };
    int failed = cmocka_run_group_tests_name("tune", tests, NULL, NULL);
    static const char *const made[] = {"some.csv", "copy.csv", "list.csv"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) unlink(made[i]);
    return chdir("/") != 0 || rmdir(folder) != 0 ? 1 : failed;
}

// Messages and statuses.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"

static void test_message(void **state) {
    (void)state;
    assert_string_equal(toroid_last_error(), "");
    assert_int_equal(tor_refuse("odd k: %d", 7), TOROID_UNSUPPORTED);
    assert_string_equal(toroid_last_error(), "odd k: 7");
    assert_int_equal(tor_invalid("x"), TOROID_INVALID);
    assert_int_equal(tor_failed("y"), TOROID_FAILED);
    assert_string_equal(toroid_last_error(), "y");
    assert_int_equal(tor_no_memory(), TOROID_NO_MEMORY);
    assert_string_equal(toroid_last_error(), "out of memory");
}

static void test_prefix(void **state) {
    (void)state;
    tor_refuse("rank %d", 9);
    assert_int_equal(tor_error_prefix(TOROID_UNSUPPORTED, "node %%%d", 3), TOROID_UNSUPPORTED);
    assert_string_equal(toroid_last_error(), "node %3: rank 9");
    // The message may be an argument of its successor.
    tor_failed("again: %s", toroid_last_error());
    assert_string_equal(toroid_last_error(), "again: node %3: rank 9");
}

static void test_long_messages_are_cut(void **state) {
    (void)state;
    char text[5000];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    tor_invalid("%s", text);
    assert_int_equal(strlen(toroid_last_error()), 1023);
    tor_error_prefix(TOROID_INVALID, "head");
    assert_int_equal(strlen(toroid_last_error()), 1023);
    assert_memory_equal(toroid_last_error(), "head: aaa", 9);
    tor_error_prefix(TOROID_INVALID, "%s", text);
    assert_int_equal(strlen(toroid_last_error()), 1023);
    assert_memory_equal(toroid_last_error(), "aaaa", 4);
}

static void *fail_elsewhere(void *arg) {
    tor_failed("another thread");
    return arg;
}

static void test_messages_are_a_threads_own(void **state) {
    (void)state;
    tor_failed("mine");
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, NULL), 0);
    pthread_join(thread, NULL);
    assert_string_equal(toroid_last_error(), "mine");
}

static ToroidStatus stop_at(ToroidStatus status, int *reached) {
    TOR_TRY(status);
    *reached += 1;
    return TOROID_OK;
}

static void test_try(void **state) {
    (void)state;
    int reached = 0;
    assert_int_equal(stop_at(TOROID_OK, &reached), TOROID_OK);
    assert_int_equal(stop_at(TOROID_FAILED, &reached), TOROID_FAILED);
    assert_int_equal(reached, 1);
}

static void test_names(void **state) {
    (void)state;
    assert_string_equal(toroid_status_name(TOROID_OK), "ok");
    assert_string_equal(toroid_status_name(TOROID_INVALID), "invalid argument");
    assert_string_equal(toroid_status_name((ToroidStatus)99), "unknown status");
}

static void keep_message(void *user, int level, const char *message) {
    assert_int_equal(level, 0);
    strcpy(user, message);
}

static void test_log_goes_to_the_hook(void **state) {
    (void)state;
    char text[64] = "";
    tor_log_set_hook(keep_message, text);
    tor_log(3, "too fine");
    assert_string_equal(text, "");
    tor_log(0, "%d warnings", 1);
    tor_log_set_hook(NULL, NULL);
    assert_string_equal(text, "1 warnings");
}

static void test_rounding(void **state) {
    (void)state;
    assert_int_equal(tor_ceil_div(0, 4), 0);
    assert_int_equal(tor_ceil_div(9, 4), 3);
    assert_int_equal(tor_round_up(8, 4), 8);
    assert_int_equal(tor_round_up(9, 4), 12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_message),
        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_long_messages_are_cut),
        cmocka_unit_test(test_messages_are_a_threads_own),
        cmocka_unit_test(test_try),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_log_goes_to_the_hook),
        cmocka_unit_test(test_rounding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

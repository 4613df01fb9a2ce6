/// Tests of what the tuner keeps for a process: each runs in processes of its own, in a folder of
/// its own, with FILENAME set to FILE_NAME.
#ifndef TEST_TUNE_PROCESS_H
#define TEST_TUNE_PROCESS_H

#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "tune/settings.h"
#include "tune/table.h"

#define FILE_NAME "results.csv"

/// In a child: says what was wrong and ends it.
#define CHECK(condition)                                                        \
    do {                                                                        \
        if (!(condition)) {                                                     \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, \
                    toroid_last_error());                                       \
            _exit(1);                                                           \
        }                                                                       \
    } while (0)

static char messages[4096];  // warnings of a child

static inline void keep(void *user, int level, const char *message) {
    (void)user, (void)level;
    strncat(messages, message, sizeof messages - strlen(messages) - 2);
    strcat(messages, "\n");
}

static inline pid_t start(void (*body)(int), int number) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGPIPE, SIG_IGN);
        tor_log_set_hook(keep, NULL);
        CHECK(tor_tune_set("FILENAME", FILE_NAME) == TOROID_OK);
        body(number);
        _exit(0);
    }
    return child;
}

static inline void finish(pid_t child) {
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static inline void in_process(void (*body)(int), int number) { finish(start(body, number)); }

// ---------------------------------------------------------------- files

static inline void write_text(const char *name, const char *text) {
    FILE *file = fopen(name, "wb");
    if (!file) abort();
    fputs(text, file);
    fclose(file);
}

/// Ends in 0; free with free().
static inline char *read_text(const char *name) {
    FILE *file = fopen(name, "rb");
    if (!file) return NULL;
    char *text = calloc(1, 1 << 20);
    if (fread(text, 1, (1 << 20) - 1, file) == 0) text[0] = 0;
    fclose(file);
    return text;
}

static inline int count_of(const char *text, const char *what) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what)) n++;
    return n;
}

static inline TorTuneResult result(int number) {
    TorTuneResult r = {.op = "gemm_f32", .solution = "row;mc=96", .mean_ms = 0.25 * number};
    snprintf(r.params, sizeof r.params, "m=%d;n=64", number);
    return r;
}

// ---------------------------------------------------------------- folders

static char folder[PATH_MAX];

static inline int enter(void **state) {
    (void)state;
    strcpy(folder, "/tmp/toroid-tune-XXXXXX");
    return mkdtemp(folder) ? chdir(folder) : -1;
}

static inline int leave(void **state) {
    (void)state;
    char command[PATH_MAX + 16];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return chdir("/") == 0 ? system(command) : -1;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, leave)

#endif

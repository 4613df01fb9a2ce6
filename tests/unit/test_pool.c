// The thread pool: every item once, whatever the numbers of threads, items, callers and forks.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/pool.h"

#define SCRATCH 128

typedef struct {
    int *seen;  // a count an item
    _Atomic int calls;
} Counts;

static void count_items(const void *args, int64_t begin, int64_t end, void *scratch) {
    Counts *counts = *(Counts *const *)args;
    atomic_fetch_add(&counts->calls, 1);
    memset(scratch, 1, SCRATCH);
    for (int64_t i = begin; i < end; i++) counts->seen[i]++;
}

static int shares_of(int64_t items, int threads) {
    int shares = 0;
    for (; items > 0; shares++) items -= tor_team_share(items, threads);
    return shares;
}

/// The last shares are single items, and there are not many of them.
static void test_shares(void **state) {
    (void)state;
    for (int threads = 1; threads < 12; threads++) {
        assert_int_equal(tor_team_share(1, threads), 1);
        assert_in_range(tor_team_share(1000, threads), 1000 / (2 * threads), 1000 / threads);
        assert_in_range(shares_of(1000, threads), 2 * threads, 16 * threads);
    }
}

// True if `threads` threads together see each of `items` once.
static bool region_is_whole(TorTeam *team, int64_t items) {
    int seen[300] = {0};
    Counts counts = {.seen = seen}, *args = &counts;
    tor_team_run(team, count_items, &args, items);
    for (int64_t i = 0; i < items; i++) {
        if (seen[i] != 1) return false;
    }
    return counts.calls <= shares_of(items, team->threads);
}

static void test_every_item_once(void **state) {
    (void)state;
    uint8_t *scratch = tor_alloc(16 * SCRATCH);
    for (int threads = 1; threads <= 9; threads++) {
        TorTeam team;
        tor_team_begin(&team, threads, scratch, SCRATCH);
        assert_int_equal(team.threads, threads);
        for (int64_t items = 0; items < 40; items++) assert_true(region_is_whole(&team, items));
        assert_true(region_is_whole(&team, 300));
        tor_team_rest(&team);
        assert_true(region_is_whole(&team, 299));
        tor_team_end(&team);
    }
    tor_free(scratch);
}

typedef struct {
    pthread_t self;
    bool elsewhere;
} Where;

static void note_thread(const void *args, int64_t begin, int64_t end, void *scratch) {
    (void)scratch;
    Where *where = *(Where *const *)args;
    if (begin == 0 && end == 1) where->elsewhere = !pthread_equal(where->self, pthread_self());
}

static void test_one_item_runs_on_the_caller(void **state) {
    (void)state;
    TorTeam team;
    Where where = {.self = pthread_self(), .elsewhere = true}, *args = &where;
    tor_team_begin(&team, 4, NULL, 0);
    tor_team_run(&team, note_thread, &args, 1);
    tor_team_end(&team);
    assert_false(where.elsewhere);
}

static void test_a_taken_pool_leaves_the_caller_alone(void **state) {
    (void)state;
    uint8_t scratch[4 * SCRATCH];
    TorTeam first, second;
    tor_team_begin(&first, 3, scratch, SCRATCH);
    tor_team_begin(&second, 3, scratch, SCRATCH);
    assert_int_equal(first.threads, 3);
    assert_int_equal(second.threads, 1);
    assert_true(region_is_whole(&second, 100));
    tor_team_rest(&second);
    tor_team_end(&second);
    // The end of a team that never had the pool takes it from nobody.
    tor_team_begin(&second, 3, scratch, SCRATCH);
    assert_int_equal(second.threads, 1);
    tor_team_end(&second);
    assert_true(region_is_whole(&first, 100));
    tor_team_end(&first);
    tor_team_begin(&second, 2, scratch, SCRATCH);
    assert_int_equal(second.threads, 2);
    tor_team_end(&second);
}

static void *many_runs(void *arg) {
    (void)arg;
    uint8_t *scratch = tor_alloc(8 * SCRATCH);
    bool whole = true;
    for (int run = 0; run < 300; run++) {
        TorTeam team;
        tor_team_begin(&team, 1 + run % 5, scratch, SCRATCH);
        for (int region = 0; region < 5; region++) {
            whole = region_is_whole(&team, 1 + (run * 7 + region) % 60) && whole;
        }
        if (run % 16 == 0) tor_team_rest(&team);
        tor_team_end(&team);
    }
    tor_free(scratch);
    return whole ? (void *)1 : NULL;
}

static void test_many_callers(void **state) {
    (void)state;
    pthread_t callers[4];
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&callers[i], NULL, many_runs, NULL), 0);
    }
    for (int i = 0; i < 4; i++) {
        void *whole;
        pthread_join(callers[i], &whole);
        assert_non_null(whole);
    }
}

static void be_slow(const void *args, int64_t begin, int64_t end, void *scratch) {
    (void)scratch;
    _Atomic int *sum = *(_Atomic int *const *)args;
    double until = tor_now() + (begin > 0 ? 2e-3 : 0);
    while (tor_now() < until) continue;
    atomic_fetch_add(sum, (int)(end - begin));
}

// The caller is done long before its workers, so it goes to sleep; then the workers do.
static void test_unequal_work(void **state) {
    (void)state;
    _Atomic int sum = 0, *args = &sum;
    TorTeam team;
    tor_team_begin(&team, 3, NULL, 0);
    for (int i = 0; i < 20; i++) tor_team_run(&team, be_slow, &args, 30);
    tor_team_end(&team);
    assert_int_equal(sum, 600);
}

static void wait_for_the_rest(const void *args, int64_t begin, int64_t end, void *scratch) {
    (void)scratch;
    _Atomic int *done = *(_Atomic int *const *)args;
    // Whoever has the first items cannot go on before others have done the last.
    double until = tor_now() + 5;
    while (begin == 0 && atomic_load(done) < 60 && tor_now() < until) sched_yield();
    if (begin == 0 && atomic_load(done) < 60) atomic_fetch_add(done, 1000);  // given up
    atomic_fetch_add(done, (int)(end - begin));
}

// A thread that is stuck at its chunk holds up nothing else.
static void test_a_slow_thread_holds_up_its_share_only(void **state) {
    (void)state;
    TorTeam team;
    tor_team_begin(&team, 2, NULL, 0);
    for (int i = 0; i < 20; i++) {
        _Atomic int done = 0, *args = &done;
        tor_team_run(&team, wait_for_the_rest, &args, 80);
        assert_int_equal(done, 80);
    }
    tor_team_end(&team);
}

// ThreadSanitizer refuses threads in the child of a threaded process.
#if !defined(__SANITIZE_THREAD__)
static void test_fork(void **state) {
    (void)state;
    uint8_t scratch[4 * SCRATCH];
    TorTeam outer;
    tor_team_begin(&outer, 3, scratch, SCRATCH);
    assert_true(region_is_whole(&outer, 50));
    pid_t child = fork();
    if (child == 0) {
        // The parent's team is void here; a new one is as good as the first.
        if (!region_is_whole(&outer, 50)) _exit(1);
        TorTeam team;
        tor_team_begin(&team, 4, scratch, SCRATCH);
        if (team.threads != 4) _exit(2);
        tor_team_rest(&outer);
        tor_team_end(&outer);
        for (int i = 0; i < 100; i++) {
            if (!region_is_whole(&team, 50)) _exit(3);
        }
        tor_team_end(&team);
        _exit(0);
    }
    assert_true(region_is_whole(&outer, 50));
    tor_team_end(&outer);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}
#endif

// Sanitizers need address space of their own.
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
static void test_no_room_for_threads(void **state) {
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        uint8_t scratch[4 * SCRATCH];
        struct rlimit limit = {1 << 20, 1 << 20};
        if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(10);
        TorTeam team;
        tor_team_begin(&team, 4, scratch, SCRATCH);
        if (team.threads != 1) _exit(1);
        if (!region_is_whole(&team, 50)) _exit(2);
        tor_team_end(&team);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}
#endif

static void do_nothing(const void *args, int64_t begin, int64_t end, void *scratch) {
    (void)args, (void)begin, (void)end, (void)scratch;
}

// Not a test: the cost of a region, for `unit_pool --bench`.
static void bench(void) {
    for (int threads = 1; threads <= 4; threads++) {
        TorTeam team;
        tor_team_begin(&team, threads, NULL, 0);
        double best = 1;
        for (int round = 0; round < 50; round++) {
            double start = tor_now();
            for (int i = 0; i < 1000; i++) tor_team_run(&team, do_nothing, NULL, threads);
            best = TOR_MIN(best, (tor_now() - start) / 1000);
        }
        tor_team_end(&team);
        printf("%d threads: %.2f us a region\n", threads, 1e6 * best);
    }
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--bench") == 0) {
        bench();
        return 0;
    }
    const struct CMUnitTest tests[] = {
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
        // The first: later, libc has the stacks of threads that were, and needs no room.
        cmocka_unit_test(test_no_room_for_threads),
#endif
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_every_item_once),
        cmocka_unit_test(test_one_item_runs_on_the_caller),
        cmocka_unit_test(test_a_taken_pool_leaves_the_caller_alone),
        cmocka_unit_test(test_many_callers),
        cmocka_unit_test(test_unequal_work),
        cmocka_unit_test(test_a_slow_thread_holds_up_its_share_only),
#if !defined(__SANITIZE_THREAD__)
        cmocka_unit_test(test_fork),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

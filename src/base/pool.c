// The thread pool. One region costs an atomic exchange a worker and an atomic subtraction by each;
// the system is called only for workers that sleep.
//
// Each worker has one word that only the pool's owner advances:
//     ticket << 1 | asleep
// A worker that has waited long enough sets `asleep` and sleeps on the word (a futex); the owner's
// exchange shows it whether a wake-up is due. The job is written before the tickets and read after
// them, by those workers only that take part, so nobody reads it while it changes.
#include "base/pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/log.h"

#define MAX_WORKERS 511
#define SPIN_SECONDS 50e-6
#define PAUSES_A_ROUND 16  // between looks at the clock

typedef struct {
    _Alignas(TOR_CACHE_LINE) _Atomic uint32_t word;
    int index;  // of its range; the caller's is 0
} Worker;

static struct {
    _Alignas(TOR_CACHE_LINE) atomic_bool owned;
    int workers;          // that exist; the owner's
    uint32_t generation;  // counts forks, from 1
    bool fork_handled;

    // The job, constant while a region runs.
    _Alignas(TOR_CACHE_LINE) TorRangeFn fn;
    const void *args;
    int64_t items;
    int threads;
    uint8_t *scratch;
    size_t scratch_bytes;

    _Alignas(TOR_CACHE_LINE) _Atomic uint32_t pending;  // workers at work << 1 | owner sleeps
    _Alignas(TOR_CACHE_LINE) atomic_bool resting;       // spinning is over
    atomic_bool crowded;                                // more threads than CPUs
    Worker worker[MAX_WORKERS];
} pool = {.generation = 1};

static void futex_wait(_Atomic uint32_t *word, uint32_t value) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

// Spins until the upper bits of `word` differ from `value` (for_change) or are `value`; false if it
// takes too long or `stop` is set. Where threads outnumber CPUs, the one that is waited for may
// need this CPU.
static bool spin(_Atomic uint32_t *word, bool for_change, uint32_t value, const atomic_bool *stop) {
    double start = 0;
    for (;;) {
        for (int i = 0; i < PAUSES_A_ROUND; i++) {
            uint32_t upper = atomic_load_explicit(word, memory_order_acquire) >> 1;
            if ((upper != value) == for_change) return true;
            relax();
        }
        if (stop != NULL && atomic_load_explicit(stop, memory_order_relaxed)) return false;
        if (atomic_load_explicit(&pool.crowded, memory_order_relaxed)) sched_yield();
        double now = tor_now();
        if (start == 0) start = now;
        if (now - start > SPIN_SECONDS) return false;
    }
}

// Waits for a ticket other than `seen`; returns it.
static uint32_t next_ticket(Worker *worker, uint32_t seen) {
    if (spin(&worker->word, true, seen, &pool.resting)) {
        return atomic_load_explicit(&worker->word, memory_order_acquire) >> 1;
    }
    uint32_t awake = seen << 1;
    if (atomic_compare_exchange_strong(&worker->word, &awake, seen << 1 | 1)) {
        // A wait may end for no reason; only the word counts.
        while (atomic_load_explicit(&worker->word, memory_order_acquire) >> 1 == seen) {
            futex_wait(&worker->word, seen << 1 | 1);
        }
    }
    return atomic_load_explicit(&worker->word, memory_order_acquire) >> 1;
}

static void run_range(int index) {
    int64_t begin, end;
    tor_partition(pool.items, pool.threads, index, &begin, &end);
    pool.fn(pool.args, begin, end, pool.scratch + (size_t)index * pool.scratch_bytes);
}

static void *work(void *argument) {
    Worker *worker = argument;
    for (uint32_t seen = 0;;) {
        seen = next_ticket(worker, seen);
        run_range(worker->index);
        // The last one wakes an owner that went to sleep.
        uint32_t before = atomic_fetch_sub_explicit(&pool.pending, 2, memory_order_acq_rel);
        if (before == (2 | 1)) futex_wake(&pool.pending);
    }
    return NULL;
}

static void wait_for_workers(void) {
    if (spin(&pool.pending, false, 0, NULL)) return;
    uint32_t value = atomic_fetch_or(&pool.pending, 1) | 1;
    while (value >> 1 != 0) {
        futex_wait(&pool.pending, value);
        value = atomic_load_explicit(&pool.pending, memory_order_acquire);
    }
}

// The child has this thread only, whatever the parent's were doing.
static void after_fork_in_child(void) {
    for (int i = 0; i < MAX_WORKERS; i++) atomic_store(&pool.worker[i].word, 0);
    atomic_store(&pool.pending, 0);
    pool.workers = 0;
    pool.generation++;
    atomic_store(&pool.owned, false);
}

static void add_workers(int wanted) {
    if (!pool.fork_handled) {
        if (pthread_atfork(NULL, NULL, after_fork_in_child) != 0) return;
        pool.fork_handled = true;
    }
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    // Signals are for the host's threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (pool.workers < wanted) {
        Worker *worker = &pool.worker[pool.workers];
        worker->index = pool.workers + 1;
        pthread_t thread;
        if (pthread_create(&thread, &attributes, work, worker) != 0) break;
        pool.workers++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

// False too for a team from before a fork.
static bool owns_pool(const TorTeam *team) {
    return team->pool != NULL && (uintptr_t)team->pool == pool.generation;
}

void tor_team_begin(TorTeam *team, int threads, uint8_t *scratch, size_t scratch_bytes) {
    *team = (TorTeam){.threads = 1, .scratch = scratch, .scratch_bytes = scratch_bytes};
    if (threads <= 1) return;
    bool taken = false;
    if (!atomic_compare_exchange_strong(&pool.owned, &taken, true)) return;
    int wanted = TOR_MIN(threads - 1, MAX_WORKERS);
    if (pool.workers < wanted) add_workers(wanted);
    if (pool.workers == 0) {
        atomic_store(&pool.owned, false);
        return;
    }
    team->threads = 1 + TOR_MIN(pool.workers, wanted);
    team->pool = (void *)(uintptr_t)pool.generation;
    atomic_store_explicit(&pool.crowded, team->threads > tor_cpu_count(), memory_order_relaxed);
}

void tor_team_run(TorTeam *team, TorRangeFn fn, const void *args, int64_t items) {
    if (items <= 0) return;
    int threads = (int)TOR_MIN((int64_t)team->threads, items);
    if (threads <= 1 || !owns_pool(team)) {
        fn(args, 0, items, team->scratch);
        return;
    }
    pool.fn = fn;
    pool.args = args;
    pool.items = items;
    pool.threads = threads;
    pool.scratch = team->scratch;
    pool.scratch_bytes = team->scratch_bytes;
    atomic_store_explicit(&pool.pending, (uint32_t)(threads - 1) << 1, memory_order_relaxed);
    if (atomic_load_explicit(&pool.resting, memory_order_relaxed)) {
        atomic_store_explicit(&pool.resting, false, memory_order_relaxed);
    }
    for (int i = 0; i < threads - 1; i++) {
        _Atomic uint32_t *word = &pool.worker[i].word;
        uint32_t ticket = (atomic_load_explicit(word, memory_order_relaxed) >> 1) + 1;
        uint32_t before = atomic_exchange_explicit(word, ticket << 1, memory_order_acq_rel);
        if (before & 1) futex_wake(word);
    }
    run_range(0);
    wait_for_workers();
}

void tor_team_rest(TorTeam *team) {
    if (owns_pool(team)) atomic_store_explicit(&pool.resting, true, memory_order_relaxed);
}

void tor_team_end(TorTeam *team) {
    if (owns_pool(team)) atomic_store(&pool.owned, false);
    team->pool = NULL;
    team->threads = 1;
}

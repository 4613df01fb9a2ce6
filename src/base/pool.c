// The thread pool. One region costs an atomic exchange a worker and a few atomic additions; the
// system is called only for workers that sleep.
//
// Each worker has one word that only the pool's owner advances:
//     ticket << 1 | asleep
// A worker that has waited long enough sets `asleep` and sleeps on the word (a futex); the owner's
// exchange shows it whether a wake-up is due.
//
// Threads take shares of a region one after the other, each a part of what is left, so that the
// last ones are small (Polychronopoulos & Kuck 1987, "Guided self-scheduling"): a thread that the
// system gives no CPU, or a slower one, holds up no more than the share it is at. One that comes
// late finds the gate closed and goes back to wait; nobody waits for it. The job is written while
// the gate is closed and nobody is inside, and read inside only, so nobody reads it while it
// changes.
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

#define GATE_OPEN (UINT32_C(1) << 31)
#define GATE_AWAITED (UINT32_C(1) << 30)  // the owner sleeps until nobody is inside
#define GATE_INSIDE (GATE_AWAITED - 1)

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

    _Alignas(TOR_CACHE_LINE) _Atomic int64_t next_item;
    _Alignas(TOR_CACHE_LINE) _Atomic uint32_t gate;  // GATE_OPEN, GATE_AWAITED, workers inside
    _Alignas(TOR_CACHE_LINE) atomic_bool resting;    // spinning is over
    atomic_bool crowded;                             // more threads than CPUs
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

// Spins until (word & mask) is `value`, or differs from it (for_change); false if it takes too long
// or `stop` is set. Where threads outnumber CPUs, the one that is waited for may need this CPU.
static bool spin(_Atomic uint32_t *word, uint32_t mask, bool for_change, uint32_t value,
                 const atomic_bool *stop) {
    double start = 0;
    for (;;) {
        for (int i = 0; i < PAUSES_A_ROUND; i++) {
            uint32_t bits = atomic_load_explicit(word, memory_order_acquire) & mask;
            if ((bits != value) == for_change) return true;
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
    if (spin(&worker->word, ~UINT32_C(1), true, seen << 1, &pool.resting)) {
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

static void run_shares(int index) {
    uint8_t *scratch = pool.scratch + (size_t)index * pool.scratch_bytes;
    int64_t begin = atomic_load_explicit(&pool.next_item, memory_order_relaxed);
    while (begin < pool.items) {
        int64_t end = begin + tor_team_share(pool.items - begin, pool.threads);
        if (!atomic_compare_exchange_weak_explicit(&pool.next_item, &begin, end,
                                                   memory_order_relaxed, memory_order_relaxed))
            continue;
        pool.fn(pool.args, begin, end, scratch);
        begin = atomic_load_explicit(&pool.next_item, memory_order_relaxed);
    }
}

static bool enter(void) {
    uint32_t gate = atomic_load_explicit(&pool.gate, memory_order_relaxed);
    do {
        if (!(gate & GATE_OPEN)) return false;
    } while (!atomic_compare_exchange_weak_explicit(&pool.gate, &gate, gate + 1,
                                                    memory_order_acq_rel, memory_order_relaxed));
    return true;
}

static void leave(void) {
    uint32_t before = atomic_fetch_sub_explicit(&pool.gate, 1, memory_order_acq_rel);
    if ((before & GATE_INSIDE) == 1 && (before & GATE_AWAITED)) futex_wake(&pool.gate);
}

static void *work(void *argument) {
    Worker *worker = argument;
    for (uint32_t seen = 0;;) {
        seen = next_ticket(worker, seen);
        if (!enter()) continue;
        // The open region may be a later one than the ticket's, and a smaller one.
        if (worker->index < pool.threads) run_shares(worker->index);
        leave();
    }
    return NULL;
}

static void close_gate(void) {
    uint32_t gate = atomic_fetch_and_explicit(&pool.gate, ~GATE_OPEN, memory_order_acq_rel);
    if (!(gate & GATE_INSIDE) || spin(&pool.gate, GATE_INSIDE, false, 0, NULL)) return;
    gate = atomic_fetch_or(&pool.gate, GATE_AWAITED) | GATE_AWAITED;
    while (gate & GATE_INSIDE) {
        futex_wait(&pool.gate, gate);
        gate = atomic_load_explicit(&pool.gate, memory_order_acquire);
    }
}

// The child has this thread only, whatever the parent's were doing.
static void after_fork_in_child(void) {
    for (int i = 0; i < MAX_WORKERS; i++) atomic_store(&pool.worker[i].word, 0);
    atomic_store(&pool.gate, 0);
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
    atomic_store_explicit(&pool.next_item, 0, memory_order_relaxed);
    atomic_store_explicit(&pool.gate, GATE_OPEN, memory_order_release);
    if (atomic_load_explicit(&pool.resting, memory_order_relaxed)) {
        atomic_store_explicit(&pool.resting, false, memory_order_relaxed);
    }
    for (int i = 0; i < threads - 1; i++) {
        _Atomic uint32_t *word = &pool.worker[i].word;
        uint32_t ticket = (atomic_load_explicit(word, memory_order_relaxed) >> 1) + 1;
        uint32_t before = atomic_exchange_explicit(word, ticket << 1, memory_order_acq_rel);
        if (before & 1) futex_wake(word);
    }
    run_shares(0);
    close_gate();
}

void tor_team_rest(TorTeam *team) {
    if (owns_pool(team)) atomic_store_explicit(&pool.resting, true, memory_order_relaxed);
}

void tor_team_end(TorTeam *team) {
    if (owns_pool(team)) atomic_store(&pool.owned, false);
    team->pool = NULL;
    team->threads = 1;
}

#include "tune/workers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "tune/cores.h"
#include "tune/settings.h"

/// Written at once, so that those of several workers do not mix.
typedef struct {
    size_t row;
    TorTuneReport report;
} Letter;
_Static_assert(sizeof(Letter) <= PIPE_BUF, "a letter is written whole");

typedef struct {
    _Atomic int64_t row;  ///< it is at this; -1: at none
    pid_t process;        ///< the parent's alone
} Worker;

/// In memory that all processes share.
typedef struct {
    _Atomic size_t next;  ///< the first row that no worker looked at
    Worker worker[];
} Board;

typedef struct {
    const TorWorkers *w;
    Board *board;
    bool *finished;
    int started;
    bool ended;
    int ends[2];  ///< of the pipe to the parent
} Team;

// ---------------------------------------------------------------- a worker

static int threads_of(const char *params) {
    static const char name[] = ";threads=";
    const char *found = NULL;
    for (const char *at = params; (at = strstr(at, name)); at++) found = at;
    return found ? atoi(found + strlen(name)) : 1;
}

/// Never returns, and nothing of the parent's runs at its exit.
static void be_a_worker(const Team *team, pid_t parent, int number) {
    const TorTuneTable *rows = team->w->rows;
    int cpus;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    close(team->ends[0]);
    tor_log_set_hook(NULL, NULL);  // the parent's may need what a fork does not bring
    tor_tune_set_worker(team->w->first + number);
    if (tor_cores_pin(team->w->first + number, team->w->shares, &cpus) != TOROID_OK) _exit(1);
    for (;;) {
        size_t row = atomic_fetch_add(&team->board->next, 1);
        if (row >= rows->count) _exit(0);
        if (threads_of(rows->rows[row].params) > cpus) continue;
        Letter letter = {.row = row, .report.result = rows->rows[row]};
        atomic_store(&team->board->worker[number].row, (int64_t)row);
        team->w->work(team->w->user, &letter.report);
        if (write(team->ends[1], &letter, sizeof letter) != (ssize_t)sizeof letter) _exit(1);
        atomic_store(&team->board->worker[number].row, -1);
    }
}

// ---------------------------------------------------------------- the parent

/// @return 1: a letter, 0: all workers are gone, -1: a signal came
static int next_letter(int end, Letter *letter) {
    size_t have = 0;
    while (have < sizeof *letter) {
        ssize_t n = read(end, (char *)letter + have, sizeof *letter - have);
        if (n < 0 && errno == EINTR && have == 0) return -1;
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return 0;
        have += (size_t)n;
    }
    return 1;
}

static void pass_on(Team *team, TorTuneReport *report) {
    if (team->ended || team->w->report(team->w->user, report)) return;
    team->ended = true;
    for (int i = 0; i < team->started; i++) kill(team->board->worker[i].process, SIGKILL);
}

static void listen(Team *team) {
    Letter letter;
    for (int got; (got = next_letter(team->ends[0], &letter)) != 0;) {
        if (got > 0) team->finished[letter.row] = true;
        pass_on(team, got > 0 ? &letter.report : NULL);
    }
}

/// Its operator may kill the next process too, so it is not tried again.
static void bury(Team *team, const Worker *worker) {
    int how;
    while (waitpid(worker->process, &how, 0) < 0)
        if (errno != EINTR) return;
    int64_t row = worker->row;
    if (!WIFSIGNALED(how) || row < 0 || team->finished[row]) return;
    TorTuneReport report = {.result = team->w->rows->rows[row], .status = TOROID_FAILED};
    snprintf(report.message, sizeof report.message, "its process ended by signal %d",
             WTERMSIG(how));
    team->finished[row] = true;
    pass_on(team, &report);
}

static ToroidStatus run(Team *team) {
    const pid_t parent = getpid();
    ToroidStatus status = TOROID_OK;
    for (int i = 0; i < team->w->count; i++) {
        Worker *worker = &team->board->worker[i];
        worker->row = -1;
        const pid_t process = fork();
        if (process == 0) be_a_worker(team, parent, i);
        if (process < 0) {
            status = tor_failed("cannot start a worker: %s", strerror(errno));
            break;
        }
        worker->process = process;
        team->started++;
    }
    close(team->ends[1]);
    listen(team);
    for (int i = 0; i < team->started; i++) bury(team, &team->board->worker[i]);
    close(team->ends[0]);
    return status;
}

ToroidStatus tor_workers_run(const TorWorkers *workers, bool *finished) {
    int cores = tor_cores_count();
    if (workers->shares > cores)
        return tor_invalid("%d workers, expected at most one for each of %d cores", workers->shares,
                           cores);
    Team team = {.w = workers, .finished = finished};
    size_t bytes = sizeof(Board) + sizeof(Worker) * (size_t)workers->count;
    team.board = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (team.board == MAP_FAILED) return tor_no_memory();
    ToroidStatus status = pipe2(team.ends, O_CLOEXEC) == 0
                              ? run(&team)
                              : tor_failed("cannot make a pipe: %s", strerror(errno));
    munmap(team.board, bytes);
    return status;
}

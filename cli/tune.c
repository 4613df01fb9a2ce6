// toroid tune FILE...: measures which kernels are the fastest for recorded operators.
#include <argp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "command.h"
#include "tune_outcome.h"
#include "tune_progress.h"

typedef struct {
    ToroidTuneJob job;
    bool json, quiet;
    const char *results;
} Options;

// ---------------------------------------------------------------- options

static const struct argp_option options[] = {
    {"workers", 'w', "N", 0, "Tune in N processes, each with cores of its own", 0},
    {"results", 'r', "FILE", 0,
     "Keep results in FILE instead of tunableop_results.csv; TOROID_TUNABLEOP_FILENAME wins", 0},
    {"json", 'j', NULL, 0, "Print what was found as JSON instead of a table", 0},
    {"quiet", 'q', NULL, 0, "Show no progress", 0},
    {0},
};

static int number(struct argp_state *state, const char *text) {
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end || value < 1 || value > 1 << 20)
        argp_error(state, "--workers: expected a number of processes, got '%s'", text);
    return (int)value;
}

static error_t parse(int key, char *argument, struct argp_state *state) {
    Options *o = state->input;
    switch (key) {
        case 'w': o->job.workers = number(state, argument); return 0;
        case 'r': o->results = argument; return 0;
        case 'j': o->json = true; return 0;
        case 'q': o->quiet = true; return 0;
        case ARGP_KEY_ARGS:  // all of them, side by side
            o->job.files = (const char *const *)state->argv + state->next;
            o->job.n_files = state->argc - state->next;
            return 0;
        case ARGP_KEY_NO_ARGS: argp_usage(state); return 0;
        default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "FILE...",
    .doc =
        "Measures which kernels are the fastest for the operators that runs with "
        "TOROID_TUNABLEOP_RECORD_UNTUNED=1 wrote to FILE.\v"
        "Operators that have a result are passed over, and each result is in the file at once: "
        "after an interrupt, the same command goes on. Under torchrun each process takes its "
        "share of the list. Limits of the measurement come from the environment, "
        "TOROID_TUNABLEOP_MAX_TUNING_DURATION_MS and others.\n\n"
        "The program ends with 0 if every operator has a result, with 1 if not, with 128 and "
        "the signal's number if it was interrupted.",
};

// ---------------------------------------------------------------- the run

static volatile sig_atomic_t caught;

static void catch (int signal) { caught = signal; }

/// The first signal ends the run at the next operator, a second one at once.
static void catch_signals(void) {
    struct sigaction action = {.sa_handler = catch, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

typedef struct {
    TuneOutcome outcome;
    TuneProgress progress;
} Run;

static bool report(void *user, const ToroidTuneReport *r) {
    Run *run = user;
    if (r) {
        tune_outcome_add(&run->outcome, r);
        tune_progress_show(&run->progress, r->done, r->total, run->outcome.best_gain);
    }
    return !caught;
}

int cli_tune(int argc, char **argv) {
    Options o = {.job.struct_bytes = sizeof o.job};
    char file[4096];
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0) return CLI_FAILED;
    Run run = {.progress = tune_progress_start(o.quiet)};
    o.job.report = report;
    o.job.user = &run;
    if ((o.results && toroid_tune_set("FILENAME", o.results) != TOROID_OK) ||
        toroid_tune_get("FILENAME", file, sizeof file) != TOROID_OK) {
        fprintf(stderr, "%s: %s\n", argv[0], toroid_last_error());
        return CLI_FAILED;
    }
    catch_signals();
    ToroidStatus status = toroid_tune_files(&o.job, &run.outcome.summary);
    tune_progress_end(&run.progress);
    run.outcome.file = file;
    if (status != TOROID_OK) fprintf(stderr, "%s: %s\n", argv[0], toroid_last_error());
    if (status == TOROID_OK || run.outcome.count)
        (o.json ? tune_outcome_print_json : tune_outcome_print)(&run.outcome);
    bool failed = status != TOROID_OK || run.outcome.summary.failed;
    tune_outcome_free(&run.outcome);
    return caught ? CLI_SIGNALLED + caught : failed ? CLI_FAILED : CLI_DONE;
}

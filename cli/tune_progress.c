#include "tune_progress.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WIDTH = 30 };
#define LINE_SECONDS 5.0  // between lines that are kept, in a log
#define CLEAR "\r\033[K"

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

TuneProgress tune_progress_start(bool quiet) {
    double start = now();
    return (TuneProgress){quiet, isatty(STDERR_FILENO), start, start};
}

/// "1:02:03", "2:03"
static void print_time(double seconds, char *text, size_t bytes) {
    long s = (long)(seconds + 0.5);
    if (s >= 3600)
        snprintf(text, bytes, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(text, bytes, "%ld:%02ld", s / 60, s % 60);
}

void tune_progress_show(TuneProgress *p, int done, int total, double best_gain) {
    double at = now();
    if (p->quiet || total <= 0 || (!p->terminal && at - p->shown < LINE_SECONDS)) return;
    p->shown = at;
    char left[32], gain[32] = "", bar[WIDTH + 1];
    print_time((at - p->started) / done * (total - done), left, sizeof left);
    if (best_gain > 0) snprintf(gain, sizeof gain, ", best gain %.2fx", best_gain);
    int full = (int)((long long)WIDTH * done / total);
    memset(bar, '#', (size_t)full);
    memset(bar + full, '-', (size_t)(WIDTH - full));
    bar[WIDTH] = 0;
    if (p->terminal)
        fprintf(stderr, CLEAR "[%s] %d/%d, %s left%s", bar, done, total, left, gain);
    else
        fprintf(stderr, "%d/%d, %s left%s\n", done, total, left, gain);
    fflush(stderr);
}

void tune_progress_end(const TuneProgress *p) {
    if (!p->quiet && p->terminal) fputs(CLEAR, stderr);
}

#include "tune_outcome.h"

#include <error.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

static void *whole(void *memory) {
    if (!memory) error(CLI_FAILED, 0, "out of memory");
    return memory;
}

void tune_outcome_add(TuneOutcome *o, const ToroidTuneReport *report) {
    if (o->count == o->capacity) {
        o->capacity = o->capacity ? 2 * o->capacity : 64;
        o->rows = whole(realloc(o->rows, o->capacity * sizeof *o->rows));
    }
    TuneRow *row = &o->rows[o->count++];
    *row = (TuneRow){.op = whole(strdup(report->op)),
                     .params = whole(strdup(report->params)),
                     .solution = whole(strdup(report->solution)),
                     .message = whole(strdup(report->message)),
                     .default_ms = report->default_ms,
                     .best_ms = report->best_ms};
    o->best_gain = fmax(o->best_gain, tune_outcome_gain(row));
}

double tune_outcome_gain(const TuneRow *row) {
    return row->message[0] || !(row->best_ms > 0) ? 0 : row->default_ms / row->best_ms;
}

/// The geometric mean of all gains; 0: none was tuned.
static double mean_gain(const TuneOutcome *o) {
    double sum = 0;
    int count = 0;
    for (size_t i = 0; i < o->count; i++) {
        double gain = tune_outcome_gain(&o->rows[i]);
        if (gain > 0) sum += log(gain), count++;
    }
    return count ? exp(sum / count) : 0;
}

// ---------------------------------------------------------------- the table

enum { COLUMNS = 6, WIDEST = 60, CELL = 128 };
typedef char Line[COLUMNS][CELL];

/// What is too wide is cut; --json has it whole.
static void set_text(char cell[CELL], const char *text) {
    bool fits = strlen(text) <= WIDEST;
    snprintf(cell, CELL, "%.*s%s", fits ? WIDEST : WIDEST - 3, text, fits ? "" : "...");
}

static void fill(Line line, const TuneRow *row) {
    set_text(line[0], row->op);
    set_text(line[1], row->params);
    snprintf(line[2], CELL, "%.4f", row->default_ms);
    snprintf(line[3], CELL, "%.4f", row->best_ms);
    snprintf(line[4], CELL, "%.2fx", tune_outcome_gain(row));
    set_text(line[5], row->solution);
}

static void print_line(const Line line, const int width[COLUMNS]) {
    for (int c = 0; c < COLUMNS; c++) {
        bool number = c >= 2 && c <= 4, last = c == COLUMNS - 1;
        printf("%*s%s", number ? width[c] : last ? 0 : -width[c], line[c], last ? "\n" : "  ");
    }
}

static void print_table(const TuneOutcome *o) {
    static const Line head = {"operator", "shape", "Default ms", "best ms", "gain", "solution"};
    int width[COLUMNS];
    Line line;
    for (int c = 0; c < COLUMNS; c++) width[c] = (int)strlen(head[c]);
    for (size_t i = 0; i < o->count; i++) {
        fill(line, &o->rows[i]);
        for (int c = 0; c < COLUMNS && !o->rows[i].message[0]; c++)
            width[c] = (int)fmax(width[c], (double)strlen(line[c]));
    }
    print_line(head, width);
    for (size_t i = 0; i < o->count; i++) {
        if (o->rows[i].message[0]) continue;
        fill(line, &o->rows[i]);
        print_line((const char(*)[CELL])line, width);
    }
}

void tune_outcome_print(const TuneOutcome *o) {
    if (o->summary.tuned) print_table(o);
    for (size_t i = 0; i < o->count; i++)
        if (o->rows[i].message[0])
            printf("not tuned: %s,%s: %s\n", o->rows[i].op, o->rows[i].params, o->rows[i].message);
    printf("%d tuned", o->summary.tuned);
    if (o->summary.tuned) printf(", geometric mean of gains %.2fx", mean_gain(o));
    if (o->summary.failed) printf("; %d failed", o->summary.failed);
    if (o->summary.known) printf("; %d had a result", o->summary.known);
    printf("; results are in %s\n", o->file[0] ? o->file : "no file");
}

// ---------------------------------------------------------------- JSON

static json_t *row_object(const TuneRow *row) {
    if (row->message[0])
        return json_pack("{s:s, s:s, s:s}", "operator", row->op, "params", row->params, "error",
                         row->message);
    return json_pack("{s:s, s:s, s:s, s:f, s:f, s:f}", "operator", row->op, "params", row->params,
                     "solution", row->solution, "default_ms", row->default_ms, "best_ms",
                     row->best_ms, "gain", tune_outcome_gain(row));
}

void tune_outcome_print_json(const TuneOutcome *o) {
    json_t *rows = whole(json_array());
    for (size_t i = 0; i < o->count; i++)
        if (json_array_append_new(rows, row_object(&o->rows[i])) != 0) whole(NULL);
    json_t *all =
        whole(json_pack("{s:s, s:i, s:i, s:i, s:i, s:f, s:o}", "file", o->file, "listed",
                        o->summary.listed, "known", o->summary.known, "tuned", o->summary.tuned,
                        "failed", o->summary.failed, "mean_gain", mean_gain(o), "operators", rows));
    json_dumpf(all, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(all);
}

void tune_outcome_free(TuneOutcome *o) {
    for (size_t i = 0; i < o->count; i++) {
        free(o->rows[i].op);
        free(o->rows[i].params);
        free(o->rows[i].solution);
        free(o->rows[i].message);
    }
    free(o->rows);
    *o = (TuneOutcome){0};
}

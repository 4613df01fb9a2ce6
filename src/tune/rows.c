#include "tune/rows.h"

#include <string.h>

#include "base/number.h"

#define VALIDATOR "Validator"

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static const char *trim(const char *begin, const char *end, size_t *length) {
    while (begin < end && is_blank(*begin)) begin++;
    while (begin < end && is_blank(end[-1])) end--;
    *length = (size_t)(end - begin);
    return begin;
}

static void split(const char *begin, const char *end, TorRow *row) {
    *row = (TorRow){0};
    for (const char *at = begin;; at++) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        if (row->count == TOR_ROW_FIELDS) {
            row->count++;
            return;
        }
        int i = row->count++;
        if (i == 2) row->tail = trim(at, end, &row->tail_length);
        row->field[i] = trim(at, comma ? comma : end, &row->length[i]);
        if (!comma) return;
        at = comma;
    }
}

bool tor_rows_next(TorRows *rows, TorRow *row) {
    static const char mark[] = "\xef\xbb\xbf";  // some editors begin UTF-8 with it
    while (rows->at < rows->end) {
        size_t left = (size_t)(rows->end - rows->at);
        const char *newline = memchr(rows->at, '\n', left), *at = rows->at;
        const char *end = newline ? newline : rows->end;
        rows->at = newline ? newline + 1 : rows->end;
        if (rows->line++ == 0 && left >= 3 && memcmp(at, mark, 3) == 0) at += 3;
        size_t length;
        at = trim(at, end, &length);
        if (length == 0 || *at == '#') continue;
        split(at, at + length, row);
        return true;
    }
    return false;
}

bool tor_row_is_validator(const TorRow *row) {
    return row->length[0] == strlen(VALIDATOR) &&
           memcmp(row->field[0], VALIDATOR, row->length[0]) == 0;
}

// ---------------------------------------------------------------- texts of an operator

static bool is_plain(char c) { return c > ' ' && c < 127 && c != ',' && c != '"' && c != '\''; }

static bool take(const TorRow *row, int i, char *out, size_t bytes) {
    size_t length = row->length[i];
    if (length == 0 || length >= bytes) return false;
    for (size_t k = 0; k < length; k++)
        if (!is_plain(row->field[i][k])) return false;
    memcpy(out, row->field[i], length);
    out[length] = 0;
    return true;
}

/// Rows that begin with these would not be read as operators.
static bool is_an_op(const char *op) { return op[0] != '#' && strcmp(op, VALIDATOR) != 0; }

bool tor_row_untuned(const TorRow *row, TorTuneResult *out) {
    *out = (TorTuneResult){.mean_ms = -1};
    return row->count == 2 && take(row, 0, out->op, sizeof out->op) &&
           take(row, 1, out->params, sizeof out->params) && is_an_op(out->op);
}

bool tor_row_result(const TorRow *row, TorTuneResult *out) {
    TorRow key = *row;
    key.count = 2;
    if ((row->count != 3 && row->count != 4) || !tor_row_untuned(&key, out) ||
        !take(row, 2, out->solution, sizeof out->solution))
        return false;
    double ms;
    // A time only informs: one that cannot be read is not known.
    if (row->count == 4 && tor_number_read(row->field[3], row->length[3], &ms) && ms >= 0)
        out->mean_ms = ms;
    return true;
}

static bool fits(const char *text, size_t bytes) {
    size_t length = strnlen(text, bytes);
    if (length == 0 || length == bytes) return false;
    for (; *text; text++)
        if (!is_plain(*text)) return false;
    return true;
}

bool tor_row_fits(const TorTuneResult *r, bool with_solution) {
    return fits(r->op, sizeof r->op) && fits(r->params, sizeof r->params) && is_an_op(r->op) &&
           (!with_solution || fits(r->solution, sizeof r->solution));
}

void tor_row_print(const TorTuneResult *r, bool with_solution, TorText *text) {
    tor_text_add(text, r->op);
    tor_text_add(text, ",");
    tor_text_add(text, r->params);
    if (with_solution) {
        tor_text_add(text, ",");
        tor_text_add(text, r->solution);
        if (r->mean_ms >= 0) {
            tor_text_add(text, ",");
            tor_number_put(text, r->mean_ms, 6);
        }
    }
    tor_text_add(text, "\n");
}

// Choices as numbers and as text, and the table of families.
#include "tune/tunable.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tune/families.h"

static const TorTunable *const families[] = {
#define X(family) &tor_tunable_##family,
    TOR_TUNABLES(X)
#undef X
};

const TorTunable *tor_tunable_find(const char *op) {
    for (size_t i = 0; i < TOR_COUNT_OF(families); i++)
        if (strcmp(families[i]->op, op) == 0) return families[i];
    return NULL;
}

static bool is_default(const TorTuneChoice *choice) {
    static const TorTuneChoice none;
    return memcmp(choice, &none, sizeof none) == 0;
}

void tor_tune_list_add(TorTuneList *list, const TorTuneChoice *choice) {
    if (is_default(choice) || list->count == TOR_TUNE_CANDIDATES) return;
    for (int i = 0; i < list->count; i++)
        if (memcmp(&list->choice[i], choice, sizeof *choice) == 0) return;
    list->choice[list->count++] = *choice;
}

void tor_tune_list_knob(TorTuneList *list, int knob, int64_t value) {
    TorTuneChoice choice = {0};
    choice.knob[knob] = value;
    tor_tune_list_add(list, &choice);
}

void tor_tune_operand(TorTuneOperands *operands, const void *field, size_t bytes, TorDtype dtype,
                      bool written, bool cold) {
    if (operands->count == TOR_TUNE_OPERANDS) return;
    operands->list[operands->count++] =
        (TorTuneOperand){(void **)(uintptr_t)field, bytes, dtype, written, cold};
}

// ---------------------------------------------------------------- text

void tor_choice_print(const TorTunable *t, const TorTuneChoice *choice, char *text, size_t bytes) {
    TorText out = tor_text_fixed(text, bytes);
    if (choice->row) tor_text_add(&out, t->row((int)choice->row - 1));
    for (int i = 0; i < TOR_TUNE_KNOBS && t->knobs[i]; i++)
        if (choice->knob[i])
            tor_text_put(&out, "%s%s=%" PRId64, out.length ? ";" : "", t->knobs[i],
                         choice->knob[i]);
    if (!out.length) tor_text_add(&out, "Default");
}

/// One piece of a solution's text, `length` long: a row's name, or a knob with its number.
static bool parse_piece(const TorTunable *t, const char *text, size_t length, TorTuneChoice *out) {
    for (int i = 0; t->row && t->row(i); i++)
        if (strlen(t->row(i)) == length && memcmp(t->row(i), text, length) == 0) {
            out->row = i + 1;
            return true;
        }
    for (int i = 0; i < TOR_TUNE_KNOBS && t->knobs[i]; i++) {
        size_t name = strlen(t->knobs[i]);
        if (name + 1 >= length || memcmp(t->knobs[i], text, name) != 0 || text[name] != '=')
            continue;
        char *end;
        errno = 0;
        long long value = strtoll(text + name + 1, &end, 10);
        if (errno || end != text + length || value < 1 || value > INT32_MAX) return false;
        out->knob[i] = value;
        return true;
    }
    return false;
}

bool tor_choice_parse(const TorTunable *t, const char *text, TorTuneChoice *out) {
    *out = (TorTuneChoice){0};
    if (strcmp(text, "Default") == 0) return true;
    for (const char *at = text;;) {
        size_t length = strcspn(at, ";");
        if (!parse_piece(t, at, length, out)) {
            *out = (TorTuneChoice){0};
            return false;
        }
        if (!at[length]) return true;
        at += length + 1;
    }
}

// Names of plugins. Distances are Levenshtein's (1966): insertions, deletions, substitutions.
#include "base/names.h"

#include <ctype.h>
#include <string.h>

#include "base/alloc.h"

bool tor_name_is_valid(const char *name) {
    size_t length = strnlen(name, TOR_NAME_BYTES);
    if (length == 0 || length == TOR_NAME_BYTES || name[0] == '.') return false;
    for (const char *c = name; *c; c++) {
        bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z');
        if (!letter && !(*c >= '0' && *c <= '9') && !strchr("_-.", *c)) return false;
    }
    return true;
}

ToroidStatus tor_names_add(TorNames *names, const char *name) {
    size_t at = 0;
    while (at < names->count && strcmp(names->items[at], name) < 0) at++;
    if (at < names->count && !strcmp(names->items[at], name)) return TOROID_OK;
    TOR_TRY(
        tor_grow((void **)&names->items, &names->capacity, names->count + 2, sizeof *names->items));
    char *copy = tor_strdup(name);
    if (!copy) {
        names->items[names->count] = NULL;
        return tor_no_memory();
    }
    memmove(names->items + at + 1, names->items + at, (names->count - at) * sizeof *names->items);
    names->items[at] = copy;
    names->items[++names->count] = NULL;
    return TOROID_OK;
}

void tor_names_free(char **items) {
    for (char **item = items; item && *item; item++) tor_free(*item);
    tor_free(items);
}

/// Both are shorter than TOR_NAME_BYTES. Upper and lower case are one.
static int distance(const char *a, const char *b) {
    int row[TOR_NAME_BYTES];
    int length = (int)strlen(b);
    for (int j = 0; j <= length; j++) row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= length; j++) {
            int same = tolower((unsigned char)a[i - 1]) == tolower((unsigned char)b[j - 1]);
            int best = TOR_MIN(diagonal + !same, TOR_MIN(row[j], row[j - 1]) + 1);
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[length];
}

void tor_names_suggest(const TorNames *names, const char *wrong, TorText *text) {
    enum { MOST = 3 };
    int said = 0;
    int near = TOR_MAX(2, (int)strlen(wrong) / 2);
    bool comparable = strlen(wrong) < TOR_NAME_BYTES;
    for (int d = 0; comparable && d <= near; d++)
        for (size_t i = 0; i < names->count && said < MOST; i++)
            if (distance(wrong, names->items[i]) == d)
                tor_text_put(text, "%s\"%s\"", said++ ? ", " : "did you mean ", names->items[i]);
    if (said) {
        tor_text_put(text, "?");
        return;
    }
    for (size_t i = 0; i < names->count; i++)
        tor_text_put(text, "%s\"%s\"", i ? ", " : "known are ", names->items[i]);
}

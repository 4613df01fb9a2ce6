#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

static bool make_room(TorText *t, size_t more) {
    if (t->length + more + 1 <= t->capacity) return true;
    void *text = t->text;
    if (!t->fixed && tor_grow(&text, &t->capacity, t->length + more + 1, 1) == TOROID_OK) {
        t->text = text;
        return true;
    }
    t->full = true;
    return false;
}

TorText tor_text_fixed(char *buffer, size_t bytes) {
    if (bytes) buffer[0] = 0;
    return (TorText){.text = buffer, .capacity = bytes, .fixed = true};
}

void tor_text_append(TorText *t, const char *text, size_t length) {
    if (t->full) return;
    if (!make_room(t, length)) {
        if (!t->fixed || t->capacity == 0) return;
        length = t->capacity - 1 - t->length;
    }
    memcpy(t->text + t->length, text, length);
    t->length += length;
    t->text[t->length] = 0;
}

void tor_text_add(TorText *t, const char *text) { tor_text_append(t, text, strlen(text)); }

void tor_text_put(TorText *t, const char *format, ...) {
    char piece[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(piece, sizeof piece, format, args);
    va_end(args);
    if (n > 0) tor_text_append(t, piece, TOR_MIN((size_t)n, sizeof piece - 1));
}

ToroidStatus tor_text_finish(TorText *t, char **text) {
    tor_text_append(t, "", 0);
    bool whole = !t->full;
    *text = whole ? t->text : NULL;
    if (!whole) tor_free(t->text);
    *t = (TorText){0};
    return whole ? TOROID_OK : tor_no_memory();
}

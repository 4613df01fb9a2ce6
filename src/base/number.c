#include "base/number.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static locale_t plain;

static void make(void) { plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0); }

/// (locale_t)0 where there is no memory: then the process's own is used.
static locale_t plain_locale(void) {
    pthread_once(&once, make);
    return plain;
}

bool tor_number_read(const char *text, size_t length, double *out) {
    char copy[64], *end;
    if (length == 0 || length >= sizeof copy) return false;
    memcpy(copy, text, length);
    copy[length] = 0;
    locale_t l = plain_locale();
    errno = 0;
    double value = l ? strtod_l(copy, &end, l) : strtod(copy, &end);
    if (end != copy + length || errno || !isfinite(value)) return false;
    *out = value;
    return true;
}

void tor_number_put(TorText *text, double value, int digits) {
    locale_t l = plain_locale(), before = l ? uselocale(l) : (locale_t)0;
    tor_text_put(text, "%.*g", digits, value);
    if (l) uselocale(before);
}

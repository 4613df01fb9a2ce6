#include "tune/params.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void tor_params_put(TorText *t, const char *name, int64_t value) {
    tor_params_put_list(t, name, &value, 1);
}

void tor_params_put_list(TorText *t, const char *name, const int64_t *values, int count) {
    tor_text_put(t, "%s%s=", t->length ? ";" : "", name);
    for (int i = 0; i < count; i++) tor_text_put(t, "%s%" PRId64, i ? ":" : "", values[i]);
}

TorParams tor_params_read(const char *text) { return (TorParams){.text = text, .at = text}; }

const char *tor_params_text(TorParams *p, const char *name, size_t *length) {
    size_t n = strlen(name);
    if (p->wrong || strncmp(p->at, name, n) != 0 || p->at[n] != '=') return NULL;
    const char *value = p->at + n + 1;
    *length = strcspn(value, ";");
    p->at = value + *length;
    if (*p->at) p->at++;
    return value;
}

int tor_params_get_list(TorParams *p, const char *name, int64_t *values, int most_count,
                        int64_t least, int64_t most) {
    size_t length;
    const char *at = tor_params_text(p, name, &length), *end = at ? at + length : NULL;
    int count = 0;
    for (bool more = at && length; more; count++) {
        char *stop;
        errno = 0;
        long long value = count < most_count ? strtoll(at, &stop, 10) : 0;
        if (count == most_count || errno || stop == at || value < least || value > most) break;
        values[count] = value;
        more = stop < end && *stop == ':';
        at = more ? stop + 1 : stop;
    }
    if (at && at == end) return count;
    if (!p->wrong) p->wrong = name;
    return 0;
}

int64_t tor_params_get(TorParams *p, const char *name, int64_t least, int64_t most) {
    int64_t value = 0;
    if (tor_params_get_list(p, name, &value, 1, least, most) == 1) return value;
    if (!p->wrong) p->wrong = name;
    return 0;
}

void tor_params_get_all(TorParams *p, const char *name, int64_t *values, int count) {
    int found = tor_params_get_list(p, name, values, count, 0, TOR_PARAMS_MOST);
    if (found != count && !p->wrong) p->wrong = name;
}

ToroidStatus tor_params_end(const TorParams *p) {
    if (p->wrong) return tor_invalid("params %s: field %s is wrong", p->text, p->wrong);
    if (*p->at) return tor_invalid("params %s: %s was not expected", p->text, p->at);
    return TOROID_OK;
}

bool tor_params_extent(const int64_t *size, const int64_t *stride, int rank, int64_t *elements) {
    int64_t last = 0;
    *elements = 0;
    for (int d = 0; d < rank; d++) {
        int64_t reach;
        if (size[d] == 0) return true;
        if (stride[d] < 0 || __builtin_mul_overflow(size[d] - 1, stride[d], &reach) ||
            __builtin_add_overflow(last, reach, &last))
            return false;
    }
    *elements = last + 1;
    return last < (int64_t)1 << 34;
}

/// Schema texts: "self, mat1, mat2, *, beta=1, alpha=1".
///
/// Parsed at each call: the texts are short (well under a microsecond), and there is no state to
/// keep. Defaults are None, True, False, [], numbers, and bare words for strings.
#include "aten/build.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *at;
    const char *name, *value;  // value: NULL without a default
    size_t name_length, value_length;
    bool keyword_only;
} Cursor;

static bool next_param(Cursor *p) {
    for (;;) {
        p->at += strspn(p->at, ", ");
        if (!*p->at) return false;
        size_t length = strcspn(p->at, ",");
        p->name = p->at;
        p->at += length;
        if (length == 1 && *p->name == '*') {
            p->keyword_only = true;
            continue;
        }
        const char *equals = memchr(p->name, '=', length);
        p->name_length = equals ? (size_t)(equals - p->name) : length;
        p->value = equals ? equals + 1 : NULL;
        p->value_length = equals ? length - p->name_length - 1 : 0;
        return true;
    }
}

static bool is(const Cursor *p, const char *word) {
    return strlen(word) == p->value_length && memcmp(p->value, word, p->value_length) == 0;
}

static ToroidStatus parse_default(TorCall *c, const Cursor *p, TorArg *out) {
    if (is(p, "None"))
        *out = TOR_ARG_OF_NONE;
    else if (is(p, "True"))
        *out = TOR_ARG_OF_BOOL(true);
    else if (is(p, "False"))
        *out = TOR_ARG_OF_BOOL(false);
    else if (is(p, "[]"))
        *out = TOR_ARG_OF_LIST(NULL, 0);
    else {
        char *end;
        long long i = strtoll(p->value, &end, 10);
        if (end == p->value + p->value_length) {
            *out = TOR_ARG_OF_INT(i);
            return TOROID_OK;
        }
        double f = strtod(p->value, &end);
        if (end == p->value + p->value_length) {
            *out = TOR_ARG_OF_FLOAT(f);
            return TOROID_OK;
        }
        char *text = tor_arena_alloc(c->g->arena, p->value_length + 1);
        if (!text) return tor_no_memory();
        memcpy(text, p->value, p->value_length);
        *out = TOR_ARG_OF_STR(text);
    }
    return TOROID_OK;
}

ToroidStatus tor_schema_bind(TorCall *c, const TorArg *args, int n_args,
                             const char *const *kw_names, const TorArg *kw_args, int n_kw) {
    Cursor p = {.at = c->row->schema};
    int used = 0;
    for (c->n_args = 0; next_param(&p); c->n_args++) {
        if (c->n_args == TOR_ATEN_MAX_PARAMS)
            return tor_invalid("%s: a schema with over %d parameters", c->row->name,
                               TOR_ATEN_MAX_PARAMS);
        TorArg *slot = &c->args[c->n_args];
        int found = -1;
        for (int k = 0; k < n_kw && found < 0; k++)
            if (strlen(kw_names[k]) == p.name_length &&
                memcmp(kw_names[k], p.name, p.name_length) == 0)
                found = k;
        if (!p.keyword_only && c->n_args < n_args) {
            if (found >= 0)
                return tor_refuse("%s: argument '%s' is given twice", c->row->name,
                                  kw_names[found]);
            *slot = args[c->n_args];
        } else if (found >= 0) {
            *slot = kw_args[found];
            used++;
        } else if (p.value) {
            TOR_TRY(parse_default(c, &p, slot));
        } else {
            return tor_refuse("%s: argument '%.*s' is missing", c->row->name, (int)p.name_length,
                              p.name);
        }
    }
    if (used != n_kw) {
        char name[48];
        for (int k = 0; k < n_kw; k++) {
            bool known = false;
            for (int i = 0; i < c->n_args; i++)
                known |= strcmp(tor_schema_param(c->row->schema, i, name, sizeof name),
                                kw_names[k]) == 0;
            if (!known)
                return tor_refuse("%s: has no argument '%s' (%s)", c->row->name, kw_names[k],
                                  c->row->schema);
            for (int j = 0; j < k; j++)
                if (strcmp(kw_names[j], kw_names[k]) == 0)
                    return tor_refuse("%s: argument '%s' is given twice", c->row->name,
                                      kw_names[k]);
        }
    }
    int positional = 0;
    Cursor q = {.at = c->row->schema};
    while (next_param(&q)) positional += !q.keyword_only;
    if (n_args > positional)
        return tor_refuse("%s: takes %d positional arguments, got %d", c->row->name, positional,
                          n_args);
    return TOROID_OK;
}

const char *tor_schema_param(const char *schema, int i, char *text, size_t bytes) {
    Cursor p = {.at = schema};
    text[0] = 0;
    while (next_param(&p))
        if (i-- == 0) {
            size_t length = TOR_MIN(p.name_length, bytes - 1);
            memcpy(text, p.name, length);
            text[length] = 0;
            break;
        }
    return text;
}

#include "plan/choices.h"

#include <string.h>

#include "base/alloc.h"

enum { BUCKETS = 8 };

typedef struct {
    bool asked;
    TorTuneAsk ask;   // what the choices hold for
    int64_t *leaves;  // values of the integers' leaves
    TorTuneChoice *choices;
} Bucket;

struct TorChoices {
    const TorGraph *g;
    size_t n_steps, n_leaves;
    const TorLeaf *leaves;
    int64_t *values;  // of the leaves, at the upper end of the bucket that was taken last
    int64_t *ints;
    Bucket bucket[BUCKETS];  // the last one that was taken first
    TorArena *memory;
};

ToroidStatus tor_choices_create(TorChoices **out, const TorGraph *g, size_t n_steps,
                                const TorLeaf *leaves, size_t n_leaves) {
    TorArena *memory;
    *out = NULL;
    TOR_TRY(tor_arena_create(&memory));
    TorChoices *c = tor_arena_alloc(memory, sizeof *c);
    if (c) {
        *c = (TorChoices){
            .g = g, .n_steps = n_steps, .n_leaves = n_leaves, .leaves = leaves, .memory = memory};
        c->values = tor_arena_alloc(memory, n_leaves * sizeof *c->values);
        c->ints = tor_arena_alloc(memory, tor_int_count(g) * sizeof *c->ints);
    }
    bool whole = c && c->values && c->ints;
    for (int i = 0; i < BUCKETS && whole; i++) {
        Bucket *b = &c->bucket[i];
        b->leaves = tor_arena_alloc(memory, n_leaves * sizeof *b->leaves);
        b->choices = tor_arena_alloc(memory, n_steps * sizeof *b->choices);
        whole = b->leaves && b->choices;
    }
    if (whole)
        *out = c;
    else
        tor_arena_destroy(&memory);
    return whole ? TOROID_OK : tor_no_memory();
}

void tor_choices_destroy(TorChoices **choices) {
    if (!choices || !*choices) return;
    TorArena *memory = (*choices)->memory;
    tor_arena_destroy(&memory);
    *choices = NULL;
}

// ---------------------------------------------------------------- buckets

/// Strides of row-major inputs follow their sizes.
static int64_t bucket_stride(const TorGraph *g, const TorPlanInput *in, const TorValue *v,
                             int dim) {
    int64_t row_major = 1, bucket = 1;
    bool grows = false;
    for (int d = v->rank - 1; d >= 0; d--) {
        bool dynamic = tor_int_get(g, v->dim[d])->op != TOR_INT_const;
        int64_t size = dynamic ? tor_tune_bucket(in->size[d]) : in->size[d];
        grows |= size != in->size[d];
        if (d <= dim) continue;
        row_major *= in->size[d];
        bucket *= size;
    }
    if (!in->stride || in->stride[dim] == row_major) return bucket;
    return grows ? tor_tune_bucket(in->stride[dim]) : in->stride[dim];
}

static int64_t bucket_leaf(const TorGraph *g, const TorPlanInput *inputs, TorLeaf leaf) {
    const TorPlanInput *in = &inputs[leaf.input];
    if (leaf.what >= 0) return tor_tune_bucket(in->size[leaf.what]);
    switch (leaf.what) {
        case TOR_ASK_VALUE: return tor_tune_bucket(in->value);
        // Where an input begins in its memory changes no kernel's problem.
        case TOR_ASK_START: return 0;
        case TOR_ASK_MEMORY: return 0;
        default:
            return bucket_stride(g, in, g->inputs[leaf.input].value, TOR_ASK_STRIDE - leaf.what);
    }
}

/// Integers ask for their leaves in the order in which the leaves were noted.
typedef struct {
    const TorChoices *c;
    size_t next;
} Walk;

static int64_t next_leaf(void *user, uint32_t input, int what) {
    (void)input, (void)what;
    Walk *walk = user;
    return walk->c->values[walk->next++];
}

const int64_t *tor_choices_ints(TorChoices *c, const int64_t *ints) {
    size_t bytes = tor_int_count(c->g) * sizeof *ints;
    Walk walk = {.c = c};
    if (!c->n_leaves || tor_int_eval(c->g, next_leaf, &walk, c->ints) != TOROID_OK ||
        memcmp(c->ints, ints, bytes) == 0)
        return ints;
    return c->ints;
}

TorTuneChoice *tor_choices_take(TorChoices *c, const TorPlanInput *inputs, const TorTuneAsk *ask,
                                bool *known) {
    size_t bytes = c->n_leaves * sizeof *c->values;
    for (size_t i = 0; i < c->n_leaves; i++) c->values[i] = bucket_leaf(c->g, inputs, c->leaves[i]);
    int at = 0;
    while (at < BUCKETS - 1 &&
           !(c->bucket[at].asked && memcmp(c->bucket[at].leaves, c->values, bytes) == 0))
        at++;
    Bucket taken = c->bucket[at];
    memmove(&c->bucket[1], &c->bucket[0], (size_t)at * sizeof taken);
    *known = taken.asked && memcmp(taken.leaves, c->values, bytes) == 0 &&
             tor_tune_holds(&taken.ask, ask);
    if (!*known) {
        taken.asked = false;
        memcpy(taken.leaves, c->values, bytes);
        memset(taken.choices, 0, c->n_steps * sizeof *taken.choices);
    }
    c->bucket[0] = taken;
    return taken.choices;
}

void tor_choices_asked(TorChoices *c, const TorTuneAsk *ask) {
    c->bucket[0].asked = true;
    c->bucket[0].ask = *ask;
}

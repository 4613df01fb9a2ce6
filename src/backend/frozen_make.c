// Results of a prologue: found in the table, mapped from a file, or computed.
#include <string.h>

#include "backend/internal.h"
#include "base/cpu.h"
#include "kernels/gemm/contract.h"

/// A result that the table does not have.
typedef struct {
    TorCall *call;
    size_t result;
    TorFrozenState *sources;
    TorContentKey content;
    TorStored stored;
} Missing;

static const TorPrologueResult *result_of(const Missing *m) {
    return &m->call->exe->prologue.results[m->result];
}

static bool is_stored(const Missing *m) {
    return tor_store_enabled() && result_of(m)->n_sources &&
           m->call->exe->prologue_bytes[m->result] >= TOR_STORE_LEAST;
}

// ---------------------------------------------------------------- files

/// Bumped when a packed format changes.
enum { FORMAT = 1 };

/// Everything that a result depends on: the expression, the format, and what the tensors hold.
static TorContentKey content_of(const Missing *m) {
    const TorPrologueResult *result = result_of(m);
    const TorExecutable *exe = m->call->exe;
    uint64_t work[] = {result->key[0],
                       result->key[1],
                       FORMAT,
                       (uint64_t)tor_gemm_panel(),
                       tor_cpu_features(),
                       exe->prologue_bytes[m->result]};
    TorContentKey key = tor_content_hash(work, sizeof work);
    for (uint32_t i = 0; i < result->n_sources; i++) {
        const TorPlanInput *in = &m->call->inputs[result->sources[i]];
        size_t dims = (size_t)exe->g->inputs[result->sources[i]].value->rank * sizeof *in->size;
        key = tor_content_join(key, tor_content_hash(in->size, dims));
        if (in->stride) key = tor_content_join(key, tor_content_hash(in->stride, dims));
        key = tor_content_join(key, tor_content_hash(in->data, m->sources[i].bytes));
    }
    return key;
}

/// A TorRangeFn over results: reading the tensors and the files takes longest, so threads share it.
static void find_files(const void *args, int64_t begin, int64_t end, void *scratch) {
    (void)scratch;
    Missing *missing = (Missing *)(uintptr_t)args;
    for (int64_t i = begin; i < end; i++) {
        Missing *m = &missing[i];
        if (!is_stored(m)) continue;
        m->content = content_of(m);
        m->stored = tor_store_find(m->content, m->call->exe->prologue_bytes[m->result]);
    }
}

// ---------------------------------------------------------------- one result

/// Runs one small graph of the prologue on this call's tensors.
static ToroidStatus compute(TorCall *call, size_t r, void *data) {
    TorExecutable *exe = call->exe;
    const TorPrologueResult *result = &exe->prologue.results[r];
    TorPlanInput *inputs = tor_alloc_zero((result->n_sources + 1) * sizeof *inputs);
    if (!inputs) return tor_no_memory();
    for (uint32_t i = 0; i < result->n_sources; i++) inputs[i] = call->inputs[result->sources[i]];
    TorContext *context = NULL;
    ToroidStatus status = tor_context_create(&context, exe->prologue_plans[r]);
    if (status == TOROID_OK) status = tor_context_begin(context, inputs);
    if (status == TOROID_OK) {
        tor_context_outputs(context)[0].data = data;
        status = tor_context_run(context, call->threads, NULL, false);
    }
    tor_context_destroy(&context);
    tor_free(inputs);
    return status;
}

static ToroidStatus make(Missing *m, TorFrozenEntry **out) {
    const TorPrologueResult *result = result_of(m);
    int n = (int)result->n_sources;
    if (m->stored.data) {
        TOR_TRY(tor_frozen_adopt(out, result->key, m->sources, n, &m->stored));
    } else {
        size_t bytes = m->call->exe->prologue_bytes[m->result];
        TOR_TRY(tor_frozen_create(out, result->key, m->sources, n, bytes));
        ToroidStatus status = compute(m->call, m->result, tor_frozen_data(*out));
        if (status != TOROID_OK) {
            tor_frozen_release(out);
            return status;
        }
        if (is_stored(m)) {
            TorStored stored = tor_store_put(m->content, tor_frozen_data(*out), bytes);
            if (stored.data) tor_frozen_replace(*out, &stored);
        }
    }
    // What depends on constants alone belongs to this executable, not to a tensor.
    if (n) tor_frozen_publish(*out);
    return TOROID_OK;
}

// ---------------------------------------------------------------- all of them

static ToroidStatus sources_of(TorCall *call, size_t r, TorFrozenState **out) {
    TorExecutable *exe = call->exe;
    const TorPrologueResult *result = &exe->prologue.results[r];
    *out = tor_alloc((result->n_sources + 1) * sizeof **out);
    if (!*out) return tor_no_memory();
    for (uint32_t i = 0; i < result->n_sources; i++)
        for (uint32_t k = 0; k < exe->n_frozen; k++)
            if (exe->frozen_inputs[k] == result->sources[i]) (*out)[i] = call->states[k];
    return TOROID_OK;
}

/// What depends on constants alone is in no table.
static TorFrozenEntry *find(const Missing *m) {
    const TorPrologueResult *result = result_of(m);
    int n = (int)result->n_sources;
    return n ? tor_frozen_find(result->key, m->sources, n) : NULL;
}

/// Takes what the table has; the rest is listed.
static ToroidStatus look_up(TorCall *call, TorFrozenEntry **entries, Missing *missing,
                            size_t *count) {
    for (size_t r = 0; r < call->exe->prologue.count; r++) {
        Missing m = {.call = call, .result = r};
        TOR_TRY(sources_of(call, r, &m.sources));
        entries[r] = find(&m);
        if (entries[r])
            tor_free(m.sources);
        else
            missing[(*count)++] = m;
    }
    return TOROID_OK;
}

ToroidStatus tor_frozen_make(TorCall *call, TorFrozenEntry **entries) {
    Missing *missing = tor_alloc_zero((call->exe->prologue.count + 1) * sizeof *missing);
    if (!missing) return tor_no_memory();
    size_t count = 0;
    ToroidStatus status = look_up(call, entries, missing, &count);
    if (status == TOROID_OK && tor_store_enabled()) {
        TorTeam team;
        tor_team_begin(&team, call->threads, NULL, 0);
        tor_team_run(&team, find_files, missing, (int64_t)count);
        tor_team_end(&team);
    }
    bool wrote = false;
    for (size_t i = 0; i < count && status == TOROID_OK; i++) {
        Missing *m = &missing[i];
        // Equal work over equal tensors is done once.
        entries[m->result] = find(m);
        if (entries[m->result]) continue;
        wrote |= is_stored(m) && !m->stored.data;
        status = make(m, &entries[m->result]);
    }
    if (wrote) tor_store_trim();
    for (size_t i = 0; i < count; i++) {
        tor_store_unmap(&missing[i].stored);
        tor_free(missing[i].sources);
    }
    tor_free(missing);
    return status;
}

// Results of a prologue: found in the table, mapped from a file, or computed.
#include <string.h>

#include "backend/internal.h"
#include "base/cpu.h"
#include "base/log.h"
#include "base/spill.h"
#include "kernels/gemm/contract.h"

/// A result that the table does not have.
typedef struct {
    TorCall *call;
    size_t result;
    TorFrozenState *sources;
    TorContentKey content;
    TorStored stored;
    bool found;  ///< a file
} Missing;

static const TorPrologueResult *result_of(const Missing *m) {
    return &m->call->exe->prologue.results[m->result];
}

static bool is_stored(const Missing *m) {
    return tor_store_enabled() && result_of(m)->n_sources &&
           m->call->exe->prologue_bytes[m->result] >= TOR_STORE_LEAST;
}

// ---------------------------------------------------------------- originals

/// All results that a call lacks, and when the memory of what they are made from may go.
typedef struct {
    Missing *missing;
    size_t count;
    size_t *last;  ///< for each frozen input: the last result that is made from it; or SIZE_MAX
} Work;

static bool reads(const Missing *m, uint32_t input) {
    const TorPrologueResult *result = result_of(m);
    for (uint32_t s = 0; s < result->n_sources; s++)
        if (result->sources[s] == input) return true;
    return false;
}

static ToroidStatus plan_releases(TorCall *call, Work *work) {
    const TorExecutable *exe = call->exe;
    const TorHost *host = &exe->options.host;
    work->last = tor_alloc((exe->n_frozen + 1) * sizeof *work->last);
    if (!work->last) return tor_no_memory();
    for (uint32_t k = 0; k < exe->n_frozen; k++) {
        uint32_t input = exe->frozen_inputs[k];
        work->last[k] = SIZE_MAX;
        if (!exe->released[k] || !host->releases) continue;
        for (size_t i = 0; i < work->count; i++)
            if (reads(&work->missing[i], input)) work->last[k] = i;
        bool large = call->states[k].bytes >= TOR_SPILL_LEAST;
        if (work->last[k] == SIZE_MAX || !large ||
            !host->releases(host->user, call->given[input].owner))
            work->last[k] = SIZE_MAX;
    }
    return TOROID_OK;
}

/// Result `i` is there.
static void release_after(const Work *work, size_t i) {
    const TorCall *call = work->missing[i].call;
    for (uint32_t k = 0; k < call->exe->n_frozen; k++)
        if (work->last[k] == i) tor_frozen_spill(&call->states[k]);
}

// ---------------------------------------------------------------- files

/// Bumped when a packed format changes.
enum { FORMAT = 2 };

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
    const Work *work = args;
    for (int64_t i = begin; i < end; i++) {
        Missing *m = &work->missing[i];
        if (!is_stored(m)) continue;
        m->content = content_of(m);
        m->stored =
            tor_store_find(TOR_STORE_WEIGHTS, m->content, m->call->exe->prologue_bytes[m->result]);
        m->found = m->stored.data != NULL;
        if (m->found) release_after(work, (size_t)i);
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
    if (status == TOROID_OK) status = tor_context_begin(context, inputs, 0);
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
            TorStored stored =
                tor_store_put(TOR_STORE_WEIGHTS, m->content, tor_frozen_data(*out), bytes);
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
static ToroidStatus look_up(TorCall *call, TorFrozenEntry **entries, Work *work) {
    for (size_t r = 0; r < call->exe->prologue.count; r++) {
        Missing m = {.call = call, .result = r};
        TOR_TRY(sources_of(call, r, &m.sources));
        entries[r] = find(&m);
        if (entries[r])
            tor_free(m.sources);
        else
            work->missing[work->count++] = m;
    }
    return TOROID_OK;
}

static ToroidStatus make_missing(TorCall *call, TorFrozenEntry **entries, const Work *work) {
    double start = tor_now();
    if (work->count && tor_store_enabled()) {
        TorTeam team;
        tor_team_begin(&team, call->threads, NULL, 0);
        tor_team_run(&team, find_files, work, (int64_t)work->count);
        tor_team_end(&team);
    }
    double looked = tor_now();
    bool wrote = false;
    size_t found = 0;
    ToroidStatus status = TOROID_OK;
    for (size_t i = 0; i < work->count && status == TOROID_OK; i++) {
        Missing *m = &work->missing[i];
        // Equal work over equal tensors is done once.
        entries[m->result] = find(m);
        if (!entries[m->result]) {
            wrote |= is_stored(m) && !m->found;
            status = make(m, &entries[m->result]);
        }
        if (status == TOROID_OK && !m->found) release_after(work, i);
        found += m->found;
    }
    if (work->count)
        tor_log(1, "%zu frozen results: %zu in files, looked up in %.1f ms; others made in %.1f ms",
                work->count, found, (looked - start) * 1e3, (tor_now() - looked) * 1e3);
    if (wrote) tor_store_trim();
    return status;
}

ToroidStatus tor_frozen_make(TorCall *call, TorFrozenEntry **entries) {
    Work work = {.missing = tor_alloc_zero((call->exe->prologue.count + 1) * sizeof *work.missing)};
    if (!work.missing) return tor_no_memory();
    ToroidStatus status = look_up(call, entries, &work);
    if (status == TOROID_OK) status = plan_releases(call, &work);
    if (status == TOROID_OK) status = make_missing(call, entries, &work);
    for (size_t i = 0; i < work.count; i++) {
        tor_store_unmap(&work.missing[i].stored);
        tor_free(work.missing[i].sources);
    }
    tor_free(work.missing);
    tor_free(work.last);
    return status;
}

// What may be chosen for a pointwise program, softmax and norms included: the elements of a tile.
#include <string.h>

#include "base/hash.h"
#include "tune/families.h"
#include "tune/program_text.h"

enum { TILE };  // knobs

/// A problem of the tuner's own, with all that it points to.
typedef struct {
    TorMapProblem problem;
    TorProgram program;
    TorPrepared prepared;
    TorMapArgs args;
} Owned;

static int operand_count(const TorProgram *p) { return p->n_inputs + p->n_outputs; }

static uint64_t hash(const void *problem) {
    const TorMapProblem *m = problem;
    uint64_t h = tor_hash_add(m->prepared->hash, m->rank << 8 | m->row_rank);
    h = tor_hash_list(h, m->size, m->rank);
    for (int i = 0; i < operand_count(m->prepared->program); i++)
        h = tor_hash_list(h, m->stride[i], m->rank);
    return h;
}

static void put(const void *problem, TorText *t) {
    const TorMapProblem *m = problem;
    const TorProgram *p = m->prepared->program;
    tor_params_put_list(t, "size", m->size, m->rank);
    tor_params_put(t, "row", m->row_rank);
    tor_text_add(t, ";program=");
    tor_program_put(t, p);
    for (int i = 0; i < operand_count(p); i++) tor_params_put_list(t, "s", m->stride[i], m->rank);
}

/// Elements of operand i; rows of the result of a reduction have one.
static bool extent(const TorMapProblem *m, int i, int64_t *elements) {
    const TorProgram *p = m->prepared->program;
    int rank = m->rank;
    if (i >= p->n_inputs && p->output_row[i - p->n_inputs]) rank -= m->row_rank;
    return tor_params_extent(m->size, m->stride[i], rank, elements);
}

static bool is_sane(const TorMapProblem *m) {
    const TorProgram *p = m->prepared->program;
    double elements = 1;
    int64_t count;
    for (int d = 0; d < m->rank; d++) elements *= (double)TOR_MAX(m->size[d], 1);
    for (int i = 0; i < operand_count(p); i++)
        if (!extent(m, i, &count)) return false;
    return elements < 1e12 && (p->n_reductions > 0 || m->row_rank == 0);
}

/// A row instruction reads inputs at the start of each row: they have no stride within it.
static bool reads_rows(const TorMapProblem *m) {
    const TorProgram *p = m->prepared->program;
    for (int i = 0; i < p->n_instrs; i++) {
        const TorInstr *in = &p->instr[i];
        bool row = in->dst.kind == TOR_OPERAND_ROW ||
                   (in->dst.kind == TOR_OPERAND_OUTPUT && p->output_row[in->dst.index]);
        for (int s = 0; row && s < 3; s++)
            if (in->src[s].kind == TOR_OPERAND_INPUT)
                for (int d = m->rank - m->row_rank; d < m->rank; d++)
                    if (m->stride[in->src[s].index][d] != 0) return false;
    }
    return true;
}

static ToroidStatus parse(const char *params, TorArena *arena, void **problem) {
    Owned *own = tor_arena_alloc(arena, sizeof *own);
    if (!own) return tor_no_memory();
    TorMapProblem *m = &own->problem;
    TorParams p = tor_params_read(params);
    m->rank = tor_params_get_list(&p, "size", m->size, TOR_MAP_RANK, 0, TOR_PARAMS_MOST);
    m->row_rank = (int)tor_params_get(&p, "row", 0, m->rank);
    size_t length;
    const char *text = tor_params_text(&p, "program", &length);
    if (!text || !tor_program_read(text, length, &own->program))
        return tor_invalid("params %s: field program is wrong", params);
    for (int i = 0; i < operand_count(&own->program); i++)
        tor_params_get_all(&p, "s", m->stride[i], m->rank);
    TOR_TRY(tor_params_end(&p));
    tor_program_prepare(&own->prepared, &own->program);
    m->prepared = &own->prepared;
    m->args = &own->args;
    if (!is_sane(m) || !reads_rows(m))
        return tor_invalid("params %s: no such program could have run", params);
    *problem = m;
    return TOROID_OK;
}

static void *copy(const void *problem, TorArena *arena) {
    const TorMapProblem *from = problem;
    Owned *own = tor_arena_alloc(arena, sizeof *own);
    if (!own) return NULL;
    own->problem = *from;
    own->problem.args = &own->args;
    return &own->problem;
}

// ---------------------------------------------------------------- choices

static void candidates(const void *problem, int threads, TorTuneList *list) {
    (void)problem, (void)threads;
    for (int64_t tile = 64; tile <= 1024; tile *= 2) {
        tor_tune_list_knob(list, TILE, tile);
        if (tile >= 128 && tile < 1024) tor_tune_list_knob(list, TILE, tile / 2 * 3);
    }
}

static void set(void *problem, const TorTuneChoice *choice) {
    ((TorMapProblem *)problem)->args->wish = choice->knob[TILE];
}

static bool operands(void *problem, TorTuneOperands *list) {
    TorMapProblem *m = problem;
    const TorProgram *p = m->prepared->program;
    for (int i = 0; i < operand_count(p); i++) {
        int64_t elements;
        TorDtype dtype = tor_program_operand_type(p, i);
        if (!extent(m, i, &elements)) return false;
        tor_tune_operand(list, &m->args->data[i], (size_t)elements * tor_dtype_size(dtype), dtype,
                         i >= p->n_inputs, false);
    }
    return true;
}

static void bind(void *problem, TorLaunch *launch) {
    TorMapProblem *m = problem;
    tor_map_bind(m->args, m->prepared, m->rank, m->row_rank, m->size,
                 (const int64_t(*)[TOR_MAP_RANK])m->stride);
    launch->scratch_bytes = m->args->scratch_bytes;
    tor_launch_region(launch, tor_map_run, m->args, m->args->items);
}

const TorTunable tor_tunable_map = {
    .op = "map",
    .knobs = {"tile"},
    .hash = hash,
    .put = put,
    .parse = parse,
    .copy = copy,
    .candidates = candidates,
    .operands = operands,
    .set = set,
    .bind = bind,
};

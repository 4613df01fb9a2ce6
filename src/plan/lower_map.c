// Fused nodes: a pointwise program over its index space, row axes last.
#include <string.h>

#include "base/log.h"
#include "plan/step.h"
#include "tune/families.h"

typedef struct {
    TorPrepared prepared;
    int rank, row_rank;
    TorDim size[TOR_MAX_RANK];
    int n_operands;
    TorDim stride[TOR_MAP_OPERANDS][TOR_MAX_RANK];
} MapData;

TOR_REFERENCE_RUN(tor_map_run_ref)

static void fill(const MapData *m, const int64_t *ints, TorMapArgs *args, TorMapProblem *p) {
    p->prepared = &m->prepared;
    p->args = args;
    p->rank = m->rank;
    p->row_rank = m->row_rank;
    tor_bind_dims(ints, m->size, m->rank, p->size);
    for (int i = 0; i < m->n_operands; i++)
        tor_bind_dims(ints, m->stride[i], m->rank, p->stride[i]);
}

/// The arguments as the oracle reads them, dims not merged.
static void bind_oracle(const TorMapProblem *p, int n_operands, TorMapArgs *args) {
    args->program = p->prepared->program;
    args->rank = p->rank;
    args->row_rank = p->row_rank;
    memcpy(args->size, p->size, (size_t)p->rank * sizeof *p->size);
    memcpy(args->stride, p->stride, (size_t)n_operands * sizeof *p->stride);
}

static void bind_map(const void *data, TorBinder *b) {
    const MapData *m = data;
    TorMapArgs *args = b->args;
    TorMapProblem problem, bucket;
    fill(m, b->ints, args, &problem);
    if (b->reference) bind_oracle(&problem, m->n_operands, args);
    if (tor_bind_reference(b, tor_map_run_ref_range, 0)) {
        args->error = b->error;
        return;
    }
    const TorMapProblem *asked = &problem;
    if (b->bucket_args) {
        fill(m, b->bucket_ints, b->bucket_args, &bucket);
        asked = &bucket;
    }
    tor_bind_tunable(b, &tor_tunable_map, &problem, asked);
    args->error = b->error;
}

/// The one thing that a program raises.
static ToroidStatus divided_by_zero(const TorStep *step, const void *args, int error) {
    (void)step, (void)args, (void)error;
    return tor_invalid_data("ZeroDivisionError");  // eager's whole message
}

static const TorStepKind map_kind = {
    .name = "map", .bind = bind_map, .reference = "tor_map_run_ref", .raised = divided_by_zero};
static const TorStepKind rows_kind = {
    .name = "rows", .bind = bind_map, .reference = "tor_map_run_ref", .raised = divided_by_zero};

ToroidStatus tor_lower_fused(TorPlan *plan, const TorNode *node) {
    const TorProgram *program = tor_attr(node, TOR_ATTR_program)->blob;
    const TorAttr *dims = tor_attr(node, TOR_ATTR_dims), *axes = tor_attr(node, TOR_ATTR_axes);
    uint32_t rows = 0;
    for (int i = 0; axes && i < axes->count; i++) rows |= 1u << axes->ints[i];
    MapData *m;
    ToroidStatus status = tor_program_verify(program);
    if (status != TOROID_OK) {
        char text[4096];
        tor_log(1, "%s", tor_program_print(program, text, sizeof text));
        return status;
    }
    TorPrepared prepared;
    tor_program_prepare(&prepared, program);
    TOR_TRY(tor_step_add(plan, rows ? &rows_kind : &map_kind, node, sizeof *m,
                         tor_map_args_bytes(&prepared), &m));
    m->prepared = prepared;
    // The order of the index space: what is kept, then what the reductions run over.
    int order[TOR_MAX_RANK];
    for (int d = 0; d < dims->count; d++)
        if (!(rows >> d & 1)) order[m->rank++] = d;
    m->row_rank = dims->count - m->rank;
    for (int d = 0; d < dims->count; d++)
        if (rows >> d & 1) order[m->rank++] = d;
    for (int d = 0; d < m->rank; d++) m->size[d] = dims->dims[order[d]];
    m->n_operands = program->n_inputs + program->n_outputs;
    for (int i = 0; i < m->n_operands; i++) {
        bool input = i < program->n_inputs;
        int output = i - program->n_inputs;
        const TorValue *v = input ? tor_in(node, i) : node->outputs[output];
        TorView view;
        TOR_TRY(tor_plan_view(plan, v, &view));
        if (!input && program->output_row[output]) {
            // Reduced axes are missing, or there with size 1.
            bool kept = view.rank == m->rank;
            for (int d = 0, at = 0; d < m->rank; d++) {
                bool reduced = rows >> order[d] & 1;
                m->stride[i][d] =
                    reduced ? tor_int_const(plan->g, 0) : view.stride[kept ? order[d] : at++];
            }
        } else {
            TorView wide = tor_view_broadcast(plan, &view, dims->count, dims->dims);
            for (int d = 0; d < m->rank; d++) m->stride[i][d] = wide.stride[order[d]];
        }
        TOR_TRY(
            tor_step_pointer(plan, &view, offsetof(TorMapArgs, data) + (size_t)i * sizeof(void *)));
    }
    return TOROID_OK;
}

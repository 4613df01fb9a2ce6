// linear, matmul and the packing of weights: steps of the gemm family.
#include <string.h>

#include "passes/layout.h"
#include "plan/epilogue.h"
#include "tune/families.h"

typedef struct {
    TorDim m, n, k, a_row, a_col, b_row, b_col, c_row;
    TorDtype dtype;
    bool packed, has_bias;
    int batch_rank;
    TorDim batch[TOR_GEMM_BATCH_RANK], a_batch[TOR_GEMM_BATCH_RANK], b_batch[TOR_GEMM_BATCH_RANK],
        c_batch[TOR_GEMM_BATCH_RANK];
    TorEpilogueData epilogue;
} GemmData;

static void gemm_ref_range(const void *args, int64_t begin, int64_t end, void *scratch) {
    (void)begin, (void)end;
    tor_gemm_run_ref(&((const TorGemmProblem *)args)->gemm, scratch);
}

static void typed_ref_range(const void *args, int64_t begin, int64_t end, void *scratch) {
    (void)begin, (void)end, (void)scratch;
    const TorGemmProblem *step = args;
    tor_gemm_typed_run_ref(&step->gemm, step->dtype);
}

static void fill(const void *data, const int64_t *ints, void *problem) {
    const GemmData *d = data;
    TorGemmProblem *step = problem;
    TorGemmArgs *args = &step->gemm;
    step->dtype = d->dtype;
    step->has_bias = d->has_bias;
    args->m = ints[d->m];
    args->n = ints[d->n];
    args->k = ints[d->k];
    args->a_row = ints[d->a_row];
    args->a_col = ints[d->a_col];
    args->b_packed = d->packed;
    args->b_row = ints[d->b_row];
    args->b_col = ints[d->b_col];
    args->c_row = ints[d->c_row];
    args->batch_rank = d->batch_rank;
    tor_bind_dims(ints, d->batch, d->batch_rank, args->batch_size);
    tor_bind_dims(ints, d->a_batch, d->batch_rank, args->a_batch);
    tor_bind_dims(ints, d->b_batch, d->batch_rank, args->b_batch);
    tor_bind_dims(ints, d->c_batch, d->batch_rank, args->c_batch);
    args->epilogue = tor_bind_epilogue(&d->epilogue, ints, &step->epilogue);
}

static void bind_typed(const void *data, TorBinder *b) {
    TorGemmArgs *args = &((TorGemmProblem *)b->args)->gemm;
    fill(data, b->ints, b->args);
    if (tor_bind_reference(b, typed_ref_range, 0)) return;
    args->typed = NULL;
    tor_gemm_typed_bind(args, ((const GemmData *)data)->dtype);
    b->scratch_bytes = args->scratch_bytes;
    tor_bind_region(b, tor_gemm_typed_run, args, args->items);
}

static void bind_gemm(const void *data, TorBinder *b) {
    fill(data, b->ints, b->args);
    if (tor_bind_reference(b, gemm_ref_range, 0)) return;
    tor_bind_tunable_args(b, &tor_tunable_gemm, fill, data);
}

static const char *gemm_kernel(const void *args) {
    const TorGemmProblem *problem = args;
    const TorGemmArgs *gemm = &problem->gemm;
    if (problem->provider) return tor_provider_solution(problem->provider);
    return gemm->typed ? gemm->typed->name : gemm->kernel ? gemm->kernel->name : NULL;
}

static const TorStepKind gemm_kind = {
    .name = "gemm", .bind = bind_gemm, .kernel = gemm_kernel, .reference = "tor_gemm_run_ref"};
static const TorStepKind typed_kind = {.name = "gemm",
                                       .bind = bind_typed,
                                       .kernel = gemm_kernel,
                                       .reference = "tor_gemm_typed_run_ref"};

static const TorStepKind *kind_of(TorDtype dtype) {
    return dtype == TOR_float32 ? &gemm_kind : &typed_kind;
}

#define FIELD(name) (offsetof(TorGemmProblem, gemm) + offsetof(TorGemmArgs, name))

static ToroidStatus pointers(TorPlan *plan, const TorView *a, const TorView *b, const TorView *c,
                             bool epilogue) {
    TOR_TRY(tor_step_pointer(plan, a, FIELD(a)));
    TOR_TRY(tor_step_pointer(plan, b, FIELD(b)));
    if (!epilogue) TOR_TRY(tor_step_pointer(plan, c, FIELD(c)));
    tor_step_shared(plan, FIELD(shared));
    return TOROID_OK;
}

ToroidStatus tor_lower_linear(TorPlan *plan, const TorNode *node) {
    TorGraph *g = plan->g;
    const TorValue *x = tor_in(node, 0), *w = tor_in(node, 1), *out = node->outputs[0];
    bool has_bias = tor_attr_int(node, TOR_ATTR_has_bias, node->n_inputs > 2);
    if (!tor_gemm_takes(x->dtype)) return tor_refuse("linear in %s", tor_dtype_name(x->dtype));
    TorView a, b, c;
    TOR_TRY(tor_plan_view(plan, x, &a));
    TOR_TRY(tor_plan_view(plan, w, &b));
    TOR_TRY(tor_plan_view(plan, out, &c));
    GemmData *d;
    TOR_TRY(tor_step_add(plan, kind_of(x->dtype), node, sizeof *d, sizeof(TorGemmProblem), &d));
    d->dtype = x->dtype;
    int last = x->rank - 1;
    TorDim zero = tor_int_const(g, 0);
    d->m = tor_int_product(g, x->dim, last);
    d->k = x->dim[last];
    d->n = out->dim[last];
    if (!tor_layout_mergeable(g, x, 0, last, &d->a_row) ||
        !tor_layout_mergeable(g, out, 0, last, &d->c_row))
        return tor_invalid("linear: rows of the input do not merge");
    d->a_col = a.stride[last];
    d->packed = tor_attr_int(node, TOR_ATTR_packed, 0);
    d->b_row = d->b_col = zero;
    if (!d->packed) {
        bool trans = tor_attr_int(node, TOR_ATTR_trans, 0);  // w is [k, n]
        d->b_row = b.stride[!trans];
        d->b_col = b.stride[trans];
    }
    TOR_TRY(pointers(plan, &a, &b, &c, tor_attr(node, TOR_ATTR_epilogue)));
    d->has_bias = has_bias;
    if (has_bias) {
        TorView bias;
        TOR_TRY(tor_plan_view(plan, tor_in(node, 2), &bias));
        TOR_TRY(tor_step_pointer(plan, &bias, FIELD(bias)));
    }
    return tor_lower_epilogue(plan, node, 2 + has_bias, last, 0, offsetof(TorGemmProblem, epilogue),
                              &d->epilogue);
}

ToroidStatus tor_lower_matmul(TorPlan *plan, const TorNode *node) {
    const TorValue *x = tor_in(node, 0), *out = node->outputs[0];
    int rank = x->rank, batch = rank - 2;
    if (!tor_gemm_takes(x->dtype)) return tor_refuse("matmul in %s", tor_dtype_name(x->dtype));
    if (batch > TOR_GEMM_BATCH_RANK) return tor_refuse("matmul with %d batch dims", batch);
    TorView a, b, c;
    TOR_TRY(tor_plan_view(plan, x, &a));
    TOR_TRY(tor_plan_view(plan, tor_in(node, 1), &b));
    TOR_TRY(tor_plan_view(plan, out, &c));
    GemmData *d;
    TOR_TRY(tor_step_add(plan, kind_of(x->dtype), node, sizeof *d, sizeof(TorGemmProblem), &d));
    d->dtype = x->dtype;
    d->m = x->dim[batch];
    d->k = x->dim[batch + 1];
    d->n = out->dim[batch + 1];
    d->a_row = a.stride[batch];
    d->a_col = a.stride[batch + 1];
    d->b_row = b.stride[batch];
    d->b_col = b.stride[batch + 1];
    d->c_row = c.stride[batch];
    d->batch_rank = batch;
    memcpy(d->batch, out->dim, (size_t)batch * sizeof(TorDim));
    memcpy(d->a_batch, a.stride, (size_t)batch * sizeof(TorDim));
    memcpy(d->b_batch, b.stride, (size_t)batch * sizeof(TorDim));
    memcpy(d->c_batch, c.stride, (size_t)batch * sizeof(TorDim));
    TOR_TRY(pointers(plan, &a, &b, &c, tor_attr(node, TOR_ATTR_epilogue)));
    return tor_lower_epilogue(plan, node, 2, rank - 1, batch, offsetof(TorGemmProblem, epilogue),
                              &d->epilogue);
}

// ---------------------------------------------------------------- packing

typedef struct {
    TorDim n, k, n_stride, k_stride;
} PackData;

static void bind_pack(const void *data, TorBinder *b) {
    const PackData *d = data;
    TorGemmPackArgs *args = b->args;
    args->n = b->ints[d->n];
    args->k = b->ints[d->k];
    args->n_stride = b->ints[d->n_stride];
    args->k_stride = b->ints[d->k_stride];
    args->batch = 1;
    tor_gemm_pack_bind(args);
    tor_bind_region(b, tor_gemm_pack_run, args, args->items);
}

static const TorStepKind pack_kind = {.name = "pack", .bind = bind_pack};

ToroidStatus tor_lower_pack_linear(TorPlan *plan, const TorNode *node) {
    const TorValue *w = tor_in(node, 0);
    bool trans = tor_attr_int(node, TOR_ATTR_trans, 0);
    int64_t n, k;
    if (!tor_int_known(plan->g, w->dim[trans], &n) || !tor_int_known(plan->g, w->dim[!trans], &k))
        return tor_refuse("packing a weight of unknown size");
    TorView from, to;
    TOR_TRY(tor_plan_view(plan, w, &from));
    TOR_TRY(tor_plan_view(plan, node->outputs[0], &to));
    plan->storages[to.storage].bytes = TOR_MAX(tor_gemm_packed_bytes(n, k), (size_t)1);
    PackData *d;
    TOR_TRY(tor_step_add(plan, &pack_kind, node, sizeof *d, sizeof(TorGemmPackArgs), &d));
    *d = (PackData){w->dim[trans], w->dim[!trans], from.stride[trans], from.stride[!trans]};
    TOR_TRY(tor_step_pointer(plan, &from, offsetof(TorGemmPackArgs, w)));
    return tor_step_pointer(plan, &to, offsetof(TorGemmPackArgs, packed));
}

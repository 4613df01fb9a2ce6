// Steps of the sort family.
#include <string.h>

#include "kernels/sort/contract.h"
#include "plan/step.h"

typedef struct {
    TorSortKind kind;
    TorDtype dtype;
    bool descending;
    int rank, axis;
    TorDim k, size[TOR_MAX_RANK], from[TOR_MAX_RANK], value[TOR_MAX_RANK], index[TOR_MAX_RANK];
} SortData;

static void sort_ref_range(const void *args, int64_t begin, int64_t end, void *scratch) {
    (void)begin, (void)end;
    tor_sort_ref(args, scratch);
}

static void bind_sort(const void *data, TorBinder *b) {
    const SortData *d = data;
    TorSortArgs *args = b->args;
    args->kind = d->kind;
    args->dtype = d->dtype;
    args->descending = d->descending;
    args->rank = d->rank;
    args->axis = d->axis;
    args->k = b->ints[d->k];
    tor_bind_dims(b->ints, d->size, d->rank, args->size);
    tor_bind_dims(b->ints, d->from, d->rank, args->src_stride);
    tor_bind_dims(b->ints, d->value, d->rank, args->value_stride);
    tor_bind_dims(b->ints, d->index, d->rank, args->index_stride);
    size_t order = (size_t)args->size[args->axis] * sizeof(int64_t);
    if (tor_bind_reference(b, sort_ref_range, order)) return;
    tor_sort_bind(args);
    b->scratch_bytes = args->scratch_bytes;
    tor_bind_region(b, tor_sort_run, args, args->items);
}

static const char *sort_kernel(const void *args) {
    const TorSortKernel *kernel = ((const TorSortArgs *)args)->kernel;
    return kernel ? tor_sort_kernel_name(kernel) : NULL;
}

static const TorStepKind sort_kind = {
    .name = "sort", .bind = bind_sort, .kernel = sort_kernel, .reference = "tor_sort_ref"};

static TorSortKind kind_of(const TorNode *node) {
    if (node->op == TOR_OP_sort) return TOR_SORT_all;
    if (node->op == TOR_OP_topk) return TOR_SORT_top;
    const char *kind = tor_attr_str(node, TOR_ATTR_reduce, "");
    return strcmp(kind, "kth") == 0      ? TOR_SORT_kth
           : strcmp(kind, "median") == 0 ? TOR_SORT_median
           : strcmp(kind, "mode") == 0   ? TOR_SORT_mode
                                         : TOR_SORT_nanmedian;
}

ToroidStatus tor_lower_sort(TorPlan *plan, const TorNode *node) {
    TorView x, result[2];
    SortData *d;
    const TorAttr *k = tor_attr(node, TOR_ATTR_dims);
    TOR_TRY(tor_plan_view(plan, tor_in(node, 0), &x));
    TOR_TRY(tor_step_add(plan, &sort_kind, node, sizeof *d, sizeof(TorSortArgs), &d));
    TOR_TRY(tor_step_pointer(plan, &x, offsetof(TorSortArgs, src)));
    for (int i = 0; i < 2; i++) {
        result[i] = x;
        if (!node->outputs[i]->uses) continue;
        TOR_TRY(tor_plan_view(plan, node->outputs[i], &result[i]));
        TOR_TRY(tor_step_pointer(
            plan, &result[i], i ? offsetof(TorSortArgs, indices) : offsetof(TorSortArgs, values)));
    }
    d->kind = kind_of(node);
    d->dtype = x.dtype;
    d->descending = tor_attr_int(node, TOR_ATTR_descending, 0) != 0;
    d->rank = x.rank;
    d->axis = (int)tor_attr_int(node, TOR_ATTR_axis, 0);
    d->k = k ? k->dims[0] : tor_int_const(plan->g, 1);
    memcpy(d->size, x.dim, sizeof d->size);
    memcpy(d->from, x.stride, sizeof d->from);
    memcpy(d->value, result[0].stride, sizeof d->value);
    memcpy(d->index, result[1].stride, sizeof d->index);
    return TOROID_OK;
}

typedef struct {
    TorDtype dtype, dst_dtype;
    bool right;
    int rank;
    TorDim n, line, size[TOR_MAX_RANK], value[TOR_MAX_RANK], sorted[TOR_MAX_RANK],
        dst[TOR_MAX_RANK];
} SearchData;

TOR_REFERENCE_RUN(tor_search_ref)

static void bind_search(const void *data, TorBinder *b) {
    const SearchData *d = data;
    TorSearchArgs *args = b->args;
    args->dtype = d->dtype;
    args->dst_dtype = d->dst_dtype;
    args->right = d->right;
    args->rank = d->rank;
    args->n = b->ints[d->n];
    args->line_stride = b->ints[d->line];
    tor_bind_dims(b->ints, d->size, d->rank, args->size);
    tor_bind_dims(b->ints, d->value, d->rank, args->value_stride);
    tor_bind_dims(b->ints, d->sorted, d->rank, args->sorted_stride);
    tor_bind_dims(b->ints, d->dst, d->rank, args->dst_stride);
    if (tor_bind_reference(b, tor_search_ref_range, 0)) return;
    tor_search_bind(args);
    b->scratch_bytes = args->scratch_bytes;
    tor_bind_region(b, tor_search_run, args, args->items);
}

static const TorStepKind search_kind = {
    .name = "search", .bind = bind_search, .reference = "tor_search_ref"};

ToroidStatus tor_lower_searchsorted(TorPlan *plan, const TorNode *node) {
    TorView lines, values, to;
    SearchData *d;
    TOR_TRY(tor_plan_view(plan, tor_in(node, 0), &lines));
    TOR_TRY(tor_plan_view(plan, tor_in(node, 1), &values));
    TOR_TRY(tor_plan_view(plan, node->outputs[0], &to));
    TOR_TRY(tor_step_add(plan, &search_kind, node, sizeof *d, sizeof(TorSearchArgs), &d));
    d->dtype = lines.dtype;
    d->dst_dtype = to.dtype;
    d->right = tor_attr_int(node, TOR_ATTR_right, 0) != 0;
    d->rank = to.rank;
    d->n = lines.dim[lines.rank - 1];
    d->line = lines.stride[lines.rank - 1];
    for (int i = 0; i < to.rank; i++)
        d->sorted[i] =
            lines.rank > 1 && i < to.rank - 1 ? lines.stride[i] : tor_int_const(plan->g, 0);
    memcpy(d->size, to.dim, sizeof d->size);
    memcpy(d->value, values.stride, sizeof d->value);
    memcpy(d->dst, to.stride, sizeof d->dst);
    TOR_TRY(tor_step_pointer(plan, &lines, offsetof(TorSearchArgs, sorted)));
    TOR_TRY(tor_step_pointer(plan, &values, offsetof(TorSearchArgs, values)));
    return tor_step_pointer(plan, &to, offsetof(TorSearchArgs, dst));
}

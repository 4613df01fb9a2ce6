// Indexing ops: each is one loop nest of the gather family, with its dims in the order that
// kernels/gather/contract.h gives.
#include <stdio.h>
#include <string.h>

#include "kernels/gather/contract.h"
#include "plan/step.h"

typedef struct {
    bool scatter, wrap;
    TorScatterReduce reduce;
    TorDtype dtype;
    int rank, n_index;
    TorDim size[TOR_MAX_RANK], data_stride[TOR_MAX_RANK], other_stride[TOR_MAX_RANK];
    TorDim index_stride[TOR_INDEX_MAX][TOR_MAX_RANK], axis_size[TOR_INDEX_MAX],
        axis_stride[TOR_INDEX_MAX];
    TorDtype index_dtype[TOR_INDEX_MAX];
} IndexData;

TOR_REFERENCE_RUN(tor_gather_ref)
TOR_REFERENCE_RUN(tor_scatter_ref)

static void bind_index(const void *data, TorBinder *b) {
    const IndexData *d = data;
    TorIndexArgs *args = b->args;
    const int64_t *ints = b->ints;
    args->dtype = d->dtype;
    args->reduce = d->reduce;
    args->wrap = d->wrap;
    args->rank = d->rank;
    args->n_index = d->n_index;
    tor_bind_dims(ints, d->size, d->rank, args->size);
    tor_bind_dims(ints, d->data_stride, d->rank, args->data_stride);
    tor_bind_dims(ints, d->other_stride, d->rank, args->other_stride);
    for (int k = 0; k < d->n_index; k++) {
        tor_bind_dims(ints, d->index_stride[k], d->rank, args->index_stride[k]);
        args->axis_size[k] = ints[d->axis_size[k]];
        args->axis_stride[k] = ints[d->axis_stride[k]];
        args->index_dtype[k] = d->index_dtype[k];
    }
    args->error = b->error;
    TorRangeFn oracle = d->scatter ? tor_scatter_ref_range : tor_gather_ref_range;
    if (tor_bind_reference(b, oracle, 0)) return;
    if (d->scatter)
        tor_scatter_bind(args);
    else
        tor_gather_bind(args);
    b->scratch_bytes = args->scratch_bytes;
    tor_bind_region(b, d->scatter ? tor_scatter_run : tor_gather_run, args, args->items);
}

static const char *index_kernel(const void *args) {
    const TorIndexKernel *kernel = ((const TorIndexArgs *)args)->kernel;
    return kernel ? tor_index_kernel_name(kernel) : NULL;
}

/// Whether eager raises an IndexError for an index out of range, and not a RuntimeError: that
/// differs from op to op.
static bool raises_index_error(const TorNode *node) {
    switch (node->op) {
        case TOR_OP_gather:
        case TOR_OP_scatter: return tor_attr_int(node, TOR_ATTR_index_error, 0);
        case TOR_OP_index_select: return tor_attr_int(node, TOR_ATTR_axis, 0) != 1;
        default: return true;
    }
}

static ToroidStatus index_raised(const TorStep *step, const void *args, int error) {
    const TorIndexArgs *a = args;
    const TorNode *node = step->node;
    int which;
    int64_t value;
    char text[160] = "index out of range";
    (void)error;
    if (tor_index_find_error(args, &which, &value))
        snprintf(text, sizeof text,
                 "index %" PRId64 " is out of range for an axis of size %" PRId64 " (%s, %s)",
                 value, a->axis_size[which], tor_op_name(node->op),
                 node->origin ? node->origin : "made by a pass");
    return raises_index_error(node) ? tor_invalid_index("%s", text) : tor_invalid_data("%s", text);
}

static const TorStepKind gather_kind = {.name = "gather",
                                        .bind = bind_index,
                                        .kernel = index_kernel,
                                        .reference = "tor_gather_ref",
                                        .raised = index_raised};
static const TorStepKind scatter_kind = {.name = "scatter",
                                         .bind = bind_index,
                                         .kernel = index_kernel,
                                         .reference = "tor_scatter_ref",
                                         .raised = index_raised};

/// The dims of the loop nest and where each of them moves data, other and indices.
typedef struct {
    TorPlan *plan;
    IndexData *d;
    TorView data, other, index[TOR_INDEX_MAX];
    TorDim zero;
} Nest;

static void add_dim(Nest *n, TorDim size, TorDim data, TorDim other, int index_dim) {
    IndexData *d = n->d;
    d->size[d->rank] = size;
    d->data_stride[d->rank] = data;
    d->other_stride[d->rank] = other;
    for (int k = 0; k < d->n_index; k++)
        d->index_stride[k][d->rank] = index_dim < 0 ? n->zero : n->index[k].stride[index_dim];
    d->rank++;
}

/// One axis of data is indexed by a 1-d index or by one of any rank (embedding); the index's dims
/// stand in the axis' place.
static void nest_of_rows(Nest *n, int axis) {
    int index_rank = n->index[0].rank;
    for (int i = 0; i < axis; i++)
        add_dim(n, n->other.dim[i], n->data.stride[i], n->other.stride[i], -1);
    for (int i = 0; i < index_rank; i++)
        add_dim(n, n->other.dim[axis + i], n->zero, n->other.stride[axis + i], i);
    for (int i = axis + 1; i < n->data.rank; i++)
        add_dim(n, n->other.dim[i - 1 + index_rank], n->data.stride[i],
                n->other.stride[i - 1 + index_rank], -1);
}

/// The index has data's rank: gather and scatter.
static void nest_of_elements(Nest *n, int axis) {
    for (int i = 0; i < n->data.rank; i++)
        add_dim(n, n->index[0].dim[i], i == axis ? n->zero : n->data.stride[i], n->other.stride[i],
                i);
}

/// The dims of numpy's result: axes of data that are not indexed, and the common index dims, as
/// -1 - j, in the place of adjacent indexed axes or in front. Returns their count.
static int result_dims(const TorAttr *axes, int data_rank, int index_rank, int *dims) {
    bool indexed[TOR_MAX_RANK] = {false}, adjacent = true;
    for (int k = 0; k < axes->count; k++) {
        indexed[axes->ints[k]] = true;
        adjacent &= k == 0 || axes->ints[k] == axes->ints[k - 1] + 1;
    }
    int place = adjacent ? (int)axes->ints[0] : 0, count = 0;
    for (int i = 0; i < data_rank; i++) {
        for (int j = 0; i == place && j < index_rank; j++) dims[count++] = -1 - j;
        if (!indexed[i]) dims[count++] = i;
    }
    return count;
}

/// Several axes are indexed together.
static void nest_of_axes(Nest *n, const int *dims, int count) {
    for (int at = 0; at < count; at++) {
        bool of_index = dims[at] < 0;
        add_dim(n, n->other.dim[at], of_index ? n->zero : n->data.stride[dims[at]],
                n->other.stride[at], of_index ? -1 - dims[at] : -1);
    }
}

static TorScatterReduce reduce_of(const TorNode *node) {
    static const char *const names[] = {"", "add", "mul", "amax", "amin"};
    if (tor_attr_int(node, TOR_ATTR_accumulate, 0)) return TOR_SCATTER_add;
    const char *name = tor_attr_str(node, TOR_ATTR_reduce, "");
    for (size_t i = 0; i < TOR_COUNT_OF(names); i++)
        if (strcmp(name, names[i]) == 0) return (TorScatterReduce)i;
    return TOR_SCATTER_assign;
}

/// `data` is what is indexed, `other` what is read or written along; indices are inputs from
/// `first`.
static ToroidStatus index_step(TorPlan *plan, const TorNode *node, const TorView *data,
                               const TorView *other, int first) {
    bool scatter =
        node->op == TOR_OP_index_put || node->op == TOR_OP_index_copy || node->op == TOR_OP_scatter;
    int axis = (int)tor_attr_int(node, TOR_ATTR_axis, 0);
    const TorAttr *axes = tor_attr(node, TOR_ATTR_axes);
    Nest n = {.plan = plan, .data = *data, .other = *other, .zero = tor_int_const(plan->g, 0)};
    TOR_TRY(tor_step_add(plan, scatter ? &scatter_kind : &gather_kind, node, sizeof(IndexData),
                         sizeof(TorIndexArgs), &n.d));
    n.d->scatter = scatter;
    n.d->dtype = data->dtype;
    n.d->reduce = reduce_of(node);
    n.d->wrap = node->op == TOR_OP_index || node->op == TOR_OP_index_put;
    n.d->n_index = axes ? axes->count : 1;
    if (n.d->n_index > TOR_INDEX_MAX)
        return tor_refuse("%d index tensors; at most %d have a kernel", n.d->n_index,
                          TOR_INDEX_MAX);
    TorDim common[TOR_MAX_RANK];
    int common_rank = 0;
    for (int k = 0; k < n.d->n_index; k++) {
        TOR_TRY(tor_plan_view(plan, tor_in(node, first + k), &n.index[k]));
        n.d->index_dtype[k] = n.index[k].dtype;
        n.d->axis_size[k] = data->dim[axes ? axes->ints[k] : axis];
        n.d->axis_stride[k] = data->stride[axes ? axes->ints[k] : axis];
        TOR_TRY(tor_step_pointer(plan, &n.index[k],
                                 offsetof(TorIndexArgs, index) + (size_t)k * sizeof(void *)));
        common_rank = TOR_MAX(common_rank, n.index[k].rank);
    }
    if (axes) {
        // Indices broadcast to a common shape.
        for (int i = 0; i < common_rank; i++) {
            common[i] = tor_int_const(plan->g, 1);
            for (int k = 0; k < n.d->n_index; k++) {
                int own = i - (common_rank - n.index[k].rank);
                if (own >= 0)
                    common[i] =
                        tor_int_binary(plan->g, TOR_INT_broadcast, common[i], n.index[k].dim[own]);
            }
        }
        for (int k = 0; k < n.d->n_index; k++)
            n.index[k] = tor_view_broadcast(plan, &n.index[k], common_rank, common);
        if (data->rank - n.d->n_index + common_rank > TOR_MAX_RANK)
            return tor_refuse("the result has too many dims");
        int dims[2 * TOR_MAX_RANK], rank = result_dims(axes, data->rank, common_rank, dims);
        if (scatter) {
            // Values broadcast to the shape of what they replace.
            TorDim shape[TOR_MAX_RANK];
            for (int i = 0; i < rank; i++)
                shape[i] = dims[i] < 0 ? common[-1 - dims[i]] : data->dim[dims[i]];
            n.other = tor_view_broadcast(plan, &n.other, rank, shape);
        }
        nest_of_axes(&n, dims, rank);
    } else if (node->op == TOR_OP_gather || node->op == TOR_OP_scatter) {
        nest_of_elements(&n, axis);
    } else {
        nest_of_rows(&n, axis);
    }
    if (scatter) tor_step_writes(plan, data, n.d->rank, n.d->size);
    TOR_TRY(tor_step_pointer(plan, data, offsetof(TorIndexArgs, data)));
    return tor_step_pointer(plan, other, offsetof(TorIndexArgs, other));
}

ToroidStatus tor_lower_gather(TorPlan *plan, const TorNode *node) {
    TorView data, other;
    TOR_TRY(tor_plan_view(plan, tor_in(node, 0), &data));
    TOR_TRY(tor_plan_view(plan, node->outputs[0], &other));
    return index_step(plan, node, &data, &other, 1);
}

ToroidStatus tor_lower_scatter(TorPlan *plan, const TorNode *node) {
    TorView x, to, source;
    int source_at = node->op == TOR_OP_index_put ? 1 : 2;
    TOR_TRY(tor_plan_view(plan, tor_in(node, 0), &x));
    TOR_TRY(tor_plan_view(plan, tor_in(node, source_at), &source));
    TOR_TRY(tor_plan_view(plan, node->outputs[0], &to));
    if (!tor_attr_int(node, TOR_ATTR_inplace, 0)) TOR_TRY(tor_lower_copy(plan, node, &x, &to));
    return index_step(plan, node, &to, &source, node->op == TOR_OP_index_put ? 2 : 1);
}

// Arithmetic on symbolic sizes and strides.
#include "passes/layout.h"

void tor_layout_dense(TorGraph *g, int rank, const TorDim *dim, const int *order, TorDim *stride) {
    TorDim step = tor_int_const(g, 1);
    for (int i = rank - 1; i >= 0; i--) {
        int d = order ? order[i] : i;
        int64_t size;
        stride[d] = step;
        // A size of 0 counts as 1, as in PyTorch. Symbolic sizes are taken as positive: PyTorch
        // compiles a graph of its own for 0.
        if (!tor_int_known(g, dim[d], &size) || size > 1) step = tor_int_mul(g, step, dim[d]);
    }
}

bool tor_layout_view(TorGraph *g, int rank, const TorDim *dim, const TorDim *stride, int new_rank,
                     const TorDim *new_dim, TorDim *new_stride) {
    // Runs of old dims that one stride walks, outermost first. Dims of size 1 do not matter.
    TorDim run_size[TOR_MAX_RANK], run_stride[TOR_MAX_RANK];
    int runs = 0;
    for (int d = 0; d < rank; d++) {
        if (tor_int_is(g, dim[d], 0)) {
            tor_layout_dense(g, new_rank, new_dim, NULL, new_stride);
            return true;
        }
        if (tor_int_is(g, dim[d], 1)) continue;
        if (runs && run_stride[runs - 1] == tor_int_mul(g, stride[d], dim[d])) {
            run_size[runs - 1] = tor_int_mul(g, run_size[runs - 1], dim[d]);
            run_stride[runs - 1] = stride[d];
        } else {
            run_size[runs] = dim[d];
            run_stride[runs++] = stride[d];
        }
    }
    // New dims from the innermost on must fill the runs exactly.
    int run = runs - 1;
    TorDim one = tor_int_const(g, 1), taken = one;
    for (int d = new_rank - 1; d >= 0; d--) {
        if (tor_int_is(g, new_dim[d], 1)) {
            new_stride[d] = run >= 0 ? tor_int_mul(g, run_stride[run], taken) : one;
            continue;
        }
        if (run < 0) return false;
        new_stride[d] = tor_int_mul(g, run_stride[run], taken);
        taken = tor_int_mul(g, taken, new_dim[d]);
        if (taken == run_size[run]) {
            run--;
            taken = one;
        }
    }
    return run < 0 && taken == one;
}

bool tor_layout_mergeable(TorGraph *g, const TorValue *v, int first, int count, TorDim *stride) {
    bool any = false;
    TorDim inner = tor_int_const(g, 0), extent = 0;
    *stride = inner;
    for (int d = first; d < first + count; d++)
        if (tor_int_is(g, v->dim[d], 0)) return true;  // nothing is walked
    for (int d = first + count - 1; d >= first; d--) {
        if (tor_int_is(g, v->dim[d], 1)) continue;
        if (!any) {
            inner = v->stride[d];
            extent = tor_int_mul(g, v->stride[d], v->dim[d]);
            any = true;
        } else {
            if (v->stride[d] != extent) return false;
            extent = tor_int_mul(g, extent, v->dim[d]);
        }
    }
    *stride = inner;
    return true;
}

bool tor_layout_is_dense(TorGraph *g, const TorValue *v, int *order) {
    // Innermost dim has stride 1, the next one's stride is the product so far, and so on.
    bool used[TOR_MAX_RANK] = {false};
    TorDim step = tor_int_const(g, 1);
    int at = v->rank;
    for (int d = v->rank - 1; d >= 0; d--)
        if (tor_int_is(g, v->dim[d], 1)) used[d] = true;
    for (;;) {
        int next = -1;
        for (int d = v->rank - 1; d >= 0; d--)
            if (!used[d] && v->stride[d] == step) {
                next = d;
                break;
            }
        if (next < 0) break;
        used[next] = true;
        order[--at] = next;
        step = tor_int_mul(g, step, v->dim[next]);
    }
    for (int d = 0; d < v->rank; d++)
        if (!used[d]) return false;
    // Dims of size 1 go where they keep their logical neighbours, so that the order of an
    // otherwise row-major value is row-major.
    int packed[TOR_MAX_RANK], count = v->rank - at, out = 0;
    for (int i = 0; i < count; i++) packed[i] = order[at + i];
    int i = 0;
    for (int d = 0; d < v->rank; d++) {
        if (!tor_int_is(g, v->dim[d], 1)) continue;
        while (i < count && packed[i] < d) order[out++] = packed[i++];
        order[out++] = d;
    }
    while (i < count) order[out++] = packed[i++];
    return true;
}

void tor_layout_own(TorGraph *g, TorValue *v, const int *order) {
    tor_layout_dense(g, v->rank, v->dim, order, v->stride);
    v->offset = tor_int_const(g, 0);
    v->storage = v;
    v->has_layout = true;
}

// The meaning of a graph, as plainly as it can be written: every node by loops over doubles, in
// row-major order, before any pass has touched it. Tests compare executables with it.
//
// Integers are exact up to 2^53. Half types and float32 are kept in double: a test compares with a
// tolerance and keeps away from values where that would change a comparison.
#ifndef TESTS_SUPPORT_INTERPRET_H
#define TESTS_SUPPORT_INTERPRET_H

#include "interpret_contract.h"

static inline void interpret_reduce(const TorNode *node, const Array *x, Array *y) {
    uint32_t mask = axes_mask(node);
    bool keep = tor_attr_int(node, TOR_ATTR_keepdim, 0);
    int64_t n = array_numel(x), m = array_numel(y), length = m ? n / m : 0, at[TOR_MAX_RANK],
            to[TOR_MAX_RANK];
    double *sum = calloc((size_t)m + 1, sizeof *sum), *mean = calloc((size_t)m + 1, sizeof *mean);
    int64_t *seen = calloc((size_t)m + 1, sizeof *seen);
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < n; i++) {
            int rank = 0;
            array_index(x, i, at);
            for (int d = 0; d < x->rank; d++)
                if (!(mask >> d & 1))
                    to[rank++] = at[d];
                else if (keep)
                    to[rank++] = 0;
            int64_t j = array_flat(y, to);
            double v = x->data[i];
            if (pass == 0) mean[j] += v / (double)length;
            if (pass == 1) {
                double *r = &y->data[j];
                bool first = seen[j]++ == 0;
                switch (node->op) {
                    case TOR_OP_sum: *r = first ? v : *r + v; break;
                    case TOR_OP_prod: *r = first ? v : *r * v; break;
                    case TOR_OP_mean: *r = mean[j]; break;
                    case TOR_OP_amax: *r = first || v > *r ? v : *r; break;
                    case TOR_OP_amin: *r = first || v < *r ? v : *r; break;
                    case TOR_OP_any: *r = first ? v != 0 : *r != 0 || v != 0; break;
                    case TOR_OP_all: *r = first ? v != 0 : *r != 0 && v != 0; break;
                    case TOR_OP_argmax:
                    case TOR_OP_argmin:
                        if (first || (node->op == TOR_OP_argmax ? v > sum[j] : v < sum[j])) {
                            sum[j] = v;
                            *r = (double)(seen[j] - 1);
                        }
                        break;
                    case TOR_OP_var:
                        sum[j] += (v - mean[j]) * (v - mean[j]);
                        *r = sum[j] /
                             fmax((double)length - tor_attr_float(node, TOR_ATTR_correction, 1), 0);
                        break;
                    default: fail();
                }
            }
        }
    if (n == 0)
        for (int64_t j = 0; j < m; j++)
            y->data[j] = node->op == TOR_OP_prod || node->op == TOR_OP_all   ? 1
                         : node->op == TOR_OP_mean || node->op == TOR_OP_var ? NAN
                                                                             : 0;
    free(sum), free(mean), free(seen);
}

static inline void interpret_softmax(const TorNode *node, const Array *x, Array *y) {
    int axis = (int)tor_attr_int(node, TOR_ATTR_axis, 0);
    int64_t n = array_numel(x), at[TOR_MAX_RANK];
    for (int64_t i = 0; i < n; i++) {
        array_index(x, i, at);
        if (at[axis]) continue;  // the whole line is done at its first element
        double most = -INFINITY, sum = 0;
        int64_t length = x->size[axis], line[4096];
        assert_true(length <= (int64_t)TOR_COUNT_OF(line));
        for (int64_t k = 0; k < length; k++) {
            at[axis] = k;
            line[k] = array_flat(x, at);
            most = fmax(most, x->data[line[k]]);
        }
        for (int64_t k = 0; k < length; k++) sum += exp(x->data[line[k]] - most);
        for (int64_t k = 0; k < length; k++)
            y->data[line[k]] = node->op == TOR_OP_softmax ? exp(x->data[line[k]] - most) / sum
                                                          : x->data[line[k]] - most - log(sum);
    }
}

static inline void interpret_norm(Interpreter *it, const TorNode *node, const Array *x, Array *y) {
    int count = (int)tor_attr_int(node, TOR_ATTR_count, 1);
    int64_t row = 1, n = array_numel(x);
    for (int d = x->rank - count; d < x->rank; d++) row *= x->size[d];
    const double *gamma =
        tor_attr_int(node, TOR_ATTR_has_gamma, 0) ? interpreted(it, node, 1)->data : NULL;
    const double *beta = tor_attr_int(node, TOR_ATTR_has_beta, 0)
                             ? interpreted(it, node, 1 + (gamma != NULL))->data
                             : NULL;
    for (int64_t i = 0; i < n; i += row) {
        double mean = 0, spread = 0;
        for (int64_t k = 0; k < row && node->op == TOR_OP_layer_norm; k++)
            mean += x->data[i + k] / (double)row;
        for (int64_t k = 0; k < row; k++)
            spread += (x->data[i + k] - mean) * (x->data[i + k] - mean) / (double)row;
        for (int64_t k = 0; k < row; k++)
            y->data[i + k] = (x->data[i + k] - mean) /
                                 sqrt(spread + tor_attr_float(node, TOR_ATTR_eps, 0)) *
                                 (gamma ? gamma[k] : 1) +
                             (beta ? beta[k] : 0);
    }
}

/// Where item `at` of the common index space of `axes` (or one axis) lies in x.
static inline void indexed_place(Interpreter *it, const TorNode *node, int first, const Array *x,
                                 int rank, const int64_t *at, int64_t *place) {
    const TorAttr *axes = tor_attr(node, TOR_ATTR_axes);
    bool together = true, indexed[TOR_MAX_RANK] = {false};
    int common = 0, from = 0;
    for (int k = 0; k < axes->count; k++) {
        indexed[axes->ints[k]] = true;
        together &= k == 0 || axes->ints[k] == axes->ints[k - 1] + 1;
        common = TOR_MAX(common, interpreted(it, node, first + k)->rank);
    }
    int start = together ? (int)axes->ints[0] : 0;
    (void)rank;
    for (int d = 0; d < x->rank; d++) {
        if (from == start) from += common;
        if (!indexed[d]) place[d] = at[from++];
    }
    for (int k = 0; k < axes->count; k++) {
        int64_t size = x->size[axes->ints[k]];
        int64_t i = (int64_t)array_broadcast(interpreted(it, node, first + k), common, at + start);
        place[axes->ints[k]] = i < 0 ? i + size : i;
    }
}

static inline void interpret_move(Interpreter *it, const TorNode *node, Array *y) {
    const Array *x = interpreted(it, node, 0),
                *ix = node->n_inputs > 1 ? interpreted(it, node, 1) : NULL;
    int axis = (int)tor_attr_int(node, TOR_ATTR_axis, 0);
    int64_t n = array_numel(y), at[TOR_MAX_RANK], from[TOR_MAX_RANK], shift = 0;
    bool add = tor_attr_int(node, TOR_ATTR_accumulate, 0) ||
               strcmp(tor_attr_str(node, TOR_ATTR_reduce, ""), "add") == 0;
    switch (node->op) {
        case TOR_OP_contiguous: memcpy(y->data, x->data, (size_t)n * sizeof(double)); return;
        case TOR_OP_cat:
            for (int k = 0; k < node->n_inputs; k++) {
                const Array *part = interpreted(it, node, k);
                for (int64_t i = 0; i < array_numel(part); i++) {
                    array_index(part, i, at);
                    at[axis] += shift;
                    y->data[array_flat(y, at)] = part->data[i];
                }
                shift += part->size[axis];
            }
            return;
        case TOR_OP_pad: {
            TorScalar value = tor_attr(node, TOR_ATTR_value)->scalar;
            for (int64_t i = 0; i < n; i++) {
                bool inside = true;
                array_index(y, i, at);
                for (int d = 0; d < x->rank; d++) {
                    from[d] = at[d] - it->ints[tor_attr(node, TOR_ATTR_low)->dims[d]];
                    inside &= from[d] >= 0 && from[d] < x->size[d];
                }
                y->data[i] = inside                            ? x->data[array_flat(x, from)]
                             : tor_dtype_is_float(value.dtype) ? value.f
                                                               : (double)value.i;
            }
            return;
        }
        case TOR_OP_flip:
            for (int64_t i = 0; i < n; i++) {
                array_index(y, i, at);
                for (int d = 0; d < x->rank; d++)
                    if (axes_mask(node) >> d & 1) at[d] = x->size[d] - 1 - at[d];
                y->data[i] = x->data[array_flat(x, at)];
            }
            return;
        case TOR_OP_cumsum:
            for (int64_t i = 0; i < n; i++) {
                array_index(y, i, at);
                y->data[i] = x->data[i];
                if (at[axis]-- > 0) y->data[i] += y->data[array_flat(y, at)];
            }
            return;
        case TOR_OP_embedding: {
            int64_t row = 1;
            for (int d = 1; d < x->rank; d++) row *= x->size[d];
            for (int64_t i = 0; i < n; i++)
                y->data[i] = x->data[(int64_t)ix->data[i / row] * row + i % row];
            return;
        }
        case TOR_OP_index_select:
        case TOR_OP_gather:
            for (int64_t i = 0; i < n; i++) {
                array_index(y, i, at);
                at[axis] = (int64_t)ix->data[node->op == TOR_OP_gather ? i : at[axis]];
                y->data[i] = x->data[array_flat(x, at)];
            }
            return;
        case TOR_OP_index:
            for (int64_t i = 0; i < n; i++) {
                array_index(y, i, at);
                indexed_place(it, node, 1, x, y->rank, at, from);
                y->data[i] = x->data[array_flat(x, from)];
            }
            return;
        default: break;
    }
    memcpy(y->data, x->data, (size_t)n * sizeof(double));
    if (node->op == TOR_OP_index_put) {
        Array space = {0};  // result dims of x[indices]
        const TorAttr *axes = tor_attr(node, TOR_ATTR_axes);
        bool together = true, indexed[TOR_MAX_RANK] = {false};
        int64_t common[TOR_MAX_RANK];
        int rank = 0;
        for (int k = 0; k < axes->count; k++) {
            indexed[axes->ints[k]] = true;
            together &= k == 0 || axes->ints[k] == axes->ints[k - 1] + 1;
            rank = TOR_MAX(rank, interpreted(it, node, 2 + k)->rank);
        }
        for (int d = 0; d < rank; d++) {
            common[d] = 1;
            for (int k = 0; k < axes->count; k++) {
                const Array *a = interpreted(it, node, 2 + k);
                int own = d - (rank - a->rank);
                if (own >= 0 && a->size[own] != 1) common[d] = a->size[own];
            }
        }
        int start = together ? (int)axes->ints[0] : 0;
        for (int d = 0; d <= x->rank; d++) {
            if (space.rank == start && rank >= 0) {
                for (int j = 0; j < rank; j++) space.size[space.rank++] = common[j];
                rank = -1;
            }
            if (d < x->rank && !indexed[d]) space.size[space.rank++] = x->size[d];
        }
        for (int64_t i = 0; i < array_numel(&space); i++) {
            array_index(&space, i, at);
            indexed_place(it, node, 2, x, space.rank, at, from);
            double v = array_broadcast(ix, space.rank, at), *to = &y->data[array_flat(y, from)];
            *to = add ? *to + v : v;
        }
        return;
    }
    const Array *source = interpreted(it, node, node->op == TOR_OP_slice_scatter ? 1 : 2);
    for (int64_t i = 0; i < array_numel(source); i++) {
        array_index(source, i, at);
        if (node->op == TOR_OP_slice_scatter)
            at[axis] = it->ints[tor_attr(node, TOR_ATTR_start)->dim] +
                       at[axis] * tor_attr_int(node, TOR_ATTR_step, 1);
        else
            at[axis] = (int64_t)ix->data[node->op == TOR_OP_scatter ? i : at[axis]];
        double *to = &y->data[array_flat(y, at)];
        *to = add ? *to + source->data[i] : source->data[i];
    }
}

static inline void interpret_view(Interpreter *it, const TorNode *node, Array *y) {
    const Array *x = interpreted(it, node, 0);
    int64_t at[TOR_MAX_RANK] = {0}, from[TOR_MAX_RANK];
    int axis = (int)tor_attr_int(node, TOR_ATTR_axis, 0);
    for (int64_t i = 0; i < array_numel(y); i++) {
        array_index(y, i, at);
        memcpy(from, at, sizeof from);
        switch (node->op) {
            case TOR_OP_view: y->data[i] = x->data[i]; continue;
            case TOR_OP_expand: y->data[i] = array_broadcast(x, y->rank, at); continue;
            case TOR_OP_permute:
                for (int d = 0; d < y->rank; d++)
                    from[tor_attr(node, TOR_ATTR_axes)->ints[d]] = at[d];
                break;
            case TOR_OP_slice:
                from[axis] = it->ints[tor_attr(node, TOR_ATTR_start)->dim] +
                             at[axis] * tor_attr_int(node, TOR_ATTR_step, 1);
                break;
            default: {
                int64_t place = tor_attr(node, TOR_ATTR_offset)
                                    ? it->ints[tor_attr(node, TOR_ATTR_offset)->dim]
                                    : 0;
                for (int d = 0; d < y->rank; d++)
                    place += at[d] * it->ints[tor_attr(node, TOR_ATTR_strides)->dims[d]];
                y->data[i] = x->data[place];
                continue;
            }
        }
        y->data[i] = x->data[array_flat(x, from)];
    }
}

static inline double cast_to(double x, TorDtype dtype) {
    if (dtype == TOR_bool) return x != 0;
    return tor_dtype_is_float(dtype) ? x : trunc(x);
}

static inline void interpret_map(Interpreter *it, const TorNode *node, Array *y) {
    int64_t at[TOR_MAX_RANK] = {0};
    for (int64_t i = 0; i < array_numel(y); i++) {
        double v[3] = {0};
        array_index(y, i, at);
        for (int k = 0; k < node->n_inputs; k++)
            v[k] = array_broadcast(interpreted(it, node, k), y->rank, at);
        y->data[i] = node->op == TOR_OP_cast ? cast_to(v[0], node->outputs[0]->dtype)
                                             : scalar_fn(node->op, v[0], v[1], v[2]);
    }
}

static inline void interpret_source(Interpreter *it, const TorNode *node, Array *y) {
    for (int64_t i = 0; i < array_numel(y); i++) {
        TorScalar s;
        if (node->op == TOR_OP_input) {
            const Tensor *t = it->inputs[tor_attr_int(node, TOR_ATTR_index, 0)];
            y->data[i] = tensor_at(t, i);
            continue;
        }
        if (node->op == TOR_OP_arange) {
            y->data[i] = tor_dtype_is_float(node->outputs[0]->dtype)
                             ? tor_attr_float(node, TOR_ATTR_fstart, 0) +
                                   (double)i * tor_attr_float(node, TOR_ATTR_fstep, 1)
                             : (double)(it->ints[tor_attr(node, TOR_ATTR_start)->dim] +
                                        i * tor_attr_int(node, TOR_ATTR_step, 1));
            continue;
        }
        if (node->op == TOR_OP_full)
            s = tor_attr(node, TOR_ATTR_value)->scalar;
        else
            s = tor_scalar_load((const uint8_t *)tor_attr(node, TOR_ATTR_blob)->blob +
                                    (size_t)i * tor_dtype_size(node->outputs[0]->dtype),
                                node->outputs[0]->dtype);
        y->data[i] = tor_dtype_is_float(s.dtype) ? s.f : (double)s.i;
    }
}

static inline int64_t interpreter_size(void *user, uint32_t input, int what) {
    Interpreter *it = user;
    const Tensor *t = it->inputs[input];
    return what == -1 ? t->value : what >= 0 ? t->size[what] : t->stride[TOR_ASK_STRIDE - what];
}

/// Evaluates the graph; the arrays live until interpreter_drop().
static inline Interpreter *interpret(TorGraph *g, Tensor *const *inputs) {
    Interpreter *it = calloc(1, sizeof *it);
    it->g = g;
    it->inputs = inputs;
    assert_true(tor_int_count(g) < TOR_COUNT_OF(it->ints) &&
                g->next_value < TOR_COUNT_OF(it->values));
    assert_int_equal(tor_int_eval(g, interpreter_size, it, it->ints), TOROID_OK);
    for (const TorNode *node = g->first; node; node = node->next) {
        for (int k = 0; k < node->n_outputs; k++) {
            const TorValue *v = node->outputs[k];
            Array *a = &it->values[v->id];
            a->rank = v->rank;
            for (int d = 0; d < v->rank; d++) a->size[d] = it->ints[v->dim[d]];
            a->data = calloc((size_t)array_numel(a) + 1, sizeof(double));
        }
        Array *y = node->n_outputs ? &it->values[node->outputs[0]->id] : NULL,
              *x = node->n_inputs ? interpreted(it, node, 0) : NULL;
        switch (tor_op_kind(node->op)) {
            case TOR_KIND_SOURCE: interpret_source(it, node, y); break;
            case TOR_KIND_SINK: break;
            case TOR_KIND_MAP: interpret_map(it, node, y); break;
            case TOR_KIND_VIEW: interpret_view(it, node, y); break;
            case TOR_KIND_REDUCE: interpret_reduce(node, x, y); break;
            case TOR_KIND_ROW:
                if (node->op == TOR_OP_softmax || node->op == TOR_OP_log_softmax)
                    interpret_softmax(node, x, y);
                else
                    interpret_norm(it, node, x, y);
                break;
            case TOR_KIND_CONTRACT:
                if (node->op == TOR_OP_conv)
                    interpret_conv(it, node, y);
                else if (node->op == TOR_OP_attention)
                    interpret_attention(it, node, y);
                else
                    interpret_contract(it, node, y);
                break;
            case TOR_KIND_POOL:
                interpret_pool(node, x, y,
                               node->n_outputs > 1 ? &it->values[node->outputs[1]->id] : NULL);
                break;
            case TOR_KIND_MOVE: interpret_move(it, node, y); break;
            default: fail_msg("interpreter: no rule for %s", tor_op_name(node->op));
        }
    }
    return it;
}

static inline void interpreter_drop(Interpreter *it) {
    for (size_t i = 0; i < TOR_COUNT_OF(it->values); i++) free(it->values[i].data);
    free(it);
}

#endif

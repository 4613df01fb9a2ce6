/// cat and stack, and ops that move elements along an axis: roll, flip, pad.
#include "aten/build.h"
#include "aten/tables.h"

#define MAX_PARTS 4096

/// The tensors of argument 0, in the type that they promote to.
static int parts_of(TorCall *c, TorValue ***out) {
    int n = c->args[0].kind == TOR_ARG_LIST ? c->args[0].count : 0;
    TorValue **parts = tor_arena_alloc(c->g->arena, (size_t)TOR_MAX(n, 1) * sizeof(TorValue *));
    if (!parts) c->status = tor_no_memory();
    n = tor_im_tensors(c, 0, parts, MAX_PARTS, false);
    if (!c->status && n == 0) tor_im_refuse_arg(c, 0, "expected at least one tensor");
    if (c->status) return 0;
    TorPromotion p = TOR_PROMOTION_NONE;
    for (int i = 0; i < n; i++) tor_promote_tensor(&p, parts[i]->dtype, parts[i]->rank);
    for (int i = 0; i < n; i++) parts[i] = tor_im_cast(c, parts[i], tor_promote_result(&p));
    *out = parts;
    return n;
}

static ToroidStatus import_cat(TorCall *c) {
    TorValue **parts = NULL;
    int n = parts_of(c, &parts), kept = 0;
    if (c->status) return c->status;
    // Empty tensors of one dim are skipped, whatever the others' rank: a rule of old that eager
    // keeps.
    TorValue *first = parts[0];
    for (int i = 0; i < n; i++)
        if (!(parts[i]->rank == 1 && tor_int_is(c->g, parts[i]->dim[0], 0)))
            parts[kept++] = parts[i];
    if (kept == 0) return RETURN(tor_im_contiguous(c, first));
    int axis = tor_im_axis(c, 1, parts[0]->rank);
    for (int i = 0; i < kept; i++)
        if (parts[i]->rank == 0) return tor_im_refuse_arg(c, 0, "0-d tensors cannot be joined");
    return RETURN(kept == 1 ? tor_im_contiguous(c, parts[0]) : tor_im_cat(c, parts, kept, axis));
}

static ToroidStatus import_stack(TorCall *c) {
    TorValue **parts = NULL;
    int n = parts_of(c, &parts);
    if (c->status) return c->status;
    int axis = tor_im_axis(c, 1, parts[0]->rank + 1);
    for (int i = 0; i < n; i++) parts[i] = tor_im_unsqueeze(c, parts[i], axis);
    return RETURN(c->status ? NULL
                  : n == 1  ? tor_im_contiguous(c, parts[0])
                            : tor_im_cat(c, parts, n, axis));
}

// ---------------------------------------------------------------- along an axis

static TorValue *roll_one(TorCall *c, TorValue *x, int axis, TorDim shift) {
    if (c->status || !x) return NULL;
    TorDim size = x->dim[axis], zero = tor_im_const(c, 0);
    TorDim start = tor_int_binary(c->g, TOR_INT_mod, tor_int_sub(c->g, zero, shift), size);
    if (tor_int_is(c->g, size, 0) || tor_int_is(c->g, start, 0)) return x;
    TorValue *parts[] = {tor_im_slice(c, x, axis, start, 1, tor_int_sub(c->g, size, start)),
                         tor_im_slice(c, x, axis, zero, 1, start)};
    return tor_im_cat(c, parts, 2, axis);
}

static ToroidStatus import_roll(TorCall *c) {
    TorDim shifts[TOR_MAX_RANK];
    int64_t axes[TOR_MAX_RANK];
    TorValue *x = tor_im_tensor(c, 0);
    int n = tor_im_dims(c, 1, shifts), m = tor_im_int_list(c, 2, axes);
    if (c->status) return c->status;
    TorValue *r = x;
    if (m == 0 && n == 1) {
        TorDim numel = tor_value_numel(c->g, x);
        r = tor_im_view(c, roll_one(c, tor_im_view(c, x, 1, &numel), 0, shifts[0]), x->rank,
                        x->dim);
    } else {
        if (n != m || x->rank == 0) return tor_im_refuse(c, "expected one shift an axis");
        for (int i = 0; i < n; i++)
            r = roll_one(c, r, tor_im_wrap_axis(c, axes[i], x->rank), shifts[i]);
    }
    return RETURN(tor_im_contiguous(c, r));  // never the memory of x
}

static ToroidStatus import_flip(TorCall *c) {
    int64_t axes[TOR_MAX_RANK];
    TorValue *x = tor_im_tensor(c, 0);
    if (!x) return c->status;
    bool none = c->args[1].kind == TOR_ARG_LIST && c->args[1].count == 0;
    int n = none ? 0 : tor_im_axes(c, 1, x->rank, axes);
    if (n == 0) return RETURN(tor_im_contiguous(c, x));
    TorAttr a = TOR_A_INTS(axes, axes, n);
    return RETURN(tor_im_add(c, TOR_OP_flip, &x, 1, &a, 1));
}

static ToroidStatus import_flip_axis(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    int64_t axis = c->row->op;
    if (x && x->rank <= axis)
        return tor_im_refuse_arg(c, 0, "expected at least %d dims", (int)axis + 1);
    TorAttr a = TOR_A_INTS(axes, &axis, 1);
    return RETURN(tor_im_add(c, TOR_OP_flip, &x, 1, &a, 1));
}

/// Pads come in pairs from the last dim on.
static ToroidStatus constant_pad(TorCall *c, int value_arg) {
    TorDim low[TOR_MAX_RANK], high[TOR_MAX_RANK];
    TorValue *x = tor_im_tensor(c, 0);
    const TorArg list = c->args[1];
    if (!x) return c->status;
    if (list.kind != TOR_ARG_LIST || list.count % 2 || list.count / 2 > x->rank)
        return tor_im_refuse_arg(c, 1, "expected at most %d pairs of integers", x->rank);
    for (int i = 0; i < x->rank; i++) low[i] = high[i] = tor_im_const(c, 0);
    bool moved = false;
    for (int k = 0; k < list.count; k++) {
        c->args[1] = list.list[k];
        TorDim *side = k % 2 ? high : low;
        side[x->rank - 1 - k / 2] = tor_im_dim(c, 1);
        if (c->status) return c->status;
        moved |= !tor_int_is(c->g, side[x->rank - 1 - k / 2], 0);
    }
    if (!moved) return RETURN(tor_im_contiguous(c, x));
    TorOperand value = {.is_number = true, .number = {.dtype = TOR_int64}};
    if (tor_im_has(c, value_arg)) value = tor_im_operand(c, value_arg);
    if (c->status) return c->status;
    if (value.value || !value.is_number)
        return tor_im_refuse_arg(c, value_arg, "expected a number that is known when compiling");
    TorAttr a[] = {TOR_A_DIMS(low, low, x->rank), TOR_A_DIMS(high, high, x->rank),
                   TOR_A_SCALAR(value, tor_scalar_cast(value.number, x->dtype))};
    return RETURN(tor_im_add(c, TOR_OP_pad, &x, 1, a, 3));
}

static ToroidStatus import_constant_pad(TorCall *c) { return constant_pad(c, 2); }

static ToroidStatus import_pad(TorCall *c) {
    const char *mode = tor_im_str(c, 2, "constant");
    if (mode[0] != 'c' || mode[1] != 'o')
        return tor_im_refuse_arg(c, 2, "expected 'constant', got '%s'", mode);
    return constant_pad(c, 3);
}

/// x[1:] - x[:-1] along an axis, n times.
static ToroidStatus import_diff(TorCall *c) {
    TorValue *x = tor_im_tensor(c, 0);
    int64_t n = tor_im_int(c, 1);
    if (!x) return c->status;
    if (x->rank == 0) return tor_im_refuse_arg(c, 0, "expected at least one dim");
    int axis = tor_im_axis(c, 2, x->rank);
    TorValue *parts[3];
    int count = 0;
    for (int i = 0; i < 3; i++) {
        TorValue *part = i == 1                          ? x
                         : tor_im_has(c, i == 0 ? 3 : 4) ? tor_im_tensor(c, i == 0 ? 3 : 4)
                                                         : NULL;
        if (part) parts[count++] = part;
    }
    TorPromotion p = TOR_PROMOTION_NONE;
    for (int i = 0; i < count; i++) tor_promote_tensor(&p, parts[i]->dtype, parts[i]->rank);
    for (int i = 0; i < count; i++) parts[i] = tor_im_cast(c, parts[i], tor_promote_result(&p));
    x = tor_im_cat(c, parts, count, axis);
    TorDim one = tor_im_const(c, 1), zero = tor_im_const(c, 0);
    for (int64_t k = 0; k < TOR_MIN(n, 64) && x && !c->status; k++) {
        TorDim rest = tor_im_max(c, tor_int_sub(c->g, x->dim[axis], one), zero);
        TorValue *after = tor_im_slice(c, x, axis, tor_im_min(c, one, x->dim[axis]), 1, rest),
                 *before = tor_im_slice(c, x, axis, zero, 1, rest);
        x = after && after->dtype == TOR_bool ? F2(bit_xor, after, before) : F2(sub, after, before);
    }
    if (n > 64 || n < 0) return tor_im_refuse_arg(c, 1, "%" PRId64 " is not supported", n);
    return RETURN(x);
}

static const TorAtenRow rows[] = {
    {"aten.cat.default", "tensors, dim=0", import_cat, 0},
    {"aten.concat.default", "tensors, dim=0", import_cat, 0},
    {"aten.concatenate.default", "tensors, dim=0", import_cat, 0},
    {"aten.stack.default", "tensors, dim=0", import_stack, 0},
    {"aten.roll.default", "self, shifts, dims=[]", import_roll, 0},
    {"aten.flip.default", "self, dims", import_flip, 0},
    {"aten.fliplr.default", "self", import_flip_axis, 1},
    {"aten.flipud.default", "self", import_flip_axis, 0},
    {"aten.constant_pad_nd.default", "self, pad, value=0", import_constant_pad, 0},
    {"aten.pad.default", "self, pad, mode=constant, value=None", import_pad, 0},
    {"aten.diff.default", "self, n=1, dim=-1, prepend=None, append=None", import_diff, 0},
};
TOR_ATEN_TABLE(join, rows);

// Type and shape rules: one case for each kind of op, and the messages of what is wrong.
#include "frame.h"

static void is(const TorValue *v, const char *expected) {
    char text[160];
    assert_string_equal(tor_type_print(g, v, text, sizeof(text)), expected);
}

static void refused(TorOp op, TorValue **inputs, int n_inputs, TorAttr *attrs, int n_attrs,
                    const char *message) {
    TorNode *node, *last = g->last;
    assert_int_equal(tor_graph_add(g, NULL, op, inputs, n_inputs, attrs, n_attrs, 1, &node),
                     TOROID_INVALID);
    if (!strstr(toroid_last_error(), message)) print_error("got: %s\n", toroid_last_error());
    assert_non_null(strstr(toroid_last_error(), message));
    assert_null(node);
    assert_ptr_equal(g->last, last);
}
#define REFUSED(op, ...) refused(TOR_OP_##op, __VA_ARGS__)

static void test_map(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "s 1 4"), *y = INPUT(g, "y", "3 1"),
             *b = make_input(g, "b", TOR_bool, "4", false);
    TorValue *h = make_input(g, "h", TOR_float16, "4", false),
             *i = make_input(g, "i", TOR_int64, "4", false), *odd = INPUT(g, "odd", "5");
    is(OP(g, add, INS(x, y), NONE), "float32[s0, 3, 4]");
    is(OP(g, mul, INS(h, number(g, 2.5)), NONE), "float16[4]");
    is(OP(g, mul, INS(number(g, 2.5), h), NONE), "float16[4]");
    is(OP(g, lt, INS(x, number(g, 0)), NONE), "bool[s0, 1, 4]");
    is(OP(g, where, INS(b, x, number(g, 0)), NONE), "float32[s0, 1, 4]");
    is(OP(g, where, INS(b, i, i), NONE), "int64[4]");
    is(OP(g, isnan, INS(h), NONE), "bool[4]");
    is(OP(g, cast, INS(i), ATTRS(TOR_A_DTYPE(dtype, TOR_bfloat16))), "bfloat16[4]");
    REFUSED(add, INS(x, h), NONE,
            "add: inputs must have one type, got float32[s0, 1, 4] and float16[4]");
    REFUSED(add, INS(x, odd), NONE, "sizes 4 and 5 at dim 2 do not broadcast");
    REFUSED(where, INS(x, x, x), NONE, "where: the condition must be bool, got float32[s0, 1, 4]");
    REFUSED(sqrt, INS(i), NONE, "sqrt: inputs must be of a float type, got int64");
    REFUSED(add, INS(x), NONE, "add: expected 2 inputs, got 1");
    REFUSED(cast, INS(x), NONE, "cast: attribute dtype is missing");
}

static void test_source(void **state) {
    (void)state;
    INPUT(g, "x", "s");
    float data[] = {1, 2, 3};
    TorAttr blob = TOR_A_BLOB(blob, data, sizeof(data)), f32 = TOR_A_DTYPE(dtype, TOR_float32);
    is(OP(g, constant, NULL, 0, ATTRS(blob, f32, DIMS(g, "3"))), "float32[3]");
    is(OP(g, full, NULL, 0,
          ATTRS(f32, DIMS(g, "s 2"), TOR_A_SCALAR(value, ((TorScalar){.dtype = TOR_float64})))),
       "float32[s0, 2]");
    is(OP(g, arange, NULL, 0,
          ATTRS(TOR_A_DTYPE(dtype, TOR_int64), DIMS(g, "s"), TOR_A_DIM(start, symbols['s']),
                TOR_A_INT(step, 2))),
       "int64[s0]");
    is(OP(g, external, NULL, 0, ATTRS(TOR_A_INT(callable, 4))), "float32[]");
    REFUSED(constant, NULL, 0, ATTRS(blob, f32, DIMS(g, "4")),
            "constant: attribute blob must have the bytes of 4 items of float32, got 12 bytes");
    REFUSED(full, NULL, 0, ATTRS(f32, DIMS(g, "4")), "full: attribute value is missing");
    REFUSED(full, NULL, 0,
            ATTRS(f32, DIMS(g, "-4"), TOR_A_SCALAR(value, ((TorScalar){.dtype = TOR_float64}))),
            "attribute dims: item 0 must not be negative, got -4");
    REFUSED(arange, NULL, 0, ATTRS(f32, DIMS(g, "4")),
            "arange: attributes fstart and fstep are expected for float32");
}

static void test_view(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "s 6 4");
    TorValue *y = INPUT(g, "y", "6 4");
    TorDim zero = tor_int_const(g, 0), three = tor_int_const(g, 3);
    is(OP(g, view, INS(x), ATTRS(DIMS(g, "s 24"))), "float32[s0, 24]");
    is(OP(g, permute, INS(x), ATTRS(INTS(axes, 2, 0, 1))), "float32[4, s0, 6]");
    is(OP(g, expand, INS(y), ATTRS(DIMS(g, "s 6 4"))), "float32[s0, 6, 4]");
    is(OP(g, slice, INS(x),
          ATTRS(TOR_A_INT(axis, 1), TOR_A_DIM(start, three), TOR_A_INT(step, 2), DIMS(g, "2"))),
       "float32[s0, 2, 4]");
    is(OP(g, as_strided, INS(y),
          ATTRS(DIMS(g, "3 8"), dims_attr(g, TOR_ATTR_strides, "8 1"), TOR_A_DIM(offset, zero))),
       "float32[3, 8]");
    REFUSED(view, INS(y), ATTRS(DIMS(g, "5 5")),
            "view: attribute dims must have the 24 elements of x, float32[6, 4], got 25");
    REFUSED(permute, INS(y), ATTRS(INTS(axes, 0, 0)), "permute: attribute axes has axis 0 twice");
    REFUSED(permute, INS(y), ATTRS(INTS(axes, 0, 2)),
            "permute: attribute axes: item 1 must be in [0, 2), got 2");
    REFUSED(permute, INS(y), ATTRS(INTS(axes, 1)),
            "permute: attribute axes must have 2 integers, got 1");
    REFUSED(expand, INS(y), ATTRS(DIMS(g, "7 4")),
            "dim 0 of x, float32[6, 4], cannot be expanded to 7");
    REFUSED(slice, INS(y),
            ATTRS(TOR_A_INT(axis, 0), TOR_A_DIM(start, three), TOR_A_INT(step, 2), DIMS(g, "3")),
            "slice: 3 items from 3 with step 2 leave axis 0 of size 6");
    REFUSED(slice, INS(y), ATTRS(TOR_A_INT(axis, 2), TOR_A_DIM(start, zero), DIMS(g, "3")),
            "attribute axis must be in [0, 2), got 2");
    REFUSED(as_strided, INS(y),
            ATTRS(DIMS(g, "3 9"), dims_attr(g, TOR_ATTR_strides, "8 1"), TOR_A_DIM(offset, zero)),
            "element 24 is outside of x, which has 24 elements");
    // The memory of an input may be more than the input; of other values it is not known.
    is(OP(g, as_strided, INS(y),
          ATTRS(DIMS(g, "3 9"), dims_attr(g, TOR_ATTR_strides, "8 1"), TOR_A_DIM(offset, zero),
                TOR_A_INT(memory, 1))),
       "float32[3, 9]");
    REFUSED(as_strided, INS(OP(g, neg, INS(y), NONE)),
            ATTRS(DIMS(g, "3 8"), dims_attr(g, TOR_ATTR_strides, "8 1"), TOR_A_DIM(offset, zero),
                  TOR_A_INT(memory, 1)),
            "attribute memory: only of graph inputs");
}

static void test_reduce(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "s 6 4"), *i = make_input(g, "i", TOR_int32, "6 4", false);
    is(OP(g, sum, INS(x), ATTRS(INTS(axes, 1, 2))), "float32[s0]");
    is(OP(g, sum, INS(i),
          ATTRS(INTS(axes, 0), TOR_A_DTYPE(dtype, TOR_int64), TOR_A_INT(keepdim, 1))),
       "int64[1, 4]");
    is(OP(g, mean, INS(i), ATTRS(INTS(axes, 0, 1), TOR_A_DTYPE(dtype, TOR_float32))), "float32[]");
    is(OP(g, amax, INS(x), ATTRS(INTS(axes, 0))), "float32[6, 4]");
    is(OP(g, argmax, INS(x), ATTRS(INTS(axes, 2), TOR_A_INT(keepdim, 1))), "int64[s0, 6, 1]");
    is(OP(g, any, INS(x), ATTRS(INTS(axes, 2))), "bool[s0, 6]");
    is(OP(g, var, INS(x), ATTRS(INTS(axes, 2))), "float32[s0, 6]");
    REFUSED(mean, INS(i), ATTRS(INTS(axes, 0)),
            "mean: attribute dtype must be a float type, got int32");
    REFUSED(sum, INS(i), NONE, "sum: attribute axes is missing");
    REFUSED(sum, INS(i), ATTRS(INTS(axes, -1)), "attribute axes: item 0 must be in [0, 2), got -1");
    REFUSED(argmax, INS(x), ATTRS(INTS(axes, 0, 1)),
            "argmax: attribute axes must have one axis or all 3, got 2");
}

static void test_row(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "s 6 4"), *w = INPUT(g, "w", "4"), *odd = INPUT(g, "odd", "6");
    TorAttr eps = TOR_A_FLOAT(eps, 1e-5), one = TOR_A_INT(count, 1),
            gamma = TOR_A_INT(has_gamma, 1), beta = TOR_A_INT(has_beta, 1);
    is(OP(g, softmax, INS(x), ATTRS(TOR_A_INT(axis, 2))), "float32[s0, 6, 4]");
    is(OP(g, log_softmax, INS(x), ATTRS(TOR_A_INT(axis, 2), TOR_A_DTYPE(dtype, TOR_float64))),
       "float64[s0, 6, 4]");
    is(OP(g, layer_norm, INS(x, w, w), ATTRS(one, eps, gamma, beta)), "float32[s0, 6, 4]");
    is(OP(g, rms_norm, INS(x), ATTRS(TOR_A_INT(count, 2), eps)), "float32[s0, 6, 4]");
    REFUSED(layer_norm, INS(x, odd), ATTRS(one, eps, gamma),
            "layer_norm: dim 0 of gamma must be 4, got float32[6]");
    REFUSED(layer_norm, INS(x, w), ATTRS(one, eps),
            "expected 1 inputs by has_gamma and has_beta, got 2");
    REFUSED(rms_norm, INS(x), ATTRS(TOR_A_INT(count, 4), eps),
            "rms_norm: attribute count must be in [1, 3], got 4");
}

static void test_linear(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "s 6 4"), *w = INPUT(g, "w", "8 4"), *v = INPUT(g, "v", "4 8"),
             *b = INPUT(g, "b", "8"), *bytes = make_input(g, "p", TOR_uint8, "999", true);
    TorAttr program = TOR_A_BLOB(epilogue, "x", 1);
    is(OP(g, linear, INS(x, w), NONE), "float32[s0, 6, 8]");
    is(OP(g, linear, INS(x, w, b), NONE), "float32[s0, 6, 8]");
    is(OP(g, linear, INS(x, v, b), ATTRS(TOR_A_INT(trans, 1))), "float32[s0, 6, 8]");
    is(OP(g, linear, INS(x, bytes, b),
          ATTRS(TOR_A_INT(packed, 1), TOR_A_INT(n, 8), TOR_A_INT(k, 4))),
       "float32[s0, 6, 8]");
    is(OP(g, linear, INS(x, w, x), ATTRS(program)), "float32[s0, 6, 8]");
    is(OP(g, linear, INS(x, w, b, x), ATTRS(program, TOR_A_INT(has_bias, 1))), "float32[s0, 6, 8]");
    REFUSED(linear, INS(x, v), NONE, "linear: dim 2 of x must be 8, got float32[s0, 6, 4]");
    REFUSED(linear, INS(x, w, b, b), NONE, "linear: expected 3 inputs without an epilogue, got 4");
    REFUSED(linear, INS(x, w, x), NONE, "linear: bias must have 1 dims, got float32[s0, 6, 4]");
    REFUSED(linear, INS(x, bytes), ATTRS(TOR_A_INT(packed, 1)),
            "linear: attribute n of a packed weight is missing");
}

static void test_epilogue_may_change_the_type(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "6 4"), *w = INPUT(g, "w", "8 4");
    TorValue *y = OP(g, linear, INS(x, w), ATTRS(TOR_A_BLOB(epilogue, "x", 1)));
    tor_graph_set_type(y, TOR_bfloat16, y->rank, y->dim);
    assert_int_equal(tor_graph_infer(g, y->node), TOROID_OK);
    is(y, "bfloat16[6, 8]");
}

static void test_matmul_and_attention(void **state) {
    (void)state;
    TorValue *a = INPUT(g, "a", "s 2 3 4"), *b = INPUT(g, "b", "s 2 4 5"),
             *c = INPUT(g, "c", "s 3 4 5");
    TorValue *q = INPUT(g, "q", "s 8 t 64"), *k = INPUT(g, "k", "s 2 u 64"),
             *v = INPUT(g, "v", "s 2 u 32"), *m = make_input(g, "m", TOR_bool, "t u", false);
    is(OP(g, matmul, INS(a, b), NONE), "float32[s0, 2, 3, 5]");
    is(OP(g, attention, INS(q, k, v), ATTRS(TOR_A_FLOAT(scale, 0.125), TOR_A_INT(causal, 1))),
       "float32[s0, 8, s1, 32]");
    is(OP(g, attention, INS(q, k, v, m), NONE), "float32[s0, 8, s1, 32]");
    REFUSED(matmul, INS(a, a), NONE, "matmul: dim 2 of b must be 4, got float32[s0, 2, 3, 4]");
    REFUSED(matmul, INS(a, c), NONE, "matmul: dim 1 of b must be 2");
    REFUSED(attention, INS(q, INPUT(g, "k3", "s 3 u 64"), INPUT(g, "v3", "s 3 u 64")), NONE,
            "the heads of q, 8, must be a multiple of those of k, 3");
    REFUSED(attention, INS(q, v, v), NONE,
            "attention: dim 3 of k must be 64, got float32[s0, 2, s2, 32]");
}

static void test_conv_and_pool(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "s 8 h w"), *y = INPUT(g, "y", "2 8 10 7"),
             *w = INPUT(g, "k", "16 4 3 3"), *bias = INPUT(g, "bias", "16");
    TorAttr s2 = INTS(stride, 2, 2), s1 = INTS(stride, 1, 1), p1 = INTS(padding, 1, 1),
            p0 = INTS(padding, 0, 0), d1 = INTS(dilation, 1, 1), groups = TOR_A_INT(groups, 2),
            k3 = INTS(kernel, 3, 3);
    is(OP(g, conv, INS(x, w, bias), ATTRS(s2, p1, d1, groups)),
       "float32[s0, 16, (s1-1)//2+1, (s2-1)//2+1]");
    is(OP(g, conv, INS(x, w), ATTRS(s1, p1, d1, groups)), "float32[s0, 16, s1, s2]");
    is(OP(g, conv, INS(y, w), ATTRS(s1, p0, INTS(dilation, 2, 3), groups)), "float32[2, 16, 6, 1]");
    is(OP(g, conv, INS(y, INPUT(g, "t", "8 5 3 3")),
          ATTRS(s2, p1, d1, TOR_A_INT(transposed, 1), INTS(output_padding, 1, 0))),
       "float32[2, 5, 20, 13]");
    is(OP(g, conv, INS(y, bias), ATTRS(s2, p0, d1, k3, TOR_A_INT(packed, 1), TOR_A_INT(n, 16))),
       "float32[2, 16, 4, 3]");
    // torch.nn.functional.max_pool2d(torch.empty(2, 8, 10, 7), 3, 2, 1, ceil_mode=True) gives 6
    // x 4.
    TorValue *pooled = OP(g, max_pool, INS(y), ATTRS(k3, s2, p1, d1, TOR_A_INT(ceil_mode, 1)));
    is(pooled, "float32[2, 8, 6, 4]");
    is(pooled->node->outputs[1], "int64[2, 8, 6, 4]");
    // A last window that would start in the right padding is dropped: in 3, kernel 2, stride 3,
    // padding 1.
    is(OP(g, avg_pool, INS(INPUT(g, "z", "1 1 3")),
          ATTRS(INTS(kernel, 2), INTS(stride, 3), INTS(padding, 1), TOR_A_INT(ceil_mode, 1))),
       "float32[1, 1, 2]");
    is(OP(g, avg_pool, INS(INPUT(g, "z2", "1 1 2")),
          ATTRS(INTS(kernel, 2), INTS(stride, 3), INTS(padding, 1), TOR_A_INT(ceil_mode, 1))),
       "float32[1, 1, 1]");
    is(OP(g, adaptive_avg_pool, INS(x), ATTRS(DIMS(g, "1 1"))), "float32[s0, 8, 1, 1]");
    REFUSED(conv, INS(y, w), ATTRS(s1, p0, d1),
            "conv: dim 1 of x must be 4, got float32[2, 8, 10, 7]");
    REFUSED(conv, INS(y, w), ATTRS(INTS(stride, 1), p0, d1, groups),
            "conv: attribute stride must have 2 integers, got 1");
    REFUSED(conv, INS(y, w, y), ATTRS(s1, p0, d1, groups), "conv: bias must have 1 dims");
    REFUSED(max_pool, INS(y), ATTRS(k3, s2, INTS(padding, 2, 2), d1),
            "max_pool: attribute padding must be in [0, kernel / 2], got 2 at dim 0");
}

static void test_move(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "s 6 4"), *y = INPUT(g, "y", "t 6 4"),
             *odd = INPUT(g, "odd", "6 5"), *m = INPUT(g, "m", "5 6 7 8");
    TorValue *i = make_input(g, "i", TOR_int64, "3", false),
             *j = make_input(g, "j", TOR_int32, "2 1", false),
             *k = make_input(g, "k", TOR_int64, "2 6 4", false);
    TorAttr axis0 = TOR_A_INT(axis, 0), axis1 = TOR_A_INT(axis, 1);
    is(OP(g, contiguous, INS(x), NONE), "float32[s0, 6, 4]");
    is(OP(g, cat, INS(x, y, x), ATTRS(axis0)), "float32[s0*2+s1, 6, 4]");
    is(OP(g, pad, INS(x),
          ATTRS(dims_attr(g, TOR_ATTR_low, "1 0 -1"), dims_attr(g, TOR_ATTR_high, "0 2 0"),
                TOR_A_SCALAR(value, ((TorScalar){.dtype = TOR_float64})))),
       "float32[s0+1, 8, 3]");
    is(OP(g, flip, INS(x), ATTRS(INTS(axes, 1))), "float32[s0, 6, 4]");
    is(OP(g, cumsum, INS(i), ATTRS(axis0)), "int64[3]");
    is(OP(g, embedding, INS(odd, j), NONE), "float32[2, 1, 5]");
    is(OP(g, index_select, INS(x, i), ATTRS(axis1)), "float32[s0, 3, 4]");
    is(OP(g, gather, INS(x, k), ATTRS(axis0)), "float32[2, 6, 4]");
    is(OP(g, index, INS(m, i, j), ATTRS(INTS(axes, 1, 2))),
       "float32[5, 2, 3, 8]");  // neighbours: in place
    is(OP(g, index, INS(m, i, j), ATTRS(INTS(axes, 0, 2))),
       "float32[2, 3, 6, 8]");  // apart: in front
    is(OP(g, index_put, INS(m, INPUT(g, "v", "6 1 8"), i), ATTRS(INTS(axes, 2))),
       "float32[5, 6, 7, 8]");
    REFUSED(index_put, INS(m, number(g, 0), i), ATTRS(INTS(axes, 2)),
            "index_put: values must be float32, got float64[]");
    is(OP(g, index_copy, INS(m, i, INPUT(g, "src", "5 3 7 8")), ATTRS(axis1)),
       "float32[5, 6, 7, 8]");
    is(OP(g, slice_scatter, INS(m, INPUT(g, "src2", "5 2 7 8")),
          ATTRS(axis1, TOR_A_DIM(start, tor_int_const(g, 1)), TOR_A_INT(step, 1))),
       "float32[5, 6, 7, 8]");
    is(OP(g, scatter, INS(x, k, INPUT(g, "src3", "2 6 4")), ATTRS(axis0, TOR_A_STR(reduce, "add"))),
       "float32[s0, 6, 4]");
    REFUSED(cat, INS(odd, INPUT(g, "odd2", "7 5")), ATTRS(axis1),
            "cat: dim 0 of input 1 must be 6, got float32[7, 5]");
    REFUSED(embedding, INS(odd, x), NONE,
            "embedding: index must be int64 or int32, got float32[s0, 6, 4]");
    REFUSED(index, INS(m, i), ATTRS(INTS(axes, 1, 2)),
            "index: attribute axes must name one axis for each of the 1 indices, got 2");
    REFUSED(index, INS(m, i, make_input(g, "i2", TOR_int64, "2", false)), ATTRS(INTS(axes, 1, 2)),
            "index: index 1: sizes 3 and 2");
    REFUSED(scatter, INS(x, k, INPUT(g, "src4", "2 6 4")), ATTRS(axis0, TOR_A_STR(reduce, "mean")),
            "scatter: attribute reduce must be \"\", \"add\", \"mul\", \"amax\" or \"amin\", got "
            "\"mean\"");
}

static void test_order(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "s 6 4"), *lines = INPUT(g, "lines", "s 6 9"),
             *line = INPUT(g, "line", "9"), *none = INPUT(g, "none", "");
    TorAttr axis1 = TOR_A_INT(axis, 1), median = TOR_A_STR(reduce, "median");
    TorValue *sorted = OP(g, sort, INS(x), ATTRS(axis1, TOR_A_INT(descending, 1)));
    is(sorted, "float32[s0, 6, 4]");
    is(sorted->node->outputs[1], "int64[s0, 6, 4]");
    is(OP(g, topk, INS(x), ATTRS(axis1, DIMS(g, "2")))->node->outputs[1], "int64[s0, 2, 4]");
    is(OP(g, kth, INS(x), ATTRS(axis1, median)), "float32[s0, 1, 4]");
    is(OP(g, cumprod, INS(x), ATTRS(axis1)), "float32[s0, 6, 4]");
    is(OP(g, logcumsumexp, INS(x), ATTRS(axis1)), "float32[s0, 6, 4]");
    is(OP(g, cummax, INS(x), ATTRS(axis1))->node->outputs[1], "int64[s0, 6, 4]");
    is(OP(g, cummin, INS(x), ATTRS(axis1)), "float32[s0, 6, 4]");
    is(OP(g, searchsorted, INS(lines, x), NONE), "int64[s0, 6, 4]");
    is(OP(g, searchsorted, INS(line, none), ATTRS(TOR_A_DTYPE(dtype, TOR_int32))), "int32[]");
    REFUSED(topk, INS(x), ATTRS(axis1, DIMS(g, "7")),
            "topk: k must be in [0, size of dim 1], got 7");
    REFUSED(kth, INS(x), ATTRS(axis1, TOR_A_STR(reduce, "kth"), DIMS(g, "0")),
            "kth: k must be in [1, size of dim 1], got 0");
    REFUSED(kth, INS(x), ATTRS(axis1, TOR_A_STR(reduce, "mean")),
            "kth: attribute reduce must be \"kth\", \"median\", \"nanmedian\" or \"mode\", got "
            "\"mean\"");
    REFUSED(sort, INS(none), NONE, "sort: x must have at least 1 dims, got float32[]");
    REFUSED(searchsorted, INS(lines, line), NONE, "searchsorted: values must have 3 dims");
}

static void test_diagonal_and_unfold(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "s 6 4");
    TorAttr both = INTS(axes, 1, 2), axis1 = TOR_A_INT(axis, 1);
    is(OP(g, diagonal, INS(x), ATTRS(both, TOR_A_INT(offset, -2), DIMS(g, "4"))), "float32[s0, 4]");
    is(OP(g, unfold, INS(x), ATTRS(axis1, TOR_A_INT(size, 3), TOR_A_INT(step, 2), DIMS(g, "2"))),
       "float32[s0, 2, 4, 3]");
    REFUSED(diagonal, INS(x), ATTRS(both, TOR_A_INT(offset, -3), DIMS(g, "4")),
            "diagonal: a diagonal of 4 elements at offset -3 leaves dims of 6 and 4");
    REFUSED(unfold, INS(x), ATTRS(axis1, TOR_A_INT(size, 3), TOR_A_INT(step, 2), DIMS(g, "3")),
            "unfold: 3 windows of 3 leave axis 1 of size 6");
}

static void test_pack(void **state) {
    (void)state;
    TorValue *w = WEIGHT(g, "w", "8 4");
    TorValue *p = OP(g, pack_linear, INS(w), ATTRS(DIMS(g, "512"), TOR_A_STR(precision, "f32")));
    is(p, "uint8[512]");
    assert_true(p->frozen);
    REFUSED(pack_conv, INS(w), ATTRS(DIMS(g, "512")),
            "pack_conv: w must have at least 3 dims, got float32[8, 4]");
}

static void test_origin_is_named(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "8 4");
    TorValue *y = OP(g, relu, INS(x), NONE);
    y->node->origin = "relu_3";
    x->dtype = TOR_int64;
    assert_int_equal(tor_graph_infer(g, y->node), TOROID_OK);
    y->node->op = TOR_OP_exp;
    assert_int_equal(tor_graph_infer(g, y->node), TOROID_INVALID);
    assert_string_equal(toroid_last_error(),
                        "exp (relu_3): inputs must be of a float type, got int64");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {TEST(test_map),
                                       TEST(test_source),
                                       TEST(test_view),
                                       TEST(test_reduce),
                                       TEST(test_row),
                                       TEST(test_linear),
                                       TEST(test_epilogue_may_change_the_type),
                                       TEST(test_matmul_and_attention),
                                       TEST(test_conv_and_pool),
                                       TEST(test_move),
                                       TEST(test_order),
                                       TEST(test_diagonal_and_unfold),
                                       TEST(test_pack),
                                       TEST(test_origin_is_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// The simple passes: a graph printed before and after.
#include "frame.h"
#include "passes/passes.h"

// Runs passes named with spaces between, and dce at the end; verifies.
static void run(const char *names) {
    char copy[128];
    snprintf(copy, sizeof(copy), "%s dce", names);
    run_passes(g, copy);
}

static TorValue *view(TorValue *x, const char *dims) {
    return OP(g, view, INS(x), ATTRS(DIMS(g, dims)));
}

static TorValue *flatten(TorValue *x) {
    TorDim dims[] = {tor_int_mul(g, x->dim[0], x->dim[1]), x->dim[2]};
    return OP(g, view, INS(x), ATTRS(TOR_A_DIMS(dims, dims, 2)));
}

static TorValue *transpose(TorValue *x) { return OP(g, permute, INS(x), ATTRS(INTS(axes, 1, 0))); }

static TorValue *full(const char *dims, double f) {
    return OP(g, full, NULL, 0,
              ATTRS(TOR_A_SCALAR(value, ((TorScalar){.dtype = TOR_float64, .f = f})),
                    TOR_A_DTYPE(dtype, TOR_float32), DIMS(g, dims)));
}

// ---------------------------------------------------------------- canonicalise

static void test_identities(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "s 1 4");
    TorValue *v = OP(g, contiguous, INS(x), NONE);
    v = OP(g, cast, INS(v), ATTRS(TOR_A_DTYPE(dtype, TOR_float32)));
    v = OP(g, expand, INS(v), ATTRS(DIMS(g, "s 1 4")));
    v = view(v, "s 1 4");
    v = OP(g, permute, INS(v), ATTRS(INTS(axes, 0, 1, 2)));
    v = OP(g, slice, INS(v),
           ATTRS(TOR_A_INT(axis, 0), TOR_A_DIM(start, tor_int_const(g, 0)), TOR_A_INT(step, 1),
                 DIMS(g, "s")));
    v = OP(g, relu, INS(v), NONE);
    set_outputs(g, INS(v));
    run("canonicalise");
    expect_text(g,
                "s0 = x.size(0)\n"
                "\n"
                "%0  input   float32[s0, 1, 4]      x\n"
                "%7  relu    float32[s0, 1, 4]  %0\n"
                "    output                     %7\n");
}

static void test_copies_that_external_nodes_read(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "s 4"), *y = INPUT(g, "y", "s 4");
    g->inputs[1].contiguous = true;
    TorValue *in[] = {x, y, OP(g, relu, INS(x), NONE)}, *out[3];
    for (int i = 0; i < 3; i++) {
        TorValue *copy = OP(g, contiguous, INS(in[i]), NONE);
        out[i] = OP(g, external, INS(copy), ATTRS(TOR_A_INT(callable, i)));
    }
    set_outputs(g, out, 3);
    run("canonicalise");
    expect_text(g,
                "s0 = x.size(0)\n"
                "\n"
                "%0  input       float32[s0, 4]      x\n"
                "%1  input       float32[s0, 4]      y\n"
                "%2  relu        float32[s0, 4]  %0\n"
                "%3  contiguous  float32[s0, 4]  %0\n"
                "%4  external    float32[]       %3  callable=0\n"
                "%6  external    float32[]       %1  callable=1\n"
                "%8  external    float32[]       %2  callable=2\n"
                "    output                      %4 %6 %8\n");
}

static void test_merging(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "2 3 4");
    TorValue *a = view(view(x, "6 4"), "24");
    TorValue *b = OP(g, permute, INS(OP(g, permute, INS(x), ATTRS(INTS(axes, 2, 0, 1)))),
                     ATTRS(INTS(axes, 2, 1, 0)));
    TorValue *c = OP(g, permute, INS(OP(g, permute, INS(x), ATTRS(INTS(axes, 2, 0, 1)))),
                     ATTRS(INTS(axes, 1, 2, 0)));
    TorValue *d =
        OP(g, permute, INS(view(x, "1 24")), ATTRS(INTS(axes, 1, 0)));  // moves a dim of size 1
    TorValue *e = OP(g, cast, INS(OP(g, cast, INS(x), ATTRS(TOR_A_DTYPE(dtype, TOR_float64)))),
                     ATTRS(TOR_A_DTYPE(dtype, TOR_float16)));
    TorValue *f = OP(g, cast, INS(OP(g, cast, INS(x), ATTRS(TOR_A_DTYPE(dtype, TOR_float16)))),
                     ATTRS(TOR_A_DTYPE(dtype, TOR_float32)));
    TorValue *h = OP(g, expand, INS(full("1 4", 2)), ATTRS(DIMS(g, "3 4")));
    set_outputs(g, INS(a, b, c, d, e, f, h));
    run("canonicalise");
    expect_text(g,
                "%0   input    float32[2, 3, 4]       x\n"
                "%2   view     float32[24]       %0\n"
                "%4   permute  float32[3, 2, 4]  %0   axes=[1, 0, 2]\n"
                "%15  view     float32[24, 1]    %0\n"
                "%10  cast     float16[2, 3, 4]  %0\n"
                "%11  cast     float16[2, 3, 4]  %0\n"
                "%12  cast     float32[2, 3, 4]  %11\n"
                "%16  full     float32[3, 4]          value=2.0\n"
                "     output                     %2 %4 %0 %15 %10 %12 %16\n");
}

static void test_numbers(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "s 4"), *row = INPUT(g, "row", "4");
    TorValue *a = OP(g, mul, INS(x, full("", 0.5)), NONE);
    TorValue *b = OP(g, add, INS(full("4", 3), a), NONE);
    TorValue *c =
        OP(g, add, INS(row, full("7 4", 1)), NONE);  // the full makes the result larger: stays
    TorValue *d =
        OP(g, where, INS(OP(g, lt, INS(x, full("1 1", 0)), NONE), full("s 4", 9), x), NONE);
    float tenth = 0.1f;
    TorValue *k = OP(g, constant, NULL, 0,
                     ATTRS(TOR_A_BLOB(blob, &tenth, 4), TOR_A_DTYPE(dtype, TOR_float32)));
    TorValue *e = OP(g, sub, INS(x, k), NONE);
    set_outputs(g, INS(b, c, d, e));
    run("canonicalise");
    expect_text(g,
                "s0 = x.size(0)\n"
                "\n"
                "%0   input   float32[s0, 4]                          x\n"
                "%1   input   float32[4]                              row\n"
                "%3   mul     float32[s0, 4]  %0 0.5\n"
                "%5   add     float32[s0, 4]  3.0 %3\n"
                "%6   full    float32[7, 4]                           value=1.0\n"
                "%7   add     float32[7, 4]   %1 %6\n"
                "%9   lt      bool[s0, 4]     %0 0.0\n"
                "%11  where   float32[s0, 4]  %9 9.0 %0\n"
                "%13  sub     float32[s0, 4]  %0 0.10000000149011612\n"
                "     output                  %5 %7 %11 %13\n");
}

// view; linear; unary ops; view: one linear with the leading dims of x.
static void test_linear_sees_through_views(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "s t 8"), *w = WEIGHT(g, "w", "16 8"),
             *w2 = WEIGHT(g, "w2", "8 16");
    TorValue *y = OP(g, linear, INS(flatten(x), w), NONE);
    y = OP(g, gelu_erf, INS(y), NONE);
    y = OP(g, mul, INS(y, number(g, 2)), NONE);
    y = OP(g, linear, INS(y, w2), NONE);
    y = view(y, "s t 8");
    y = OP(g, add, INS(y, x), NONE);
    set_outputs(g, INS(y));
    expect_text(g,
                "s0 = x.size(0)\n"
                "s1 = x.size(1)\n"
                "\n"
                "%0   input     float32[s0, s1, 8]          x\n"
                "%1   input     float32[16, 8]              w (frozen)\n"
                "%2   input     float32[8, 16]              w2 (frozen)\n"
                "%3   view      float32[s0*s1, 8]   %0\n"
                "%4   linear    float32[s0*s1, 16]  %3 %1\n"
                "%5   gelu_erf  float32[s0*s1, 16]  %4\n"
                "%7   mul       float32[s0*s1, 16]  %5 2.0\n"
                "%8   linear    float32[s0*s1, 8]   %7 %2\n"
                "%9   view      float32[s0, s1, 8]  %8\n"
                "%10  add       float32[s0, s1, 8]  %9 %0\n"
                "     output                        %10\n");
    run("canonicalise");
    expect_text(g,
                "s0 = x.size(0)\n"
                "s1 = x.size(1)\n"
                "\n"
                "%0   input     float32[s0, s1, 8]            x\n"
                "%1   input     float32[16, 8]                w (frozen)\n"
                "%2   input     float32[8, 16]                w2 (frozen)\n"
                "%11  linear    float32[s0, s1, 16]  %0 %1\n"
                "%13  gelu_erf  float32[s0, s1, 16]  %11\n"
                "%15  mul       float32[s0, s1, 16]  %13 2.0\n"
                "%17  linear    float32[s0, s1, 8]   %15 %2\n"
                "%10  add       float32[s0, s1, 8]   %17 %0\n"
                "     output                         %10\n");
}

// Heads merged before the projection: the view of x stays, the linear has the residual's dims.
static void test_linear_after_merged_heads(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "s t 2 4"), *w = WEIGHT(g, "w", "8 8"), *b = WEIGHT(g, "b", "8"),
             *rest = INPUT(g, "rest", "s t 8");
    TorValue *y = flatten(view(x, "s t 8"));
    y = OP(g, add, INS(OP(g, linear, INS(y, w), NONE), b), NONE);
    y = OP(g, add, INS(rest, view(y, "s t 8")), NONE);
    set_outputs(g, INS(y));
    run("canonicalise");
    expect_text(g,
                "s0 = x.size(0)\n"
                "s1 = x.size(1)\n"
                "\n"
                "%0   input   float32[s0, s1, 2, 4]             x\n"
                "%1   input   float32[8, 8]                     w (frozen)\n"
                "%2   input   float32[8]                        b (frozen)\n"
                "%3   input   float32[s0, s1, 8]                rest\n"
                "%11  view    float32[s0, s1, 8]     %0\n"
                "%12  linear  float32[s0, s1, 8]     %11 %1 %2\n"
                "%9   add     float32[s0, s1, 8]     %3 %12\n"
                "     output                         %9\n");
}

static void test_matmul_becomes_linear(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "s 8"), *x3 = INPUT(g, "x3", "2 s 8"), *w = WEIGHT(g, "w", "16 8"),
             *k = WEIGHT(g, "k", "8 16"), *t = INPUT(g, "t", "8 16"), *u = INPUT(g, "u", "16 8");
    TorValue *a = OP(g, matmul, INS(x, transpose(w)), NONE);
    TorValue *b = OP(g, matmul, INS(x, k), NONE);
    TorValue *c = OP(g, matmul, INS(x, t), NONE);             // not a weight: stays
    TorValue *d = OP(g, matmul, INS(x, transpose(u)), NONE);  // transposed, frozen or not
    TorValue *e = OP(
        g, matmul, INS(x3, OP(g, expand, INS(view(t, "1 8 16")), ATTRS(DIMS(g, "2 8 16")))), NONE);
    TorValue *f = OP(g, linear, INS(x, transpose(k)), NONE);
    set_outputs(g, INS(a, b, c, d, e, f));
    run("canonicalise");
    expect_text(g,
                "s0 = x.size(0)\n"
                "\n"
                "%0   input   float32[s0, 8]             x\n"
                "%1   input   float32[2, s0, 8]          x3\n"
                "%2   input   float32[16, 8]             w (frozen)\n"
                "%3   input   float32[8, 16]             k (frozen)\n"
                "%4   input   float32[8, 16]             t\n"
                "%5   input   float32[16, 8]             u\n"
                "%17  linear  float32[s0, 16]     %0 %2\n"
                "%18  linear  float32[s0, 16]     %0 %3  trans=1\n"
                "%9   matmul  float32[s0, 16]     %0 %4\n"
                "%19  linear  float32[s0, 16]     %0 %5\n"
                "%20  linear  float32[2, s0, 16]  %1 %4  trans=1\n"
                "%16  linear  float32[s0, 16]     %0 %3  trans=1\n"
                "     output                      %17 %18 %9 %19 %20 %16\n");
}

static void test_bias(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "s 8"), *w = WEIGHT(g, "w", "16 8"), *b = WEIGHT(g, "b", "16"),
             *c = INPUT(g, "c", "16");
    TorValue *y = OP(g, linear, INS(x, w), NONE), *z = OP(g, linear, INS(x, w), NONE),
             *twice = OP(g, linear, INS(x, w), NONE);
    set_outputs(g, INS(OP(g, add, INS(b, y), NONE), OP(g, add, INS(z, c), NONE),
                       OP(g, add, INS(twice, b), NONE), twice));
    run("canonicalise");
    expect_text(g,
                "s0 = x.size(0)\n"
                "\n"
                "%0   input   float32[s0, 8]             x\n"
                "%1   input   float32[16, 8]             w (frozen)\n"
                "%2   input   float32[16]                b (frozen)\n"
                "%3   input   float32[16]                c\n"
                "%5   linear  float32[s0, 16]  %0 %1\n"
                "%6   linear  float32[s0, 16]  %0 %1\n"
                "%10  linear  float32[s0, 16]  %0 %1 %2\n"
                "%8   add     float32[s0, 16]  %5 %3\n"
                "%9   add     float32[s0, 16]  %6 %2\n"
                "     output                   %10 %8 %9 %6\n");
}

// ---------------------------------------------------------------- the others

static void test_views(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "6 4"), *y = INPUT(g, "y", "6 4"), *row = INPUT(g, "row", "4"),
             *wide = INPUT(g, "wide", "2 3 4");
    TorValue *a = OP(g, add, INS(view(x, "2 3 4"), view(y, "2 3 4")), NONE);
    a = OP(g, mul, INS(a, row), NONE);
    a = OP(g, relu, INS(a), NONE);
    TorValue *b = OP(g, add, INS(a, wide), NONE);  // no view: the views end here
    set_outputs(g, INS(b));
    run("views");
    expect_text(g,
                "%0   input   float32[6, 4]             x\n"
                "%1   input   float32[6, 4]             y\n"
                "%2   input   float32[4]                row\n"
                "%3   input   float32[2, 3, 4]          wide\n"
                "%10  add     float32[6, 4]     %0 %1\n"
                "%12  mul     float32[6, 4]     %10 %2\n"
                "%14  relu    float32[6, 4]     %12\n"
                "%15  view    float32[2, 3, 4]  %14\n"
                "%9   add     float32[2, 3, 4]  %15 %3\n"
                "     output                    %9\n");
}

static TorValue *rows(TorValue *x, TorDim start, const char *count) {
    return OP(
        g, slice, INS(x),
        ATTRS(TOR_A_INT(axis, 1), TOR_A_DIM(start, start), TOR_A_INT(step, 1), DIMS(g, count)));
}

/// logits[:, -1] of a capped head: one row of a product, whatever the length.
static void test_slices_above_a_linear(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "b s 8"), *w = WEIGHT(g, "w", "100 8");
    TorValue *v = OP(g, linear, INS(x, w), NONE);
    v = OP(g, tanh, INS(v), NONE);
    v = OP(g, mul, INS(v, full("", 30)), NONE);
    TorDim last = tor_int_add(g, x->dim[1], tor_int_const(g, -1));
    set_outputs(g, INS(rows(v, last, "1")));
    run("views");
    expect_text(g,
                "s0 = x.size(0)\n"
                "s1 = x.size(1)\n"
                "\n"
                "%0   input   float32[s0, s1, 8]          x\n"
                "%1   input   float32[100, 8]             w (frozen)\n"
                "%4   full    float32[]                   value=30.0\n"
                "%7   slice   float32[s0, 1, 8]    %0     dims=[1]  start=s1-1  step=1  axis=1\n"
                "%8   linear  float32[s0, 1, 100]  %7 %1\n"
                "%9   tanh    float32[s0, 1, 100]  %8\n"
                "%10  mul     float32[s0, 1, 100]  %9 %4\n"
                "     output                       %10\n");
}

/// A product that somebody else reads, and one of which most rows are wanted, stay.
static void test_slices_below_a_linear(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "2 8 8"), *w = WEIGHT(g, "w", "100 8");
    TorValue *read = OP(g, linear, INS(x, w), NONE);
    TorValue *most = OP(g, linear, INS(OP(g, relu, INS(x), NONE), w), NONE);
    set_outputs(
        g, INS(rows(read, tor_int_const(g, 0), "1"), read, rows(most, tor_int_const(g, 1), "7")));
    run("views");
    expect_text(g,
                "%0  input   float32[2, 8, 8]           x\n"
                "%1  input   float32[100, 8]            w (frozen)\n"
                "%2  linear  float32[2, 8, 100]  %0 %1\n"
                "%3  relu    float32[2, 8, 8]    %0\n"
                "%4  linear  float32[2, 8, 100]  %3 %1\n"
                "%5  slice   float32[2, 1, 100]  %2     dims=[1]  start=0  step=1  axis=1\n"
                "%6  slice   float32[2, 7, 100]  %4     dims=[7]  start=1  step=1  axis=1\n"
                "    output                      %5 %2 %6\n");
}

static void test_cse(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "4"), *y = INPUT(g, "y", "4");
    TorValue *a = OP(g, add, INS(x, y), NONE), *b = OP(g, add, INS(y, x), NONE),
             *c = OP(g, sub, INS(x, y), NONE), *d = OP(g, sub, INS(y, x), NONE);
    TorValue *e = OP(g, relu, INS(a), NONE), *f = OP(g, relu, INS(b), NONE);
    TorValue *s = OP(g, sum, INS(e), ATTRS(INTS(axes, 0))),
             *t = OP(g, sum, INS(f), ATTRS(INTS(axes, 0), TOR_A_INT(keepdim, 1)));
    TorAttr call = TOR_A_INT(callable, 1), random = TOR_A_INT(random, 1);
    TorValue *r = OP(g, external, INS(x), ATTRS(call, random)),
             *q = OP(g, external, INS(x), ATTRS(call, random));
    TorValue *m = OP(g, external, INS(x), ATTRS(call)), *n = OP(g, external, INS(x), ATTRS(call));
    set_outputs(g, INS(c, d, e, f, s, t, r, q, m, n));
    run("cse");
    expect_text(g,
                "%0   input     float32[4]         x\n"
                "%1   input     float32[4]         y\n"
                "%2   add       float32[4]  %0 %1\n"
                "%4   sub       float32[4]  %0 %1\n"
                "%5   sub       float32[4]  %1 %0\n"
                "%6   relu      float32[4]  %2\n"
                "%8   sum       float32[]   %6     axes=[0]\n"
                "%9   sum       float32[1]  %6     axes=[0]  keepdim=1\n"
                "%10  external  float32[]   %0     callable=1  random=1\n"
                "%11  external  float32[]   %0     callable=1  random=1\n"
                "%12  external  float32[]   %0     callable=1\n"
                "     output                %4 %5 %6 %6 %8 %9 %10 %11 %12 %12\n");
}

static void test_dce(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "4");
    INPUT(g, "unused", "4");
    TorValue *a = OP(g, relu, INS(x), NONE);
    OP(g, neg, INS(OP(g, mul, INS(a, number(g, 3)), NONE)), NONE);
    OP(g, external, INS(x), ATTRS(TOR_A_INT(callable, 1), TOR_A_INT(random, 1)));
    OP(g, external, INS(x), ATTRS(TOR_A_INT(callable, 2)));
    set_outputs(g, INS(a));
    run("");
    expect_text(g,
                "%0  input     float32[4]      x\n"
                "%1  input     float32[4]      unused\n"
                "%2  relu      float32[4]  %0\n"
                "%6  external  float32[]   %0  callable=1  random=1\n"
                "    output                %2\n");
}

static void test_fold(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "4"), *three, *big;
    assert_int_equal(tor_graph_number(g, (TorScalar){.dtype = TOR_int64, .i = 3}, &three),
                     TOROID_OK);
    assert_int_equal(tor_graph_number(g, (TorScalar){.dtype = TOR_int64, .i = INT64_MAX}, &big),
                     TOROID_OK);
    TorValue *a = OP(g, div, INS(OP(g, add, INS(number(g, 1.5), three), NONE), number(g, 2)), NONE);
    TorValue *b = OP(g, add, INS(big, three), NONE);  // wraps
    TorValue *c = OP(g, cast, INS(number(g, 2.75)), ATTRS(TOR_A_DTYPE(dtype, TOR_int32)));
    TorValue *d =
        OP(g, mul, INS(x, OP(g, cast, INS(a), ATTRS(TOR_A_DTYPE(dtype, TOR_float32)))), NONE);
    TorValue *e = OP(g, rsqrt, INS(number(g, 16)), NONE);
    set_outputs(g, INS(d, e, b, c));
    run("fold canonicalise");
    expect_text(g,
                "%0   input     float32[4]           x\n"
                "%17  constant  int32[]              blob={2}\n"
                "%11  mul       float32[4]  %0 2.25\n"
                "     output                %11 0.25 -9223372036854775806 %17\n");
}

static void test_frozen(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "s 4"), *w = WEIGHT(g, "w", "4 4");
    TorValue *t = transpose(w), *two = OP(g, mul, INS(t, number(g, 2)), NONE),
             *y = OP(g, linear, INS(x, two), NONE);
    TorValue *fixed = full("4", 1), *sized = full("s", 1);
    TorValue *wide = OP(g, expand, INS(view(w, "1 4 4")), ATTRS(DIMS(g, "s 4 4")));
    TorValue *host = OP(g, external, INS(w), ATTRS(TOR_A_INT(callable, 1)));
    two->frozen = false;
    y->frozen = true;
    set_outputs(g, INS(y, fixed, sized, wide, host));
    assert_int_equal(tor_pass_frozen(g), TOROID_OK);
    assert_int_equal(tor_graph_verify(g), TOROID_OK);
    assert_false(x->frozen);
    assert_true(w->frozen && t->frozen && two->frozen && fixed->frozen);
    assert_false(y->frozen || sized->frozen || wide->frozen || host->frozen);
}

static void test_driver(void **state) {
    (void)state;
    const char *wrong[] = {"dce", "dca"};
    assert_int_equal(tor_passes_run(g, wrong, 2), TOROID_INVALID);
    assert_string_equal(toroid_last_error(), "there is no pass \"dca\"");
    int n;
    const char *const *names = tor_passes_simplify(&n);
    TorValue *x = INPUT(g, "x", "4");
    set_outputs(g, INS(OP(g, relu, INS(view(x, "4")), NONE)));
    assert_int_equal(tor_passes_run(g, names, n), TOROID_OK);
    expect_text(g,
                "%0  input   float32[4]      x\n"
                "%2  relu    float32[4]  %0\n"
                "    output              %2\n");
    setenv("TOROID_VERIFY", "1", 1);
    x->uses->user = NULL;
    assert_int_equal(tor_passes_run(g, (const char *[]){"frozen"}, 1), TOROID_INVALID);
    assert_string_equal(toroid_last_error(),
                        "after pass frozen: verify: %2 = relu: a use does not name its node");
    unsetenv("TOROID_VERIFY");
}

// A deep model in the 2-d spelling: every pass must stay near-linear. (No timing: it would just
// hang.)
static void test_many_layers(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "s t 8"), *w = WEIGHT(g, "w", "8 8");
    for (int i = 0; i < 5000; ++i) {
        TorValue *y = OP(g, matmul, INS(flatten(x), transpose(w)), NONE);
        y = OP(g, gelu_erf, INS(OP(g, add, INS(y, full("1", i)), NONE)), NONE);
        x = OP(g, add, INS(x, view(y, "s t 8")), NONE);
    }
    set_outputs(g, INS(x));
    int n;
    const char *const *names = tor_passes_simplify(&n);
    assert_int_equal(tor_passes_run(g, names, n), TOROID_OK);
    int views = 0, linears = 0;
    for (TorNode *node = g->first; node; node = node->next) {
        views += node->op == TOR_OP_view;
        linears += node->op == TOR_OP_linear;
    }
    assert_int_equal(views, 0);
    assert_int_equal(linears, 5000);
    assert_int_equal(tor_graph_verify(g), TOROID_OK);
}

// Each allocation of the whole list fails once; the graph can still be destroyed.
static ToroidStatus build_and_run(TorGraph **out) {
    TOR_TRY(tor_graph_create(out));
    TorGraph *h = *out;
    TorValue *x, *w, *v;
    TorNode *node;
    TorDim dims[] = {tor_int_size(h, 0, 0), tor_int_const(h, 4), tor_int_const(h, 8)};
    TOR_TRY(h->failed);
    TOR_TRY(tor_graph_add_input(h, "x", TOR_float32, 3, dims, false, &x));
    TOR_TRY(tor_graph_add_input(h, "w", TOR_float32, 2, (TorDim[]){dims[2], dims[2]}, true, &w));
    for (int i = 0; i < 40; ++i) {
        TorDim flat[] = {tor_int_mul(h, dims[0], dims[1]), dims[2]};
        TOR_TRY(
            tor_graph_add(h, NULL, TOR_OP_view, &x, 1, ATTRS(TOR_A_DIMS(dims, flat, 2)), 1, &node));
        TorValue *in[] = {node->outputs[0], w};
        TOR_TRY(tor_graph_add(h, NULL, TOR_OP_matmul, in, 2, NONE, 1, &node));
        TOR_TRY(tor_graph_number(h, (TorScalar){.dtype = TOR_float64, .f = i % 9}, &v));
        TOR_TRY(tor_graph_add(h, NULL, TOR_OP_mul, (TorValue *[]){node->outputs[0], v}, 2, NONE, 1,
                              &node));
        TOR_TRY(tor_graph_add(h, NULL, TOR_OP_view, node->outputs, 1,
                              ATTRS(TOR_A_DIMS(dims, dims, 3)), 1, &node));
        x = node->outputs[0];
    }
    int64_t into = -1;
    TOR_TRY(tor_graph_set_outputs(h, &x, &into, 1));
    int n;
    const char *const *names = tor_passes_simplify(&n);
    TOR_TRY(tor_passes_run(h, names, n));
    return tor_graph_verify(h);
}

static void test_failing_allocations(void **state) {
    (void)state;
    bool done = false;
    for (int n = 1; !done; ++n) {
        TorGraph *h = NULL;
        tor_alloc_fail_at((uint64_t)n);
        ToroidStatus status = build_and_run(&h);
        tor_alloc_fail_at(0);
        done = status == TOROID_OK;
        if (!done) assert_int_equal(status, TOROID_NO_MEMORY);
        tor_graph_destroy(&h);
        assert_true(n < 1000);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {TEST(test_identities),
                                       TEST(test_copies_that_external_nodes_read),
                                       TEST(test_merging),
                                       TEST(test_numbers),
                                       TEST(test_linear_sees_through_views),
                                       TEST(test_linear_after_merged_heads),
                                       TEST(test_matmul_becomes_linear),
                                       TEST(test_bias),
                                       TEST(test_views),
                                       TEST(test_slices_above_a_linear),
                                       TEST(test_slices_below_a_linear),
                                       TEST(test_cse),
                                       TEST(test_dce),
                                       TEST(test_fold),
                                       TEST(test_frozen),
                                       TEST(test_driver),
                                       TEST(test_many_layers),
                                       TEST(test_failing_allocations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

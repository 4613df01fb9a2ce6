// What the passes of fusion, freezing and layout make of a graph: printed text before and after.
#include "base/text.h"
#include "frame.h"
#include "passes/layout.h"
#include "passes/passes.h"
#include "passes/program_builder.h"
#include "passes/prologue.h"

static void run(const char *names) { run_passes(g, names); }

static TorValue *viewed(TorValue *x, const char *dims) {
    return OP(g, view, INS(x), ATTRS(DIMS(g, dims)));
}
#define UNARY(fn, x) OP(g, fn, INS(x), NONE)

static void expect_program(const TorNode *node, const char *expected) {
    char text[1024];
    const TorAttr *program =
        tor_attr(node, node->op == TOR_OP_fused ? TOR_ATTR_program : TOR_ATTR_epilogue);
    assert_non_null(program);
    assert_int_equal(tor_program_verify(program->blob), TOROID_OK);
    assert_string_equal(tor_program_print(program->blob, text, sizeof text), expected);
}

static const TorNode *first_of(TorOp op) {
    for (const TorNode *node = g->first; node; node = node->next)
        if (node->op == op) return node;
    fail_msg("no %s", tor_op_name(op));
    return NULL;
}

// ---------------------------------------------------------------- fuse_epilogue

static void test_epilogue(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "s 8"), *w = INPUT(g, "w", "16 8"), *b = INPUT(g, "b", "16"),
             *rest = INPUT(g, "rest", "s 16");
    TorValue *y = BINARY(
        add, rest, BINARY(mul, UNARY(gelu_erf, OP(g, linear, INS(x, w, b), NONE)), number(g, 2)));
    set_outputs(g, INS(y));
    expect_text(g,
                "s0 = x.size(0)\n"
                "\n"
                "%0  input     float32[s0, 8]             x\n"
                "%1  input     float32[16, 8]             w\n"
                "%2  input     float32[16]                b\n"
                "%3  input     float32[s0, 16]            rest\n"
                "%4  linear    float32[s0, 16]  %0 %1 %2\n"
                "%5  gelu_erf  float32[s0, 16]  %4\n"
                "%7  mul       float32[s0, 16]  %5 2.0\n"
                "%8  add       float32[s0, 16]  %3 %7\n"
                "    output                     %8\n");
    run("fuse_epilogue");
    expect_text(g,
                "s0 = x.size(0)\n"
                "\n"
                "%0  input   float32[s0, 8]                x\n"
                "%1  input   float32[16, 8]                w\n"
                "%2  input   float32[16]                   b\n"
                "%3  input   float32[s0, 16]               rest\n"
                "%9  linear  float32[s0, 16]  %0 %1 %2 %3  epilogue=936 bytes  has_bias=1\n"
                "    output                   %9\n");
    expect_program(first_of(TOR_OP_linear),
                   "r0 = gelu_erf.float32 in0\n"
                   "r1 = mul.float32 r0, 2\n"
                   "out0 = add.float32 in1, r1\n");
}

// The chain ends where a second value would have to be written.
static void test_epilogue_stops(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "s 8"), *w = INPUT(g, "w", "8 8");
    TorValue *y = UNARY(relu, OP(g, linear, INS(x, w), NONE)), *z = UNARY(tanh, y);
    set_outputs(g, INS(y, z));
    run("fuse_epilogue");
    expect_text(g,
                "s0 = x.size(0)\n"
                "\n"
                "%0  input   float32[s0, 8]         x\n"
                "%1  input   float32[8, 8]          w\n"
                "%5  linear  float32[s0, 8]  %0 %1  epilogue=936 bytes  has_bias=0\n"
                "%4  tanh    float32[s0, 8]  %5\n"
                "    output                  %5 %4\n");
}

// An operand that no [rows, columns] addressing reads stays outside.
static void test_epilogue_operands(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "4 6 8"), *w = INPUT(g, "w", "8 8"),
             *column = INPUT(g, "column", "6 1");
    set_outputs(g, INS(BINARY(add, OP(g, linear, INS(x, w), NONE), column)));
    run("fuse_epilogue");
    expect_text(g,
                "%0  input   float32[4, 6, 8]         x\n"
                "%1  input   float32[8, 8]            w\n"
                "%2  input   float32[6, 1]            column\n"
                "%3  linear  float32[4, 6, 8]  %0 %1\n"
                "%4  add     float32[4, 6, 8]  %3 %2\n"
                "    output                    %4\n");
}

// ---------------------------------------------------------------- fuse_groups

static void test_group(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "s 8"), *scale = INPUT(g, "scale", "8");
    TorValue *e = OP(g, softmax, INS(BINARY(mul, x, scale)), ATTRS(TOR_A_INT(axis, 1)));
    set_outputs(g, INS(BINARY(add, UNARY(neg, e), x)));
    expect_text(g,
                "s0 = x.size(0)\n"
                "\n"
                "%0  input    float32[s0, 8]         x\n"
                "%1  input    float32[8]             scale\n"
                "%2  mul      float32[s0, 8]  %0 %1\n"
                "%3  softmax  float32[s0, 8]  %2     axis=1\n"
                "%4  neg      float32[s0, 8]  %3\n"
                "%5  add      float32[s0, 8]  %4 %0\n"
                "    output                   %5\n");
    run("fuse_groups");
    expect_text(g,
                "s0 = x.size(0)\n"
                "\n"
                "%0  input   float32[s0, 8]         x\n"
                "%1  input   float32[8]             scale\n"
                "%6  fused   float32[s0, 8]  %0 %1  axes=[1]  program=936 bytes\n"
                "    output                  %6\n");
    expect_program(first_of(TOR_OP_fused),
                   "r0 = mul.float32 in0, in1\n"
                   "row0 = max.float32 r0\n"
                   "--\n"
                   "r1 = sub.float32 r0, row0\n"
                   "r2 = exp.float32 r1\n"
                   "row1 = sum.float32 r2\n"
                   "--\n"
                   "r3 = div.float32 r2, row1\n"
                   "r4 = neg.float32 r3\n"
                   "out0 = add.float32 r4, in0\n");
}

// Layer norm in parts: two rounds of row values in one program.
static void test_group_rows(void **state) {
    (void)state;
    TorAttr attrs[] = {INTS(axes, 1), TOR_A_INT(keepdim, 1)};
    TorValue *x = INPUT(g, "x", "s 8"),
             *c = BINARY(sub, x, add_op(g, TOR_OP_mean, INS(x), attrs, 2));
    TorValue *v = add_op(g, TOR_OP_mean, INS(BINARY(mul, c, c)), attrs, 2);
    set_outputs(g, INS(BINARY(mul, c, UNARY(rsqrt, BINARY(add, v, number(g, 1))))));
    run("fuse_groups");
    expect_text(g,
                "s0 = x.size(0)\n"
                "\n"
                "%0  input   float32[s0, 8]      x\n"
                "%9  fused   float32[s0, 8]  %0  axes=[1]  program=936 bytes\n"
                "    output                  %9\n");
    expect_program(first_of(TOR_OP_fused),
                   "row0 = sum.float32 in0\n"
                   "row1 = length.float32 \n"
                   "--\n"
                   "row2 = div.float32 row0, row1\n"
                   "r0 = sub.float32 in0, row2\n"
                   "r1 = mul.float32 r0, r0\n"
                   "row3 = sum.float32 r1\n"
                   "row4 = length.float32 \n"
                   "--\n"
                   "row5 = div.float32 row3, row4\n"
                   "row6 = add.float32 row5, 1\n"
                   "row7 = rsqrt.float32 row6\n"
                   "out0 = mul.float32 r0, row7\n");
}

// A value that is needed elsewhere is made once, in a group of its own.
static void test_group_shares(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "4 8"), *y = UNARY(exp, UNARY(neg, x));
    set_outputs(g, INS(UNARY(tanh, y), UNARY(sin, y)));
    run("fuse_groups");
    expect_text(g,
                "%0  input   float32[4, 8]      x\n"
                "%7  fused   float32[4, 8]  %0  axes=[]  program=936 bytes\n"
                "%6  fused   float32[4, 8]  %7  axes=[]  program=936 bytes\n"
                "%5  fused   float32[4, 8]  %7  axes=[]  program=936 bytes\n"
                "    output                 %6 %5\n");
}

// Reductions over no axis, and over others than the group's.
static void test_group_axes(void **state) {
    (void)state;
    TorAttr none[] = {TOR_A_INTS(axes, NULL, 0), TOR_A_INT(keepdim, 1)},
            first[] = {INTS(axes, 0), TOR_A_INT(keepdim, 1)};
    TorValue *x = INPUT(g, "x", "4 8"), *p = OP(g, softmax, INS(x), ATTRS(TOR_A_INT(axis, 1)));
    set_outputs(g, INS(add_op(g, TOR_OP_amax, INS(p), none, 2),
                       add_op(g, TOR_OP_sum,
                              INS(OP(g, softmax, INS(UNARY(neg, x)), ATTRS(TOR_A_INT(axis, 1)))),
                              first, 2)));
    run("fuse_groups");
    expect_text(g,
                "%0  input   float32[4, 8]      x\n"
                "%9  fused   float32[4, 8]  %0  axes=[1]  program=936 bytes\n"
                "%8  fused   float32[4, 8]  %9  axes=[]  program=936 bytes\n"
                "%7  fused   float32[4, 8]  %0  axes=[1]  program=936 bytes\n"
                "%6  fused   float32[1, 8]  %7  axes=[0]  program=936 bytes\n"
                "    output                 %8 %6\n");
}

// ---------------------------------------------------------------- frozen parts

static TorValue *conv(TorValue *x, TorValue *w) {
    return OP(g, conv, INS(x, w),
              ATTRS(INTS(stride, 1, 1), INTS(padding, 1, 1), INTS(dilation, 1, 1)));
}

// The cast of an operand goes above its views, to the linear that makes it; but not above a slice
// of what no kernel's epilogue makes. float32 and float64 stay as they are.
static void test_widen(void **state) {
    (void)state;
    TorValue *x = make_input(g, "x", TOR_bfloat16, "6 4", false),
             *w = make_input(g, "w", TOR_bfloat16, "8 4", true),
             *cache = make_input(g, "cache", TOR_bfloat16, "9 6 3", false),
             *d = make_input(g, "d", TOR_float64, "3 3", false);
    TorValue *heads = OP(g, view, INS(OP(g, linear, INS(x, w), NONE)), ATTRS(DIMS(g, "6 2 4"))),
             *turned = OP(g, permute, INS(heads), ATTRS(INTS(axes, 1, 2, 0))),
             *part =
                 OP(g, slice, INS(cache),
                    ATTRS(TOR_A_INT(axis, 0), TOR_A_DIM(start, tor_int_const(g, 1)), DIMS(g, "2")));
    set_outputs(g, INS(OP(g, matmul, INS(turned, part), NONE), OP(g, matmul, INS(d, d), NONE)));
    run("widen cse dce");
    expect_text(g,
                "%0   input    bfloat16[6, 4]              x\n"
                "%1   input    bfloat16[8, 4]              w (frozen)\n"
                "%2   input    bfloat16[9, 6, 3]           cache\n"
                "%3   input    float64[3, 3]               d\n"
                "%10  cast     float32[6, 4]      %0\n"
                "%11  cast     float32[8, 4]      %1\n"
                "%12  linear   float32[6, 8]      %10 %11\n"
                "%13  cast     bfloat16[6, 8]     %12\n"
                "%7   slice    bfloat16[2, 6, 3]  %2       dims=[2]  start=1  axis=0\n"
                "%14  cast     float32[6, 8]      %13\n"
                "%15  view     float32[6, 2, 4]   %14\n"
                "%16  permute  float32[2, 4, 6]   %15      axes=[1, 2, 0]\n"
                "%17  cast     float32[2, 6, 3]   %7\n"
                "%18  matmul   float32[2, 4, 3]   %16 %17\n"
                "%19  cast     bfloat16[2, 4, 3]  %18\n"
                "%9   matmul   float64[3, 3]      %3 %3\n"
                "     output                      %19 %9\n");
}

static void test_fold_conv(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "s 3 8 8"), *w = WEIGHT(g, "w", "4 3 3 3"),
             *scale = WEIGHT(g, "scale", "4 1 1"), *shift = WEIGHT(g, "shift", "1 4 1 1"),
             *moving = INPUT(g, "moving", "4 1 1");
    TorValue *y = BINARY(add, BINARY(mul, conv(x, w), scale), shift);
    set_outputs(g, INS(BINARY(mul, y, moving)));
    expect_text(
        g,
        "s0 = x.size(0)\n"
        "\n"
        "%0  input   float32[s0, 3, 8, 8]         x\n"
        "%1  input   float32[4, 3, 3, 3]          w (frozen)\n"
        "%2  input   float32[4, 1, 1]             scale (frozen)\n"
        "%3  input   float32[1, 4, 1, 1]          shift (frozen)\n"
        "%4  input   float32[4, 1, 1]             moving\n"
        "%5  conv    float32[s0, 4, 8, 8]  %0 %1  stride=[1, 1]  padding=[1, 1]  dilation=[1, 1]\n"
        "%6  mul     float32[s0, 4, 8, 8]  %5 %2\n"
        "%7  add     float32[s0, 4, 8, 8]  %6 %3\n"
        "%8  mul     float32[s0, 4, 8, 8]  %7 %4\n"
        "    output                        %8\n");
    run("fold_conv dce");
    expect_text(g,
                "s0 = x.size(0)\n"
                "\n"
                "%0   input   float32[s0, 3, 8, 8]              x\n"
                "%1   input   float32[4, 3, 3, 3]               w (frozen)\n"
                "%2   input   float32[4, 1, 1]                  scale (frozen)\n"
                "%3   input   float32[1, 4, 1, 1]               shift (frozen)\n"
                "%4   input   float32[4, 1, 1]                  moving\n"
                "%10  view    float32[4, 1, 1, 1]   %2\n"
                "%11  mul     float32[4, 3, 3, 3]   %1 %10\n"
                "%13  view    float32[4]            %3\n"
                "%14  conv    float32[s0, 4, 8, 8]  %0 %11 %13  stride=[1, 1]  padding=[1, 1]  "
                "dilation=[1, 1]\n"
                "%8   mul     float32[s0, 4, 8, 8]  %14 %4\n"
                "     output                        %8\n");
}

static TorValue *padded(TorValue *x, const char *low, const char *high, double value) {
    TorAttr l = dims_attr(g, TOR_ATTR_low, low), h = dims_attr(g, TOR_ATTR_high, high);
    return OP(g, pad, INS(x),
              ATTRS(l, h, TOR_A_SCALAR(value, ((TorScalar){.dtype = TOR_float32, .f = value}))));
}

static void test_fold_pad(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "2 3 s 8"), *w = WEIGHT(g, "w", "4 3 3 3");
    TorValue *zeros = padded(x, "0 0 0 1", "0 0 1 2", 0),
             *ones = padded(x, "0 0 1 1", "0 0 1 1", 1);
    TorAttr window[] = {INTS(kernel, 3, 3), INTS(stride, 2, 2), INTS(padding, 0, 0)};
    set_outputs(g, INS(conv(padded(zeros, "0 0 1 0", "0 0 0 0", 0), w), conv(ones, w),
                       conv(padded(x, "0 0 0 0", "0 0 0 -1", 0), w),
                       OP(g, avg_pool, INS(padded(x, "0 0 0 0", "0 0 1 1", 0)), window, 3),
                       OP(g, avg_pool, INS(zeros), window, 3)));
    run("fold_pad dce");
    expect_text(g,
                "s0 = x.size(2)\n"
                "\n"
                "%0   input     float32[2, 3, s0, 8]                  x\n"
                "%1   input     float32[4, 3, 3, 3]                   w (frozen)\n"
                "%2   pad       float32[2, 3, s0+1, 11]        %0     value=0.0  low=[0, 0, 0, 1]  "
                "high=[0, 0, 1, 2]\n"
                "%3   pad       float32[2, 3, s0+2, 10]        %0     value=1.0  low=[0, 0, 1, 1]  "
                "high=[0, 0, 1, 1]\n"
                "%5   conv      float32[2, 4, s0+2, 11]        %0 %1  stride=[1, 1]  padding=[2, "
                "2]  dilation=[1, 1]  padding_high=[2, 3]\n"
                "%6   conv      float32[2, 4, s0+2, 10]        %3 %1  stride=[1, 1]  padding=[1, "
                "1]  dilation=[1, 1]\n"
                "%7   pad       float32[2, 3, s0, 7]           %0     value=0.0  low=[0, 0, 0, 0]  "
                "high=[0, 0, 0, -1]\n"
                "%8   conv      float32[2, 4, s0, 7]           %7 %1  stride=[1, 1]  padding=[1, "
                "1]  dilation=[1, 1]\n"
                "%10  avg_pool  float32[2, 3, (s0-2)//2+1, 4]  %0     stride=[2, 2]  padding=[0, "
                "0]  kernel=[3, 3]  divisor=9  padding_high=[1, 1]\n"
                "%11  avg_pool  float32[2, 3, (s0-2)//2+1, 5]  %2     stride=[2, 2]  padding=[0, "
                "0]  kernel=[3, 3]\n"
                "     output                                   %5 %6 %8 %10 %11\n");
}

static void test_prepack(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "s 8"), *w = WEIGHT(g, "w", "16 8"), *v = INPUT(g, "v", "16 8"),
             *image = INPUT(g, "image", "1 3 8 8"), *filter = INPUT(g, "filter", "4 3 3 3");
    set_outputs(g, INS(OP(g, linear, INS(x, w), NONE), OP(g, linear, INS(x, v), NONE),
                       conv(image, filter)));
    run("prepack");
    expect_text(g,
                "s0 = x.size(0)\n"
                "\n"
                "%0  input        float32[s0, 8]              x\n"
                "%1  input        float32[16, 8]              w (frozen)\n"
                "%2  input        float32[16, 8]              v\n"
                "%3  input        float32[1, 3, 8, 8]         image\n"
                "%4  input        float32[4, 3, 3, 3]         filter\n"
                "%8  pack_linear  uint8[0]             %1     trans=0\n"
                "%5  linear       float32[s0, 16]      %0 %8  packed=1  k=8  n=16\n"
                "%6  linear       float32[s0, 16]      %0 %2\n"
                "%9  pack_conv    uint8[0]             %4     groups=1  transposed=0\n"
                "%7  conv         float32[1, 4, 8, 8]  %3 %9  stride=[1, 1]  padding=[1, 1]  "
                "dilation=[1, 1]  kernel=[3, 3]  packed=1  n=4\n"
                "    output                            %5 %6 %7\n");
}

// Winograd's weights for frozen 3x3 kernels where they pay: not for few channels or pixels, nor for
// strides; sizes that are not known are taken for usual ones.
static void test_prepack_winograd(void **state) {
    (void)state;
    static const struct {
        const char *image, *filter;
        int64_t stride;
        bool frozen, pays;
    } cases[] = {
        {"1 64 56 56", "64 64 3 3", 1, true, true},  {"1 64 56 56", "64 64 3 3", 1, false, false},
        {"1 64 56 56", "64 64 3 3", 2, true, false}, {"1 64 56 56", "64 64 1 1", 1, true, false},
        {"1 8 56 56", "64 8 3 3", 1, true, false},   {"1 512 7 7", "512 512 3 3", 1, true, false},
        {"8 512 7 7", "512 512 3 3", 1, true, true}, {"s 64 t u", "64 64 3 3", 1, true, true},
    };
    for (size_t i = 0; i < TOR_COUNT_OF(cases); i++) {
        tor_graph_destroy(&g);
        g = new_graph();
        TorValue *image = INPUT(g, "image", cases[i].image),
                 *filter = cases[i].frozen ? WEIGHT(g, "filter", cases[i].filter)
                                           : INPUT(g, "filter", cases[i].filter);
        TorValue *y = OP(g, conv, INS(image, filter),
                         ATTRS(INTS(stride, cases[i].stride, cases[i].stride), INTS(padding, 1, 1),
                               INTS(dilation, 1, 1)));
        set_outputs(g, INS(y));
        run("prepack");
        const TorNode *node = first_of(TOR_OP_conv), *pack = first_of(TOR_OP_pack_conv);
        assert_int_equal(tor_attr_int(node, TOR_ATTR_winograd, 0), cases[i].pays);
        assert_int_equal(tor_attr_int(pack, TOR_ATTR_winograd, 0), cases[i].pays);
    }
}

static TorValue *conv_of(TorValue *x, const char *w, int64_t groups, int64_t padding) {
    return OP(g, conv, INS(x, INPUT(g, "w", w)),
              ATTRS(INTS(stride, 1, 1), INTS(padding, padding, padding), INTS(dilation, 1, 1),
                    TOR_A_INT(groups, groups)));
}

/// "%7:1 %9:0": the convolutions in order, and whether each is marked.
static void expect_bands(const char *expected) {
    TorText text = {0};
    char *got;
    run("prepack fuse_bands");
    for (const TorNode *node = g->first; node; node = node->next)
        if (node->op == TOR_OP_conv)
            tor_text_put(&text, "%%%u:%d ", node->outputs[0]->id,
                         (int)tor_attr_int(node, TOR_ATTR_bands, 0));
    assert_int_equal(tor_text_finish(&text, &got), TOROID_OK);
    assert_string_equal(got, expected);
    tor_free(got);
}

// Each chain has one depthwise convolution, and a value that others read ends it.
static void test_fuse_bands(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "1 4 s 8"), *other = INPUT(g, "other", "1 4 s 8");
    TorValue *up = conv_of(x, "6 4 1 1", 1, 0), *between = UNARY(relu, other),
             *deep = conv_of(up, "6 1 3 3", 6, 1), *down = conv_of(deep, "4 6 1 1", 1, 0),
             *next = conv_of(down, "4 1 3 3", 4, 1);
    set_outputs(g, INS(BINARY(add, next, between)));
    expect_bands("%3:1 %6:1 %8:0 %10:0 ");
    assert_true(up->node->next == deep->node && deep->node->next == down->node);
}

static void test_fuse_bands_refusals(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "1 4 8 8");
    TorValue *read_twice = conv_of(x, "6 4 1 1", 1, 0),
             *deep = conv_of(read_twice, "6 1 3 3", 6, 1), *wide = conv_of(x, "6 4 3 3", 1, 1),
             *deep_too = conv_of(wide, "6 1 3 3", 6, 1),
             *padded = conv_of(deep_too, "4 6 1 1", 1, 1), *grouped = conv_of(x, "4 2 1 1", 2, 0);
    set_outputs(g, INS(read_twice, deep, padded, conv_of(grouped, "4 1 3 3", 4, 1)));
    expect_bands("%2:0 %4:0 %6:0 %8:0 %10:0 %12:0 %14:0 ");
}

static void test_prologue(void **state) {
    (void)state;
    TorPrologue prologue = {0};
    TorValue *x = INPUT(g, "x", "s 8"), *w = WEIGHT(g, "w", "8 8"), *b = WEIGHT(g, "b", "8");
    TorValue *t = OP(g, permute, INS(w), ATTRS(INTS(axes, 1, 0))),
             *twice = BINARY(mul, w, number(g, 2)), *sum = BINARY(add, twice, b);
    set_outputs(
        g, INS(OP(g, matmul, INS(x, t), NONE), BINARY(add, x, UNARY(neg, b)),
               OP(g, matmul, INS(x, OP(g, permute, INS(twice), ATTRS(INTS(axes, 1, 0)))), NONE),
               OP(g, matmul, INS(x, sum), NONE)));
    expect_text(g,
                "s0 = x.size(0)\n"
                "\n"
                "%0   input    float32[s0, 8]          x\n"
                "%1   input    float32[8, 8]           w (frozen)\n"
                "%2   input    float32[8]              b (frozen)\n"
                "%3   permute  float32[8, 8]   %1      axes=[1, 0]\n"
                "%5   mul      float32[8, 8]   %1 2.0\n"
                "%6   add      float32[8, 8]   %5 %2\n"
                "%7   matmul   float32[s0, 8]  %0 %3\n"
                "%8   neg      float32[8]      %2\n"
                "%9   add      float32[s0, 8]  %0 %8\n"
                "%10  permute  float32[8, 8]   %5      axes=[1, 0]\n"
                "%11  matmul   float32[s0, 8]  %0 %10\n"
                "%12  matmul   float32[s0, 8]  %0 %6\n"
                "     output                   %7 %9 %11 %12\n");
    run("frozen");
    assert_int_equal(tor_pass_prologue(g, &prologue), TOROID_OK);
    expect_text(g,
                "s0 = x.size(0)\n"
                "\n"
                "%15  input    float32[8, 8]           prologue (frozen)\n"
                "%14  input    float32[8, 8]           prologue (frozen)\n"
                "%13  input    float32[8]              prologue (frozen)\n"
                "%0   input    float32[s0, 8]          x\n"
                "%1   input    float32[8, 8]           w (frozen)\n"
                "%2   input    float32[8]              b (frozen)\n"
                "%3   permute  float32[8, 8]   %1      axes=[1, 0]\n"
                "%7   matmul   float32[s0, 8]  %0 %3\n"
                "%9   add      float32[s0, 8]  %0 %13\n"
                "%10  permute  float32[8, 8]   %14     axes=[1, 0]\n"
                "%11  matmul   float32[s0, 8]  %0 %10\n"
                "%12  matmul   float32[s0, 8]  %0 %15\n"
                "     output                   %7 %9 %11 %12\n");
    assert_int_equal(prologue.count, 3);
    expect_text(prologue.results[0].graph,
                "%0  input   float32[8]      w0 (frozen)\n"
                "%1  neg     float32[8]  %0\n"
                "    output              %1\n");
    expect_text(prologue.results[1].graph,
                "%0  input   float32[8, 8]          w0 (frozen)\n"
                "%2  mul     float32[8, 8]  %0 2.0\n"
                "    output                 %2\n");
    expect_text(prologue.results[2].graph,
                "%0  input   float32[8, 8]          w0 (frozen)\n"
                "%2  mul     float32[8, 8]  %0 2.0\n"
                "%3  input   float32[8]             w1 (frozen)\n"
                "%4  add     float32[8, 8]  %2 %3\n"
                "    output                 %4\n");
    // Computed from the host's tensors, not from another result.
    for (size_t r = 0; r < 3; r++)
        for (uint32_t i = 0; i < prologue.results[r].n_sources; i++)
            assert_true(prologue.results[r].sources[i] < 3);
    tor_prologue_destroy(&prologue);
}

// ---------------------------------------------------------------- layout, in place

static TorValue *rows(TorValue *x) {
    g->inputs[g->n_inputs - 1].contiguous = true;
    return x;
}

static void test_layout_views(void **state) {
    (void)state;
    TorValue *x = rows(INPUT(g, "x", "s 4 6"));
    TorValue *t = OP(g, permute, INS(x), ATTRS(INTS(axes, 1, 0, 2)));
    TorDim flat[] = {tor_int_mul(g, tor_int_const(g, 4), x->dim[0]), tor_int_const(g, 6)};
    TorValue *f =
        OP(g, view, INS(t), ATTRS(TOR_A_DIMS(dims, flat, 2)));     // no single stride: copied
    TorValue *h = OP(g, view, INS(x), ATTRS(DIMS(g, "s 2 2 6")));  // an alias
    set_outputs(g, INS(UNARY(neg, f), UNARY(neg, h), UNARY(neg, t)));
    run("layout");
    expect_text(g,
                "s0 = x.size(0)\n"
                "\n"
                "%0  input       float32[s0, 4, 6]  @[24, 6, 1]               x\n"
                "%1  permute     float32[4, s0, 6]  @%0[6, 24, 1]         %0  axes=[1, 0, 2]\n"
                "%7  contiguous  float32[4, s0, 6]  @[s0*6, 6, 1]         %1\n"
                "%2  view        float32[s0*4, 6]  @%7[6, 1]              %7\n"
                "%3  view        float32[s0, 2, 2, 6]  @%0[24, 12, 6, 1]  %0\n"
                "%4  neg         float32[s0*4, 6]  @[6, 1]                %2\n"
                "%5  neg         float32[s0, 2, 2, 6]  @[24, 12, 6, 1]    %3\n"
                "%6  neg         float32[4, s0, 6]  @[s0*6, 6, 1]         %1\n"
                "    output                                               %4 %5 %6\n");
}

// Convolutions keep channels last among themselves; outputs take what they promise.
static void test_layout_conv(void **state) {
    (void)state;
    TorValue *x = rows(INPUT(g, "x", "2 3 8 8")), *w = rows(INPUT(g, "w", "4 3 3 3")),
             *u = rows(INPUT(g, "u", "4 4 3 3"));
    TorValue *y = UNARY(relu, conv(UNARY(relu, conv(x, w)), u));
    set_outputs(g, INS(y, y));
    assert_int_equal(tor_graph_set_output_layout(g, 1, NULL, (const int[]){0, 2, 3, 1}), TOROID_OK);
    run("prepack fuse_groups layout");
    expect_text(
        g,
        "%0   input       float32[2, 3, 8, 8]  @[192, 64, 8, 1]          x\n"
        "%1   input       float32[4, 3, 3, 3]  @[27, 9, 3, 1]            w\n"
        "%2   input       float32[4, 4, 3, 3]  @[36, 9, 3, 1]            u\n"
        "%7   pack_conv   uint8[0]  @[1]                         %1      groups=1  "
        "transposed=0\n"
        "%3   conv        float32[2, 4, 8, 8]  @[256, 1, 32, 4]  %0 %7   stride=[1, 1]  "
        "padding=[1, 1]  dilation=[1, 1]  kernel=[3, 3]  packed=1  n=4\n"
        "%10  fused       float32[2, 4, 8, 8]  @[256, 1, 32, 4]  %3      axes=[]  program=936 "
        "bytes\n"
        "%8   pack_conv   uint8[0]  @[1]                         %2      groups=1  "
        "transposed=0\n"
        "%5   conv        float32[2, 4, 8, 8]  @[256, 1, 32, 4]  %10 %8  stride=[1, 1]  "
        "padding=[1, 1]  dilation=[1, 1]  kernel=[3, 3]  packed=1  n=4\n"
        "%9   fused       float32[2, 4, 8, 8]  @[256, 1, 32, 4]  %5      axes=[]  program=936 "
        "bytes\n"
        "%11  contiguous  float32[2, 4, 8, 8]  @[256, 64, 8, 1]  %9\n"
        "     output                                             %11 %9\n");
}

static void test_layout_heads(void **state) {
    (void)state;
    TorValue *q = rows(INPUT(g, "q", "2 7 24")), *w = rows(INPUT(g, "w", "24 24"));
    TorValue *h = permuted(viewed(q, "2 7 3 8"), 0, 2, 1, 3);
    TorValue *a =
        viewed(permuted(OP(g, attention, INS(h, h, h), ATTRS(TOR_A_FLOAT(scale, 1))), 0, 2, 1, 3),
               "2 7 24");
    set_outputs(g, INS(OP(g, linear, INS(a, w), NONE)));
    run("layout");
    expect_text(
        g,
        "%0  input      float32[2, 7, 24]  @[168, 24, 1]                   q\n"
        "%1  input      float32[24, 24]  @[24, 1]                          w\n"
        "%2  view       float32[2, 7, 3, 8]  @%0[168, 24, 8, 1]  %0\n"
        "%3  permute    float32[2, 3, 7, 8]  @%0[168, 8, 24, 1]  %2        axes=[0, 2, 1, 3]\n"
        "%4  attention  float32[2, 3, 7, 8]  @[168, 8, 24, 1]    %3 %3 %3  scale=1.0\n"
        "%5  permute    float32[2, 7, 3, 8]  @%4[168, 24, 8, 1]  %4        axes=[0, 2, 1, 3]\n"
        "%6  view       float32[2, 7, 24]  @%4[168, 24, 1]       %5\n"
        "%7  linear     float32[2, 7, 24]  @[168, 24, 1]         %6 %1\n"
        "    output                                              %7\n");
}

static void test_inplace(void **state) {
    (void)state;
    TorValue *one = rows(INPUT(g, "one", "9 4")), *two = rows(INPUT(g, "two", "9 4")),
             *fresh = rows(INPUT(g, "fresh", "1 4")),
             *at = make_input(g, "at", TOR_int64, "1", false);
    rows(at);
    TorValue *a = OP(g, index_copy, INS(one, at, fresh), ATTRS(TOR_A_INT(axis, 0)));
    TorValue *b = OP(g, index_copy, INS(two, at, fresh), ATTRS(TOR_A_INT(axis, 0)));
    TorValue *values[] = {a, b, UNARY(neg, a),
                          UNARY(neg, two)};  // the old state of `two` is read late
    int64_t into[] = {0, 1, -1, -1};
    assert_int_equal(tor_graph_set_outputs(g, values, into, 4), TOROID_OK);
    expect_text(g,
                "%0  input       float32[9, 4]            one\n"
                "%1  input       float32[9, 4]            two\n"
                "%2  input       float32[1, 4]            fresh\n"
                "%3  input       int64[1]                 at\n"
                "%4  index_copy  float32[9, 4]  %0 %3 %2  axis=0\n"
                "%5  index_copy  float32[9, 4]  %1 %3 %2  axis=0\n"
                "%6  neg         float32[9, 4]  %4\n"
                "%7  neg         float32[9, 4]  %1\n"
                "    output                     %4>one %5>two %6 %7\n");
    run("inplace layout");
    expect_text(g,
                "%0  input       float32[9, 4]  @[4, 1]              one\n"
                "%1  input       float32[9, 4]  @[4, 1]              two\n"
                "%2  input       float32[1, 4]  @[4, 1]              fresh\n"
                "%3  input       int64[1]  @[1]                      at\n"
                "%4  index_copy  float32[9, 4]  @%0[4, 1]  %0 %3 %2  axis=0  inplace=1\n"
                "%5  index_copy  float32[9, 4]  @[4, 1]    %1 %3 %2  axis=0\n"
                "%6  neg         float32[9, 4]  @[4, 1]    %4\n"
                "%7  neg         float32[9, 4]  @[4, 1]    %1\n"
                "    output                                %4>one %5>two %6 %7\n");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_epilogue),          TEST(test_epilogue_stops),
        TEST(test_epilogue_operands), TEST(test_group),
        TEST(test_group_rows),        TEST(test_group_shares),
        TEST(test_group_axes),        TEST(test_fold_conv),
        TEST(test_fold_pad),          TEST(test_widen),
        TEST(test_prepack),           TEST(test_prepack_winograd),
        TEST(test_fuse_bands),        TEST(test_fuse_bands_refusals),
        TEST(test_prologue),

        TEST(test_layout_views),      TEST(test_layout_conv),
        TEST(test_layout_heads),      TEST(test_inplace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

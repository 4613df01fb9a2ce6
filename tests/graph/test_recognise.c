// What the passes that find attention and activations in their parts make of a graph: printed text
// before and after.
#include <float.h>
#include <math.h>

#include "frame.h"
#include "passes/passes.h"

static void run(const char *names) { run_passes(g, names); }

static void test_attention(void **state) {
    (void)state;
    TorValue *q = INPUT(g, "q", "2 4 s 16"), *k = INPUT(g, "k", "2 4 9 16"),
             *v = INPUT(g, "v", "2 4 9 16"), *mask = INPUT(g, "mask", "9");
    TorValue *s = BINARY(div, OP(g, matmul, INS(q, permuted(k, 0, 1, 3, 2)), NONE), number(g, 4));
    s = OP(g, softmax, INS(BINARY(add, s, mask)), ATTRS(TOR_A_INT(axis, 3)));
    set_outputs(g, INS(OP(g, matmul, INS(s, v), NONE)));
    expect_text(g,
                "s0 = q.size(2)\n"
                "\n"
                "%0   input    float32[2, 4, s0, 16]          q\n"
                "%1   input    float32[2, 4, 9, 16]           k\n"
                "%2   input    float32[2, 4, 9, 16]           v\n"
                "%3   input    float32[9]                     mask\n"
                "%4   permute  float32[2, 4, 16, 9]   %1      axes=[0, 1, 3, 2]\n"
                "%5   matmul   float32[2, 4, s0, 9]   %0 %4\n"
                "%7   div      float32[2, 4, s0, 9]   %5 4.0\n"
                "%8   add      float32[2, 4, s0, 9]   %7 %3\n"
                "%9   softmax  float32[2, 4, s0, 9]   %8      axis=3\n"
                "%10  matmul   float32[2, 4, s0, 16]  %9 %2\n"
                "     output                          %10\n");
    run("recognise_attention canonicalise dce");
    expect_text(
        g,
        "s0 = q.size(2)\n"
        "\n"
        "%0   input      float32[2, 4, s0, 16]                q\n"
        "%1   input      float32[2, 4, 9, 16]                 k\n"
        "%2   input      float32[2, 4, 9, 16]                 v\n"
        "%3   input      float32[9]                           mask\n"
        "%12  view       float32[1, 1, 1, 9]    %3\n"
        "%13  attention  float32[2, 4, s0, 16]  %0 %1 %2 %12  scale=0.25  causal=0  nan_rows=1\n"
        "     output                            %13\n");
}

// Scores that are used elsewhere, a softmax over another axis, a mask that chooses between scores
// and a tensor: left alone.
static void test_no_attention(void **state) {
    (void)state;
    TorValue *q = INPUT(g, "q", "2 4 9 16"), *k = INPUT(g, "k", "2 4 16 9"),
             *v = INPUT(g, "v", "2 4 9 16"), *keep = make_input(g, "keep", TOR_bool, "9 9", false);
    TorValue *a = OP(g, softmax, INS(OP(g, matmul, INS(q, k), NONE)), ATTRS(TOR_A_INT(axis, 3)));
    TorValue *b = OP(g, softmax, INS(OP(g, matmul, INS(q, k), NONE)), ATTRS(TOR_A_INT(axis, 2)));
    TorValue *least = INPUT(g, "least", "9 9");
    TorValue *c = OP(g, where, INS(keep, OP(g, matmul, INS(q, k), NONE), least), NONE);
    c = OP(g, softmax, INS(c), ATTRS(TOR_A_INT(axis, 3)));
    set_outputs(g, INS(OP(g, matmul, INS(a, v), NONE), a, OP(g, matmul, INS(b, v), NONE),
                       OP(g, matmul, INS(c, v), NONE)));
    run("recognise_attention");
    for (const TorNode *node = g->first; node; node = node->next)
        assert_int_not_equal(node->op, TOR_OP_attention);
}

// Heads in the batch, taken apart before the softmax; a bias added there and a mask chosen after.
static void test_attention_with_a_bias(void **state) {
    (void)state;
    TorValue *q = INPUT(g, "q", "8 s 16"), *k = INPUT(g, "k", "8 16 9"),
             *v = INPUT(g, "v", "2 4 9 16"), *alibi = INPUT(g, "alibi", "8 1 9"),
             *keep = make_input(g, "keep", TOR_bool, "2 1 1 9", false);
    TorValue *s = BINARY(mul, OP(g, matmul, INS(q, k), NONE), number(g, 0.25));
    s = OP(g, view, INS(BINARY(add, alibi, s)), ATTRS(DIMS(g, "2 4 s 9")));
    s = OP(g, where, INS(keep, s, number(g, -FLT_MAX)), NONE);
    s = OP(g, softmax, INS(s), ATTRS(TOR_A_INT(axis, 3)));
    set_outputs(g, INS(OP(g, matmul, INS(s, v), NONE)));
    run("recognise_attention canonicalise dce");
    expect_text(
        g,
        "s0 = q.size(1)\n"
        "\n"
        "%0   input      float32[8, s0, 16]                                     q\n"
        "%1   input      float32[8, 16, 9]                                      k\n"
        "%2   input      float32[2, 4, 9, 16]                                   v\n"
        "%3   input      float32[8, 1, 9]                                       alibi\n"
        "%4   input      bool[2, 1, 1, 9]                                       keep\n"
        "%14  permute    float32[8, 9, 16]      %1                              axes=[0, 2, 1]\n"
        "%15  view       float32[2, 4, s0, 16]  %0\n"
        "%16  view       float32[2, 4, 9, 16]   %14\n"
        "%17  view       float32[2, 4, 1, 9]    %3\n"
        "%18  where      float32[2, 4, 1, 9]    %4 %17 -3.4028234663852886e+38\n"
        "%19  attention  float32[2, 4, s0, 16]  %15 %16 %2 %18 %4               scale=0.25  "
        "causal=0  nan_rows=1  fill=0.0\n"
        "     output                            %19\n");
}

// Two masks that put one number there and a bias added on top, as in GPT-2: the number stays apart.
static void test_attention_with_one_fill(void **state) {
    (void)state;
    TorValue *q = INPUT(g, "q", "2 4 s 16"), *k = INPUT(g, "k", "2 4 16 9"),
             *v = INPUT(g, "v", "2 4 9 16"), *bias = INPUT(g, "bias", "2 1 1 9"),
             *keep = make_input(g, "keep", TOR_bool, "s 9", false),
             *drop = make_input(g, "drop", TOR_bool, "2 1 1 9", false);
    TorValue *s = OP(g, where, INS(keep, OP(g, matmul, INS(q, k), NONE), number(g, -1e9)), NONE);
    s = BINARY(add, OP(g, where, INS(drop, number(g, -1e9), s), NONE), bias);
    s = OP(g, softmax, INS(s), ATTRS(TOR_A_INT(axis, 3)));
    set_outputs(g, INS(OP(g, matmul, INS(s, v), NONE)));
    run("recognise_attention canonicalise dce");
    expect_text(g,
                "s0 = q.size(2)\n"
                "\n"
                "%0   input      float32[2, 4, s0, 16]                    q\n"
                "%1   input      float32[2, 4, 16, 9]                     k\n"
                "%2   input      float32[2, 4, 9, 16]                     v\n"
                "%3   input      float32[2, 1, 1, 9]                      bias\n"
                "%4   input      bool[s0, 9]                              keep\n"
                "%5   input      bool[2, 1, 1, 9]                         drop\n"
                "%13  permute    float32[2, 4, 9, 16]   %1                axes=[0, 1, 3, 2]\n"
                "%14  bit_not    bool[2, 1, 1, 9]       %5\n"
                "%15  view       bool[1, 1, s0, 9]      %4\n"
                "%16  bit_and    bool[2, 1, s0, 9]      %14 %15\n"
                "%17  attention  float32[2, 4, s0, 16]  %0 %13 %2 %3 %16  scale=1.0  causal=0  "
                "nan_rows=1  fill=-1e+09\n"
                "     output                            %17\n");
}

static TorValue *repeated(TorValue *x, const char *one, const char *wide, const char *flat) {
    x = OP(g, view, INS(x), ATTRS(DIMS(g, one)));
    x = OP(g, expand, INS(x), ATTRS(DIMS(g, wide)));
    return OP(g, view, INS(x), ATTRS(DIMS(g, flat)));
}

// Keys and values of two heads for four: read in place. Of another number of heads: left alone.
static void test_group_heads(void **state) {
    (void)state;
    TorValue *q = INPUT(g, "q", "2 4 s 16"), *k = INPUT(g, "k", "2 2 9 16"),
             *v = INPUT(g, "v", "2 2 9 16"), *one = INPUT(g, "one", "2 1 9 16");
    TorAttr scale = TOR_A_FLOAT(scale, 1);
    TorValue *wide_k = repeated(k, "2 2 1 9 16", "2 2 2 9 16", "2 4 9 16");
    TorValue *wide_v = repeated(v, "2 2 1 9 16", "2 2 2 9 16", "2 4 9 16");
    TorValue *wide = OP(g, expand, INS(one), ATTRS(DIMS(g, "2 4 9 16")));
    set_outputs(g, INS(OP(g, attention, INS(q, wide_k, wide_v), ATTRS(scale)),
                       OP(g, attention, INS(q, wide, wide), ATTRS(scale)),
                       OP(g, attention, INS(q, wide_k, wide), ATTRS(scale))));
    run("group_heads canonicalise dce");
    expect_text(g,
                "s0 = q.size(2)\n"
                "\n"
                "%0   input      float32[2, 4, s0, 16]               q\n"
                "%1   input      float32[2, 2, 9, 16]                k\n"
                "%2   input      float32[2, 2, 9, 16]                v\n"
                "%3   input      float32[2, 1, 9, 16]                one\n"
                "%4   view       float32[2, 2, 1, 9, 16]  %1\n"
                "%5   expand     float32[2, 2, 2, 9, 16]  %4\n"
                "%6   view       float32[2, 4, 9, 16]     %5\n"
                "%10  expand     float32[2, 4, 9, 16]     %3\n"
                "%11  attention  float32[2, 4, s0, 16]    %0 %1 %2   scale=1.0\n"
                "%12  attention  float32[2, 4, s0, 16]    %0 %3 %3   scale=1.0\n"
                "%13  attention  float32[2, 4, s0, 16]    %0 %6 %10  scale=1.0\n"
                "     output                              %11 %12 %13\n");
}

// ---------------------------------------------------------------- activations

static TorValue *gated(TorValue *x, TorValue *gate) {
    return BINARY(mul, BINARY(mul, x, number(g, 0.5)), BINARY(add, gate, number(g, 1)));
}

static void test_activations(void **state) {
    (void)state;
    TorValue *x = INPUT(g, "x", "s 4"), *half = make_input(g, "half", TOR_float16, "4", false);
    TorValue *cube = BINARY(mul, BINARY(pow, x, number(g, 3)), number(g, 0.044715));
    TorValue *inner = BINARY(mul, BINARY(add, x, cube), number(g, 0.7978845608028654));
    TorValue *tanh = gated(x, OP(g, tanh, INS(inner), NONE));
    TorValue *erf = gated(x, OP(g, erf, INS(BINARY(div, x, number(g, 1.4142135623730951))), NONE));
    TorValue *silu = BINARY(mul, OP(g, sigmoid, INS(x), NONE), x);
    TorValue *exp = OP(g, exp, INS(OP(g, neg, INS(x), NONE)), NONE);
    TorValue *quotient = BINARY(div, x, BINARY(add, exp, number(g, 1)));
    // Another constant, another argument, a half type.
    TorValue *wrong = gated(x, OP(g, erf, INS(BINARY(mul, x, number(g, 0.7))), NONE));
    TorValue *other = BINARY(mul, OP(g, sigmoid, INS(silu), NONE), x);
    TorValue *narrow = BINARY(mul, OP(g, sigmoid, INS(half), NONE), half);
    set_outputs(g, INS(tanh, erf, silu, quotient, wrong, other, narrow));
    run("recognise_activation dce");
    expect_text(g,
                "s0 = x.size(0)\n"
                "\n"
                "%0   input      float32[s0, 4]           x\n"
                "%1   input      float16[4]               half\n"
                "%37  gelu_tanh  float32[s0, 4]  %0\n"
                "%38  gelu_erf   float32[s0, 4]  %0\n"
                "%39  silu       float32[s0, 4]  %0\n"
                "%40  silu       float32[s0, 4]  %0\n"
                "%28  mul        float32[s0, 4]  %0 0.7\n"
                "%29  erf        float32[s0, 4]  %28\n"
                "%30  mul        float32[s0, 4]  %0 0.5\n"
                "%31  add        float32[s0, 4]  %29 1.0\n"
                "%32  mul        float32[s0, 4]  %30 %31\n"
                "%33  sigmoid    float32[s0, 4]  %39\n"
                "%34  mul        float32[s0, 4]  %33 %0\n"
                "%35  sigmoid    float16[4]      %1\n"
                "%36  mul        float16[4]      %35 %1\n"
                "     output                     %37 %38 %39 %40 %32 %34 %36\n");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_attention),
        TEST(test_no_attention),
        TEST(test_attention_with_a_bias),
        TEST(test_attention_with_one_fill),
        TEST(test_group_heads),
        TEST(test_activations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// The rules of pointwise programs, one broken at a time, and their text.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/program.h"

static TorOperand operand(TorOperandKind kind, int index) {
    return (TorOperand){(uint8_t)kind, (uint8_t)index};
}

// max; e = exp(x - max), sum of e; e / sum
static TorProgram softmax(void) {
    TorProgram p = {.n_inputs = 1,
                    .n_outputs = 1,
                    .n_instrs = 3,
                    .n_reductions = 2,
                    .n_stages = 3,
                    .n_regs = 2,
                    .n_rows = 2};
    const uint8_t f32 = TOR_float32;
    const TorOperand x = operand(TOR_OPERAND_INPUT, 0), r0 = operand(TOR_OPERAND_REG, 0),
                     r1 = operand(TOR_OPERAND_REG, 1);
    p.input_type[0] = p.output_type[0] = f32;
    p.reduction[0] = (TorReduction){TOR_REDUCE_max, f32, 0, 0, x};
    p.instr[0] = (TorInstr){TOR_FN_sub, f32, f32, 1, r0, {x, operand(TOR_OPERAND_ROW, 0)}};
    p.instr[1] = (TorInstr){TOR_FN_exp, f32, f32, 1, r1, {r0}};
    p.reduction[1] = (TorReduction){TOR_REDUCE_sum, f32, 1, 1, r1};
    p.instr[2] = (TorInstr){
        TOR_FN_div, f32, f32, 2, operand(TOR_OPERAND_OUTPUT, 0), {r1, operand(TOR_OPERAND_ROW, 1)}};
    return p;
}

static void accepts_softmax(void **state) {
    (void)state;
    TorProgram p = softmax();
    assert_int_equal(tor_program_verify(&p), TOROID_OK);
}

static void prints_one_instruction_a_line(void **state) {
    (void)state;
    TorProgram p = softmax();
    char text[512], cut[8];
    assert_string_equal(
        tor_program_print(&p, text, sizeof text),
        "row0 = max.float32 in0\n--\nr0 = sub.float32 in0, row0\nr1 = exp.float32 r0\n"
        "row1 = sum.float32 r1\n--\nout0 = div.float32 r1, row1\n");
    assert_string_equal(tor_program_print(&p, cut, sizeof cut), "row0 = ");
}

static void refused(const TorProgram *p, const char *because) {
    assert_int_equal(tor_program_verify(p), TOROID_INVALID);
    if (!strstr(toroid_last_error(), because))
        fail_msg("\"%s\" does not say \"%s\"", toroid_last_error(), because);
}

static void refuses_broken_programs(void **state) {
    (void)state;
    TorProgram p = softmax();
    p.instr[1].src[0] = operand(TOR_OPERAND_REG, 1);
    refused(&p, "before it is set");
    p = softmax();
    p.instr[1].dst = operand(TOR_OPERAND_REG, 0);
    refused(&p, "a second time");
    p = softmax();
    p.input_type[0] = TOR_int32;
    refused(&p, "but it is int32");
    p = softmax();
    p.output_type[0] = TOR_float64;
    refused(&p, "which is float64");
    p = softmax();
    p.instr[0].src[1] = operand(TOR_OPERAND_ROW, 1);
    refused(&p, "before it is set");
    p = softmax();
    p.instr[2].stage = 1;
    refused(&p, "before it is set");
    p = softmax();
    p.n_reductions = 1;
    refused(&p, "stage 1 of 3");
    p = softmax();
    p.instr[1].fn = TOR_FN_bit_not;
    refused(&p, "bit_not takes no float32");
    p = softmax();
    p.instr[1].to = TOR_float16;
    refused(&p, "gives float32");
    p = softmax();
    p.instr[1].src[1] = operand(TOR_OPERAND_INPUT, 0);
    refused(&p, "takes 1 operands");
    p = softmax();
    p.n_instrs = 2;
    refused(&p, "never written");
    p = softmax();
    p.output_row[0] = 1;
    refused(&p, "runs once a row");
}

static void knows_types(void **state) {
    (void)state;
    assert_true(tor_fn_takes(TOR_FN_ceil, TOR_int32));
    assert_false(tor_fn_takes(TOR_FN_exp, TOR_int64));
    assert_false(tor_fn_takes(TOR_FN_shift_left, TOR_bool));
    assert_int_equal(tor_fn_result(TOR_FN_lt, TOR_float64, TOR_float64), TOR_bool);
    assert_int_equal(tor_fn_result(TOR_FN_cast, TOR_float64, TOR_int8), TOR_int8);
    assert_int_equal(tor_reduce_result(TOR_REDUCE_argmax, TOR_float32), TOR_int64);
    assert_int_equal(tor_fn_arity(TOR_FN_where), 3);
    assert_string_equal(tor_fn_name(TOR_FN_gelu_tanh), "gelu_tanh");
    assert_string_equal(tor_reduce_name(TOR_REDUCE_moments), "moments");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_softmax),
        cmocka_unit_test(prints_one_instruction_a_line),
        cmocka_unit_test(refuses_broken_programs),
        cmocka_unit_test(knows_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

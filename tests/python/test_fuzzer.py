"""The fuzzer itself: what it accepts, what it finds, and what it prints of a failing graph."""

import dataclasses
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fuzz.compare import check
from fuzz.door import compile_program
from fuzz.examine import examine, optional_passes
from fuzz.generate import generate
from fuzz.program import Call
from fuzz.replay import replay, trace
from fuzz.shrink import shrink
from fuzz.source import source
from toroid import _torch

aten = torch.ops.aten
inf = float("inf")


def norm_of_rows_of_one_with_an_infinite_weight(x, weight):
    return (aten.native_layer_norm.default(x, [1], weight, None, 1e-05)[0],)


def the_sign_of_a_norm_that_is_zero(x, weight):
    y = aten.native_layer_norm.default(x, [21], weight, None, 1e-05)[0]
    return (aten.amax.default(aten.remainder.Scalar(y, 1), [0, 1]),)


def division_by_a_mean_that_cancels(x, y):
    mean = aten.var_mean.correction(x, [0], correction=0, keepdim=False)[1]
    return (aten.div.Tensor(y, mean),)


def exponentials_whose_sum_is_rounded_to_one(x, y):
    return (
        aten.logsumexp.default(x, [0]),
        aten.prod.dim_int(aten._log_softmax.default(y, 0, False), 0),
    )


def a_remainder_whose_quotient_leaves_float32(x, y):
    return (aten.fmod.Tensor(x, y), aten.remainder.Tensor(x, y))


def a_tangent_that_turns_within_a_rounding(x):
    return (aten.tan.default(aten.reciprocal.default(aten.gelu.default(x))),)


def gauss(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("f", "inputs"),
    [
        (
            norm_of_rows_of_one_with_an_infinite_weight,
            (gauss(16, 1).half(), torch.tensor([-inf]).half()),
        ),
        (the_sign_of_a_norm_that_is_zero, ((torch.arange(84) % 7 - 3.0).view(4, 21), gauss(21))),
        (
            division_by_a_mean_that_cancels,
            ((torch.arange(1024) % 2 - 0.5) * gauss(512).repeat_interleave(2), gauss(5)),
        ),
        (
            a_remainder_whose_quotient_leaves_float32,
            (torch.full((33,), 6.596424750624589e37), torch.full((33,), 0.09375)),
        ),
        (
            a_tangent_that_turns_within_a_rounding,
            (torch.linspace(-8, -7.8, 60, dtype=torch.float64),),
        ),
        (
            exponentials_whose_sum_is_rounded_to_one,
            (
                torch.tensor([-7.0, -7, -7, -7, 0]).bfloat16(),
                torch.tensor([-6.6875, 3.546875]).bfloat16(),
            ),
        ),
    ],
)
def test_answers_that_hang_on_eagers_roundings_are_accepted(f, inputs):
    replay(f, inputs)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: (aten.sub.Tensor(x, y, alpha=100),),
        lambda x, y: (aten.native_layer_norm.default(x, [9], None, None, 1e-05)[0],),
        lambda x, y: (aten.mm.default(x, aten.t.default(y)),),
        lambda x, y: (aten.logsumexp.default(x, [1]),),
        lambda x, y: (aten.argmax.default(aten.sub.Tensor(x, y, alpha=100), 1),),
    ],
)
def test_wrong_answers_are_found(f, dtype):
    _torch.attach()
    program = trace(f, (gauss(8, 9).to(dtype), gauss(5, 8, 9)[1].to(dtype)), ())
    compiled = compile_program(program)
    assert check(program, compiled) is None

    def off(args):
        (y,) = compiled.run(args)
        y.view(-1)[3] += 0.3 * y.abs().max() if y.is_floating_point() else 1
        return [y]

    wrong = dataclasses.replace(compiled, run=off)
    assert "elements differ; at" in check(program, wrong)


@pytest.mark.parametrize("index", range(4))
def test_a_graph_made_small_is_a_short_program_that_runs(index, capsys):
    """Whatever is still there after a call was looked for is printed with its inputs' generator."""
    _torch.attach()
    program = generate(3, index)
    wanted = next(v.target for v in reversed(program.values) if isinstance(v, Call))

    def fails(candidate):
        return any(isinstance(v, Call) and v.target == wanted for v in candidate.values)

    text = source(shrink(program, fails), 3, index, "nothing")
    assert len(text.splitlines()) < 30 and max(map(len, text.splitlines())) < 200, text
    assert str(wanted) in text or "getitem" in str(wanted)
    exec(compile(text, "small", "exec"), {})


def test_the_reference_is_compared_with_eager_and_the_default_with_it():
    _torch.attach()
    for index in range(6):
        assert examine(5, index, reference=True)["fault"] is None
    program = trace(lambda x: (aten.cumsum.default(x, 1),), (gauss(8, 9),), ())
    compiled, oracle = compile_program(program), compile_program(program, reference=True)
    assert check(program, compiled, oracle=oracle) is None
    assert "tor_scan_ref" in oracle.report.tables()["steps"]
    assert "tor_scan_ref" not in compiled.report.tables()["steps"]
    wrong = dataclasses.replace(compiled, run=lambda args: [compiled.run(args)[0] + 1])
    assert "elements differ" in check(program, wrong, oracle=oracle)


def test_answers_without_each_pass():
    _torch.attach()
    assert {"cse", "recognise_attention", "group_heads", "prologue"} <= set(optional_passes())
    for index in range(6):
        assert examine(4, index, each_pass=True)["fault"] is None

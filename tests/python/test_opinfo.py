"""The harness of tests/opinfo tells right answers from wrong ones and survives a crash."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "opinfo"))

import compare
import door
import report
import sample
import worker
from exclusions import NO_VALUE, NOT_TRACEABLE, matches


def op_of(function, **fields):
    """What the harness asks of an OpInfo."""
    fields = {"name": "an_op", "variant_test_name": "", "decorators": (), **fields}
    return SimpleNamespace(op=function, **fields)


def sample_of(x, *args, **kwargs):
    return SimpleNamespace(input=x, args=args, kwargs=kwargs)


def status(function, *args, backward=False, **kwargs):
    return sample.judge(op_of(function), sample_of(*args, **kwargs), backward).status


def test_right_answers():
    x = torch.randn(3, 4)
    assert status(torch.add, x, x.t().contiguous().t()) == "native"
    assert status(torch.linalg.svdvals, x) == "external"
    y = torch.randn(3, 4, requires_grad=True)
    assert status(torch.sigmoid, y, backward=True) == "native"


def test_wrong_answers(monkeypatch):
    x = torch.zeros(3)
    real = door.compile_call

    def compile_wrongly(function, tensors):
        return real(lambda t: (function(t)[0] + 1,), tensors)

    monkeypatch.setattr(door, "compile_call", compile_wrongly)
    outcome = sample.judge(op_of(torch.neg), sample_of(x), False)
    assert outcome.status == "wrong"
    assert "Tensor-likes are not close" in outcome.reason


def test_an_exception_of_the_backend_is_an_error(monkeypatch):
    def fail(function, tensors):
        raise RuntimeError("no luck")

    monkeypatch.setattr(door, "compile_call", fail)
    outcome = sample.judge(op_of(torch.neg), sample_of(torch.zeros(3)), False)
    assert (outcome.status, outcome.reason) == ("error", "RuntimeError: no luck")


def test_what_pytorch_cannot_trace_is_no_fault_where_it_is_listed():
    def depends_on_data(x):
        return x + 1 if x.sum().item() > 0 else x

    for name, want in (("unique_consecutive", "untraced"), ("an_op", "error")):
        outcome = sample.judge(op_of(depends_on_data, name=name), sample_of(torch.ones(3)), False)
        assert outcome.status == want


@pytest.mark.parametrize(("factor", "want"), [(2, "captured"), (3, "wrong")])
def test_what_pytorchs_capture_gives_is_no_fault(monkeypatch, factor, want):
    def change(name, by):
        real = getattr(door, name)
        monkeypatch.setattr(door, name, lambda f, inputs: real(lambda x: (f(x)[0] * by,), inputs))

    change("trace_only", 2)
    change("compile_call", factor)
    assert sample.judge(op_of(torch.neg), sample_of(torch.ones(3)), False).status == want


@pytest.mark.parametrize(
    ("got", "want"),
    [
        (torch.zeros(2), torch.zeros(2, dtype=torch.float64)),
        (torch.zeros(2, 1), torch.zeros(2)),
        (torch.zeros(2, 3), torch.zeros(3, 2).t()),
        (torch.tensor([1, 2]), torch.tensor([1, 3])),
        (torch.tensor([1.0]), torch.tensor([1.001])),
        (torch.tensor([float("nan")]), torch.tensor([1.0])),
    ],
)
def test_differences(got, want):
    compare.check([want], [want.clone()], {})
    with pytest.raises(compare.Different):
        compare.check([got], [want], {})


def test_copies_keep_strides_and_shared_memory():
    base = torch.arange(12.0)
    x, y = base.as_strided((2, 3), (1, 2), 3), base[2:]
    a, b = door.copies([x, y])
    assert torch.equal(a, x)
    assert (a.stride(), a.storage_offset()) == (x.stride(), 3)
    b.zero_()
    assert a.abs().sum() == 0
    assert base.sum() == 66


def test_a_crash_costs_one_sample():
    def dies_of_two(x):
        if x.numel() == 2:
            os.abort()
        return x + 1

    def sample_inputs(device, dtype, requires_grad):
        return [sample_of(torch.ones(n, dtype=dtype)) for n in (1, 2, 3)]

    task = worker.Task(op_of(dies_of_two, sample_inputs=sample_inputs), [torch.float32])
    results = list(worker.run([task], jobs=1, timeout=60))
    assert [(r.number, r.outcome.status) for r in results] == [
        (0, "native"),
        (1, "crashed"),
        (2, "native"),
    ]
    assert "SIGABRT" in results[1].outcome.reason


def test_every_exclusion_names_an_op():
    from torch.testing._internal.common_methods_invocations import op_db

    entries = NO_VALUE | NOT_TRACEABLE
    assert len(entries) <= 30
    assert all(any(matches(op.name, {pattern: ""}) for op in op_db) for pattern in entries)
    assert all(entries.values())


def test_any_of_equal_values_may_be_picked():
    x = torch.tensor([[1, 3, 3], [2, 2, 0]])
    want = torch.tensor([[2], [0]])
    assert compare.picks_equals(x, torch.tensor([[1], [1]]), want)
    assert compare.picks_equals(x, torch.tensor([1, 1]), want[:, 0])
    assert not compare.picks_equals(x, torch.tensor([[0], [0]]), want)
    twice, both = torch.tensor([[1, 1], [0, 1]]), torch.tensor([[1, 2], [0, 1]])
    assert not compare.picks_equals(x, twice, both)


def test_equal_elements_share_their_gradient():
    x = torch.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 0.0]])
    want = torch.tensor([[5.0, 7.0, 0.0], [1.0, -1.0, 2.0]])
    other = torch.tensor([[5.0, 0.0, 7.0], [-1.0, 1.0, 2.0]])
    assert compare.gives_equals_the_same(x, other, want)
    assert not compare.gives_equals_the_same(x, other.flip(1), want)


def test_gradients_of_values_alone_may_go_to_any_of_equals(monkeypatch):
    x = torch.tensor([1.0, 1.0, 0.0], requires_grad=True)
    msort = op_of(torch.msort, name="msort")
    real = door.compile_call

    def compile_otherwise(function, tensors):
        return real(lambda t: (t.flip(0).sort(stable=True).values,), tensors)

    monkeypatch.setattr(door, "compile_call", compile_otherwise)
    assert sample.judge(msort, sample_of(x), True).status in ("native", "external")
    assert sample.judge(op_of(torch.msort), sample_of(x), True).status == "wrong"


def test_results_that_are_as_near_as_eager_are_sound():
    want, exact = torch.tensor([1000.01]), torch.tensor([1000.0]).double()
    moved = [[torch.tensor([1000.03]).double()]]

    def sound(got, nudged):
        return compare.is_sound([torch.tensor([got])], [want], [exact], nudged, {})

    assert sound(1000.01, [])  # eager's, however far off
    assert sound(999.97, moved)
    assert not sound(999.97, [])  # more than the tolerance of the value, which is well defined
    assert not sound(999.95, moved)  # more than four times as far as eager, less than it moves


def test_inputs_are_nudged_by_half_their_last_place():
    call = door.make_call(torch.clone, sample_of(torch.ones(100)))
    exact, nudged = (sample.exact_outputs(call, False, n)[0] for n in (None, 0))
    assert exact.dtype == torch.float64
    assert torch.equal(exact, torch.ones(100).double())
    assert set((nudged - 1).tolist()) == {2.0**-24, -(2.0**-24)}


def test_reports_are_read_again_and_the_last_counts(tmp_path):
    def result(op, number, status, reason=""):
        return worker.Result(op, "int8", number, sample.Outcome(status, reason))

    runs = [
        [
            result("neg", 0, "wrong", "off"),
            result("svd", 0, "external", "aten.svd.a: no; aten.b: no"),
        ],
        [result("neg", 0, "native"), result("neg", 1, "decomposed", "aten.neg")],
    ]
    paths = [tmp_path / "first.json", tmp_path / "second.json"]
    for path, results in zip(paths, runs, strict=True):
        path.write_text("".join(report.to_line(r) + "\n" for r in results))
    read = report.read(paths)
    assert {(r.op, r.number, r.outcome.status) for r in read} == {
        ("neg", 0, "native"),
        ("neg", 1, "decomposed"),
        ("svd", 0, "external"),
    }
    page = report.markdown(read)
    assert "3 samples of 2 ops (int8): 1 native, 1 decomposed, 1 external; 0 failed" in page
    assert "| `svd` |  |  | 1 | `svd.a`, `b` |" in page
    assert "`neg`" in page and "| `neg`" not in page
    assert "ops fully native: 0/2" in report.table(read, True)


def test_results_share_the_memory_of_inputs_as_in_eager(monkeypatch):
    real = door.compile_call
    monkeypatch.setattr(door, "compile_call", lambda f, t: real(lambda x: (x.clone(),), t))
    for function, want in ((torch.clone, "native"), (torch.t, "wrong")):
        assert sample.judge(op_of(function), sample_of(torch.ones(3)), False).status == want

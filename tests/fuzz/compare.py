"""Comparing with eager, or with another compilation.

Types, strides and sharing exactly, values as far as rounding allows.
"""

from __future__ import annotations

import dataclasses

import torch

from fuzz.door import Compiled
from fuzz.program import Program, run
from fuzz.rounding import Spread, arguments, close


@dataclasses.dataclass
class Tally:
    """Elements that differed by more than 4 ulp and were no faults."""

    rounded: int = 0  # as far as eager's own roundings take it
    undefined: int = 0  # eager's own roundings decide what it is


def check(
    program: Program,
    compiled: Compiled,
    tally: Tally | None = None,
    oracle: Compiled | None = None,
) -> str | None:
    """Run compiled, and the oracle or eager; what differs, or None."""
    want_inputs, got_inputs = arguments(program), arguments(program)
    got = _call(compiled, got_inputs)
    if oracle is not None:
        expected = _call(oracle, want_inputs)
    else:
        want = run(program, want_inputs)
        expected = [want[i] for i in program.outputs]
    if len(got) != len(expected):
        return f"{len(got)} outputs, expected {len(expected)}"
    spread = Spread(program)
    tally = tally or Tally()
    for k, (a, b, strides) in enumerate(zip(got, expected, compiled.strides, strict=True)):
        if fault := _type_fault(a, b, strides):
            return f"output {k}: {fault}"
        if fault := _value_fault(k, a, b, spread, tally):
            return f"output {k}: {fault}"
        if fault := _alias_fault(a, b, got_inputs, want_inputs, program):
            return f"output {k}: {fault}"
    for k, i in enumerate(program.inputs()):
        if fault := _value_fault(len(expected) + k, got_inputs[i], want_inputs[i], spread, tally):
            return f"input {k} afterwards: {fault}"
    return None


def _call(compiled: Compiled, inputs: dict[int, torch.Tensor]) -> list[torch.Tensor]:
    return list(compiled.run([inputs[i] for i in compiled.inputs]))


def _type_fault(a: torch.Tensor, b: torch.Tensor, strides: tuple[int, ...]) -> str | None:
    if a.dtype != b.dtype:
        return f"dtype {a.dtype}, expected {b.dtype}"
    if a.shape != b.shape:
        return f"shape {tuple(a.shape)}, expected {tuple(b.shape)}"
    # FakeTensor's strides are the promise; it differs from eager in dims of size 1 alone.
    if a.numel() and a.stride() != b.stride() and a.stride() != strides:
        return f"strides {a.stride()}, expected {b.stride()} (FakeTensor: {strides})"
    return None


def _value_fault(
    k: int, a: torch.Tensor, b: torch.Tensor, spread: Spread, tally: Tally
) -> str | None:
    if a.numel() == 0:
        return None
    far = ~close(a, b)
    if not bool(far.any()):
        return None
    verdict = spread.judge(k, a, b, far)
    tally.undefined += int((far & verdict.undefined).sum())
    tally.rounded += int((far & verdict.good & ~verdict.undefined).sum())
    bad = (far & ~verdict.good).nonzero()
    if len(bad) == 0:
        return None
    at = tuple(bad[0].tolist())
    return (
        f"{len(bad)} of {a.numel()} elements differ; at {list(at)} "
        f"got {a[at].item()!r}, expected {b[at].item()!r}"
    )


def _alias_fault(
    a: torch.Tensor,
    b: torch.Tensor,
    got_inputs: dict[int, torch.Tensor],
    want_inputs: dict[int, torch.Tensor],
    program: Program,
) -> str | None:
    """An output that shares an input's memory in eager shares it here, at the same place."""
    if a.numel() == 0:
        return None
    for i, mine in got_inputs.items():
        here = a.untyped_storage().data_ptr() == mine.untyped_storage().data_ptr()
        other = want_inputs[i].untyped_storage().data_ptr()
        there = b.untyped_storage().data_ptr() == other
        if there and not (here and a.storage_offset() == b.storage_offset()):
            return f"eager's is a view of input {i} at {b.storage_offset()}, this one is not"
        if here and not there:
            return f"it lies in input {i}, and eager's does not"
    return None

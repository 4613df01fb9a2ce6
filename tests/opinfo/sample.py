"""What becomes of one sample: its status and the reason."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence
from typing import Any

import compare
import door
import numpy as np
import torch
from exclusions import NOT_TRACEABLE, matches
from torch._subclasses.fake_tensor import FakeTensorMode

#: In the order of a table's columns; the last three are failures.
STATUSES = (
    *("native", "decomposed", "external", "left", "captured", "untraced"),
    *("wrong", "error", "crashed"),
)
FAILURES = STATUSES[-3:]


@dataclasses.dataclass
class Outcome:
    """Status and reason of one sample.

    Statuses: native (every ATen call by its name), decomposed (native after PyTorch's
    decomposition), external (PyTorch runs some calls), left (the graph stays with PyTorch),
    captured (unlike eager, but what PyTorch's own capture gives), untraced (PyTorch's own capture
    fails, as `exclusions.NOT_TRACEABLE` expects), wrong, error (an exception), crashed (the process
    died).
    """

    status: str
    reason: str = ""


def seed() -> None:
    """Make the next random numbers known."""
    torch.manual_seed(42)
    np.random.seed(42)
    random.seed(42)


def brief(error: BaseException) -> str:
    """An exception in one line."""
    text = " ".join(str(error).split()).partition(" While executing ")[0]
    return f"{type(error).__name__}: {text[:300]}"


@dataclasses.dataclass
class Run:
    """What a run gave: results, gradients of the inputs, and the inputs as it left them."""

    results: list[Any]
    gradients: list[Any]
    inputs: list[torch.Tensor]

    @property
    def outputs(self) -> list[Any]:
        """Results, then gradients."""
        return self.results + self.gradients


def run_once(function: Callable[..., Any], tensors: Sequence[torch.Tensor], backward: bool) -> Run:
    """Run on copies of the inputs."""
    mine = door.copies(tensors)
    seed()
    if not backward:
        with torch.no_grad():
            return Run(list(function(*mine)), [], mine)
    results = list(function(*mine))
    return Run(results, gradients(results, mine), mine)


def gradients(results: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]) -> list[Any]:
    """Gradients of the inputs that want one, for known gradients of the results."""
    roots = [r for r in results if r.requires_grad]
    leaves = [t for t in inputs if t.requires_grad]
    if not roots or not leaves:
        return []
    given = [(torch.arange(r.numel()) % 7 - 3).reshape(r.shape).to(r.dtype) for r in roots]
    return list(torch.autograd.grad(roots, leaves, given, allow_unused=True))


def fake_outputs(call: door.Call, backward: bool) -> list[Any] | None:
    """What PyTorch's fake tensors say of the outputs; strides may differ from eager's."""
    try:
        with FakeTensorMode() as mode, torch.set_grad_enabled(backward):
            inputs = [mode.from_tensor(t) for t in call.tensors]
            results = list(call.function(*inputs))
            return results + (gradients(results, inputs) if backward else [])
    except Exception:
        return None


def same_strides(got: Any, *others: Any) -> bool:
    """Whether an output has the strides of one of the others; an absent one has any."""
    return any(got is None or o is None or compare.same_strides(got, o) for o in others)


def shared(run: Run) -> list[list[bool]]:
    """Of each result, which inputs have its memory."""

    def memory(t: torch.Tensor) -> int:
        strided = t.layout is torch.strided and t.numel() > 0
        return t.untyped_storage().data_ptr() if strided else 0

    return [[memory(r) == memory(t) != 0 for t in run.inputs] for r in run.results]


def same(got: Run, wanted: Run, allowed: Any, **kwargs: Any) -> str | None:
    """The difference between two runs, None if there is none."""
    try:
        compare.check(got.outputs, wanted.outputs, allowed, **kwargs)
        compare.check(got.inputs, wanted.inputs, {}, strides=False)
    except compare.Different as difference:
        return str(difference)
    if shared(got) != shared(wanted):
        return f"memory of inputs in results: {shared(got)}, eager {shared(wanted)}"
    return None


def exact_outputs(call: door.Call, backward: bool, nudge: int | None = None) -> list[Any]:
    """The outputs computed in float64; `nudge` moves the inputs by half their last places."""
    draw = torch.Generator()

    def widen(t: torch.Tensor) -> torch.Tensor:
        if not t.dtype.is_floating_point:
            return t
        wide = t.detach().double()
        if nudge is not None:
            sign = torch.randint(2, t.shape, generator=draw.manual_seed(nudge)) * 2 - 1
            wide = wide + wide * sign * (torch.finfo(t.dtype).eps / 2)
        return wide.requires_grad_(t.requires_grad)

    return run_once(call.function, [widen(t) for t in call.tensors], backward).outputs


def is_sound(call: door.Call, got: Run, wanted: Run, allowed: Any, backward: bool) -> bool:
    """Whether outputs that differ from eager's are as good, by what float64 gives."""
    try:
        exact, *nudged = (exact_outputs(call, backward, n) for n in (None, *range(4)))
    except Exception:  # not every function takes float64
        return False
    if len(exact) != len(wanted.outputs):
        return False
    return compare.is_sound(got.outputs, wanted.outputs, exact, nudged, allowed)


def classify(compiled: door.Compiled) -> Outcome:
    """What the reports say of a sample whose answer is right."""
    for report in compiled.reports:
        if report.fallback is not None:
            return Outcome("left", report.fallback)
    externals = [e for report in compiled.reports for e in report.externals]
    if externals:
        return Outcome(
            "external", "; ".join(dict.fromkeys(": ".join(e.row()[::2]) for e in externals))
        )
    if compiled.rules:
        return Outcome("decomposed", ", ".join(compiled.rules))
    return Outcome("native")


def picks_others(
    op: Any, sample: Any, call: door.Call, got: Run, wanted: Run, allowed: Any
) -> bool:
    """Whether the outputs differ only in which of several equal elements they pick."""
    if op.name not in compare.PICKS or sample.kwargs.get("stable"):
        return False
    x = call.tensors[0].detach()
    places = len(wanted.results) == 2 or op.name == "argsort"
    values = len(wanted.results) - places
    mine, others = (Run(r.results[:values], [], r.inputs) for r in (got, wanted))
    if same(mine, others, allowed) is not None:
        return False
    if places and not compare.picks_equals(x, got.results[-1], wanted.results[-1]):
        return False
    return all(
        compare.gives_equals_the_same(x, a, b)
        for a, b in zip(got.gradients, wanted.gradients, strict=True)
    )


def judge(op: Any, sample: Any, backward: bool) -> Outcome | None:
    """Run one sample; None if eager itself refuses it."""
    call = door.make_call(op.op, sample)
    try:
        wanted = run_once(call.function, call.tensors, backward)
    except Exception:
        return None
    allowed = compare.tolerances(op)
    try:
        compiled = door.compile_call(call.function, door.copies(call.tensors))
        with door.listen() as later:  # a backward graph may be compiled when it is first needed
            got = run_once(compiled.run, call.tensors, backward)
        compiled.reports += later
    except Exception as error:
        return blame(op, call, None, wanted, backward, brief(error))
    difference = same(got, wanted, allowed)
    if difference is None:
        return classify(compiled)
    if same(got, wanted, allowed, values=False) is None and (
        picks_others(op, sample, call, got, wanted, allowed)
        or is_sound(call, got, wanted, allowed, backward)
    ):
        return classify(compiled)
    if same(got, wanted, allowed, strides=False) is None:
        promised = fake_outputs(call, backward)
        if promised and all(map(same_strides, got.outputs, promised, wanted.outputs)):
            return Outcome("captured", f"as PyTorch's fake tensors promise: {difference}")
    return blame(op, call, got, wanted, backward, difference)


def blame(
    op: Any, call: door.Call, got: Run | None, wanted: Run, backward: bool, reason: str
) -> Outcome:
    """A failure, unless PyTorch's capture alone fails too or gives what the backend gives."""
    allowed = compare.tolerances(op)
    try:
        traced = door.trace_only(call.function, door.copies(call.tensors))
        captured = run_once(traced, call.tensors, backward)
    except Exception as error:
        known = matches(op.name, NOT_TRACEABLE)
        return Outcome("untraced" if known else "error", brief(error))
    difference = same(captured, wanted, allowed)
    if got is not None and difference is not None and same(got, captured, allowed) is None:
        return Outcome("captured", difference)
    return Outcome("error" if got is None else "wrong", reason)

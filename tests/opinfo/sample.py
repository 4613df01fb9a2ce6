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
from torch._subclasses.fake_tensor import FakeTensorMode

#: In the order of a table's columns; the last three are failures.
STATUSES = ("native", "decomposed", "external", "left", "untraced", "wrong", "error", "crashed")
FAILURES = STATUSES[-3:]


@dataclasses.dataclass
class Outcome:
    """Status and reason of one sample.

    Statuses: native (every ATen call by its name), decomposed (native after PyTorch's
    decomposition), external (PyTorch runs some calls), left (the graph stays with PyTorch),
    untraced (PyTorch's own capture fails or gives another answer), wrong, error (an exception),
    crashed (the process died).
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


def run_once(
    function: Callable[..., Any], tensors: Sequence[torch.Tensor], backward: bool
) -> tuple[list[Any], list[torch.Tensor]]:
    """Run on copies: results and gradients, and the copies as the function left them."""
    mine = door.copies(tensors)
    seed()
    if not backward:
        with torch.no_grad():
            return list(function(*mine)), mine
    results = list(function(*mine))
    return results + gradients(results, mine), mine


def gradients(results: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]) -> list[Any]:
    """Gradients of the inputs that want one, for known gradients of the results."""
    roots = [r for r in results if r.requires_grad]
    leaves = [t for t in inputs if t.requires_grad]
    if not roots or not leaves:
        return []
    given = [(torch.arange(r.numel()) % 7 - 3).reshape(r.shape).to(r.dtype) for r in roots]
    return list(torch.autograd.grad(roots, leaves, given, allow_unused=True))


def fake_results(call: door.Call) -> list[torch.Tensor] | None:
    """What PyTorch's fake tensors say of the results; strides may differ from eager's."""
    try:
        with FakeTensorMode() as mode, torch.no_grad():
            return list(call.function(*(mode.from_tensor(t) for t in call.tensors)))
    except Exception:
        return None


def same(results: Any, wanted: Any, allowed: Any, **kwargs: Any) -> str | None:
    """The difference between two runs, None if there is none."""
    try:
        compare.check(results[0], wanted[0], allowed, **kwargs)
        compare.check(results[1], wanted[1], {}, strides=False)
    except compare.Different as difference:
        return str(difference)
    return None


def exact_results(call: door.Call, backward: bool) -> list[Any] | None:
    """The results computed in float64, None where that is no use."""
    wide = [
        t.detach().double().requires_grad_(t.requires_grad) if t.dtype.is_floating_point else t
        for t in call.tensors
    ]
    try:
        return run_once(call.function, wide, backward)[0]
    except Exception:
        return None


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
    op: Any, sample: Any, call: door.Call, results: Any, wanted: Any, allowed: Any
) -> bool:
    """Whether the results differ only in which of several equal elements they point at."""
    if op.name not in compare.PICKS or sample.kwargs.get("stable"):
        return False
    (*values, index), (*others, want) = results[0], wanted[0]
    if same((values, results[1]), (others, wanted[1]), allowed) is not None:
        return False
    return compare.picks_equals(call.tensors[0].detach(), index, want)


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
            results = run_once(compiled.run, call.tensors, backward)
        compiled.reports += later
    except Exception as error:
        return blame(call, wanted, allowed, backward, "error", brief(error))
    difference = same(results, wanted, allowed)
    if difference is None:
        return classify(compiled)
    if same(results, wanted, allowed, values=False) is None:
        if picks_others(op, sample, call, results, wanted, allowed):
            return classify(compiled)
        exact = exact_results(call, backward)
        sound = exact is not None and len(exact) == len(wanted[0])
        if sound and compare.is_sound(results[0], wanted[0], exact, allowed):
            return classify(compiled)
    if same(results, wanted, allowed, strides=False) is None:
        promised = fake_results(call)  # gradients follow, with strides as in eager
        if promised and all(
            map(compare.same_strides, results[0], promised + wanted[0][len(promised) :])
        ):
            return Outcome("untraced", f"as PyTorch's fake tensors promise: {difference}")
    return blame(call, wanted, allowed, backward, "wrong", difference)


def blame(
    call: door.Call, wanted: Any, allowed: Any, backward: bool, status: str, reason: str
) -> Outcome:
    """A failure, unless PyTorch's capture alone fails too."""
    try:
        traced = door.trace_only(call.function, door.copies(call.tensors))
        results = run_once(traced, call.tensors, backward)
    except Exception as error:
        return Outcome("untraced", brief(error))
    difference = same(results, wanted, allowed)
    return Outcome(status, reason) if difference is None else Outcome("untraced", difference)

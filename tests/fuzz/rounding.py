"""What rounding alone may do to a result: eager again, in float64 and with its roundings moved.

Almost every float result agrees to a few units in the last place and is accepted at once. Where
not, eager runs again: in float64, and some times with every inexact result moved by an ulp or so
(Monte Carlo arithmetic; Parker 1997). An element may differ as far as those runs spread. Where they
do not even agree in kind, or in an integer, the element has no defined value: a comparison, a
rounding or a sign hangs on the last bit.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import torch

from fuzz.moved import Moved
from fuzz.program import Call, Program, run

#: Runs with moved roundings: more are made as long as an element is not explained.
RUNS = (5, 20, 60)


def _perturbed(program: Program, seed: int) -> list[Any]:
    moved = Moved(seed)
    return run(program, arguments(program), moved.adapt, moved.finish)


def _wide(program: Program) -> list[Any]:
    def widen(x: Any) -> Any:
        if isinstance(x, torch.dtype) and x.is_floating_point:
            return torch.float64
        if isinstance(x, torch.Tensor) and x.is_floating_point():
            return x.double()
        if isinstance(x, list | tuple):
            return type(x)(widen(y) for y in x)
        return x

    def adapt(call: Call, args: Any, kwargs: Any) -> Any:
        return tuple(widen(a) for a in args), {k: widen(v) for k, v in kwargs.items()}

    tensors = {i: widen(t) for i, t in arguments(program).items()}
    return run(program, tensors, adapt)


def arguments(program: Program) -> dict[int, torch.Tensor]:
    """Fresh arguments by value number."""
    return {i: program.values[i].tensor() for i in program.inputs()}


def results(program: Program, env: list[Any]) -> list[torch.Tensor]:
    return [env[i] for i in program.outputs] + [env[i] for i in program.inputs()]


def close(got: torch.Tensor, want: torch.Tensor) -> torch.Tensor:
    """Equal elements, or floats within 4 ulp."""
    if not want.is_floating_point():
        return got == want
    a, b = got.double(), want.double()
    info = torch.finfo(want.dtype)
    bound = 4 * info.eps * b.abs() + info.tiny * info.eps
    return (a == b) | ((a - b).abs() <= bound) | (a.isnan() & b.isnan())


@dataclasses.dataclass
class Verdict:
    """Elements that are accepted although they differ, and which of them had no defined value."""

    good: torch.Tensor
    undefined: torch.Tensor


class Spread:
    """How far each result may be from eager's, found out when first asked."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.runs: list[list[torch.Tensor]] = []
        self.tries = 0
        self.wide: list[torch.Tensor] | None = None

    def _extend(self, count: int) -> None:
        if self.tries == 0:
            try:
                self.wide = results(self.program, _wide(self.program))
            except Exception:  # eager has no kernel for float64 there
                self.wide = None
        for seed in range(self.tries, count):
            try:
                self.runs.append(results(self.program, _perturbed(self.program, seed)))
            except Exception:  # an index or a divisor hangs on the last bit
                continue
        self.tries = max(self.tries, count)

    def judge(self, k: int, got: torch.Tensor, want: torch.Tensor, bad: torch.Tensor) -> Verdict:
        """Whether the elements `bad` of result k are as good as eager's."""
        verdict = Verdict(torch.zeros_like(bad), torch.zeros_like(bad))
        for count in RUNS:
            self._extend(count)
            verdict = self._judge(k, got, want)
            if bool((verdict.good | ~bad).all()):
                break
        return verdict

    def _judge(self, k: int, got: torch.Tensor, want: torch.Tensor) -> Verdict:
        others = [r[k] for r in self.runs]
        none, every = torch.zeros_like(want, dtype=torch.bool), torch.ones_like(want).bool()
        if not others:
            return Verdict(every, every)
        if not want.is_floating_point():
            unstable = none
            for other in others:
                unstable = unstable | (other != want)
            return Verdict(unstable, unstable)
        a, b = got.double(), want.double()
        info = torch.finfo(want.dtype)
        spread, unstable = torch.zeros_like(b), none
        for other in others:
            o = other.double()
            same_kind = (o.isnan() == b.isnan()) & ((o.isfinite() & b.isfinite()) | (o == b))
            unstable = unstable | ~(same_kind | (o.isnan() & b.isnan()))
            spread = torch.maximum(spread, (o - b).abs().nan_to_num(0, 0, 0))
        near = (a - b).abs() <= 12 * spread + 16 * info.eps * b.abs()
        unstable = unstable | (near & (spread >= b.abs() / 2))
        if self.wide is not None and self.wide[k].is_floating_point():
            x = self.wide[k].double()
            own = (b - x).abs()
            scale = b.abs().nan_to_num(0, 0, 0).max()
            sane = own <= 2**-4 * x.abs() + 12 * spread + 16 * info.eps * scale
            near = near | sane & ((a - x).abs() <= 2 * own + 2 * info.eps * x.abs())
            # Eager's NaN or infinity is its own loss where float64 has the number that is here.
            near = near | (~b.isfinite() & ~x.isnan() & close(got, self.wide[k].to(want.dtype)))
        return Verdict(unstable | near, unstable)

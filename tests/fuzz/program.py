"""What a random graph is before it is an FX graph: values in order, each an input or a call."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable
from typing import Any

import torch

ITEM = operator.getitem


@dataclasses.dataclass(frozen=True)
class Ref:
    """A value of the program, by its number."""

    at: int


@dataclasses.dataclass
class Input:
    """A view of a storage: an argument of the graph."""

    storage: torch.Tensor  # 1-d
    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    frozen: bool = False
    number: int = -1  # which value of a generated graph it is
    text: str = ""  # a short expression that makes it again

    @classmethod
    def of(cls, t: torch.Tensor, **more: Any) -> Input:
        """A tensor, with a copy of the memory that its elements lie in."""
        extent = 1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True))
        extent = extent if t.numel() else 0
        storage = t.as_strided((extent,), (1,)).clone()
        return cls(storage, tuple(t.shape), tuple(t.stride()), 0, **more)

    def tensor(self) -> torch.Tensor:
        """The argument, in memory of its own."""
        return self.storage.clone().as_strided(self.size, self.stride, self.offset)


@dataclasses.dataclass
class Call:
    """One ATen call, or an item of a call with several results (target `ITEM`)."""

    target: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)
    number: int = -1  # which value of a generated graph it is

    def renamed(self, f: Callable[[Ref], Ref]) -> Call:
        """The same call of other values."""
        args, kwargs = substitute(self.args, f), substitute(self.kwargs, f)
        return Call(self.target, args, kwargs, self.number)


@dataclasses.dataclass
class Program:
    """Values, the ones returned, and writes (input, value) that happen after all else."""

    values: list[Input | Call]
    outputs: list[int] = dataclasses.field(default_factory=list)
    writes: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    threads: int = 1

    def inputs(self) -> list[int]:
        """Numbers of the values that are arguments."""
        return [i for i, v in enumerate(self.values) if isinstance(v, Input)]

    def used(self) -> set[int]:
        """Values that outputs and writes need."""
        need = set(self.outputs) | {i for pair in self.writes for i in pair}
        for i in range(len(self.values) - 1, -1, -1):
            value = self.values[i]
            if i in need and isinstance(value, Call):
                need |= refs(value)
        return need

    def without_dead(self) -> Program:
        """The same with unused values removed and the rest numbered anew."""
        keep = sorted(self.used())
        new = {old: i for i, old in enumerate(keep)}
        values: list[Input | Call] = []
        for i in keep:
            v = self.values[i]
            if isinstance(v, Call):
                v = v.renamed(lambda r: Ref(new[r.at]))
            values.append(v)
        return Program(
            values,
            [new[i] for i in self.outputs],
            [(new[a], new[b]) for a, b in self.writes],
            self.threads,
        )


def substitute(tree: Any, f: Callable[[Ref], Any]) -> Any:
    """A tree of arguments with its references replaced."""
    if isinstance(tree, Ref):
        return f(tree)
    if isinstance(tree, tuple):
        return tuple(substitute(t, f) for t in tree)
    if isinstance(tree, list):
        return [substitute(t, f) for t in tree]
    if isinstance(tree, dict):
        return {k: substitute(t, f) for k, t in tree.items()}
    return tree


def refs(call: Call) -> set[int]:
    """Values that a call reads."""
    found: set[int] = set()
    substitute((call.args, call.kwargs), lambda r: found.add(r.at))
    return found


def run(
    program: Program,
    tensors: dict[int, torch.Tensor],
    adapt: Callable[[Call, tuple, dict], tuple[tuple, dict]] | None = None,
    finish: Callable[[Call, Any], Any] | None = None,
) -> list[Any]:
    """Run in eager.

    Parameters
    ----------
    program : Program
    tensors : dict
        Arguments by value number; writes change them.
    adapt, finish : callable, optional
        Change the arguments and the result of each call.

    Returns
    -------
    list
        Every value.
    """
    env: list[Any] = []
    for i, value in enumerate(program.values):
        if isinstance(value, Input):
            env.append(tensors[i])
            continue
        args = substitute(value.args, lambda r: env[r.at])
        kwargs = substitute(value.kwargs, lambda r: env[r.at])
        if adapt is not None:
            args, kwargs = adapt(value, args, kwargs)
        result = value.target(*args, **kwargs)
        env.append(result if finish is None else finish(value, result))
    for place, source in program.writes:
        env[place].copy_(env[source].clone())
    return env

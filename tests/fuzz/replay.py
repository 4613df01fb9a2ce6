"""Runs what the shrinker wrote: a function of ATen calls, as a graph, against eager."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from toroid import _torch

from fuzz.compare import check
from fuzz.door import compile_program
from fuzz.generate import generate
from fuzz.program import Call, Input, Program, Ref, run
from fuzz.rounding import arguments
from fuzz.shrink import ramp

__all__ = ["Graph", "aten", "inf", "nan", "ramp", "replay", "torch", "trace"]

aten = torch.ops.aten
nan, inf = float("nan"), float("inf")


class Graph:
    """A random graph's values in eager, each with its layout in memory of its own."""

    def __init__(self, seed: int, index: int) -> None:
        self.program = generate(seed, index)
        self.program.writes = []
        self.env = run(self.program, arguments(self.program))

    def __getitem__(self, number: int) -> torch.Tensor:
        value = self.program.values[number]
        return (value if isinstance(value, Input) else Input.of(self.env[number])).tensor()


def trace(f: Callable[..., Any], inputs: Sequence[torch.Tensor], frozen: Sequence[int]) -> Program:
    """The calls that a function makes of tensors, as a program."""
    gm = torch.fx.symbolic_trace(f)
    program = Program([])
    at: dict[Any, Ref] = {}
    places = iter(enumerate(inputs))
    for node in gm.graph.nodes:
        if node.op == "placeholder":
            k, t = next(places)
            n = t.untyped_storage().nbytes() // t.element_size()
            storage = t.as_strided((n,), (1,), 0).clone()
            value = Input(storage, tuple(t.shape), t.stride(), t.storage_offset(), k in frozen)
            program.values.append(value)
        elif node.op == "call_function":
            args = torch.fx.node.map_arg(tuple(node.args), at.__getitem__)
            kwargs = torch.fx.node.map_arg(dict(node.kwargs), at.__getitem__)
            if node.target is torch.ops.aten.copy_.default:
                program.writes.append((args[0].at, args[1].at))
                at[node] = args[0]
                continue
            program.values.append(
                Call(node.target, tuple(_plain(a) for a in args), _plain(dict(kwargs)))
            )
        else:
            results = node.args[0]
            results = results if isinstance(results, tuple | list) else (results,)
            program.outputs = [at[r].at for r in results]
            continue
        at[node] = Ref(len(program.values) - 1)
    return program


def _plain(a: Any) -> Any:
    """FX keeps lists as a type of its own."""
    if isinstance(a, dict):
        return {k: _plain(v) for k, v in a.items()}
    return [_plain(x) for x in a] if isinstance(a, list) else a


def replay(
    f: Callable[..., Any],
    inputs: Sequence[torch.Tensor],
    frozen: Sequence[int] = (),
    threads: int = 1,
) -> None:
    """Compile `f` and compare with eager.

    Raises
    ------
    AssertionError
        If they differ.
    """
    _torch.attach()
    program = trace(f, inputs, frozen)
    program.threads = threads
    fault = check(program, compile_program(program))
    assert fault is None, fault

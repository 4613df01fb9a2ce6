"""Makes a failing program small; inputs stay values of the graph it was, or become simple ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import torch

from fuzz.program import ITEM, Call, Input, Program, Ref, run
from fuzz.rounding import arguments

Fails = Callable[[Program], bool]


def shrink(program: Program, fails: Fails, budget: int = 400) -> Program:
    """The smallest program found that still fails, after at most `budget` tries."""
    whole = run(dataclasses.replace(program, writes=[]), arguments(program))
    program = numbered(program)
    tries = 0
    smaller = True
    while smaller and tries < budget:
        smaller = False
        for candidate in _smaller(program, whole):
            tries += 1
            if tries > budget:
                break
            if fails(candidate):
                program, smaller = candidate, True
                break
    return program


def numbered(program: Program) -> Program:
    """The same with values that know their numbers; `g` is the graph where it is printed."""
    values = [
        dataclasses.replace(v, number=i, **({"text": f"g[{i}]"} if isinstance(v, Input) else {}))
        for i, v in enumerate(program.values)
    ]
    return dataclasses.replace(program, values=values)


def _smaller(program: Program, whole: list[Any]) -> Iterator[Program]:
    """Programs with less in them: the largest cuts first."""
    if len(program.outputs) > 1:
        for k in range(len(program.outputs)):
            yield _with(program, outputs=[program.outputs[k]])
        for k in range(len(program.outputs)):
            yield _with(program, outputs=program.outputs[:k] + program.outputs[k + 1 :])
    for k in range(len(program.writes)):
        yield _with(program, writes=program.writes[:k] + program.writes[k + 1 :])
    yield from _cuts(program, whole)
    yield from _bypasses(program)
    yield from _plainer_inputs(program)


def _with(program: Program, **changes: object) -> Program:
    return dataclasses.replace(program, **changes).without_dead()


def _cuts(program: Program, whole: list[Any]) -> Iterator[Program]:
    """Calls become inputs with the value that the whole graph has there, later calls first."""
    for i in reversed(range(len(program.values))):
        call = program.values[i]
        if not isinstance(call, Call) or i in program.outputs:
            continue
        t = whole[call.number]
        if isinstance(t, torch.Tensor):
            value = Input.of(t, number=call.number, text=f"g[{call.number}]")
            yield _with(program, values=[*program.values[:i], value, *program.values[i + 1 :]])


def _bypasses(program: Program) -> Iterator[Program]:
    """Calls are left out where an operand has the result's type and shape."""
    env = run(dataclasses.replace(program, writes=[]), arguments(program))
    for i in reversed(range(len(program.values))):
        call, t = program.values[i], env[i]
        if not isinstance(call, Call) or not isinstance(t, torch.Tensor) or call.target is ITEM:
            continue
        for a in call.args:
            if not isinstance(a, Ref) or not isinstance(env[a.at], torch.Tensor):
                continue
            if env[a.at].shape != t.shape or env[a.at].dtype != t.dtype:
                continue
            values = [_redirect(v, i, a.at) if isinstance(v, Call) else v for v in program.values]
            outputs = [a.at if k == i else k for k in program.outputs]
            writes = [(p, a.at if s == i else s) for p, s in program.writes]
            yield _with(program, values=values, outputs=outputs, writes=writes)


def _redirect(call: Call, old: int, new: int) -> Call:
    return call.renamed(lambda r: Ref(new) if r.at == old else r)


def _plainer_inputs(program: Program) -> Iterator[Program]:
    """Inputs become contiguous, lose their offset and freezing, and get simple values."""
    if program.threads > 1:
        yield dataclasses.replace(program, threads=1)
    for i in program.inputs():
        value = program.values[i]
        options = []
        t = value.tensor()
        if value.frozen:
            options.append(dataclasses.replace(value, frozen=False))
        if not t.is_contiguous() or value.offset or value.storage.numel() != t.numel():
            text = value.text if t.is_contiguous() else f"{value.text}.contiguous()"
            dense = Input.of(t.contiguous(), number=value.number, text=text)
            options.append(dataclasses.replace(dense, frozen=value.frozen))
        n = value.storage.numel()
        simple = ramp(n, value.storage.dtype)
        if not torch.equal(value.storage, simple):
            text = f"ramp({n}, {simple.dtype})"
            if t.is_contiguous() and t.numel() == n:
                text += "" if t.dim() == 1 else f".view({list(value.size)})"
            else:
                text += f".as_strided({value.size}, {value.stride}, {value.offset})"
            options.append(dataclasses.replace(value, storage=simple, text=text))
        for option in options:
            yield dataclasses.replace(
                program, values=[*program.values[:i], option, *program.values[i + 1 :]]
            )


def ramp(n: int, dtype: torch.dtype) -> torch.Tensor:
    """-3 to 3, again and again."""
    return (torch.arange(n) % 7 - 3).to(dtype)

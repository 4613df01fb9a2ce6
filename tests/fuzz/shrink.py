"""Makes a failing program small, and writes it as Python that runs by itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import torch

from fuzz.program import ITEM, Call, Input, Program, Ref, run, substitute
from fuzz.rounding import arguments

Fails = Callable[[Program], bool]


def shrink(program: Program, fails: Fails, budget: int = 400) -> Program:
    """The smallest program found that still fails, after at most `budget` tries."""
    tries = 0
    smaller = True
    while smaller and tries < budget:
        smaller = False
        for candidate in _smaller(program):
            tries += 1
            if tries > budget:
                break
            if fails(candidate):
                program, smaller = candidate, True
                break
    return program


def _smaller(program: Program) -> Iterator[Program]:
    """Programs with less in them: the largest cuts first."""
    if len(program.outputs) > 1:
        for k in range(len(program.outputs)):
            yield _with(program, outputs=[program.outputs[k]])
        for k in range(len(program.outputs)):
            yield _with(program, outputs=program.outputs[:k] + program.outputs[k + 1 :])
    for k in range(len(program.writes)):
        yield _with(program, writes=program.writes[:k] + program.writes[k + 1 :])
    yield from _cuts(program)
    yield from _bypasses(program)
    yield from _plainer_inputs(program)


def _with(program: Program, **changes: object) -> Program:
    return dataclasses.replace(program, **changes).without_dead()


def _cuts(program: Program) -> Iterator[Program]:
    """Results of calls become inputs with the same value and layout, later calls first."""
    env = run(_with_no_writes(program), arguments(program))
    for i in reversed(range(len(program.values))):
        t = env[i]
        if not isinstance(program.values[i], Call) or not isinstance(t, torch.Tensor):
            continue
        if i in program.outputs:
            continue
        yield _with(program, values=[*program.values[:i], _as_input(t), *program.values[i + 1 :]])


def _with_no_writes(program: Program) -> Program:
    return dataclasses.replace(program, writes=[])


def _as_input(t: torch.Tensor) -> Input:
    extent = 1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True))
    storage = torch.zeros(max(extent, 1) if t.numel() else 0, dtype=t.dtype)
    if t.numel():
        storage.as_strided(t.shape, t.stride()).copy_(t)
    return Input(storage, tuple(t.shape), tuple(t.stride()), 0)


def _bypasses(program: Program) -> Iterator[Program]:
    """Calls are left out where an operand has the result's type and shape."""
    env = run(_with_no_writes(program), arguments(program))
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
    def f(r: Ref) -> Ref:
        return Ref(new) if r.at == old else r

    return Call(call.target, substitute(call.args, f), substitute(call.kwargs, f))


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
            options.append(_as_input(t.contiguous()))
        n = value.storage.numel()
        pattern = _pattern(n, value.storage.dtype)
        if not torch.equal(value.storage, pattern):
            options.append(dataclasses.replace(value, storage=pattern))
        for option in options:
            yield dataclasses.replace(
                program, values=[*program.values[:i], option, *program.values[i + 1 :]]
            )


def _pattern(n: int, dtype: torch.dtype) -> torch.Tensor:
    return (torch.arange(n) % 7 - 3).to(dtype)


# ------------------------------------------------------------------ as text


def source(program: Program, what: str) -> str:
    """A program that runs from the top of the checkout and fails as long as Toroid does."""
    lines = [
        f'"""{what}"""',
        "import sys",
        "",
        'sys.path.insert(0, "tests")',
        "import torch",
        "from fuzz.replay import nan, inf, replay",
        "",
        "aten = torch.ops.aten",
        "",
        "",
        f"def f({', '.join(_name(i) for i in program.inputs())}):",
    ]
    for i, value in enumerate(program.values):
        if isinstance(value, Call):
            lines.append(f"    {_name(i)} = {_call(value)}")
    for place, value in program.writes:
        lines.append(f"    aten.copy_.default({_name(place)}, {_name(value)})")
    results = "".join(f"{_name(i)}, " for i in program.outputs)
    lines += [f"    return ({results.rstrip()})", "", ""]
    for i in program.inputs():
        lines.append(f"{_name(i)} = {_tensor(program.values[i])}")
    names = "".join(f"{_name(i)}, " for i in program.inputs())
    frozen = [k for k, i in enumerate(program.inputs()) if program.values[i].frozen]
    lines.append(f"replay(f, ({names.rstrip()}), frozen={frozen}, threads={program.threads})")
    return "\n".join(lines) + "\n"


def _name(i: int) -> str:
    return f"v{i}"


def _call(call: Call) -> str:
    if call.target is ITEM:
        return f"{_name(call.args[0].at)}[{call.args[1]}]"
    parts = [_argument(a) for a in call.args]
    parts += [f"{k}={_argument(v)}" for k, v in call.kwargs.items()]
    return f"{call.target}({', '.join(parts)})"


def _argument(a: object) -> str:
    if isinstance(a, Ref):
        return _name(a.at)
    if isinstance(a, list):
        return f"[{', '.join(_argument(x) for x in a)}]"
    if isinstance(a, torch.device):
        return f'torch.device("{a}")'
    return repr(a)


def _tensor(value: Input) -> str:
    storage = value.storage
    n = storage.numel()
    if torch.equal(storage, _pattern(n, storage.dtype)):
        text = f"(torch.arange({n}) % 7 - 3).to({storage.dtype})"
    else:
        text = f"torch.tensor({storage.tolist()}, dtype={storage.dtype})"
    dense = Input(storage, (n,), (1,), 0)
    if (value.size, value.stride, value.offset) != (dense.size, dense.stride, 0):
        text += f".as_strided({value.size}, {value.stride}, {value.offset})"
    return text

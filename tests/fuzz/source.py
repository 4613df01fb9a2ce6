"""Writes a program as Python that runs by itself."""

from __future__ import annotations

import torch

from fuzz.program import ITEM, Call, Input, Program, Ref

#: Tensors of at most so many elements are written out.
SHORT = 6


def source(program: Program, seed: int, index: int, fault: str) -> str:
    """A program that fails as long as Toroid does; its inputs are values of the graph `g`."""
    inputs = [program.values[i] for i in program.inputs()]
    lines = [
        f"# Graph {index} of seed {seed}, made small: {fault}",
        f"# Again: .venv/bin/python tests/fuzz/run.py --seed {seed} --index {index}",
        "# This alone: PYTHONPATH=tests .venv/bin/python FILE",
        "from fuzz.replay import Graph, aten, inf, nan, ramp, replay, torch",
        "",
        f"g = Graph({seed}, {index})",
        "",
        "",
        f"def f({', '.join(_name(value) for value in inputs)}):",
    ]
    for value in program.values:
        if isinstance(value, Call):
            lines.append(f"    {_name(value)} = {_call(program, value)}")
    for place, value in program.writes:
        names = f"{_name(program.values[place])}, {_name(program.values[value])}"
        lines.append(f"    aten.copy_.default({names})")
    results = "".join(f"{_name(program.values[i])}, " for i in program.outputs)
    lines += [f"    return ({results.rstrip()})", "", "", "inputs = ("]
    lines += [f"    {_tensor(value)},  # {_type(value)}" for value in inputs]
    frozen = [k for k, value in enumerate(inputs) if value.frozen]
    options = (f", frozen={frozen}" if frozen else "") + (
        f", threads={program.threads}" if program.threads > 1 else ""
    )
    lines += [")", f"replay(f, inputs{options})"]
    return "\n".join(lines) + "\n"


def _name(value: Input | Call) -> str:
    return f"v{value.number}"


def _type(value: Input) -> str:
    dense = torch.empty(value.size, device="meta").stride() == value.stride
    strides = "" if dense else f" strides {list(value.stride)}"
    return f"{str(value.storage.dtype).removeprefix('torch.')}{list(value.size)}{strides}"


def _call(program: Program, call: Call) -> str:
    def text(a: object) -> str:
        if isinstance(a, Ref):
            return _name(program.values[a.at])
        if isinstance(a, list):
            return f"[{', '.join(text(x) for x in a)}]"
        if isinstance(a, torch.device):
            return f'torch.device("{a}")'
        return repr(a)

    if call.target is ITEM:
        return f"{text(call.args[0])}[{call.args[1]}]"
    parts = [text(a) for a in call.args] + [f"{k}={text(v)}" for k, v in call.kwargs.items()]
    return f"{call.target}({', '.join(parts)})"


def _tensor(value: Input) -> str:
    t = value.tensor()
    if t.numel() > SHORT or not t.is_contiguous() or value.storage.numel() != t.numel():
        return value.text
    return f"torch.tensor({t.tolist()}, dtype={t.dtype})"

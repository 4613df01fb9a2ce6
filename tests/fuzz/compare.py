"""Comparing with eager: exactly where the arithmetic is, by the graph's own conditioning elsewhere.

Almost every float result agrees to a few units in the last place and is accepted at once. Where
not, eager runs again: in float64, and some times with every inexact result moved by an ulp or so
(Monte Carlo arithmetic; Parker 1997). An element may differ as far as those runs spread, so
cancellation, and a comparison or a rounding that hangs on the last bit, do not count as faults.
"""

from __future__ import annotations

from typing import Any

import torch

from fuzz.door import Compiled
from fuzz.program import ITEM, Call, Program, run

RUNS = 5


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Calls whose result is exact in any correct implementation, or rounded in one way only.
EXACT = _names(
    """
    view permute t transpose slice select expand squeeze unsqueeze cat stack constant_pad_nd
    flip roll repeat split split_with_sizes unbind as_strided clone tril triu _to_copy abs
    neg ceil floor round trunc sign relu maximum minimum fmax fmin amax amin argmax argmin
    max min any all eq ne lt le gt ge where masked_fill isnan isinf isfinite logical_not
    logical_and logical_or logical_xor bitwise_not bitwise_and bitwise_or bitwise_xor index
    gather index_select embedding scatter slice_scatter select_scatter index_copy index_fill
    full full_like zeros_like ones_like arange copysign clamp nan_to_num hardtanh
    """
)

#: Calls that sum: their operands are moved as well, or cancellation would look like a fault.
SUMS = _names(
    """
    sum mean var var_mean std std_mean _softmax _log_softmax native_layer_norm mm bmm addmm
    baddbmm dot mv cumsum logsumexp linalg_vector_norm scatter_add index_add index_put
    convolution avg_pool2d linear addmv _fused_rms_norm native_group_norm
    _adaptive_avg_pool2d
    """
)


#: Calls whose error is a share of the largest operand, not of the result.
BY_OPERAND = _names(
    """
    gelu _log_softmax logsumexp mish silu softplus celu elu
    """
)


def op_name(call: Call) -> str:
    """add of aten.add.Tensor."""
    return "getitem" if call.target is ITEM else str(call.target).split(".")[1]


def _moved(t: Any, generator: torch.Generator) -> Any:
    if isinstance(t, list | tuple):
        return type(t)(_moved(x, generator) for x in t)
    if not isinstance(t, torch.Tensor) or not t.is_floating_point() or t.numel() == 0:
        return t
    noise = torch.randint(0, 2, t.shape, generator=generator, dtype=torch.int8) * 2 - 1
    eps = torch.finfo(t.dtype).eps
    if t.dtype is torch.float64:
        return torch.where(noise > 0, t + t * eps, t - t * eps)
    return torch.empty_like(t).copy_(t.double() * (1 + noise * eps))


def _perturbed(program: Program, seed: int) -> list[Any]:
    generator = torch.Generator().manual_seed(seed)

    def adapt(call: Call, args: Any, kwargs: Any) -> Any:
        if op_name(call) in SUMS:
            args = tuple(_moved(a, generator) for a in args)
        return args, kwargs

    operand: list[Any] = [None]

    def keep(call: Call, args: Any, kwargs: Any) -> Any:
        operand[0] = args[0] if args else None
        return adapt(call, args, kwargs)

    def finish(call: Call, result: Any) -> Any:
        if call.target is ITEM or op_name(call) in EXACT:
            return result
        result = _moved(result, generator)
        if op_name(call) == "native_layer_norm" and result[0].numel():
            # Eager scales first and takes the mean off afterwards, in float32.
            x = (operand[0].abs().max() * result[2].max()).float() * torch.ones(result[0].shape)
            return (result[0] + (_moved(x, generator) - x).to(result[0].dtype), *result[1:])
        if op_name(call) in BY_OPERAND and result.numel() and result.is_floating_point():
            x = operand[0].abs().nan_to_num(0, 0, 0)
            x = x if x.shape == result.shape and op_name(call) == "gelu" else x.max()
            result = torch.where(result.isfinite(), result + _moved(x, generator) - x, result)
        return result

    return run(program, arguments(program), keep, finish)


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


def _results(program: Program, env: list[Any]) -> list[torch.Tensor]:
    return [env[i] for i in program.outputs] + [env[i] for i in program.inputs()]


def _close(got: torch.Tensor, want: torch.Tensor) -> torch.Tensor:
    """Equal elements, or floats within 4 ulp."""
    if not want.is_floating_point():
        return got == want
    a, b = got.double(), want.double()
    info = torch.finfo(want.dtype)
    bound = 4 * info.eps * b.abs() + info.tiny * info.eps
    return (a == b) | ((a - b).abs() <= bound) | (a.isnan() & b.isnan())


class _Spread:
    """How far each result may be from eager's, found out when first asked."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.runs: list[list[torch.Tensor]] | None = None
        self.wide: list[torch.Tensor] | None = None

    def allows(self, k: int, got: torch.Tensor, want: torch.Tensor) -> torch.Tensor:
        """Elements of result k that are as good as eager's."""
        if self.runs is None:
            self.runs = []
            for seed in range(RUNS):
                try:
                    self.runs.append(_results(self.program, _perturbed(self.program, seed)))
                except Exception:  # an index, a shape or a divisor hangs on the last bit
                    return torch.ones_like(want, dtype=torch.bool)
            try:
                self.wide = _results(self.program, _wide(self.program))
            except Exception:
                self.wide = None
        others = [r[k] for r in self.runs]
        if not want.is_floating_point():
            unstable = torch.zeros_like(want, dtype=torch.bool)
            for other in others:
                unstable |= other != want
            return unstable
        a, b = got.double(), want.double()
        info = torch.finfo(want.dtype)
        spread = torch.zeros_like(b)
        unstable = torch.zeros_like(want, dtype=torch.bool)
        for other in others:
            o = other.double()
            same_kind = (o.isnan() == b.isnan()) & ((o.isfinite() & b.isfinite()) | (o == b))
            unstable |= ~(same_kind | (o.isnan() & b.isnan()))
            spread = torch.maximum(spread, (o - b).abs().nan_to_num(0, 0, 0))
        near = (a - b).abs() <= 12 * spread + 16 * info.eps * b.abs()
        if self.wide is not None and self.wide[k].is_floating_point():
            x = self.wide[k].double()
            own = (b - x).abs()
            scale = b.abs().nan_to_num(0, 0, 0).max()
            sane = own <= 2**-4 * x.abs() + 12 * spread + 16 * info.eps * scale
            near |= sane & ((a - x).abs() <= 2 * own + 2 * info.eps * x.abs())
        return unstable | near


def check(program: Program, compiled: Compiled) -> str | None:
    """Run compiled and eager; what differs, or None."""
    want_inputs, got_inputs = arguments(program), arguments(program)
    want = run(program, want_inputs)
    ordered = [got_inputs[i] for i in compiled.inputs]
    got = list(compiled.run(list(ordered)))
    expected = [want[i] for i in program.outputs]
    if len(got) != len(expected):
        return f"{len(got)} outputs, expected {len(expected)}"
    spread = _Spread(program)
    for k, (a, b, strides) in enumerate(zip(got, expected, compiled.strides, strict=True)):
        if fault := _type_fault(a, b, strides):
            return f"output {k}: {fault}"
        if fault := _value_fault(k, a, b, spread):
            return f"output {k}: {fault}"
        if fault := _alias_fault(a, b, got_inputs, want_inputs, program):
            return f"output {k}: {fault}"
    for k, i in enumerate(program.inputs()):
        if fault := _value_fault(len(expected) + k, got_inputs[i], want_inputs[i], spread):
            return f"input {k} afterwards: {fault}"
    return None


def _type_fault(a: torch.Tensor, b: torch.Tensor, strides: tuple[int, ...]) -> str | None:
    if a.dtype != b.dtype:
        return f"dtype {a.dtype}, expected {b.dtype}"
    if a.shape != b.shape:
        return f"shape {tuple(a.shape)}, expected {tuple(b.shape)}"
    # FakeTensor's strides are the promise; it differs from eager in dims of size 1 alone.
    if a.numel() and a.stride() != b.stride() and a.stride() != strides:
        return f"strides {a.stride()}, expected {b.stride()} (FakeTensor: {strides})"
    return None


def _value_fault(k: int, a: torch.Tensor, b: torch.Tensor, spread: _Spread) -> str | None:
    if a.numel() == 0:
        return None
    good = _close(a, b)
    if bool(good.all()):
        return None
    good |= spread.allows(k, a, b)
    bad = (~good).nonzero()
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

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

from fuzz.program import ITEM, Call, Program, run

#: Runs with moved roundings: more are made as long as an element is not explained.
RUNS = (5, 20, 60)


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

#: Calls that sum: their operands are moved as well, or cancellation would look like a fault. (The
#: error of layer_norm is known: moving its operands would make rows of equal elements unequal.)
SUMS = _names(
    """
    sum mean var var_mean std std_mean _softmax _log_softmax mm bmm addmm
    baddbmm dot mv cumsum logsumexp linalg_vector_norm scatter_add index_add index_put
    convolution avg_pool2d linear addmv _fused_rms_norm native_group_norm
    _adaptive_avg_pool2d
    """
)


#: Calls that choose an order of their own for a product, whose range hangs on it.
PRODUCTS = _names("prod")


def op_name(call: Call) -> str:
    """add of aten.add.Tensor."""
    return "getitem" if call.target is ITEM else str(call.target).split(".")[1]


# ------------------------------------------------------------------ what eager rounds inside a call


def _layer_norm_error(args: Any, result: Any) -> torch.Tensor:
    """Eager scales first and takes the mean off afterwards: three roundings."""
    x, shape, weight, bias, _ = args
    y, _, rstd = result
    dims = list(range(x.dim() - len(shape), x.dim()))
    error = 3 * _size(x).amax(dims, keepdim=True) * rstd
    error = error * (1 if weight is None else weight.abs())
    return (error + (0 if bias is None else bias.abs())).expand(y.shape)


def _size(x: Any) -> Any:
    return abs(x) if not isinstance(x, torch.Tensor) else x.double().abs()


def _internal_error(call: Call, args: Any, kwargs: Any, result: Any) -> torch.Tensor | None:
    """The size of what eager rounds on the way to a result, where that may be larger than it."""
    name = op_name(call)
    x = args[0] if args else None
    match name:
        case "native_layer_norm":
            return _layer_norm_error(args, result)
        case "add" | "sub" if "alpha" in kwargs:
            # One by one, eager rounds products of halves; in vectors, it does not.
            size = _size(x) + _size(args[1]) * _size(kwargs["alpha"])
            wide = torch.promote_types(result.dtype, torch.float32)
            halves = result.is_floating_point() and wide != result.dtype
            return size * (torch.finfo(result.dtype).eps / 2**-23) if halves else size
        case "addcmul":
            return _size(x) + _size(args[1]) * _size(args[2]) * _size(kwargs.get("value", 1))
        case "addcdiv":
            return _size(x) + _size(args[1]) / _size(args[2]) * _size(kwargs.get("value", 1))
        case "lerp":
            return (_size(x) + _size(args[1])) * (1 + _size(args[2]))
        case "gelu" | "silu" | "mish":
            return _size(x)
        case "softplus" | "celu" | "elu":
            return 1 + _size(x)
        case "erf":  # 1 less a polynomial
            return torch.ones_like(result)
        case "_log_softmax" | "logsumexp":
            return x.abs().nan_to_num(0, 0, 0).max().expand(result.shape)
        case "var" | "std" if x.dtype is torch.float64:  # Welford's: one element after the other
            return result * (x.numel() / max(result.numel(), 1)) ** 0.5
    return None


def _noise(
    t: torch.Tensor, generator: torch.Generator, alike: bool, zero: bool = False
) -> torch.Tensor:
    """1 or -1 for each element, or 0 where that is wanted too; one for equal ones if `alike`."""

    def draw(shape: Any) -> torch.Tensor:
        if zero:
            return torch.randint(-1, 2, shape, generator=generator).double()
        return torch.randint(0, 2, shape, generator=generator).double() * 2 - 1

    if not alike:
        return draw(t.shape)
    kinds, which = t.unique(return_inverse=True)
    return draw(kinds.shape)[which]


def _moved(t: Any, generator: torch.Generator, alike: bool) -> Any:
    """Every element an ulp up or down; where `alike`, equal elements stay equal."""
    if isinstance(t, list | tuple):
        return type(t)(_moved(x, generator, alike) for x in t)
    if not isinstance(t, torch.Tensor) or not t.is_floating_point() or t.numel() == 0:
        return t
    noise = _noise(t, generator, alike)
    eps = torch.finfo(t.dtype).eps
    if t.dtype is torch.float64:
        return torch.where(noise > 0, t + t * eps, t - t * eps)
    return torch.empty_like(t).copy_(t.double() * (1 + noise * eps))


def _moved_by(
    t: torch.Tensor, size: torch.Tensor, generator: torch.Generator, alike: bool
) -> torch.Tensor:
    """A result with an error of one ulp of `size`, in the type that eager computes in.

    What is no larger than its error may be zero, and of either sign; what is left of something
    that does not fit the type may be infinite.
    """
    eps = torch.finfo(torch.promote_types(t.dtype, torch.float32)).eps
    size = size.double().expand(t.shape).nan_to_num(0, 0, 0)
    error = size * eps
    noise = _noise(t, generator, alike, zero=True)
    moved = torch.where(t.abs() > error, t.double(), 0.0) + noise * error
    moved = torch.where(size > torch.finfo(t.dtype).max, noise * torch.inf, moved)
    moved = _signs_of_zero(torch.empty_like(t).copy_(moved), generator)
    return torch.where(t.isfinite(), moved, t)


def _signs_of_zero(t: Any, generator: torch.Generator) -> Any:
    """Whether a sum of zeros is 0 or -0 hangs on its order and on where it starts."""
    if not isinstance(t, torch.Tensor) or not t.is_floating_point() or t.numel() == 0:
        return t
    return torch.where(t == 0, torch.zeros_like(t) * _noise(t, generator, False).to(t.dtype), t)


def _reordered(call: Call, args: Any, generator: torch.Generator) -> Any:
    """A product's factors in another order."""
    x, axes = args[0], args[1:2] or range(args[0].dim())
    if len(args) < 2:
        x = x.flatten()[torch.randperm(x.numel(), generator=generator)].view(x.shape)
    for axis in axes if len(args) > 1 else ():
        if x.dim():
            x = x.index_select(axis, torch.randperm(x.shape[axis], generator=generator))
    return (x, *args[1:])


def _perturbed(program: Program, seed: int) -> list[Any]:
    generator = torch.Generator().manual_seed(seed)
    operands: list[Any] = [None]
    # In turns: all roundings for themselves; the same call of the same numbers alike; only what
    # is rounded inside a call, so that what had become equal before it stays equal.
    alike, inside = seed % 3 == 1, seed % 3 == 2

    def adapt(call: Call, args: Any, kwargs: Any) -> Any:
        name = op_name(call)
        operands[0] = (args, kwargs)
        if name in SUMS and not inside:
            args = tuple(_moved(a, generator, alike) for a in args)
        if name in PRODUCTS:
            args = _reordered(call, args, generator)
        return args, kwargs

    def finish(call: Call, result: Any) -> Any:
        name = op_name(call)
        if call.target is ITEM or name in EXACT:
            return result
        size = _internal_error(call, *operands[0], result)
        if not inside:
            result = _moved(result, generator, alike)
        if name in SUMS or name in PRODUCTS:
            result = _signs_of_zero(result, generator)
        if size is None:
            return result
        if isinstance(result, tuple | list):
            return (_moved_by(result[0], size, generator, alike or inside), *result[1:])
        return (
            _moved_by(result, size, generator, alike or inside)
            if result.is_floating_point()
            else result
        )

    return run(program, arguments(program), adapt, finish)


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

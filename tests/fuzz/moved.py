"""Eager's calls with their roundings moved by an ulp or so."""

from __future__ import annotations

from typing import Any

import torch

from fuzz.program import ITEM, Call


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


#: Those whose result is a sum of products of operands, so that the terms' size is the same call's
#: of magnitudes.
LINEAR = SUMS & _names(
    """
    sum mean var_mean mm bmm addmm baddbmm dot mv addmv linear convolution cumsum scatter_add
    index_add avg_pool2d _adaptive_avg_pool2d
    """
)

#: Calls that choose an order of their own for a product, whose range hangs on it.
PRODUCTS = _names("prod")


def op_name(call: Call) -> str:
    """add of aten.add.Tensor."""
    return "getitem" if call.target is ITEM else str(call.target).split(".")[1]


# ------------------------------------------------------------------ what eager rounds inside a call


def _size(x: Any) -> Any:
    return abs(x) if not isinstance(x, torch.Tensor) else x.double().abs()


def _eps(t: torch.Tensor) -> float:
    """An ulp at 1 of the type that eager computes in."""
    return torch.finfo(torch.promote_types(t.dtype, torch.float32)).eps


def _size_within(call: Call, args: Any, kwargs: Any, result: Any) -> torch.Tensor | None:
    """The size of what eager rounds on the way to a result, where that may be larger than it."""
    x = args[0] if args else None
    match op_name(call):
        case "add" | "sub" if "alpha" in kwargs:
            return _size(x) + _size(args[1]) * _size(kwargs["alpha"])
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
            return x.abs().nan_to_num(0, 0, 0).max()
        case "var" | "std" if x.dtype is torch.float64:  # Welford's: one element after the other
            return result * (x.numel() / max(result.numel(), 1)) ** 0.5
    return None


def _error_within(call: Call, size: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    """What rounding something of that size does to a result."""
    own = torch.finfo(result.dtype).eps
    match op_name(call):
        case "add" | "sub":  # one by one, eager rounds products of halves; in vectors, it does not
            return size * own
        case "_log_softmax" | "logsumexp":  # the sum of exponentials is rounded to the type
            return size * _eps(result) + own
    return size * _eps(result)


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
    t: torch.Tensor,
    size: torch.Tensor,
    error: torch.Tensor,
    generator: torch.Generator,
    alike: bool,
) -> torch.Tensor:
    """A result with the error of rounding something of that size.

    What is no larger than its error may be zero, and of either sign; what is left of something
    that does not fit the type may be infinite. The error is another in each run, up to twice as
    small: what turns many times within it (a tangent of 1e14) would else be seen at three places.
    """
    noise = _noise(t, generator, alike, zero=True)
    noise *= 1 - torch.rand((), generator=generator).item() / 2
    moved = torch.where(t.abs() > error, t.double(), 0.0) + noise * error
    moved = torch.where(size > torch.finfo(t.dtype).max, noise * torch.inf, moved)
    moved = _signs_of_zero(torch.empty_like(t).copy_(moved), generator)
    return torch.where(t.isfinite(), moved, t)


def _signs_of_zero(t: Any, generator: torch.Generator) -> Any:
    """Whether a sum of zeros is 0 or -0 hangs on its order and on where it starts."""
    if not isinstance(t, torch.Tensor) or not t.is_floating_point() or t.numel() == 0:
        return t
    return torch.where(t == 0, torch.zeros_like(t) * _noise(t, generator, False).to(t.dtype), t)


def _moved_layer_norm(args: Any, result: Any, generator: torch.Generator, together: bool) -> Any:
    """Layer norm with its rows moved before weight and bias.

    Eager scales first and takes the mean off afterwards: three roundings of the size of the row's
    largest element. That of the mean is the same for a whole row, so where `together`, all of a row
    moves one way, or no row has any.
    """
    x, shape, weight, bias, epsilon = args
    x = x.to(torch.promote_types(x.dtype, torch.float32))
    dims = list(range(x.dim() - len(shape), x.dim()))
    var, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
    rstd = (var + epsilon).rsqrt()
    noise = _noise(mean if together else x, generator, False, zero=True)
    noise = noise * torch.randint(2, (), generator=generator) if together else noise
    error = (3 * _eps(x) * x.abs().amax(dims, keepdim=True) * rstd).double()
    y = ((x - mean) * rstd).double()
    y = torch.where(y.abs() > error, y, 0.0) + noise * error
    y = y if weight is None else y * weight.double()
    y = y if bias is None else y + bias.double() * (1 + noise * _eps(x))
    return (torch.empty_like(result[0]).copy_(y), *result[1:])


def _cancelled(call: Call, args: Any, kwargs: Any, result: Any, generator: torch.Generator) -> Any:
    """A sum; where it is less than a rounding of its terms, it may be zero."""
    terms = tuple(
        abs(a) if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in args
    )
    size = call.target(*terms, **kwargs)
    if isinstance(result, tuple | list):  # a variance and a mean
        return (result[0], _zeroed(result[1], size[1], generator))
    return _zeroed(result, size, generator) if result.is_floating_point() else result


def _zeroed(t: torch.Tensor, size: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    error = size.double().nan_to_num(0, 0, 0) * _eps(t)
    return torch.where((t.abs() <= error) & (_noise(t, generator, False) > 0), 0.0, t).to(t.dtype)


def _without_overflow(call: Call, args: Any, result: Any) -> Any:
    """A remainder; eager's vectors have NaN where a quotient leaves float32, its scalars do not."""
    if not result.is_floating_point() or result.dtype is torch.float64:
        return result
    wide = (a.double() if isinstance(a, torch.Tensor) else a for a in args)
    return torch.where(result.isnan(), call.target(*wide).to(result.dtype), result)


def _reordered(call: Call, args: Any, generator: torch.Generator) -> Any:
    """A product's factors in another order."""
    x, axes = args[0], args[1:2] or range(args[0].dim())
    if len(args) < 2:
        x = x.flatten()[torch.randperm(x.numel(), generator=generator)].view(x.shape)
    for axis in axes if len(args) > 1 else ():
        if x.dim():
            x = x.index_select(axis, torch.randperm(x.shape[axis], generator=generator))
    return (x, *args[1:])


class Moved:
    """One run with moved roundings: what to do before and after each call.

    In turns: all roundings for themselves; the same call of the same numbers alike; only what is
    rounded inside a call, so that what had become equal before it stays equal.
    """

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.alike, self.inside = seed % 3 == 1, seed % 3 == 2
        self.operands: Any = None

    def adapt(self, call: Call, args: Any, kwargs: Any) -> Any:
        """The arguments of a call, moved where it sums."""
        name = op_name(call)
        self.operands = (args, kwargs)
        if name in SUMS and not self.inside:
            args = tuple(_moved(a, self.generator, self.alike) for a in args)
        if name in PRODUCTS:
            args = _reordered(call, args, self.generator)
        return args, kwargs

    def finish(self, call: Call, result: Any) -> Any:
        """The result of a call, moved."""
        name = op_name(call)
        if call.target is ITEM or name in EXACT:
            return result
        size = _size_within(call, *self.operands, result)
        if name == "native_layer_norm":
            result = _moved_layer_norm(self.operands[0], result, self.generator, self.inside)
        if not self.inside:
            result = _moved(result, self.generator, self.alike)
        if name in ("fmod", "remainder"):
            result = _without_overflow(call, self.operands[0], result)
        if name in LINEAR:
            result = _cancelled(call, *self.operands, result, self.generator)
        if name in SUMS or name in PRODUCTS:
            result = _signs_of_zero(result, self.generator)
        if size is None or not result.is_floating_point():
            return result
        size = size.double().expand(result.shape).nan_to_num(0, 0, 0)
        error = _error_within(call, size, result)
        return _moved_by(result, size, error, self.generator, self.alike or self.inside)

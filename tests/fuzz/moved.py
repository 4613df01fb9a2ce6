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
        size = _internal_error(call, *self.operands, result)
        if not self.inside:
            result = _moved(result, self.generator, self.alike)
        if name in SUMS or name in PRODUCTS:
            result = _signs_of_zero(result, self.generator)
        if size is None:
            return result
        alike = self.alike or self.inside
        if isinstance(result, tuple | list):
            return (_moved_by(result[0], size, self.generator, alike), *result[1:])
        if not result.is_floating_point():
            return result
        return _moved_by(result, size, self.generator, alike)

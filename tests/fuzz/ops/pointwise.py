"""Functions of each element, and casts."""

from __future__ import annotations

from typing import Any

import torch

from fuzz.generate import DTYPES, INTS, Generator
from fuzz.ops.table import Table, is_float, is_integer, is_integral

aten = torch.ops.aten

ROWS = Table()
row = ROWS.row


def unary(weight: float, *names: str, want: Any = None) -> None:
    for name in names:
        target = getattr(aten, name).default
        row(weight, lambda g, target=target: g.call(target, g.pick(want)))


unary(1.0, "abs", "neg", "relu", "sign", "square")
unary(0.5, "sigmoid", "tanh", "exp", "sqrt", "rsqrt", "reciprocal", "log", "erf", "sin", "cos")
unary(0.3, "exp2", "expm1", "log2", "log10", "log1p", "tan", "asin", "acos", "atan", "sinh", "cosh")
unary(0.3, "asinh", "acosh", "atanh", "erfc", "isnan", "isinf", "isfinite", "logical_not")
unary(0.5, "ceil", "floor", "round", "trunc", "frac")
unary(0.5, "silu", "gelu", "hardswish", "hardsigmoid", "mish", "celu", "softplus", want=is_float)
unary(0.5, "leaky_relu", "elu", "hardtanh", "nan_to_num", want=is_float)
unary(1.0, "bitwise_not", want=is_integral)


def binary(weight: float, *names: str, want: Any = None, **kwargs: Any) -> None:
    for name in names:
        packet, _, overload = name.partition(".")
        target = getattr(getattr(aten, packet), overload or "Tensor")

        takes_numbers = not kwargs and "Tensor" in (overload or "Tensor")

        def make(g: Generator, target: Any = target, takes_numbers: bool = takes_numbers) -> Any:
            a = g.pick(want)
            if g.chance(0.25) and takes_numbers:
                return g.call(target, a, g.scalar())
            b = g.like(a) if want is None else g.like(a, g.tensor(a).dtype)
            return g.call(target, *((a, b) if g.chance(0.5) else (b, a)), **kwargs)

        row(weight, make)


binary(3.0, "add", "sub", "mul")
binary(2.0, "div")
binary(1.0, "maximum.default", "minimum.default", "pow.Tensor_Tensor", "remainder", "fmod")
binary(
    0.5, "fmax.default", "fmin.default", "atan2.default", "copysign.Tensor", "floor_divide.default"
)
binary(0.7, "bitwise_and", "bitwise_or", "bitwise_xor", want=is_integral)
binary(0.5, "bitwise_left_shift", "bitwise_right_shift", want=is_integer)
binary(0.5, "logical_and.default", "logical_or.default", "logical_xor.default")
binary(0.6, "eq", "ne", "lt", "le", "gt", "ge")
binary(1.0, "div.Tensor_mode", rounding_mode="trunc")
binary(1.0, "div.Tensor_mode", rounding_mode="floor")


def with_alpha(g: Generator) -> Any:
    a = g.pick()
    target = g.rng.choice((aten.add.Tensor, aten.sub.Tensor))
    return g.call(target, a, g.like(a), alpha=g.scalar())


SCALAR_OVERLOADS = (
    "eq.Scalar",
    "ne.Scalar",
    "lt.Scalar",
    "le.Scalar",
    "gt.Scalar",
    "ge.Scalar",
    "pow.Tensor_Scalar",
    "pow.Scalar",
    "rsub.Scalar",
    "remainder.Scalar",
    "fmod.Scalar",
    "remainder.Scalar_Tensor",
    "bitwise_and.Scalar",
    "bitwise_or.Scalar",
    "bitwise_xor.Scalar",
    "bitwise_left_shift.Tensor_Scalar",
    "bitwise_right_shift.Tensor_Scalar",
)


def scalar_overloads(g: Generator) -> Any:
    name = g.rng.choice(SCALAR_OVERLOADS)
    packet, overload = name.split(".")
    target = getattr(getattr(aten, packet), overload)
    if name in ("pow.Scalar", "remainder.Scalar_Tensor"):
        return g.call(target, g.scalar(), g.pick())
    if packet.startswith("bitwise"):
        return g.call(target, g.pick(is_integral), g.scalar(integer=True))
    # FakeTensor has another dtype than eager for bool to the power of bool.
    number = g.scalar()
    return g.call(target, g.pick(), int(number) if number in (True, False) else number)


def clamp(g: Generator) -> Any:
    low, high = sorted((g.scalar(), g.scalar()))
    return g.call(aten.clamp.default, g.pick(), *g.rng.choice(((low, high), (low,), (None, high))))


def clamp_tensor(g: Generator) -> Any:
    a = g.pick()
    return g.call(aten.clamp.Tensor, a, g.like(a), g.like(a))


def where(g: Generator) -> Any:
    a = g.pick()
    condition = g.like(a, torch.bool)
    return g.call(aten.where.self, condition, a, g.like(a))


def masked_fill(g: Generator) -> Any:
    a = g.pick()
    return g.call(aten.masked_fill.Scalar, a, g.like(a, torch.bool), g.scalar())


def ternary(g: Generator) -> Any:
    a = g.pick(is_float)
    dtype = g.tensor(a).dtype
    b, c = g.like(a, dtype), g.like(a, dtype)
    kind = g.rng.randrange(4)
    if kind < 2:
        return g.call((aten.addcmul, aten.addcdiv)[kind].default, a, b, c, value=g.scalar())
    if kind == 2:
        return g.call(aten.lerp.Tensor, a, b, c)
    return g.call(aten.lerp.Scalar, a, b, g.rng.choice((0.25, 0.5, 0.75)))


row(2.0, with_alpha)
row(4.0, scalar_overloads)
row(2.0, clamp)
row(0.7, clamp_tensor)
row(3.0, where)
row(1.5, masked_fill)
row(2.0, ternary)


def cast(g: Generator) -> Any:
    a = g.pick()
    t, to = g.tensor(a), g.rng.choice(DTYPES)
    if t.is_floating_point() and to in INTS and t.numel():
        # What C leaves undefined, eager does as the machine happens to.
        info = torch.iinfo(to)
        wide = t.double()
        edge = 0.0 if to is torch.uint8 else float(info.min)
        if not bool(((wide > edge - 1 + 1e-3) & (wide < float(info.max) * 0.99)).all()):
            a = g.call(aten.nan_to_num.default, a, 0.0, 3.0, -3.0)
            a = g.call(aten.clamp.default, a, max(edge, -100), 100)
    return g.call(aten._to_copy.default, a, dtype=to)


row(5.0, cast)

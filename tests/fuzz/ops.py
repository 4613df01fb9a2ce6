"""The ops that random programs are made of: one row each, with a weight and a function."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import torch

from fuzz.generate import DTYPES, INTS, Generator, NoGood
from fuzz.program import ITEM, Call, Ref

aten = torch.ops.aten


@dataclasses.dataclass(frozen=True)
class Row:
    """An op: how often, and what adds it to a program."""

    weight: float
    make: Callable[[Generator], Any]


ROWS: list[Row] = []


def row(weight: float, make: Callable[[Generator], Any]) -> None:
    """Add an op."""
    ROWS.append(Row(weight, make))


def is_float(t: torch.Tensor) -> bool:
    return t.is_floating_point()


def is_integer(t: torch.Tensor) -> bool:
    return not t.is_floating_point() and t.dtype is not torch.bool


def is_integral(t: torch.Tensor) -> bool:
    return not t.is_floating_point()


def has_rank(low: int, high: int = 6) -> Callable[[torch.Tensor], bool]:
    return lambda t: low <= t.dim() <= high


# ------------------------------------------------------------------ pointwise


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

# ------------------------------------------------------------------ reductions


def reduce_dims(name: str, want: Any = None, **extra: Any) -> Callable[[Generator], Any]:
    packet, overload = name.split(".")
    target = getattr(getattr(aten, packet), overload)

    def make(g: Generator) -> Any:
        a = g.pick(want)
        return g.call(target, a, g.dims(a), g.chance(0.5), **extra)

    return make


def reduce_dim(name: str, want: Any = None, items: bool = False) -> Callable[[Generator], Any]:
    packet, overload = name.split(".")
    target = getattr(getattr(aten, packet), overload)

    def make(g: Generator) -> Any:
        a = g.pick(want)
        found = g.call(target, a, g.dim(a), g.chance(0.5))
        if items:
            g.items(found)
        return found

    return make


def reduce_all(*names: str, want: Any = None) -> Callable[[Generator], Any]:
    def make(g: Generator) -> Any:
        return g.call(getattr(aten, g.rng.choice(names)).default, g.pick(want))

    return make


def variance(g: Generator) -> Any:
    a = g.pick(is_float)
    dims, keep = g.dims(a), g.chance(0.5)
    # Eager's running mean of a row with infinities is NaN, where a sum's would be infinite.
    if g.chance(0.3) and bool(g.tensor(a).isfinite().all()):
        found = g.call(
            aten.var_mean.correction, a, dims, correction=g.rng.choice((0, 1)), keepdim=keep
        )
        g.items(found)
        return found
    packet = g.rng.choice((aten.var, aten.std))
    return g.call(packet.correction, a, dims, correction=g.rng.choice((0, 1)), keepdim=keep)


row(2.5, reduce_dims("sum.dim_IntList"))
row(1.5, reduce_dims("mean.dim", is_float))
row(1.5, reduce_dims("amax.default"))
row(1.0, reduce_dims("amin.default"))
row(0.7, reduce_dims("logsumexp.default", is_float))
row(0.5, reduce_dims("any.dims"))
row(0.5, reduce_dims("all.dims"))
row(0.8, reduce_dim("prod.dim_int"))
row(0.8, reduce_dim("argmax.default", lambda t: t.dtype is not torch.bool))
row(0.8, reduce_dim("argmin.default", lambda t: t.dtype is not torch.bool))
row(0.8, reduce_dim("max.dim", items=True))
row(0.8, reduce_dim("min.dim", items=True))
row(1.0, reduce_all("sum", "max", "min", "any", "all", "prod", "argmax", "argmin"))
row(0.5, reduce_all("mean", want=is_float))
row(1.0, variance)
row(1.0, lambda g: g.call(aten.cumsum.default, (a := g.pick(has_rank(1))), g.dim(a)))


def norm(g: Generator) -> Any:
    a = g.pick(is_float)
    return g.call(
        aten.linalg_vector_norm.default, a, g.rng.choice((1, 2, 2, 3, float("inf"))), g.dims(a)
    )


def softmax(g: Generator) -> Any:
    a = g.pick(lambda t: t.is_floating_point() and t.dim() > 0)
    return g.call(g.rng.choice((aten._softmax, aten._log_softmax)).default, a, g.dim(a), False)


def layer_norm(g: Generator) -> Any:
    a = g.pick(lambda t: t.is_floating_point() and t.dim() > 0 and t.numel() > 0)
    t = g.tensor(a)
    shape = t.shape[g.rng.randrange(t.dim()) :]
    weight = g.same(shape, t.dtype) if g.chance(0.7) else None
    bias = g.same(shape, t.dtype) if g.chance(0.5) else None
    found = g.call(aten.native_layer_norm.default, a, list(shape), weight, bias, 1e-5)
    g.add(Call(ITEM, (found, 0)), g.env[found.at][0])
    return found


row(0.6, norm)
row(2.5, softmax)
row(2.0, layer_norm)

# ------------------------------------------------------------------ views and moves


def view(g: Generator) -> Any:
    a = g.pick()
    shape = list(g.tensor(a).shape)
    for _ in range(g.rng.randint(1, 2)):
        kind = g.rng.randrange(3)
        if kind == 0 and len(shape) > 1:  # join two dims
            d = g.rng.randrange(len(shape) - 1)
            shape[d : d + 2] = [shape[d] * shape[d + 1]]
        elif kind == 1 and shape:  # split one
            d = g.rng.randrange(len(shape))
            factor = next((f for f in (2, 3, 4, 5, 7) if shape[d] and shape[d] % f == 0), 1)
            shape[d : d + 1] = [shape[d] // factor, factor]
        else:
            shape.insert(g.rng.randrange(len(shape) + 1), 1)
    target = g.rng.choice((aten.view, aten.view, aten._unsafe_view, aten.reshape)).default
    return g.call(target, a, shape)


def permute(g: Generator) -> Any:
    a = g.pick(has_rank(1))
    axes = list(range(g.tensor(a).dim()))
    g.rng.shuffle(axes)
    return g.call(aten.permute.default, a, axes)


def transpose(g: Generator) -> Any:
    a = g.pick(has_rank(1))
    return g.call(aten.transpose.int, a, g.dim(a), g.dim(a))


def slice_bounds(g: Generator, size: int) -> tuple[int, int, int]:
    start, end = g.rng.randint(0, size), g.rng.randint(0, size)
    start, end = min(start, end), max(start, end)
    if g.chance(0.3):
        end = 2**63 - 1
    if g.chance(0.2):
        start -= size
    return start, end, g.rng.choice((1, 1, 2, 3))


def slice_(g: Generator) -> Any:
    a = g.pick(has_rank(1))
    d = g.dim(a)
    return g.call(aten.slice.Tensor, a, d, *slice_bounds(g, g.tensor(a).shape[d]))


def select(g: Generator) -> Any:
    a = g.pick(has_rank(1))
    d = g.dim(a)
    size = g.tensor(a).shape[d]
    if size == 0:
        raise NoGood
    return g.call(aten.select.int, a, d, g.rng.randrange(-size, size))


def expand(g: Generator) -> Any:
    a = g.pick()
    shape = [g.size() if s == 1 and g.chance(0.7) else s for s in g.tensor(a).shape]
    return g.call(aten.expand.default, a, [g.rng.choice((1, 2, 3))] * g.rng.randrange(2) + shape)


def squeeze(g: Generator) -> Any:
    a = g.pick(has_rank(1))
    if g.chance(0.5):
        return g.call(aten.squeeze.dim, a, g.dim(a))
    return g.call(aten.squeeze.dims, a, g.dims(a))


def unsqueeze(g: Generator) -> Any:
    a = g.pick()
    return g.call(aten.unsqueeze.default, a, g.rng.randint(0, g.tensor(a).dim()))


def cat(g: Generator) -> Any:
    a = g.pick(has_rank(1))
    t, d = g.tensor(a), g.dim(a)
    parts = [a]
    for _ in range(g.rng.randint(0, 3)):
        shape = list(t.shape)
        if g.chance(0.4):
            shape[d] = g.size()
        parts.append(g.same(shape, t.dtype if g.chance(0.8) else g.dtype()))
    g.rng.shuffle(parts)
    return g.call(aten.cat.default, parts, d)


def stack(g: Generator) -> Any:
    a = g.pick()
    t = g.tensor(a)
    parts = [a] + [g.same(t.shape, t.dtype) for _ in range(g.rng.randint(0, 2))]
    return g.call(aten.stack.default, parts, g.rng.randint(0, t.dim()))


def pad(g: Generator) -> Any:
    a = g.pick(has_rank(1))
    t = g.tensor(a)
    width = [g.rng.choice((0, 0, 1, 2, 5, -1)) for _ in range(2 * g.rng.randint(1, t.dim()))]
    return g.call(aten.constant_pad_nd.default, a, width, g.scalar())


def roll(g: Generator) -> Any:
    a = g.pick(has_rank(1))
    dims = g.dims(a)
    return g.call(aten.roll.default, a, [g.rng.randint(-9, 9) for _ in dims], dims)


def split(g: Generator) -> Any:
    a = g.pick(has_rank(1))
    d = g.dim(a)
    size = g.tensor(a).shape[d]
    kind = g.rng.randrange(3)
    if kind == 0:
        found = g.call(aten.split.Tensor, a, g.rng.randint(1, max(size, 1)), d)
    elif kind == 1 and size:
        cut = g.rng.randint(0, size)
        found = g.call(aten.split_with_sizes.default, a, [cut, size - cut], d)
    else:
        if size == 0 or size > 9:
            raise NoGood
        found = g.call(aten.unbind.int, a, d)
    if len(g.env[found.at]) == 0:
        raise NoGood
    g.items(found)
    return found


def clone(g: Generator) -> Any:
    a = g.pick()
    formats = [torch.contiguous_format, torch.preserve_format]
    if g.tensor(a).dim() == 4:
        formats.append(torch.channels_last)
    return g.call(aten.clone.default, a, memory_format=g.rng.choice(formats))


def triangle(g: Generator) -> Any:
    a = g.pick(has_rank(2))
    return g.call(g.rng.choice((aten.tril, aten.triu)).default, a, g.rng.randint(-3, 3))


def repeat(g: Generator) -> Any:
    a = g.pick(has_rank(0, 4))
    return g.call(aten.repeat.default, a, [g.rng.choice((1, 1, 2, 3)) for _ in g.tensor(a).shape])


for weight, make in (
    (3.0, view),
    (2.5, permute),
    (1.5, transpose),
    (3.0, slice_),
    (1.5, select),
    (2.5, expand),
    (1.0, squeeze),
    (1.5, unsqueeze),
    (2.0, cat),
    (1.0, stack),
    (1.5, pad),
    (1.0, roll),
    (1.5, split),
    (1.0, clone),
    (0.7, triangle),
    (0.7, repeat),
    (1.0, lambda g: g.call(aten.flip.default, (a := g.pick(has_rank(1))), g.dims(a))),
):
    row(weight, make)


# ------------------------------------------------------------------ creation


def create(g: Generator) -> Any:
    kind = g.rng.randrange(4)
    cpu = torch.device("cpu")
    if kind == 0:
        shape = list(g.base if g.chance(0.6) else g.shape())
        return g.call(aten.full.default, shape, g.scalar(), dtype=g.dtype(), device=cpu)
    if kind == 1:
        dtype = g.rng.choice((torch.int64, torch.int32, torch.float32))
        start, step = g.rng.randint(-5, 5), g.rng.choice((1, 2, -1))
        end = start + step * g.rng.choice((1, 7, 8, 9, 17, 33))
        return g.call(aten.arange.start_step, start, end, step, dtype=dtype, device=cpu)
    target = g.rng.choice((aten.zeros_like, aten.ones_like)).default
    return (
        g.call(target, g.pick())
        if kind == 2
        else g.call(aten.full_like.default, g.pick(is_float), g.scalar())
    )


row(1.5, create)

# ------------------------------------------------------------------ contractions


def factor(g: Generator, shape: Any, dtype: torch.dtype) -> Ref:
    """A matrix, sometimes the transpose of an input."""
    shape = list(shape)
    if g.chance(0.3):
        inner = g.same([*shape[:-2], shape[-1], shape[-2]], dtype)
        return g.call(aten.transpose.int, inner, -2, -1)
    return g.same(shape, dtype)


def matmul(g: Generator) -> Any:
    rank = 3 if g.chance(0.35) else 2

    def want(t: torch.Tensor) -> bool:
        return t.dim() == rank and (t.is_floating_point() or t.dtype is torch.int64)

    a = g.pick(want) if g.chance(0.8) else g.new_input(g.shape(rank), torch.float32)
    t = g.tensor(a)
    n = g.size()
    b = factor(g, [*t.shape[:-2], t.shape[-1], n], t.dtype)
    if rank == 3:
        return g.call(aten.bmm.default, a, b)
    kind = g.rng.randrange(3)
    if kind == 0:
        return g.call(aten.mm.default, a, b)
    if kind == 1:
        shape = g.rng.choice(([n], [n], [t.shape[0], n], [1, n], [t.shape[0], 1]))
        scale = {} if g.chance(0.7) else {"beta": 0.5, "alpha": 2}
        return g.call(aten.addmm.default, g.same(shape, t.dtype), a, b, **scale)
    weight = g.same([n, t.shape[-1]], t.dtype)
    return g.call(aten.mm.default, a, g.call(aten.t.default, weight))


def convolution(g: Generator) -> Any:
    if g.wild:  # whether the padding's zeros meet an infinite weight is nobody's promise
        raise NoGood
    groups = g.rng.choice((1, 1, 2))
    c, o = g.rng.choice((1, 2, 3, 4, 8)) * groups, g.rng.choice((1, 2, 5, 8, 9)) * groups
    spatial = g.rng.choice((1, 2, 2))
    a = (
        g.pick(
            lambda t: t.dtype is torch.float32 and t.dim() == spatial + 2 and t.shape[1] == c, 0.0
        )
        if g.chance(0.5)
        else g.new_input(
            (g.rng.choice((1, 2)), c, *(g.rng.choice((5, 7, 8, 9)),) * spatial), torch.float32
        )
    )
    kernel = [g.rng.choice((1, 2, 3)) for _ in range(spatial)]
    weight = g.new_input((o, c // groups, *kernel), torch.float32)
    bias = g.new_input((o,), torch.float32) if g.chance(0.5) else None
    return g.call(
        aten.convolution.default,
        a,
        weight,
        bias,
        [g.rng.choice((1, 1, 2))] * spatial,
        [g.rng.choice((0, 1))] * spatial,
        [1] * spatial,
        False,
        [0] * spatial,
        groups,
    )


def pool(g: Generator) -> Any:
    a = g.pick(lambda t: t.dtype is torch.float32 and t.dim() == 4)
    kernel = [g.rng.choice((1, 2, 3)), g.rng.choice((2, 3))]
    stride = [g.rng.choice((1, 2))] * 2
    if g.chance(0.5):
        return g.call(aten.avg_pool2d.default, a, kernel, stride, [0, 0], g.chance(0.3))
    found = g.call(
        aten.max_pool2d_with_indices.default, a, kernel, stride, [0, 0], [1, 1], g.chance(0.3)
    )
    g.items(found)
    return found


row(5.0, matmul)
row(1.0, convolution)
row(0.6, pool)

# ------------------------------------------------------------------ indexing


def index(g: Generator) -> Any:
    a = g.pick(has_rank(1, 4))
    t = g.tensor(a)
    shape = g.rng.choice(([], [1], [5], [9], [2, 3], [17]))
    chosen = g.dims(a)[:2]
    indices: list[Any] = [None] * t.dim()
    for d in chosen:
        own = [1 if g.chance(0.2) else s for s in shape]
        indices[d] = g.index(own, t.shape[d], negative=True)
    while indices[-1] is None:
        indices.pop()
    if g.chance(0.6):
        return g.call(aten.index.Tensor, a, indices)
    values = g.call(aten.index.Tensor, a, indices)
    like = g.tensor(values)
    source = g.same(like.shape, t.dtype) if g.chance(0.7) else g.new_input((), t.dtype)
    return g.call(aten.index_put.default, a, indices, source, g.chance(0.5))


def gather(g: Generator) -> Any:
    a = g.pick(has_rank(1, 4))
    t, d = g.tensor(a), g.dim(a)
    shape = [g.rng.randint(0 if g.chance(0.1) else min(s, 1), s) for s in t.shape]
    if g.chance(0.4):
        return g.call(aten.gather.default, a, d, g.index(shape, t.shape[d]))
    if g.chance(0.5):
        which = g.index(shape, t.shape[d])
        return g.call(aten.scatter_add.default, a, d, which, g.same(shape, t.dtype))
    # Each place at most once: which of two writes stays is nobody's promise.
    if t.shape[d] == 0:
        raise NoGood
    order = torch.rand(list(t.shape), generator=g.torch_rng).argsort(d)
    which = g.new_input(tuple(shape), torch.int64, order[tuple(slice(0, s) for s in shape)])
    if g.chance(0.5):
        return g.call(aten.scatter.value, a, d, which, g.scalar(integer=True))
    return g.call(aten.scatter.src, a, d, which, g.same(shape, t.dtype))


def rows_of(g: Generator) -> Any:
    a = g.pick(has_rank(1, 4))
    t, d = g.tensor(a), g.dim(a)
    n = g.rng.choice((0, 1, 5, 9))
    kind = g.rng.randrange(5)
    if kind == 0:
        return g.call(aten.index_select.default, a, d, g.index([n], t.shape[d]))
    if kind == 1 and t.dim() == 2:
        return g.call(aten.embedding.default, a, g.index(g.shape(2), t.shape[0]))
    if t.shape[d] == 0:
        raise NoGood
    n = min(n, t.shape[d])
    which = g.new_input((n,), torch.int64, torch.randperm(t.shape[d], generator=g.torch_rng)[:n])
    if kind == 2:
        return g.call(aten.index_fill.int_Scalar, a, d, which, g.scalar(integer=True))
    shape = list(t.shape)
    shape[d] = n
    target = aten.index_add if kind == 3 else aten.index_copy
    return g.call(target.default, a, d, which, g.same(shape, t.dtype))


def slice_scatter(g: Generator) -> Any:
    a = g.pick(has_rank(1))
    t, d = g.tensor(a), g.dim(a)
    if g.chance(0.3):
        size = t.shape[d]
        if size == 0:
            raise NoGood
        shape = [s for k, s in enumerate(t.shape) if k != d % t.dim()]
        return g.call(
            aten.select_scatter.default, a, g.same(shape, t.dtype), d, g.rng.randrange(-size, size)
        )
    bounds = slice_bounds(g, t.shape[d])
    shape = aten.slice.Tensor(t, d, *bounds).shape
    return g.call(aten.slice_scatter.default, a, g.same(shape, t.dtype), d, *bounds)


row(2.0, index)
row(2.0, gather)
row(1.5, rows_of)
row(2.0, slice_scatter)

TOTALS = list(itertools.accumulate(r.weight for r in ROWS))

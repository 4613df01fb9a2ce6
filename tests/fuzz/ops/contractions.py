"""Matrix products, convolutions and the pooling that goes with them."""

from __future__ import annotations

from typing import Any

import torch

from fuzz.generate import Generator, NoGood
from fuzz.ops.table import Table
from fuzz.program import Ref

aten = torch.ops.aten

ROWS = Table()
row = ROWS.row


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

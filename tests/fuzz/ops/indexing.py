"""Gathers and scatters."""

from __future__ import annotations

from typing import Any

import torch

from fuzz.generate import Generator, NoGood
from fuzz.ops.table import Table, has_rank
from fuzz.ops.views import slice_bounds

aten = torch.ops.aten

ROWS = Table()
row = ROWS.row


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

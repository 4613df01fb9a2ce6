"""Views, what moves elements without an index, and what makes new ones."""

from __future__ import annotations

from typing import Any

import torch

from fuzz.generate import Generator, NoGood
from fuzz.ops.table import Table, has_rank, is_float

aten = torch.ops.aten

ROWS = Table()
row = ROWS.row


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

"""Reductions and running sums, softmax and norms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from fuzz.generate import Generator
from fuzz.ops.table import Table, has_rank, is_float
from fuzz.program import ITEM, Call

aten = torch.ops.aten

ROWS = Table()
row = ROWS.row


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

"""Ops that PyTorch would take apart while it captures, and that Toroid wants whole.

A recurrent layer becomes one cell a step, a resize a dozen gathers, one_hot a comparison that
accepts any class. PyTorch does this in Python kernels (``py_impl``) of the Autograd and
CompositeImplicitAutograd keys, before a backend sees the graph. Inside `whole()` these kernels pass
the op on instead, unless a gradient is wanted, whose formula is that of the parts. Like `_torch`,
this depends on PyTorch's version.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._C import DispatchKey
from torch.utils._pytree import tree_leaves

from toroid import _core

_lock = threading.RLock()
_depth = 0

_RNN = (
    "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, "
    "bool bidirectional, bool batch_first"
)


def _states(input: torch.Tensor, batch_first: bool, bidirectional: bool, hx: list) -> list:
    """Fake results: the output as the transposed view that eager gives, and the last states."""
    steps, batch = input.shape[:2][:: -1 if batch_first else 1]
    out = input.new_empty(steps, batch, hx[0].shape[-1] * (2 if bidirectional else 1))
    return [out.transpose(0, 1) if batch_first else out, *(h.new_empty(h.shape) for h in hx)]


@functools.cache
def _rnn_ops() -> dict[Any, Any]:
    """Stand-ins of the recurrent layers: aten's own are decomposed by their C++ kernels too."""
    library = torch.library.Library("toroid", "DEF")
    stand_ins = {}
    for name in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
        op = getattr(torch.ops.aten, name).input
        several = name == "lstm"
        library.define(
            f"{name}(Tensor input, {'Tensor[]' if several else 'Tensor'} hx, {_RNN}) -> "
            f"(Tensor, Tensor{', Tensor' if several else ''})"
        )
        library.impl(name, op, "CompositeExplicitAutograd")

        def fake(input: Any, hx: Any, *args: Any) -> Any:
            first = args[-1]
            return tuple(
                _states(input, first, args[-2], hx if isinstance(hx, list | tuple) else [hx])
            )

        torch.library.register_fake(f"toroid::{name}", fake, lib=library)
        stand_ins[op] = getattr(torch.ops.toroid, name).default
    _rnn_ops.library = library  # its registrations live as long as it does
    return stand_ins


@functools.cache
def _one_hot() -> dict[Any, Any]:
    """A stand-in for one_hot; PyTorch has to find an unknown number of classes."""
    library = torch.library.Library("toroid", "FRAGMENT")
    library.define("one_hot(Tensor self, int num_classes) -> Tensor")
    op = torch.ops.aten.one_hot.default
    library.impl("one_hot", op, "CompositeExplicitAutograd")

    def fake(x: torch.Tensor, classes: int) -> torch.Tensor:
        return x.new_empty(*x.shape, classes)

    torch.library.register_fake("toroid::one_hot", fake, lib=library)
    _one_hot.library = library
    stand_in = _below(torch.ops.toroid.one_hot.default)

    def call(x: torch.Tensor, num_classes: int = -1) -> torch.Tensor:
        with_classes = num_classes > 0 and x.dtype is torch.int64
        return stand_in(x, num_classes) if with_classes else op.decompose(x, num_classes)

    return {op: call}


@functools.cache
def _resizes() -> dict[Any, Any]:
    """The overload of each resize that has the output's size, by the one that may not."""
    names = [f"upsample_nearest{n}d" for n in (1, 2, 3)]
    names += [f"_upsample_nearest_exact{n}d" for n in (1, 2, 3)]
    names += ["upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d"]
    names += ["upsample_bicubic2d", "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"]
    packets = [getattr(torch.ops.aten, name) for name in names]
    return {p.vec: p.default for p in packets if _core.knows(str(p.default))}


def _wants_gradient(args: Any, kwargs: Any) -> bool:
    return torch.is_grad_enabled() and any(
        isinstance(leaf, torch.Tensor) and leaf.requires_grad
        for leaf in tree_leaves((args, kwargs))
    )


def _unless_gradient(otherwise: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        if otherwise is not None and _wants_gradient(args, kwargs):
            return otherwise(*args, **kwargs)
        return call(*args, **kwargs)

    return kernel


def _below(op: Any) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        with torch._C._AutoDispatchBelowAutograd():
            return op(*args, **kwargs)

    return call


def _sized(op: Any) -> Callable[..., Any]:
    """Arguments of a .vec overload to those of the other."""
    from torch._decomp.decompositions import upsample_compute_output_size

    def call(input: Any, output_size: Any, *rest: Any) -> Any:
        *flags, factors = rest
        size = upsample_compute_output_size(input.size(), output_size, factors)
        factors = factors if factors else [None] * len(size)
        with torch._C._AutoDispatchBelowAutograd():
            return op(input, size, *flags, *factors)

    return call


def _kernels() -> dict[Any, dict[DispatchKey, Callable[..., Any]]]:
    keys = (DispatchKey.Autograd, DispatchKey.CompositeImplicitAutograd)
    table: dict[Any, dict[DispatchKey, Callable[..., Any]]] = {}
    calls = {op: _below(new) for op, new in _rnn_ops().items() if _core.knows(str(new))}
    calls |= {vec: _sized(sized) for vec, sized in _resizes().items()}
    calls |= _one_hot()
    for op, call in calls.items():
        table[op] = {key: _unless_gradient(op.py_kernels.get(key), call) for key in keys}
    for op in _resizes().values():
        old = op.py_kernels.get
        table[op] = {}
        if old(keys[0]):
            table[op][keys[0]] = _unless_gradient(old(keys[0]), _below(op))
        if old(keys[1]):
            table[op][keys[1]] = lambda *args, **kwargs: NotImplemented
    return table


@contextlib.contextmanager
def whole() -> Iterator[None]:
    """Keep the ops whole that the importer knows; for the time of a capture."""
    global _depth
    with _lock:
        if _depth:  # a capture within a capture, of a graph break's other side
            yield
            return
        saved = {}
        _depth += 1
        try:
            for op, kernels in _kernels().items():
                saved[op] = op.py_kernels.copy()
                op.py_kernels.update(kernels)
                op._dispatch_cache.clear()
            yield
        finally:
            _depth -= 1
            for op, kernels in saved.items():
                op.py_kernels.clear()
                op.py_kernels.update(kernels)
                op._dispatch_cache.clear()

"""External nodes: calls that stay with PyTorch, as callables over tensors and integers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.fx import Node
from torch.fx.node import map_arg

from toroid import _sizes, _torch


@dataclasses.dataclass(frozen=True)
class Slot:
    """Place of a value in the list of values that a call works on."""

    index: int


def _fill(template: Any, values: list[Any]) -> Any:
    if isinstance(template, Slot):
        return values[template.index]
    if isinstance(template, tuple):
        return tuple(_fill(item, values) for item in template)
    if isinstance(template, list):
        return [_fill(item, values) for item in template]
    if isinstance(template, dict):
        return {key: _fill(item, values) for key, item in template.items()}
    if isinstance(template, slice):
        return slice(
            *(_fill(item, values) for item in (template.start, template.stop, template.step))
        )
    return template


def _plain(result: Any, dtype: torch.dtype | None) -> Any:
    """A result whose memory is its value (nothing lazy, no ZeroTensor), in the graph's dtype.

    The graph has what fake tensors said; of some ops (batch_norm of half types) that differs from
    what the op gives, and the nodes that follow were traced for it.
    """
    if not isinstance(result, torch.Tensor):
        return result
    if result._is_zerotensor():  # autograd's zeros without memory, as the gradient of sgn
        return torch.zeros(result.shape, dtype=dtype or result.dtype)
    result = result.resolve_conj().resolve_neg()
    return result if dtype in (None, result.dtype) else result.to(dtype)


@dataclasses.dataclass(frozen=True)
class Layout:
    """How eager's tensor lies in memory, where that is not row-major.

    Attributes
    ----------
    order : tuple of int
        Dims, outermost first.
    strides : tuple of int, optional
        Where they are known.
    """

    order: tuple[int, ...]
    strides: tuple[int, ...] | None

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Layout | None:
        """That of a fake tensor; None for a row-major one."""
        if _sizes.is_row_major(tensor):
            return None
        strides = tensor.stride()
        known = all(isinstance(s, int) for s in (*strides, *tensor.shape))
        exact = known and _has_own_places(tensor)
        return cls(tuple(_sizes.dim_order(strides)), strides if exact else None)

    def apply(self, x: torch.Tensor) -> torch.Tensor:
        """The same values, laid out so: ops may show their operand's strides, or go by them."""
        if self.strides is None:
            back = sorted(range(x.dim()), key=self.order.__getitem__)
            return x.permute(self.order).contiguous().permute(back)
        if x.stride() == self.strides:
            return x
        # What was expanded has one element for all.
        base = x[tuple(slice(0, 1) if s == 0 else slice(None) for s in self.strides)]
        laid_out = torch.empty_strided(base.shape, self.strides, dtype=x.dtype).copy_(base)
        return laid_out.expand(x.shape)


def _has_own_places(tensor: torch.Tensor) -> bool:
    """Whether elements lie apart, but for those that were expanded."""
    end = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1 and 0 < stride < end:
            return False
        end += (size - 1) * stride
    return True


@dataclasses.dataclass(frozen=True)
class Calls:
    """Calls in order, bound to the structure of their arguments.

    Attributes
    ----------
    steps : list
        Target, positional and named arguments of each, with `Slot` where a value goes.
    layouts : list
        Numbers of the tensors that eager has in another order, and how.
    picks : list
        Which items of the last result to return, and their dtypes; None stands for the result
        itself.
    """

    steps: list[tuple[Any, tuple[Any, ...], dict[str, Any]]]
    layouts: list[tuple[int, Layout]]
    picks: list[tuple[int | None, torch.dtype | None]]

    def __call__(
        self, given: Sequence[torch.Tensor], numbers: Sequence[int]
    ) -> tuple[torch.Tensor, ...]:
        values = [*given, *numbers]
        with torch.no_grad():
            for i, layout in self.layouts:
                values[i] = layout.apply(values[i])
            for target, args, kwargs in self.steps:
                result = target(*_fill(args, values), **_fill(kwargs, values))
                # What is returned is copied.
                values.append(_torch.wait_for(result) if _torch.is_collective(target) else result)
            last = values[-1]
            return tuple(_plain(last if i is None else last[i], dtype) for i, dtype in self.picks)


def make_callable(
    nodes: Sequence[Node],
    tensors: Sequence[Node],
    ints: Sequence[Node],
    constants: Mapping[Node, Any],
    picks: Sequence[tuple[int | None, torch.dtype | None]],
) -> Calls:
    """Bind calls to the structure of their arguments; the graph they come from is not kept.

    Parameters
    ----------
    nodes : sequence of Node
        Calls in order; the last one's results are returned.
    tensors, ints : sequences of Node
        Values that the plan gives at each call.
    constants : mapping of Node to object
        Other values: submodules of higher-order ops, known numbers.
    picks : sequence
        See `Calls`.
    """
    layouts = [(i, layout) for i, n in enumerate(tensors) if (layout := Layout.of(n.meta["val"]))]
    places = {node: Slot(i) for i, node in enumerate([*tensors, *ints])}
    places |= {node: Slot(len(places) + i) for i, node in enumerate(nodes)}
    place = {**places, **constants}.__getitem__
    steps = [(n.target, map_arg(n.args, place), dict(map_arg(n.kwargs, place))) for n in nodes]
    return Calls(steps, layouts, list(picks))

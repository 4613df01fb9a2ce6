"""External nodes: calls that stay with PyTorch, as callables over tensors and integers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.fx import Node
from torch.fx.node import map_arg


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


def _plain(result: Any) -> Any:
    """A result whose memory is its value: no lazy negation or conjugation."""
    return result.resolve_conj().resolve_neg() if isinstance(result, torch.Tensor) else result


def make_callable(
    nodes: Sequence[Node],
    tensors: Sequence[Node],
    ints: Sequence[Node],
    constants: Mapping[Node, Any],
    picks: Sequence[int | None],
) -> Callable[[Sequence[torch.Tensor], Sequence[int]], tuple[torch.Tensor, ...]]:
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
        Which items of the last result to return; None stands for the result itself.
    """
    places = {node: Slot(i) for i, node in enumerate([*tensors, *ints])}
    places |= {node: Slot(len(places) + i) for i, node in enumerate(nodes)}
    place = {**places, **constants}.__getitem__
    steps = [(n.target, map_arg(n.args, place), map_arg(n.kwargs, place)) for n in nodes]

    def call(given: Sequence[torch.Tensor], numbers: Sequence[int]) -> tuple[torch.Tensor, ...]:
        values = [*given, *numbers]
        with torch.no_grad():
            for target, args, kwargs in steps:
                values.append(target(*_fill(args, values), **_fill(kwargs, values)))
            return tuple(_plain(values[-1] if i is None else values[-1][i]) for i in picks)

    return call

"""One sample through the door of ``torch.compile``, less Dynamo: AOTAutograd, then the backend."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._decomp.decompositions_for_rng import PhiloxStateTracker
from torch.utils import _pytree as pytree
from toroid import _decompositions, _torch
from toroid.backend import toroid
from toroid.report import GraphReport, listen

_used_rules: list[str] = []


def prepare() -> None:
    """Have PyTorch's decompositions say when they are used; called once, before any capture."""

    def watched(op: Any, rule: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            _used_rules.append(str(op))
            return rule(*args, **kwargs)

        return call

    # AOTAutograd resets this tracker of CUDA's generator at each capture, a third of its time.
    PhiloxStateTracker.reset()
    PhiloxStateTracker.reset = classmethod(lambda cls: None)
    table = {op: watched(op, rule) for op, rule in _decompositions.table().items()}
    _decompositions.table = lambda: table
    _decompositions.native.cache_clear()


@dataclasses.dataclass
class Call:
    """A sample as a function of its tensors alone.

    Attributes
    ----------
    function : callable
        Takes the tensors, returns a tuple of the tensors among the results.
    tensors : list of Tensor
        The sample's tensors, each once.
    """

    function: Callable[..., tuple[torch.Tensor, ...]]
    tensors: list[torch.Tensor]


def make_call(op: Callable[..., Any], sample: Any) -> Call:
    """Take the tensors out of a `SampleInput`."""
    leaves, spec = pytree.tree_flatten((sample.input, *sample.args))
    named, named_spec = pytree.tree_flatten(sample.kwargs)
    tensors: list[torch.Tensor] = []
    numbers: dict[int, int] = {}
    for leaf in [*leaves, *named]:
        if isinstance(leaf, torch.Tensor) and id(leaf) not in numbers:
            numbers[id(leaf)] = len(tensors)
            tensors.append(leaf)

    def function(*given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        def fill(values: list[Any]) -> list[Any]:
            return [given[numbers[id(v)]] if isinstance(v, torch.Tensor) else v for v in values]

        args = pytree.tree_unflatten(fill(leaves), spec)
        kwargs = pytree.tree_unflatten(fill(named), named_spec)
        results = pytree.tree_leaves(op(*args, **kwargs))
        return tuple(r for r in results if isinstance(r, torch.Tensor))

    return Call(function, tensors)


def as_module(function: Callable[..., Any], count: int) -> torch.fx.GraphModule:
    """A function of tensors as a graph of one call, as Dynamo would hand it over."""

    def opinfo_sample(*tensors: torch.Tensor) -> Any:
        return function(*tensors)

    graph = torch.fx.Graph()
    places = [graph.placeholder(f"t{i}") for i in range(count)]
    results = graph.call_function(opinfo_sample, tuple(places))
    graph.output(results)
    return torch.fx.GraphModule(torch.nn.Module(), graph)


@dataclasses.dataclass
class Compiled:
    """A compiled sample."""

    run: Callable[..., tuple[torch.Tensor, ...]]
    reports: list[GraphReport]
    rules: list[str]


def compile_call(function: Callable[..., Any], tensors: Sequence[torch.Tensor]) -> Compiled:
    """Compile for these tensors. The backward graph comes when it is first needed, or here."""
    _used_rules.clear()
    reports: list[GraphReport] = []
    with listen() as heard:
        run = toroid(as_module(function, len(tensors)), list(tensors))
        reports += heard
    return Compiled(run, reports, list(dict.fromkeys(_used_rules)))


def trace_only(function: Callable[..., Any], tensors: Sequence[torch.Tensor]) -> Callable[..., Any]:
    """AOTAutograd's capture, run by PyTorch: tells PyTorch's faults from the backend's.

    Without decompositions: those are the backend's choice.
    """

    def plain(gm: torch.fx.GraphModule, _: Sequence[Any]) -> Callable[[list[Any]], Any]:
        return _torch.eager(gm)

    gm = as_module(function, len(tensors))
    return _torch.run_aot(
        gm,
        list(tensors),
        compiler=lambda kind: plain,
        decompositions=dict,
    )


def copies(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Copies with the strides, offsets and shared memory of the originals."""
    storages: dict[int, torch.UntypedStorage] = {}

    def copy(t: torch.Tensor) -> torch.Tensor:
        if t.layout is not torch.strided or type(t) not in (torch.Tensor, torch.nn.Parameter):
            return t.detach().clone().requires_grad_(t.requires_grad)
        storage = t.untyped_storage()
        mine = storages.setdefault(storage._cdata, storage.clone())
        with torch.no_grad():
            new = torch.empty(0, dtype=t.dtype).set_(mine, t.storage_offset(), t.shape, t.stride())
        if t.is_conj():
            new = new.conj()
        if t.is_neg():
            new = torch._neg_view(new)
        return new.requires_grad_(t.requires_grad)

    return [copy(t) for t in tensors]

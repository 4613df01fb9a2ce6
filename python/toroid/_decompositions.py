"""PyTorch's decompositions: which of them Toroid takes, and of which calls.

Its tables and what is wrong with some of their rules may change with its version; see `_torch`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import GraphModule

from toroid import _core, _torch


@functools.cache
def table() -> dict[Any, Callable[..., Any]]:
    """PyTorch's decompositions, less those that do not give eager's answer."""
    from torch._decomp import _core_aten_decompositions_post_autograd

    rules = dict(_core_aten_decompositions_post_autograd())
    # This one takes the input for contiguous; eager writes where its strides say.
    rules.pop(torch.ops.aten.as_strided_scatter.default, None)
    # These round otherwise than eager does, linspace for integers and half types.
    for overload in torch.ops.aten.logspace.overloads():
        rules.pop(getattr(torch.ops.aten.logspace, overload), None)
    packet = torch.ops.aten.linspace
    for op in {getattr(packet, overload) for overload in packet.overloads()} & rules.keys():
        rules[op] = _for_wide_floats(rules[op])
    op = torch.ops.aten.affine_grid_generator.default
    rules[op] = _for_grids_of_many(rules[op])
    return rules


def _for_wide_floats(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A rule that stands back for a ``dtype`` of integers or of a half type."""

    def call(*args: Any, dtype: torch.dtype | None = None, **kwargs: Any) -> Any:
        if dtype not in (None, torch.float32, torch.float64):
            return NotImplemented
        return rule(*args, dtype=dtype, **kwargs)

    return call


def _for_grids_of_many(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A rule that stands back for a side of 1: AOTAutograd refuses the constant that it makes."""

    def call(theta: torch.Tensor, size: list[int], align_corners: bool) -> Any:
        return NotImplemented if 1 in size[2:] else rule(theta, size, align_corners)

    return call


@functools.cache
def native() -> dict[Any, Callable[..., Any]]:
    """PyTorch's decompositions of the ops that Toroid does not know by name.

    Random ops keep their kernels: a decomposition would draw other numbers than eager does.
    """
    return {
        op: rule
        for op, rule in table().items()
        if not _core.knows(str(op)) and not _torch.is_random(op)
    }


def decompose(node: torch.fx.Node) -> GraphModule | None:
    """PyTorch's decomposition of one call, traced for its arguments; None if there is none.

    The graph's placeholders stand for ``node.all_input_nodes``.
    """
    rule = table().get(node.target)
    if rule is None or _torch.is_random(node.target):
        return None
    from torch.fx.experimental.proxy_tensor import make_fx

    inputs = list(node.all_input_nodes)

    def call(*values: Any) -> Any:
        at = dict(zip(inputs, values, strict=True))
        args = torch.fx.node.map_arg(node.args, at.__getitem__)
        kwargs = torch.fx.node.map_arg(node.kwargs, at.__getitem__)
        result = rule(*args, **kwargs)
        if result is NotImplemented:
            raise NotImplementedError(f"no decomposition of {node.target} for these arguments")
        return result

    values = [n.meta.get("val") for n in inputs]
    if not all(isinstance(v, torch.Tensor | torch.SymInt) for v in values):
        return None
    mode = torch._guards.detect_fake_mode(values)
    if mode is None:
        return None
    with mode, torch.no_grad():
        return make_fx(call, tracing_mode="real", decomposition_table=native())(*values)

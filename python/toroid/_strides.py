"""Strides that eager gives results with dims of size 1, where FakeTensor's differ; see `_torch`.

Those of such dims mean nothing and are seen, and a convolution chooses its format by them. What
eager's elementwise kernels (ATen/TensorIterator.cpp), convolutions and attention give is worked out
here from the strides of the operands, views are asked of PyTorch, and other ops have what
FakeTensor says.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node

from toroid import _sizes

#: Key of a node's meta: the strides that an output of the graph shall have.
KEY = "toroid_strides"

Shape = tuple[int, ...]
#: Sizes and strides.
Operand = tuple[Shape, Shape]

_COPIES = (torch.ops.aten._to_copy.default, torch.ops.aten.clone.default)
#: Elementwise, but by several kernels or by one that copies its operand first.
_OTHERS = (
    "conj_physical deg2rad hardtanh isfinite isinf ldexp masked_fill mvlgamma nan_to_num positive "
    "rad2deg relu6 threshold_backward"
)
#: Their kernels take a number as it is.
_WITH_NUMBERS = (torch.ops.aten.pow.Tensor_Scalar, torch.ops.aten.lerp.Scalar)
_ATTENTION = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default


def note(gm: GraphModule) -> None:
    """Put eager's strides into the meta of outputs for which FakeTensor has others."""
    outputs = [n for n in gm.graph.output_node().args[0] if isinstance(n, Node)]
    if not any(_has_ones(n.meta.get("val")) for n in gm.graph.nodes):
        return
    known: dict[Node, Shape] = {}
    for node in gm.graph.nodes:
        val = node.meta.get("val")
        if isinstance(val, torch.Tensor) and _is_static(val):
            known[node] = _strides(node, known) or val.stride()
    for node in outputs:
        val = node.meta.get("val")
        if node.op != "placeholder" and node in known and known[node] != val.stride():
            node.meta[KEY] = known[node]


def _real() -> contextlib.AbstractContextManager[Any]:
    """Tensors made meanwhile have memory, which is never touched."""
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    return unset_fake_temporarily()


def _is_static(val: torch.Tensor) -> bool:
    return all(isinstance(_sizes.expression(n), int) for n in (*val.shape, *val.stride()))


def _has_ones(val: Any) -> bool:
    return isinstance(val, torch.Tensor) and 1 in map(_sizes.expression, val.shape)


def _strides(node: Node, known: dict[Node, Shape]) -> Shape | None:
    """Of what a call gives, by its operands' in `known`; None where that is not known."""
    shape, source = tuple(node.meta["val"].shape), node.args[0] if node.args else None
    if isinstance(source, Node) and source.target is _ATTENTION:
        node, source = source, source.args[0]
        return _like(source, known, shape)
    if not isinstance(node.target, torch._ops.OpOverload) or 0 in shape:
        return None
    if node.target in _COPIES:
        preserved = node.kwargs.get("memory_format") in (None, torch.preserve_format)
        return _like(source, known, shape) if preserved else None
    if torch.Tag.pointwise in node.target.tags and _is_one_kernel(node.target):
        operands = list(_operands(node, known))
        return _elementwise(shape, operands) if None not in operands else None
    if node.target is torch.ops.aten.convolution.default:
        return _convolved(shape, node.args[:2], known)
    if source in known and _is_view(node) and node.all_input_nodes == [source]:
        return _of_view(node, source, known[source])
    return None


def _like(source: Any, known: dict[Node, Shape], shape: Shape) -> Shape | None:
    """A copy keeps the strides of what is dense."""
    stride = known.get(source)
    same = stride is not None and tuple(source.meta["val"].shape) == shape
    return stride if same and _is_dense(shape, stride) else None


def _convolved(shape: Shape, operands: Sequence[Node], known: dict[Node, Shape]) -> Shape | None:
    """Channels last if input or weight looks like it, row-major else."""
    from torch._prims_common import suggest_memory_format

    if any(node not in known for node in operands):
        return None
    with _real():
        for node in operands:
            x = torch.empty_strided(node.meta["val"].shape, known[node])
            form = suggest_memory_format(x)
            if form is not torch.contiguous_format:
                return torch.empty(shape, memory_format=form).stride()
    return _row_major(shape, range(len(shape) - 1, -1, -1))


def _is_one_kernel(target: torch._ops.OpOverload) -> bool:
    name = target.overloadpacket.__name__
    return name not in _OTHERS.split() and target is not torch.ops.aten.pow.Scalar


def _is_view(node: Node) -> bool:
    returns = node.target._schema.returns
    return len(returns) == 1 and returns[0].alias_info is not None


def _of_view(node: Node, source: Node, stride: Shape) -> Shape | None:
    val = source.meta["val"]
    with _real():
        x = torch.empty_strided(val.shape, stride, dtype=val.dtype)
        args = torch.fx.node.map_arg(node.args, lambda n: x)
        kwargs = torch.fx.node.map_arg(node.kwargs, lambda n: x)
        try:
            return node.target(*args, **kwargs).stride()
        except RuntimeError:
            return None  # FakeTensor found a view where eager makes a copy


def _operands(node: Node, known: dict[Node, Shape]) -> Iterator[Operand | None]:
    """Tensors of a call, and numbers in the place of tensors; None for what is not known."""
    target = node.target
    # eq.Scalar and others make a tensor of their number.
    numbers = "scalar" in target._overloadname.lower() and target not in _WITH_NUMBERS
    for i, argument in enumerate(target._schema.arguments):
        value = node.args[i] if i < len(node.args) else node.kwargs.get(argument.name)
        kind = str(argument.type)
        number = numbers and kind == "number" and not argument.has_default_value()
        if value is None or not ("Tensor" in kind or number):
            continue
        if isinstance(value, Node):
            yield (tuple(value.meta["val"].shape), known[value]) if value in known else None
        else:
            yield (), ()


def _row_major(shape: Shape, order: Sequence[int]) -> Shape:
    """Dense strides with the dims in this order, innermost first."""
    stride, step = [0] * len(shape), 1
    for dim in order:
        stride[dim] = step
        step *= shape[dim]
    return tuple(stride)


def _lies(shape: Shape, stride: Shape, order: Sequence[int]) -> bool:
    """Whether strides are dense in this order, but for dims of size 1."""
    dense = _row_major(shape, order)
    return all(shape[d] == 1 or stride[d] == dense[d] for d in range(len(shape)))


def _is_dense(shape: Shape, stride: Shape) -> bool:
    return _lies(shape, stride, sorted(range(len(shape)), key=lambda d: (shape[d] == 1, stride[d])))


def _elementwise(shape: Shape, operands: Sequence[Operand]) -> Shape:
    """TensorIterator's choice for a result of its own."""
    inward = range(len(shape) - 1, -1, -1)
    if all(s == shape for s, _ in operands):
        strides = [stride for _, stride in operands]
        for order in (inward, (1, 3, 2, 0))[: 2 if len(shape) == 4 else 1]:
            if all(_lies(shape, stride, order) for stride in strides):
                return _row_major(shape, order)
        if len(set(strides)) == 1 and _is_dense(shape, strides[0]):
            return strides[0]
    wide = [_broadcast(shape, *operand) for operand in operands]
    order = list(inward)
    # An insertion sort in which some dims do not compare.
    for i in range(1, len(order)):
        at = i
        for other in range(i - 1, -1, -1):
            sign = _compare(shape, wide, order[other], order[at])
            if sign > 0:
                order[other], order[at] = order[at], order[other]
                at = other
            elif sign < 0:
                break
    return _row_major(shape, order)


def _broadcast(shape: Shape, own: Shape, stride: Shape) -> Shape:
    missing = len(shape) - len(own)
    kept = (
        0 if size == 1 and wide != 1 else step
        for size, wide, step in zip(own, shape[missing:], stride, strict=True)
    )
    return (0,) * missing + tuple(kept)


def _compare(shape: Shape, operands: Sequence[Shape], a: int, b: int) -> int:
    """1 if dim `a` belongs outside of `b`, -1 if inside, 0 if no operand tells."""
    for stride in operands:
        if stride[a] == 0 or stride[b] == 0:
            continue
        if stride[a] != stride[b]:
            return 1 if stride[a] > stride[b] else -1
        if shape[a] > shape[b]:
            return 1
    return 0

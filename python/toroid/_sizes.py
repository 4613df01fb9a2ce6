"""PyTorch's symbolic sizes and strides; they may change with its version, see `_torch`."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import torch

from toroid import _core


def expression(size: Any) -> Any:
    """A size as an int or as the sympy expression behind it."""
    if not isinstance(size, torch.SymInt):
        return int(size)
    expr = size.node.expr
    return int(expr) if expr.is_Integer else expr


def hint(size: Any) -> int:
    """The example value of a size; adds no guard."""
    if not isinstance(size, torch.SymInt):
        return int(size)
    value = size.node.hint
    return 1 if value is None else int(value)


def dim_order(strides: Iterable[Any]) -> list[int]:
    """Dims, outermost first; adds no guard."""
    hints = [hint(s) for s in strides]
    return sorted(range(len(hints)), key=lambda dim: (-hints[dim], dim))


def is_row_major(tensor: torch.Tensor) -> bool:
    """Whether strides are row-major whatever the sizes are; False where that is not certain."""
    expected: Any = 1
    for size, stride in zip(reversed(tensor.shape), reversed(tensor.stride()), strict=True):
        size, stride = expression(size), expression(stride)
        if size == 0:
            return True
        if size != 1 and stride != expected:
            return False
        expected = expected * size
    return True


def _expanded(size: Any) -> Any:
    return size if isinstance(size, int) else size.expand()


def fills_memory(val: torch.Tensor) -> bool:
    """Whether a tensor shows all of its memory; False where that is not certain."""
    shown = expression(val.numel() * val.element_size())
    kept = expression(val.untyped_storage().nbytes())
    return expression(val.storage_offset()) == 0 and _expanded(shown - kept) == 0


def memory_order(tensor: torch.Tensor) -> list[int] | None:
    """The order of dims, outermost first, in which a dense tensor lies; None if it is not dense."""
    if is_row_major(tensor):
        return list(range(tensor.dim()))
    order = dim_order(tensor.stride())
    return order if is_row_major(tensor.permute(order)) else None


def known_number(value: Any) -> float | int | None:
    """The value of a symbolic number that guards have fixed; None for others."""
    if isinstance(value, torch.SymFloat) and value.node.expr.is_number:
        return float(value.node.expr)
    if isinstance(value, torch.SymInt) and value.node.expr.is_Integer:
        return int(value.node.expr)
    return None


def evaluate(expr: Any, symbols: dict[Any, Any]) -> Any:
    """Evaluate a sympy expression over objects that have Python's arithmetic.

    Raises
    ------
    KeyError
        If a symbol is missing.
    """
    from torch.utils._sympy.interp import sympy_interp

    return sympy_interp(_analysis(), symbols, expr)


def _extreme(a: Any, b: Any, which: str) -> Any:
    if isinstance(a, _core.Int):
        return getattr(a, which)(b)
    if isinstance(b, _core.Int):
        return getattr(b, which)(a)
    return max(a, b) if which == "max" else min(a, b)


@functools.cache
def _analysis() -> type:
    from torch.utils._sympy.reference import PythonReferenceAnalysis

    class Analysis(PythonReferenceAnalysis):
        """PyTorch's, which knows the extremes of its own integers only."""

        @staticmethod
        def maximum(a: Any, b: Any) -> Any:
            return _extreme(a, b, "max")

        @staticmethod
        def minimum(a: Any, b: Any) -> Any:
            return _extreme(a, b, "min")

    return Analysis


def is_ragged(size: torch.SymInt) -> bool:
    """Whether a size is a nested tensor's, which stands for many numbers."""
    return size.node.is_nested_int()

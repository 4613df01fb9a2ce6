"""Rows of ops, and what operands they may want."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch

from fuzz.generate import Generator


@dataclasses.dataclass(frozen=True)
class Row:
    """An op: how often, and what adds it to a program."""

    weight: float
    make: Callable[[Generator], Any]


class Table(list[Row]):
    """The ops of a file."""

    def row(self, weight: float, make: Callable[[Generator], Any]) -> None:
        """Add an op."""
        self.append(Row(weight, make))


def is_float(t: torch.Tensor) -> bool:
    return t.is_floating_point()


def is_integer(t: torch.Tensor) -> bool:
    return not t.is_floating_point() and t.dtype is not torch.bool


def is_integral(t: torch.Tensor) -> bool:
    return not t.is_floating_point()


def has_rank(low: int, high: int = 6) -> Callable[[torch.Tensor], bool]:
    return lambda t: low <= t.dim() <= high

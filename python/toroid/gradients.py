"""Backward passes that nobody asked for, so that their graphs are seen."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._pytree import tree_flatten


def differentiate(result: Any) -> None:
    """Run backward through what a model returned, for the sake of its graphs; sets no ``.grad``."""
    leaves, _ = tree_flatten(result)
    outputs = [x for x in leaves if isinstance(x, torch.Tensor) and x.grad_fn is not None]
    wanted = _leaves_of([x.grad_fn for x in outputs])
    if wanted:
        seeds = [torch.ones_like(x) for x in outputs]
        torch.autograd.grad(outputs, wanted, seeds, retain_graph=True, allow_unused=True)


def _leaves_of(functions: list[Any]) -> list[torch.Tensor]:
    """The tensors, parameters among them, that gradients end in."""
    seen = set(functions)
    found = []
    while functions:
        function = functions.pop()
        if hasattr(function, "variable"):
            found.append(function.variable)
        following = {f for f, _ in function.next_functions if f is not None} - seen
        seen |= following
        functions.extend(following)
    return found

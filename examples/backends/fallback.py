"""A composition: a compiler that takes what it knows, and Toroid for all other graphs.

python examples/backends/fallback.py
"""

from __future__ import annotations

import torch
import toroid

KNOWN = {torch.ops.aten.relu.default, torch.ops.aten.mul.Tensor, torch.ops.aten.add.Tensor}


def picky(gm, example_inputs):
    """Takes graphs of three operators, and refuses others with the reason."""
    targets = {node.target for node in gm.graph.nodes if node.op == "call_function"}
    if unknown := targets - KNOWN:
        raise NotImplementedError(f"not for me: {', '.join(sorted(map(str, unknown)))}")
    return gm.forward


def pointwise(x):
    return torch.relu(x) * 2 + 1


def product(x):
    return torch.relu(x @ x) + 1


def main() -> None:
    x = torch.randn(8, 8)
    backend = toroid.compose(picky, "toroid")
    for function in (pointwise, product):
        found = toroid.explain(function, x, backend=backend)
        torch.testing.assert_close(found.result, function(x))
        print(f"{function.__name__}: taken by {found.graphs[0].backend}")


if __name__ == "__main__":
    main()

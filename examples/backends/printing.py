"""A backend in Python that prints each graph and runs it as PyTorch would.

python examples/backends/printing.py
"""

from __future__ import annotations

import torch
import toroid


def printing(gm, example_inputs):
    """A compiler for `toroid.aot`: a graph of ATen calls and its fake inputs, to a callable."""
    shapes = [tuple(x.shape) for x in example_inputs if isinstance(x, torch.Tensor)]
    print(f"a graph of inputs {shapes}")
    for node in gm.graph.nodes:
        if node.op == "call_function":
            value = node.meta.get("val")
            print(f"  {node.name:12} {node.target}  {tuple(getattr(value, 'shape', ()))}")
    return gm.forward


def main() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 2))
    x = torch.randn(4, 8)
    compiled = torch.compile(model, backend=toroid.aot(printing))
    compiled(x).sum().backward()  # a forward and a backward graph
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), model(x))  # and one for inference


if __name__ == "__main__":
    main()

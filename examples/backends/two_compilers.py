"""Forward graphs by Toroid, backward graphs by another compiler, here PyTorch itself.

python examples/backends/two_compilers.py
"""

from __future__ import annotations

import torch
import toroid
from toroid.report import listen


def as_eager(gm, example_inputs):
    """Runs a graph as PyTorch would: a list of inputs, which it empties, to a list of outputs."""

    def run(inputs):
        outputs = gm(*inputs)
        inputs.clear()
        return outputs

    run._boxed_call = True
    return run


def main() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    compiled = torch.compile(model, backend=toroid.aot(fw="toroid", bw=as_eager))
    x = torch.randn(64, 8)
    y = x[:, :1] * x[:, 1:2]
    losses = []
    with listen() as graphs:
        for _ in range(100):
            optimiser.zero_grad()
            loss = torch.nn.functional.mse_loss(compiled(x), y)
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
    for graph in graphs:
        print(f"{graph.kind}: {graph.backend}")
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}")
    assert losses[-1] < losses[0] / 2


if __name__ == "__main__":
    main()

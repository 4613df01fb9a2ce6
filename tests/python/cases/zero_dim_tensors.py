"""Tensors of no dims keep their type against Python numbers and tensors of dims."""

import torch


def inputs():
    return torch.tensor(3.0), torch.tensor(7), torch.ones(2, dtype=torch.float16)


def run(x, n, h):
    return x * n, n + 1, n / 2, h * x, torch.cat([x[None], x[None] + n]), x.cumsum(0)


def want():
    return (
        torch.tensor(21.0),
        torch.tensor(8),
        torch.tensor(3.5),
        torch.full((2,), 3.0, dtype=torch.float16),
        torch.tensor([3.0, 10.0]),
        torch.tensor(3.0),
    )

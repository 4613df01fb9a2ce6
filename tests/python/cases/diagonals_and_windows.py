"""Diagonals off the middle, of permuted matrices, and windows that overlap."""

import torch


def inputs():
    return torch.arange(12.0).reshape(3, 4), torch.tensor([-1.0, -2.0])


def run(x, y):
    written = torch.diagonal_scatter(x, y, offset=-1)
    return (
        x.diagonal(1) + 0,
        x.t().diagonal(1) + 0,
        x.diagonal(4) + 0,
        written,
        x.unfold(1, 2, 2) + 0,
        x.unfold(0, 2, 1).sum(-1),
    )


def want():
    written = torch.arange(12.0).reshape(3, 4)
    written[1, 0], written[2, 1] = -1, -2
    return (
        torch.tensor([1.0, 6.0, 11.0]),
        torch.tensor([4.0, 9.0]),
        torch.tensor([]),
        written,
        torch.arange(12.0).reshape(3, 2, 2),
        torch.tensor([[4.0, 6.0, 8.0, 10.0], [12.0, 14.0, 16.0, 18.0]]),
    )

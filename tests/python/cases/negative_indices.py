"""Negative indices count from the end."""

import torch


def inputs():
    return torch.arange(12.0).reshape(3, 4), torch.tensor([-1, 0]), torch.tensor([[1], [-2]])


def run(x, i, j):
    return x[i], x[j, i]


def want():
    return (
        torch.tensor([[8.0, 9.0, 10.0, 11.0], [0.0, 1.0, 2.0, 3.0]]),
        torch.tensor([[7.0, 4.0], [7.0, 4.0]]),
    )

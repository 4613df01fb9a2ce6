"""Sums of booleans count, products stay boolean, and addition is or."""

import torch


def inputs():
    return torch.tensor([True, True, False]), torch.tensor([True, False, False])


def run(a, b):
    return a.sum(), a * b, a + b, a & ~b, a.to(torch.float32) - 1


def want():
    return (
        torch.tensor(2),
        torch.tensor([True, False, False]),
        torch.tensor([True, True, False]),
        torch.tensor([False, True, False]),
        torch.tensor([0.0, 0.0, -1.0]),
    )

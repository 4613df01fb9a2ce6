"""Arithmetic of narrow integers wraps at their own width before it is widened."""

import torch


def inputs():
    return torch.full((4,), 128, dtype=torch.uint8), torch.full((4,), 100, dtype=torch.int8)


def run(u, i):
    return (u + u).to(torch.int16), (i + i).to(torch.int32), (i * i).to(torch.int64)


def want():
    return (
        torch.zeros(4, dtype=torch.int16),
        torch.full((4,), -56, dtype=torch.int32),
        torch.full((4,), 16, dtype=torch.int64),
    )

"""Float bounds of an integer range: int64 counts the cut numbers, narrower types the floats."""

import torch


def inputs():
    return (torch.arange(3),)


def run(x):
    return (
        torch.arange(4, -3, -1.0, dtype=torch.int64) + x.sum(),
        torch.arange(0.5, 3.5, dtype=torch.int64) + x[0],
        torch.arange(0.5, 3.6, 1.0, dtype=torch.int32) + x[0].int(),
    )


def want():
    return (
        torch.arange(7, 0, -1),
        torch.tensor([0, 1, 2]),
        torch.tensor([0, 1, 2, 3], dtype=torch.int32),
    )

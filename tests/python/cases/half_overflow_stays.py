"""A round trip through float16 is not elided: it overflows and rounds."""

import torch


def inputs():
    return (torch.tensor([5000.0, 100.0, 0.1]),)


def run(x):
    y = x.to(torch.float16)
    return (y * y).to(torch.float32), y.to(torch.float32)


def want():
    return (
        torch.tensor([float("inf"), 10000.0, 0.00999450683594]),
        torch.tensor([5000.0, 100.0, 0.0999755859375]),
    )

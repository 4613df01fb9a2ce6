"""Conversion from float to integer truncates towards zero."""

import torch


def inputs():
    return (torch.tensor([1.9, -1.9, 2147483520.0, -0.5]),)


def run(x):
    return x.to(torch.int32), x.to(torch.int64), x.to(torch.bool)


def want():
    return (
        torch.tensor([1, -1, 2147483520, 0], dtype=torch.int32),
        torch.tensor([1, -1, 2147483520, 0]),
        torch.tensor([True, True, True, True]),
    )

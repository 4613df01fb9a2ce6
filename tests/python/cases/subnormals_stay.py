"""Subnormal numbers are not flushed to zero."""

import torch


def inputs():
    return (torch.tensor([-1e-38, 1e-40, 2.8e-45]),)


def run(x):
    return (x * 0.5 != 0), (x * 0.5 * 2 == x)


def want():
    return torch.tensor([True, True, True]), torch.tensor([True, True, True])

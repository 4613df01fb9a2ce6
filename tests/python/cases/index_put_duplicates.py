"""Accumulating index_put adds every duplicate."""

import torch


def inputs():
    return torch.arange(6.0), torch.tensor([1, 1, 4, 1]), torch.ones(4)


def run(x, i, v):
    return x.index_put((i,), v, accumulate=True)


def want():
    return torch.tensor([0.0, 4.0, 2.0, 3.0, 5.0, 5.0])

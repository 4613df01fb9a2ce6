"""A key/value cache gets its new rows by index_copy_ and keeps the others."""

import torch


def inputs():
    return torch.zeros(1, 2, 8, 4), torch.ones(1, 2, 2, 4), torch.tensor([3, 4])


def run(cache, new, at):
    cache.index_copy_(2, at, new)
    return cache.sum(-1)


def want():
    rows = torch.zeros(1, 2, 8)
    rows[:, :, 3:5] = 4
    return rows

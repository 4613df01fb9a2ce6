"""A right shift of a signed integer keeps the sign; of an unsigned one it does not."""

import torch


def inputs():
    return torch.tensor([-1, -5, 7]), torch.tensor([255, 128], dtype=torch.uint8)


def run(s, u):
    return s >> 31, u >> 1


def want():
    return torch.tensor([-1, -1, 0]), torch.tensor([127, 64], dtype=torch.uint8)

"""Floor division and remainder of floats follow Python, not floor(a / b)."""

import torch


def inputs():
    return torch.tensor([1.0, 0.5, 6.0, -1.0]), torch.tensor([0.1, 0.1, 0.2, 0.1])


def run(a, b):
    return a // b, torch.remainder(a, b), torch.fmod(a, b)


def want():
    a, b = inputs()
    floor = torch.tensor([9.0, 4.0, 29.0, -10.0])
    return floor, torch.remainder(a, b), torch.fmod(a, b)

"""The first NaN is the largest and the smallest."""

import torch

NAN = float("nan")


def inputs():
    return (torch.tensor([[1.0, NAN, 3.0], [NAN, 2.0, NAN]]),)


def run(x):
    return x.argmax(1), x.argmin(1), x.amax(1).isnan()


def want():
    return torch.tensor([1, 0]), torch.tensor([1, 0]), torch.tensor([True, True])

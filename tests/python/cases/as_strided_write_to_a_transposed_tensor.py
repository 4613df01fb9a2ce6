"""A write through as_strided goes where the strides of the tensor say, not where a copy's would."""

import torch


def inputs():
    return (torch.arange(6.0).view(2, 3).t(),)


def run(x):
    y = x * 2
    torch.as_strided(y, (3,), (1,), 0).fill_(9)
    return y


def want():
    return torch.tensor([[9.0, 9.0, 9.0], [6.0, 8.0, 10.0]]).t()

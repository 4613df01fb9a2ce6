"""Rounding keeps the sign of zero."""

import torch


def inputs():
    return (torch.tensor([-0.5, -0.0, 0.0, 0.5]),)


def run(x):
    return 1 / torch.ceil(x), 1 / torch.round(x), torch.copysign(torch.ones(4), torch.trunc(x))


def want():
    inf = float("inf")
    return (
        torch.tensor([-inf, -inf, inf, 1.0]),
        torch.tensor([-inf, -inf, inf, inf]),
        torch.tensor([-1.0, -1.0, 1.0, 1.0]),
    )

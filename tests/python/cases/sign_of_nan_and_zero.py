"""The sign bit of -0 and of NaN counts; the angle of -0 does not."""

import math

import torch


def inputs():
    nan = float("nan")
    return (
        torch.tensor([-0.0, 0.0, -nan, nan, -2.0, float("-inf")]).copysign_(
            torch.tensor([-1.0, 1.0, -1.0, 1.0, -1.0, -1.0])
        ),
    )


def run(x):
    return torch.signbit(x), torch.angle(x), torch.round(x + 1.235, decimals=2)


def want():
    nan = float("nan")
    return (
        torch.tensor([True, False, True, False, True, True]),
        torch.tensor([0.0, 0.0, nan, nan, math.pi, math.pi]),
        torch.round(torch.tensor([123.5, 123.5, nan, nan, -76.5, float("-inf")])) / 100,
    )

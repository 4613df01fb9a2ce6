"""A mean that is large against the spread does not cancel the variance."""

import torch
import torch.nn.functional as F


def inputs():
    return (torch.tensor([[1.0, -1.0] * 32]) + 4096.0,)


def run(x):
    return F.layer_norm(x, (64,)).round(decimals=3)


def want():
    return torch.tensor([[1.0, -1.0] * 32])

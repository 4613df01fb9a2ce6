"""Pointwise ops on a permuted input give its order of dims."""

import torch
import torch.nn.functional as F


def inputs():
    return (torch.rand(3, 5, 4, 6).permute(0, 2, 1, 3),)


def run(x):
    return F.gelu(x) + 1, x.contiguous() * 2

"""Negation of uint8 compares at its own width."""

import torch


def inputs():
    return (torch.tensor([6, 0, 255], dtype=torch.uint8),)


def run(x):
    return -x < 4


def want():
    return torch.tensor([False, True, True])

"""linspace of integers truncates what float arithmetic of eager's order gives."""

import torch


def inputs():
    return (torch.zeros(50, dtype=torch.int64),)


def run(x):
    return (
        x + torch.linspace(-3, 4, 50, dtype=torch.int64),
        torch.linspace(-3, 4, 50),
        torch.logspace(-3, 4, 5, dtype=torch.bfloat16),
    )

"""A mask of three dims belongs to heads, rows and keys: every batch item has the same."""

import torch


def inputs():
    generator = torch.Generator().manual_seed(0)
    return (
        torch.randn(2, 3, 9, 8, generator=generator),
        torch.randn(3, 9, 9, generator=generator),
        torch.randn(3, 1, 9, generator=generator) > 0,
    )


def run(q, bias, keep):
    scores = (q @ q.mT) * 0.3 + bias
    some = torch.where(keep, scores, -torch.inf)
    return scores.softmax(-1) @ q, some.softmax(-1).nan_to_num() @ q

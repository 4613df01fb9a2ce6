"""as_strided looks at memory: of a result that eager holds in another order than row-major too."""

import torch


def inputs():
    return (torch.arange(24.0).reshape(1, 4, 2, 3),)


def run(x):
    # One batch: the reshape is a view, with the memory order of [4, 2, 3].
    y = (x + 1).transpose(1, 2).reshape(2, 4, 3)
    z = (x * 2).reshape(4, 6).t()
    return (
        y.as_strided((2, 3, 2, 3), (3, 6, 6, 1)).contiguous(),
        y.as_strided((2, 2), y.stride()[:2], 1).contiguous(),
        z.as_strided((3, 2), z.stride()).contiguous(),
    )


def want():
    rows = torch.arange(1.0, 25.0).view(4, 2, 3)
    chunks = [torch.stack([rows[i : i + 2, b] for i in range(3)]) for b in range(2)]
    z = torch.arange(0.0, 48.0, 2).view(4, 6).t()
    return torch.stack(chunks), rows[:2, :, 1].t().contiguous(), z[:3, :2].contiguous()

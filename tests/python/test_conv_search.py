"""Random convolutions against eager: ranks, strides, dilations, groups, padding modes, transposed.

One seed, so that the first N of `--convolutions N` are the same at each run. A compiled function
holds several of them, since compiling takes longer than running.
"""

import random

import torch
from support import assert_same, toroid

TOGETHER = 20
MODES = ["zeros", "reflect", "replicate", "circular"]
ACTIVATIONS = [None, torch.nn.ReLU(), torch.nn.ReLU6(), torch.nn.SiLU(), torch.nn.Hardswish()]
MOST = 2e7  # multiply-adds of a configuration


class Convolution(torch.nn.Module):
    """A convolution and, at times, a residual and an activation behind it."""

    def __init__(self, layer, activation, residual):
        super().__init__()
        self.layer, self.activation, self.residual = layer, activation, residual

    def forward(self, x):
        y = self.layer(x)
        if self.residual:
            y = y + y.mean(dim=1, keepdim=True)
        return self.activation(y) if self.activation else y


class Several(torch.nn.ModuleList):
    def forward(self, *inputs):
        return [layer(x) for layer, x in zip(self, inputs, strict=True)]


def draw(rng):
    """A layer and its input, or None if eager refuses them or they are too much work."""
    rank = rng.choice([1, 2, 2, 2, 3])
    transposed = rng.random() < 0.25
    groups = rng.choice([1, 1, 1, 2, 3, 4, 8])
    c, o = (groups * rng.choice([1, 1, 2, 3, 4, 8, 16, 17, 24, 32, 48, 64]) for _ in range(2))
    if rng.random() < 0.2:
        groups = c = rng.choice([3, 8, 17, 32, 64, 96])
        o = c * rng.choice([1, 1, 2])
    kernel = [rng.choice([1, 1, 2, 3, 3, 3, 5, 7][: 8 - 2 * (rank == 3)]) for _ in range(rank)]
    stride = [rng.choice([1, 1, 2, 3]) for _ in range(rank)]
    dilation = [rng.choice([1, 1, 1, 2, 3]) for _ in range(rank)]
    padding = [rng.randint(0, d * (k - 1)) for k, d in zip(kernel, dilation, strict=True)]
    sizes = {1: [5, 31, 64, 127, 640], 2: [7, 14, 28, 32, 33, 57, 112, 225, 640], 3: [4, 7, 9, 16]}
    batch = rng.choice([1, 1, 2, 3, 16])
    shape = [batch, c, *(rng.choice(sizes[rank]) for _ in range(rank))]
    options = {"bias": rng.random() < 0.7, "groups": groups, "dilation": dilation}
    if transposed:
        kind = [torch.nn.ConvTranspose1d, torch.nn.ConvTranspose2d, torch.nn.ConvTranspose3d]
        options["output_padding"] = [
            rng.randint(0, max(s, d) - 1) for s, d in zip(stride, dilation, strict=True)
        ]
    else:
        kind = [torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d]
        options["padding_mode"] = rng.choice(["zeros", "zeros", "zeros", *MODES[1:]])
        if rng.random() < 0.1:
            stride, padding = [1] * rank, "same"
    layer = kind[rank - 1](c, o, kernel, stride=stride, padding=padding, **options)
    layer = Convolution(layer, rng.choice(ACTIVATIONS), rng.random() < 0.2)
    try:
        out = layer.to("meta")(torch.empty(shape, device="meta"))
    except (RuntimeError, ValueError):
        return None
    positions = torch.Size(shape[2:]).numel() if transposed else out[0, 0].numel()
    if batch * positions * layer.layer.weight.numel() > MOST or out.numel() > 4e6:
        return None
    x = torch.randn(shape)
    if rank > 1 and rng.random() < 0.5 and c > 1:
        last = {2: torch.channels_last, 3: torch.channels_last_3d}[rank]
        x = x.to(memory_format=last)
    layer = layer.to_empty(device="cpu")
    for parameter in layer.parameters():
        torch.nn.init.uniform_(parameter, -0.5, 0.5)
    return layer.eval(), x


def configurations():
    rng = random.Random(0)
    while True:
        found = draw(rng)
        if found:
            yield found


def test_search(request):
    count, rest = request.config.getoption("--convolutions"), configurations()
    for first in range(0, count, TOGETHER):
        torch._dynamo.reset()
        layers, inputs = zip(
            *(next(rest) for _ in range(min(TOGETHER, count - first))), strict=True
        )
        with torch.no_grad():
            got = toroid(Several(layers), options={"strict": True})(*inputs)
            for number, (layer, x, y) in enumerate(zip(layers, inputs, got, strict=True), first):
                where = f"configuration {number}, {layer.layer} on {tuple(x.shape)}"
                # fake: strides of dims of size 1, which mean nothing, may be any.
                assert_same(y, layer(x), rtol=1e-4, atol=1e-4, path=where, fake=[y.stride()])

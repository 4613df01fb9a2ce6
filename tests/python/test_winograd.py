"""3x3 convolutions by Winograd's method: the error rule, changing sizes, values not finite."""

import pytest
import torch
import toroid
from support import assert_error_rule, in_double
from torch import nn


@pytest.fixture(autouse=True)
def no_grad():
    with torch.no_grad():
        yield


def kernels(model, x):
    with toroid.profile() as steps:
        model(x)
    return str(steps)


class Block(nn.Module):
    """Two 3x3 layers with batch norm, one behind the other, and the residual."""

    def __init__(self, channels, act):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            act,
            nn.Conv2d(channels, channels, 3, padding=1),
        )
        self.act = act

    def forward(self, x):
        return self.act(self.layers(x) + x)


@pytest.mark.parametrize("act", [nn.ReLU(), nn.SiLU(), nn.GELU()], ids=lambda a: type(a).__name__)
def test_blocks_of_changing_sizes_keep_the_error_rule(act):
    torch.manual_seed(0)
    block = Block(64, act).eval()
    compiled = torch.compile(block, backend="toroid", dynamic=True, options={"strict": True})
    assert "winograd" in kernels(compiled, torch.randn(1, 64, 28, 28))
    for batch, height, width in [(1, 28, 28), (2, 30, 17), (1, 3, 5), (3, 13, 64), (1, 57, 31)]:
        x = torch.randn(batch, 64, height, width)
        for layout in (torch.contiguous_format, torch.channels_last):
            image = x.contiguous(memory_format=layout)
            assert_error_rule(compiled(image), block(image), in_double(block, (x,)))


def test_a_deep_net_of_3x3_layers_keeps_the_error_rule():
    torch.manual_seed(0)
    widths = [3, 32, 32, 64, 64, 64, 128, 128, 128, 128]
    layers = []
    for i, o in zip(widths, widths[1:], strict=False):
        layers += [nn.Conv2d(i, o, 3, padding=1), nn.ReLU()]
        nn.init.kaiming_normal_(layers[-2].weight)
    net = nn.Sequential(*layers).eval()
    x = torch.randn(2, 3, 32, 32)
    compiled = torch.compile(net, backend="toroid", options={"strict": True})
    assert kernels(compiled, x).count("winograd") >= 5
    assert_error_rule(compiled(x), net(x), in_double(net, (x,)))


def test_threads_do_not_change_a_bit():
    torch.manual_seed(0)
    layer = nn.Conv2d(96, 72, 3, padding=1).eval()
    compiled = torch.compile(layer, backend="toroid", options={"strict": True})
    x = torch.randn(2, 96, 29, 31)
    assert "winograd" in kernels(compiled, x)
    threads, answers = torch.get_num_threads(), []
    try:
        for count in (1, 2, 4):
            torch.set_num_threads(count)
            answers.append(compiled(x))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(answers[0], answers[1]) and torch.equal(answers[0], answers[2])


def test_changed_weights_are_seen():
    torch.manual_seed(0)
    layer = nn.Conv2d(64, 64, 3, padding=1).eval()
    compiled = torch.compile(layer, backend="toroid")
    x = torch.randn(1, 64, 28, 28)
    assert "winograd" in kernels(compiled, x)
    layer.weight.mul_(-2)
    torch.testing.assert_close(compiled(x), layer(x), rtol=1e-4, atol=1e-4)


def test_what_is_not_finite_stays_in_its_tile_or_without_freeze_in_its_window():
    torch.manual_seed(0)
    layer = nn.Conv2d(64, 64, 3, padding=1).eval()
    x = torch.randn(1, 64, 32, 32)
    x[0, 5, 9, 9] = float("inf")
    want = layer(x).isfinite()
    compiled = torch.compile(layer, backend="toroid")
    assert "winograd" in kernels(compiled, x)
    got = compiled(x).isfinite()
    assert not (got & ~want).any(), "what eager makes infinite or NaN is not finite"
    assert got[..., 12:, :].all() and got[..., :8, :].all(), "tiles that do not read it are finite"
    torch._dynamo.reset()
    exact = torch.compile(layer, backend="toroid", options={"freeze": False})
    assert torch.equal(exact(x).isfinite(), want)

"""Convolutions that are computed together by bands of lines: MobileNet's blocks against eager."""

import pytest
import torch
import toroid as toroid_module
from support import assert_same, in_double, toroid
from torch import nn

LARGE = 112  # what lies between would leave L2 at this size, and stays there at SMALL
SMALL = 12


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def conv(c, o, kernel=1, stride=1, groups=1, padding=None):
    padding = kernel // 2 if padding is None else padding
    return [
        nn.Conv2d(c, o, kernel, stride, padding, groups=groups, bias=False),
        nn.BatchNorm2d(o),
    ]


class Block(nn.Module):
    """Expansion, depthwise convolution, projection; a residual where the shapes allow it."""

    def __init__(self, c, middle, o, kernel=3, stride=1, activation=nn.ReLU6, padding=None):
        super().__init__()
        self.body = nn.Sequential(
            *(conv(c, middle) + [activation()] if middle != c else []),
            *conv(middle, middle, kernel, stride, middle, padding),
            activation(),
            *conv(middle, o),
        )
        for norm in self.body.modules():
            if isinstance(norm, nn.BatchNorm2d):
                nn.init.uniform_(norm.running_mean, -0.5, 0.5)
                nn.init.uniform_(norm.running_var, 0.5, 2)

    def forward(self, x):
        y = self.body(x)
        return x + y if y.shape == x.shape else y


class Excited(nn.Module):
    """EfficientNet's: the depthwise convolution's result is read twice, so the pair ends there."""

    def __init__(self, c, middle, kernel=5, stride=2):
        super().__init__()
        self.body = nn.Sequential(
            *conv(c, middle), nn.SiLU(), *conv(middle, middle, kernel, stride, middle), nn.SiLU()
        )
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(middle, middle, 1))

    def forward(self, x):
        y = self.body(x)
        return y * torch.sigmoid(self.gate(y))


def bands(model, x):
    """Return the steps that are computed by bands, as texts."""
    with torch.no_grad():
        steps = toroid_module.explain(model, x).steps().splitlines()
    return [step for step in steps if " bands " in step]


def check(compiled, model, x):
    with torch.no_grad():
        want = in_double(model, (x,)).float()
        assert_same(compiled(x), want, rtol=1e-4, atol=2e-5)


BLOCKS = [
    (Block(16, 96, 24, stride=2), (1, 16, LARGE, LARGE), 3),
    (Block(24, 144, 24), (2, 24, 57, 55), 3),
    (Block(24, 144, 24, kernel=5, activation=nn.SiLU), (1, 24, 61, 58), 3),
    (Block(24, 144, 40, kernel=7, stride=2, activation=nn.Hardswish), (1, 24, 63, 64), 3),
    (Block(24, 144, 24, padding=0), (1, 24, 60, 59), 3),
    (Block(32, 32, 16), (1, 32, LARGE, LARGE), 2),
    (Excited(16, 96), (1, 16, LARGE, LARGE - 1), 2),
    (Excited(24, 144, kernel=3, stride=1), (1, 24, 56, 56), 2),
]


@pytest.mark.parametrize(("model", "shape", "convs"), BLOCKS)
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_blocks(model, shape, convs, layout):
    x = torch.randn(shape).to(memory_format=layout)
    model.eval()
    check(toroid(model), model, x)
    steps = bands(model, x)
    if convs == 2 and isinstance(model, Block) and layout is torch.contiguous_format:
        assert not steps, "the depthwise kernel, which is first, reads channels last"
        return
    (step,) = steps
    assert "depthwise" in step and step.count(" > ") == convs - 1


def test_small_images_stay_apart():
    model = Block(24, 144, 24).eval()
    x = torch.randn(1, 24, SMALL, SMALL)
    check(toroid(model), model, x)
    assert not bands(model, x)


def net():
    return nn.Sequential(
        *conv(3, 32, 3, 2),
        nn.ReLU6(),
        Block(32, 32, 16),
        Block(16, 96, 24, stride=2),
        Block(24, 144, 24),
        Block(24, 144, 32, stride=2),
        Block(32, 192, 32),
    ).eval()


def test_one_graph_for_all_sizes():
    model = net()
    compiled = toroid(model, dynamic=True)
    for shape in [(1, 224, 224), (2, 20, 33), (1, 201, 187), (1, 7, 9), (3, 224, 64)]:
        check(compiled, model, torch.randn(shape[0], 3, *shape[1:]))


def test_bits_do_not_depend_on_threads():
    model, x = net(), torch.randn(1, 3, 224, 219)
    compiled = toroid(model)
    answers = []
    for n in (1, 2, 4):
        torch.set_num_threads(n)
        with torch.no_grad():
            answers += [compiled(x).clone() for _ in range(3)]
    assert all(torch.equal(answers[0], other) for other in answers)


def test_what_a_step_does_is_told():
    model, x = Block(16, 96, 24, stride=2).eval(), torch.randn(1, 16, LARGE, LARGE)
    compiled = toroid(model)
    with torch.no_grad():
        compiled(x)
        with toroid_module.profile() as profile:
            compiled(x)
    (step,) = [step for step in profile.steps() if ">" in step.work]
    assert step.work == "conv {maximum minimum} > conv {maximum minimum} > conv"
    half = LARGE * LARGE // 4
    products = 16 * 96 * LARGE * LARGE + 9 * 96 * half + 96 * 24 * half
    assert step.flops == 2 * products
    # The image, the result and the weights; not the 96 channels between.
    weights = 16 * 96 + 9 * 96 + 96 * 24 + 96 + 96 + 24
    assert step.bytes == 4 * (16 * LARGE * LARGE + 24 * half + weights)

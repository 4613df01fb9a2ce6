"""Small nets in the shapes of well-known ones: images, clicks and waves, in strict mode."""

import pytest
import torch
import torch.nn.functional as F
from support import assert_error_rule, in_double, listen, toroid
from torch import nn


@pytest.fixture(autouse=True)
def no_grad():
    with torch.no_grad():
        yield


def conv(i, o, k=3, act=nn.ReLU, **more):
    return nn.Sequential(
        nn.Conv2d(i, o, k, padding=k // 2, bias=False, **more), nn.BatchNorm2d(o), act()
    )


class SqueezeExcite(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.down, self.up = nn.Conv2d(c, c // 4, 1), nn.Conv2d(c // 4, c, 1)

    def forward(self, x):
        y = F.adaptive_avg_pool2d(x, 1)
        return x * F.hardsigmoid(self.up(F.relu(self.down(y))))


class Inverted(nn.Module):
    """MobileNetV3's block: expand, depthwise, squeeze-excite, project."""

    def __init__(self, i, o, stride, act):
        super().__init__()
        self.keep = stride == 1 and i == o
        self.body = nn.Sequential(
            conv(i, 4 * i, 1, act),
            conv(4 * i, 4 * i, 3, act, groups=4 * i, stride=stride),
            SqueezeExcite(4 * i),
            nn.Conv2d(4 * i, o, 1, bias=False),
            nn.BatchNorm2d(o),
        )

    def forward(self, x):
        return x + self.body(x) if self.keep else self.body(x)


class MobileNetV3(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            conv(3, 8, 3, nn.Hardswish, stride=2),
            Inverted(8, 8, 1, nn.ReLU),
            Inverted(8, 12, 2, nn.Hardswish),
        )
        self.head = nn.Sequential(nn.Linear(12, 24), nn.Hardswish(), nn.Dropout(), nn.Linear(24, 7))

    def forward(self, x):
        return self.head(F.adaptive_avg_pool2d(self.body(x), 1).flatten(1))


class DenseNet(nn.Module):
    """Every layer reads all before it; a transition halves channels and size."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(conv(3, 8, 7, stride=2), nn.MaxPool2d(3, 2, 1))
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.BatchNorm2d(8 + 4 * i), nn.ReLU(), nn.Conv2d(8 + 4 * i, 4, 3, padding=1)
            )
            for i in range(3)
        )
        self.transition = nn.Sequential(
            nn.BatchNorm2d(20), nn.ReLU(), nn.Conv2d(20, 10, 1), nn.AvgPool2d(2)
        )
        self.head = nn.Linear(10, 5)

    def forward(self, x):
        features = [self.stem(x)]
        for layer in self.layers:
            features.append(layer(torch.cat(features, 1)))
        return self.head(F.relu(self.transition(torch.cat(features, 1))).mean((2, 3)))


class UNet(nn.Module):
    """Down by pooling, up by transposed convolution and by interpolation, skips by cat."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = conv(3, 6), conv(6, 12), conv(12, 12)
        self.up = nn.ConvTranspose2d(12, 6, 2, stride=2)
        self.d, self.e = conv(18, 6), conv(12, 6)
        self.head = nn.Conv2d(6, 2, 1)

    def forward(self, x):
        a = self.a(x)
        b = self.b(F.max_pool2d(a, 2))
        c = self.c(F.max_pool2d(b, 2))
        y = self.d(torch.cat([self.up(c), b], 1))
        y = F.interpolate(y, scale_factor=2, mode="nearest")
        return self.head(self.e(torch.cat([y, a], 1)))


class Yolo(nn.Module):
    """Cross-stage blocks with SiLU, spatial pyramid pooling, boxes decoded on a grid."""

    def __init__(self):
        super().__init__()
        self.stem = conv(3, 8, 3, nn.SiLU, stride=2)
        self.mix, self.out = conv(4, 4, 3, nn.SiLU), conv(12, 8, 1, nn.SiLU)
        self.pyramid = conv(32, 8, 1, nn.SiLU)
        self.head = nn.Conv2d(8, 3 * 7, 1)
        self.register_buffer("anchors", torch.tensor([[1.0, 1.5], [2.0, 1.0], [3.0, 3.0]]))

    def forward(self, x):
        x = self.stem(x)
        a, b = x.chunk(2, 1)
        x = self.out(torch.cat([a, b, b + self.mix(b)], 1))
        pools = [x]
        for _ in range(3):
            pools.append(F.max_pool2d(pools[-1], 5, 1, 2))
        y = self.head(self.pyramid(torch.cat(pools, 1)))
        n, _, h, w = y.shape
        y = y.view(n, 3, 7, h, w).permute(0, 1, 3, 4, 2)
        grid = torch.stack(torch.meshgrid(torch.arange(w), torch.arange(h), indexing="xy"), -1)
        centre = (y[..., :2].sigmoid() * 2 - 0.5 + grid) * 8
        size = (y[..., 2:4].sigmoid() * 2) ** 2 * self.anchors.view(1, 3, 1, 1, 2)
        return torch.cat([centre, size, y[..., 4:].sigmoid()], -1).view(n, -1, 7)


class Dlrm(nn.Module):
    """Embedding bags of many tables and their pairwise products beside a dense tower."""

    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(50, 8, mode="sum") for _ in range(3))
        self.bottom = nn.Sequential(nn.Linear(13, 16), nn.ReLU(), nn.Linear(16, 8), nn.ReLU())
        row, column = torch.tril_indices(4, 4, -1)
        self.register_buffer("row", row)
        self.register_buffer("column", column)
        self.top = nn.Sequential(nn.Linear(8 + 6, 16), nn.ReLU(), nn.Linear(16, 1), nn.Sigmoid())

    def forward(self, dense, sparse):
        x = self.bottom(dense)
        rows = torch.stack(
            [x, *(t.weight[i].sum(1) for t, i in zip(self.tables, sparse, strict=True))], 1
        )
        pairs = torch.bmm(rows, rows.transpose(1, 2))[:, self.row, self.column]
        return self.top(torch.cat([x, pairs], 1))


class WaveNet(nn.Module):
    """Dilated causal 1-d convolutions with gates, residuals and skips."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv1d(1, 8, 1)
        self.gates = nn.ModuleList(nn.Conv1d(8, 16, 2, dilation=d) for d in (1, 2, 4))
        self.skips = nn.ModuleList(nn.Conv1d(8, 16, 1) for _ in range(3))
        self.head = nn.Sequential(nn.ReLU(), nn.Conv1d(8, 8, 1), nn.ReLU(), nn.Conv1d(8, 5, 1))

    def forward(self, x):
        x, total = self.stem(x), 0
        for gate, skip in zip(self.gates, self.skips, strict=True):
            a, b = gate(F.pad(x, (gate.dilation[0], 0))).chunk(2, 1)
            y, s = skip(torch.tanh(a) * torch.sigmoid(b)).chunk(2, 1)
            x, total = x + y, total + s
        return self.head(total)


def image(n):
    return (torch.randn(n, 3, 32, 32),)


def clicks(n):
    return torch.randn(n, 13), torch.randint(0, 50, (3, n, 4))


def wave(n):
    return (torch.randn(2, 1, 20 * n),)


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize(
    ("make", "inputs"),
    [
        (MobileNetV3, image),
        (DenseNet, image),
        (UNet, image),
        (Yolo, image),
        (Dlrm, clicks),
        (WaveNet, wave),
    ],
    ids=lambda x: x.__name__,
)
def test_net(make, inputs, dynamic):
    model = make()
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.running_mean.normal_(0, 0.1)
            m.running_var.uniform_(0.5, 1.5)
    model.eval()
    options = {"dynamic": True} if dynamic else {}
    compiled = toroid(model, fullgraph=True, options={"strict": True}, **options)
    with listen() as found:
        for n in (2, 5, 3) if dynamic else (2,):
            args = inputs(n)
            got = compiled(*args)
            assert_error_rule(got, model(*args), in_double(model, args))
    assert len(found) == 1 and found[0].native > 0


def test_embedding_bags():
    """Bags of any length by offsets, as DLRM has them."""
    table = nn.EmbeddingBag(50, 8, mode="sum")
    ids, offsets = torch.randint(0, 50, (20,)), torch.tensor([0, 3, 3, 11])
    torch.testing.assert_close(toroid(table)(ids, offsets), table(ids, offsets))

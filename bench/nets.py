"""Convolution nets of plain modules, each as its paper draws it; all take [b, 3, h, w]."""

import torch
from torch import nn


def conv(c, o, kernel=3, stride=1, activation=nn.ReLU, **options):
    """Convolution, batch norm and activation."""
    padding = kernel // 2
    layer = nn.Conv2d(c, o, kernel, stride, padding, bias=False, **options)
    return nn.Sequential(layer, nn.BatchNorm2d(o), activation())


class VGG16(nn.Sequential):
    """Simonyan and Zisserman 2015, configuration D."""

    def __init__(self):
        layers, c = [], 3
        for times, o in [(2, 64), (2, 128), (3, 256), (3, 512), (3, 512)]:
            for _ in range(times):
                layers += [nn.Conv2d(c, o, 3, padding=1), nn.ReLU()]
                c = o
            layers.append(nn.MaxPool2d(2))
        head = [nn.Linear(512 * 49, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU()]
        super().__init__(*layers, nn.Flatten(), *head, nn.Linear(4096, 1000))


class DenseLayer(nn.Module):
    def __init__(self, c, growth):
        super().__init__()
        self.norm1, self.conv1 = nn.BatchNorm2d(c), nn.Conv2d(c, 4 * growth, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(4 * growth)
        self.conv2 = nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)

    def forward(self, x):
        y = self.conv1(torch.relu(self.norm1(x)))
        return torch.cat([x, self.conv2(torch.relu(self.norm2(y)))], 1)


class DenseNet121(nn.Sequential):
    """Huang et al. 2017."""

    def __init__(self, growth=32):
        layers, c = [conv(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)], 64
        for block, times in enumerate([6, 12, 24, 16]):
            for _ in range(times):
                layers.append(DenseLayer(c, growth))
                c += growth
            if block < 3:
                layers += [nn.BatchNorm2d(c), nn.ReLU(), nn.Conv2d(c, c // 2, 1, bias=False)]
                layers.append(nn.AvgPool2d(2))
                c //= 2
        layers += [nn.BatchNorm2d(c), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        super().__init__(*layers, nn.Linear(c, 1000))


class UNet(nn.Module):
    """Ronneberger et al. 2015, padded, half as wide, with interpolation on the way up."""

    def __init__(self, widths=(32, 64, 128, 256, 512)):
        super().__init__()
        pairs = list(zip(widths, widths[1:], strict=False))
        self.first = self.two(3, widths[0])
        self.down = nn.ModuleList(self.two(c, o) for c, o in pairs)
        self.up = nn.ModuleList(self.two(c + o, c) for c, o in reversed(pairs))
        self.last = nn.Conv2d(widths[0], 2, 1)

    @staticmethod
    def two(c, o):
        return nn.Sequential(conv(c, o), conv(o, o))

    def forward(self, x):
        kept = [self.first(x)]
        for layers in self.down:
            kept.append(layers(nn.functional.max_pool2d(kept[-1], 2)))
        x = kept.pop()
        for layers in self.up:
            x = nn.functional.interpolate(x, scale_factor=2, mode="bilinear")
            x = layers(torch.cat([kept.pop(), x], 1))
        return self.last(x)


class CSP(nn.Module):
    """A cross-stage block of YOLO (Jocher 2023): half of the channels pass by."""

    def __init__(self, c, o, times, residual):
        super().__init__()
        self.half, self.residual = o // 2, residual
        self.first = conv(c, o, 1, activation=nn.SiLU)
        width = self.half
        self.inner = nn.ModuleList(
            nn.Sequential(
                conv(width, width, activation=nn.SiLU), conv(width, width, activation=nn.SiLU)
            )
            for _ in range(times)
        )
        self.last = conv((2 + times) * width, o, 1, activation=nn.SiLU)

    def forward(self, x):
        parts = list(self.first(x).split(self.half, 1))
        for layers in self.inner:
            y = layers(parts[-1])
            parts.append(parts[-1] + y if self.residual else y)
        return self.last(torch.cat(parts, 1))


class YOLO(nn.Module):
    """A detector like YOLOv8n: backbone, pyramid of three scales, one head a scale."""

    def __init__(self, outputs=144):
        super().__init__()
        widths = (16, 32, 64, 128, 256)
        down = [conv(3, 16, stride=2, activation=nn.SiLU)]
        for c, o, times in zip(widths, widths[1:], (1, 2, 2, 1), strict=False):
            down.append(
                nn.Sequential(conv(c, o, stride=2, activation=nn.SiLU), CSP(o, o, times, True))
            )
        self.down = nn.ModuleList(down)
        self.pool_in = conv(256, 128, 1, activation=nn.SiLU)
        self.pool_out = conv(512, 256, 1, activation=nn.SiLU)
        self.up = nn.ModuleList([CSP(256 + 128, 128, 1, False), CSP(128 + 64, 64, 1, False)])
        self.narrow = nn.ModuleList(conv(c, c, stride=2, activation=nn.SiLU) for c in (64, 128))
        self.out = nn.ModuleList([CSP(64 + 128, 128, 1, False), CSP(128 + 256, 256, 1, False)])
        self.heads = nn.ModuleList(
            nn.Sequential(conv(c, 64, activation=nn.SiLU), nn.Conv2d(64, outputs, 1))
            for c in (64, 128, 256)
        )

    def forward(self, x):
        kept = []
        for layers in self.down:
            x = layers(x)
            kept.append(x)
        pools = [self.pool_in(x)]
        for _ in range(3):
            pools.append(nn.functional.max_pool2d(pools[-1], 5, 1, 2))
        deep = self.pool_out(torch.cat(pools, 1))
        wide = nn.functional.interpolate(deep, scale_factor=2.0)
        middle = self.up[0](torch.cat([wide, kept[3]], 1))
        wide = nn.functional.interpolate(middle, scale_factor=2.0)
        fine = self.up[1](torch.cat([wide, kept[2]], 1))
        middle = self.out[0](torch.cat([self.narrow[0](fine), middle], 1))
        deep = self.out[1](torch.cat([self.narrow[1](middle), deep], 1))
        scales = zip(self.heads, (fine, middle, deep), strict=True)
        return torch.cat([head(y).flatten(2) for head, y in scales], 2)

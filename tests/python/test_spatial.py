"""Resizing, pooling, sampling, padding, bags: against eager, over types, layouts and sizes."""

import random

import pytest
import torch
import torch.nn.functional as F
from support import assert_same, fake_strides, reports, toroid

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
TOLERANCE = {
    torch.float32: (1e-4, 1e-5),
    torch.float64: (1e-9, 1e-9),
    torch.float16: (4e-3, 4e-3),
    torch.bfloat16: (2e-2, 2e-2),
}


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def check(f, *args, native=True, **kwargs):
    with torch.no_grad():
        found, got = reports(toroid(f, **kwargs), *args)
        want = f(*args)
    tensor = want[0] if isinstance(want, tuple) else want
    rtol, atol = TOLERANCE.get(tensor.dtype, (0, 0))
    assert_same(got, want, rtol=rtol, atol=atol, fake=fake_strides(f, *args))
    assert [bool(r.externals or r.fallback) for r in found] == [not native], str(found[0])


def laid_out(*shape, dtype=torch.float32, layout="first"):
    x = torch.randn(shape).to(dtype)
    if layout == "last":
        x = x.to(memory_format={4: torch.channels_last, 5: torch.channels_last_3d}[x.dim()])
    if layout == "gaps":
        x = torch.randn(*shape[:-1], 2 * shape[-1]).to(dtype)[..., ::2]
    return x


MODES = [
    (mode, rank)
    for mode, ranks in {
        "nearest": (3, 4, 5),
        "nearest-exact": (3, 4, 5),
        "linear": (3,),
        "bilinear": (4,),
        "trilinear": (5,),
        "bicubic": (4,),
    }.items()
    for rank in ranks
]
LAYOUTS = ["first", "last", "gaps"]


@pytest.mark.parametrize(("mode", "rank"), MODES)
def test_resize(mode, rank):
    shape = (2, 3, 5, 6, 7)[: rank - 1] + (9,)
    smooth = "nearest" not in mode

    def f(x):
        results = [
            F.interpolate(x, size=(4, 11, 18)[: rank - 2], mode=mode),
            F.interpolate(x, size=shape[2:], mode=mode),
            F.interpolate(x, scale_factor=2, mode=mode),
            F.interpolate(x, scale_factor=1.7, mode=mode),
            F.interpolate(x, scale_factor=0.6, mode=mode, recompute_scale_factor=True),
        ]
        if smooth:
            results.append(F.interpolate(x, scale_factor=1.3, mode=mode, align_corners=True))
            results.append(F.interpolate(x, size=(1,) * (rank - 2), mode=mode, align_corners=True))
        return tuple(results)

    for layout in LAYOUTS if rank > 3 else ["first", "gaps"]:
        check(f, laid_out(*shape, layout=layout))
        torch._dynamo.reset()
    for dtype in FLOATS[1:]:
        check(f, laid_out(*shape, dtype=dtype))
        torch._dynamo.reset()
    check(lambda x: F.interpolate(x, size=3, mode=mode), torch.randn(1, 1, *(1,) * (rank - 2)))


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_resize_of_bytes(mode):
    x = torch.randint(0, 256, (2, 3, 7, 9), dtype=torch.uint8)
    check(lambda x: F.interpolate(x, size=(5, 20), mode=mode), x)


def test_nearest_indices_are_eagers_for_many_sizes():
    sizes = [(i, o) for i in (1, 3, 10, 49, 127) for o in (1, 2, 7, 30, 98, 127, 333)]
    inputs = [torch.arange(i, dtype=torch.float32).view(1, 1, i) for i, _ in sizes]

    def f(*xs):
        return tuple(
            F.interpolate(x, size=o, mode=mode)
            for x, (_, o) in zip(xs, sizes, strict=True)
            for mode in ("nearest", "nearest-exact")
        )

    check(f, *inputs)


def test_resize_with_dynamic_sizes():
    f = toroid(lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"), dynamic=True)
    for h, w in ((5, 6), (9, 3), (2, 20)):
        x = torch.randn(2, 3, h, w)
        assert_same(f(x), F.interpolate(x, scale_factor=2.0, mode="bilinear"), atol=1e-5)


def test_gradients_of_resize():
    def f(x):
        return F.interpolate(x, scale_factor=2, mode="bilinear").square().sum()

    grads = []
    for g in (f, toroid(f)):
        x = torch.randn(1, 2, 3, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
        g(x).backward()
        grads.append(x.grad)
    assert_same(grads[1], grads[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_pools(rank):
    shape = (2, 5, 9, 10, 13)[: rank + 1] + (17,)
    pool = {name: getattr(F, f"{name}_pool{rank}d") for name in ("max", "avg", "adaptive_avg")} | {
        "adaptive_max": getattr(F, f"adaptive_max_pool{rank}d")
    }

    def floats(x):
        return (
            pool["max"](x, 3, 2, 1),
            pool["max"](x, 2, ceil_mode=True),
            pool["max"](x, 3, 1, 1, dilation=2),
            pool["avg"](x, 3, 2, 1),
            pool["avg"](x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
            pool["avg"](x, 2),
            *([pool["avg"](x, 2, divisor_override=3)] if rank > 1 else []),
            pool["adaptive_avg"](x, 3),
        )

    def indices(x):
        return (
            *pool["max"](x, 3, 2, 1, return_indices=True),
            *pool["adaptive_max"](x, 4, return_indices=True),
        )

    for layout in LAYOUTS if rank > 1 else ["first", "gaps"]:
        for f in (floats, indices):
            check(f, laid_out(*shape, layout=layout))
            torch._dynamo.reset()
    halves = rank < 3  # eager has no avg_pool3d of halves
    for dtype in FLOATS[1:] if halves else FLOATS[1:2]:
        check(floats, laid_out(*shape, dtype=dtype))
        torch._dynamo.reset()
    check(indices, laid_out(*shape, dtype=torch.bfloat16))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8])
def test_pools_of_integers(dtype):
    x = torch.randint(0, 100, (2, 3, 8, 9)).to(dtype)
    check(lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True), x)
    if dtype is torch.int64:
        check(lambda x: F.avg_pool2d(x - 50, 2), x)


def test_max_pool_keeps_nan_and_infinity():
    x = torch.randn(1, 2, 6, 40)
    x[0, 0, 2, 3], x[0, 1, :, ::3], x[0, 0, 5, 7] = torch.nan, -torch.inf, torch.inf
    check(lambda x: F.max_pool2d(x, 3, 1, 1), x)
    check(lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True), x)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample(mode, padding):
    def f(x, grid):
        return tuple(F.grid_sample(x, grid, mode, padding, align) for align in (False, True))

    grid = torch.randn(2, 4, 35, 2)
    for layout in LAYOUTS:
        check(f, laid_out(2, 3, 5, 7, layout=layout), grid)
        torch._dynamo.reset()
    check(f, laid_out(2, 3, 5, 7).double(), grid.double())
    check(f, torch.randn(2, 3, 1, 1), grid)
    if mode != "bicubic":
        check(f, torch.randn(2, 3, 4, 5, 6), torch.randn(2, 3, 2, 4, 3))


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("size", [(2, 3, 1, 5), (2, 3, 4, 1), (1, 1, 1, 1), (2, 1, 3, 1, 4)])
def test_affine_grid_with_a_side_of_one(size, align_corners):
    """PyTorch's decomposition makes such a side a constant, which AOTAutograd refuses."""
    rank = len(size) - 2
    theta = torch.randn(size[0], rank, rank + 1)
    check(lambda t: F.affine_grid(t, size, align_corners=align_corners), theta, native=False)


def test_affine_grid_and_sample_with_dynamic_sizes():
    def f(theta, x):
        grid = F.affine_grid(theta, x.shape, align_corners=False)
        return F.grid_sample(x, grid, align_corners=False)

    compiled = toroid(f, dynamic=True)
    for h, w in ((5, 6), (9, 3)):
        theta, x = torch.randn(2, 2, 3), torch.randn(2, 3, h, w)
        assert_same(compiled(theta, x), f(theta, x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("index", [torch.int64, torch.int32])
def test_embedding_bag(mode, index):
    offsets = torch.tensor([0, 3, 3, 7], dtype=index)
    indices = torch.randint(0, 20, (12,), dtype=index)

    def f(w, i, o):
        return (
            F.embedding_bag(i, w, o, mode=mode),
            F.embedding_bag(i, w, o, mode=mode, padding_idx=2),
            F.embedding_bag(i[:7], w, o, mode=mode, include_last_offset=True),
            F.embedding_bag(i.view(3, 4), w, mode=mode, padding_idx=-1),
        )

    for dtype in FLOATS:
        check(f, torch.randn(20, 19).to(dtype), indices, offsets)
        torch._dynamo.reset()


def test_embedding_bag_with_weights_of_its_samples():
    def f(w, i, s):
        return F.embedding_bag(i, w, per_sample_weights=s, mode="sum")

    check(f, torch.randn(20, 5), torch.randint(0, 20, (3, 4)), torch.randn(3, 4))


def test_embedding_bag_out_of_range():
    f = toroid(lambda w, i: F.embedding_bag(i, w))
    with pytest.raises((IndexError, RuntimeError), match="out of range"), torch.no_grad():
        f(torch.randn(3, 4), torch.tensor([[0, 3]]))


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular", "constant"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_pads(mode, rank):
    x = torch.randn((2, 3, 5, 6, 7)[: rank + 2])

    def f(x):
        negative = () if mode == "reflect" and rank == 3 else (F.pad(x, (-1, 2) * rank, mode=mode),)
        return F.pad(x, (2, 1) * rank, mode=mode), *negative

    check(f, x)
    check(f, x.bfloat16())
    check(f, x.transpose(0, 1))


def test_shuffles_and_columns():
    def f(x):
        return (
            F.pixel_shuffle(x, 2),
            F.pixel_unshuffle(x, 3),
            F.channel_shuffle(x, 4),
            F.unfold(x, (2, 3), dilation=2, padding=1, stride=(1, 2)),
            F.fold(F.unfold(x, 3, padding=1), x.shape[2:], 3, padding=1),
        )

    # of channels-last, FakeTensor promises other strides for channel_shuffle than eager gives
    for layout in ("first", "gaps"):
        check(f, laid_out(2, 8, 6, 9, layout=layout))
        torch._dynamo.reset()


def _random_conv(draw):
    d, transposed, groups = draw.randint(1, 3), draw.random() < 0.4, draw.choice([1, 1, 2, 3])
    c_in, c_out = groups * draw.randint(1, 5), groups * draw.randint(1, 5)
    kernel = [draw.randint(1, (7, 4, 3)[d - 1]) for _ in range(d)]
    stride, dilation = ([draw.randint(1, 3) for _ in range(d)] for _ in range(2))
    padding = [draw.randint(0, 3) for _ in range(d)]
    extra = [draw.randint(0, max(s, q) - 1) for s, q in zip(stride, dilation, strict=True)]
    sizes = [draw.randint(1, (40, 14, 8)[d - 1]) for _ in range(d)]
    x = torch.randn(draw.randint(1, 3), c_in, *sizes)
    if d > 1 and draw.random() < 0.4:
        x = x.to(memory_format=torch.channels_last if d == 2 else torch.channels_last_3d)
    bias = torch.randn(c_out) if draw.random() < 0.5 else None
    if transposed:
        w, op = torch.randn(c_in, c_out // groups, *kernel), getattr(F, f"conv_transpose{d}d")
        return lambda: op(x, w, bias, stride, padding, extra, groups, dilation)
    w, op = torch.randn(c_out, c_in // groups, *kernel), getattr(F, f"conv{d}d")
    return lambda: op(x, w, bias, stride, padding, dilation, groups)


def test_random_convolutions():
    """Ten at a time in one graph; those that eager refuses are drawn again."""
    draw = random.Random(1)
    for _ in range(4):
        torch._dynamo.reset()
        calls = []
        while len(calls) < 10:
            call = _random_conv(draw)
            try:
                call()
            except RuntimeError:
                continue
            calls.append(call)

        def f(calls=tuple(calls)):
            return tuple(call() for call in calls)

        with torch.no_grad():
            found, got = reports(toroid(f))
        assert not any(r.externals or r.fallback for r in found)
        for a, b in zip(got, f(), strict=True):
            assert a.shape == b.shape
            assert torch.allclose(a, b, rtol=1e-4, atol=1e-4)


# ------------------------------------------------------------------ gradients of max pools


@pytest.mark.parametrize(
    ("pool", "shape", "arguments"),
    [
        (F.max_pool2d, (2, 3, 9, 8), {"kernel_size": 2}),
        (F.max_pool2d, (2, 3, 9, 8), {"kernel_size": 3, "stride": 1, "padding": 1}),
        (F.max_pool2d, (2, 3, 9, 8), {"kernel_size": 2, "stride": (2, 1), "dilation": 2}),
        (F.max_pool2d, (3, 7, 7), {"kernel_size": 3, "stride": 2, "ceil_mode": True}),
        (F.max_pool3d, (2, 3, 6, 5, 4), {"kernel_size": 2, "stride": 1}),
        (F.max_pool3d, (3, 6, 5, 4), {"kernel_size": 2}),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_max_pool_gradients(pool, shape, arguments, dtype):
    def gradient(function):
        # Small integers: equal maxima, and sums that are exact in any order.
        x = torch.randint(-3, 3, shape, generator=torch.Generator().manual_seed(1)).to(dtype)
        x.requires_grad_()
        y = function(x)
        y.backward(torch.arange(y.numel(), dtype=dtype).view(y.shape) % 7)
        return x.grad

    found, got = reports(gradient, toroid(lambda x: pool(x, **arguments)))
    assert_same(got, gradient(lambda x: pool(x, **arguments)))
    assert [r.kind for r in found] == ["forward", "backward"]
    assert not any(r.externals or r.fallback for r in found)


class Padded(torch.nn.Module):
    """Constant padding, then what reads it."""

    def __init__(self, pad, value, reader):
        super().__init__()
        self.pad, self.value, self.reader = pad, value, reader

    def forward(self, x):
        return self.reader(F.pad(x, self.pad, value=self.value))


def padding_steps(model, *args, dynamic=None):
    """Compares with eager; how many steps pad."""
    model.eval()
    with torch.no_grad():
        found, got = reports(toroid(model, dynamic=dynamic), *args)
        assert_same(got, model(*args), rtol=1e-4, atol=1e-5)
    assert not any(r.externals or r.fallback for r in found), str(found[0])
    return sum(" pad" in line for line in found[0].tables()["steps"].splitlines())


@pytest.mark.parametrize("seed", range(40))
def test_convolutions_pad_themselves(seed):
    r = random.Random(seed)
    spatial, groups = r.choice([1, 2, 2, 3]), r.choice([1, 1, 2, 4, 24])
    kernel = [r.choice([1, 2, 3, 5]) for _ in range(spatial)]
    conv = [torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d][spatial - 1](
        24,
        r.choice([24, 48]),
        kernel,
        stride=r.choice([1, 2, 3]),
        padding=r.choice([0, 0, 1, 2]),
        dilation=r.choice([1, 1, 2]),
        groups=groups,
    )
    pad = [r.choice([0, 1, 2, 4]) for _ in range(2 * spatial)]
    x = torch.randn(2, 24, *(r.choice([9, 10, 13]) for _ in kernel))
    if spatial == 2 and r.random() < 0.5:
        x = x.contiguous(memory_format=torch.channels_last)
    assert padding_steps(Padded(pad, 0.0, conv), x, dynamic=r.choice([None, True])) == 0


@pytest.mark.parametrize(
    ("pad", "value", "pool", "folds"),
    [
        ((1, 0, 0, 1), float("-inf"), torch.nn.MaxPool2d(3, 2), True),
        ((1, 1, 1, 1), float("-inf"), torch.nn.MaxPool2d(3, 1, padding=1), False),
        ((0, 1, 0, 1), 0.0, torch.nn.MaxPool2d(3, 2), False),
        ((0, 1, 0, 1), float("-inf"), torch.nn.MaxPool2d(3, 2, ceil_mode=True), False),
        ((0, 1, 1, 1), float("-inf"), torch.nn.MaxPool2d(3, 2, return_indices=True), False),
        ((0, 1, 1, 0), 0.0, torch.nn.AvgPool2d(3, 2), True),
        ((0, 1, 1, 0), 0.0, torch.nn.AvgPool2d(3, 2, count_include_pad=False), True),
        ((1, 2, 2, 1), 0.0, torch.nn.AvgPool2d(5, 2, padding=(0, 1)), False),
        ((1, 1, 1, 1), 0.0, torch.nn.AvgPool2d(5, 2, padding=1), True),
        ((1, 1, 1, 1), 0.0, torch.nn.AvgPool2d(5, 2, padding=1, count_include_pad=False), False),
        ((1, 1, 0, 1), 0.0, torch.nn.AvgPool2d(3, 1, divisor_override=7), True),
        ((1, 1, 1, 1), 1.0, torch.nn.AvgPool2d(3, 1), False),
    ],
)
@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_pools_pad_themselves(pad, value, pool, folds, dynamic, layout):
    x = laid_out(2, 16, 11, 12, layout=layout) - 1
    assert (padding_steps(Padded(pad, value, pool), x, dynamic=dynamic) == 0) == folds


def test_a_pad_that_cuts_stays():
    conv = torch.nn.Conv2d(4, 4, 3, padding=1)
    assert padding_steps(Padded((1, -1, 0, 0), 0.0, conv), torch.randn(1, 4, 9, 9)) > 0
    assert padding_steps(Padded((1, 1, 0, 0), 0.5, conv), torch.randn(1, 4, 9, 9)) > 0
    assert padding_steps(Padded((0, 0, 0, 0, 1, 1), 0.0, conv), torch.randn(1, 2, 9, 9)) > 0


class Depthwise(torch.nn.Module):
    """A depthwise convolution, and an activation that its kernel takes in."""

    def __init__(self, r):
        super().__init__()
        kernel = (r.choice([1, 3, 5, 7]), r.choice([3, 5, 7]))
        stride = (r.choice([1, 2, 3]), r.choice([1, 2]))
        padding = [r.choice([0, 1, k // 2]) for k in kernel]
        channels = r.choice([3, 16, 40, 96, 200])
        self.conv = torch.nn.Conv2d(
            channels, channels, kernel, stride, padding, groups=channels, bias=r.random() < 0.7
        )
        self.act = r.choice(
            [
                torch.nn.Identity(),
                torch.nn.ReLU6(),
                torch.nn.ReLU(),
                torch.nn.SiLU(),
                torch.nn.Hardswish(),
                torch.nn.Hardtanh(-0.1, 0.2),
            ]
        )

    def forward(self, x):
        return self.act(self.conv(x))


@pytest.mark.parametrize("seed", range(40))
def test_depthwise(seed):
    r = random.Random(seed)
    model = Depthwise(r).eval()
    kernel = model.conv.kernel_size
    size = [r.choice([3, 7, 8, 15, 33]) + k - 1 for k in kernel]
    x = laid_out(r.choice([1, 3]), model.conv.in_channels, *size, layout=r.choice(LAYOUTS))
    x[0, 0, 0, 0] = r.choice([1.0, float("nan"), float("inf")])
    assert padding_steps(model, x, dynamic=r.choice([None, True])) == 0

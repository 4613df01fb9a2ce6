"""Matrix products, convolutions and attention in every type that eager has them in.

All run under `strict`, so an external node or a fallback is a failure. Integers must be eager's to
the bit; what wraps in eager wraps here. Halves may differ by their last places, which a result
close to zero does not have, so they are compared on the scale of all.
"""

import pytest
import torch
import torch.nn.functional as F
from support import toroid
from toroid.report import explain

HALVES = [torch.bfloat16, torch.float16]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
TYPES = [torch.float64, *HALVES, *INTEGERS]
PLACES = {torch.float64: 2**-46, torch.bfloat16: 2**-7, torch.float16: 2**-10}


@pytest.fixture(autouse=True)
def no_grad():
    torch.manual_seed(0)
    with torch.no_grad():
        yield


def data(dtype, *shape):
    if dtype.is_floating_point:
        return torch.randn(shape, dtype=torch.float64).to(dtype)
    return torch.randint(-1000, 1000, shape).to(dtype)


def near(got, want):
    assert (got.dtype, got.shape, got.stride()) == (want.dtype, want.shape, want.stride())
    if not want.is_floating_point():
        assert torch.equal(got, want)
    elif want.numel():
        scale = want.abs().max().item()
        assert (got.double() - want.double()).abs().max() <= 2 * PLACES[want.dtype] * scale


def check(f, *args, modes=(False, True)):
    want = f(*args)
    for dynamic in modes:
        torch._dynamo.reset()
        got = toroid(f, dynamic=dynamic, fullgraph=True, options={"strict": True})(*args)
        for a, b in zip(got, want, strict=True):
            near(a, b)


@pytest.mark.parametrize("dtype", TYPES)
def test_products(dtype):
    def f(a, b, wide, tall, batch, other, v):
        return (
            a @ b,
            a.t() @ b.t()[:3],
            wide @ tall.t(),
            wide[::2, 1::2] @ tall[:, 1::2].t(),
            F.linear(batch, b.t(), b[0]),
            F.linear(a[:0], b.t()),
            F.linear(a[:1], b.t(), b[1]),
            F.linear(a[:, :0], b.t()[:, :0], b[0]),
            torch.bmm(batch, other),
            torch.matmul(batch.unsqueeze(1), other.unsqueeze(0)),
            torch.mv(a, v),
            torch.dot(v, b[:, 0]),
            torch.outer(v, a[0]),
        )

    check(
        f,
        data(dtype, 3, 4),
        data(dtype, 4, 5),
        data(dtype, 33, 300),
        data(dtype, 65, 300),
        data(dtype, 2, 3, 4),
        data(dtype, 2, 4, 5),
        data(dtype, 4),
    )


@pytest.mark.parametrize("dtype", TYPES)
def test_sums_with_alpha_and_beta(dtype):
    def f(s, a, b, batches, x, y):
        return (
            torch.addmm(s, a, b, beta=2, alpha=3),
            torch.addmm(s[0], a, b, beta=3, alpha=2),
            torch.addmm(s, a, b, beta=0, alpha=3),
            torch.addmm(s[1], a, b),
            torch.baddbmm(batches, x, y, beta=2, alpha=3),
            torch.addmv(s[:, 0], a, b[:, 0], beta=2, alpha=3),
            torch.addr(s, a[:, 0], b[0], beta=2, alpha=3),
        )

    check(
        f,
        data(dtype, 3, 5),
        data(dtype, 3, 4),
        data(dtype, 4, 5),
        data(dtype, 2, 3, 5),
        data(dtype, 2, 3, 4),
        data(dtype, 2, 4, 5),
    )


@pytest.mark.parametrize("dtype", [torch.float64, *INTEGERS])
def test_addbmm(dtype):
    def f(s, x, y):
        return (torch.addbmm(s, x, y, beta=2, alpha=3),)

    check(f, data(dtype, 3, 5), data(dtype, 2, 3, 4), data(dtype, 2, 4, 5))


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64])
def test_fractional_factors_of_integers(dtype):
    """Eager drops the fraction."""

    def f(s, a, b):
        return (torch.addmm(s, a, b, beta=1.5, alpha=2.5),)

    check(f, data(dtype, 3, 5), data(dtype, 3, 4), data(dtype, 4, 5))


def test_int8_wraps():
    a = torch.full((1, 4), 100, dtype=torch.int8)
    got = toroid(torch.mm, options={"strict": True})(a, a.t().contiguous())
    assert got.item() == 40000 % 256 - 256 * (40000 % 256 > 127) == 64


@pytest.mark.parametrize("dtype", TYPES)
def test_convolutions(dtype):
    full = dtype.is_floating_point or dtype == torch.int64

    def f(x, w, depth, bias, line, cube, kernel):
        results = [
            F.conv2d(x, w, bias, stride=2, padding=1),
            F.conv2d(x.contiguous(memory_format=torch.channels_last), w),
            F.conv2d(x, depth, groups=4),
            F.conv1d(line, w[..., 0], bias, padding=2),
            F.conv3d(cube, kernel),
            F.conv2d(x[0], w, bias),
        ]
        if full:
            up = w.transpose(0, 1)
            results += [
                F.conv2d(x, w, bias, dilation=2),
                F.conv_transpose2d(x, up, bias, stride=2, padding=1, output_padding=1),
                F.conv_transpose2d(x, depth[:4], groups=4),
            ]
        return results

    check(
        f,
        data(dtype, 2, 4, 9, 8),
        data(dtype, 6, 4, 3, 3),
        data(dtype, 8, 1, 3, 3),
        data(dtype, 6),
        data(dtype, 2, 4, 9),
        data(dtype, 1, 2, 4, 5, 6),
        data(dtype, 3, 2, 2, 2, 2),
        modes=[False],
    )


@pytest.mark.parametrize("dtype", [torch.float64, *HALVES])
def test_attention(dtype):
    wide = torch.promote_types(dtype, torch.float32)  # where models of half types have softmax

    def f(q, k, v, added):
        return (
            F.scaled_dot_product_attention(q, k, v),
            F.scaled_dot_product_attention(q, k, v, is_causal=True),
            F.scaled_dot_product_attention(q, k, v, added),
            F.scaled_dot_product_attention(q, k, v, added > -0.5),
            torch.softmax((q @ k.mT) * 0.25 + added, -1) @ v,
            torch.softmax((q @ k.mT) * 0.25, -1, dtype=wide).to(q.dtype) @ v,
        )

    heads = [data(dtype, 2, 3, n, 16) for n in (5, 7, 7)]
    check(f, *heads, data(dtype, 2, 1, 5, 7), modes=[False])


@pytest.mark.parametrize("dtype", [torch.float64, *HALVES])
def test_a_weight_that_changes(dtype):
    """A frozen weight is packed, or cast, again when it is written."""
    layer = torch.nn.Linear(24, 40).to(dtype)
    compiled = toroid(layer, options={"strict": True})
    x = data(dtype, 5, 24)
    for _ in range(3):
        near(compiled(x), layer(x))
        layer.weight.mul_(1.5)
        layer.bias.add_(1)


@pytest.mark.parametrize("dynamic", [False, True])
def test_only_the_rows_that_are_asked_for(dynamic):
    """A head whose last row alone is used makes that row, and equals eager's."""
    torch.manual_seed(0)
    head = torch.nn.Linear(32, 300)

    def f(x):
        return torch.tanh(head(torch.relu(x)) / 30)[:, -1] * 30

    torch._dynamo.reset()
    compiled = torch.compile(f, backend="toroid", options={"strict": True}, dynamic=dynamic)
    with torch.no_grad():
        for length in (9, 2, 1, 40):
            x = torch.randn(3, length, 32)
            torch.testing.assert_close(compiled(x), f(x))
        steps = explain(f, torch.randn(3, 9, 32)).graphs[0].tables()["steps"]
    assert "float32[3, 1, 300]" in steps and "float32[3, 9, 300]" not in steps

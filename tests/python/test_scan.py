"""Running sums, products, extremes and log-sum-exps: eager's answers, all native."""

import pytest
import torch
from support import assert_native, assert_same, toroid

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]


def numbers(dtype, *shape):
    torch.manual_seed(0)
    if dtype.is_floating_point:
        return (torch.rand(shape) + 0.5).to(dtype)
    return torch.randint(0, 2 if dtype == torch.bool else 5, shape).to(dtype)


def layouts(x):
    """The same kind of tensor: row-major, transposed, with gaps, and broadcast."""
    return [x, x.transpose(0, -1), x[:, 1::2], x[:1].expand(4, *x.shape[1:])]


def tolerances(dtype):
    half = dtype in (torch.float16, torch.bfloat16)
    return {"rtol": 1e-2 if half else 1e-5, "atol": 1e-3 if half else 1e-6}


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, torch.bool])
def test_sums_and_products(dtype):
    def f(*xs):
        return [(x.cumsum(0), x.cumsum(-1), x.cumprod(0), x.cumprod(1)) for x in xs]

    assert_native(f, *layouts(numbers(dtype, 7, 11)), **tolerances(dtype))


def test_halves_add_in_float():
    x = torch.rand(3, 500).to(torch.bfloat16)
    got = assert_native(lambda x: (x.cumsum(1), x.t().cumsum(0)), x, rtol=0, atol=0)
    assert torch.equal(got[0], x.float().cumsum(1).to(torch.bfloat16))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_narrow_sums_wrap(dtype):
    x = numbers(dtype, 3, 40) * 20

    def f(x):
        return x.cumsum(1, dtype=x.dtype), x.cumprod(1, dtype=x.dtype), x.cumsum(1)

    assert_native(f, x)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, torch.bool])
def test_extremes(dtype):
    def f(*xs):
        return [(x.cummax(0), x.cummin(-1), x.cummax(1)[0], x.cummin(0)[1]) for x in xs]

    x = numbers(dtype, 7, 11)
    if dtype.is_floating_point:
        x[2, 3:5] = float("nan")
        x[5, 3] = float("nan")
        x[1, 1], x[3, 1] = -0.0, 0.0
    assert_native(f, *layouts(x))


@pytest.mark.parametrize("dtype", FLOATS)
def test_logcumsumexp(dtype):
    inf = float("inf")
    x = numbers(dtype, 5, 9)
    x[1, :3] = -inf
    x[2, 4] = inf
    x[3, 5] = float("nan")

    def f(*xs):
        return [(x.logcumsumexp(0), x.logcumsumexp(-1)) for x in xs]

    assert_native(f, *layouts(x), **tolerances(dtype))


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0), (0, 3), (1, 1, 4)])
def test_small_shapes(shape):
    x = torch.randn(shape)

    def f(x):
        return x.cumsum(0), x.cumprod(-1), x.cummax(-1), x.cummin(0), x.logcumsumexp(0)

    assert_native(f, x)


def test_many_lanes():
    x = torch.rand(3, 130, 70)
    assert_native(lambda x: [(x.cumsum(d), x.cummin(d)) for d in range(3)], x)


def test_dynamic_shapes():
    torch._dynamo.reset()

    def f(x):
        return x.cumsum(0), x.cumprod(1), x.cummax(-1), x.logcumsumexp(0)

    compiled = toroid(f, dynamic=True, fullgraph=True)
    for rows, columns in [(3, 4), (30, 8), (2, 70)]:
        x = torch.rand(rows, columns)
        assert_same(compiled(x), f(x))


def test_logcumsumexp_of_integers_raises():
    x = torch.arange(4)
    for f in (lambda x: x.logcumsumexp(0), toroid(lambda x: x.logcumsumexp(0))):
        with pytest.raises(RuntimeError):
            f(x)

"""Sorting, order statistics, and binary search: eager's answers, all native."""

import pytest
import torch
from support import assert_native, assert_same, reports, toroid

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
NUMBERS = FLOATS + INTEGERS


def numbers(dtype, *shape):
    """Few different values, so that there are ties; both zeros, infinities and NaN in floats."""
    torch.manual_seed(0)
    x = torch.randint(0, 2 if dtype == torch.bool else 9, shape)
    if not dtype.is_floating_point:
        return x.to(dtype)
    special = torch.tensor([0.0, -0.0, 1.5, -2, 3, float("nan"), float("inf"), -float("inf"), 7])
    return special[x].to(dtype)


def distinct(dtype, *shape):
    torch.manual_seed(0)
    count = torch.Size(shape).numel()
    return torch.randperm(count).reshape(shape).to(dtype)


def layouts(x):
    """The same kind of tensor: row-major, transposed, with gaps, and broadcast."""
    return [x, x.transpose(0, -1), x[:, 1::2], x[:1].expand(4, *x.shape[1:])]


@pytest.mark.parametrize("dtype", [*NUMBERS, torch.bool])
def test_stable_sorts(dtype):
    def f(x):
        return (
            *torch.sort(x, dim=0, stable=True),
            *torch.sort(x, dim=-1, descending=True, stable=True),
            torch.argsort(x, dim=1, stable=True),
            torch.msort(x),
        )

    assert_native(lambda *xs: [f(x) for x in xs], *layouts(numbers(dtype, 5, 37)))


@pytest.mark.parametrize("dtype", NUMBERS)
def test_sort_and_topk_of_distinct_values(dtype):
    def f(x):
        return (
            *torch.sort(x, descending=True),
            *torch.topk(x, 3),
            *torch.topk(x, 2, dim=0, largest=False),
            *torch.kthvalue(x, 4),
            *torch.kthvalue(x, 2, dim=0, keepdim=True),
        )

    # Without the broadcast layout, which has ties.
    assert_native(lambda *xs: [f(x) for x in xs], *layouts(distinct(dtype, 8, 12))[:3])


@pytest.mark.parametrize("dtype", NUMBERS)
def test_ties_give_values_and_their_positions(dtype):
    def f(x):
        return (
            torch.topk(x, 5),
            torch.topk(x, 5, largest=False),
            torch.topk(x, 7, sorted=False),
            torch.kthvalue(x, 9, keepdim=True),
            torch.median(x, 1, keepdim=True),
            torch.nanmedian(x, 1, keepdim=True),
        )

    x = numbers(dtype, 6, 40)
    found, got = reports(toroid(f), x)
    assert not any(r.externals or r.fallback for r in found)
    for i, (ours, theirs) in enumerate(zip(got, f(x), strict=True)):
        want = theirs[0]
        if i == 2:  # in any order
            want, mine = want.sort(stable=True)[0], ours[0].sort(stable=True)[0]
        else:
            mine = ours[0]
        assert_same(mine, want, path=f"values of result {i}")
        assert_same(x.gather(1, ours[1]), ours[0], path=f"positions of result {i}")


@pytest.mark.parametrize("dtype", NUMBERS)
def test_medians(dtype):
    def f(x):
        return (
            torch.median(x),
            torch.nanmedian(x),
            torch.median(x, 0)[0],
            torch.nanmedian(x, -1)[0],
        )

    # Without the broadcast layout: eager's median along an expanded dim overwrites its own input.
    x = numbers(dtype, 5, 9)
    assert_native(lambda *xs: [f(x) for x in xs], *layouts(x)[:3], distinct(dtype, 4, 6))


def test_median_positions_of_nan():
    nan = float("nan")
    x = torch.tensor([[3.0, nan, 1, nan], [1, nan, nan, nan], [4, 3, 2, 1]])
    got = assert_native(lambda x: (torch.median(x, 1), torch.nanmedian(x, 1)), x)
    assert got[0][1].tolist() == [1, 1, 2]
    assert got[1][1].tolist() == [2, 0, 2]
    assert assert_native(lambda x: torch.nanmedian(x[1, 1:], 0)[0], x).isnan()


@pytest.mark.parametrize("dtype", [*INTEGERS, torch.float32, torch.bfloat16, torch.bool])
def test_mode(dtype):
    x = torch.tensor([[1, 0, 1, 0, 1], [3, 2, 2, 3, 1], [5, 4, 3, 2, 1]]).to(dtype)
    assert_native(lambda x: (torch.mode(x), torch.mode(x, 0, keepdim=True)[0]), x)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0), (0, 3), (1, 1, 4)])
def test_small_shapes(shape):
    x = torch.randn(shape)

    def f(x):
        return (*torch.sort(x, stable=True), *torch.topk(x, min(1, x.shape[-1] if x.dim() else 1)))

    assert_native(f, x)
    if x.numel():
        assert_native(lambda x: (*torch.median(x, -1), *torch.kthvalue(x, 1), *torch.mode(x)), x)


@pytest.mark.parametrize("n", [15, 16, 17, 255, 256, 257, 1023, 1025, 5000])
def test_lengths(n):
    torch.manual_seed(n)
    x, y = torch.randn(2, n), torch.randint(-(2**62), 2**62, (2, n))
    k = min(n, 300)
    assert_native(lambda x: (*torch.sort(x), *torch.topk(x, k), *torch.kthvalue(x, n // 2)), x)
    assert_native(lambda y: (*torch.sort(y), *torch.topk(y, k, largest=False)), y)


def test_dynamic_shapes():
    torch._dynamo.reset()

    def f(x):
        return (*torch.sort(x, 0), *torch.topk(x, x.shape[1] // 2), torch.median(x))

    compiled = toroid(f, dynamic=True, fullgraph=True)
    for rows, columns in [(3, 4), (30, 8), (2, 70)]:
        x = torch.randperm(rows * columns).reshape(rows, columns).float()
        assert_same(compiled(x), f(x))


def test_wrong_calls_raise_as_in_eager():
    x = torch.randn(3, 4)
    for f in [
        lambda x: torch.topk(x, 5),
        lambda x: torch.kthvalue(x, 0),
        lambda x: torch.kthvalue(x[:0], 1, 0),
        lambda x: torch.median(x > 0, 1),
        lambda x: torch.sort(x, 2),
    ]:
        with pytest.raises(Exception):  # noqa: B017
            f(x)
        with pytest.raises(Exception):  # noqa: B017
            toroid(f)(x)


# ------------------------------------------------------------------ binary search


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("right", [False, True])
def test_searchsorted(dtype, right):
    values = torch.randint(0, 12, (3, 7)).to(dtype)
    lines = torch.randint(0, 12, (3, 9)).sort()[0].to(dtype)

    def f(lines, values):
        return (
            torch.searchsorted(lines, values, right=right),
            torch.searchsorted(lines[0], values, right=right, out_int32=True),
            torch.bucketize(values, lines[1], right=right),
        )

    assert_native(f, lines, values)
    assert_native(f, lines.t().contiguous().t(), values.t().contiguous().t())


def test_searchsorted_of_nan_side_sorter_and_numbers():
    nan = float("nan")
    x = torch.tensor([1.0, 2, nan, nan])
    values = torch.tensor([0.5, 2, 3, nan])
    unsorted = torch.tensor([3.0, 1, 2])

    def f(x, values, unsorted):
        return (
            torch.searchsorted(x, values),
            torch.searchsorted(x, values, side="right"),
            torch.searchsorted(unsorted, values, sorter=torch.argsort(unsorted)),
            torch.searchsorted(x, 1.5),
            torch.bucketize(2.0, x, right=True),
        )

    assert_native(f, x, values, unsorted)
    assert_native(lambda x: torch.searchsorted(x, x[:0]), x)
    assert_native(lambda x: torch.searchsorted(x[:0], x), x)

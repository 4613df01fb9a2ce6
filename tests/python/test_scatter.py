"""Writes to computed places: eager's answers, all native."""

import pytest
import torch
from support import assert_native, assert_same, toroid

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
REDUCES = ["sum", "prod", "mean", "amax", "amin"]


def numbers(dtype, *shape, seed=0):
    torch.manual_seed(seed)
    if dtype.is_floating_point:
        return (torch.rand(shape) * 2 - 0.7).to(dtype)
    return torch.randint(0, 2 if dtype == torch.bool else 7, shape).to(dtype)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_scatter_reduce(dtype):
    x, src = numbers(dtype, 5, 7), numbers(dtype, 6, 9, seed=1)
    index = torch.randint(0, 5, (4, 6))  # smaller than both, with duplicates

    def f(x, index, src):
        return [
            x.scatter_reduce(dim, index, src, reduce, include_self=own)
            for reduce in REDUCES
            for own in (True, False)
            for dim in (0, 1)
        ]

    half = dtype in (torch.float16, torch.bfloat16)
    assert_native(f, x, index, src, rtol=0 if half else 1e-5, atol=0 if half else 1e-6)
    assert_native(f, x.t(), index.t(), src.t())


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, torch.bool])
def test_scatter_and_add(dtype):
    x, src = numbers(dtype, 5, 7), numbers(dtype, 5, 7, seed=1)
    index = torch.stack([torch.randperm(7)[:6] for _ in range(5)])
    number = True if dtype == torch.bool else 3

    def f(x, index, src):
        return (
            x.scatter(1, index, src),
            x.scatter(-1, index, number),
            x.scatter_add(1, index, src),
            x.scatter_add(0, index % 5, src),
        )

    assert_native(f, x, index, src, rtol=0, atol=0)
    assert_native(f, x[:, :7:1].t().contiguous().t(), index, src.t().contiguous().t())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32])
def test_scatter_with_reduce(dtype):
    def f(x, index, src):
        return (
            x.scatter(1, index, src, reduce="add"),
            x.scatter(1, index, src, reduce="multiply"),
            x.scatter(0, index, 2, reduce="multiply"),
            x.scatter(0, index, 3, reduce="add"),
        )

    index = torch.randint(0, 4, (4, 6))
    assert_native(f, numbers(dtype, 4, 6), index, numbers(dtype, 4, 6, seed=1))


def test_nan_wins_extremes():
    nan = float("nan")
    x = torch.tensor([nan, 1.0, 2, 3])
    src = torch.tensor([5.0, nan, 0, 7])
    index = torch.tensor([0, 1, 1, 3])

    def f(x, index, src):
        return [
            x.scatter_reduce(0, index, src, reduce, include_self=own)
            for reduce in ("amax", "amin")
            for own in (True, False)
        ]

    assert_native(f, x, index, src)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.int8])
def test_index_reduce_add_copy_and_fill(dtype):
    x, source = numbers(dtype, 5, 6), numbers(dtype, 5, 4, seed=1)
    index, places = torch.tensor([0, 3, 3, 5]), torch.tensor([4, 0, 2, 1])

    def f(x, index, places, source):
        return [
            *(
                x.index_reduce(1, index, source, reduce, include_self=own)
                for reduce in REDUCES[1:]
                for own in (True, False)
            ),
            x.index_copy(1, places, source),
            x.index_fill(0, places, 3),
        ]

    assert_native(f, x, index, places, source, rtol=0, atol=0)
    assert_native(
        lambda x, index, source: (
            x.index_add(1, index, source),
            x.index_add(-1, index, source, alpha=2),
            x.index_add(0, index[:3], source[:3, :1].expand(3, 6)),
        ),
        x,
        index,
        source,
        rtol=1e-2 if dtype == torch.bfloat16 else 1e-5,
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int16, torch.bool])
def test_put_take_and_masks(dtype):
    x, source = numbers(dtype, 4, 5), numbers(dtype, 6, seed=1)
    index = torch.tensor([[0, -1, 7], [7, 12, -20]])
    unique = torch.tensor([3, -1, 7, 0, 12, 5])
    mask = torch.rand(4, 5) > 0.7

    def f(x, index, unique, source, mask):
        return (
            x.put(unique, source),
            x.put(index, source.view(2, 3), accumulate=True),
            x.take(index),
            torch.take_along_dim(x, unique[:5].abs()[None] % 4, 0),
            x.masked_fill(mask, 1),
            x.masked_scatter(mask, x.flip(0)),
            x.masked_scatter(mask[0], x),
            torch.index_put(x, (mask,), x.new_tensor(1)),
            torch.index_put(x, (index % 4, index % 5), source.view(2, 3), accumulate=True),
        )

    assert_native(f, x, index, unique, source, mask)
    assert_native(f, x.t().contiguous().t(), index, unique, source, mask.t().contiguous().t())


def test_diagonals_and_windows():
    def f(x):
        return (
            *(x.diagonal(offset) * 1 for offset in (-2, 0, 1)),
            *(x.diagonal(offset).sum(-1) for offset in (-9, -4, 5, 9)),
            x.diagonal(1, 2, 0) + 1,
            x.mT.diagonal(0, -1, 1).sum(0),
            torch.diagonal_scatter(x, x[:, 0, :5], 0, 1, 2),
            torch.diagonal_scatter(x, x[0, :4, 1].expand(6, 4), -1, 1, 0),
            torch.diag_embed(x[0], 1),
            x.unfold(1, 3, 2) * 2,
            x.unfold(-1, 6, 1).sum(-1),
            x[:, ::2].unfold(0, 2, 3).mean(0),
            x.tril(1),
            x.triu(-1),
        )

    torch.manual_seed(0)
    assert_native(f, torch.randn(4, 5, 6))
    assert_native(f, torch.randn(6, 5, 4).permute(2, 1, 0))


def test_diagonals_and_windows_as_outputs():
    x = torch.randn(4, 6)
    assert_native(lambda x: (x.diagonal(1), x.unfold(1, 3, 2)), x)
    assert_native(lambda x: (x.relu().diagonal(), x.abs().unfold(0, 2, 1)), x)


def test_diagonals_and_windows_of_dynamic_shapes():
    torch._dynamo.reset()

    def f(x):
        return (
            x.diagonal(-1) * 2,
            x.unfold(0, 2, 2) + 1,
            torch.diagonal_scatter(x, x[0, : min(x.shape)]),
            x.scatter_reduce(0, x.argsort(0), x, "amax"),
        )

    compiled = toroid(f, dynamic=True, fullgraph=True)
    for rows, columns in [(3, 4), (5, 9), (4, 7)]:
        x = torch.randn(rows, columns)
        assert_same(compiled(x), f(x))


@pytest.mark.parametrize("empty", [False, True])
def test_small_shapes(empty):
    x, index = torch.randn(3, 4), torch.zeros(0 if empty else 1, 4, dtype=torch.int64)

    def f(x, index):
        return (
            x.scatter(0, index, x[: index.shape[0]]),
            x.scatter_add(0, index, x[: index.shape[0]]),
            x.scatter_reduce(0, index, x[: index.shape[0]], "mean", include_self=False),
            x.index_add(0, index[:, 0], x[: index.shape[0]]),
        )

    assert_native(f, x, index)


@pytest.mark.parametrize("bad", [-1, 4, 2**40])
def test_indices_out_of_range_raise(bad):
    x, index = torch.randn(4, 4), torch.tensor([[0, bad, 1, 2]])
    for f in (
        lambda x, index: x.scatter_reduce(0, index, x, "amax"),
        lambda x, index: x.scatter_reduce(1, index, x, "mean"),
        lambda x, index: x.index_reduce(0, index[0], x, "prod"),
        lambda x, index: x.scatter(1, index, 2.0, reduce="add"),
        lambda x, index: x.index_add(0, index[0], x),
    ):
        with pytest.raises((RuntimeError, IndexError, ValueError)):
            f(x, index)
        with pytest.raises((RuntimeError, IndexError, ValueError), match="out of range|index"):
            toroid(f)(x, index)


def test_masked_scatter_wants_enough_elements():
    x, mask = torch.randn(6), torch.ones(6, dtype=torch.bool)
    with pytest.raises((RuntimeError, IndexError, ValueError)):
        toroid(lambda x, m: x.masked_scatter(m, x[:4]))(x, mask)
    got = toroid(lambda x, m: x.masked_scatter(m, x[:4]))(x, x > 100)
    assert_same(got, x)


@pytest.mark.parametrize("lines", [0, 1, 2])
def test_a_scalar_is_a_line_of_one(lines):
    """`lines`: 0 for indices and sources that are scalars, else how long they are."""
    shape = (lines,) if lines else ()
    x, src, index = torch.tensor(3.0), torch.rand(shape) + 4, torch.zeros(shape, dtype=torch.int64)

    def f(x, index, src):
        return (
            x.gather(0, index),
            x[None].gather(0, index),
            x.scatter(-1, index, src),
            x.scatter(0, index, 2.0),
            x.scatter_add(0, index, src),
            *(x.scatter_reduce(0, index, src, r, include_self=False) for r in REDUCES),
            x.index_fill(0, index, 7.0),
        )

    def slices(x, index, src):
        return (
            x.index_copy(0, index, src),
            x.index_add(0, index, src),
            x.index_reduce(0, index, src, "amax"),
        )

    assert_native(f, x, index, src)
    if lines < 2:
        assert_native(slices, x, index, src.reshape(()))
    for call in (
        lambda x, i: x.gather(0, i + 1),
        lambda x, i: x.scatter(0, i + 1, 2.0),
        lambda x, i: x.index_add(0, i.sum() + 1, x),
        lambda x, i: x.index_fill(0, i - 2, 1.0),
    ):
        with pytest.raises((RuntimeError, IndexError)):
            call(x, index)
        with pytest.raises((RuntimeError, IndexError)):
            toroid(call)(x, index)

"""masked_fill() and where() replace scores: what a hidden key holds does not reach its queries."""

import math

import pytest
import torch
from support import toroid
from toroid.report import explain

B, H, M, N, D = 2, 4, 9, 13, 16
LEAST = torch.finfo(torch.float32).min


@pytest.fixture(autouse=True)
def no_grad():
    with torch.no_grad():
        yield


def scores(q, k):
    return (q @ k.transpose(-1, -2)) * 0.25


def filled(q, k, v, keep, fill):
    return scores(q, k).masked_fill(~keep, fill).softmax(-1) @ v


def chosen(q, k, v, keep, fill):
    return torch.where(keep, scores(q, k), fill).softmax(-1) @ v


def twice(q, k, v, keep, fill):
    """Two masks, one of them the whole of the last key."""
    last = torch.arange(k.shape[-2]) == k.shape[-2] - 1
    s = scores(q, k).masked_fill(last, fill)
    return torch.where(keep, s, fill).softmax(-1) @ v


def biased_after(q, k, v, keep, fill):
    """GPT-2: a mask is added to what was chosen."""
    s = torch.where(keep, scores(q, k), fill) + torch.arange(k.shape[-2], dtype=q.dtype) * 0.125
    return s.softmax(-1) @ v


def biased_before(q, k, v, keep, fill):
    """DeBERTa: the choice hides the bias as well."""
    s = scores(q, k) + torch.arange(k.shape[-2], dtype=q.dtype) * 0.125
    return s.masked_fill(~keep, fill).softmax(-1) @ v


def two_numbers(q, k, v, keep, fill):
    last = torch.arange(k.shape[-2]) == k.shape[-2] - 1
    s = torch.where(keep, scores(q, k), fill).masked_fill(last, -1e9)
    return s.softmax(-1) @ v


def operands(shape, dtype=torch.float32, m=M, n=N, broken=()):
    """Query 2 sees no key (in masks that have queries); keys 3 and 7 are hidden and `broken`."""
    torch.manual_seed(0)
    q, k, v = torch.randn(B, H, m, D), torch.randn(B, H, n, D), torch.randn(B, H, n, D)
    keep = torch.rand(shape) > 0.3
    keep[..., 0] = True
    if keep.shape[-2] > 1:
        keep[..., 2, :] = False
    keep[..., [3, 7]] = False
    for key, x in zip((3, 7), broken, strict=False):
        k[:, :, key, ::3] = x
    return *(x.to(dtype) for x in (q, k, v)), keep


def check(f, q, k, v, keep, fill, steps=1):
    report = explain(f, q, k, v, keep, fill, options={"strict": True})
    lines = report.graphs[0].tables()["steps"].splitlines()[1:]
    assert [line.split()[1] for line in lines].count("attention") == steps
    want = f(q, k, v, keep, fill)
    assert report.result.stride() == want.stride()
    tolerance = {"rtol": 1e-4, "atol": 1e-5}
    if q.dtype != torch.float32:
        tolerance = {"rtol": 0, "atol": 0.03}
    torch.testing.assert_close(report.result, want, equal_nan=True, **tolerance)
    return want


SPELLINGS = (filled, chosen, twice, biased_after, biased_before, two_numbers)


@pytest.mark.parametrize("fill", [-math.inf, LEAST, -1e4], ids=str)
@pytest.mark.parametrize("f", SPELLINGS, ids=lambda f: f.__name__)
def test_broken_keys_stay_hidden(f, fill):
    want = check(f, *operands((B, H, M, N), broken=(math.nan, math.inf)), fill)
    rows = torch.arange(M) != 2
    assert want[:, :, rows].isfinite().all()


@pytest.mark.parametrize("shape", [(1, H, 1, N), (B, 1, 1, N), (M, N)], ids=str)
@pytest.mark.parametrize("fill", [-math.inf, LEAST], ids=str)
@pytest.mark.parametrize("f", [filled, biased_before], ids=lambda f: f.__name__)
def test_masks_that_broadcast(f, fill, shape):
    check(f, *operands(shape, broken=(math.nan, math.inf)), fill)


@pytest.mark.parametrize("f", SPELLINGS, ids=lambda f: f.__name__)
def test_rows_that_see_no_key(f):
    """With -inf they are NaN; any number makes them a mean of all values."""
    q, k, v, keep = operands((M, N))
    assert check(filled, q, k, v, keep, -math.inf)[:, :, 2].isnan().all()
    want = check(f, q, k, v, keep, LEAST)
    assert want[:, :, 2].isfinite().all()
    if f in (filled, chosen, twice, biased_before):
        torch.testing.assert_close(want[:, :, 2], v.mean(-2))


@pytest.mark.parametrize("f", [filled, chosen], ids=lambda f: f.__name__)
def test_broken_keys_that_are_seen(f):
    """They make the rows that see them NaN, and no others."""
    q, k, v, keep = operands((M, N), broken=(math.nan, math.inf))
    keep[4, 3] = keep[5, 7] = True
    want = check(f, q, k, v, keep, LEAST)
    assert want[:, :, 4].isnan().all() and want[:, :, 6].isfinite().all()


def test_a_value_that_is_not_a_number_reaches_every_row():
    """0 times NaN is NaN, as long as some query sees its key."""
    q, k, v, keep = operands((M, N))
    keep[:, 3] = torch.arange(M) == 4
    v[:, :, 3, 5] = math.nan
    want = check(filled, q, k, v, keep, -math.inf)
    assert want[..., 5].isnan().all() and want[:, :, 0, 4].isfinite().all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("f", [filled, chosen, biased_after], ids=lambda f: f.__name__)
def test_half_types(f, dtype):
    for fill in (-math.inf, torch.finfo(dtype).min):
        # A bias that the type rounds away beside its least number is left to the type.
        whole = f is not biased_after or fill == -math.inf
        args = operands((B, 1, M, N), dtype, broken=(math.nan, math.inf))
        check(f, *args, fill, steps=1 if whole else 0)


def test_a_number_that_a_half_type_rounds():
    """The least float32 is -inf in bfloat16: a row without keys is NaN."""
    q, k, v, keep = operands((M, N), torch.bfloat16)
    assert check(chosen, q, k, v, keep, LEAST)[:, :, 2].isnan().all()


@pytest.mark.parametrize("f", [filled, chosen], ids=lambda f: f.__name__)
@pytest.mark.parametrize("fill", [-math.inf, LEAST], ids=str)
def test_dynamic_lengths(f, fill):
    compiled = toroid(f, dynamic=True)
    for m, n in ((9, 13), (1, 40), (33, 300)):
        q, k, v, keep = operands((1, 1, m, n), m=m, n=n, broken=(math.nan, math.inf))
        want = f(q, k, v, keep, fill)
        torch.testing.assert_close(compiled(q, k, v, keep, fill), want, equal_nan=True)
        assert want[:, :, 0].isfinite().all()


def test_a_scale_after_the_choice():
    def f(q, k, v, keep):
        return (torch.where(keep, q @ k.transpose(-1, -2), -8.0) * 0.25).softmax(-1) @ v

    q, k, v, keep = operands((M, N), broken=(math.nan,))
    torch.testing.assert_close(toroid(f)(q, k, v, keep), f(q, k, v, keep))

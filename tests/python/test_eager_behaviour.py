"""What compilers were caught getting wrong, over types, sizes about a vector's width and layouts.

Graphs of ATen calls go through the compiler's door (tests/fuzz/door.py); results are eager's to the
bit. cases/ has the same kinds through torch.compile, one example each.
"""

import sys
from pathlib import Path

import pytest
import torch
from support import toroid

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fuzz.door import compile_program
from fuzz.program import run
from fuzz.replay import trace
from fuzz.rounding import arguments
from toroid import _torch

aten = torch.ops.aten
NAN, INF = float("nan"), float("inf")
SIZES = (0, 1, 7, 8, 9, 15, 16, 17, 31, 33)
LAYOUTS = ("stepped", "transposed", "offset", "expanded")
PLACES = [(n, "dense") for n in SIZES] + [(17, layout) for layout in LAYOUTS]
FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
INTS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
HALVES = (torch.bfloat16, torch.float16)


def name(x):
    return str(x).removeprefix("torch.")


def over(*dtypes):
    def wrap(f):
        f = pytest.mark.parametrize("n, layout", PLACES)(f)
        return pytest.mark.parametrize("dtype", dtypes, ids=name)(f)

    return wrap


def laid(values, n, layout, dtype):
    """[3, n] elements that go round `values`, in a layout."""
    values = torch.tensor(values, dtype=dtype)
    flat = values[torch.arange(3 * n) % len(values)]
    x = flat.reshape(3, n)
    if layout == "stepped":
        return torch.zeros(6, 3 * n + 1, dtype=dtype)[::2, : 3 * n : 3].copy_(x)
    if layout == "transposed":
        return torch.zeros(n, 3, dtype=dtype).t().copy_(x)
    if layout == "offset":
        return torch.zeros(3 * n + 5, dtype=dtype)[5:].view(3, n).copy_(x)
    return x[:1].expand(3, n) if layout == "expanded" else x


def same(f, *inputs):
    """f's results are eager's: types, strides, every bit but a NaN's; and nothing is external."""
    _torch.attach()
    program = trace(f, inputs, ())
    compiled = compile_program(program, strict=True)
    got = list(compiled.run([program.values[i].tensor() for i in compiled.inputs]))
    env = run(program, arguments(program))
    for a, i in zip(got, program.outputs, strict=True):
        b = env[i]
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert a.stride() == b.stride() or a.numel() == 0 or 1 in a.shape
        equal = (a == b) | ((a != a) & (b != b))
        if b.is_floating_point():
            equal &= (a.signbit() == b.signbit()) | (a != a)
        at = tuple((~equal).nonzero()[:1].flatten().tolist())
        assert bool(equal.all()), f"at {at}: {a[at]} is not {b[at]}"
    return got


def extremes(dtype):
    info = torch.iinfo(dtype)
    return [info.min, info.max, 0, 1, info.max - 1, 7, info.min + 1, 100, 3]


# ------------------------------------------------------------------ integers


@over(*INTS)
def test_every_step_wraps(dtype, layout, n):
    def f(x):
        a = aten.add.Tensor(x, x)
        b = aten.mul.Tensor(a, x)
        c = aten.sub.Tensor(aten.neg.default(b), 100)
        return a, b, c, aten.div.Tensor_mode(c, 3, rounding_mode="floor"), aten.abs.default(c)

    same(f, laid(extremes(dtype), n, layout, dtype))


@over(*INTS)
def test_shifts_by_the_width_and_more(dtype, layout, n):
    width = torch.iinfo(dtype).bits
    x = laid(extremes(dtype), n, layout, dtype)
    counts = laid([0, 1, width - 1, width, min(width + 1, 127), 3, 120], n, layout, dtype)

    def f(x, s):
        return aten.bitwise_left_shift.Tensor(x, s), aten.bitwise_right_shift.Tensor(x, s)

    same(f, x, counts)


@over(*INTS)
def test_shifts_keep_or_lack_a_sign(dtype, layout, n):
    def f(x):
        return (
            aten.bitwise_right_shift.Tensor_Scalar(x, 1),
            aten.bitwise_right_shift.Tensor_Scalar(x, torch.iinfo(dtype).bits - 1),
            aten.bitwise_left_shift.Tensor_Scalar(x, 2),
        )

    same(f, laid(extremes(dtype), n, layout, dtype))


@over(*INTS)
def test_quotients_and_rests_of_integers(dtype, layout, n):
    values = [v for v in (7, 3, 100, 50, 1, 127, -7, -3, -100) if dtype.is_signed or v >= 0]
    divisors = [v for v in (3, 7, 2, -3, -7, 5, 1) if dtype.is_signed or v >= 0]

    def f(a, b):
        return (
            aten.div.Tensor_mode(a, b, rounding_mode="floor"),
            aten.div.Tensor_mode(a, b, rounding_mode="trunc"),
            aten.remainder.Tensor(a, b),
            aten.fmod.Tensor(a, b),
        )

    same(f, laid(values, n, layout, dtype), laid(divisors, n, layout, dtype))


@pytest.mark.parametrize("which", ["floor", "trunc", "remainder", "fmod"])
@pytest.mark.parametrize("n", [1, 8, 33])
@pytest.mark.parametrize("dtype", INTS, ids=name)
def test_division_of_integers_by_zero_raises(dtype, n, which):
    a, b = torch.arange(1, n + 1).to(dtype), torch.ones(n, dtype=dtype)
    b[n - 1] = 0
    _torch.attach()

    def f(a, b):
        if which in ("floor", "trunc"):
            return (aten.div.Tensor_mode(a, b, rounding_mode=which),)
        return ((aten.remainder if which == "remainder" else aten.fmod).Tensor(a, b),)

    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        f(a, b)
    program = trace(f, (a, b), ())
    compiled = compile_program(program, strict=True)
    with pytest.raises(RuntimeError, match="^ZeroDivisionError$"):
        compiled.run([a, b])
    # The same plan goes on with other divisors.
    (got,) = compiled.run([a, torch.ones_like(b)])
    assert torch.equal(got, f(a, torch.ones_like(b))[0])


def test_division_by_a_zero_that_is_a_number_raises():
    x = torch.arange(9)
    compiled = toroid(lambda x: x // 0)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        x // 0
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        compiled(x)
    assert compiled(x[:0]).shape == (0,)


def test_division_by_zero_within_rows_raises():
    def f(x):
        return (x // x.sum(1, keepdim=True)).sum(1)

    x = torch.tensor([[1, 2, 3], [1, -1, 0], [4, 4, 4]])
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        f(x)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        toroid(f)(x)


@over(torch.bool)
def test_arithmetic_of_bools(dtype, layout, n):
    def f(a, b):
        return (
            aten.add.Tensor(a, b),
            aten.mul.Tensor(a, b),
            aten.add.Tensor(a, 1),
            aten.mul.Tensor(a, 0.5),
            aten.sum.dim_IntList(a, [1]),
            aten.div.Tensor(a, True),
            aten.bitwise_xor.Tensor(a, b),
            aten.bitwise_not.default(a),
        )

    a = laid([True, False, True, True, False], n, layout, dtype)
    same(f, a, laid([True, True, False], n, layout, dtype))


# ------------------------------------------------------------------ floats


@over(*FLOATS)
def test_floats_to_integers_and_back(dtype, layout, n):
    """Within the range, and no negatives to uint8: C leaves those undefined."""
    x = laid([1.9, -1.9, 0.5, -0.5, 100.7, -100.7, 0.0, -0.0, 2.5], n, layout, dtype)

    def f(x):
        signed = [aten._to_copy.default(x, dtype=t) for t in INTS[:-1]]
        byte = aten._to_copy.default(aten.abs.default(x), dtype=torch.uint8)
        flags = aten._to_copy.default(x, dtype=torch.bool)
        return (*signed, byte, flags, aten._to_copy.default(signed[0], dtype=dtype))

    same(f, x)


@over(*FLOATS)
def test_floor_division_and_remainder(dtype, layout, n):
    a = laid([1.0, 0.5, 6.0, -1.0, 7.5, -7.5, 0.0, -0.0, 300.0], n, layout, dtype)
    b = laid([0.1, -0.1, 0.2, 3.0, INF, -2.5, 7.0], n, layout, dtype)

    def f(a, b):
        return (
            aten.div.Tensor_mode(a, b, rounding_mode="floor"),
            aten.div.Tensor_mode(a, b, rounding_mode="trunc"),
            aten.remainder.Tensor(a, b),
            aten.fmod.Tensor(a, b),
            aten.div.Tensor_mode(a, 0.1, rounding_mode="floor"),
            aten.div.Tensor_mode(a, 0.0, rounding_mode="floor"),
            aten.remainder.Scalar(a, 0.3),
            aten.remainder.Scalar(a, -3),
            aten.fmod.Scalar(a, 0.3),
        )

    same(f, a, b)


@over(*HALVES)
def test_numbers_beside_halves_round_when_eager_rounds_them(dtype, layout, n):
    """mul and div keep a number, or a tensor of one element, in float32; add and sub do not."""
    x = laid([0.3, -1.7, 2.9, 11.0, -0.05, 100.0, 1.0], n, layout, dtype)
    zero_dim, one = torch.tensor(0.7310351, dtype=torch.float64), torch.tensor([257])

    def f(x, zero_dim, one):
        results = []
        for op in (aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.div.Tensor):
            results += [op(x, 0.7310351), op(x, zero_dim), op(x, one), op(zero_dim, x)]
        return (*results, aten.remainder.Tensor(x, zero_dim), aten.fmod.Tensor(x, zero_dim))

    same(f, x, zero_dim, one)


@over(*FLOATS)
def test_signs_of_zero(dtype, layout, n):
    x = laid([-0.5, -0.0, 0.0, 0.5, -0.2, 0.2, 1.5, -1.5, 2.5], n, layout, dtype)

    def f(x):
        return (
            aten.ceil.default(x),
            aten.round.default(x),
            aten.trunc.default(x),
            aten.floor.default(x),
            aten.neg.default(x),
            aten.mul.Tensor(x, -0.0),
            aten.add.Tensor(x, 0),
            aten.sub.Tensor(x, 0),
            aten.abs.default(x),
            aten.copysign.Tensor(aten.abs.default(x), x),
        )

    same(f, x)


@over(*FLOATS)
def test_subnormals_stay(dtype, layout, n):
    tiny = torch.finfo(dtype).tiny
    x = laid([tiny, tiny / 2, -tiny / 4, 0.0, tiny * 2, -tiny / 2, 1.0], n, layout, dtype)

    def f(x):
        half = aten.mul.Tensor(x, 0.5)
        return half, aten.add.Tensor(half, half), aten.abs.default(half), aten.ne.Scalar(half, 0)

    same(f, x)


@over(torch.float32, torch.float64)
def test_round_trips_through_a_narrower_type_stay(dtype, layout, n):
    x = laid([1.0009765, 70000.0, -1e-8, 3.14159, 0.1, -65519.9, INF], n, layout, dtype)

    def f(x):
        narrow = [aten._to_copy.default(x, dtype=t) for t in HALVES]
        wide = [aten._to_copy.default(t, dtype=dtype) for t in narrow]
        return (*wide, aten.sub.Tensor(wide[0], x), aten.add.Tensor(wide[1], 1))

    same(f, x)


@over(*FLOATS)
def test_nan_wins_and_loses_where_eager_says(dtype, layout, n):
    if n == 0:
        pytest.skip("eager has no extreme of nothing")
    x = laid([1.0, NAN, 3.0, -INF, INF, 2.0, NAN], n, layout, dtype)
    y = laid([NAN, 0.0, 5.0], n, layout, dtype)

    def f(x, y):
        largest, smallest = aten.max.dim(x, 1), aten.min.dim(x, 1)
        return (
            aten.amax.default(x, [1]),
            aten.amin.default(x, [0]),
            aten.argmax.default(x, 1),
            aten.argmin.default(x, 0),
            largest[0],
            largest[1],
            smallest[1],
            aten.max.default(x),
            aten.argmax.default(x),
            aten.maximum.default(x, y),
            aten.fmax.default(x, y),
            aten.fmin.default(x, y),
            aten.relu.default(x),
            aten.clamp.default(x, 0, 2),
            aten.gt.Tensor(x, y),
            aten.sign.default(x),
        )

    same(f, x, y)


# ------------------------------------------------------------------ masks and attention


@over(*FLOATS, *INTS)
def test_masks_cover_tails(dtype, layout, n):
    x = laid([1, 2, 3, 4, 5, 6, 7], n, layout, dtype)

    def f(x, rows, columns):
        filled = aten.masked_fill.Scalar(x, rows, 0)
        return (
            filled,
            aten.masked_fill.Scalar(x, columns, 9),
            aten.where.self(columns, x, filled),
            aten.sum.dim_IntList(filled, [1]),
        )

    rows = torch.tensor([[True], [False], [True]])
    same(f, x, rows, laid([True, False, True, True], n, "dense", torch.bool)[0])


@pytest.mark.parametrize("keys", [1, 7, 8, 9, 17, 33])
@pytest.mark.parametrize("heads", [1, 2])
def test_a_row_whose_keys_are_all_hidden(keys, heads):
    q, k, v = (
        torch.randn(1, heads, 5, 8),
        torch.randn(1, heads, keys, 8),
        torch.randn(1, heads, keys, 8),
    )
    mask = torch.ones(5, keys, dtype=torch.bool)
    mask[2] = False
    f = torch.nn.functional.scaled_dot_product_attention
    with torch.no_grad():
        want = f(q, k, v, attn_mask=mask)
        got = toroid(lambda q, k, v, m: f(q, k, v, attn_mask=m))(q, k, v, mask)
    torch.testing.assert_close(got, want, equal_nan=True)


# ------------------------------------------------------------------ layouts


def channels_last(n):
    return torch.arange(2.0 * 3 * 4 * n).reshape(2, 3, 4, n).to(memory_format=torch.channels_last)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 17])
@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.int8], ids=name)
def test_strides_of_results(dtype, n):
    x = (torch.arange(2 * 5 * n) % 7).to(dtype).reshape(2, 5, n).permute(2, 0, 1)
    y = (channels_last(n) % 7).to(dtype)

    def f(x, y):
        return (
            aten.add.Tensor(x, 1),
            aten.mul.Tensor(x, aten.clone.default(x, memory_format=torch.contiguous_format)),
            aten.unsqueeze.default(aten.neg.default(x), 1),
            aten.slice.Tensor(aten.neg.default(x), 1, 0, 1),
            aten.sum.dim_IntList(x, [1], True),
            aten.roll.default(y, [1], [2]),
            aten.constant_pad_nd.default(y, [1, 1], 0),
            aten.add.Tensor(y, y),
            aten.flip.default(y, [3]),
        )

    _torch.attach()
    program = trace(f, (x, y), ())
    compiled = compile_program(program, strict=True)
    got = compiled.run([program.values[i].tensor() for i in compiled.inputs])
    env = run(program, arguments(program))
    for a, i, promised in zip(got, program.outputs, compiled.strides, strict=True):
        assert torch.equal(a, env[i])
        assert a.stride() == promised


@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
@pytest.mark.parametrize("n", [1, 7, 9])
def test_interpolation_keeps_channels_last(n, mode):
    def f(x):
        return torch.nn.functional.interpolate(x, scale_factor=2, mode=mode)

    x = channels_last(n)
    got, want = toroid(f)(x), f(x)
    torch.testing.assert_close(got, want)
    assert got.stride() == want.stride()


# ------------------------------------------------------------------ indexing and writes


@over(torch.float32, torch.float64, *INTS)
def test_duplicates_of_an_index(dtype, layout, n):
    x = laid([1, 2, 3, 4, 5], n, layout, dtype)
    rows = torch.tensor([2, 0, 2, -1, 2])
    values = laid([1, 3, 5, 7], n, "dense", dtype)[[0, 1, 2, 0, 1]]

    def f(x, rows, values):
        return (
            aten.index_put.default(x, [rows], values),
            aten.index_put.default(x, [rows], values, True),
        )

    same(f, x, rows, values)


@pytest.mark.parametrize("n", SIZES)
def test_writes_through_an_expanded_view(n):
    """Eager refuses such a write; AOTAutograd makes a sum of it before any backend sees it."""

    def f(x, y):
        x.expand(3, n).add_(y)
        return x

    x, y = torch.zeros(1, n), torch.ones(3, n)
    if n > 1:
        with pytest.raises(RuntimeError, match="single memory location"):
            f(x.clone(), y)
    want = torch.compile(f, backend="aot_eager")(x.clone(), y)
    assert torch.equal(toroid(f)(x.clone(), y), want)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS, torch.bool], ids=name)
@pytest.mark.parametrize("shape", [(), (0,), (0, 5), (5, 0), (1, 1)])
def test_empty_and_zero_dim_tensors(shape, dtype):
    x = torch.ones(shape, dtype=dtype)

    def f(x):
        return (
            aten.add.Tensor(x, x),
            aten.sum.default(x),
            aten.prod.default(x),
            aten.all.default(x),
            aten.any.default(x),
            aten.unsqueeze.default(aten.eq.Tensor(x, x), 0),
            aten.cat.default([aten.unsqueeze.default(x, 0), aten.unsqueeze.default(x, 0)]),
        )

    same(f, x)


def test_an_offset_beyond_two_gigabytes():
    """Of int8, expanded in front: only what is touched takes memory."""
    base = torch.empty(2**31 + 4096, dtype=torch.int8)
    x = base[2**31 + 7 :][:1000]
    x.copy_(torch.arange(1000) % 100)
    got = toroid(lambda b: b[2**31 + 7 : 2**31 + 1007] + 1)(base)
    assert torch.equal(got, x + 1)

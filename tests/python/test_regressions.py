"""What `make fuzz` found, made small: one test a fault, through the same door."""

import sys
from pathlib import Path

import pytest
import torch
import toroid

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fuzz.replay import replay

aten = torch.ops.aten


def counted(*shape, dtype=torch.float32):
    n = torch.Size(shape).numel()
    return (torch.arange(n) % 7 - 3).to(dtype).reshape(shape)


@pytest.mark.parametrize("spatial", [1, 2])
@pytest.mark.parametrize("frozen", [(), (1, 2)])
def test_a_bias_of_convolution_that_is_not_contiguous(spatial, frozen):
    def f(x, weight, bias):
        one, none = [1] * spatial, [0] * spatial
        return (aten.convolution.default(x, weight, bias, one, one, one, False, none, 1),)

    bias = counted(31)[4:].as_strided((9,), (3,), 4)
    replay(f, (counted(1, 8, *[9] * spatial), counted(9, 8, *[3] * spatial), bias), frozen)


def test_a_bias_of_linear_that_is_not_contiguous():
    def f(x, weight, bias):
        return (aten.addmm.default(bias, x, aten.t.default(weight)),)

    replay(f, (counted(5, 8), counted(9, 8), counted(9, 2)[:, 1]))


def test_both_results_of_a_max_pool_of_frozen_values():
    """They had one entry in the table of frozen results."""

    def f(x):
        both = aten.max_pool2d_with_indices.default(x, [2, 2], [1, 1], [0, 0], [1, 1], False)
        return (both[0], both[1])

    replay(f, (counted(5, 2, 2, 33),), frozen=[0])


def test_a_slice_scatter_of_nothing_is_no_view():
    def f(x, source):
        return (aten.slice_scatter.default(x, source, 0, 1, 1, 2),)

    replay(f, (counted(3, 7), counted(0, 7)))


def test_a_repeat_of_an_expanded_input_is_no_view():
    def f(x):
        return (aten.slice.Tensor(aten.repeat.default(x, [3]), 0, -16, 36, 3),)

    replay(f, (counted(1).expand(17),))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (aten.expand.default(x, [1, 8, 5]),),
        lambda x: (aten.view.default(x, [1, 1, 8, 5]),),
        lambda x: (aten.unsqueeze.default(x, 1),),
        lambda x: (aten.transpose.int(aten.unsqueeze.default(x, 0), 0, 1),),
        lambda x: (aten.unsqueeze.default(y := aten.neg.default(x), 1), y),
        lambda x: (aten.view.default(y := aten.neg.default(x), [1, 40, 1]), aten.t.default(y)),
    ],
)
def test_strides_of_dims_of_size_one_in_views(f):
    replay(f, (counted(8, 5),))


def test_strides_of_a_transposed_matrix_of_one_element():
    replay(lambda x: (aten.transpose.int(x, 0, 1),), (counted(1).as_strided((1, 1), (0, 1)),))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("number", [0.7310351, -0.05552911408587808])
def test_remainder_of_halves_rounds_the_divisor_first(number, dtype):
    def f(x, y):
        return (aten.remainder.Tensor(x, y), aten.remainder.Scalar(x, number))

    replay(f, (torch.randn(512).to(dtype) * 3, torch.tensor(number, dtype=torch.float64)))


def test_a_part_that_is_expanded_to_the_count_of_the_whole():
    """The output was taken for the whole of its memory, which was then too small."""

    def f(x):
        return (aten.expand.default(aten.select.int(aten.neg.default(x), 0, 0), [2, 3, 5]),)

    replay(f, (counted(2, 1, 3, 5),))


def test_rows_of_nothing_have_no_leading_dims():
    """A view of no elements can have any number of rows; a product makes elements of them."""

    def f(x):
        y = aten.repeat.default(x, [1, 2])
        return (aten.mm.default(y, aten.t.default(y)),)

    def g(x, y):
        x, y = aten.view.default(x, [7, 5, 0]), aten.view.default(y, [7, 0, 3])
        return (aten.bmm.default(x, y),)

    replay(f, (torch.empty(16, 0, dtype=torch.float16),))
    replay(g, (torch.empty(2, 3, 5, 0), torch.empty(2, 3, 0, 3)))


@pytest.mark.parametrize("order", [2, 3, -1, 0.5, 0, float("inf")])
def test_a_norm_of_one_element_is_its_absolute_value(order):
    def f(x):
        return (aten.linalg_vector_norm.default(x, order, [1]),)

    replay(f, (torch.tensor([[2.2e19], [1e-30], [0.0], [-3.0]]),))


def test_a_variance_whose_sum_of_squares_is_too_large():
    def f(x):
        return (
            aten.std.correction(x, [1], correction=1),
            aten.std.correction(x * 1e-2, [0], correction=1),
            aten.var.correction(x * 1e-1, [1], correction=0),
        )

    replay(f, (torch.tensor([[2.2e20, 1.0] * 20, [3.0, -2e20] * 20]),))


@pytest.mark.parametrize("packet", [aten.any, aten.all])
def test_a_test_of_a_single_bool_is_a_tensor_of_its_own(packet):
    replay(lambda x: (packet.default(x),), (torch.tensor(True),))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(5,), (4, 5), (2, 5, 3), (2, 5, 3, 2)])
def test_nll_loss(shape, weighted, reduction):
    x = torch.randn(shape)
    target = torch.randint(0, 5, shape[:1] + shape[2:] if len(shape) > 1 else ())
    weight = torch.rand(5) if weighted else None

    def f(x, target, weight):
        return torch.nn.functional.nll_loss(x, target, weight, reduction=reduction, ignore_index=2)

    with torch.no_grad():
        got = torch.compile(f, backend="toroid")(x, target, weight)
        torch.testing.assert_close(got, f(x, target, weight), equal_nan=True)


def test_products_that_count_zero_times_lose_their_nan():
    nan = torch.full((3, 3), torch.nan)
    x, batch = torch.randn(3, 3), nan.expand(2, 3, 3)
    big = torch.full((1, 20, 20), torch.nan)

    def f(x, nan, batch, big):
        return (
            torch.addmm(nan, nan, nan, alpha=0, beta=0),
            torch.addmm(x[0], nan, nan, alpha=0),
            torch.addmv(x[0], nan, nan[0], alpha=0, beta=2),
            torch.addbmm(x, batch, batch, alpha=0),
            torch.baddbmm(torch.ones(1, 20, 20), big, big, alpha=0, beta=3),
        )

    with torch.no_grad():
        got = torch.compile(f, backend="toroid")(x, nan, batch, big)
    want = (torch.zeros(3, 3), x[0].expand(3, 3), 2 * x[0], x, torch.full((1, 20, 20), 3.0))
    for a, b in zip(got, want, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("dim", [0, 1])
def test_spread_of_values_whose_squares_leave_the_type(dim, dtype):
    x = torch.tensor([[1.0, 2, 3, 4], [1, 1, 1, 1], [-1, 1, 0.5, 0]])
    x = (x if dim else x.T) * 1e19

    def f(x):
        return x.var(dim), (x * 1e18).std(dim)

    x = x.to(dtype)
    with torch.no_grad():
        var, std = torch.compile(f, backend="toroid")(x)
    torch.testing.assert_close(var, x.double().var(dim).to(dtype))
    torch.testing.assert_close(std, (x * 1e18).double().std(dim).to(dtype))
    assert var.isfinite().all() and std.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_indices_that_are_not_contiguous(mode, dtype):
    """A copy in front of an external node was left out, and the kernel read between the indices.

    PyTorch's fake tensors are wrong about what a bag of bfloat16 keeps for its gradient.
    """
    index, offsets = torch.tensor([1, 0, 5, 0, 4, 0, 5, 0, 9, 0])[::2], torch.tensor([0, 0, 3])
    weight = counted(10, 5, dtype=dtype)
    rows = [weight[:0], weight[[1, 5, 4]], weight[[5, 9]]]
    reduce = {"sum": lambda x: x.sum(0), "mean": lambda x: x.mean(0), "max": lambda x: x.amax(0)}
    want = torch.stack([reduce[mode](r) if len(r) else torch.zeros(5) for r in rows])

    def f(weight, index, offsets):
        return torch.nn.functional.embedding_bag(index, weight, offsets, mode=mode)

    mine, its = (weight.clone().requires_grad_() for _ in range(2))
    got = torch.compile(f, backend="toroid")(mine, index, offsets)
    torch.testing.assert_close(got, want.to(dtype))
    for out in (got, f(its, index, offsets)):
        out.backward(counted(3, 5, dtype=dtype))
    torch.testing.assert_close(mine.grad, its.grad)


# ------------------------------------------------------------------ calls under a token


def solved(x, y):
    return torch.linalg.solve(x * 2, y) + torch.linalg.inv(x)


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_side_effect_under_a_token_leaves_the_graph_native(dynamic):
    """The check of linalg ops made PyTorch run the whole graph."""
    compiled = torch.compile(solved, backend="toroid", dynamic=dynamic)
    for size in (3, 4):
        x = torch.randn(size, size) / 4 + torch.eye(size)
        y = torch.randn(size, size)
        torch.testing.assert_close(compiled(x, y), solved(x, y))
    explained = toroid.explain(solved, x, y)
    assert explained.native >= 2
    assert not [graph for graph in explained.graphs if graph.fallback]


def test_a_side_effect_raises_as_in_eager():
    compiled = torch.compile(lambda x: torch.linalg.inv(x) * 2, backend="toroid")
    singular = torch.zeros(3, 3)
    for _ in range(2):
        with pytest.raises(torch.linalg.LinAlgError, match="singular"):
            compiled(singular)
        torch.testing.assert_close(compiled(2 * torch.eye(3)), torch.eye(3))


def test_gradients_through_a_side_effect():
    def f(x):
        return (torch.linalg.inv(x) * torch.arange(9.0).view(3, 3)).sum()

    x = (torch.randn(3, 3) + 4 * torch.eye(3)).requires_grad_()
    (expected,) = torch.autograd.grad(f(x), x)
    (got,) = torch.autograd.grad(torch.compile(f, backend="toroid")(x), x)
    torch.testing.assert_close(got, expected)

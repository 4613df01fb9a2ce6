"""What `make fuzz` found, made small: one test a fault, through the same door."""

import sys
from pathlib import Path

import pytest
import torch

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

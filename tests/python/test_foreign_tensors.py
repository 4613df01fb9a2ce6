"""Tensors that the IR does not hold: PyTorch computes with them, and nothing is wrong."""

from __future__ import annotations

import pytest
import torch
import toroid


class Tagged(torch.Tensor):
    """A subclass without behaviour of its own."""


def ragged():
    parts = [torch.arange(2.0), torch.arange(3.0)]
    return torch.nested.nested_tensor(parts, layout=torch.jagged)


COMPLEX = torch.complex(torch.arange(6.0).view(2, 3), torch.ones(2, 3))

CASES = {
    "sparse": (torch.eye(3).to_sparse(), lambda x: (x * 2).to_dense() + 1),
    "sparse_csr": (torch.eye(3).to_sparse_csr(), lambda x: x @ torch.ones(3, 2) + 1),
    "complex": (COMPLEX, lambda x: torch.view_as_real(x * 2) + 1),
    "conjugate": (COMPLEX.conj(), lambda x: torch.view_as_real(x * 2) + 1),
    "negative": (COMPLEX.conj().imag, lambda x: x * 2 + 1),
    "quantized": (
        torch.quantize_per_tensor(torch.arange(3.0), 0.1, 0, torch.qint8),
        lambda x: x.dequantize() * 2 + 1,
    ),
    "subclass": (torch.arange(3.0).as_subclass(Tagged), lambda x: x * 2 + 1),
    "nested": (ragged(), lambda x: (x * 2).values() + 1),
    "float8": (torch.arange(3.0).to(torch.float8_e4m3fn), lambda x: x.float() * 2 + 1),
    "uint16": (torch.arange(3).to(torch.uint16), lambda x: x.int() * 2 + 1),
    "no elements": (torch.ones(0, 3), lambda x: x * 2 + 1),
    "many dims": (torch.ones([1] * 12 + [2]), lambda x: x * 2 + 1),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_equal_to_eager(name):
    x, f = CASES[name]
    want = f(x)
    compiled = torch.compile(f, backend="toroid")
    for _ in range(2):
        got = compiled(x)
        assert type(got) is type(want)
        assert got.dtype == want.dtype and got.stride() == want.stride()
        assert torch.equal(got, want)


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (COMPLEX, "complex"),
        (torch.arange(3.0).to(torch.float8_e4m3fn), "float8"),
        (torch.ones([1] * 13), "rank 13|13 dims"),
    ],
)
def test_strict_names_what_it_got(x, words):
    with pytest.raises(Exception, match=words) as error:
        torch.compile(lambda x: x * 2, backend="toroid", options={"strict": True})(x)
    assert isinstance(error.value.__cause__ or error.value.inner_exception, toroid.Unsupported)

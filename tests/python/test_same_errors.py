"""Where eager raises, Toroid raises the same kind of error."""

import pytest
import torch

CASES = {
    "maximum of nothing": (lambda x: x.max(), lambda: torch.randn(0, 3)),
    "maximum along an empty axis": (lambda x: x.max(1), lambda: torch.randn(3, 0)),
    "minimum along an empty axis": (lambda x: x.min(1), lambda: torch.randn(3, 0)),
    "position of the maximum of bools": (lambda x: x.argmax(), lambda: torch.tensor([True, False])),
    "a bound that the type does not hold": (
        lambda x: x.clamp(-5, 300),
        lambda: torch.tensor([3, 200], dtype=torch.uint8),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_error(name):
    f, make = CASES[name]
    with torch.no_grad():
        with pytest.raises(Exception) as eager:
            f(make())
        with pytest.raises(eager.type):
            torch.compile(f, backend="toroid")(make())


def test_empty_axes_that_are_kept_are_fine():
    x = torch.randn(0, 3)
    with torch.no_grad():
        got = torch.compile(lambda x: x.max(1), backend="toroid")(x)
    assert got.values.shape == (0,) and got.indices.shape == (0,)

"""Where eager raises, Toroid raises the same kind of error."""

import pytest
import torch
import torch.nn.functional as F

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


MATRIX, LINE, CUBE = torch.ones(3, 4), torch.ones(5), torch.ones(2, 3, 4)

# Name: a function of a tensor and a vector of two indices, and the tensor.
INDEXING = {
    "index": (lambda x, i: x[:, i], MATRIX),
    "index_put": (lambda x, i: x.index_put((i,), torch.zeros(())), MATRIX),
    "index_select": (lambda x, i: x.index_select(0, i), MATRIX),
    "index_select along axis 1": (lambda x, i: x.index_select(1, i), MATRIX),
    "index_select along axis 2": (lambda x, i: x.index_select(2, i), CUBE),
    "gather": (lambda x, i: x.gather(1, i[None]), MATRIX),
    "take": (lambda x, i: x.take(i), LINE),
    "put": (lambda x, i: x.put(i, torch.zeros(2)), LINE),
    "embedding": (lambda x, i: F.embedding(i, x), MATRIX),
    "embedding_bag": (lambda x, i: F.embedding_bag(i, x, torch.tensor([0])), MATRIX),
    "embedding_bag max": (
        lambda x, i: F.embedding_bag(i, x, torch.tensor([0]), mode="max"),
        MATRIX,
    ),
    "scatter": (lambda x, i: x.scatter(1, i[None], 2.0), MATRIX),
    "scatter_add": (lambda x, i: x.scatter_add(1, i[None], torch.ones(1, 2)), MATRIX),
    "scatter_reduce": (lambda x, i: x.scatter_reduce(1, i[None], torch.ones(1, 2), "sum"), MATRIX),
    "index_add": (lambda x, i: x.index_add(1, i, torch.ones(3, 2)), MATRIX),
    "index_add of vectors": (lambda x, i: x.index_add(0, i, torch.ones(2)), LINE),
    "index_add along axis 1": (lambda x, i: x.index_add(1, i, torch.ones(2, 2, 4)), CUBE),
    "index_add scaled": (lambda x, i: x.index_add(1, i, torch.ones(3, 2), alpha=2), MATRIX),
    "index_reduce": (lambda x, i: x.index_reduce(1, i, torch.ones(3, 2), "amax"), MATRIX),
    "index_copy": (lambda x, i: x.index_copy(1, i, torch.ones(3, 2)), MATRIX),
    "index_fill": (lambda x, i: x.index_fill(1, i, 2.0), MATRIX),
    "one_hot": (lambda x, i: F.one_hot(i, 5), MATRIX),
    "max_unpool1d": (lambda x, i: F.max_unpool1d(x[:1, :2], i[None], 2), MATRIX),
    "max_unpool2d": (lambda x, i: F.max_unpool2d(x[:1, :1, :2], i[None, None], (1, 2)), CUBE),
    "max_unpool3d": (
        lambda x, i: F.max_unpool3d(x[:1, None, :1, :2], i[None, None, None], (1, 1, 2)),
        CUBE,
    ),
    "nll_loss": (lambda x, i: F.nll_loss(x[:2], i), MATRIX),
    "nll_loss2d": (lambda x, i: F.nll_loss(x[None, :, :2, None], i[None, :, None]), MATRIX),
    "cross_entropy": (lambda x, i: F.cross_entropy(x[:2], i), MATRIX),
}


@pytest.mark.parametrize("name", INDEXING)
@pytest.mark.parametrize("index", [70, -70, -1])
def test_index_out_of_range(name, index):
    f, x = INDEXING[name]
    i = torch.tensor([0, index])
    compiled = torch.compile(f, backend="toroid")
    with torch.no_grad():
        try:
            want = f(x, i)
        except (IndexError, RuntimeError) as error:
            with pytest.raises(type(error)) as got:
                compiled(x, i)
            assert got.type is type(error)
        else:
            torch.testing.assert_close(compiled(x, i), want)

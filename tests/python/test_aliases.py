"""Outputs that share memory with an input or with each other, static and dynamic."""

import pytest
import torch
import torch.nn.functional as F


def run(f, *args, dynamic):
    torch._dynamo.reset()
    with torch.no_grad():
        return torch.compile(f, backend="toroid", dynamic=dynamic)(*args)


def same_tensor(got, want):
    assert torch.equal(got, want)
    assert got.stride() == want.stride()
    assert got.storage_offset() == want.storage_offset()


VIEWS = [
    lambda x: x.chunk(2, 1)[0],
    lambda x: x.chunk(2, 1)[1],
    lambda x: x[:, : x.shape[1] // 2],
    lambda x: x[1:, ::2],
    lambda x: x.t(),
    lambda x: x.expand(2, *x.shape),
    lambda x: x.diagonal(),
    lambda x: x.view(-1),
    lambda x: x[2],
]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("f", VIEWS)
def test_a_view_of_an_input(f, dynamic):
    x = torch.arange(36.0).reshape(6, 6)
    got = run(f, x, dynamic=dynamic)
    same_tensor(got, f(x))
    x.fill_(7)
    assert torch.equal(got, f(x)), "the view does not follow its input"


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_view_of_an_input_with_gradients_on(dynamic):
    x = torch.randn(6, 6)
    torch._dynamo.reset()
    got = torch.compile(lambda x: x.expand(2, *x.shape), backend="toroid", dynamic=dynamic)(x)
    same_tensor(got, x.expand(2, 6, 6))


@pytest.mark.parametrize("dynamic", [False, True])
def test_strides_of_an_expanded_result(dynamic):
    def f(x):
        return (x * 2).expand(2, -1, -1)

    x = torch.randn(6, 6)
    same_tensor(run(f, x, dynamic=dynamic), f(x))


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_written_view(dynamic):
    def f(x):
        a, b = x.chunk(2, 1)
        a.add_(b)
        return a

    x, y = torch.arange(36.0).reshape(6, 6), torch.arange(36.0).reshape(6, 6)
    got, want = run(f, x, dynamic=dynamic), f(y)
    same_tensor(got, want)
    assert torch.equal(x, y)
    x.fill_(3)
    assert torch.equal(got, torch.full_like(got, 3))


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_written_strided_input(dynamic):
    def f(x, y):
        return x.add_(y)

    bases = torch.arange(30.0), torch.arange(30.0)
    results = []
    for base, call in zip(
        bases, (f, torch.compile(f, backend="toroid", dynamic=dynamic)), strict=True
    ):
        torch._dynamo.reset()
        with torch.no_grad():
            results.append(call(base[0:20:2], base[1:21:2]))
    same_tensor(results[1], results[0])
    assert torch.equal(*bases)


def whole_and_flat(x):
    y = x + 1
    return y, y.view(-1)


def part_and_whole(x):
    y = x + 1
    return y[0], y


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("f", [whole_and_flat, part_and_whole])
def test_outputs_that_share_memory(f, dynamic):
    x = torch.zeros(2, 3)
    got, want = run(f, x, dynamic=dynamic), f(x)
    for a, b in zip(got, want, strict=True):
        same_tensor(a, b)
    got[0].fill_(5)
    want[0].fill_(5)
    for a, b in zip(got, want, strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("shape", [(2, 0, 4), (0, 0, 4), (2, 3, 0, 4), (0, 4), (0, 3, 4)])
@pytest.mark.parametrize("dynamic", [False, None])
def test_linear_over_nothing(shape, dynamic):
    w, b = torch.randn(5, 4), torch.randn(5)
    x = torch.randn(shape)
    same_tensor(run(lambda x: F.linear(x, w, b), x, dynamic=dynamic), F.linear(x, w, b))


CLONES = [
    lambda x: x.clone(),
    lambda x: x.t().clone(),
    lambda x: x[1:].clone(),
    lambda x: (x, x.clone()),
    lambda x: (lambda y: (y, y.clone(), y.t()))(x + 1),
]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("f", CLONES)
def test_a_clone_is_a_tensor_of_its_own(f, dynamic):
    x, y = torch.arange(12.0).reshape(3, 4), torch.arange(12.0).reshape(3, 4)
    got, want = run(f, x, dynamic=dynamic), f(y)
    got, want = (r if isinstance(r, tuple) else (r,) for r in (got, want))
    x.fill_(9)
    y.fill_(9)
    for a, b in zip(got, want, strict=True):
        same_tensor(a, b)
    got[0].fill_(5)
    want[0].fill_(5)
    for a, b in zip(got, want, strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("dynamic", [False, True])
def test_copies_that_change_nothing_have_memory_of_their_own(dynamic):
    """With strides of the input they were read as if it were contiguous."""
    gaps = torch.full((50,), float("nan"))
    gaps[::2] = torch.arange(25.0)

    def f(x):
        return (
            torch.diff(x, 0),
            torch.squeeze_copy(x, 0),
            torch.unsqueeze_copy(x, 0),
            torch.permute_copy(x, (0, 1)),
            torch.expand_copy(x, (5, 5)),
            torch.ops.aten.copy(torch.zeros_like(x), x),
            *torch.split_copy(x, 5),
            torch.roll(x, 25),
            torch.roll(x, 5, 0),
            F.pixel_shuffle(x[None], 1),
            F.channel_shuffle(x[None], 1),
        )

    for x in (gaps.as_strided((5, 5), (10, 2)), torch.arange(25.0).reshape(5, 5)):
        results = run(f, x, dynamic=dynamic)
        memory = {r.untyped_storage().data_ptr() for r in results}
        assert len(memory) == len(results)
        assert x.untyped_storage().data_ptr() not in memory
        for got, want in zip(results, f(x), strict=True):
            same_tensor(got, want)


KEEPING = {
    "reshape": lambda x: x.reshape(x.shape),
    "broadcast": lambda x: torch.broadcast_to(x, x.shape),
    "chunk": lambda x: x.chunk(1)[0],
    "twice": lambda x: x.t().t() if x.dim() == 2 else x.t(),
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("f", KEEPING.values(), ids=KEEPING)
def test_a_part_as_it_is(f, dynamic):
    """It came back as the first elements of the memory that it is a part of."""
    whole = torch.arange(60.0)
    part = whole.view(6, 10)[1:5, 2:7]
    for x in (whole[3:50:2], part, part[:, ::2], part.t(), part[:, :1].expand(4, 5)):
        (got,), want = run(lambda x: (f(x),), x, dynamic=dynamic), f(x)
        same_tensor(got, want)
        assert got.data_ptr() == want.data_ptr()

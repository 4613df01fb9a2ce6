"""Helpers of the tests: running through Toroid, comparing with eager and with float64."""

import copy

import torch
from torch._dynamo.testing import CompileCounterWithBackend
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_flatten, tree_map
from toroid.report import listen


def toroid(f, **kwargs):
    return torch.compile(f, backend="toroid", **kwargs)


def fake_strides(f, *args):
    """Strides that FakeTensor gives the tensors that `f` returns; None for other leaves.

    PyTorch's compilers promise these, and elementwise ops have others than eager in dims of size 1
    (eager's TensorIterator drops such dims, FakeTensor sorts them with the rest).
    """
    with FakeTensorMode() as mode:
        fakes = [mode.from_tensor(a) if isinstance(a, torch.Tensor) else a for a in args]
        leaves = tree_flatten(f(*fakes))[0]
    return [leaf.stride() if isinstance(leaf, torch.Tensor) else None for leaf in leaves]


def assert_same(got, want, *, rtol=1e-5, atol=1e-6, path="out", fake=None):
    """Values, dtypes, shapes, strides (all of them) and structure.

    With `fake` (see `fake_strides`) the strides of dims of size 1 are those where eager differs.
    """
    got_leaves, got_spec = tree_flatten(got)
    want_leaves, want_spec = tree_flatten(want)
    assert got_spec == want_spec, f"{path}: {got_spec} is not {want_spec}"
    for i, (a, b) in enumerate(zip(got_leaves, want_leaves, strict=True)):
        where = f"{path}[{i}]"
        if not isinstance(b, torch.Tensor):
            assert a == b and type(a) is type(b), f"{where}: {a!r} is not {b!r}"
            continue
        assert (a.dtype, a.shape) == (b.dtype, b.shape), (
            f"{where}: {a.dtype}{tuple(a.shape)} is not {b.dtype}{tuple(b.shape)}"
        )
        strides = b.stride()
        if fake is not None:
            sizes = zip(b.shape, strides, fake[i], strict=True)
            strides = tuple(other if size == 1 else stride for size, stride, other in sizes)
        assert a.stride() == strides, f"{where}: {a.stride()} is not {strides}"
        if b.is_floating_point():
            assert torch.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True), (
                f"{where}: {a} is not {b}"
            )
        else:
            assert torch.equal(a, b), f"{where}: {a} is not {b}"


def tensors(tree):
    return [
        t for t in tree_flatten(tree)[0] if isinstance(t, torch.Tensor) and t.is_floating_point()
    ]


def rms(t):
    return t.double().pow(2).mean().sqrt().item() if t.numel() else 0.0


def assert_error_rule(got, eager, exact):
    """rms(got - exact) <= 2 rms(eager - exact) + 2^-23 rms(exact); 3 times under 1,000 elements."""
    trees = [tensors(t) for t in (got, eager, exact)]
    assert len(trees[0]) == len(trees[1]) == len(trees[2]) > 0
    for a, b, x in zip(*trees, strict=True):
        assert a.shape == b.shape == x.shape and a.dtype == b.dtype
        factor = 2 if x.numel() >= 1000 else 3
        bound = factor * rms(b.double() - x) + 2**-23 * rms(x)
        error = rms(a.double() - x)
        assert error <= bound, (
            f"error {error:.3e} > {bound:.3e} (eager's own {rms(b.double() - x):.3e})"
        )


def in_double(model, args, kwargs=None):
    """The model's answer in float64."""
    wide = tree_map(
        lambda t: t.double() if isinstance(t, torch.Tensor) and t.is_floating_point() else t,
        (args, kwargs or {}),
    )
    with torch.no_grad():
        return copy.deepcopy(model).double()(*wide[0], **wide[1])


def count_graphs(f, calls, backend, **kwargs):
    """Graphs that Dynamo hands to a backend over some calls, with fresh state."""
    torch._dynamo.reset()
    counter = CompileCounterWithBackend(backend)
    compiled = torch.compile(f, backend=counter, **kwargs)
    for args in calls:
        compiled(*args)
    return counter.frame_count


def count_compiles(f, calls, **kwargs):
    """Forward graphs that Toroid itself compiles over some calls, with fresh state.

    Not the calls of the backend: with float inputs AOTAutograd may start a capture again before
    Toroid sees a graph (TensorifyScalarRestartAnalysis; "aot_eager" does the same).
    """
    torch._dynamo.reset()
    compiled = toroid(f, **kwargs)
    with listen() as found:
        for args in calls:
            compiled(*args)
    return sum(report.kind != "backward" for report in found)


def assert_no_more_graphs(f, calls, **kwargs):
    ours, eager = count_compiles(f, calls, **kwargs), count_graphs(f, calls, "eager", **kwargs)
    assert 0 < ours <= eager, f"{ours} graphs, backend='eager' has {eager}"


def reports(f, *args, **kwargs):
    """Reports of the graphs that one call compiles, and the call's result."""
    with listen() as found:
        result = f(*args, **kwargs)
    return found, result


def assert_native(f, *args, rtol=1e-5, atol=1e-6, dynamic=None):
    """`f` gives eager's answer, and PyTorch runs no part of it; returns the answer."""
    torch._dynamo.reset()
    want = f(*args)
    found, got = reports(toroid(f, dynamic=dynamic, fullgraph=True), *args)
    assert found and all(r.fallback is None and not r.externals for r in found), "\n".join(
        r.reasons() for r in found
    )
    assert_same(got, want, rtol=rtol, atol=atol, fake=fake_strides(f, *args))
    return got

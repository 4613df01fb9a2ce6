"""Python floats with dynamic shapes: one capture, right for every value, guarded as in PyTorch."""

import pytest
import torch
import torch.nn.functional as F
from support import assert_same, count_compiles, count_graphs, toroid
from torch._dynamo.symbolic_convert import TensorifyState
from torch._dynamo.testing import CompileCounterWithBackend

# Each with the calls of backend="eager" over CALLS; None: AOTAutograd has to guard on values that
# Dynamo alone does not look at, and the bar is backend="aot_eager".
FUNCTIONS = {
    "arithmetic": (lambda x, s: x * s + 1, 1),
    "times_a_size": (lambda x, s: x * (x.shape[0] * s), 1),
    "dropout": (lambda x, s: F.dropout(x * 2, s, training=False), 3),
    "eps": (lambda x, s: F.layer_norm(x, x.shape[-1:], eps=s), 3),
    "scale": (lambda x, s: F.scaled_dot_product_attention(x, x, x, scale=s), 3),
    "never_read": (lambda x, s: F.embedding(torch.arange(len(x)), x[:, :, 0], norm_type=s), 1),
    "branch": (lambda x, s: x + 1 if s > 0.05 else x - 1, 1),
    "both": (lambda x, s: F.gelu(x * s) + torch.clamp(x, s), None),
    "returned": (lambda x, s: (x + 1, s * 2), None),
    "made_a_tensor": (lambda x, s: x + torch.tensor(s) + torch.full((3,), s).sum(), None),
    "size": (lambda x, s: x.new_ones(int(x.shape[0] * (1 + s)), 2), None),
}
CALLS = ((4, 0.1), (5, 0.2), (4, 0.3), (9, 0.1))


def calls():
    return [(torch.randn(n, 5, 6), s) for n, s in CALLS]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_more_graphs(name):
    f, bar = FUNCTIONS[name]
    assert bar in (None, count_graphs(f, calls(), "eager", dynamic=True))
    bar = bar or count_graphs(f, calls(), "aot_eager", dynamic=True)
    assert 0 < count_graphs(f, calls(), "toroid", dynamic=True) <= bar
    assert 0 < count_compiles(f, calls(), dynamic=True) <= bar


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name):
    f, _ = FUNCTIONS[name]
    compiled = toroid(f, dynamic=True)
    for args in calls():
        assert_same(compiled(*args), f(*args), rtol=1e-4, atol=1e-5)
    assert not TensorifyState.force_specializations or name == "size"


def test_gradients():
    def f(x, s):
        return (F.dropout(x * s, s, training=False) * s).sum()

    compiled = toroid(f, dynamic=True)
    for n, s in CALLS:
        x = torch.randn(n, 3, requires_grad=True)
        want, got = torch.autograd.grad(f(x, s), x), torch.autograd.grad(compiled(x, s), x)
        assert_same(got, want)


def test_a_backend_that_gets_a_copy_of_the_graph():
    """Whoever copied Dynamo's graph still passes the floats that Toroid removed from the copy."""
    import copy

    from toroid.backend import toroid as backend

    def copying(gm, example_inputs):
        return backend(copy.deepcopy(gm), example_inputs)

    def f(x, s):
        return F.dropout(x, s, training=False) + 1

    compiled = torch.compile(f, backend=copying, dynamic=True)
    for args in calls():
        assert_same(compiled(*args), f(*args))


def test_one_capture_where_aot_eager_needs_two():
    counter = CompileCounterWithBackend("toroid")
    layer = torch.nn.Sequential(torch.nn.LayerNorm(6), torch.nn.Dropout(0.1)).eval()
    torch.compile(layer, backend=counter, dynamic=True)(torch.randn(4, 6))
    assert counter.frame_count == 1

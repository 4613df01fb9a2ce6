"""The option ``reference``: every node by its family's oracle, nearer to float64 than eager is."""

import copy
import re

import pytest
import torch
import torch.nn.functional as F
import toroid as package
import transformers
from hf_models import MODELS
from support import assert_error_rule, assert_same, in_double, listen, reports, rms, tensors
from torch import nn
from toroid import backend

FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
INTS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
SEQUENCES = ["bert", "distilgpt2", "t5", "llama"]


def reference(f, **kwargs):
    return torch.compile(f, backend="toroid_reference", **kwargs)


def kernels(report):
    """The kernel of each step."""
    table = report.tables()["steps"]
    return re.findall(r"^ *\d+  \S+ +\d+  (\S*)", table, re.MULTILINE)


def assert_reference(found, external=False):
    """Every step is an oracle's, but for those that PyTorch runs if it may run any."""
    assert found
    for report in found:
        assert report.fallback is None and (external or not report.externals), report.reasons()
        names, table = kernels(report), report.tables()["steps"]
        assert len(names) == report.stats["steps"], table
        ours = [name for name in names if name]
        assert len(names) - len(ours) == len(report.externals), table
        assert all(name.endswith("_ref") for name in ours), table
        assert report.stats["weight_bytes"] == 0


def check(f, *args, rtol=1e-5, atol=1e-6, **kwargs):
    """Eager's answer, wholly by oracles; returns the kernels."""
    found, got = reports(reference(f, options={"strict": True}), *args, **kwargs)
    assert_same(got, f(*args, **kwargs), rtol=rtol, atol=atol)
    assert_reference(found)
    return {name for report in found for name in kernels(report)}


def assert_nearer(got, eager, exact):
    """rms(got - exact) <= 1.1 rms(eager - exact) + 2^-25 rms(exact): half of what the default may.

    A node is rounded once, so over a whole model the oracle errs as eager's pointwise ops do, and
    less in its sums.
    """
    for a, b, x in zip(tensors(got), tensors(eager), tensors(exact), strict=True):
        error, own = rms(a.double() - x), rms(b.double() - x)
        assert error <= 1.1 * own + 2**-25 * rms(x), f"error {error:.3e}, eager's own {own:.3e}"


# ------------------------------------------------------------------ how it is asked for


def test_by_name_and_by_option():
    assert torch._dynamo.lookup_backend("toroid_reference") is backend.toroid_reference
    x = torch.randn(4, 5)
    model = nn.Sequential(nn.Linear(5, 6), nn.GELU())
    with torch.no_grad():
        by_name, _ = reports(reference(model), x)
        found = package.explain(model, x, options={"reference": True})
    assert kernels(by_name[0]) == kernels(found.graphs[0])
    assert kernels(found.graphs[0]) == ["tor_gemm_run_ref", "tor_map_run_ref"]
    assert "tor_gemm_run_ref" in found.steps()


def test_other_options_go_with_it():
    with pytest.raises(Exception, match="did you mean 'strict'"):
        reference(lambda x: x + 1, options={"strct": True})(torch.ones(3))
    options = {"threads": 2, "freeze": False, "strict": True, "reference": False}
    found, got = reports(reference(lambda x: x + 1, options=options), torch.ones(3))
    assert_same(got, torch.full((3,), 2.0))
    assert_reference(found)


def test_nothing_is_fused_or_recognised():
    def spelled(q, k, v):
        p = torch.softmax(q @ k.transpose(-1, -2) * 0.25, -1) @ v
        return p * torch.sigmoid(p)

    q, k, v = torch.randn(3, 2, 4, 9, 16).unbind(0)
    found, _ = reports(reference(spelled), q, k, v)
    work = re.findall(r"\]  (\w+(?: \{[^}]*\})?)$", found[0].tables()["steps"], re.MULTILINE)
    assert work == [
        "matmul",
        "fused {mul}",
        "fused {sub exp div}",
        "matmul",
        "fused {sigmoid}",
        "fused {mul}",
    ]


def test_profile_names_the_oracle():
    compiled = reference(lambda x: torch.cumsum(x, 0))
    x = torch.randn(5)
    compiled(x)
    with package.profile() as profile:
        compiled(x)
    assert "tor_scan_ref" in str(profile)


# ------------------------------------------------------------------ models


@pytest.mark.parametrize("name", SEQUENCES)
def test_language_models(name):
    make, inputs = MODELS[name]
    torch.manual_seed(0)
    model, call = make().eval(), inputs(2, 12)
    with torch.no_grad():
        found, got = reports(reference(model, options={"strict": True}), **call)
        eager = model(**call)
        torch.set_default_dtype(torch.float64)
        try:
            exact = in_double(model, (), call)
        finally:
            torch.set_default_dtype(torch.float32)
    assert_reference(found)
    assert_nearer(dict(got), dict(eager), dict(exact))


def test_resnet():
    torch.manual_seed(0)
    config = transformers.ResNetConfig(
        embedding_size=16, hidden_sizes=[16, 32, 64], depths=[1, 1, 1], layer_type="bottleneck"
    )
    model, x = transformers.ResNetModel(config).eval(), torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        found, got = reports(reference(model), pixel_values=x)
        eager = model(pixel_values=x)
        exact = in_double(model, (), {"pixel_values": x})
    assert_reference(found)
    assert_nearer(dict(got), dict(eager), dict(exact))


class Convolutions(nn.Module):
    """Every sort of convolution, pooling and resize."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Conv2d(3, 8, 3, padding=1)
        self.depthwise = nn.Conv2d(8, 8, 3, padding=2, dilation=2, groups=8, bias=False)
        self.grouped = nn.Conv2d(8, 16, 1, groups=2, stride=2)
        self.up = nn.ConvTranspose2d(16, 4, 3, stride=2, output_padding=1)
        self.line = nn.Conv1d(4, 6, 5)
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x):
        x = F.relu(self.norm(self.dense(x)))
        x = self.depthwise(F.max_pool2d(x, 2, 1)) + 1
        y = self.up(self.grouped(F.avg_pool2d(x, 2)))
        z = F.interpolate(y, scale_factor=2, mode="bilinear")
        grid = torch.stack([z[:, 0], z[:, 1]], -1).tanh() * 0.9
        w = F.grid_sample(y, grid, align_corners=False)
        return y, z, w, self.line(F.adaptive_avg_pool2d(y, (5, 9)).flatten(2))


@pytest.mark.parametrize("train", [False, True])
def test_convolutions(train):
    torch.manual_seed(0)
    model, x = Convolutions().train(train), torch.randn(2, 3, 12, 12)
    eager_model, exact_model = copy.deepcopy(model), copy.deepcopy(model).double()
    compiled = reference(model)
    with listen() as found, torch.set_grad_enabled(train):
        got, eager, exact = compiled(x), eager_model(x), exact_model(x.double())
        if train:
            for results in (got, eager, exact):
                sum(r.pow(2).sum() for r in results).backward()
    assert_error_rule(got, eager, exact)
    if train:
        grads = [
            {n: p.grad for n, p in m.named_parameters()} for m in (model, eager_model, exact_model)
        ]
        assert_error_rule(*grads)
        assert [report.kind for report in found] == ["forward", "backward"]
    assert_reference(found, external=train)
    assert "tor_conv_run_ref" in kernels(found[0])


@pytest.mark.parametrize("mode", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers(mode):
    with torch._dynamo.config.patch(allow_rnn=True), torch.no_grad():
        torch._dynamo.reset()
        layer = getattr(nn, mode)(5, 9, 2, bidirectional=True)
        assert "tor_rnn_run_ref" in check(layer, torch.randn(6, 3, 5))


def test_relu_layer_keeps_nan():
    with torch._dynamo.config.patch(allow_rnn=True), torch.no_grad():
        torch._dynamo.reset()
        layer, x = nn.RNN(3, 4, nonlinearity="relu"), torch.randn(2, 2, 3)
        x[1, 0, 0] = float("nan")
        check(layer, x)


def test_a_training_step():
    make, inputs = MODELS["bert"]
    torch.manual_seed(0)
    model, call = make().eval(), inputs(2, 9)
    others = copy.deepcopy(model), copy.deepcopy(model).double()
    with listen() as found:
        reference(model)(**call).logits.pow(2).mean().backward()
    for other in others:
        other(**call).logits.pow(2).mean().backward()
    assert [report.kind for report in found] == ["forward", "backward"]
    assert_reference(found, external=True)
    grads = [{n: p.grad for n, p in m.named_parameters()} for m in (model, *others)]
    assert_error_rule(*[{n: g[n] for n in grads[1] if grads[1][n] is not None} for g in grads])


def test_weights_are_read_at_each_call_and_caches_written():
    linear, x = nn.Linear(4, 3), torch.randn(2, 4)
    cache = torch.zeros(4, 3)

    def step(x, at):
        cache.index_copy_(0, at, linear(x))
        return cache.sum(0)

    compiled = reference(step)
    with torch.no_grad():
        for at in ([0, 1], [3, 2]):
            before = cache.clone()
            got, written = compiled(x, torch.tensor(at)), cache.clone()
            cache.copy_(before)
            assert_same((got, written), (step(x, torch.tensor(at)), cache))
            linear.weight.mul_(2)


def test_dynamic_shapes():
    model = nn.Sequential(nn.Conv1d(3, 5, 3), nn.Flatten(), nn.Softmax(-1))
    compiled = reference(model, dynamic=True)
    with torch.no_grad(), listen() as found:
        for length in (8, 13, 5):
            x = torch.randn(2, 3, length)
            assert_same(compiled(x), model(x))
    assert len(found) == 1
    assert_reference(found)


# ------------------------------------------------------------------ dtypes


def values(*shape, dtype):
    if dtype is torch.bool:
        return torch.randint(0, 2, shape).bool()
    low = 0 if dtype is torch.uint8 else -9
    return (
        torch.randint(low, 10, shape).to(dtype) if dtype in INTS else torch.randn(shape).to(dtype)
    )


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS, torch.bool], ids=str)
def test_moves_of_every_type(dtype):
    index = torch.tensor([2, 0, 2])

    def f(x, y):
        return (
            torch.cat([x, y]).flip(0),
            F.pad(x, (1, 2), value=1),
            x[index],
            x.index_put([index], y[:3]),
            torch.gather(x, 1, index[None].expand(2, 3)),
            torch.sort(x, dim=1, stable=True),
            torch.cummax(x, 1),
            torch.where(x == y, x, y),
            torch.full_like(x, 1),
            x.transpose(0, 1).contiguous(),
        )

    used = check(f, values(4, 5, dtype=dtype), values(4, 5, dtype=dtype))
    assert used == {
        *("tor_copy_ref", "tor_fill_ref", "tor_gather_ref", "tor_scatter_ref"),
        *("tor_sort_ref", "tor_scan_ref", "tor_map_run_ref"),
    }


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS], ids=str)
def test_arithmetic_of_every_type(dtype):
    def f(x, y):
        return (
            x * y + x,
            torch.maximum(x, y).sum(0),
            x.amax(1),
            x.argmin(1),
            (x > y).any(1),
            torch.cumsum(x, 0),
            torch.arange(7, dtype=dtype),
            torch.searchsorted(torch.sort(x[0])[0], y),
            torch.scatter_add(x, 0, (x > 0).long(), y),
            F.max_pool2d(x[None, None].float(), 2),
        )

    tight = {torch.bfloat16: 8e-3, torch.float16: 1e-3}.get(dtype, 1e-6)
    used = check(f, values(4, 5, dtype=dtype), values(4, 5, dtype=dtype), rtol=tight, atol=tight)
    assert {"tor_arange_ref", "tor_search_ref", "tor_pool_run_ref"} <= used


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS], ids=str)
def test_products_of_every_type(dtype):
    def f(x, w, bias):
        return (
            torch.addmm(bias, x, w),
            x.view(2, 2, 5) @ w,
            F.conv1d(x[None, :, :], w[:3, :4, None].contiguous(), bias[:3]),
        )

    args = values(4, 5, dtype=dtype), values(5, 6, dtype=dtype), values(6, dtype=dtype)
    # One rounding of an exact sum; eager's halves sum in an order of their own before it.
    tight = {torch.bfloat16: 8e-3, torch.float16: 1e-3, torch.float64: 1e-15}.get(dtype, 3e-7)
    used = check(f, *args, rtol=tight, atol=3 * tight)
    single = dtype in (torch.float32, torch.bfloat16, torch.float16)
    gemm = "tor_gemm_run_ref" if single else "tor_gemm_typed_run_ref"
    assert {gemm, "tor_conv_run_ref"} <= used


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_attention(dtype):
    q, k, v = values(3, 2, 4, 9, 16, dtype=dtype).unbind(0)
    tight = {torch.bfloat16: 1e-2, torch.float16: 2e-3}.get(dtype, 1e-6)

    def f(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    assert "tor_attention_ref" in check(f, q, k, v, rtol=tight, atol=tight)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_bags(dtype):
    table, index = values(10, 6, dtype=dtype), torch.tensor([1, 2, 4, 5, 4, 3])
    offsets = torch.tensor([0, 2, 2, 5])

    def f(table, index, offsets):
        return F.embedding_bag(index, table, offsets, mode="mean")

    assert "tor_bag_run_ref" in check(f, table, index, offsets, rtol=8e-3, atol=1e-3)


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("f", "wrong"),
    [
        (lambda x, i: x[i], torch.tensor([1, 7])),
        (lambda x, i: F.embedding_bag(i, x, torch.tensor([0, 1])), torch.tensor([1, 7])),
        (lambda x, i: F.embedding_bag(i, x, torch.tensor([0, 1])), torch.tensor([-1, 0])),
        (lambda x, i: x.scatter(0, i[None, :], 1.0), torch.tensor([1, 7])),
        (lambda x, i: 5 // i, torch.tensor([1, 0])),
    ],
)
def test_wrong_values_are_refused(f, wrong):
    x = torch.randn(4, 3)
    with pytest.raises((IndexError, RuntimeError)):
        f(x, wrong)
    compiled = reference(f, options={"strict": True})
    with pytest.raises((IndexError, RuntimeError)):
        compiled(x, wrong)
    good = torch.tensor([1, 2])
    assert_same(compiled(x, good), f(x, good))


def test_wide_integers_in_a_pool():
    x = torch.tensor([[[2**53 + 1, 2**53, -(2**62) - 1, -(2**62)]]])
    check(lambda x: torch.ops.aten.max_pool2d_with_indices(x, [1, 2], [1, 2]), x)

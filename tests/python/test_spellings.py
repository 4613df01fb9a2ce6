"""What models spell out in parts runs as one step: GELU, SiLU, RMSNorm, biased attention, gates."""

import math

import pytest
import torch
import torch.nn.functional as F
from toroid.report import explain


@pytest.fixture(autouse=True)
def no_grad():
    with torch.no_grad():
        yield


def steps_of(f, *args):
    """Kinds of the steps and what they do, after the answer was compared with eager's."""
    report = explain(f, *args, options={"strict": True})
    torch.testing.assert_close(report.result, f(*args), rtol=1e-4, atol=1e-5)
    (graph,) = report.graphs
    return [line.split() for line in graph.tables()["steps"].splitlines()[1:]]


def new_gelu(x):
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x.pow(3.0))))


def fast_gelu(x):
    return 0.5 * x * (1.0 + torch.tanh(x * 0.7978845608 * (1.0 + 0.044715 * x * x)))


def bloom_gelu(x):
    return x * 0.5 * (1.0 + torch.tanh(0.79788456 * x * (1 + 0.044715 * x * x)))


def python_gelu(x):
    return x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))


def divided_gelu(x):
    return x * (1.0 + torch.erf(x * 0.5**0.5)) / 2


def swish(x):
    return x * torch.sigmoid(x)


def divided_swish(x):
    return x / (1 + torch.exp(-x))


ACTIVATIONS = {
    "gelu_tanh": (new_gelu, fast_gelu, bloom_gelu),
    "gelu_erf": (python_gelu, divided_gelu),
    "silu": (swish, divided_swish),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    x = torch.randn(6, 40) * 4
    x[0, :4] = torch.tensor([0.0, -0.0, 30.0, -30.0])

    def f(x):
        # Different arguments, so that equal spellings are not merged.
        return tuple(g(x + i) for i, g in enumerate(ACTIVATIONS[name]))

    steps = steps_of(f, x)
    assert len(steps) == len(ACTIVATIONS[name])
    assert all(" ".join(step).endswith(f"{{add {name}}}") or name in step[-1] for step in steps)


def test_half_types_keep_their_roundings():
    x = torch.randn(500).bfloat16()
    report = explain(swish, x)
    assert torch.equal(report.result, swish(x))
    assert "silu" not in report.graphs[0].tables()["steps"]


def rms(x, w):
    return w * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


def t5_rms(x, w):
    x = x.to(torch.float32)
    return w * (x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6))


@pytest.mark.parametrize("f", [rms, t5_rms], ids=lambda f: f.__name__)
def test_rms_norm_is_one_pass(f):
    steps = steps_of(f, torch.randn(5, 33), torch.randn(33))
    assert [step[1] for step in steps] == ["rows"]


B, H, G, M, N, D = 2, 4, 2, 7, 11, 16
LEAST = torch.finfo(torch.float32).min


def t5(q, k, v, bias, keep):
    """No scale; the position bias has the mask in it."""
    bias = bias + torch.where(keep, 0.0, LEAST)
    return torch.softmax((q @ k.transpose(2, 3) + bias).float(), -1).type_as(q) @ v


def alibi(q, k, v, bias, keep):
    """Bloom: the heads are in the batch until the mask is added."""
    q, k = q.reshape(B * H, M, D), k.reshape(B * H, N, D).transpose(1, 2)
    slopes = bias[:, :, :1].expand(B, H, 1, N).reshape(B * H, 1, N)
    scores = torch.baddbmm(slopes, q, k, beta=1.0, alpha=0.25).view(B, H, M, N)
    return torch.softmax(scores + torch.where(keep, 0.0, LEAST), -1) @ v


def filled(q, k, v, bias, keep):
    """DeBERTa: a bias, and the mask chosen after it."""
    scores = q @ (k / 4).transpose(2, 3) + bias
    return torch.softmax(scores.masked_fill(~keep, LEAST), -1) @ v


def scaled_sum(q, k, v, bias, keep):
    """XLNet: the scale covers the bias, the mask is subtracted."""
    scores = (q @ k.transpose(2, 3) + bias) * 0.25
    return torch.softmax(scores - 1e30 * (~keep).float(), -1) @ v


def grouped(q, k, v, bias, keep):
    """Llama: keys and values are repeated for the heads of a group."""
    k, v = (x[:, :G, None].expand(B, G, H // G, N, D).reshape(B, H, N, D) for x in (k, v))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias.expand(B, H, M, N))


@pytest.mark.parametrize("f", [t5, alibi, filled, scaled_sum, grouped], ids=lambda f: f.__name__)
def test_attention_with_biases(f):
    q, k, v = torch.randn(B, H, M, D), torch.randn(B, H, N, D), torch.randn(B, H, N, D)
    keep = torch.ones(B, 1, M, N, dtype=torch.bool)
    keep[1, :, :, N - 4 :] = False
    keep[0, :, 3] = False  # a row with every key hidden: eager gives it all keys alike
    steps = steps_of(f, q, k, v, torch.randn(1, H, M, N), keep)
    kinds = [step[1] for step in steps]
    assert kinds.count("attention") == 1 and not {"gemm", "rows"} & set(kinds)
    if f is grouped:
        assert kinds == ["attention"]


def test_squeeze_excite():
    """One reduction, two small products with their activations, one product over the image."""
    down, up = torch.nn.Conv2d(16, 4, 1), torch.nn.Conv2d(4, 16, 1)

    def gate(x):
        return x * torch.sigmoid(up(F.silu(down(x.mean((2, 3), keepdim=True)))))

    steps = steps_of(gate, torch.randn(2, 16, 9, 9))
    text = [" ".join(step) for step in steps]
    assert sum("{silu}" in t for t in text) == sum("{sigmoid" in t for t in text) == 1, text
    assert len(steps) <= 5, text

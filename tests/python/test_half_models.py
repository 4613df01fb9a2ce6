"""BERT, GPT-2 and ResNet in bfloat16 and float16, strict: of full width with static shapes, small
with dynamic ones.

The reference is the model in float64 with the weights as rounded to the half type, so the error of
an answer is all rounding: of products, sums and what is stored between ops. Eager's own is beside.
"""

import copy

import pytest
import torch
import transformers as T
from support import rms, tensors, toroid
from torch.utils._pytree import tree_map

HALVES = [torch.bfloat16, torch.float16]


@pytest.fixture(autouse=True)
def no_grad():
    with torch.no_grad():
        yield


def ids(batch, length):
    return torch.randint(0, 1000, (batch, length))


def padded(length):
    mask = torch.ones(3, length, dtype=torch.long)
    mask[1, length // 2 :] = 0
    return {"input_ids": ids(3, length), "attention_mask": mask}


def causal(length):
    return {"input_ids": ids(2, length), "use_cache": False}


def images(batch):
    return {"pixel_values": torch.randn(batch, 3, 32, 32)}


def bert(**sizes):
    return T.BertModel(T.BertConfig(vocab_size=1000, **sizes))


def gpt2(**sizes):
    return T.GPT2LMHeadModel(T.GPT2Config(vocab_size=1000, **sizes))


def resnet(**sizes):
    """Its batch norms have statistics of their own, as after training."""
    model = T.ResNetModel(T.ResNetConfig(**sizes))
    for m in model.modules():
        if isinstance(m, torch.nn.BatchNorm2d):
            m.running_mean.normal_(0, 0.1)
            m.running_var.uniform_(0.5, 1.5)
    return model


def cast(tree, dtype):
    return tree_map(
        lambda t: t.to(dtype) if isinstance(t, torch.Tensor) and t.is_floating_point() else t, tree
    )


def check(model, calls, dtype, factor, **options):
    """The error of every output is at most `factor` times eager's."""
    model = model.eval().to(dtype)
    exact = copy.deepcopy(model).double()
    compiled = toroid(model, options={"strict": True}, **options)
    for call in (cast(call, dtype) for call in calls):
        right = tensors(dict(exact(**cast(call, torch.float64))))
        want, got = tensors(dict(model(**call))), tensors(dict(compiled(**call)))
        for a, b, x in zip(got, want, right, strict=True):
            assert (a.dtype, a.shape, a.stride()) == (dtype, b.shape, b.stride())
            error, allowed = rms(a.double() - x), rms(b.double() - x)
            assert error <= factor * allowed, f"error {error:.3e}, eager's is {allowed:.3e}"


SMALL = {
    "bert": (
        {
            "num_hidden_layers": 2,
            "hidden_size": 128,
            "num_attention_heads": 2,
            "intermediate_size": 512,
        },
        bert,
        padded,
    ),
    "gpt2": ({"n_layer": 2, "n_embd": 128, "n_head": 4}, gpt2, causal),
    "resnet": (
        {"embedding_size": 16, "hidden_sizes": [32, 64], "depths": [1, 1], "hidden_act": "silu"},
        resnet,
        images,
    ),
}


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", SMALL)
def test_small_with_dynamic_shapes(name, dtype):
    sizes, make, inputs = SMALL[name]
    check(make(**sizes), [inputs(3), inputs(17)], dtype, 1.5, dynamic=True)


# Eager has no fast product for GPT-2's layers in half types: few tokens.
WIDE = {
    "bert": (lambda: bert(num_hidden_layers=2), lambda: padded(32)),
    "gpt2": (lambda: gpt2(n_layer=2), lambda: causal(8)),
    "resnet50": (resnet, lambda: images(2)),
}


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", WIDE)
def test_full_width(name, dtype):
    make, inputs = WIDE[name]
    check(make(), [inputs()], dtype, 1.15)

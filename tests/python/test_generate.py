"""`generate` with a compiled forward: eager's greedy tokens, no compilation beyond eager's."""

import pytest
import torch
import transformers as T
from hf_models import GPT2, LLAMA, MODELS, ids, model
from support import CompileCounterWithBackend, listen, toroid


@pytest.fixture(autouse=True)
def no_grad():
    with torch.no_grad():
        yield


MAKERS = {
    "gpt2": model(T.GPT2LMHeadModel, T.GPT2Config, GPT2),
    "llama": model(T.LlamaForCausalLM, T.LlamaConfig, LLAMA),
    "t5": MODELS["t5"][0],
    "whisper": MODELS["whisper"][0],
}


def generate(net, name, cache):
    """Two calls with different inputs of one length; the second must find all graphs made."""
    torch.manual_seed(1)
    length = {"min_new_tokens": 6, "max_new_tokens": 6, "do_sample": False}
    calls = []
    for _ in range(2):
        inputs = {"input_features": torch.randn(1, 8, 64)} if name == "whisper" else {}
        prompt = inputs or {"input_ids": ids(1, 7)}
        calls.append(lambda p=prompt: net.generate(**p, **length, cache_implementation=cache))
    return calls


@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("name", MAKERS)
def test_greedy_tokens(name, cache):
    torch.manual_seed(0)
    net = MAKERS[name]().eval()
    plain = net.forward
    want = [call() for call in generate(net, name, cache)]

    counter = CompileCounterWithBackend("eager")
    net.forward = torch.compile(plain, backend=counter)
    for call in generate(net, name, cache):
        call()

    torch._dynamo.reset()
    net.forward = toroid(plain, options={"strict": True})
    first, second = generate(net, name, cache)
    with listen() as found:
        got = [first()]
        compiled = len(found)
        got.append(second())
    assert 0 < len(found) <= counter.frame_count
    assert len(found) == compiled, "the second call compiled again"
    assert all(r.native > 0 and not r.externals and r.fallback is None for r in found)
    for a, b in zip(got, want, strict=True):
        assert torch.equal(a, b)

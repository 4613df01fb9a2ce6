"""A decoder's static cache is updated where it lies: bytes written a token are counted."""

import torch
import transformers as T
from toroid.report import listen

LAYERS, HEADS, WIDTH, ROOM = 2, 4, 16, 64


def decoder():
    torch.manual_seed(0)
    config = T.GPT2Config(
        n_layer=LAYERS, n_head=HEADS, n_embd=HEADS * WIDTH, vocab_size=100, n_positions=ROOM
    )
    return T.GPT2LMHeadModel(config).eval()


def step(model, cache, tokens, position):
    out = model(
        input_ids=tokens,
        past_key_values=cache,
        use_cache=True,
        cache_position=torch.arange(position, position + tokens.shape[1]),
    )
    return out.logits[:, -1].clone()


def test_decode_writes_only_the_new_rows():
    model = decoder()
    prompt = torch.randint(0, 100, (1, 8), generator=torch.Generator().manual_seed(1))
    with torch.no_grad(), listen() as reports:
        cache = T.StaticCache(config=model.config, max_cache_len=ROOM)
        plain = T.StaticCache(config=model.config, max_cache_len=ROOM)
        compiled = torch.compile(model, backend="toroid", options={"strict": True})
        step(compiled, cache, prompt, 0)
        step(model, plain, prompt, 0)
        token = prompt[:, -1:]
        for position in range(8, 20):
            got, want = step(compiled, cache, token, position), step(model, plain, token, position)
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
            token = want.argmax(-1)[:, None]
        written = reports[-1].executable.stats()["input_bytes"]
    # One row of keys and one of values a layer, in float32, and a layer's own count of tokens.
    rows = LAYERS * 2 * HEADS * WIDTH * 4
    counters = LAYERS * 8
    assert rows <= written <= rows + counters
    whole = rows * ROOM
    assert written < whole / 32

"""Greedy decoding by `generate` of transformers, its steps compiled by Toroid.

    python examples/generate.py [--layers 4] [--width 512] [--tokens 32]

`generate` compiles the step that makes one token if its cache is static and it gets a
CompileConfig. Three things are not obvious:

- `mode=None`, since transformers' own default is a mode of Inductor's;
- `_compile_all_devices`, without which transformers compiles for accelerators only;
- `max_cache_len`, so that prompts of all lengths share one cache and one compiled graph.

The model is a Llama with random weights. Fails where tokens differ from eager's.
"""

import argparse

import torch
import toroid.report
import transformers as T
from beside import compare

WORDS = 2000


def llama(layers, width):
    torch.manual_seed(0)
    config = T.LlamaConfig(
        vocab_size=WORDS,
        hidden_size=width,
        intermediate_size=width * 8 // 3,
        num_hidden_layers=layers,
        num_attention_heads=width // 64,
        num_key_value_heads=max(width // 128, 1),
        eos_token_id=None,  # random weights have no use for an end
    )
    return T.LlamaForCausalLM(config).eval()


def compiled_steps(longest):
    """Return what `generate` has to be given for steps by Toroid."""
    config = T.CompileConfig(backend="toroid", mode=None, fullgraph=True)
    config._compile_all_devices = True
    return {
        "compile_config": config,
        "cache_implementation": "static",
        "max_cache_len": longest,
    }


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=32, help="that are made for each prompt")
    args = parser.parse_args(argv)
    model = llama(args.layers, args.width)
    lengths = (5, 12, 20)
    toroid_steps = compiled_steps(max(lengths) + args.tokens)

    def generate(prompt, **more):
        return lambda: model.generate(
            prompt, max_new_tokens=args.tokens, do_sample=False, pad_token_id=0, **more
        )

    with toroid.report.listen() as graphs:
        for length in lengths:
            prompt = torch.randint(3, WORDS, (1, length))
            what = f"{args.tokens} tokens after {length}"
            compare(what, generate(prompt), generate(prompt, **toroid_steps))
    print(f"graphs compiled: {len(graphs)}")


if __name__ == "__main__":
    main()

